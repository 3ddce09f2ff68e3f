"""Figures of a run's analysis, as every scenario has them: each drawn from the tables, its title computed."""

from __future__ import annotations

import math
from collections.abc import Sequence

from diskbook.design.model import Workload
from diskbook.design.vocabulary import Verdict
from diskbook.facts import quantities
from diskbook.report import figures
from diskbook.report.figures import Picture
from diskbook.report.show import headlines, sentences
from diskbook.report.show.analysed import Analysed
from diskbook.stats import evidence


def ratios(a: Analysed) -> Picture:
    """Draw all latency ratios as a forest plot."""
    return figures.forest(a.comparisons, a.looks, a.words, _ratio_title(a), a.run.name)


def all_trials(a: Analysed) -> Picture:
    """Draw every trial at queue depth 1, or the lowest depth there is, as a dot strip."""
    depth, names = _shallowest(a.scenario.workload)
    of_ratios = " behind the ratios" if a.scenario.comparison else ""
    title = f"Every trial at queue depth {depth}: the spread{of_ratios}, block by block"
    return figures.strip(a.trials, a.looks, a.words, names, title, a.run.name)


def percentile_plot(a: Analysed) -> Picture:
    """Draw latency percentiles at queue depth 1, or the lowest depth there is."""
    plain = [item for item in a.scenario.workload if not item.sync]
    depth, names = _shallowest(plain or a.scenario.workload)
    title = f"The slow I/Os at queue depth {depth}: percentiles of total latency by arm"
    return figures.tail(a.tables.bins, a.trials, a.looks, a.words, names, title, a.run.name)


def load_curve(a: Analysed) -> Picture | None:
    """Draw latency against the rates that were held; None where no arm has three of one kind of load."""
    held = [item.name for item in a.scenario.workload if item.rate]
    kinds = {name: a.words[name].partition(", depth")[0] for name in held}
    on_demand = [item.name for item in a.scenario.arm if a.scenario.disk_of(item).bursting]
    points = evidence.load_curve_points(a.trials, kinds, on_demand)
    return figures.load_curve(points, a.looks, a.run.name, a.provenance) if len(points) else None


def _shallowest(loads: Sequence[Workload]) -> tuple[int, list[str]]:
    """Return the lowest number of outstanding I/Os, and the names of the loads that have it."""
    depth = min(item.outstanding for item in loads)
    return depth, [item.name for item in loads if item.outstanding == depth]


def _ratio_title(a: Analysed) -> str:
    lines = headlines.of(a.comparisons, a.scenario)
    rows = [row for row in (lines.lead, *lines.others) if row and row["metric"] == "lat_mean_ms"]
    row = next((row for row in rows if not math.isnan(row["ratio"])), None)
    if row is None:
        return "No latency ratio to show"
    plain = sentences.is_plain(row)
    load = sentences.load_words(a.scenario.workload_named(row["workload"]), plain=plain)
    arm, base = a.labels[row["arm"]], a.labels[row["base_arm"]]
    finding = f"{arm} takes {quantities.changed(row['ratio'], 'longer', 'less time')} than {base}"
    if row["verdict"] != Verdict.DIFFERENCE:
        finding = f"{arm} against {base}: {row['verdict']}"
    return f"{load[0].upper()}{load[1:]}: {finding}"
