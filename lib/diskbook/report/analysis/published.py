"""Published figures re-examined: Little's law, the limit each may sit on, and what each supports.

A published figure is a trial like any other, so it goes through the functions that measured trials go through
(`diskbook.stats.limits`), with the limits of `data/reference` in force. It has no interval: at best runs
were averaged, and no spread was printed. What a row assumes (its `assumed` column) is said with it.

It names its disk in words ("P30", "4 x P30", "1 TiB Premium SSD", options). The limits are those that
`diskbook.facts.catalog` gives a disk or machine of a run with the same settings.
"""

import math
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from diskbook.design.vocabulary import Label
from diskbook.facts import catalog, paths
from diskbook.facts.units import MB, MB_PER_MIB
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
    size = bytes_of(first["block_size"])
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
        **caps(first.to_dict()),
    }


def bytes_of(block_size: str) -> float:
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
    assessed["supports"] = supports(assessed)
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
        "little": little(row, cell),
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


CACHED = "read/write cache"


def caps(row: Mapping[Any, Any]) -> dict[str, float]:
    """Limits of a published row under the column names of `trials`; NaN where none is known.

    Reads of a disk with host cache may be answered by the machine: neither the disk's limits nor the uncached
    ones hold for them, but the machine's cached ones. MB/s are 10^6 bytes a second.
    """
    disk = disk_limits(row["disk"], row["redundancy"], row["options"])
    machine = catalog.find_vm_size(row["vm_size"])
    own = {} if disk is None else vars(disk)
    vm = {} if machine is None else vars(machine)
    cached = {f"cap_vm_cached_{unit}": vm.get(f"cached_{unit}") for unit in ("iops", "mb_s")}
    uncached = {f"cap_disk_{name}": own.get(name) for name in ("iops", "mb_s", "burst_iops", "burst_mb_s")}
    uncached |= {
        f"cap_vm_{name}": vm.get(f"uncached_{name}") for name in ("iops", "mb_s", "burst_iops", "burst_mb_s")
    }
    in_force = {
        **(dict.fromkeys(uncached) if cached_read(row) else uncached),
        **(cached if CACHED in row["options"] else dict.fromkeys(cached)),
    }
    return {name: math.nan if value is None else float(value) for name, value in in_force.items()}


def cached_read(row: Mapping[Any, Any]) -> bool:
    """Whether the host cache may have answered: a read of a disk that has one."""
    return CACHED in row["options"] and row["write_pct"] == "0"


def disk_limits(disk: str, redundancy: str, options: str) -> catalog.DiskLimits | None:
    """Limits of a disk named in words, several of a kind added; None for a disk that is not known.

    Examples: "P30", "4 x P30 (Storage Spaces ...)", "1 TiB Premium SSD" with "bursting + performance plus",
    "1 TiB Premium SSD v2" with "8000 IOPS + 300 MB/s".
    """
    tiers = {tier.tier: tier for tier in catalog.disk_tiers()}
    named = re.match(r"(?:(\d+) x )?(P\d+)\b", disk)
    if named and named[2] in tiers:
        number, tier = int(named[1] or 1), tiers[named[2]]
        return catalog.DiskLimits(tier.tier, number * tier.iops, number * tier.mb_s)
    sized = re.match(r"(\d+) TiB Premium SSD( v2)?$", disk)
    if not sized:
        return None
    asked = re.search(r"(\d+) IOPS \+ (\d+) MB/s", options)
    return catalog.disk_limits(
        "PremiumV2_LRS" if sized[2] else f"Premium_{redundancy}",
        1024 * int(sized[1]),
        bursting="bursting" in options,
        performance_plus="performance plus" in options,
        iops=int(asked[1]) if asked else None,
        mb_s=int(asked[2]) if asked else None,
        max_shares=2 if "shared" in options else 1,
    )


LIMITS_STATED = {
    "cap_iops": "cap_disk_iops",
    "cap_throughput": "cap_disk_mb_s",
    "vm_cap_iops": "cap_vm_iops",
    "vm_cap_throughput": "cap_vm_mb_s",
    "vm_burst_cap_iops": "cap_vm_burst_iops",
    "vm_burst_cap_throughput": "cap_vm_burst_mb_s",
}
"""Metrics that state a limit, and where `data/reference` has it."""
STEP_IOPS = 500
"""Limits of disks and machines are mostly multiples of this, so that an unknown one can be suspected."""


def little(row: Mapping[Any, Any], cell: Mapping[Any, Any]) -> str:
    """Little's law in words: how many were in flight, or the side of the law that was not printed."""
    n = row["outstanding"]
    if not math.isnan(cell["in_flight"]):
        return f"{cell['in_flight']:.2f} in flight of {n:.0f}"
    if row["metric"] in ("lat_mean", "access_time"):
        return f"{1000.0 * n / row['value']:,.0f} IOPS"
    return f"{cell['lat_mean_ms']:.2f} ms"


def supports(assessed: pd.DataFrame) -> list[str]:
    """One sentence a figure: what it supports, on how many runs, and what it assumes."""
    lines = []
    for row in assessed.to_dict("records"):
        sentence = (
            _supports_stated(row, assessed)
            if row["label"] == Label.STATED
            else _supports_measured(row, assessed)
        )
        lines.append("; ".join(filter(None, [sentence, _runs(row), _assumed(row)])))
    return lines


def _runs(row: Mapping[Any, Any]) -> str:
    if row["label"] == Label.STATED or row["tool"] == "quoted":
        return ""
    if row["runs"] == "1":
        return "1 run, no spread printed: no interval"
    runs = row["runs"].replace(">=10", "10 or more") or "an unknown number of"
    return f"{runs} runs averaged, no spread printed: no interval"


def _assumed(row: Mapping[Any, Any]) -> str:
    return f"assumed: {row['assumed'].replace('; ', ', ').replace('_', ' ')}" if row["assumed"] else ""


def _supports_measured(row: Mapping[Any, Any], assessed: pd.DataFrame) -> str:
    if row["tool"] == "quoted":
        return f"quoted, not measured: {row['outstanding']:.0f} / {row['value']:g} ms is {row['little']}"
    if row["on_cap"]:
        return _capped(row)
    if row["label"] == Label.NO_LIMIT_KNOWN or cached_read(row):
        return _cached(row)
    if row["metric"] == "access_time":
        return "an access time as HD Tune counts it, its pattern unknown; no limit is near"
    if row["metric"] == "lat_mean" and row["outstanding"] == 1:
        return "latency at queue depth 1, below every cap"
    depth = f"the response time at {row['outstanding']:.0f} outstanding, {row['lat_ms']:.2f} ms"
    return depth + _nearness(row, assessed)


def _nearness(row: Mapping[Any, Any], assessed: pd.DataFrame) -> str:
    """How far a rate is from the limits that are known, and which one may be there that is not."""
    between = between_limits(row)
    if between:
        return f", {between}: a mixture of burst and base is suspected"
    near = suspected_limit(row, assessed)
    return f", at {100 * row['share']:.0f} % of the nearest limit" + (f"; but {near}" if near else "")


def _capped(row: Mapping[Any, Any]) -> str:
    at = f"capped at {100 * row['share']:.0f} % of the {row['limit']}"
    # A measured cell whose rate nothing corroborates is "near a cap": its latency is refused as well.
    why = f" ({row['evidence'] or 'by its rate alone'})"
    if row["unit"] == "ms":
        n, rate = row["outstanding"], row["iops"]
        queue = f"{n:.0f} outstanding / {rate:,.0f} IOPS = {1000 * n / rate:.2f} ms"
        says = "queueing, nothing about the latency of this disk"
        return f"{at}{why}: {row['base']:.2f} ms is {queue}, {says}"
    return f"{at}{why}{_if_mib(row)}: says what the limit is, nothing about the disk below it"


def _if_mib(row: Mapping[Any, Any]) -> str:
    """What a rate that the tool printed in MiB/s would be of a limit that counted MiB as well."""
    if row["value"] == row["base"]:
        return ""
    of_limit = 100 * row["share"] * row["value"] / row["base"]
    return f"; the tool prints MiB/s, {of_limit:.0f} % if the limit counts MiB as well"


def _cached(row: Mapping[Any, Any]) -> str:
    own = disk_limits(row["disk"], row["redundancy"], row["options"])
    base = (own.burst_iops or own.iops) if own else math.nan
    above = row["iops"] / base - 1.0
    more = f"{100 * above:.0f} % above the disk's own {base:,.0f} IOPS, so " if above > 0.05 else ""
    may = "has answered part of it" if more else "may have answered"
    return f"{more}the host cache {may}; {_cached_limit(row)}"


def _cached_limit(row: Mapping[Any, Any]) -> str:
    if row["label"] == Label.NO_LIMIT_KNOWN:
        return "the machine's cached limit is not in data/reference"
    inferred = "cached limits inferred" in catalog.vm_size(row["vm_size"]).note
    of = "the machine's cached limit" + (", which is inferred" if inferred else "")
    return f"at {100 * row['share']:.0f} % of {of}"


def suspected_limit(row: Mapping[Any, Any], assessed: pd.DataFrame) -> str:
    """Say where a rate lies above a round number as far as the article's own capped rates lie above theirs.

    A round number within 1 % of a step of 500 IOPS is met by chance two times in a hundred: a suspicion.
    """
    same = assessed["on_cap"] & (assessed["article"] == row["article"]) & (assessed["unit"] == "IOPS")
    if not same.any() or not row["iops"] > STEP_IOPS:
        return ""
    above = float(assessed.loc[same, "share"].max())
    steps = row["iops"] / above / STEP_IOPS
    if round(steps) == 0 or abs(steps - round(steps)) > 0.01:
        return ""
    cap = STEP_IOPS * round(steps)
    same_factor = f"{row['iops']:,.0f} IOPS is {above:.2f} x {cap:,}, as the capped rate beside it"
    return f"{same_factor}: possibly another cap"


def between_limits(row: Mapping[Any, Any]) -> str:
    """Say that a rate lies between the machine's base and burst limits: its credit may have run out."""
    in_force = caps(row)
    for unit, words, value in (("iops", "IOPS", row["iops"]), ("mb_s", "MB/s", row["mb_s"])):
        base, burst = in_force[f"cap_vm_{unit}"], in_force[f"cap_vm_burst_{unit}"]
        if base * limits.OVERSHOOT < value < burst * limits.ON_LIMIT:
            return f"between the VM's base of {base:,.0f} and its burst of {burst:,.0f} {words}"
    return ""


def _supports_stated(row: Mapping[Any, Any], assessed: pd.DataFrame) -> str:
    metric = row["metric"]
    if metric in LIMITS_STATED:
        listed = caps(row)[LIMITS_STATED[metric]]
        agrees = "data/reference agrees" if listed == row["value"] else f"data/reference has {listed:,.0f}"
        name = limits.BY_COLUMN[LIMITS_STATED[metric]].name
        return f"a stated {name}, not a measurement; {agrees}"
    if metric == "lat_min":
        return f"stated, but not a minimum: {_at_depth(row, assessed)}; depth 1 was not measured"
    if metric == "threads_at_limit":
        return _threads(row, assessed)
    return "no number is printed (charts only)"


def _at_depth(row: Mapping[Any, Any], assessed: pd.DataFrame) -> str:
    """What the article did measure on that machine, and at what depth."""
    same = (assessed["article"] == row["article"]) & (assessed["vm_size"] == row["vm_size"])
    rates = assessed[same & (assessed["metric"] == "iops")]
    if rates.empty:
        return "no rate is printed beside it"
    rate = rates.iloc[0]
    n, depth = rate["outstanding"], f"{rate['outstanding']:.0f} / {rate['value']:,.0f} IOPS"
    if rate["on_cap"]:
        return f"the one rate beside it is capped ({depth} = {rate['lat_ms']:.2f} ms)"
    return f"{depth} = {rate['lat_ms']:.2f} ms is the response time at {n:.0f} outstanding"


def _threads(row: Mapping[Any, Any], assessed: pd.DataFrame) -> str:
    """Whether the threads that reached a limit are those that Little's law asks for."""
    article = assessed[assessed["article"] == row["article"]]
    rates = article[(article["metric"] == "iops") & (article["label"] == Label.BELOW_CAP)]
    caps = article[article["metric"] == "cap_iops"]
    if rates.empty or caps.empty:
        return "a stated number, not a measurement with its load beside it"
    rate, cap = rates.iloc[0], float(caps["value"].iloc[0])
    needed = cap * rate["lat_ms"] / 1000.0
    return (
        f"{row['printed']} threads of {rate['outstanding']:.0f}, as by Little's law: {cap:,.0f} IOPS at "
        f"{rate['lat_ms']:.2f} ms need {needed:.0f} in flight, {needed / rate['outstanding']:.0f} threads"
    )
