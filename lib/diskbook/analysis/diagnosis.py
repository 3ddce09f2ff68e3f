"""`diskbook why`: what throttled the cells of a run, in words."""

from __future__ import annotations

from diskbook.analysis.run import analyse
from diskbook.base.errors import unknown
from diskbook.throttling import diagnosis


def of_run(name: str, arm: str | None = None, workload: str | None = None) -> str:
    """Findings of a run in words, of one arm or workload where they are named.

    Raises
    ------
    UsageError
        When there is no such run, arm or workload.
    """
    run = analyse(name)
    on_demand = [item.name for item in run.scenario.arm if run.scenario.disk_named(item.disk).bursting]
    found = diagnosis.findings(run.trials, run.tables.series, run.cells, on_demand)
    for kind, wanted in (("arm", arm), ("workload", workload)):
        known = sorted({getattr(one, kind) for one in found})
        if wanted is not None and wanted not in known:
            raise unknown(kind, wanted, known, f"run {run.folder.name}")
    chosen = [one for one in found if arm in (None, one.arm) and workload in (None, one.workload)]
    head = f"{run.provenance}: run {run.folder.name}; a cell is one arm under one workload"
    return f"{head}\n{diagnosis.text(chosen)}"
