"""The analysis of a run in one object, for the notebook: read, compare, draw, write."""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from diskbook import figures
from diskbook.analysis import prior_runs
from diskbook.analysis.published import compared as published_compared, figures as published
from diskbook.base.files import write_atomic
from diskbook.figures import ArmLook, Picture
from diskbook.scenario.model import Scenario, Workload
from diskbook.show import sentences, tool as show_tool
from diskbook.stats import percentile_ratios as stats_percentile_ratios, percentiles as stats_percentiles
from diskbook.stats.compare import Compared, compare
from diskbook.stats.gates.design import unpaired
from diskbook.store import tables as store_tables
from diskbook.store.run import Run, open_run
from diskbook.tables import schema
from diskbook.tables.vocabulary import WITHHELD, Label, Verdict
from diskbook.throttling import evidence, limits, platform as platform_metrics

MODULES = {
    "3-analyse-disk-options": "diskbook.analysis.disk_options",
    "3-analyse-shared-zrs": "diskbook.analysis.shared_zrs",
}
"""Modules of analyses with figures of their own, by notebook."""


@dataclass(frozen=True)
class Analysis:
    """Everything the analysis notebook shows. Made by `analyse`; computes when asked, once."""

    folder: Run
    scenario: Scenario
    manifest: Mapping[str, Any]
    tables: store_tables.Tables

    @property
    def trials(self) -> pd.DataFrame:
        """One row a trial and direction."""
        return self.tables.trials

    @property
    def provenance(self) -> str:
        """Where the numbers come from: azure, emulated, inventory ..."""
        return str(self.manifest["provenance"])

    @cached_property
    def compared(self) -> Compared:
        """Comparisons, gates and labelled cells."""
        directions = {item.name: _directions(item) for item in self.scenario.workload}
        return compare(
            self.trials,
            self.scenario.comparison,
            self.tables.series,
            self._mismatches(),
            directions=directions,
            zone_redundant=self.scenario.zone_redundant_arms,
            consumed_pct=platform_metrics.consumed_by_cell(self.trials, self.tables.metrics),
        )

    @property
    def comparisons(self) -> pd.DataFrame:
        """Ratios with intervals and verdicts, two scopes each (schema of comparisons.csv)."""
        return show_tool.flagged(self.compared.table, self.scenario)

    @property
    def gates(self) -> pd.DataFrame:
        """What was checked before anything was compared."""
        return self.compared.gates

    @cached_property
    def cells(self) -> pd.DataFrame:
        """Every arm x workload with its label: below cap or capped, by which limit, and the evidence."""
        items = self.scenario.arm
        on_demand = [item.name for item in items if self.scenario.disk_named(item.disk).bursting]
        return evidence.with_evidence(
            self.compared.cells, self.trials, self.tables.metrics, on_demand, self.folder.ledger()
        )

    @property
    def headline(self) -> str:
        """The answer in one sentence."""
        return sentences.headline(self.comparisons, self.scenario)

    @property
    def answers(self) -> list[str]:
        """All headline comparisons, one sentence each."""
        return sentences.answers(self.comparisons, self.scenario)

    def said(self, arm: str, base_arm: str, workload: str, metric: str = "lat_mean_ms") -> str:
        """One comparison in a sentence."""
        rows = sentences.chosen(self.comparisons)
        wanted = {"arm": arm, "base_arm": base_arm, "workload": workload, "metric": metric}
        for name, value in wanted.items():
            rows = rows[rows[name] == value]
        return sentences.sentence(rows.iloc[0].to_dict(), self.scenario) if len(rows) else "not compared"

    @cached_property
    def words(self) -> dict[str, str]:
        """Workloads in words."""
        return sentences.workload_words(self.scenario)

    @cached_property
    def looks(self) -> dict[str, ArmLook]:
        """How each arm is drawn."""
        return figures.looks(self.scenario)

    @cached_property
    def labels(self) -> dict[str, str]:
        """Arms in words."""
        return {name: look.label for name, look in self.looks.items()}

    @cached_property
    def percentiles(self) -> pd.DataFrame:
        """Percentiles from merged histograms, only those with enough I/Os behind them."""
        return stats_percentiles.percentiles(self.tables.bins, self.trials)

    @cached_property
    def percentile_ratios(self) -> pd.DataFrame:
        """Ratios of percentiles for comparisons that passed their gates, in the scope of their verdict."""
        keys = ["arm", "base_arm", "workload"]
        judged = sentences.chosen(self.comparisons)
        alone = [unpaired(*row) for row in judged[["pairing", "n_replicates"]].to_numpy()]
        judged = judged[~judged["verdict"].isin(WITHHELD) & ~np.array(alone, dtype=bool)]
        judged = judged.drop_duplicates(keys)
        named = set(judged[keys].itertuples(index=False, name=None))
        items = [
            item for item in self.scenario.comparison if (item.arm, item.base_arm, item.workload) in named
        ]
        found = stats_percentile_ratios.percentile_ratios(self.tables.bins, self.trials, items)
        return found.merge(judged[[*keys, "scope"]], on=[*keys, "scope"])

    @cached_property
    def published(self) -> pd.DataFrame:
        """Published figures of the scenario's article beside the measured medians."""
        assessed = published.assess(published.read(self.scenario.scenario.article))
        profile = (self.manifest.get("emulator") or {}).get("profile", "")
        return published_compared.beside(
            assessed, self.cells, self.scenario, self.provenance, calibrated=profile == "default"
        )

    @cached_property
    def ratios(self) -> Picture:
        """Forest plot of all latency ratios."""
        return figures.forest(self.comparisons, self.looks, self.words, self._ratio_title(), self.folder.name)

    @cached_property
    def all_trials(self) -> Picture:
        """Dot strip of every trial at queue depth 1, or the lowest depth there is."""
        depth, names = _shallowest(self.scenario.workload)
        title = f"Every trial at queue depth {depth}: the spread behind the ratios, block by block"
        return figures.strip(self.trials, self.looks, self.words, names, title, self.folder.name)

    @cached_property
    def percentile_plot(self) -> Picture:
        """Latency percentiles at queue depth 1, or the lowest depth there is."""
        plain = [item for item in self.scenario.workload if not item.sync]
        depth, single = _shallowest(plain or self.scenario.workload)
        title = f"The slow I/Os at queue depth {depth}: percentiles of total latency by arm"
        return figures.tail(
            self.tables.bins, self.trials, self.looks, self.words, single, title, self.folder.name
        )

    @cached_property
    def iops_and_caps(self) -> Picture:
        """IOPS at each depth, with the limits in force."""
        title = self._cap_title()
        return figures.rates(self.trials, self.cells, self.looks, self._panels(), title, self.folder.name)

    @property
    def findings(self) -> pd.DataFrame:
        """What the scenario's checks showed: refusals that must happen, data that must be intact."""
        rows = [event for event in self.folder.ledger() if event["event"] == "finding"]
        columns = {"name": "Check", "ok": "As expected", "expected": "Expected", "observed": "Observed"}
        table = pd.DataFrame(rows, columns=[*columns, "text"]).rename(
            columns={**columns, "text": "What was seen"}
        )
        return table.assign(**{"As expected": table["As expected"].map({True: "yes", False: "no"})})

    @property
    def operations(self) -> pd.DataFrame:
        """Times of control-plane operations, in seconds."""
        rows = [event for event in self.folder.ledger() if event["event"] == "operation"]
        table = pd.DataFrame(rows, columns=["name", "real_s", "unscaled_s"])
        numbers = table.astype({"real_s": float, "unscaled_s": float}).groupby("name", sort=False)
        names = {"size": "Number", "real_s": "Median, s (as run)", "unscaled_s": "Median, s (unscaled)"}
        medians = numbers[["real_s", "unscaled_s"]].median()
        return (
            medians.assign(size=numbers.size())[list(names)]
            .rename(columns=names)
            .reset_index(names="Operation")
        )

    def environment(self) -> pd.DataFrame:
        """Versions, machines, zones, disks and dates, one row a fact."""
        rows = [("run", self.folder.name), ("provenance", self.provenance)]
        rows += [("cloud", str(self.manifest.get("cloud", ""))), ("preset", self.scenario.preset)]
        changed = self.manifest.get("overrides") or {}
        if changed:
            rows.append(("changed by hand", ", ".join(f"{key} = {value}" for key, value in changed.items())))
        emulator = self.manifest.get("emulator") or {}
        if emulator:
            rows.append(("emulator profile", f"{emulator.get('profile')}, seed {emulator.get('seed')}"))
        rows += [("date (UTC)", _dates(self.trials)), ("region", self.scenario.region)]
        rows += _unique(
            "machine",
            self.manifest["replicates"],
            "machines",
            ("size", "physical_zone", "kernel", "tool_version"),
        )
        rows += _unique("disk", self.manifest["replicates"], "disks", ("sku", "physical_zone"))
        rows += show_tool.facts(self.scenario, self.folder.ledger())
        rows += [(name, str(version)) for name, version in self.manifest.get("versions", {}).items()]
        return pd.DataFrame(rows, columns=["What", "Value"])

    def with_history(self, runs: Sequence[str]) -> list[str]:
        """Say what earlier runs of the same cells, named here, do for the interval of disks like these.

        Raises
        ------
        UsageError
            When a run is not there, or is not of the same cells; the sentence says why.
        """
        named = [prior_runs.open_prior_run(name) for name in runs]
        found = prior_runs.with_history(prior_runs.PriorRun(self.folder), named) if named else []
        return [
            f"{self.provenance}: {measured.label}: {one.estimate.ratio:.2f} times "
            f"({100 * one.estimate.level:.0f} % CI {one.estimate.low:.2f}..{one.estimate.high:.2f}, "
            f"{one.estimate.scope}, {one.estimate.method}); {one.saved}"
            for measured, one in found
        ]

    def write(self) -> list[Path]:
        """Write comparisons.csv and the exported figures into the run folder; return their paths."""
        path = self.folder.folder / "comparisons.csv"
        checked = schema.validate(schema.COMPARISONS, self.comparisons)
        write_atomic(path, checked.to_csv(index=False, float_format="%.10g"))
        return [path, *self.export_figures(self.folder.folder / "figures")]

    @property
    def pictures(self) -> tuple[Picture, ...]:
        """Figures of the run's analysis, in the order of its notebook."""
        module = MODULES.get(self.scenario.analysis_notebook)
        if module is not None:
            found: tuple[Picture, ...] = importlib.import_module(module).pictures(self)
            return found
        return (self.ratios, self.all_trials, self.percentile_plot, self.iops_and_caps)

    def export_figures(self, target: Path) -> list[Path]:
        """Write all figures into a folder: SVG, PNG at twice the size, and words; return their paths."""
        return [path for picture in self.pictures for path in figures.export(picture, target)]

    def _mismatches(self) -> dict[str, str] | None:
        """Settings were compared when they were read back; a mismatch would have stopped the run."""
        replicates = self.manifest["replicates"]
        read = [disk.get("read_back") for row in replicates for disk in row["disks"].values()]
        return {} if read and all(read) else None

    def _ratio_title(self) -> str:
        rows = sentences.chosen(self.comparisons[self.comparisons["family"] == "headline"])
        rows = rows[rows["ratio"].notna()]
        if rows.empty:
            return "No latency ratio to show"
        row = rows.iloc[0]
        load = sentences.load_words(self.scenario.workload_named(row["workload"]))
        arm, base = self.labels[row["arm"]], self.labels[row["base_arm"]]
        finding = f"{arm} takes {row['ratio']:.2f} times as long as {base}"
        if row["verdict"] != Verdict.DIFFERENCE:
            finding = f"{arm} against {base}: {row['verdict']}"
        return f"{load[0].upper()}{load[1:]}: {finding}"

    def _cap_title(self) -> str:
        capped = self.cells[self.cells["label"] == Label.CAPPED]
        if capped.empty:
            return "IOPS by queue depth: no cell sits on a cap"
        depths = ", ".join(f"{depth:.0f}" for depth in sorted(set(capped["outstanding"])))
        limit = " and the ".join(sorted({limits.limit_words(row) for _, row in capped.iterrows()}))
        return f"At queue depth {depths} the {limit} sets the rate, not the disk"

    def _panels(self) -> dict[str, list[str]]:
        """Workloads of one kind over depths, by panel title; commits and held rates stand in none."""
        panels: dict[str, list[str]] = {}
        for item in self.scenario.workload:
            if item.sync != "fdatasync" and item.rate is None:
                panels.setdefault(self.words[item.name].rpartition(",")[0], []).append(item.name)
        return panels or {"every load": [item.name for item in self.scenario.workload]}


def _shallowest(loads: Sequence[Workload]) -> tuple[int, list[str]]:
    """Return the lowest number of outstanding I/Os, and the names of the loads that have it."""
    depth = min(item.outstanding for item in loads)
    return depth, [item.name for item in loads if item.outstanding == depth]


def analyse(run: str | Path | Run) -> Analysis:
    """Open a run and rebuild its tables from raw, which also checks every raw file against its hash.

    A run that was handed on without its raw folder is read from its tables.

    Parameters
    ----------
    run
        Name or folder of a run.

    Raises
    ------
    UsageError, DiskbookError
        When there is no such run, or its folder is damaged.
    """
    folder = run if isinstance(run, Run) else open_run(run)
    return Analysis(folder, folder.scenario, folder.manifest, store_tables.rebuilt(folder))


def _directions(item: Workload) -> list[str]:
    if item.sync == "fdatasync":
        return ["commit"]
    return {0: ["read"], 100: ["write"]}.get(item.write_pct, ["read", "write"])


def _dates(trials: pd.DataFrame) -> str:
    if trials.empty:
        return "nothing measured"
    first, last = trials["started_utc"].min(), trials["started_utc"].max()
    return f"{first:%Y-%m-%d %H:%M} to {last:%Y-%m-%d %H:%M}"


def _unique(
    what: str, replicates: list[dict[str, Any]], kind: str, keys: tuple[str, ...]
) -> list[tuple[str, str]]:
    """Each machine or disk once, with what is known of it."""
    found: dict[tuple[str, str], None] = {}
    for row in replicates:
        for name, item in row[kind].items():
            known = ", ".join(str(item[key]) for key in keys if item.get(key))
            found.setdefault((f"{what} {name}", known), None)
    return list(found)
