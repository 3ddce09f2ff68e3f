"""Published figures re-examined: Little's law, the limit each may sit on, and what each supports.

A published figure is a trial like any other, so it goes through the functions that measured trials go through
(`diskbook.stats.limits`), with the limits of `data/reference` in force. It has no interval: at best runs
were averaged, and no spread was printed. What a row assumes (its `assumed` column) is said with it.
"""

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from diskbook.design.vocabulary import Label
from diskbook.facts import paths
from diskbook.facts.units import MB, MB_PER_MIB
from diskbook.report.analysis.published import support
from diskbook.stats import limits
from diskbook.tools import registry

MEASURED = ("iops", "throughput", "lat_mean", "access_time")
"""Metrics that were measured under a stated load; all others are stated."""
UNITS = {
    **dict.fromkeys(("iops", "cap_iops", "vm_cap_iops", "vm_burst_cap_iops"), "IOPS"),
    **dict.fromkeys(("throughput", "cap_throughput", "vm_cap_throughput", "vm_burst_cap_throughput"), "MB/s"),
    **dict.fromkeys(("lat_mean", "lat_min", "access_time"), "ms"),
    "threads_at_limit": "threads",
}
"""Base units: IOPS, MB/s of 10^6 bytes, ms."""

SETUP = ["article", "vm_size", "disk", "redundancy", "disk_zone_relation", "options", "tool"]
LOAD = ["block_size", "pattern", "write_pct", "outstanding_total"]


def read(article: str | None = None, folder: Path = paths.REFERENCE) -> pd.DataFrame:
    """Read the published figures, of one article or of all. Empty fields are empty text.

    Returns the columns of published-figures.csv, `value` as a number (NaN where none is printed), `printed`
    (the value as text) and `outstanding` (NaN where it depends on something that is not printed).
    """
    path = folder / "published-figures.csv"
    figures = pd.read_csv(path, dtype=str, keep_default_na=False)
    figures["printed"] = figures["value"]
    figures["value"] = pd.to_numeric(figures["value"], errors="coerce")
    figures["outstanding"] = pd.to_numeric(figures["outstanding_total"], errors="coerce")
    return figures if article is None else figures[figures["article"] == article].reset_index(drop=True)


def in_base_units(figures: pd.DataFrame) -> pd.Series:
    """Values in IOPS, ms and MB/s of 10^6 bytes; the "MB/s" that some tools print are MiB/s."""
    in_mib = [name for name, tool in registry.TOOLS.items() if tool.prints_mib]
    mebi = figures["tool"].isin(in_mib) & (figures["metric"] == "throughput")
    return figures["value"].where(~mebi, figures["value"] * MB_PER_MIB)


def as_trials(figures: pd.DataFrame) -> pd.DataFrame:
    """Make one trial of each set-up and load that was measured, in the columns of `trials`.

    A rate and a latency printed for the same load go into one trial. Where only one is printed the other
    follows by Little's law, a rate also from bytes a second and the block size.

    Returns `trial` (matches `figures.index` through `trial_names`), `arm` (the set-up), `workload` (the
    load), limits in force and measures; `printed_both` says that rate and latency were both printed.
    """
    rows = figures.assign(base=in_base_units(figures), trial=trial_names(figures))
    rows = rows[rows["trial"] != ""]
    made = [_trial(group) for _, group in rows.groupby("trial", sort=False)]
    return pd.DataFrame(made)


def trial_names(figures: pd.DataFrame) -> pd.Series:
    """Name the trial that each figure belongs to; empty for a stated number without its load."""
    names = figures[[*SETUP, *LOAD]].agg(" | ".join, axis=1)
    measured = figures["metric"].isin(MEASURED) & figures["outstanding"].notna() & figures["value"].gt(0)
    return names.where(measured, "")


def _trial(group: pd.DataFrame) -> dict[str, Any]:
    first = group.iloc[0]
    by_metric = group.drop_duplicates("metric").set_index("metric")["base"]
    size = _bytes(first["block_size"])
    latency = by_metric.get("lat_mean", by_metric.get("access_time", math.nan))
    rate = by_metric.get("iops", by_metric.get("throughput", math.nan) * MB / size)
    both = not math.isnan(latency) and not math.isnan(rate)
    rate = 1000.0 * first["outstanding"] / latency if math.isnan(rate) else rate
    return {
        "trial": first["trial"],
        "replicate": 1,
        "block": 1,
        "status": "ok",
        "arm": " | ".join(first[SETUP]),
        "workload": " | ".join(first[LOAD]),
        "direction": "read" if first["write_pct"] in ("", "0") else "write",
        "outstanding": first["outstanding"],
        "block_size_bytes": size,
        "iops": rate,
        "throughput_mb_s": by_metric.get("throughput", rate * size / MB),
        "lat_mean_ms": 1000.0 * first["outstanding"] / rate if math.isnan(latency) else latency,
        "printed_both": both,
        **support.caps(first.to_dict()),
    }


def _bytes(block_size: str) -> float:
    """Bytes of "8K"; NaN for "any" and for nothing."""
    return 1024.0 * float(block_size[:-1]) if block_size[:-1].isdigit() else math.nan


def assess(figures: pd.DataFrame) -> pd.DataFrame:
    """Add to each figure what it is by the rules that measured data go by.

    Returns `figures` with `base` and `unit` (value in base units), `iops`, `mb_s`, `lat_ms` (printed or
    implied), `little` (in words: I/Os in flight where rate and latency are printed, else the one that follows
    from the other), `limit` (in words), `share` (of the limit it sits on, or the largest share of any),
    `on_cap` (bool), `label` (a `Label`), `evidence` (what else shows that more depth gives no more) and
    `supports` (a sentence).
    """
    cells, names = _cells(figures), trial_names(figures)
    assessed = figures.assign(base=in_base_units(figures), unit=figures["metric"].map(UNITS).fillna(""))
    rows = [
        _measured(row, cells[name]) if name else _stated()
        for row, name in zip(assessed.to_dict("records"), names, strict=True)
    ]
    assessed = assessed.join(pd.DataFrame(rows, index=figures.index))
    assessed["supports"] = support.sentences(assessed)
    return assessed


def _cells(figures: pd.DataFrame) -> dict[str, dict[Any, Any]]:
    """Label the trials, each a cell of its own, as cells of a run are labelled; by name of the trial."""
    trials = as_trials(figures)
    if trials.empty:
        return {}
    totals = limits.trial_totals(trials)[["trial", "arm", "workload", "in_flight"]]
    totals["in_flight"] = totals["in_flight"].where(trials["printed_both"].to_numpy(bool))
    labelled = limits.label_cells(trials).drop(columns="in_flight")
    cells = totals.merge(labelled, on=["arm", "workload"])
    return {str(name): row for name, row in cells.set_index("trial").to_dict("index").items()}


def _measured(row: Mapping[Any, Any], cell: Mapping[Any, Any]) -> dict[str, Any]:
    on_cap, share = bool(cell["n_on_limit"]), cell["share"]
    below = Label.NO_LIMIT_KNOWN if math.isnan(share) else Label.BELOW_CAP
    return {
        "little": support.little(row, cell),
        "iops": cell["iops"],
        "mb_s": cell["mb_s"],
        "lat_ms": cell["lat_mean_ms"],
        "limit": limits.limit_words(cell) if on_cap else "",
        # Above a base limit that burst credit lifts, a share of that limit says nothing.
        "share": share if on_cap or share < limits.ON_LIMIT else math.nan,
        "on_cap": on_cap,
        "label": Label.CAPPED if on_cap else below,
        "evidence": cell["evidence"] if on_cap else "",
    }


def _stated() -> dict[str, Any]:
    numbers = dict.fromkeys(("iops", "mb_s", "lat_ms", "share"), math.nan)
    words = dict.fromkeys(("little", "limit", "evidence"), "")
    return {"on_cap": False, "label": Label.STATED, **numbers, **words}
