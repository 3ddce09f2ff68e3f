"""`diskbook why`: what throttled the cells of a run, and what its comparisons lack to be closed."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from diskbook.design.vocabulary import Provenance
from diskbook.facts import neighbours
from diskbook.facts.errors import UsageError, unknown
from diskbook.report.analysis.run import Analysis, analyse, analyse_with
from diskbook.report.show import caveats, conformance, facts
from diskbook.report.show.analysed import Analysed
from diskbook.stats import diagnosis, plausibility
from diskbook.stats.protocol import Conformance


@dataclass(frozen=True)
class Diagnosed:
    """What holds the cells of a run: findings by verdict, their cells, and what speaks against these."""

    analysis: Analysis
    findings: Sequence[diagnosis.Finding]
    cells: pd.DataFrame
    doubts: Sequence[str]
    limits: Sequence[str]
    """What is to be said of its limits, a line each."""

    @property
    def text(self) -> str:
        """In words."""
        a = self.analysis
        lines = [
            f"{a.provenance}: run {a.run.name}; a cell is one arm under one workload",
            *self.limits,
            *self._seen(),
            *([f"{caveats.HEAD}:", *(f"  {line}" for line in self.doubts)] if self.doubts else []),
        ]
        return "\n".join([*lines, diagnosis.text(list(self.findings)), platform_text(self.cells)])

    def _seen(self) -> list[str]:
        """Caps that others saw on the machines of the run; none beside emulated numbers."""
        if Provenance.EMULATED in self.analysis.provenance:
            return []
        sizes = dict.fromkeys(machine.size for machine in self.analysis.scenario.machine)
        return [f"{size}, {item.words}" for size in sizes for item in neighbours.seen_caps.caps(size)]


def of_run(name: str, arm: str | None = None, workload: str | None = None) -> str:
    """Findings of a run in words; see `diagnosed`."""
    return diagnosed(name, arm, workload).text


def diagnosed(
    name: str,
    arm: str | None = None,
    workload: str | None = None,
    manifest: Mapping[str, Any] | None = None,
    limits: Sequence[str] = (),
) -> Diagnosed:
    """Findings of a run, of one arm or workload where they are named.

    - `name`, `arm`, `workload`: of a run, and of the cells to tell of; None for all.
    - `manifest`, `limits`: another manifest than its own, with limits for this answer alone, and what is to
      be said of these.

    Raises UsageError when there is no such run, arm or workload.
    """
    a = analyse(name) if manifest is None else analyse_with(name, manifest)
    if manifest is None and Provenance.IMPORTED in a.provenance:
        limits = neighbours.imported_limits.head(a.manifest)
    return of_analysis(a, arm, workload, limits)


def of_analysis(
    a: Analysis, arm: str | None = None, workload: str | None = None, limits: Sequence[str] = ()
) -> Diagnosed:
    """Findings of an analysed run; takes and raises what `diagnosed` does."""
    on_demand = [item.name for item in a.scenario.arm if a.scenario.disk_of(item).bursting]
    findings = diagnosis.findings(a.trials, a.tables.series, a.cells, on_demand)
    for kind, value in (("arm", arm), ("workload", workload)):
        names = sorted({getattr(finding, kind) for finding in findings})
        if value is not None and value not in names:
            raise unknown(kind, value, names, f"run {a.run.name}")
    chosen = [
        finding for finding in findings if arm in (None, finding.arm) and workload in (None, finding.workload)
    ]
    places = {(finding.arm, finding.workload) for finding in chosen}
    cells = a.cells[[place in places for place in zip(a.cells["arm"], a.cells["workload"], strict=True)]]
    hints = [
        hint
        for hint in plausibility.quota_hints(a.trials)
        if tuple(hint.partition(":")[0].split(", ")) in places
    ]
    return Diagnosed(a, chosen, cells, [*_doubted(a, places), *hints], limits)


def platform_text(cells: pd.DataFrame) -> str:
    """Say which cells have evidence from the platform, and what it is, and why the others have none.

    - `cells`: with the columns of `throttling.evidence.with_evidence`.
    """
    has = cells[cells["agrees"] != ""]
    lines = [f"evidence from the platform: {len(has)} of {len(cells)} cells"]
    for arm, load, words, agrees in has[["arm", "workload", "platform", "agrees"]].itertuples(index=False):
        lines.append(f"  {arm}, {load}: {words} ({agrees} trials agree with the rate)")
    for why, part in cells[cells["agrees"] == ""].groupby("platform", sort=False):
        lines.append(f"  {why}: {_named(part, len(cells))}")
    return "\n".join([*lines, *(f"  {note}" for note in dict.fromkeys(cells["platform_note"]) if note)])


def _named(part: pd.DataFrame, of: int) -> str:
    """Cells by their names, the loads of an arm together; "all of them" where that is what they are."""
    if len(part) == of > 1:
        return "all of them"
    by_arm = part.groupby("arm", sort=False)["workload"]
    return "; ".join(f"{arm}: {', '.join(loads)}" for arm, loads in by_arm)


def _doubted(a: Analysed, places: Collection[tuple[str, str]]) -> list[str]:
    """What speaks against the numbers of these cells, a sentence a kind; nothing where nothing does."""
    of_places = [doubt for doubt in a.compared.doubts if (doubt.arm, doubt.workload) in places]
    return caveats.sentences(of_places, facts.n_trials(a))


def protocol_of_run(name: str, arm: str | None = None, workload: str | None = None) -> str:
    """What each comparison of a run lacks of the protocol, of one arm or workload where they are named.

    Raises UsageError when there is no such run, or none of its comparisons has that arm or workload.
    """
    return protocol_text(analyse(name), arm, workload)


def protocol_text(a: Analysed, arm: str | None = None, workload: str | None = None) -> str:
    """What the comparisons of an analysed run lack of the protocol; see `protocol_of_run`."""
    chosen = comparisons(a, arm, workload)
    lines = [f"run {a.run.name}, {conformance.counted(chosen)}", f"points: {conformance.PAGE}"]
    return "\n\n".join(filter(None, ["\n".join(lines), conformance.text(chosen)]))


def comparisons(a: Analysed, arm: str | None, workload: str | None) -> list[Conformance]:
    """Comparisons of an analysed run, of one arm or workload where they are named."""
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
    return chosen


def _arms(item: Conformance) -> set[str]:
    return {item.arm, item.base_arm}
