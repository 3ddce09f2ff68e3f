"""Prior runs as evidence for a new one: log ratios of a comparison, as a pilot or as a history."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pandas as pd

from diskbook.design import scenario_tables
from diskbook.design.model import Comparison, Scenario
from diskbook.design.vocabulary import WITHHELD, GateStatus, Scope
from diskbook.facts import quantities
from diskbook.facts.errors import UsageError
from diskbook.report.analysis import cell
from diskbook.report.show.analysed import Analysed
from diskbook.results import tables as store_tables
from diskbook.results.run import Run, open_run
from diskbook.stats import prior_runs, ratios
from diskbook.stats.compare import Compared, compare
from diskbook.stats.gates.design import NEAREST_ZONE
from diskbook.stats.ratios import Estimate


@dataclass(frozen=True)
class MeasuredRatios:
    """Log ratios (index replicate, block) of one comparison and direction in a run.

    `refusal` says why they are no evidence; empty when they are. `hidden` says why they are none for disks
    like these. `strata` are those of its replicates (zones, nearest zones), where there is more than one;
    `nearest_zone` is the one that they share.
    """

    item: Comparison
    direction: str
    log_ratios: pd.Series
    refusal: str
    hidden: str = ""
    strata: tuple[str, ...] = ()
    nearest_zone: str = ""

    @property
    def label(self) -> str:
        """The comparison in words."""
        return f"{self.item.arm} / {self.item.base_arm}, {self.item.workload} ({self.direction})"


@dataclass(frozen=True)
class PriorRun:
    """A finished run, read but never written."""

    run: Run

    @property
    def name(self) -> str:
        """Name of the run."""
        return self.run.name

    @cached_property
    def scenario(self) -> Scenario:
        """Its scenario as it was run."""
        return scenario_tables.recorded(self.manifest["scenario"], f"{self.name}/manifest.json")

    @cached_property
    def manifest(self) -> Mapping[str, Any]:
        """Its manifest."""
        return self.run.manifest

    @cached_property
    def tables(self) -> store_tables.Tables:
        """Its tables; from raw where that is there."""
        if (self.run.folder / "raw").is_dir():
            return store_tables.build(self.run)
        return store_tables.read(self.run.folder)

    def measured(self, items: Iterable[Comparison]) -> list[MeasuredRatios]:
        """Log ratios of comparisons; capped and invalid ones are refused, as in an analysis."""
        asked = list(items)
        zoned = self.scenario.zone_redundant_arms
        compared = compare(self.tables.trials, asked, self.tables.series, zone_redundant=zoned)
        table = compared.table[compared.table["scope"] == Scope.THESE]
        return [
            self._measured(item, row, compared)
            for item in asked
            for _, row in _rows_of(table, item).iterrows()
        ]

    def _measured(self, item: Comparison, row: pd.Series, compared: Compared) -> MeasuredRatios:
        means, direction = ratios.log_means(self.tables.trials, item.metric), row["direction"]
        values = ratios.block_log_ratios(means, item.arm, item.base_arm, item.workload, direction)
        # A ratio is withheld also where a cell may sit on a cap: its spread is then that of the cap.
        refused = row["verdict"] in WITHHELD or math.isnan(row["ratio"])
        refusal = f"{row['verdict']}: {row['warnings']}" * refused
        hidden = _unknown_zone(_rows_of(compared.gates, item))
        strata = _rows_of(compared.strata, item)
        names = tuple(strata.loc[strata["direction"] == direction, "stratum"])
        general = compared.table[compared.table["scope"] == Scope.LIKE_THESE]
        of_item = _rows_of(general, item)
        nearest_zone = of_item.loc[of_item["direction"] == direction, "nearest_zone"].iloc[0]
        return MeasuredRatios(item, direction, values, refusal, hidden, names, nearest_zone)


def _unknown_zone(gates: pd.DataFrame) -> str:
    """Why a comparison says nothing about disks like these; empty when it may."""
    rows = gates[(gates["gate"] == NEAREST_ZONE) & (gates["status"] == GateStatus.NOT_ASSESSABLE)]
    return "" if rows.empty else str(rows["cause"].iloc[0])


def _rows_of(table: pd.DataFrame, item: Comparison) -> pd.DataFrame:
    """Rows of one comparison."""
    keys = ("arm", "base_arm", "workload", "metric")
    return table[(table[list(keys)] == [getattr(item, key) for key in keys]).all(axis=1)]


def open_prior_run(name: str) -> PriorRun:
    """Open a run by name or folder.

    Raises UsageError, DiskbookError when there is none, it is damaged, or nothing was measured in it.
    """
    prior_run = PriorRun(open_run(name))
    if prior_run.tables.trials.empty:
        raise UsageError(f"run {prior_run.name} has no trials yet; name a run that was measured")
    return prior_run


def history_of(
    runs: Iterable[PriorRun],
    scenario: Scenario,
    items: Iterable[Comparison],
    manifest: Mapping[str, Any] | None = None,
) -> dict[tuple[Comparison, str], prior_runs.Prior]:
    """Collect the histories of comparisons from runs that the user named, by comparison and direction.

    - `runs`: prior runs of the same cells.
    - `scenario`, `items`: what is compared now.
    - `manifest`: of the run to be analysed, for its provenance; without one (planning) the first run's
      counts.

    Raises UsageError when a run measured another cell, or is no evidence; run, cause and remedy are named.
    """
    known, asked = list(runs), list(items)
    if not known:
        raise UsageError("a history needs at least one run; name it with --history RUN")
    pasts: dict[tuple[Comparison, str], list[prior_runs.Past]] = {}
    for prior_run in known:
        _check_another_run(prior_run, manifest)
        for item in asked:
            _check_same_cell(prior_run, item, scenario, manifest or known[0].manifest)
        for measured in prior_run.measured(asked):
            pasts.setdefault((measured.item, measured.direction), []).append(_past(prior_run, measured))
    try:
        return {key: prior_runs.pool(runs_of_cell) for key, runs_of_cell in pasts.items()}
    except ValueError as error:
        raise UsageError(f"--history: {error}") from None


def _check_another_run(prior_run: PriorRun, manifest: Mapping[str, Any] | None) -> None:
    if manifest and manifest["run"] == prior_run.manifest["run"]:
        raise UsageError(f"--history {prior_run.name}: a run is not its own history; name earlier runs")


def intervals_with_history(
    run: PriorRun, named: Iterable[PriorRun]
) -> list[tuple[MeasuredRatios, prior_runs.Moderated]]:
    """Interval for "disks like these" of every headline comparison of a run, with a history that is named.

    Comparisons that the run itself refuses are left out. Where the run's replicates lie in several strata
    the history is not used: they are judged apart.

    Raises UsageError as `history_of`.
    """
    items = [item for item in run.scenario.comparison if item.family == "headline"]
    measured_now = run.measured(items)
    usable = [measured for measured in measured_now if not measured.refusal and not measured.hidden]
    compared = dict.fromkeys(measured.item for measured in usable)
    priors = history_of(named, run.scenario, compared, run.manifest)
    return [
        (measured, _moderated(measured, priors[measured.item, measured.direction])) for measured in usable
    ]


def _moderated(measured: MeasuredRatios, prior: prior_runs.Prior) -> prior_runs.Moderated:
    moderated = prior_runs.moderated(measured.log_ratios, prior)
    if not measured.strata:
        return moderated
    refusal = f"the replicates lie in {len(measured.strata)} strata, each of which is judged apart"
    return prior_runs.Moderated(moderated.plain, moderated.plain, refusal, math.nan)


def _past(prior_run: PriorRun, measured: MeasuredRatios) -> prior_runs.Past:
    problem = measured.refusal or measured.hidden
    if not problem and measured.strata:
        problem = f"its replicates lie in {len(measured.strata)} strata, whose difference is no noise"
    if not problem:
        try:
            return prior_runs.past(prior_run.name, measured.log_ratios)
        except ValueError as error:
            problem = str(error)
    raise UsageError(
        f"--history {prior_run.name}: no history for {measured.label}, since {problem}; leave the run out"
    )


def _check_same_cell(
    prior_run: PriorRun, item: Comparison, scenario: Scenario, manifest: Mapping[str, Any]
) -> None:
    prior = prior_run.scenario
    names = {arm.name for arm in prior.arm} | {load.name for load in prior.workload}
    missing = [name for name in (item.arm, item.base_arm, item.workload) if name not in names]
    if missing:
        raise UsageError(f"--history {prior_run.name}: it has no {missing[0]}; name runs of the same cell")
    here, there = cell.of(scenario, item, manifest), cell.of(prior, item, prior_run.manifest)
    difference = cell.difference(here, there)
    if difference:
        raise UsageError(
            f"--history {prior_run.name}: another cell ({difference}); its spread says nothing about this one"
        )


NO_HISTORY = "No earlier run is named: the intervals above are the plain ones."


def with_history(a: Analysed, runs: Sequence[str]) -> list[str]:
    """Say what earlier runs of the same cells, named here, do for the interval of disks like these.

    Raises UsageError when a run is not there, or is not of the same cells; the sentence says why.
    """
    if not runs:
        return [NO_HISTORY]
    earlier = [open_prior_run(name) for name in runs]
    intervals = intervals_with_history(PriorRun(a.run), earlier)
    lines = [
        f"{a.provenance}: {measured.label}: {_change(moderated.estimate)} "
        f"({moderated.estimate.scope.words(measured.nearest_zone)}, {moderated.estimate.method}); "
        f"{moderated.saved}"
        for measured, moderated in intervals
    ]
    return lines or [NO_HISTORY]


def _change(estimate: Estimate) -> str:
    return quantities.change(estimate.ratio, estimate.low, estimate.high, estimate.level)
