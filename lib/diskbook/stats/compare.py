"""Compare arms: gates first, then ratios in both scopes, then verdicts. Tables in, tables out."""

import itertools
import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from diskbook.design.schema import COMPARISONS, GATES, STRATA
from diskbook.design.vocabulary import GateStatus, Scope, Verdict
from diskbook.facts import quantities
from diskbook.stats import ratios
from diskbook.stats.gates import Gate, attachment
from diskbook.stats.gates.data import DATA, MEMORY
from diskbook.stats.gates.design import hides_general, of_machines, unpaired
from diskbook.stats.gates.limits import CAP, NOTHING_SHOWS, SATURATION, without_interval
from diskbook.stats.gates.plan import Plan, over_all_looks
from diskbook.stats.gates.tool import TOOL
from diskbook.stats.intervals import LEVEL
from diskbook.stats.outliers import OutlierCounts
from diskbook.stats.plausibility import Asked, Doubt, one_rate
from diskbook.stats.saturation import LIMIT_LIKE
from diskbook.stats.view import Exempt, Named, Pair, View, by_stratum

__all__ = ["Compared", "Named", "compare"]

FEW_REPLICATES = 5


@dataclass(frozen=True)
class Compared:
    """Comparisons of a run, and what they rest on.

    - `table`: comparisons (`schema.COMPARISONS`).
    - `gates`: gates of every comparison (`schema.GATES`).
    - `cells`: labelled cells (`limits.label_cells`), with `nearest_zone` (inferred from latency, "" where
      unknown).
    - `strata`: general estimate of each stratum, where replicates of a comparison differ (`schema.STRATA`).
    - `doubts`: what speaks against the numbers of trials and cells, compared or not (`stats.plausibility`).
    """

    table: pd.DataFrame
    gates: pd.DataFrame
    cells: pd.DataFrame
    strata: pd.DataFrame
    doubts: tuple[Doubt, ...] = ()


def compare(
    trials: pd.DataFrame,
    comparisons: Iterable[Named],
    series: pd.DataFrame | None = None,
    mismatches: Mapping[str, str] | None = None,
    level: float | None = None,
    directions: Mapping[str, Sequence[str]] | None = None,
    zone_redundant: Collection[str] = (),
    consumed_pct: Mapping[tuple[str, str, str], float] | None = None,
    plan: Plan | None = None,
    guest: pd.DataFrame | None = None,
    conditioning: Mapping[str, attachment.Conditioning] | None = None,
    asked: Mapping[str, Asked] | None = None,
    exempt: Exempt | None = None,
) -> Compared:
    """Compare arms as the scenario named them.

    - `comparisons`: the scenario's comparisons.
    - `mismatches`: settings that read back otherwise than asked, in words, by arm; None when nothing was read
      back.
    - `level`: level of the intervals; by default that at which the plan judges, 0.95 unless it has several
      looks.
    - `directions`: directions to compare, by workload; by default those that finished trials have.
    - `zone_redundant`: arms on zone-redundant disks, whose nearest zone is hidden: no interval for disks like
      these unless their disks were read from all zones.
    - `consumed_pct`: shares of limits that the platform reports as consumed, as for `limits.label_cells`.
    - `plan`: what was planned before the first trial, and how much of it is done; None where nobody says.
    - `guest`: what the machines said of themselves (`schema.GUEST`); None where nobody asked.
    - `conditioning`: what was done to the disks of each arm before they were measured; None where nobody
      says.
    - `asked`: what each trial was asked to do, by its name; None where nobody says.
    - `exempt`: by arm and base arm the gates that do not apply, each with its reason (`protocol.exempt`).

    Returns two rows a comparison and direction, one a scope. A latency ratio of a capped or saturated cell is
    NaN, with the reason in `warnings`. Blocks that lack an arm are left out and said.
    """
    view = View(
        trials,
        series,
        mismatches,
        directions or {},
        zone_redundant,
        consumed_pct,
        plan,
        guest,
        conditioning,
        asked,
        exempt,
    )
    looks = plan.looks if plan else ()
    level = level or (1 - plan.alpha if plan else LEVEL)
    pairs = [(item, direction) for item in comparisons for direction in view.directions(item)]
    drafts, gate_rows, strata_rows = list[_Draft](), [], []
    for numbers in _estimated(view, pairs, level):
        findings = view.findings(*numbers.pair, numbers.log_ratios, numbers.outliers, numbers.estimates)
        gate_rows += [_gate_row(numbers.pair[0], gate) for gate in findings]
        general, these = _drafts(numbers, findings, view, level)
        if not general.refused and not hides_general(findings):
            by_zone = by_stratum(view, numbers.pair, numbers.log_ratios, level)
            strata_rows += [_stratum_row(numbers.pair, *stratum) for stratum in by_zone.items()]
            general = replace(general, note=_strata_words(by_zone))
        drafts += [general, these]
    gate_table = pd.DataFrame(gate_rows, columns=GATES.names).drop_duplicates(ignore_index=True)
    strata_table = pd.DataFrame(strata_rows, columns=STRATA.names)
    doubts = (*view.doubts, *one_rate(view.cells))
    return Compared(_judged(drafts, view.provenance, looks), gate_table, view.cells, strata_table, doubts)


class _Numbers(NamedTuple):
    """One comparison: log ratios [replicate, block], outliers, estimates by scope, and level of both arms."""

    pair: Pair
    log_ratios: np.ndarray
    outliers: OutlierCounts
    estimates: list[ratios.Estimate]
    level: float


@dataclass(frozen=True)
class _Draft:
    """One comparison in one scope, before its verdict."""

    item: Named
    direction: str
    estimate: ratios.Estimate
    level: float
    findings: list[Gate]
    pairing: str
    nearest_zone: str = ""
    note: str = ""
    lat_start: str = ""
    single: ratios.Estimate | None = None
    """Of single I/Os, which have to show the same, where nothing shows that no limit holds the cells."""

    @cached_property
    def decided(self) -> Verdict | None:
        """Verdict that the gates and the pairing decide, the gravest first; None where none does."""
        verdicts_of_gates = {gate.decides for gate in self.findings if not self.is_of_rate(gate)}
        if unpaired(self.pairing, self.estimate.scope):
            verdicts_of_gates.add(Verdict.INCONCLUSIVE)
        order = (
            Verdict.INVALID,
            Verdict.CAPPED,
            Verdict.SATURATED,
            Verdict.SINCE_ATTACH,
            Verdict.INTERIM,
            Verdict.INCONCLUSIVE,
        )
        return next((verdict for verdict in order if verdict in verdicts_of_gates), None)

    def is_of_rate(self, gate: Gate) -> bool:
        """Whether a gate only says that a limit sets a rate which is judged as it is delivered."""
        if not self.item.as_delivered:
            return False
        return gate.name == SATURATION or (gate.name == CAP and gate.decides is Verdict.CAPPED)

    @cached_property
    def refused(self) -> bool:
        """Whether the number is withheld: latency in a queue, several runs, tools that cannot be compared."""
        deciding = {gate.name: gate.status for gate in self.findings if gate.decides}
        if GateStatus.FAILED in (deciding.get(DATA), deciding.get(TOOL)):
            return True
        return self.item.metric.startswith("lat") and bool({CAP, SATURATION} & deciding.keys())


def _estimated(view: View, pairs: Sequence[Pair], level: float) -> list[_Numbers]:
    """Numbers of every comparison, in the order given; one pass a metric."""
    by_place: dict[int, _Numbers] = {}
    for metric in dict.fromkeys(item.metric for item, _ in pairs):
        places = [place for place, (item, _) in enumerate(pairs) if item.metric == metric]
        of_metric = [pairs[place] for place in places]
        log_ratios = view.log_ratios(metric, of_metric)
        columns = (
            of_metric,
            log_ratios,
            view.outliers(metric, of_metric),
            view.estimates(metric, of_metric, log_ratios, level),
            view.levels(metric, of_metric),
        )
        by_place |= dict(zip(places, map(_Numbers, *columns), strict=True))
    return [by_place[place] for place in range(len(pairs))]


def _drafts(numbers: _Numbers, findings: list[Gate], view: View, level: float) -> list[_Draft]:
    """Both scopes of a comparison, the general one first, without intervals where a gate withholds them."""
    withheld = without_interval(findings)
    reasons = withheld or hides_general(findings), withheld
    estimates = map(_without_interval, numbers.estimates, reasons)
    item, direction = numbers.pair
    load = view.single(item)
    of_single = ratios.estimates(view.log_ratios(item.metric, [(load, direction)])[0], level) if load else []
    general, these = (
        _Draft(
            *numbers.pair,
            estimate,
            numbers.level,
            findings,
            view.pairing(item),
            lat_start=_start(view, item),
            single=single,
        )
        for estimate, single in itertools.zip_longest(estimates, of_single)
    )
    nearest_zone = "" if general.estimate.reason else view.strata(item).nearest
    return [replace(general, nearest_zone=nearest_zone), these]


def _start(view: View, item: Named) -> str:
    """From when compared latencies count; empty for other metrics, and where no rate was held."""
    return view.starts.get(item.workload, "") if item.metric.startswith("lat") else ""


def _without_interval(estimate: ratios.Estimate, why: str) -> ratios.Estimate:
    """Ratio of one scope, without its interval where there is a reason."""
    return estimate if not why or estimate.reason else ratios.refused(estimate, why)


def _judged(drafts: list[_Draft], provenance: str, looks: tuple[int, ...]) -> pd.DataFrame:
    """Comparisons with the verdicts that follow once all p-values of a family are known, over all looks."""
    rows = [_row(draft, provenance) for draft in drafts]
    table = pd.DataFrame(rows, columns=[*COMPARISONS.names, "_p"])
    table["_p"] = over_all_looks(table["_p"].to_numpy(float), looks)
    table["p_adjusted"] = ratios.adjust(table["_p"], table["family"], table["scope"])
    judged = [
        _verdict(*row, looks)
        for row in zip(drafts, table["p_adjusted"], _equivalence(drafts, table, looks), strict=True)
    ]
    table["verdict"] = [
        verdict.worded(draft.item.margin) for draft, (verdict, _) in zip(drafts, judged, strict=True)
    ]
    table["warnings"] = [
        "; ".join(filter(None, [warnings, note]))
        for warnings, (_, note) in zip(table["warnings"], judged, strict=True)
    ]
    return table[COMPARISONS.names]


def _row(draft: _Draft, provenance: str) -> dict[str, Any]:
    item, estimate, withheld = draft.item, draft.estimate, draft.refused
    return {
        "arm": item.arm,
        "base_arm": item.base_arm,
        "workload": item.workload,
        "direction": draft.direction,
        "metric": item.metric,
        "scope": estimate.scope,
        "ratio": np.nan if withheld else estimate.ratio,
        "ci_low": np.nan if withheld else estimate.low,
        "ci_high": np.nan if withheld else estimate.high,
        "level": estimate.level,
        "method": estimate.method,
        "pairing": draft.pairing,
        "n_replicates": estimate.n_replicates,
        "n_blocks": estimate.n_blocks,
        "family": item.family,
        "warnings": "; ".join(dict.fromkeys(_notes(draft))),
        "provenance": provenance,
        **_difference(draft),
        "nearest_zone": "" if withheld else draft.nearest_zone,
        "lat_start": draft.lat_start,
        "df": np.nan if withheld else estimate.df,
        "_p": np.nan if draft.decided else estimate.p_difference,
    }


def _notes(draft: _Draft) -> list[str]:
    """Footnotes of one comparison: gates that failed or decided, strata, and what its interval lacks."""
    estimate, decided, withheld = draft.estimate, draft.decided, draft.refused
    notes = [
        _limit_of_rate(gate) if draft.is_of_rate(gate) else gate.words
        for gate in draft.findings
        if (gate.status is GateStatus.FAILED and _concerns(gate, estimate.scope))
        or (decided and gate.decides is decided)
    ]
    if estimate.scope is Scope.THESE and not withheld:
        notes += of_machines(draft.findings, draft.pairing, estimate.scope)
    if draft.note:
        notes.append(draft.note)
    if estimate.reason and decided in (None, Verdict.INTERIM, Verdict.INCONCLUSIVE):
        notes.append(estimate.reason)
    general = estimate.scope is Scope.LIKE_THESE and not estimate.reason
    if general and estimate.n_replicates < FEW_REPLICATES and not withheld:
        notes.append(_few_replicates(estimate, draft.nearest_zone))
    if draft.item.metric.startswith("lat") and not withheld:
        notes += [gate.words for gate in draft.findings if gate.cause == NOTHING_SHOWS]
    if not withheld:
        notes += [gate.words for gate in draft.findings if gate.cause.startswith(attachment.OPEN)]
    return notes


def _limit_of_rate(gate: Gate) -> str:
    """Say which limit sets a rate, without what follows for latency."""
    return f"{gate.cause.partition(', so that latency')[0]}, which sets the rate"


def _concerns(gate: Gate, scope: Scope) -> bool:
    """Whether a gate is about estimates of a scope: over replicates a disk's memory is part of the spread."""
    return gate.name != MEMORY or scope is Scope.THESE


def _difference(draft: _Draft) -> dict[str, float]:
    """Difference in ms with its interval, from the same estimate as the ratio.

    A log ratio L at the level G (the geometric mean of both arms) is a difference of 2 G sinh(L / 2), which
    is exactly arm minus base arm. G is taken as known: it is common to both arms. So a difference has the
    sign of its ratio, and its interval leaves out 0 where that of the ratio leaves out 1. NaN for rates,
    where the ratio is withheld or refused, and where nothing shows that no limit holds the cells: a limit
    may keep a ratio, but not a difference.
    """
    names = ("diff_ms", "diff_low_ms", "diff_high_ms")
    if draft.refused or draft.single or not draft.item.metric.startswith("lat"):
        return dict.fromkeys(names, math.nan)
    estimate = draft.estimate
    logs = np.log([estimate.ratio, estimate.low, estimate.high])
    return dict(zip(names, (2 * draft.level * np.sinh(logs / 2)).tolist(), strict=True))


def _strata_words(by_zone: Mapping[str, ratios.Estimate]) -> str:
    """Estimates of the strata that have two replicates or more, as one footnote."""
    parts = [
        f"{words}: {quantities.change(part.ratio, part.low, part.high, part.level)}, "
        f"{part.n_replicates} replicates"
        for words, part in by_zone.items()
        if not part.reason
    ]
    if not by_zone:
        return ""
    if not parts:
        return "no stratum has 2 replicates, so none has an estimate of its own"
    return f"each stratum apart: {'; '.join(parts)}"


def _stratum_row(pair: Pair, stratum: str, estimate: ratios.Estimate) -> dict[str, Any]:
    item, direction = pair
    return {
        "arm": item.arm,
        "base_arm": item.base_arm,
        "workload": item.workload,
        "direction": direction,
        "metric": item.metric,
        "stratum": stratum,
        "n_replicates": estimate.n_replicates,
        "n_blocks": estimate.n_blocks,
        "ratio": estimate.ratio,
        "ci_low": estimate.low,
        "ci_high": estimate.high,
        "reason": estimate.reason,
    }


def _few_replicates(estimate: ratios.Estimate, nearest_zone: str) -> str:
    """Say how wide the honest interval is with so few replicates."""
    half = 100 * (math.sqrt(estimate.high / estimate.low) - 1)
    freedom = f"{estimate.df:.0f} degree{'s' * (estimate.df != 1)} of freedom"
    scope = estimate.scope.words(nearest_zone)
    return (
        f"with {estimate.n_replicates} replicates (t with {freedom}) the interval for {scope} "
        f"is ±{half:.1f} %: {FEW_REPLICATES} replicates or more narrow it"
    )


def _equivalence(drafts: list[_Draft], table: pd.DataFrame, looks: tuple[int, ...]) -> pd.Series:
    """P of equivalence, adjusted like the p of difference."""
    raw = [np.nan if draft.decided else draft.estimate.p_equivalence(draft.item.margin) for draft in drafts]
    over_all = over_all_looks(np.array(raw, dtype=float), looks)
    return ratios.adjust(pd.Series(over_all, index=table.index), table["family"], table["scope"])


def _verdict(
    draft: _Draft, p_adjusted: float, p_equivalence: float, looks: tuple[int, ...]
) -> tuple[Verdict, str]:
    """Verdict, and a note where the family's adjustment outweighs the interval shown."""
    if draft.decided:
        return draft.decided, ""
    item, estimate = draft.item, draft.estimate
    verdict = ratios.decide(estimate, p_adjusted, p_equivalence, item.margin, item.family)
    if verdict is not Verdict.INCONCLUSIVE and not _confirmed(draft, verdict, looks):
        return Verdict.INCONCLUSIVE, f"{LIMIT_LIKE}: single I/Os do not show the same"
    excludes_one = not estimate.reason and (estimate.low > 1 or estimate.high < 1)
    if verdict is Verdict.INCONCLUSIVE and excludes_one and item.family != "control":
        return verdict, "the interval leaves out 0 %, but not after allowing for the other comparisons made"
    return verdict, ""


def _confirmed(draft: _Draft, verdict: Verdict, looks: tuple[int, ...]) -> bool:
    """Whether single I/Os show the same, where a limit may make what a deep load shows."""
    single, margin = draft.single, draft.item.margin
    if single is None:
        return True
    p, p_equivalence = over_all_looks(np.array([single.p_difference, single.p_equivalence(margin)]), looks)
    same_side = (single.ratio > 1) == (draft.estimate.ratio > 1) or verdict is Verdict.EQUIVALENT
    return same_side and ratios.decide(single, p, p_equivalence, margin, draft.item.family) is verdict


def _gate_row(item: Named, gate: Gate) -> dict[str, str]:
    names = {"arm": item.arm, "base_arm": item.base_arm, "workload": item.workload, "metric": item.metric}
    return {**names, "gate": gate.name, "status": gate.status, "cause": gate.cause, "remedy": gate.remedy}
