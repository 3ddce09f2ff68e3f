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
    a = analyse(name)
    on_demand = [item.name for item in a.scenario.arm if a.scenario.disk_of(item).bursting]
    findings = diagnosis.findings(a.trials, a.tables.series, a.cells, on_demand)
    for kind, value in (("arm", arm), ("workload", workload)):
        known = sorted({getattr(finding, kind) for finding in findings})
        if value is not None and value not in known:
            raise unknown(kind, value, known, f"run {a.run.name}")
    chosen = [
        finding for finding in findings if arm in (None, finding.arm) and workload in (None, finding.workload)
    ]
    head = f"{a.provenance}: run {a.run.name}; a cell is one arm under one workload"
    return f"{head}\n{diagnosis.text(chosen)}"
