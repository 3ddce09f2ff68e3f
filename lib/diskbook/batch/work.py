"""Run one item of a batch in this process (`python -m diskbook.batch.work`), or what is left of it.

It shares nothing with the batch but the run's folder, or the store: whoever has the order can run it.
"""

import hashlib
import os
import shutil
import sys
import time
from pathlib import Path

from diskbook.batch import order as orders, stored
from diskbook.batch.process import HELD, LOST
from diskbook.batch.stores import address as addresses
from diskbook.batch.stores.lease import HeldError, LeaseLostError
from diskbook.batch.stores.record import State
from diskbook.facts.errors import DiskbookError, Stopped
from diskbook.measure.runs import finished, pipeline, stages
from diskbook.results import run as runs, session

PATIENCE_S = 900.0
"""How long an earlier process of the same run may take to tear down; on Azure that is minutes."""
START = "batch"
"""Event of a run's ledger: a start by a batch, by its name."""
_POLL_S = 0.5


class AgainError(DiskbookError):
    """This very start of the run was begun before: where it was is lost, and the batch is to say what now."""


def run_item(order: orders.Order) -> str:
    """Take a run through all its stages, or the rest of them.

    Returns last words.

    Raises AgainError when this start was begun before. Raises HeldError, LeaseLostError when another works on
    the run. Raises DiskbookError, Stopped as `pipeline.execute`.
    """
    run = runs.Run(runs.folder_of(order.name))
    place = None if order.store is None else addresses.parse(order.store) / order.name
    _check_first(run, order)
    _wait_for_others(run)
    if place is not None:
        state = stored.bring(place, run.folder)  # what is much, before anybody waits for a sign of life
        _check_first(run, order)
        if state.complete and (when := finished.since(run.folder)):
            return f"finished since {when}: {place}"

    def begin(state: State) -> None:
        if place is not None:
            stored.bring(place, run.folder)
        _begin(run, order)

    with pipeline.dropped_if_refused(run), stored.kept(run, place, order.lease_s, begin):
        outcome = pipeline.execute(run, scenario=order.asked.scenario)
    if not order.is_copy:
        return outcome.words
    shutil.rmtree(run.folder)
    return f"{outcome.headline}\nstored: {place}"


def _check_first(run: runs.Run, order: orders.Order) -> None:
    """Raise AgainError for a start that was begun before."""
    if any(event.get("start") == order.start for event in run.ledger() if event["event"] == START):
        raise AgainError(f"its place was lost in the middle ({order.name})")


def _begin(run: runs.Run, order: orders.Order) -> None:
    """Begin a run that this process owns, or note another start of it."""
    _drop_unbegun(run.folder)
    asked = order.asked
    emulator = {"profile": asked.emulator_profile} if asked.emulator_profile else {}
    stages.begin(order.name, asked.scenario, asked.cloud, asked.preset, asked.settings, emulator)
    run.check_signed()
    run.append(START, start=order.start)
    if order.limit_usd is not None:
        own = run.scenario.design.max_cost_usd
        run.update_manifest(max_cost_usd=order.limit_usd if own is None else min(own, order.limit_usd))


def _wait_for_others(run: runs.Run) -> None:
    """Wait for a process that works on the run still, such as one of a killed batch that tears down."""
    deadline = time.monotonic() + PATIENCE_S
    while session.is_worked_on(run):
        if time.monotonic() > deadline:
            raise DiskbookError(
                f"run {run.name} is being worked on by another process; start the batch later"
            )
        time.sleep(_POLL_S)


def _drop_unbegun(folder: Path) -> None:
    """Remove the folder of a run that was killed before its plan was written: nothing was created by then."""
    if not folder.exists():
        return
    run = runs.Run(folder)
    if not (folder / "manifest.json").exists():
        strangers = [path.name for path in folder.iterdir() if not path.name.startswith(".")]
        if strangers:
            raise DiskbookError(f"{folder} is not a run, and holds {strangers[0]}; move it away")
    elif run.manifest["resource_groups"] or any(event["event"] == "plan" for event in run.ledger()):
        return
    shutil.rmtree(folder)


def _copies(store: str) -> Path:
    """Folder for what is worked on here for a store: hidden among the runs, which it is none of."""
    return runs.runs_root() / f".store-{hashlib.sha256(store.encode()).hexdigest()[:12]}"


def main(text: str) -> int:
    """Run the order of a JSON text; return the exit status; the last line it prints says why."""
    order = orders.read(text)
    if order.is_copy:
        folder = _copies(str(order.store))
        folder.mkdir(parents=True, exist_ok=True)
        os.environ["DISKBOOK_RUNS"] = str(folder)
    print(f"{runs.now_utc()[:19]}Z {order.name}", flush=True)  # a log may be of several sessions
    try:
        words = run_item(order)
    except DiskbookError as error:
        print(" ".join(str(error).split()), flush=True)
        return _status(error)
    except Stopped as stop:
        print(stop, flush=True)
        return 128 + stop.number
    print(words, flush=True)
    return 0


def _status(error: DiskbookError) -> int:
    if isinstance(error, HeldError | LeaseLostError):
        return HELD
    return LOST if isinstance(error, AgainError) else error.exit_code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
