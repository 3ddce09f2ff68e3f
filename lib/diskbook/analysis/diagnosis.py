"""`diskbook why`: what throttled the cells of a run, and what its comparisons lack to be closed, in words."""

from __future__ import annotations

import pandas as pd

from diskbook.analysis.run import analyse
from diskbook.base.errors import UsageError, unknown
from diskbook.show import conformance
from diskbook.show.analysed import Analysed
from diskbook.stats.protocol import Conformance
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
    cells = a.cells[a.cells["arm"].isin([arm or item for item in a.cells["arm"]])]
    cells = cells[cells["workload"].isin([workload or item for item in cells["workload"]])]
    return f"{head}\n{diagnosis.text(chosen)}\n{platform_text(cells)}"


def platform_text(cells: pd.DataFrame) -> str:
    """Say which cells have evidence from the platform, and what it is, and why the others have none.

    Parameters
    ----------
    cells
        With the columns of `throttling.evidence.with_evidence`.
    """
    has = cells[cells["agrees"] != ""]
    lines = [f"evidence from the platform: {len(has)} of {len(cells)} cells"]
    for arm, load, words, agrees in has[["arm", "workload", "platform", "agrees"]].itertuples(index=False):
        lines.append(f"  {arm}, {load}: {words} ({agrees} trials agree with the rate)")
    for why, part in cells[cells["agrees"] == ""].groupby("platform", sort=False):
        names = "; ".join(f"{arm}, {load}" for arm, load in part[["arm", "workload"]].itertuples(index=False))
        lines.append(f"  {why}: {names}")
    return "\n".join([*lines, *(f"  {note}" for note in dict.fromkeys(cells["platform_note"]) if note)])


def protocol_of_run(name: str, arm: str | None = None, workload: str | None = None) -> str:
    """What each comparison of a run lacks of the protocol, of one arm or workload where they are named.

    Raises
    ------
    UsageError
        When there is no such run, or none of its comparisons has that arm or workload.
    """
    return protocol_text(analyse(name), arm, workload)


def protocol_text(a: Analysed, arm: str | None = None, workload: str | None = None) -> str:
    """What the comparisons of an analysed run lack of the protocol; see `protocol_of_run`."""
    where = f"run {a.run.name} (its comparisons)"
    chosen = [
        item for item in a.protocol if workload in (None, item.workload) and arm in (None, *_arms(item))
    ]
    if a.protocol and not chosen:
        loads, arms = {item.workload for item in a.protocol}, set().union(*map(_arms, a.protocol))
        for kind, value, known in (("arm", arm, arms), ("workload", workload, loads)):
            if value is not None and value not in known:
                raise unknown(kind, value, known, where)
        raise UsageError(f"{where}: none of {arm} with {workload}; leave --arm or --workload out")
    lines = [f"run {a.run.name}, {conformance.counted(chosen)}", f"points: {conformance.PAGE}"]
    return "\n\n".join(filter(None, ["\n".join(lines), conformance.text(chosen)]))


def _arms(item: Conformance) -> set[str]:
    return {item.arm, item.base_arm}
