"""Compare arms: gates first, then ratios in both scopes, then verdicts. Tables in, tables out."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from diskbook.stats import gates, ratios, verdicts
from diskbook.stats.gates import Gate
from diskbook.stats.intervals import Interval
from diskbook.stats.outliers import FarRuns
from diskbook.stats.view import Named, Pair, View, by_stratum
from diskbook.tables.schema import COMPARISONS, GATES, STRATA
from diskbook.tables.vocabulary import GateStatus, Scope, Verdict

__all__ = ["Compared", "Named", "compare"]

FEW_REPLICATES = 5


@dataclass(frozen=True)
class Compared:
    """What `compare` found.

    Attributes
    ----------
    table
        Comparisons (`schema.COMPARISONS`).
    gates
        Gates of every comparison (`schema.GATES`).
    cells
        Labelled cells (`limits.label_cells`), with `nearest_zone` (inferred from latency, "" where unknown).
    strata
        General estimate of each stratum, where replicates of a comparison differ (`schema.STRATA`).
    """

    table: pd.DataFrame
    gates: pd.DataFrame
    cells: pd.DataFrame
    strata: pd.DataFrame


def compare(
    trials: pd.DataFrame,
    comparisons: Iterable[Named],
    series: pd.DataFrame | None = None,
    mismatches: Mapping[str, str] | None = None,
    level: float = ratios.LEVEL,
    directions: Mapping[str, Sequence[str]] | None = None,
    zone_redundant: Collection[str] = (),
    consumed_pct: Mapping[tuple[str, str, str], float] | None = None,
) -> Compared:
    """Compare arms as the scenario named them.

    Parameters
    ----------
    trials, series
        Tables of a run.
    comparisons
        The scenario's comparisons.
    mismatches
        Settings that read back otherwise than asked, in words, by arm; None when nothing was read back.
    level
        Level of the intervals.
    directions
        Directions to compare, by workload; by default those that finished trials have.
    zone_redundant
        Arms on zone-redundant disks, whose nearest zone is hidden: no interval for disks like these unless
        their disks were read from all zones.
    consumed_pct
        Shares of limits that the platform reports as consumed, as for `limits.label_cells`.

    Returns
    -------
    Compared
        Two rows a comparison and direction, one a scope. A latency ratio of a capped cell is NaN, with the
        reason in `warnings`. Blocks that lack an arm are left out and said.
    """
    view = View(trials, series, mismatches, directions or {}, zone_redundant, consumed_pct)
    pairs = [(item, direction) for item in comparisons for direction in view.directions(item)]
    drafts, found, strata = [], [], []
    for pair, log_ratios, far, estimates, differences in _estimated(view, pairs, level):
        findings = view.findings(*pair, log_ratios, far)
        hidden = gates.hides_general(findings)
        shown = _these_only(estimates, differences, hidden) if hidden else (estimates, differences)
        found += [_gate_row(pair[0], gate) for gate in findings]
        pair_drafts = [_Draft(*pair, *numbers, findings) for numbers in zip(*shown, strict=True)]
        if not pair_drafts[0].refused and not hidden:
            by_zone = by_stratum(view, pair, log_ratios, level)
            strata += [_stratum_row(pair, words, one) for words, one in by_zone.items()]
            pair_drafts[0] = replace(pair_drafts[0], note=_strata_words(by_zone))
        drafts += pair_drafts
    table = pd.DataFrame(
        [_row(draft, view.provenance) for draft in drafts], columns=[*COMPARISONS.names, "_p"]
    )
    table["p_adjusted"] = verdicts.adjust(table["_p"], table["family"], table["scope"])
    equivalence = _equivalence(drafts, table)
    judged = [_verdict(*row) for row in zip(drafts, table["p_adjusted"], equivalence, strict=True)]
    table["verdict"] = [
        verdict.worded(draft.item.margin) for draft, (verdict, _) in zip(drafts, judged, strict=True)
    ]
    table["warnings"] = [
        "; ".join(filter(None, [warnings, more]))
        for warnings, (_, more) in zip(table["warnings"], judged, strict=True)
    ]
    gate_table = pd.DataFrame(found, columns=GATES.names).drop_duplicates(ignore_index=True)
    strata_table = pd.DataFrame(strata, columns=STRATA.names)
    return Compared(table[COMPARISONS.names], gate_table, view.cells, strata_table)


class _Numbers(NamedTuple):
    """One comparison: log ratios [replicate, block], runs far out, estimates and differences by scope."""

    pair: Pair
    log_ratios: np.ndarray
    far: FarRuns
    estimates: list[ratios.Estimate]
    differences: tuple[Interval, Interval]


@dataclass(frozen=True)
class _Draft:
    item: Named
    direction: str
    estimate: ratios.Estimate
    difference: Interval
    findings: list[Gate]
    note: str = ""

    @property
    def failure(self) -> Gate | None:
        """Gate that decides the verdict: invalid before capped before inconclusive."""
        for verdict in (Verdict.INVALID, Verdict.CAPPED, Verdict.INCONCLUSIVE):
            for gate in self.findings:
                if gate.verdict is verdict and gate.status is not GateStatus.PASSED:
                    return gate
        return None

    def decided_by(self, gate: Gate) -> bool:
        """Whether a gate alone would give the verdict that the comparison has."""
        failure = self.failure
        failed = gate.status is not GateStatus.PASSED
        return failure is not None and failed and gate.verdict is failure.verdict

    @property
    def refused(self) -> bool:
        """Whether the number is withheld: latency of cells on a cap, or tools that cannot be compared."""
        if any(
            gate.name == "tool" and gate.verdict and gate.status is GateStatus.FAILED
            for gate in self.findings
        ):
            return True
        return self.item.metric.startswith("lat") and any(
            gate.name == "cap" and gate.verdict and gate.status is not GateStatus.PASSED
            for gate in self.findings
        )


def _estimated(view: View, pairs: Sequence[Pair], level: float) -> list[_Numbers]:
    """Numbers of every comparison, in the order given; one pass a metric."""
    found: dict[int, _Numbers] = {}
    for metric in dict.fromkeys(item.metric for item, _ in pairs):
        places = [place for place, (item, _) in enumerate(pairs) if item.metric == metric]
        mine = [pairs[place] for place in places]
        log_ratios, far = view.log_ratios(metric, mine), view.far_runs(metric, mine)
        estimates = ratios.estimates_of_many(log_ratios, level)
        differences = view.differences(metric, mine, level)
        numbers = zip(mine, log_ratios, far, estimates, differences, strict=True)
        found |= {place: _Numbers(*one) for place, one in zip(places, numbers, strict=True)}
    return [found[place] for place in range(len(pairs))]


def _these_only(
    estimates: list[ratios.Estimate], differences: tuple[Interval, Interval], reason: str
) -> tuple[list[ratios.Estimate], tuple[Interval, Interval]]:
    """Take the general interval away, with the reason, where replicates do not stand in its way already."""
    general, these = estimates
    if general.reason:
        return estimates, differences
    bare = Interval(differences[0].mean, *[np.asarray(math.nan)] * 4)
    return [ratios.refused(general, reason), these], (bare, differences[1])


def _row(draft: _Draft, provenance: str) -> dict[str, Any]:
    item, one = draft.item, draft.estimate
    withheld, failure = draft.refused, draft.failure
    notes = [
        gate.words for gate in draft.findings if gate.status is GateStatus.FAILED or draft.decided_by(gate)
    ]
    if one.scope is Scope.THESE and not withheld:
        notes += gates.of_machines(draft.findings)
    if draft.note:
        notes.append(draft.note)
    if one.reason and (failure is None or failure.verdict is Verdict.INCONCLUSIVE):
        notes.append(one.reason)
    if (
        one.scope is Scope.LIKE_THESE
        and not one.reason
        and one.n_replicates < FEW_REPLICATES
        and not withheld
    ):
        notes.append(_few_replicates(one))
    return {
        "arm": item.arm,
        "base_arm": item.base_arm,
        "workload": item.workload,
        "direction": draft.direction,
        "metric": item.metric,
        "scope": one.scope,
        "ratio": np.nan if withheld else one.ratio,
        "ci_low": np.nan if withheld else one.low,
        "ci_high": np.nan if withheld else one.high,
        "level": one.level,
        "method": one.method,
        "pairing": item.pairing,
        "n_replicates": one.n_replicates,
        "n_blocks": one.n_blocks,
        "family": item.family,
        "p_adjusted": np.nan,
        "verdict": "",
        "warnings": "; ".join(dict.fromkeys(notes)),
        "provenance": provenance,
        **_difference(draft),
        "_p": np.nan if failure else one.p_difference,
    }


def _difference(draft: _Draft) -> dict[str, float]:
    """Difference in ms with its interval; NaN for rates, and where the ratio is withheld or refused."""
    names = ("diff_ms", "diff_low_ms", "diff_high_ms")
    if draft.refused or not draft.item.metric.startswith("lat"):
        return dict.fromkeys(names, math.nan)
    mean, low, high = (float(value) if math.isfinite(value) else math.nan for value in draft.difference[:3])
    bounds = (math.nan, math.nan) if draft.estimate.reason else (low, high)
    return dict(zip(names, (mean, *bounds), strict=True))


def _strata_words(by_zone: Mapping[str, ratios.Estimate]) -> str:
    """Estimates of the strata that have two replicates or more, as one footnote."""
    parts = [
        f"{words}: {one.ratio:.3f} ({one.low:.3f} to {one.high:.3f}), {one.n_replicates} replicates"
        for words, one in by_zone.items()
        if not one.reason
    ]
    if not by_zone:
        return ""
    if not parts:
        return "no stratum has 2 replicates, so none has an estimate of its own"
    return f"each stratum apart: {'; '.join(parts)}"


def _stratum_row(pair: Pair, stratum: str, one: ratios.Estimate) -> dict[str, Any]:
    item, direction = pair
    return {
        "arm": item.arm,
        "base_arm": item.base_arm,
        "workload": item.workload,
        "direction": direction,
        "metric": item.metric,
        "stratum": stratum,
        "n_replicates": one.n_replicates,
        "n_blocks": one.n_blocks,
        "ratio": one.ratio,
        "ci_low": one.low,
        "ci_high": one.high,
        "reason": one.reason,
    }


def _few_replicates(one: ratios.Estimate) -> str:
    """Say how wide the honest interval is with so few replicates."""
    half = 100 * (math.sqrt(one.high / one.low) - 1)
    freedom = f"{one.df:.0f} degree{'s' * (one.df != 1)} of freedom"
    return (
        f"with {one.n_replicates} replicates (t with {freedom}) the interval for disks like these "
        f"is ±{half:.1f} %: {FEW_REPLICATES} replicates or more narrow it"
    )


def _equivalence(drafts: list[_Draft], table: pd.DataFrame) -> pd.Series:
    """P of equivalence, adjusted like the p of difference."""
    raw = [np.nan if draft.failure else draft.estimate.p_equivalence(draft.item.margin) for draft in drafts]
    return verdicts.adjust(pd.Series(raw, index=table.index, dtype=float), table["family"], table["scope"])


def _verdict(draft: _Draft, p_adjusted: float, p_equivalence: float) -> tuple[Verdict, str]:
    """Verdict, and a note where the family's adjustment outweighs the interval shown."""
    if draft.failure and draft.failure.verdict:
        return draft.failure.verdict, ""
    one = draft.estimate
    verdict = verdicts.decide(one, p_adjusted, p_equivalence, draft.item.margin, draft.item.family)
    excludes_one = not one.reason and (one.low > 1 or one.high < 1)
    if verdict is Verdict.INCONCLUSIVE and excludes_one and draft.item.family != "control":
        return verdict, "the interval leaves out 1, but not after allowing for the other comparisons made"
    return verdict, ""


def _gate_row(item: Named, gate: Gate) -> dict[str, str]:
    names = {"arm": item.arm, "base_arm": item.base_arm, "workload": item.workload, "metric": item.metric}
    return {**names, "gate": gate.name, "status": gate.status, "cause": gate.cause, "remedy": gate.remedy}
