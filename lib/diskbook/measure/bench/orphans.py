"""Fetch orphaned jobs: trials that a client which died has left on a machine, running or ended.

A trial is a detached job, so it goes on without its client; its result need not be measured again.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from diskbook.design import schedule
from diskbook.hosts.jobs import JobLost
from diskbook.measure.bench.rig import Rig

OVERTIME_S = 5.0  # what a job may take longer than its time before nobody waits for it


@dataclass(frozen=True)
class OrphanedJob:
    """Output of a trial that ended without its client; times are by the machine's clock."""

    attempt: int
    output: dict[str, bytes]
    started_utc: str
    ended_utc: str


def unfinished_trials(
    events: Iterable[dict[str, Any]], block: schedule.Block, attempts: int
) -> list[schedule.PlannedTrial] | None:
    """Return the trials without a result of a block that was cut short; None when it was not begun.

    Parameters
    ----------
    events
        The ledger.
    block
        The block, numbered for the replicate it is measured on.
    attempts
        So many failures of a trial are a result.
    """
    tries: dict[int, list[str]] | None = None
    for event in events:
        if (event.get("replicate"), event.get("block")) != (block.trials[0].replicate, block.block):
            continue
        if event["event"] == "block":
            tries = {}  # any earlier trials belong to a block that was cut as well
        elif event["event"] == "trial" and tries is not None:
            tries.setdefault(event["position"], []).append(event["status"])
    if tries is None:
        return None
    if tries and not any("ok" in row for row in tries.values()):
        return list(block.trials)  # given up because nothing worked
    return [trial for trial in block.trials if not _has_result(tries.get(trial.position, []), attempts)]


def _has_result(tries: list[str], attempts: int) -> bool:
    return "ok" in tries or len(tries) >= attempts


def fetch_orphaned_job(
    rig: Rig, machine: str, trial: schedule.PlannedTrial, files: Sequence[str], expected_s: float
) -> OrphanedJob | None:
    """Fetch what a trial's job has left on a machine, waiting for it if it still runs.

    Returns
    -------
    OrphanedJob or None
        None when there is no such job, or it has been lost.
    """
    recorded = {event["trial"] for event in rig.run.ledger() if event["event"] == "trial"}
    with rig.new_connection(machine) as connection:
        unrecorded = set(connection.job_names()) - recorded
        names = {trial.name(attempt): attempt for attempt in range(1, 1000)}
        for name in sorted(unrecorded & names.keys()):
            try:
                output = connection.finish_job(name, files, limit_s=expected_s + OVERTIME_S)
                return OrphanedJob(names[name], output, *connection.job_times(name))
            except JobLost:
                continue
    return None
