"""Compare arms: gates first, then ratios in both scopes, then verdicts. Tables in, tables out."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import pandas as pd

from diskbook import limits
from diskbook.stats import checks, gates, ratios, verdicts
from diskbook.stats.gates import Gate

COLUMNS = [
    "arm",
    "base_arm",
    "workload",
    "direction",
    "metric",
    "scope",
    "ratio",
    "ci_low",
    "ci_high",
    "level",
    "method",
    "pairing",
    "n_replicates",
    "n_blocks",
    "family",
    "p_adjusted",
    "verdict",
    "warnings",
    "provenance",
]
GATE_COLUMNS = ["arm", "base_arm", "workload", "metric", "gate", "status", "cause", "remedy"]
FEW_REPLICATES = 5
DIRECTIONS = ("commit", "read", "write")


class Named(Protocol):
    """A comparison named by the scenario before the run (`diskbook.scenario.Comparison`)."""

    arm: str
    base_arm: str
    workload: str
    metric: Any
    pairing: Any
    family: Any
    margin: float


@dataclass(frozen=True)
class Compared:
    """Comparisons (schema of comparisons.csv, see `COLUMNS`), their gates, and the labelled cells."""

    table: pd.DataFrame
    gates: pd.DataFrame
    cells: pd.DataFrame


def compare(
    trials: pd.DataFrame,
    comparisons: Iterable[Named],
    series: pd.DataFrame | None = None,
    mismatches: Mapping[str, str] | None = None,
    level: float = ratios.LEVEL,
    directions: Mapping[str, Sequence[str]] | None = None,
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

    Returns
    -------
    Compared
        Two rows a comparison and direction, one a scope. A latency ratio of a capped cell is NaN, with the
        reason in `warnings`.
    """
    view = _View(trials, series, mismatches, level, directions or {})
    drafts, found = [], []
    for item in comparisons:
        for direction in view.directions(item):
            findings = view.findings(item, direction)
            found += [_gate_row(item, gate) for gate in findings]
            drafts += [_Draft(item, direction, one, findings) for one in view.estimates(item, direction)]
    table = pd.DataFrame([_row(draft, view.provenance) for draft in drafts], columns=[*COLUMNS, "_p"])
    table["p_adjusted"] = verdicts.adjust(table["_p"], table["family"], table["scope"])
    equivalence = _equivalence(drafts, table)
    judged = [
        _verdict(*row) for row in zip(drafts, table["p_adjusted"], equivalence, table["verdict"], strict=True)
    ]
    table["verdict"] = [verdict for verdict, _ in judged]
    table["warnings"] = [
        "; ".join(filter(None, [warnings, more]))
        for warnings, (_, more) in zip(table["warnings"], judged, strict=True)
    ]
    gate_table = pd.DataFrame(found, columns=GATE_COLUMNS).drop_duplicates(ignore_index=True)
    return Compared(table[COLUMNS], gate_table, view.cells)


@dataclass(frozen=True)
class _Draft:
    item: Named
    direction: str
    estimate: ratios.Estimate
    findings: list[Gate]

    @property
    def failure(self) -> Gate | None:
        """Gate that decides the verdict: invalid before capped before inconclusive."""
        for verdict in ("invalid", "capped", "inconclusive"):
            for gate in self.findings:
                if gate.verdict == verdict and gate.status != "passed":
                    return gate
        return None

    @property
    def refused(self) -> bool:
        """Whether the number itself is withheld: latency of cells that sit, or may sit, on a cap."""
        return self.item.metric.startswith("lat") and any(
            gate.name == "cap" and gate.verdict and gate.status != "passed" for gate in self.findings
        )


class _View:
    """Everything that is computed once for all comparisons of a run."""

    def __init__(
        self,
        trials: pd.DataFrame,
        series: pd.DataFrame | None,
        mismatches: Mapping[str, str] | None,
        level: float,
        directions: Mapping[str, Sequence[str]],
    ) -> None:
        self.rows = limits.measured_rows(trials)
        self.trials, self.mismatches, self.level = trials, mismatches, level
        self.cells = limits.label_cells(trials, series)
        self.labels: dict[Any, Any] = self.cells.set_index(["arm", "workload"]).to_dict("index")
        self.checks: dict[Any, Any] = checks.cell_checks(trials, series).to_dict("index")
        self.places = checks.interleaving(trials)
        self.provenance = "+".join(sorted(set(trials["provenance"].dropna().astype(str))))
        self.planned: dict[tuple[str, str], set[tuple[int, int]]] = {}
        planned = trials[["arm", "workload", "replicate", "block"]].drop_duplicates()
        for arm, workload, replicate, block in planned.itertuples(index=False, name=None):
            self.planned.setdefault((arm, workload), set()).add((replicate, block))
        self._named = directions
        self._directions = self.rows.groupby("workload")["direction"].agg(set).to_dict()
        self._means: dict[str, pd.DataFrame] = {}
        self._bad: dict[str, dict[tuple[str, str, str], int]] = {}

    def directions(self, item: Named) -> list[str]:
        """Directions that the workload has; "none" when nothing of it finished and none is named."""
        if item.workload in self._named:
            return list(self._named[item.workload])
        present = self._directions.get(item.workload, set())
        return [name for name in DIRECTIONS if name in present] or ["none"]

    def log_ratios(self, item: Named, direction: str) -> pd.Series:
        if item.metric not in self._means:
            self._means[item.metric] = ratios.log_means(self.trials, item.metric)
            values = self.rows[item.metric].to_numpy(float)
            bad = self.rows[~(np.isfinite(values) & (values > 0))]
            self._bad[item.metric] = bad.groupby(["arm", "workload", "direction"]).size().to_dict()
        means = self._means[item.metric]
        return ratios.block_log_ratios(means, item.arm, item.base_arm, item.workload, direction)

    def estimates(self, item: Named, direction: str) -> list[ratios.Estimate]:
        return ratios.estimates(self.log_ratios(item, direction), self.level)

    def findings(self, item: Named, direction: str) -> list[Gate]:
        keys = [(name, item.workload) for name in (item.arm, item.base_arm)]
        counts = [int(self.checks[key]["n_trials"]) if key in self.checks else 0 for key in keys]
        first = gates.data_gate(item.arm, item.base_arm, item.workload, counts)
        if first.status == "failed":
            return [first]
        cells, labels = [self.checks[key] for key in keys], [self.labels[key] for key in keys]
        log_ratios, arms = self.log_ratios(item, direction), (item.arm, item.base_arm)
        bad = sum(self._bad[item.metric].get((*key, direction), 0) for key in keys)
        planned = set.union(*(self.planned.get(key, set()) for key in keys))
        return [
            first,
            gates.settings_gate(arms, self.mismatches),
            gates.values_gate(bad, item.metric),
            gates.little_gate(cells),
            gates.cap_gate(arms, labels, [_limit(label) for label in labels]),
            gates.credit_gate(cells),
            gates.stationarity_gate(cells),
            gates.order_gate(self.places, item.arm, item.base_arm, item.workload),
            gates.losses_gate(cells, len(log_ratios), len(planned)),
            gates.zone_gate(arms, cells),
            gates.pairing_gate(item.pairing, cells, log_ratios.index.get_level_values(0).nunique()),
        ]


def _limit(label: Mapping[str, Any]) -> str:
    return limits.limit_words(label) if label["limit"] else ""


def _row(draft: _Draft, provenance: str) -> dict[str, Any]:
    item, one = draft.item, draft.estimate
    withheld, failure = draft.refused, draft.failure
    notes = [
        gate.words for gate in draft.findings if gate.status == "failed" or (gate.verdict and gate is failure)
    ]
    if one.reason and (failure is None or failure.verdict == "inconclusive"):
        notes.append(one.reason)
    if (
        one.scope == ratios.LIKE_THESE
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
        "verdict": failure.verdict if failure else "",
        "warnings": "; ".join(dict.fromkeys(notes)),
        "provenance": provenance,
        "_p": np.nan if failure else one.p_difference,
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


def _verdict(draft: _Draft, p_adjusted: float, p_equivalence: float, decided: str) -> tuple[str, str]:
    """Verdict, and a note where the family's adjustment outweighs the interval shown."""
    if decided:
        return decided, ""
    one = draft.estimate
    verdict = verdicts.decide(one, p_adjusted, p_equivalence, draft.item.margin, draft.item.family)
    excludes_one = not one.reason and (one.low > 1 or one.high < 1)
    if verdict == verdicts.INCONCLUSIVE and excludes_one and draft.item.family != "control":
        return verdict, "the interval leaves out 1, but not after allowing for the other comparisons made"
    return verdict, ""


def _gate_row(item: Named, gate: Gate) -> dict[str, str]:
    names = {"arm": item.arm, "base_arm": item.base_arm, "workload": item.workload, "metric": item.metric}
    return {**names, "gate": gate.name, "status": gate.status, "cause": gate.cause, "remedy": gate.remedy}
