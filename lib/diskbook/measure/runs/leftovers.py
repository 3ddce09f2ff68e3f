"""Find what killed runs have left on this computer: emulators, keys, temporary folders."""

from __future__ import annotations

import contextlib
import shutil
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from azure.core.exceptions import AzureError

from diskbook.cloud import connect
from diskbook.cloud.azure import expiry
from diskbook.facts import neighbours
from diskbook.facts.errors import DiskbookError
from diskbook.hosts import stage as own_hosts
from diskbook.measure.runs import scratch_folders, stages
from diskbook.results import run as runs, session
from diskbook.results.run import Run
from diskbook_emulator import folders, lifecycle


@dataclass(frozen=True)
class Leftover:
    """Something that is left; `goes` says that a sweep removes it."""

    text: str
    goes: bool
    remove: Callable[[], object] = field(repr=False)


def find() -> list[Leftover]:
    """Find all that is left on this computer."""
    return [*_records(), *_own_places(), *_dead_emulators(), *_scratch()]


def has_ended(run: Run) -> bool:
    """Whether nobody works on a run, and its machines were not kept, or have expired."""
    if session.is_worked_on(run):
        return False
    return not run.manifest.get("kept", True) or expiry.is_past(run.manifest)


def local_runs() -> list[Run]:
    """Runs in the folder of runs that this client may act on: begun here, unchanged, readable."""
    return [run for run, why_not in _judged() if why_not is None]


def refused_runs() -> list[str]:
    """Say of each other run in the folder of runs, where something of it may stand, why it is left alone."""
    return [why_not for _, why_not in _judged() if why_not]


def _judged() -> Iterator[tuple[Run, str | None]]:
    """Runs in the folder of runs, and why nothing is done about one; "" where there is nothing to be done."""
    for path in sorted(runs.runs_root().glob("*/manifest.json")):
        run = Run(path.parent)
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


def _records() -> Iterator[Leftover]:
    """Runs that were killed and whose own emulator has ended with them: a record of groups, and a key."""
    for run in local_runs():
        manifest = run.manifest
        own = (manifest.get("emulator") or {}).get("own", False)
        name = connect.emulator_name(run) or ""
        if not own or connect.emulator_state(name) == "running" or not has_ended(run):
            continue
        stand = any(not row["deleted_utc"] for row in manifest["resource_groups"])
        if stand or (run.folder / "keys").exists():
            yield Leftover(
                f"key and open record of run {run.name}, which was killed", True, partial(_close, run)
            )


def unclosed(cloud: str | None = None) -> Iterator[Leftover]:
    """Find runs whose groups are gone, deleted by a process that was killed or by somebody else.

    Their manifest says that the groups stand, and their key is there. What cannot be asked is left alone.

    Parameters
    ----------
    cloud
        "azure" or "emulator"; by default both.
    """
    for run in local_runs():
        groups = run.manifest["resource_groups"]
        here = cloud in (None, run.manifest["cloud"]) and groups and not session.is_worked_on(run)
        if here and _is_unclosed(run):
            yield Leftover(
                f"key and open record of run {run.name}, whose resource groups are gone",
                True,
                partial(_close, run),
            )


def _is_unclosed(run: Run) -> bool:
    stand = [row["name"] for row in run.manifest["resource_groups"] if not row["deleted_utc"]]
    if not stand:
        return (run.folder / "keys").exists()
    with contextlib.suppress(DiskbookError, AzureError):
        groups = connect.clients_of(run, record=False).resource.resource_groups
        return not any(groups.check_existence(name) for name in stand)
    return False


def _own_places() -> Iterator[Leftover]:
    """Files and marks that runs which have ended left on hosts of the user's own."""
    for run in local_runs():
        if own_hosts.standing(run.manifest) and has_ended(run):
            text = f"run {run.name}, {own_hosts.standing_text(run.manifest)}"
            yield Leftover(text, True, partial(_leave_hosts, run))


def _leave_hosts(run: Run) -> None:
    with session.session(run):
        stages.teardown(run)
    if left := own_hosts.standing_text(run.manifest):
        raise DiskbookError(f"run {run.name} is {left}")


def _close(run: Run) -> None:
    with session.session(run):
        stages.teardown(run)
        shutil.rmtree(run.folder / "keys", ignore_errors=True)


def _dead_emulators() -> Iterator[Leftover]:
    users: dict[str | None, list[Run]] = {}
    for run in local_runs():
        users.setdefault(connect.emulator_name(run), []).append(run)
    for row in lifecycle.status():
        if row.state != "dead":
            continue
        needed = [run.name for run in users.get(row.name, []) if not has_ended(run)]
        text = f"emulator {row.name}, which was killed, with its folder {row.folder}"
        remove = partial(_stop, row.name)
        if needed:
            yield Leftover(f"{text}: run {needed[0]} may go on with it", False, remove)
        elif row.name not in users and _age_s(row.folder) < expiry.LONGEST_H * 3600:
            yield Leftover(f"{text}: no run here uses it, one elsewhere may", False, remove)
        else:
            yield Leftover(text, True, remove)


def _stop(emulator: str) -> None:
    """Remove a killed emulator, unless that has been done with its run's record."""
    if connect.emulator_state(emulator) == "dead":
        lifecycle.stop(emulator)


def _age_s(state: Path) -> float:
    with contextlib.suppress(OSError):
        return time.time() - (state / folders.CONFIG).stat().st_mtime
    return 0.0


def _scratch() -> Iterator[Leftover]:
    """Folders that killed processes wrote in: Jupyter's, and those of fetches."""
    for path in [*scratch_folders.left(), *neighbours.stores.left()]:
        yield Leftover(f"temporary folder {path}", True, partial(shutil.rmtree, path, True))
