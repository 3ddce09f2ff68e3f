"""Figures of a run's analysis, as every scenario has them: each drawn from the tables, its title computed."""

from __future__ import annotations

import math
from collections.abc import Sequence

import pandas as pd

from diskbook.design.model import Workload
from diskbook.design.vocabulary import Provenance
from diskbook.facts import quantities
from diskbook.facts.table_writers import capital
from diskbook.report import figures
from diskbook.report.figures import Picture, RunSource
from diskbook.report.show import header_card, headlines, lead
from diskbook.report.show.analysed import Analysed
from diskbook.stats import evidence, limits


def ratios(a: Analysed) -> Picture:
    """Draw all latency ratios as a forest plot."""
    return figures.forest(a.comparisons, a.looks, a.words, _ratio_title(a), a.source)


def all_trials(a: Analysed) -> Picture:
    """Draw every trial at queue depth 1, or the lowest depth there is, as a dot strip."""
    depth, names = _shallowest(a.scenario.workload)
    totals = limits.trial_totals(a.trials)
    title = _apart_title(a, totals, names) or _spread_title(totals, depth, names)
    return figures.strip(a.trials, a.looks, a.words, names, title, a.source)


def percentile_plot(a: Analysed) -> Picture:
    """Draw latency percentiles at queue depth 1, or the lowest depth there is."""
    plain = [item for item in a.scenario.workload if not item.sync]
    _, names = _shallowest(plain or a.scenario.workload)
    return figures.tail(a.tables.bins, a.trials, a.looks, a.words, names, a.source)


def load_curve(a: Analysed) -> Picture | None:
    """Draw latency against the rates that were held; None where no arm has three of one kind of load."""
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
    day = "" if a.trials.empty else f"{a.trials['started_utc'].min():%Y-%m-%d}"
    by_sku: dict[str, list[int]] = {}
    for disk in a.scenario.disk:
        by_sku.setdefault(disk.sku, []).append(disk.size_gib)
    disks = [f"{sku} {quantities.reach(min(gib), max(gib), ',')} GiB" for sku, gib in by_sku.items()]
    sizes = dict.fromkeys(item.size.removeprefix("Standard_") for item in a.scenario.machine)
    whose = f"diskbook ({a.provenance}), MIT licence"
    if a.provenance == Provenance.IMPORTED:
        whose = header_card.data_set(a).get("attribution", "imported: licence of its source")
    about = [f"Run {a.run.name}", day, header_card.region(a)]
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
