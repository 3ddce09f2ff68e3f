"""A run's analysis as data: its tables, comparisons, gates, cells and percentiles, computed when asked."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import pandas as pd

from diskbook.design.model import Workload
from diskbook.design.vocabulary import WITHHELD, Provenance
from diskbook.facts import quantities
from diskbook.facts.table_writers import capital
from diskbook.report.analysis import companion_files, protocol as run_protocol
from diskbook.report.analysis.computed import Computed
from diskbook.report.show import headlines, lead, locations, sentences
from diskbook.report.show.analysed import Analysed, ReplicateCost
from diskbook.results import tables as store_tables
from diskbook.results.run import Run, open_run
from diskbook.stats import evidence, limits, percentiles as stats_percentiles
from diskbook.stats.gates.design import unpaired
from diskbook.stats.protocol import Conformance

if TYPE_CHECKING:  # with them comes matplotlib, which an answer in words does not need
    from diskbook.report.figures import ArmLook, Picture, RunSource


def ratios(a: Analysed) -> Picture:
    """Draw all latency ratios as a forest plot."""
    from diskbook.report import figures

    return figures.forest(a.comparisons, a.looks, a.words, _ratio_title(a), a.source)


def all_trials(a: Analysed) -> Picture:
    """Draw every trial at queue depth 1, or the lowest depth there is, as a dot strip."""
    from diskbook.report import figures

    depth, names = _shallowest(a.scenario.workload)
    totals = limits.trial_totals(a.trials)
    title = _apart_title(a, totals, names) or _spread_title(totals, depth, names)
    return figures.strip(a.trials, a.looks, a.words, names, title, a.source)


def percentile_plot(a: Analysed) -> Picture:
    """Draw latency percentiles at queue depth 1, or the lowest depth there is."""
    from diskbook.report import figures

    plain = [item for item in a.scenario.workload if not item.sync]
    _, names = _shallowest(plain or a.scenario.workload)
    return figures.tail(a.tables.bins, a.trials, a.looks, a.words, names, a.source)


def load_curve(a: Analysed) -> Picture | None:
    """Draw latency against the rates that were held; None where no arm has three of one kind of load."""
    from diskbook.report import figures

    held = [item.name for item in a.scenario.workload if item.rate]
    kinds = {name: a.words[name].partition(", depth")[0] for name in held}
    on_demand = [item.name for item in a.scenario.arm if a.scenario.disk_of(item).bursting]
    points = evidence.load_curve_points(a.trials, kinds, on_demand)
    return figures.load_curve(points, a.looks, a.source, a.provenance) if len(points) else None


def _shallowest(loads: Sequence[Workload]) -> tuple[int, list[str]]:
    """Return the lowest number of outstanding I/Os, and the names of the loads that have it."""
    depth = min(item.outstanding for item in loads)
    return depth, [item.name for item in loads if item.outstanding == depth]


def source(a: Analysed) -> RunSource:
    """Say in a line when, where and on what a run was measured, by whom, and the licence."""
    from diskbook.report.figures import RunSource

    day = "" if a.trials.empty else f"{a.trials['started_utc'].min():%Y-%m-%d}"
    by_sku: dict[str, list[int]] = {}
    for disk in a.scenario.disk:
        by_sku.setdefault(disk.sku, []).append(disk.size_gib)
    disks = [f"{sku} {quantities.reach(min(gib), max(gib), ',')} GiB" for sku, gib in by_sku.items()]
    sizes = dict.fromkeys(item.size.removeprefix("Standard_") for item in a.scenario.machine)
    whose = f"diskbook ({a.provenance}), MIT licence"
    if a.provenance == Provenance.IMPORTED:
        whose = locations.data_set(a).get("attribution", "imported: licence of its source")
    about = [f"Run {a.run.name}", day, locations.region(a)]
    parts = [", ".join(filter(None, about)), ", ".join(disks), f"VM {', '.join(sizes)}", whose]
    return RunSource(a.run.name, "; ".join(parts), a.run.folder)


def _apart_title(a: Analysed, totals: pd.DataFrame, names: Sequence[str]) -> str:
    """Say that all trials of the leading comparison differ by their arm; empty where they do not."""
    row = headlines.of(a.comparisons, a.scenario).lead
    if row is None or row["workload"] not in names:
        return ""
    of_load = totals[totals["workload"] == row["workload"]]
    first, second = (of_load.loc[of_load["arm"] == row[arm], "lat_mean_ms"] for arm in ("arm", "base_arm"))
    slower, faster = first.min() > second.max(), first.max() < second.min()
    if not (slower or faster):
        return ""
    what, is_one, *arms = lead.parts(row, a.scenario, a.labels)
    take = "takes" if is_one else "take"
    return f"In every trial, {what} {take} {'longer' if slower else 'less time'} {arms[0]} than {arms[1]}"


def _spread_title(totals: pd.DataFrame, depth: int, names: Sequence[str]) -> str:
    """Say within how much of the median of their arm most trials lie."""
    chosen = totals[totals["workload"].isin(names) & totals["lat_mean_ms"].notna()]
    if chosen.empty:
        return f"No trial at queue depth {depth} was finished"
    medians = chosen.groupby(["workload", "arm"])["lat_mean_ms"].transform("median")
    within = 100 * float((chosen["lat_mean_ms"] / medians - 1).abs().quantile(0.9))
    return f"At queue depth {depth}, 9 of 10 trials lie within {within:.2g} % of the median of their arm"


def _ratio_title(a: Analysed) -> str:
    lines = headlines.of(a.comparisons, a.scenario)
    rows = [row for row in (lines.lead, *lines.others) if row and row["metric"] == "lat_mean_ms"]
    row = next((row for row in rows if not math.isnan(row["ratio"])), None)
    if row is None:
        return "No latency was compared"
    return capital(lead.claim(row, a.scenario, a.labels))


@dataclass(frozen=True)
class Analysis(Computed):
    """What was computed from a run, and how it is shown. Made by `analyse`."""

    scenario_file: Path | None = None

    @property
    def comparisons(self) -> pd.DataFrame:
        """Ratios with intervals and verdicts, two scopes each (schema of comparisons.csv).

        Reasons name arms by their labels.
        """
        flagged = sentences.flagged(self.compared.table, self.scenario, self.plain)
        return sentences.labelled(flagged, "warnings", self.labels)

    @cached_property
    def headline(self) -> str:
        """The answer in a sentence: that of the scenario's module, else the first decided comparison."""
        return self.own_headline or lead.sentence(self)

    @cached_property
    def own_headline(self) -> str:
        """What the scenario's module answers (`headline(a)`); "" where it has no such answer."""
        own = getattr(self.module, "headline", None)
        return str(own(self)) if callable(own) else ""

    @cached_property
    def protocol(self) -> tuple[Conformance, ...]:
        """What each comparison meets of the protocol, headline comparisons first."""
        return run_protocol.conformances(self, self.plan)

    @property
    def gates(self) -> pd.DataFrame:
        """What was checked before anything was compared; causes name arms by their labels."""
        return sentences.labelled(super().gates, "cause", self.labels)

    @cached_property
    def percentile_ratios(self) -> pd.DataFrame:
        """Ratios of percentiles for comparisons that passed their gates, in the scope of their verdict."""
        keys = ["arm", "base_arm", "workload"]
        judged = sentences.chosen(self.comparisons)
        alone = [unpaired(*row) for row in judged[["pairing", "scope"]].to_numpy()]
        refused = judged["verdict"].isin(WITHHELD) | (
            judged["metric"].str.startswith("lat") & judged["ratio"].isna()
        )
        judged = judged[~refused & ~np.array(alone, dtype=bool)]
        judged = judged.drop_duplicates(keys)
        named = set(judged[keys].itertuples(index=False, name=None))
        items = [
            item for item in self.scenario.comparison if (item.arm, item.base_arm, item.workload) in named
        ]
        every = stats_percentiles.percentile_ratios(self.tables.bins, self.trials, items)
        return every.merge(judged[[*keys, "scope", "nearest_zone"]], on=[*keys, "scope"])

    @cached_property
    def published(self) -> pd.DataFrame:
        """Published figures of the scenario's article beside the measured medians."""
        from diskbook.report.analysis import published, published_compared

        printed = published.read(self.scenario.scenario.article)
        assessed = published.assess(printed) if len(printed) else printed
        profile = (self.manifest.get("emulator") or {}).get("profile", "")
        return published_compared.beside(
            assessed, self.cells, self.scenario, self.provenance, calibrated=profile == "default"
        )

    @cached_property
    def replicate_cost(self) -> ReplicateCost:
        """What one replicate more would cost, at list price."""
        from diskbook.cost import estimate  # nothing else of an analysis asks for a price

        return ReplicateCost(*estimate.another_replicate(self.scenario, self.provenance))

    @cached_property
    def module(self) -> ModuleType | None:
        """The module of the scenario's analysis, None if it has none (`companion_files.module`)."""
        return companion_files.module(self.run, self.scenario_file)

    @cached_property
    def words(self) -> dict[str, str]:
        """Workloads in words."""
        arms = {load: {arm for arm, name in self.plain if name == load} for _, load in self.plain}
        measured = self.trials.groupby("workload")["arm"].agg(set)
        plain = [load for load, of_load in arms.items() if of_load >= measured[load]]
        return sentences.workload_words(self.scenario, plain)

    @cached_property
    def plain(self) -> sentences.PlainCells:
        """Cells whose writes were to be durable and were plain ones, with the reason."""
        return sentences.plain_cells(self.scenario, self.trials, self.tables.guest)

    @cached_property
    def looks(self) -> dict[str, ArmLook]:
        """How each arm is drawn."""
        from diskbook.report import figures

        return figures.looks(self.scenario)

    @cached_property
    def labels(self) -> dict[str, str]:
        """Arms in words."""
        return {name: look.label for name, look in self.looks.items()}

    @cached_property
    def source(self) -> RunSource:
        """The run's name, with the line on its source that figures carry."""
        return source(self)

    @cached_property
    def ratios(self) -> Picture:
        """Forest plot of all latency ratios."""
        return ratios(self)

    @cached_property
    def all_trials(self) -> Picture:
        """Dot strip of every trial at queue depth 1, or the lowest depth there is."""
        return all_trials(self)

    @cached_property
    def percentile_plot(self) -> Picture:
        """Latency percentiles at queue depth 1, or the lowest depth there is."""
        return percentile_plot(self)

    @cached_property
    def load_curve(self) -> Picture | None:
        """Latency against the rates that were held, where there are three of one load or more."""
        return load_curve(self)


def analyse(
    run: str | Path | Run, scenario_file: Path | None = None, *, notebook: str | None = None
) -> Analysis:
    """Open a run and rebuild its tables from raw, which also checks every raw file against its hash.

    A run that was handed on without its raw folder is read from its tables.

    - `run`: name or folder of a run.
    - `scenario_file`: the scenario's file as the user named it, for what lies beside it
      (`companion_files.module`).
    - `notebook`: name of the notebook that asks, which has to be that of the run's scenario.

    Raises UsageError, DiskbookError when there is no such run, its folder is damaged, or another notebook
    analyses it.
    """
    opened = run if isinstance(run, Run) else open_run(run)
    if notebook is not None:
        companion_files.check_notebook(opened, notebook)
    return Analysis(opened, opened.scenario, opened.manifest, store_tables.rebuilt(opened), scenario_file)


def analyse_with(run: str, manifest: Mapping[str, Any]) -> Analysis:
    """Analyse a run with another manifest than its own, e.g. with other limits; none of it is kept.

    Raises UsageError, DiskbookError when there is no such run, its raw results are not there, or its folder
    is damaged.
    """
    opened = open_run(run)
    return Analysis(opened, opened.scenario, manifest, store_tables.build(opened, manifest))


A = TypeVar("A")
V = TypeVar("V")


def once(compute: Callable[[A], V]) -> Callable[[A], V]:
    """Keep what a function makes of an analysis: several cells of a notebook ask, and the last one exports.

    Everybody gets the same object, so nobody may change it.
    """
    kept = f"{compute.__module__}.{compute.__qualname__}"

    @functools.wraps(compute)
    def kept_or_computed(a: A) -> V:
        if kept not in a.__dict__:
            a.__dict__[kept] = compute(a)
        value: V = a.__dict__[kept]
        return value

    return kept_or_computed
