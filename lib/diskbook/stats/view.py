"""What all comparisons of a run share, computed once: totals, labels, checks, grids, strata.

A ratio of latencies at depth is compared with the ratio of single I/Os.

A limit that holds one arm, or both, moves the ratio at depth and leaves that of single I/Os. So the two are
compared: where they differ, the ratio at depth may be one of limits. Arms whose own latency grows
with depth unlike look the same, and are refused as well.
"""

import math
from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
import pandas as pd

from diskbook.design import held_rate
from diskbook.design.grid import Grid, grid, mean_over_repeats
from diskbook.design.series import samples
from diskbook.design.totals import measured_rows, several_runs, trial_totals
from diskbook.design.vocabulary import GateStatus
from diskbook.stats import drift, intervals, limits, outliers, plausibility, ratios, strata
from diskbook.stats.gates import Gate, attachment, data, design, guests, limits as limit_gates, passed, tool
from diskbook.stats.gates.data import plausible_gate
from diskbook.stats.gates.guests import guest_gate
from diskbook.stats.gates.plan import Plan, plan_gate
from diskbook.stats.gates.tool import generator_gate, offered
from diskbook.stats.intervals import Interval
from diskbook.stats.outliers import OutlierCounts
from diskbook.stats.strata import Strata

TOLERANCE = 0.25
"""Share of a comparison's margin by which the two ratios may differ."""
WIDTH = 3.2
"""Standard errors to either side: those of 95 % with two blocks, and for several replicates of more."""


def apart_at_depth(deep: np.ndarray, single: np.ndarray, margin: float) -> tuple[float, float, float] | None:
    """How far the ratio at depth differs from that of single I/Os, where that is beyond the tolerance.

    Each replicate is looked at by itself, since a limit may be one machine's, and all are together. The four
    cells share one variance, around means of cells and blocks: 3 (n - 1) degrees of freedom in n blocks,
    where differences of ratios alone would leave n - 1. With one block each, replicates stand for blocks.

    - `deep`, `single`: log latencies of arm and base arm, [2, replicate, block]; NaN where nothing was
      measured.
    - `margin`: of the comparison, as a relative difference.

    Returns the log of ratio at depth / ratio of single I/Os, low, high: of the replicate that is farthest
    out, or of all; None where none is beyond the tolerance, or there is no spread to judge by.
    """
    logs = np.concatenate([deep, single])
    logs = np.where(np.isfinite(logs).all(axis=0), logs, np.nan)
    if np.isfinite(logs[0]).sum(axis=1).max(initial=0) < 2:
        logs = logs.reshape(4, 1, -1)
    n = np.isfinite(logs[0]).sum(axis=1)
    logs, n = logs[:, n > 0], n[n > 0]
    df = 3 * int((n - 1).sum())
    if not df:
        return None
    around = logs - np.nanmean(logs, axis=2, keepdims=True)
    around = around - around.mean(axis=0)
    variance = 4 * float(np.nansum(around**2)) / df
    of_each = np.nanmean((logs[0] - logs[1]) - (logs[2] - logs[3]), axis=1)
    errors = np.sqrt(variance / n)
    if len(n) > 1:
        of_each = np.append(of_each, of_each.mean())
        errors = np.append(errors, math.sqrt(float((errors**2).sum())) / len(n))
    half = WIDTH * errors
    beyond = np.abs(of_each) - half - TOLERANCE * math.log1p(margin)
    worst = int(np.argmax(beyond))
    if not beyond[worst] > 0:
        return None
    middle, width = float(of_each[worst]), float(half[worst])
    return middle, middle - width, middle + width


DIRECTIONS = ("commit", "read", "write")
LATENCY = "lat_mean_ms"
Pair = tuple["Named", str]
"""A comparison and one of its directions."""
LoadPair = tuple["Named | Load", str]
"""A comparison, or another load of its arms, and one direction."""


class Named(Protocol):
    """A comparison named by the scenario before the run (`diskbook.design.model.Comparison`)."""

    arm: str
    base_arm: str
    workload: str
    metric: Any
    pairing: Any
    family: Any
    margin: float
    as_delivered: bool


Exempt = Mapping[tuple[str, str], Mapping[str, str]]
"""By arm and base arm the gates, and columns of `GUEST_FACTS`, that do not apply, each with its reason."""


class Load(NamedTuple):
    """A load that two arms have."""

    arm: str
    base_arm: str
    workload: str


class View:
    """Everything that is computed once for all comparisons of a run."""

    def __init__(
        self,
        trials: pd.DataFrame,
        series: pd.DataFrame | None,
        mismatches: Mapping[str, str] | None,
        directions: Mapping[str, Sequence[str]],
        zone_redundant: Collection[str] = (),
        consumed_pct: Mapping[tuple[str, str, str], float] | None = None,
        plan: Plan | None = None,
        guest: pd.DataFrame | None = None,
        conditioning: Mapping[str, attachment.Conditioning] | None = None,
        asked: Mapping[str, plausibility.Asked] | None = None,
        exempt: Exempt | None = None,
    ) -> None:
        self.rows, self.runs = measured_rows(trials), several_runs(trials)
        totals, parts = trial_totals(trials, self.rows), [] if self.runs else samples(series)
        held_back = [trial for trial, of_trial in (asked or {}).items() if of_trial.paced]
        totals["paced"] = totals["trial"].isin(held_back)
        self.doubts = plausibility.doubts(trials, asked or {}, self.rows, totals)
        self._doubts, self._exempt = plausibility.by_cell(self.doubts), exempt or {}
        self.mismatches, self.plan, self.conditioning = mismatches, plan, conditioning or {}
        self.cells = limits.label_cells(trials, parts, consumed_pct, totals)
        self.labels, self._consumed_pct = _by_cell(self.cells), consumed_pct or {}
        self._closed = _closed(self.cells)
        self.checks = _by_cell(design.cell_checks(trials, parts, totals).reset_index())
        self.guests = guests.guests_by_cell(self.rows, guest)
        self.starts, self._offered = held_rate.starts(self.rows), offered(self.rows)
        self.places = design.interleaving(trials, totals)
        self.provenance = "+".join(sorted(map(str, trials["provenance"].dropna().unique())))
        self._trials, self._planned, self._named = trials, _planned(trials), directions
        self._directions = _directions(self.rows)
        self._grids, self._visits = dict[str, Grid](), dict[str, pd.DataFrame]()
        self._log_means, self._strata = dict[str, np.ndarray](), dict[tuple[str, str], Strata]()
        self._zones = strata.places_of(self.rows)
        self._nearest = strata.nearest_zones(self.rows)
        probed = strata.probed(self.rows) if zone_redundant else set()
        self._unprobed = {
            (arm, replicate)
            for (arm, replicate), (_, disk) in self._zones.items()
            if arm in zone_redundant and (replicate, disk) not in probed
        }
        self.cells["nearest_zone"] = (
            self.cells["arm"].map(strata.by_arm(self._zones, self._nearest)).fillna("")
        )

    def directions(self, item: Named) -> list[str]:
        """Directions that the workload has; "none" when nothing of it finished and none is named."""
        if item.workload in self._named:
            return list(self._named[item.workload])
        present = self._directions.get(item.workload, set())
        return [name for name in DIRECTIONS if name in present] or ["none"]

    def grid(self, metric: str) -> Grid:
        """The metric of all cells, sorted once."""
        if metric not in self._grids:
            self._grids[metric] = grid(self.rows, metric)
        return self._grids[metric]

    def log_means(self, metric: str) -> np.ndarray:
        """Mean log of the metric over the repeats of each block, [cell, replicate, block]; computed once."""
        if metric not in self._log_means:
            self._log_means[metric] = mean_over_repeats(np.log(self.grid(metric).values))
        return self._log_means[metric]

    def log_ratios(self, metric: str, pairs: Sequence[LoadPair]) -> np.ndarray:
        """Log ratio of every block that measured both arms, [comparison, replicate, block]."""
        arm, base = self._both(self.log_means(metric), metric, pairs)
        difference: np.ndarray = arm - base
        return difference

    def outliers(self, metric: str, pairs: Sequence[Pair]) -> list[OutlierCounts]:
        """Runs of each comparison that lie far out, of arm and base arm."""
        counts = outliers.count(*self._both(np.log(self.grid(metric).values), metric, pairs))
        return [OutlierCounts(*of_pair) for of_pair in zip(*counts, strict=True)]

    def levels(self, metric: str, pairs: Sequence[Pair]) -> np.ndarray:
        """Level of each comparison: geometric mean of both arms over the blocks that measured both.

        Returns (shape [comparison]) in the metric's own unit; NaN where no block measured both arms.
        Replicates weigh alike, as in the ratio.
        """
        arm, base = self._both(self.log_means(metric), metric, pairs)
        by_replicate = intervals.over_blocks((arm + base) / 2).mean
        return np.array(np.exp(intervals.t_interval(by_replicate).mean))

    def estimates(
        self, metric: str, pairs: Sequence[Pair], log_ratios: np.ndarray, level: float
    ) -> list[list[ratios.Estimate]]:
        """Ratios of every comparison in both scopes; their intervals hold the rounding of printed values."""
        arm, base = self._both(ratios.rounding_of(self.grid(metric).values), metric, pairs)
        roundings = np.nan_to_num(arm + base).tolist()
        return [
            [ratios.widened(estimate, rounding) for estimate in scopes]
            for scopes, rounding in zip(ratios.estimates_of_many(log_ratios, level), roundings, strict=True)
        ]

    def single(self, item: Named) -> Load | None:
        """Load whose latencies those of a deep one are compared with; None where there is no need, or none.

        It is the one of fewest I/Os in flight, of the kind and block size, that both arms have. There is no
        need where other loads show that no limit holds the two cells, or where a rate was held.
        """
        cells = [self.labels.get((name, item.workload), {}) for name in (item.arm, item.base_arm)]
        if not item.metric.startswith("lat") or not any(limit_gates.is_open(cell) for cell in cells):
            return None
        kind = cells[0]["kind"], cells[0]["block_size_bytes"]
        arm, base = (self._closed.get((name, *kind), {}) for name in (item.arm, item.base_arm))
        depths = [
            (arm[load][0], -min(arm[load][1], base[load][1]), load)
            for load in arm.keys() & base.keys()
            if arm[load][0] < cells[0]["outstanding"]
        ]
        return Load(item.arm, item.base_arm, min(depths)[2]) if depths else None

    def strata(self, item: Named) -> Strata:
        """Physical zones and nearest zones of the comparison's replicates."""
        arms = (item.arm, item.base_arm)
        if arms not in self._strata:
            self._strata[arms] = strata.strata_of(*arms, self._zones, self._nearest, self._unprobed)
        return self._strata[arms]

    def pairing(self, item: Named) -> str:
        """How the comparison's arms are paired, as their trials have it; as named where there are none."""
        keys = [(name, item.workload) for name in (item.arm, item.base_arm)]
        if not all(key in self.checks for key in keys):
            return str(item.pairing)
        return design.pairing_of(item.pairing, [self.checks[key] for key in keys])

    def findings(
        self,
        item: Named,
        direction: str,
        log_ratios: np.ndarray,
        far: OutlierCounts,
        estimates: Sequence[ratios.Estimate],
    ) -> list[Gate]:
        """Pass one comparison through all gates; `log_ratios` is [replicate, block]."""
        # Long: the gates, one after another.
        keys = [(name, item.workload) for name in (item.arm, item.base_arm)]
        counts = [int(self.checks[key]["n_trials"]) if key in self.checks else 0 for key in keys]
        first = data.data_gate(item.arm, item.base_arm, item.workload, counts, self.runs)
        if first.status is GateStatus.FAILED:
            return [first]
        cells, labels = [self.checks[key] for key in keys], [self.labels[key] for key in keys]
        arms, there = (item.arm, item.base_arm), np.isfinite(log_ratios)
        bad = self.grid(item.metric).bad
        replicates = int(there.any(axis=-1).sum())
        planned = self._planned[keys[0]] | self._planned[keys[1]]
        little = data.little_gate(cells)
        exempt = self._exempt.get(arms, {})
        every = [
            first,
            plan_gate(self.plan),
            design.settings_gate(arms, self.mismatches),
            data.values_gate(sum(bad.get((*key, direction), 0) for key in keys), item.metric),
            little,
            data.rate_gate(cells, self.provenance),
            generator_gate(
                arms, item.workload, item.metric, self._offered, ratios.narrowest(estimates, item.margin)
            ),
            self._cap_gate(arms, labels),
            limit_gates.saturation_gate(arms, labels, self._apart(item, direction)),
            limit_gates.credit_gate(cells),
            plausible_gate(arms, [self._doubts_of(key, little) for key in keys], item.metric),
            data.stationarity_gate(cells),
            design.order_gate(self.places, item.arm, item.base_arm, item.workload),
            data.losses_gate(cells, int(there.sum()), int(planned.sum())),
            data.losses_by_arm_gate(
                arms, cells, self._moved_by_losses((item, direction), cells), estimates, item.margin
            ),
            data.noise_gate(arms, far, there),
            data.memory_gate(log_ratios),
            self._state_gate(item, direction, log_ratios),
            attachment.attachment_gate(arms, cells, self._attach_effect(item, direction), item.margin),
            design.zone_gate(arms, cells),
            tool.tool_gate(arms, cells, self.provenance),
            guest_gate(arms, [self.guests.get(key) for key in keys], self.provenance, exempt),
            design.nearest_gate(self.strata(item), replicates),
            design.pairing_gate(item.pairing, cells, replicates),
        ]
        return [passed(gate.name, exempt[gate.name]) if gate.name in exempt else gate for gate in every]

    def _cap_gate(self, arms: Sequence[str], labels: Sequence[Mapping[Any, Any]]) -> Gate:
        """Limits by our own reading of the rates and, where that decides nothing, by the platform's."""
        by_rate = limit_gates.cap_gate(arms, labels, [_limit(label) for label in labels])
        by_platform = limit_gates.platform_gate(arms, labels, self._consumed_pct)
        return by_rate if by_rate.decides or by_platform is None else by_platform

    def _doubts_of(self, cell: tuple[str, str], little: Gate) -> list[plausibility.Doubt]:
        """Doubts of a cell, without those that the gate on Little's law tells already."""
        by_little = {plausibility.Kind.IN_FLIGHT} if little.status is GateStatus.FAILED else set()
        return [doubt for doubt in self._doubts.get(cell, ()) if doubt.kind not in by_little]

    def _state_gate(self, item: Named, direction: str, log_ratios: np.ndarray) -> Gate:
        """Slopes over the blocks that both arms have, of each arm and of their ratio."""
        cells, arms = self.grid(item.metric), (item.arm, item.base_arm)
        there, blocks = np.isfinite(log_ratios), cells.blocks.astype(float)
        values = self._both(self.log_means(item.metric), item.metric, [(item, direction)])
        slopes = drift.slopes(
            np.stack([np.where(there, part[0], np.nan) for part in values] + [log_ratios]), blocks
        )
        used = blocks[there.any(axis=0)]
        n_blocks = int(np.ptp(used)) + 1 if used.size else 0
        of_each = (Interval(*(part[place] for part in slopes)) for place in range(3))
        arm, base, ratio = of_each
        by_arm = self.conditioning
        return attachment.state_gate(arms, by_arm, (arm, base, ratio), n_blocks, item.margin, self.provenance)

    def _attach_effect(self, item: Named, direction: str) -> attachment.Effect | None:
        """Late over early of both arms; None where no visit has a trial of both right after an attach."""
        if item.metric not in self._visits:
            self._visits[item.metric] = attachment.visits(self._trials, item.metric)
        arm, base = ((name, item.workload, direction) for name in (item.arm, item.base_arm))
        return attachment.effect(self._visits[item.metric], arm, base)

    def _apart(self, item: Named, direction: str) -> str:
        """Say that the ratio of latencies at depth is not that of single I/Os, where that is so."""
        single = self.single(item)
        if single is None:
            return ""
        both = np.stack(
            self._both(self.log_means(LATENCY), LATENCY, [(item, direction), (single, direction)])
        )
        difference = apart_at_depth(both[:, 0], both[:, 1], item.margin)
        return "" if difference is None else limit_gates.apart_words(difference, single.workload)

    def _moved_by_losses(self, pair: Pair, cells: Sequence[Mapping[Any, Any]]) -> float:
        """How far lost and repeated trials may have moved the log ratio; 0 where nothing is known of it."""
        arm, base = (
            np.array([(cell["n_lost"] + cell["n_repeated"]) / max(cell["n_places"], 1)]) for cell in cells
        )
        if arm[0] == base[0]:
            return 0.0
        metric = pair[0].metric
        moved = outliers.shift((arm, base), *self._both(np.log(self.grid(metric).values), metric, [pair]))
        return float(np.nan_to_num(moved[0]))

    def _both(
        self, means: np.ndarray, metric: str, pairs: Sequence[LoadPair]
    ) -> tuple[np.ndarray, np.ndarray]:
        """Values of arm and base arm of every comparison; NaN for cells that are not there."""
        padded = np.concatenate([means, np.full((1, *means.shape[1:]), np.nan)])
        places = self.grid(metric).keys
        arm, base = (
            [places.get((getattr(item, side), item.workload, direction), -1) for item, direction in pairs]
            for side in ("arm", "base_arm")
        )
        return padded[arm], padded[base]


def by_stratum(view: View, pair: Pair, log_ratios: np.ndarray, level: float) -> dict[str, ratios.Estimate]:
    """General estimate of each stratum of a comparison whose replicates differ; empty otherwise."""
    item, of_item = pair[0], view.strata(pair[0])
    if not of_item.mixed:
        return {}
    return strata.by_stratum(of_item, view.grid(item.metric).replicates, log_ratios, level)


def _closed(cells: pd.DataFrame) -> dict[tuple[Any, ...], dict[str, tuple[float, int]]]:
    """I/Os in flight and trials of each closed loop, by arm, kind and block size, and by workload."""
    loads: dict[tuple[Any, ...], dict[str, tuple[float, int]]] = {}
    names = ["arm", "kind", "block_size_bytes", "workload", "outstanding", "n_trials"]
    for cell in cells.loc[cells["closed"], names].to_dict("records"):
        key = cell["arm"], cell["kind"], cell["block_size_bytes"]
        loads.setdefault(key, {})[cell["workload"]] = cell["outstanding"], cell["n_trials"]
    return loads


def _by_cell(table: pd.DataFrame) -> dict[tuple[str, str], dict[Any, Any]]:
    return {(row["arm"], row["workload"]): row for row in table.to_dict("records")}


def _limit(label: Mapping[str, Any]) -> str:
    return limits.limit_words(label) if label["limit"] else ""


def _directions(rows: pd.DataFrame) -> dict[str, set[str]]:
    """Directions of each workload."""
    directions: dict[str, set[str]] = {}
    for load, direction in rows[["workload", "direction"]].drop_duplicates().itertuples(index=False):
        directions.setdefault(load, set()).add(direction)
    return directions


def _planned(trials: pd.DataFrame) -> dict[tuple[str, str], np.ndarray]:
    """Which places (replicate x block) a cell was to be measured in, finished or not.

    A block that was cut short is none: it is repeated whole, on other machines where these have gone, and
    until then the run is not finished (`gates.plan`).
    """
    whole = (trials["status"] != "incomplete_block").to_numpy(bool)
    code, names = limits.cell_codes(trials)
    replicate, block = (np.unique(trials[name], return_inverse=True)[1] for name in ("replicate", "block"))
    shape = (len(names), replicate.max(initial=-1) + 1, block.max(initial=-1) + 1)
    planned = np.zeros(shape, dtype=bool)
    planned[code[whole], replicate[whole], block[whole]] = True
    return dict(zip(names.itertuples(index=False, name=None), planned, strict=True))
