"""Earlier runs as evidence for a new one: log ratios of a comparison, as a pilot or as a history."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pandas as pd

from diskbook import load as scenarios
from diskbook.base.errors import UsageError
from diskbook.scenario.model import Comparison, Scenario
from diskbook.stats import prior_runs, ratios
from diskbook.stats.compare import compare
from diskbook.store import tables as store_tables
from diskbook.store.run import Run, open_run

DISK_SETTINGS = (
    "sku",
    "size_gib",
    "max_shares",
    "cache",
    "bursting",
    "performance_plus",
    "accelerated_network",
    "iops",
    "mb_s",
)
# The grain of the kept series does not touch what is measured, nor does a name, nor what others are given.
NOT_OF_THE_LOAD = {"name", "series_s", "arms"}


@dataclass(frozen=True)
class Measured:
    """Log ratios (index replicate, block) of one comparison and direction in an earlier run.

    `refusal` says why they are no evidence; empty when they are. `hidden` says why they are none for disks
    like these. `strata` are those of its replicates (zones, nearest zones), where there is more than one.
    """

    item: Comparison
    direction: str
    log_ratios: pd.Series
    refusal: str
    hidden: str = ""
    strata: tuple[str, ...] = ()

    @property
    def label(self) -> str:
        """The comparison in words."""
        return f"{self.item.arm} / {self.item.base_arm}, {self.item.workload} ({self.direction})"


@dataclass(frozen=True)
class Earlier:
    """A finished run, read but never written."""

    folder: Run

    @property
    def name(self) -> str:
        """Name of the run."""
        return self.folder.name

    @cached_property
    def scenario(self) -> Scenario:
        """Its scenario as it was run."""
        return scenarios.from_dict(self.manifest["scenario"], f"{self.name}/manifest.json")

    @cached_property
    def manifest(self) -> Mapping[str, Any]:
        """Its manifest."""
        return self.folder.manifest

    @cached_property
    def tables(self) -> store_tables.Tables:
        """Its tables; from raw where that is there."""
        if (self.folder.folder / "raw").is_dir():
            return store_tables.build(self.folder)
        return store_tables.read(self.folder.folder)

    def measured(self, items: Iterable[Comparison]) -> list[Measured]:
        """Log ratios of comparisons; capped and invalid ones are refused, as in an analysis."""
        wanted = list(items)
        zoned = self.scenario.zone_redundant_arms
        found = compare(self.tables.trials, wanted, self.tables.series, zone_redundant=zoned)
        table = found.table[found.table["scope"] == ratios.THESE]
        return [
            self._measured(item, row, _mine(found.strata, item), _hidden(_mine(found.gates, item)))
            for item in wanted
            for _, row in _mine(table, item).iterrows()
        ]

    def _measured(self, item: Comparison, row: pd.Series, strata: pd.DataFrame, hidden: str) -> Measured:
        means, direction = ratios.log_means(self.tables.trials, item.metric), row["direction"]
        values = ratios.block_log_ratios(means, item.arm, item.base_arm, item.workload, direction)
        # A ratio is withheld also where a cell may sit on a cap: its spread is then that of the cap.
        refused = row["verdict"] in ("capped", "invalid") or math.isnan(row["ratio"])
        refusal = f"{row['verdict']}: {row['warnings']}" * refused
        words = strata.loc[strata["direction"] == direction, "stratum"]
        return Measured(item, direction, values, refusal, hidden, tuple(words))


def _hidden(gates: pd.DataFrame) -> str:
    """Why a comparison says nothing about disks like these; empty when it may."""
    rows = gates[(gates["gate"] == "nearest zone") & (gates["status"] == "not assessable")]
    return "" if rows.empty else str(rows["cause"].iloc[0])


def _mine(table: pd.DataFrame, item: Comparison) -> pd.DataFrame:
    """Rows of one comparison."""
    keys = ("arm", "base_arm", "workload", "metric")
    return table[(table[list(keys)] == [getattr(item, key) for key in keys]).all(axis=1)]


def open_earlier(name: str) -> Earlier:
    """Open a run by name or folder.

    Raises
    ------
    UsageError, DiskbookError
        When there is none, it is damaged, or nothing was measured in it.
    """
    earlier = Earlier(open_run(name))
    if earlier.tables.trials.empty:
        raise UsageError(f"run {earlier.name} has no trials yet; name a run that was measured")
    return earlier


def cell(scenario: Scenario, item: Comparison, manifest: Mapping[str, Any]) -> dict[str, Any]:
    """What must be equal for two runs to have measured the same cell, in words and values.

    The number of blocks and repeats belongs to it, since the spread of replicate means depends on it.
    """
    found: dict[str, Any] = {
        "provenance": manifest["provenance"],
        "site": scenario.site,
        "emulated credit scale": scenario.scenario.emulated_credit_scale,
        "emulator profile": (manifest.get("emulator") or {}).get("profile"),
        "metric": item.metric,
        "pairing": item.pairing,
        "repeats": scenario.design.repeats,
    }
    for role, name in (("arm", item.arm), ("base arm", item.base_arm)):
        arm = scenario.arm_named(name)
        disk = scenario.disk_named(arm.disk)
        found |= {f"{role}: {key} of the disk": getattr(disk, key) for key in DISK_SETTINGS}
        found[f"{role}: size of the machine"] = scenario.machine_named(arm.machine).size
    load = scenario.workload_named(item.workload).model_dump(exclude=NOT_OF_THE_LOAD)
    return found | {f"workload: {key}": value for key, value in load.items()}


def history_of(
    runs: Iterable[Earlier],
    scenario: Scenario,
    items: Iterable[Comparison],
    manifest: Mapping[str, Any] | None = None,
) -> dict[tuple[Comparison, str], prior_runs.Prior]:
    """Collect the histories of comparisons from runs that the user named, by comparison and direction.

    Parameters
    ----------
    runs
        Earlier runs of the same cells.
    scenario, items
        What is compared now.
    manifest
        Of the run to be analysed, for its provenance; without one (planning) the first run's counts.

    Raises
    ------
    UsageError
        When a run measured another cell, or is no evidence; run, cause and remedy are named.
    """
    known, wanted = list(runs), list(items)
    if not known:
        raise UsageError("a history needs at least one run; name it with --history RUN")
    pasts: dict[tuple[Comparison, str], list[prior_runs.Past]] = {}
    for earlier in known:
        if manifest and manifest["run"] == earlier.manifest["run"]:
            raise UsageError(f"--history {earlier.name}: a run is not its own history; name earlier runs")
        for item in wanted:
            _same_cell(earlier, item, cell(scenario, item, manifest or known[0].manifest))
        for found in earlier.measured(wanted):
            pasts.setdefault((found.item, found.direction), []).append(_past(earlier, found))
    try:
        return {key: prior_runs.pool(runs_of_cell) for key, runs_of_cell in pasts.items()}
    except ValueError as error:
        raise UsageError(f"--history: {error}") from None


def with_history(run: Earlier, named: Iterable[Earlier]) -> list[tuple[Measured, prior_runs.Moderated]]:
    """Interval for "disks like these" of every headline comparison of a run, with a history that is named.

    Comparisons that the run itself refuses are left out. Where the run's replicates lie in several strata
    the history is not used: they are judged apart.

    Raises
    ------
    UsageError
        As `history_of`.
    """
    items = [item for item in run.scenario.comparison if item.family == "headline"]
    measured_now = run.measured(items)
    usable = [measured for measured in measured_now if not measured.refusal and not measured.hidden]
    compared = dict.fromkeys(measured.item for measured in usable)
    priors = history_of(named, run.scenario, compared, run.manifest)
    found = []
    for measured in usable:
        one = prior_runs.moderated(measured.log_ratios, priors[measured.item, measured.direction])
        if measured.strata:
            refusal = f"the replicates lie in {len(measured.strata)} strata, each of which is judged apart"
            one = prior_runs.Moderated(one.plain, one.plain, refusal, math.nan)
        found.append((measured, one))
    return found


def _past(earlier: Earlier, found: Measured) -> prior_runs.Past:
    problem = found.refusal or found.hidden
    if not problem and found.strata:
        problem = f"its replicates lie in {len(found.strata)} strata, whose difference is no noise"
    if not problem:
        try:
            return prior_runs.past(earlier.name, found.log_ratios)
        except ValueError as error:
            problem = str(error)
    raise UsageError(
        f"--history {earlier.name}: no history for {found.label}, since {problem}; leave the run out"
    )


def _same_cell(earlier: Earlier, item: Comparison, wanted: Mapping[str, Any]) -> None:
    names = {arm.name for arm in earlier.scenario.arm} | {load.name for load in earlier.scenario.workload}
    missing = [name for name in (item.arm, item.base_arm, item.workload) if name not in names]
    if missing:
        raise UsageError(f"--history {earlier.name}: it has no {missing[0]}; name runs of the same cell")
    found = cell(earlier.scenario, item, earlier.manifest)
    for key, value in wanted.items():
        if found[key] != value:
            raise UsageError(
                f"--history {earlier.name}: another cell ({key} is {found[key]}, not {value}); "
                "its spread says nothing about this one"
            )
