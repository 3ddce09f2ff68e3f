"""What is computed from a run's tables alone: comparisons, gates, cells and percentiles."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pandas as pd

from diskbook.design.model import Scenario, Workload
from diskbook.design.totals import CELL, trial_totals
from diskbook.design.vocabulary import Provenance
from diskbook.facts.errors import unknown
from diskbook.facts.rules import DiskAsk
from diskbook.report.analysis import protocol as run_protocol
from diskbook.results import plan as plans, tables as store_tables
from diskbook.results.run import Run, open_run
from diskbook.stats import evidence, expected, percentiles as stats_percentiles, platform as platform_metrics
from diskbook.stats.compare import Compared, Named, compare
from diskbook.stats.gates.plan import Plan


@dataclass(frozen=True)
class Computed:
    """A run with its tables; each part is computed when asked for, once."""

    run: Run
    scenario: Scenario
    manifest: Mapping[str, Any]
    tables: store_tables.Tables

    @property
    def trials(self) -> pd.DataFrame:
        """One row a trial and direction."""
        return self.tables.trials

    @cached_property
    def ledger(self) -> list[dict[str, Any]]:
        """Events of the run, oldest first."""
        return self.run.ledger()

    @property
    def provenance(self) -> str:
        """Where the numbers come from: azure, emulated, inventory ..."""
        return str(self.manifest["provenance"])

    @cached_property
    def compared(self) -> Compared:
        """Comparisons that the scenario named, gates and labelled cells."""
        return self.compare(self.scenario.comparison)

    def compare(self, comparisons: Iterable[Named]) -> Compared:
        """Compare arms, as the scenario named them or not, by all that is known of the run."""
        directions = {item.name: _directions(item) for item in self.scenario.workload}
        return compare(
            self.trials,
            comparisons,
            self.tables.series,
            self._mismatches(),
            directions=directions,
            zone_redundant=self.scenario.zone_redundant_arms,
            consumed_pct=platform_metrics.consumed_by_cell(
                evidence.with_trials_for(self.trials, self.tables.evidence), self.tables.metrics
            ),
            plan=self.plan,
            guest=self.tables.guest,
            conditioning=run_protocol.of_arms(self.scenario, self.ledger),
            asked=run_protocol.by_trial(self.trials, self.scenario, self.ledger),
            exempt=run_protocol.exempt(self.scenario, self.provenance),
        )

    @property
    def gates(self) -> pd.DataFrame:
        """What was checked before anything was compared."""
        return self.compared.gates

    @cached_property
    def cells(self) -> pd.DataFrame:
        """Every arm x workload with its label: below cap or capped, by which limit, and the evidence."""
        items = self.scenario.arm
        on_demand = [item.name for item in items if self.scenario.disk_of(item).bursting]
        alone = self.tables.evidence
        made = set(alone.loc[alone["status"] != "failed", CELL].itertuples(index=False, name=None))
        return evidence.with_evidence(
            self.compared.cells,
            self.trials,
            self.tables.metrics,
            on_demand,
            self.ledger,
            alone,
            expected.reasons(self.scenario, made),
        )

    @cached_property
    def percentiles(self) -> pd.DataFrame:
        """Percentiles of a typical trial and of all I/Os, only those with enough I/Os behind them."""
        return stats_percentiles.percentiles(self.tables.bins, self.trials)

    def _mismatches(self) -> dict[str, str] | None:
        """Settings were compared when they were read back; a mismatch would have stopped the run."""
        replicates = self.manifest["replicates"]
        read = [disk.get("read_back") for row in replicates for disk in row["disks"].values()]
        return {} if read and all(read) else None

    @cached_property
    def plan(self) -> Plan | None:
        """What was planned; None of what others measured, and of a run handed on without its ledger."""
        if self.provenance == Provenance.IMPORTED or not self.ledger:
            return None
        done = plans.progress(self.run)
        return Plan(
            done.planned,
            done.complete,
            done.whole,
            self.scenario.design.looks,
            plans.is_written(self.run),
            plans.is_scenario_changed(self.run),
        )


def computed(run: Run) -> Computed:
    """Rebuild the tables of a run from raw (`results.tables.rebuilt`), to compute from."""
    return Computed(run, run.scenario, run.manifest, store_tables.rebuilt(run))


def _directions(item: Workload) -> list[str]:
    if item.sync == "fdatasync":
        return ["commit"]
    return {0: ["read"], 100: ["write"]}.get(item.write_pct, ["read", "write"])


NOTHING = "p99 not measured"


def measured_rate(run: str, arm: str, workload: str) -> tuple[float, Workload]:
    """Return the median IOPS of a cell's trials, and its load; UsageError where there is no such cell."""
    analysis = computed(open_run(run))
    totals = trial_totals(analysis.trials)
    cell = totals[(totals["arm"] == arm) & (totals["workload"] == workload)]
    if cell.empty:
        cells = {f"{a}:{load}" for a, load in zip(totals["arm"], totals["workload"], strict=True)}
        raise unknown("cell", f"{arm}:{workload}", cells, run)
    return float(cell["iops"].median()), analysis.scenario.workload_named(workload)


def measured_p99(run: str) -> Callable[[DiskAsk, str, float], str]:
    """Return what says the p99 of a disk with a host cache under blocks of a size; never an emulated one."""
    analysis = computed(open_run(run))
    scenario, table = analysis.scenario, analysis.percentiles
    blocks = {load.name: load.block_size_bytes for load in scenario.workload}

    def words(disk: DiskAsk, cache: str, block_bytes: float) -> str:
        if analysis.provenance == Provenance.EMULATED:
            return f"{NOTHING} ({run} is emulated)"
        arms = [
            arm for arm in scenario.arm if not arm.volume and _is_disk(scenario.disk_of(arm), disk, cache)
        ]
        near = {load for load, size in blocks.items() if 0.5 <= size / block_bytes <= 2}
        rows = table[(table["quantile"] == 0.99) & table["arm"].isin([arm.name for arm in arms])]
        rows = rows[rows["workload"].isin(list(near)) & rows["lat_ms"].notna()].sort_values("lat_ms")
        if rows.empty:
            return NOTHING
        row = rows.iloc[0]
        return (
            f"p99 of {row['lat_ms']:.3g} ms (95 % CI {row['ci_low_ms']:.3g} to {row['ci_high_ms']:.3g}) in "
            f"{run}, {row['workload']}, {row['direction']}"
        )

    return words


def _is_disk(own: Any, asked: DiskAsk, cache: str) -> bool:
    names = ("sku", "size_gib", "tier", "bursting", "performance_plus", "iops", "mb_s")
    return own.cache == cache and all(getattr(own, name) == getattr(asked, name) for name in names)
