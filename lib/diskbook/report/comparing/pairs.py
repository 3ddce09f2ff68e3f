"""One row per comparison and run: each run's ratio, the ratio of ratios, and what may be said of it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from diskbook.design.model import Scenario
from diskbook.design.vocabulary import WITHHELD, Scope, Verdict
from diskbook.facts.nan_equal import NanEqual
from diskbook.facts.units import percent
from diskbook.report.comparing import measured
from diskbook.stats import intervals, power, ratio_of_ratios, ratios
from diskbook.stats.strata import UNCLEAR

if TYPE_CHECKING:  # it can analyse, and so imports what takes long
    from diskbook.report.comparing.measured import Measured

Row = Mapping[Any, Any]
_NAN = intervals.Interval(*[np.asarray(math.nan)] * 5)
_MOST = 99


@dataclass(frozen=True, eq=False)
class Pair(NanEqual):
    """One comparison in two runs.

    - `ratios`: of the runs, as their analyses have them (rows of comparisons.csv in the scope).
    - `strata`: in which zone the disks of each run answer, where that is known (`stratum`).
    - `estimate`: log of the ratio of ratios, other / first; NaN where there is none.
    - `p`, `p_adjusted`: of "the ratios are one", as it is, and among all that were compared.
    - `verdict`: difference, equivalent or inconclusive; None where it may not be judged.
    - `notes`: why, and what to do.
    """

    key: tuple[str, ...]
    family: str
    margin: float
    first: str
    other: str
    ratios: tuple[Row, Row]
    scope: Scope
    strata: tuple[str, str]
    estimate: intervals.Interval = _NAN
    level: float = intervals.LEVEL
    p: float = math.nan
    p_adjusted: float = math.nan
    verdict: Verdict | None = None
    notes: tuple[str, ...] = ()

    @property
    def ratio(self) -> tuple[float, float, float]:
        """Ratio of ratios with its interval; NaN where there is none."""
        mean, low, high = (math.exp(float(part)) for part in self.estimate[:3])
        return mean, low, high

    @property
    def words(self) -> str:
        """Verdict as tables have it; empty where none is given."""
        return "" if self.verdict is None else self.verdict.worded(self.margin)


@dataclass(frozen=True)
class LeftOut:
    """A comparison of a run that has no counterpart in the first one, or the run as a whole."""

    run: str
    what: str
    why: str


@dataclass(frozen=True)
class Paired:
    """All pairs, and what was not compared."""

    pairs: tuple[Pair, ...]
    left_out: tuple[LeftOut, ...] = field(default=())


def pair(runs: Sequence[Measured]) -> Paired:
    """Hold every run against the first one.

    At most 5 % of all looks at runs of one truth show any difference (`ratio_of_ratios.adjusted`).
    """
    pairs: list[Pair] = []
    left_out: list[LeftOut] = []
    first, questions = (
        runs[0],
        {key: measured.of(runs[0].scenario, runs[0].manifest, row) for key, row in _any_scope(runs[0])},
    )
    for other in runs[1:]:
        same, apart = _matched(first, other, questions)
        pairs += [_pair(first, other, key) for key in same]
        left_out += apart if same else [LeftOut(other.name, "all of it", _another_question(other, apart))]
    return Paired(tuple(_adjusted(pairs)), tuple(left_out))


def estimate_of(rows: Row | pd.DataFrame) -> intervals.Interval:
    """Mean log ratio of a run with its standard error and degrees of freedom, from its printed interval.

    Of one row of comparisons, or of many at once.
    """
    values = (np.asarray(rows[name], dtype=float) for name in ("ratio", "ci_low", "ci_high"))
    df = intervals.freedom(rows)
    with np.errstate(all="ignore"):
        mean, low, high = (np.log(np.where(value > 0, value, np.nan)) for value in values)
        t = intervals.quantile(np.asarray(rows["level"], dtype=float), np.where(df > 0, df, np.nan))
        return intervals.Interval(mean, low, high, (high - low) / 2 / t, df)


def _any_scope(item: Measured) -> Iterator[tuple[tuple[str, ...], Row]]:
    """Comparisons of a run, each with a row of either scope."""
    for key, scopes in item.rows.items():
        yield key, next(iter(scopes.values()))


def _matched(
    first: Measured, other: Measured, questions: Mapping[tuple[str, ...], Mapping[str, Any]]
) -> tuple[list[tuple[str, ...]], list[LeftOut]]:
    """Comparisons that two runs have in common, in the order of the first, and those that they have not."""
    there, apart = dict(_any_scope(other)), []
    same = []
    for key, question in questions.items():
        if key not in there:
            apart.append(LeftOut(other.name, label(key), "it has no such comparison"))
        elif why := measured.difference(question, measured.of(other.scenario, other.manifest, there[key])):
            apart.append(LeftOut(other.name, label(key), f"it asked another question: {why}"))
        else:
            same.append(key)
    new = [key for key in there if key not in questions]
    return same, [
        *apart,
        *(LeftOut(other.name, label(key), f"{first.name} has no such comparison") for key in new),
    ]


def _another_question(other: Measured, apart: Sequence[LeftOut]) -> str:
    why = next((item.why for item in apart if "question" in item.why), "it has none of the same comparisons")
    return f"scenario {other.scenario.name}: {why}"


def label(key: Sequence[str]) -> str:
    """Name a comparison in one direction: "zrs-z1 / lrs-z1, randwrite-qd1 (write)"."""
    arm, base, load, direction, metric = key
    of_metric = "" if metric == "lat_mean_ms" else f", {metric}"
    return f"{arm} / {base}, {load} ({direction}){of_metric}"


def _pair(first: Measured, other: Measured, key: tuple[str, ...]) -> Pair:
    """One comparison in two runs, before p-values are adjusted."""
    tables = [item.rows[key] for item in (first, other)]
    several = all(int(rows[Scope.THESE]["n_replicates"]) > 1 for rows in tables)
    scope = Scope.LIKE_THESE if several else Scope.THESE
    rows = tables[0][scope], tables[1][scope]
    strata = (
        stratum(first.scenario, first.manifest, rows[0]),
        stratum(other.scenario, other.manifest, rows[1]),
    )
    item = next(measured.matching(first.scenario, key))
    draft = Pair(key, item.family, item.margin, first.letter, other.letter, rows, scope, strata)
    draft = replace(draft, level=float(rows[1]["level"]))
    if refusals := _refusals(draft):
        return replace(draft, notes=refusals)
    return _estimated(draft, (estimate_of(rows[0]), estimate_of(rows[1])))


def stratum(scenario: Scenario, manifest: Mapping[str, Any], row: Row) -> str:
    """Where zone-redundant disks of a comparison answer, seen from its machines; empty where none is clear.

    Names of zones are those of a region, so that "their own zone" is the same in all of them.
    """
    zones = {zone for zone in row["nearest_zone"].split("+") if zone not in ("", UNCLEAR)}
    if not zones:
        return ""
    names = {scenario.arm_named(row[role]).machine for role in ("arm", "base_arm")}
    entries = [
        replicate.get("machines", {}).get(name) or {}
        for replicate in manifest["replicates"]
        for name in names
    ]
    places = {str(entry["physical_zone"]) for entry in entries if entry.get("physical_zone")}
    if zones == places:
        return "their own zone"
    return f"{' and '.join(sorted(zones))}, to machines in {' and '.join(sorted(places)) or 'no zone'}"


def _refusals(draft: Pair) -> tuple[str, ...]:
    """Why there is no ratio of ratios at all; empty where there is one."""
    withheld: dict[str, list[str]] = {}
    for letter, row in _by_letter(draft):
        if Verdict.of(row["verdict"]) in WITHHELD or math.isnan(row["ratio"]):
            why = f"{row['verdict']}: {row['warnings'] or 'no ratio'}"
            withheld.setdefault(why, []).append(letter)
    return tuple(f"{_and(letters)}: {why}" for why, letters in withheld.items())


def _by_letter(draft: Pair) -> list[tuple[str, Row]]:
    return list(zip((draft.first, draft.other), draft.ratios, strict=True))


def _estimated(draft: Pair, estimates: tuple[intervals.Interval, intervals.Interval]) -> Pair:
    """The pair with its estimate, and with p where it may be judged."""
    estimate = ratio_of_ratios.interval(*estimates, draft.level)
    unjudged = _unjudged(draft)
    p = math.nan if unjudged else float(ratio_of_ratios.p_difference(estimate))
    return replace(draft, estimate=estimate, p=p, notes=unjudged)


def _unjudged(draft: Pair) -> tuple[str, ...]:
    """Why a ratio of ratios gets no verdict; empty where it gets one."""
    rows = _by_letter(draft)
    alone = [letter for letter, row in rows if row["n_replicates"] < 2]
    if alone:
        return (
            f"{_and(alone)} {'has' if len(alone) == 1 else 'have'} one replicate: runs have disks of their "
            "own, whose difference is in it, so it holds for these disks and gets no verdict; measure "
            f"{ratio_of_ratios.LEAST_REPLICATES} replicates or more in each run, better 5",
        )
    few = [letter for letter, row in rows if row["n_replicates"] < ratio_of_ratios.LEAST_REPLICATES]
    if few:
        return (
            f"{_and(few)} {'has' if len(few) == 1 else 'have'} 2 replicates, which show too little of their "
            f"spread for a verdict; measure {ratio_of_ratios.LEAST_REPLICATES} or more in each run, better 5",
        )
    for letter, row in rows:
        if row["verdict"] == Verdict.INTERIM:
            return (f"{letter} is interim: not all is measured that was planned; resume it",)
        judged_by_gates = row["verdict"] == Verdict.INCONCLUSIVE and math.isnan(row["p_adjusted"])
        if math.isnan(row["ci_low"]) or judged_by_gates:
            return (f"{letter}: {row['warnings'] or 'no interval'}",)
    if all(draft.strata) and draft.strata[0] != draft.strata[1]:
        where = " and ".join(
            f"from {zone} in {letter}" for zone, (letter, _) in zip(draft.strata, rows, strict=True)
        )
        return (
            f"zone-redundant disks answer {where}: zones are strata, which are never mixed; repeat the run, "
            "or compare the strata in the runs' reports",
        )
    return ()


def _adjusted(pairs: Sequence[Pair]) -> Iterator[Pair]:
    """Pairs with adjusted p-values, verdicts and the notes that follow from them."""
    p = np.array([item.p for item in pairs], dtype=float)
    headline = np.array([item.family == "headline" for item in pairs], dtype=bool)
    levels = np.full(p.shape, np.nan)
    judged = ~np.isnan(p)
    levels[judged] = ratio_of_ratios.hardest_levels(headline[judged])
    for item, value, alpha in zip(pairs, ratio_of_ratios.adjusted(p, headline), levels, strict=True):
        if math.isnan(value):
            yield item
            continue
        verdict = _verdict(item, float(value))
        note = _note(item, verdict, float(alpha))
        yield replace(item, p_adjusted=float(value), verdict=verdict, notes=(*item.notes, *note))


def _verdict(item: Pair, p_adjusted: float) -> Verdict:
    """Difference goes first, since what changed is asked; one within the margin is said to be small."""
    if p_adjusted < ratios.ALPHA:
        return Verdict.DIFFERENCE
    return Verdict.EQUIVALENT if _is_within(item) else Verdict.INCONCLUSIVE


def _is_within(item: Pair) -> bool:
    return bool(intervals.p_equivalence(item.estimate, math.log1p(item.margin)) < ratios.ALPHA)


def _note(item: Pair, verdict: Verdict, alpha: float) -> list[str]:
    """What a verdict at this level lacks."""
    if verdict is Verdict.DIFFERENCE:
        small = (
            f"it is a difference, and lies within the {percent(item.margin)} that the scenario names as none"
        )
        return [small] if _is_within(item) else []
    if verdict is Verdict.EQUIVALENT:
        return []
    _, low, high = item.ratio
    beyond = "the interval leaves out 0, but not after adjusting for the other comparisons made"
    return [beyond if low > 1 or high < 1 else _more(item, alpha)]


def _more(item: Pair, alpha: float) -> str:
    """How many replicates tell a ratio of ratios as large as the margin; new runs, planned from this pair."""
    freedoms = [float(row["n_replicates"]) - 1 for row in item.ratios]
    estimates = [estimate_of(row) for row in item.ratios]
    variances = [float(part.se**2) * (df + 1) for part, df in zip(estimates, freedoms, strict=True)]
    sd = math.sqrt(sum(variances) / 2)
    # Satterthwaite's degrees of freedom of the two variances together.
    df = sum(variances) ** 2 / sum(value**2 / df for value, df in zip(variances, freedoms, strict=True))
    number = power.for_two_runs(sd, item.margin, 0.8, df, 1 + int(min(freedoms)), alpha)
    how_many = f"about {number}" if number <= _MOST else f"more than {_MOST}"
    return (
        f"nothing can be determined: to find a change of {percent(item.margin)} in 80 % of such pairs takes "
        f"{how_many} replicates of each run, from this spread (s.d. {percent(sd, '.2g')})"
    )


def _and(letters: Sequence[str]) -> str:
    return " and ".join(letters)
