"""Find what killed runs have left on this computer: keys, files on own hosts, temporary folders."""

import contextlib
import shutil
from collections.abc import Iterator
from functools import partial

from azure.core.exceptions import AzureError

from diskbook.cloud import connect, kinds
from diskbook.cloud.azure import expiry
from diskbook.cloud.kinds import Leftover
from diskbook.facts import neighbours
from diskbook.facts.errors import DiskbookError
from diskbook.hosts import stage
from diskbook.measure.runs import scratch_folders, stages
from diskbook.results import run as runs, session


def find() -> list[Leftover]:
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


def refused_runs() -> list[str]:
    """Say of each other run in the folder of runs, where something of it may stand, why it is left alone."""
    return [why_not for _, why_not in _judged() if why_not]


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
    """Find runs whose groups are gone, deleted by a process that was killed or by somebody else.

    Their manifest says that the groups stand, and their key is there. What cannot be asked is left alone.

    - `cloud`: name of a cloud; by default all.
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
    for path in [*scratch_folders.left(), *neighbours.stores.left()]:
        yield Leftover(f"temporary folder {path}", True, partial(shutil.rmtree, path, True))
