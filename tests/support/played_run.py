"""The process of a batch's run whose stages are played: asked to end while it is stored, then done.

Its manifest changes all the time, also while it is torn down. Its first start gets SIGTERM in the middle of
an upload; the second start finishes.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from dataclasses import replace
from typing import Any

from diskbook.batch import order as orders, work
from diskbook.batch.stores.contents import Folder
from diskbook.batch.stores.objects import LocalObjects
from diskbook.batch.stores.record import Entry
from diskbook.measure.runs import pipeline, stage
from diskbook.measure.runs.outcome import Outcome
from diskbook.results.run import Run

LEASE_S = 3.0  # so what is new is stored every second
UPLOADS = 2  # of the manifest, until it is asked to end
UPLOAD_S = LOOK_S = 0.1

_create, _entries = LocalObjects.create, Folder.entries
_uploads, _starts = list[str](), list[dict[str, Any]]()


def create(objects: LocalObjects, name: str, content: bytes) -> bool:
    """Store slowly, and have a signal arrive meanwhile."""
    if name.endswith("/manifest.json"):
        _uploads.append(name)
        if len(_starts) == 1 and len(_uploads) == UPLOADS:
            os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(UPLOAD_S)
    return _create(objects, name, content)


def entries(folder: Folder) -> dict[str, Entry]:
    """Look through a run's folder slowly: its manifest changes before any file is sent."""
    found = _entries(folder)
    time.sleep(LOOK_S)
    return found


def change(run: Run) -> None:
    """Change the manifest, and leave others the processor."""
    run.update_manifest(played=time.monotonic())
    time.sleep(0.001)


def execute(run: Run, **_: Any) -> Outcome:
    """Play the stages."""
    _starts.extend(event for event in run.ledger() if event["event"] == work.START)
    with stage.signals():
        try:
            while len(_starts) == 1:
                change(run)
        finally:
            with stage.deaf():
                for _ in range(100):
                    change(run)
    run.append("stage", stage="benchmark")
    run.write("report.html", "finished")
    return Outcome(run, "finished", run.folder / "report.html")


if __name__ == "__main__":
    LocalObjects.create, Folder.entries = create, entries  # type: ignore[method-assign]
    pipeline.execute = execute  # type: ignore[assignment]
    sys.exit(work.main(replace(orders.read(sys.argv[1]), lease_s=LEASE_S).text))
