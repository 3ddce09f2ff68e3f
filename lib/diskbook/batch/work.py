"""Run one item of a batch in this process (`python -m diskbook.batch.work`), or what is left of it.

It shares nothing with the batch but the run folder: whoever has the item's JSON can run it, anywhere.
"""

from __future__ import annotations

import json
import shutil
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from diskbook.base.errors import DiskbookError, Stopped
from diskbook.batch.item import Asked
from diskbook.runs import pipeline, stages
from diskbook.store import run as runs, session
from diskbook.store.run import Run

PATIENCE_S = 900.0
"""How long an earlier process of the same run may take to tear down; on Azure that is minutes."""
_POLL_S = 0.5


def run_item(name: str, asked: Asked, limit_usd: float | None = None) -> pipeline.Outcome:
    """Take a run through all its stages, or the rest of them.

    Parameters
    ----------
    name
        Name of the run, which its content has given it.
    asked
        What it is.
    limit_usd
        What it may cost, all its sessions together; None for the limit that it has by itself.

    Raises
    ------
    DiskbookError, Stopped
        As `pipeline.execute`.
    """
    _wait_for_others(Run(runs.folder_of(name)))
    _drop_unbegun(runs.folder_of(name))
    emulator = {"profile": asked.emulator_profile} if asked.emulator_profile else {}
    run = stages.begin(name, asked.scenario, asked.cloud, asked.preset, asked.settings, emulator)
    run.check_signed()
    if limit_usd is not None:
        own = run.scenario.design.max_cost_usd
        run.update_manifest(max_cost_usd=limit_usd if own is None else min(own, limit_usd))
    return pipeline.execute(run, scenario=asked.scenario)


def _wait_for_others(run: Run) -> None:
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
    run = Run(folder)
    if not (folder / "manifest.json").exists():
        strangers = [path.name for path in folder.iterdir() if not path.name.startswith(".")]
        if strangers:
            raise DiskbookError(f"{folder} is no run, and holds {strangers[0]}; move it away")
    elif run.manifest["resource_groups"] or any(event["event"] == "plan" for event in run.ledger()):
        return
    shutil.rmtree(folder)


def main(text: str) -> int:
    """Run the item of a JSON text; return the exit status, its reason being the last line that is printed."""
    content: Mapping[str, Any] = json.loads(text)
    print(f"{runs.now_utc()[:19]}Z {content['name']}", flush=True)  # a log may be of several sessions
    try:
        outcome = run_item(content["name"], Asked(**content["asked"]), content["limit_usd"])
    except DiskbookError as error:
        print(" ".join(str(error).split()), flush=True)
        return error.exit_code
    except Stopped as stop:
        print(stop, flush=True)
        return 128 + stop.number
    print(outcome.words, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
