"""`diskbook sweep`: find what runs have left, in clouds and on this computer, and remove it.

On this computer these are keys, files on own hosts and temporary folders. Also writes the report as text.
"""

import contextlib
import shutil
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial

from azure.core.exceptions import AzureError

from diskbook.cloud import connect, kinds
from diskbook.cloud.azure import expiry, inventory, named_group, refusals, sweep as cloud_sweep, teardown
from diskbook.cloud.azure.clients import Clients
from diskbook.cloud.azure.expiry import span
from diskbook.cloud.kinds import Leftover
from diskbook.facts import neighbours, table_writers
from diskbook.facts.errors import DiskbookError, UsageError
from diskbook.facts.table_writers import Table
from diskbook.hosts import stage
from diskbook.measure.runs import execute_notebook, stages
from diskbook.results import run as runs, session

Say = Callable[[str], None]


@dataclass(frozen=True)
class Place:
    """One cloud that was looked at."""

    title: str
    clients: Clients
    groups: list[cloud_sweep.Group]


@dataclass(frozen=True)
class SweepReport:
    """All that runs have left. `notes` tell what could not be looked at."""

    places: list[Place]
    leftovers: list[Leftover]
    notes: list[str]

    @property
    def goes(self) -> int:
        """How many things a sweep removes."""
        groups = sum(group.goes for place in self.places for group in place.groups)
        return groups + sum(leftover.goes for leftover in self.leftovers)


def find(
    cloud: str | None = None,
    emulator: str | None = None,
    group: str | None = None,
    *,
    with_foreign: bool = False,
) -> SweepReport:
    """Find what runs have left.

    - `cloud`: name of a cloud; by default all, Azure only where it can be reached.
    - `emulator`: look at this emulator only.
    - `group`: look for this resource group only; it may have been made elsewhere.
    - `with_foreign`: delete that group with the resources in it that are not the run's.

    Raises UsageError for a cloud, emulator or group that does not exist. Raises DiskbookError when a cloud
    that was asked for cannot be looked at, or a group that was named must not be deleted.
    """
    report = _all(cloud, emulator)
    return report if group is None else _only(report, group, with_foreign)


def _only(report: SweepReport, group: str, with_foreign: bool) -> SweepReport:
    """The part of a report that is about one group, which then goes: a person has named it."""
    named = [replace(place, groups=_of_name(place.groups, group, with_foreign)) for place in report.places]
    places = [place for place in named if place.groups]
    if not places:
        where = ", ".join(place.title for place in report.places) or "no cloud"
        raise UsageError(f"there is no resource group {group} of a run; looked at: {where}")
    if len(places) > 1:
        titles = " and ".join(place.title for place in places)
        raise UsageError(
            f"there is a resource group {group} in {titles}; say which with --cloud or --emulator"
        )
    if not any(row.goes for row in places[0].groups):
        raise DiskbookError(f"resource group {group} is not deleted from here: {places[0].groups[0].state}")
    return SweepReport(places, [], [])


def _of_name(groups: list[cloud_sweep.Group], name: str, with_foreign: bool) -> list[cloud_sweep.Group]:
    """Groups of a name, or what several runs have in one, that go since a person has named it."""
    rows = [group for group in groups if group.name.lower() == name.lower()]
    if with_foreign and any(group.prefix for group in rows):
        raise UsageError(f"resource group {name} is not a run's and is never deleted: omit --with-foreign")
    spares = not with_foreign
    return [replace(group, goes=group.may_be_named, named=True, spares=spares) for group in rows]


def _all(cloud: str | None, emulator: str | None) -> SweepReport:
    if emulator is not None and cloud == "azure":
        raise UsageError("--emulator names an emulator, but --cloud azure leaves those out")
    if emulator is not None:
        named = kinds.get("emulator").find(must=True, only=emulator)
        return SweepReport([_place(*pair) for pair in named.places.items()], [], [])
    places: list[Place] = []
    notes: list[str] = []
    for kind in kinds.every() if cloud is None else [kinds.get(cloud)]:
        here = kind.find(must=cloud is not None)
        notes += here.notes
        for title, clients in here.places.items():
            try:
                places.append(_place(title, clients))
            except DiskbookError as error:
                if cloud is not None or kind.is_local:
                    raise
                notes.append(f"not looked at: {error}")
    notes = list(dict.fromkeys(notes))
    if cloud is not None and not kinds.get(cloud).is_local:
        return SweepReport(places, list(unclosed(cloud)), notes)
    notes += [why_not for _, why_not in _judged() if why_not]
    return SweepReport(places, [*on_this_computer(), *unclosed(cloud)], notes)


def remove(report: SweepReport, say: Say) -> list[str]:
    """Remove what is to go, in parallel, and make sure of it; return a sentence for each thing left."""
    tasks: list[Callable[[], None]] = []
    for place in report.places:
        by_run: dict[str, list[cloud_sweep.Group]] = {}
        for group in place.groups:
            if group.goes and group.label:
                by_run.setdefault(group.label.run, []).append(group)
        # The groups of one run share a manifest: one after the other.
        tasks += [partial(_remove_groups, place.clients, groups, say) for groups in by_run.values()]
    with ThreadPoolExecutor(cloud_sweep.WORKERS) as pool:
        failed = [text for text in pool.map(_tried, tasks) if text]
    # In the order found, one after the other: closing a run's record also removes its emulator.
    for leftover in report.leftovers:
        if leftover.goes:
            say(f"removing {leftover.text}")
            failed += [text for text in [_tried(leftover.remove)] if text]
    return failed


def _tried(task: Callable[[], object]) -> str | None:
    try:
        task()
    except DiskbookError as error:
        return str(error)
    except AzureError as error:
        return refusals.message(error)
    return None


def _place(title: str, clients: Clients) -> Place:
    try:
        return Place(title, clients, cloud_sweep.find_groups(clients, runs.runs_root()))
    except AzureError as error:
        raise DiskbookError(f"{title}: {refusals.message(error)}") from error


def _remove_groups(clients: Clients, groups: list[cloud_sweep.Group], say: Say) -> None:
    for group in groups:
        _remove_group(clients, group, say)


def _remove_group(clients: Clients, listed: cloud_sweep.Group, say: Say) -> None:
    """Delete a group if it still is what the list said."""
    name, root = listed.name, runs.runs_root()
    in_named = listed.prefix != ""
    now = cloud_sweep.read_again(clients, listed, root)
    if now is None:
        say(f"{'what a run had in ' * in_named}resource group {name} has gone meanwhile")
        return
    if not (now.goes or (listed.named and now.may_be_named)) or now.label is None:
        raise DiskbookError(f"resource group {name} was left alone: it is now {now.state}")
    if not listed.spares:  # the person has confirmed what was listed
        if now.foreign != listed.foreign:
            raise DiskbookError(f"resource group {name} was left alone: it now holds other foreign resources")
        again = f"'diskbook sweep --delete --group {name} --with-foreign'"
        teardown.remove(clients, name, again=again, say=say)
    run = runs.Run(runs.runs_root() / now.label.run)
    # Another group of the same run may have longer to live: then only this one goes.
    state = session.run_state(run, name) if now.goes else session.RunState.ABSENT
    if state in (session.RunState.ENDED, session.RunState.KEPT) and has_ended(run):
        with session.session(run):  # a run that is resumed at this moment is told to wait
            stages.teardown(run, say)
    # Also what no run here has on record, or what a run hangs on to beyond its expiry.
    if in_named:
        named_group.remove(clients, name, listed.prefix, now.label.run, say)
        say(f"the resources of run {now.label.run} in {name} are gone")
        return
    if inventory.find_group(clients, name) is not None:
        teardown.spare_foreign(clients, name, now.label.run, say)
        teardown.remove(clients, name, again="'diskbook sweep --delete'", run=now.label.run, say=say)
    say(f"resource group {name} is gone")


def sweep_text(report: SweepReport) -> str:
    """Write a report as text: a table a cloud, then the rest."""
    parts = [
        f"{place.title}:\n{table_writers.text(Table.of(list(map(_row, place.groups))), indent=2)}"
        for place in report.places
        if place.groups
    ]
    empty = [place.title for place in report.places if not place.groups]
    if empty:
        parts.append(f"nothing of ours: {', '.join(empty)}")
    if report.leftovers:
        lines = [
            f"  {'goes ' if leftover.goes else 'stays'}  {leftover.text}" for leftover in report.leftovers
        ]
        parts.append("\n".join(["on this computer:", *lines]))
    return "\n".join([*parts, *report.notes]) or "nothing was looked at: no emulator runs"


def _row(group: cloud_sweep.Group) -> dict[str, str]:
    label, now = group.label, datetime.now(UTC)
    row = {"group": group.name, **dict.fromkeys(("run", "owner", "scenario", "age", "expires"), "-")}
    last = {"holds": group.holds, "state": group.state}
    if label is None:
        return row | last
    left_s = (label.expires - now).total_seconds()
    when = f"in {span(left_s)}" if left_s > 0 else f"{span(-left_s)} ago"
    return {
        "group": group.name,
        "run": label.run,
        "owner": label.owner,
        "scenario": label.scenario,
        "age": span((now - label.created).total_seconds()) if label.created else "?",
        "expires": f"{label.expires.astimezone(UTC):%Y-%m-%d %H:%M} UTC, {when}",
        "holds": group.holds,
        "state": f"{group.state}: goes" if group.goes else group.state,
    }


def foreign_question(report: SweepReport) -> str:
    """Ask whether one group goes with its foreign resources, which the question names."""
    (group,) = (group for place in report.places for group in place.groups)
    return f"Delete {group.name} with {', '.join(group.foreign) or 'no foreign resources'}?"


def going(report: SweepReport) -> str:
    """Count what goes: "2 groups, 1 other"."""
    groups = sum(group.goes for place in report.places for group in place.groups)
    others = report.goes - groups
    parts = [f"{groups} {'group' if groups == 1 else 'groups'}"] if groups else []
    return ", ".join([*parts, *([f"{others} on this computer"] if others else [])])


def on_this_computer() -> list[Leftover]:
    """Find all that is left on this computer."""
    of_clouds = (leftover for kind in kinds.every() for leftover in kind.leftovers())
    return [*of_clouds, *_scratch()]


def has_ended(run: runs.Run) -> bool:
    """Whether nobody works on a run, and its machines were not kept, or have expired."""
    if session.is_worked_on(run):
        return False
    return not run.manifest.get("kept", True) or expiry.is_past(run.manifest)


def local_runs() -> list[runs.Run]:
    """Runs in the folder of runs that this client may act on: begun here, unchanged, readable."""
    return [run for run, why_not in _judged() if why_not is None]


def _judged() -> Iterator[tuple[runs.Run, str | None]]:
    """Runs in the folder of runs, and why nothing is done about one; "" where there is nothing to be done."""
    for path in sorted(runs.runs_root().glob("*/manifest.json")):
        run = runs.Run(path.parent)
        try:
            runs.check_no_links(run.folder)
            stands = any(not row["deleted_utc"] for row in run.manifest["resource_groups"])
            if not run.is_signed and not stands:
                yield run, ""
                continue
            run.check_signed()
        except DiskbookError as error:
            yield run, f"not looked at: {error}"
        else:
            yield run, None


def unclosed(cloud: str | None = None) -> Iterator[Leftover]:
    """Find runs, by default of all clouds, whose groups a killed process or somebody else deleted.

    Their manifest says that the groups stand, and their key is there. What cannot be asked is left alone.
    """
    for run in local_runs():
        groups = run.manifest["resource_groups"]
        here = cloud in (None, run.manifest["cloud"]) and groups and not session.is_worked_on(run)
        if here and _is_unclosed(run):
            yield Leftover(
                f"key and open record of run {run.name}, whose resource groups are gone",
                True,
                partial(close, run),
            )


def _is_unclosed(run: runs.Run) -> bool:
    stand = [row["name"] for row in run.manifest["resource_groups"] if not row["deleted_utc"]]
    if not stand:
        return (run.folder / "keys").exists()
    with contextlib.suppress(DiskbookError, AzureError):
        groups = connect.clients_of(run, record=False).resource.resource_groups
        return not any(groups.check_existence(name) for name in stand)
    return False


def own_places() -> Iterator[Leftover]:
    """Files and marks that runs which have ended left on hosts of the user's own."""
    for run in local_runs():
        if stage.standing(run.manifest) and has_ended(run):
            text = f"run {run.name}, {stage.standing_text(run.manifest)}"
            yield Leftover(text, True, partial(_leave_hosts, run))


def _leave_hosts(run: runs.Run) -> None:
    with session.session(run):
        stages.teardown(run)
    if left := stage.standing_text(run.manifest):
        raise DiskbookError(f"run {run.name} is {left}")


def close(run: runs.Run) -> None:
    """Tear a run down whose machines are gone, and remove its key."""
    with session.session(run):
        stages.teardown(run)
        shutil.rmtree(run.folder / "keys", ignore_errors=True)


def _scratch() -> Iterator[Leftover]:
    """Folders that killed processes wrote in: Jupyter's, and those of fetches."""
    for path in [*execute_notebook.left_folders(), *neighbours.stores.left()]:
        yield Leftover(f"temporary folder {path}", True, partial(shutil.rmtree, path, True))
