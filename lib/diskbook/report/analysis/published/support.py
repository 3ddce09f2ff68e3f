"""What a published figure supports, in one sentence made from its numbers.

A published figure names its disk in words ("P30", "4 x P30", "1 TiB Premium SSD", options). The limits are
those that `diskbook.facts.catalog` gives a disk or machine of a run with the same settings.
"""

import math
import re
from collections.abc import Mapping
from typing import Any

import pandas as pd

from diskbook.design.vocabulary import Label
from diskbook.facts import catalog
from diskbook.stats import limits

CACHED = "read/write cache"


def caps(row: Mapping[Any, Any]) -> dict[str, float]:
    """Limits of a published row under the column names of `trials`; NaN where none is known.

    Reads of a disk with host cache may be answered by the machine: neither the disk's limits nor the uncached
    ones hold for them, but the machine's cached ones. MB/s are 10^6 bytes a second.
    """
    disk, machine = disk_limits(row["disk"], row["redundancy"], row["options"]), _machine(row["vm_size"])
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


def _machine(name: str) -> catalog.VmSize | None:
    return catalog.find_vm_size(name)


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


def sentences(assessed: pd.DataFrame) -> list[str]:
    """One sentence a figure: what it supports, on how many runs, and what it assumes."""
    lines = []
    for row in assessed.to_dict("records"):
        sentence = _stated(row, assessed) if row["label"] == Label.STATED else _measured(row, assessed)
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


def _measured(row: Mapping[Any, Any], assessed: pd.DataFrame) -> str:
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


def _stated(row: Mapping[Any, Any], assessed: pd.DataFrame) -> str:
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
