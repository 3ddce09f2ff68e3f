"""Whether a measurement's numbers can be true together, and are of what was asked for.

Little's law ties rate, latency and I/Os in flight, whatever the disk: far from it a unit was misread, or
the queue was idle. What was done is compared with what was asked for: share of writes, bytes an I/O, time,
rate. Percentiles are compared with the mean: by Markov's inequality a median is at most twice it. Pure.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import numpy as np
import pandas as pd

from diskbook.design.totals import CELL, measured_rows, trial_codes, trial_keys, trial_totals
from diskbook.facts.units import MB

FEW_IN_FLIGHT, MANY_IN_FLIGHT = 0.5, 1.3
"""Share of the outstanding I/Os that may be in flight by Little's law: below, the queue was idle, or latency
has a wrong unit; above, more was outstanding than is told."""
SHARE = 0.05
"""By how much the share of writes may differ from that asked for, and four standard deviations of chance."""
STRAY = 0.01
"""The same of a load that only reads or only writes."""
BYTES = 0.25
"""By how much bytes an I/O may differ; after a ramp a tool counts those in flight at its end as well."""
SHORT, LONG, LONG_S = 0.9, 1.25, 2.0
"""Part of the time asked for below which a trial was cut short, and what it may take longer."""
RATE = 0.05
BELOW_MEAN = 0.95
"""Part of the mean that p99 has to reach; bins of histograms are 2 % wide, those of logs up to 4 %."""
MEMORY_MS, BEYOND_LIMITS = 0.02, 2.0
"""Time per read below which memory answered, and multiple of the highest known limit that no disk reaches."""
PERIOD_MS, NEAR_MS, PERIODS, IDLE = 100.0, 7.0, 5, 0.5
"""Period of a CPU quota (Linux CFS), how near percentiles are to its multiples, how many of these, and the
part of every known limit below which a disk is far from busy."""
ABOVE_MEAN = 2.1
"""Multiple of the mean above which there is no p50: half of the I/Os alone would make a higher mean."""


Row = Mapping[Any, Any]
"""One trial of `_facts`."""


class Kind(StrEnum):
    """What is doubted, from what spoils a number to what may have a reason."""

    IN_FLIGHT = "I/Os in flight"
    CACHE = "reads at memory speed"
    MEDIAN = "p50 above the mean"
    WRITES = "share of writes"
    BYTES = "bytes an I/O"
    RATE = "rate kept"
    TIME = "time"
    TAIL = "p99 below the mean"
    REMARK = "remarks of the reader"
    DEPTHS = "equal rates over depths"

    @property
    def remedy(self) -> str:
        """What to do about it."""
        return _REMEDIES[self]


_REMEDIES = {
    Kind.IN_FLIGHT: (
        "look at the raw file for the unit of its latencies, the depth and the number of jobs; a queue that "
        "the tool leaves idle measures the tool"
    ),
    Kind.CACHE: "read past the page cache (fio: direct=1), or a file much larger than memory",
    Kind.MEDIAN: "look at the unit of the percentiles, and whether they and the mean are of the same I/Os",
    Kind.WRITES: "look at the options of the tool: I/Os that were not asked for are in these numbers",
    Kind.BYTES: "look at the options of the tool: other jobs, or another block size, are in these numbers",
    Kind.RATE: "offer a lower rate or more depth: as it is, this was a closed loop",
    Kind.TIME: "measure again for the whole time (fio: time_based), or say what ended it",
    Kind.TAIL: (
        "look at the largest latency: few I/Os of seconds do this, else mean and percentiles are not of the "
        "same I/Os"
    ),
    Kind.REMARK: "look at the raw file, and measure again what is not whole",
    Kind.DEPTHS: (
        "name the limits of disk and machine ('diskbook why' takes --disk-sku, --size-gib and --vm-size); "
        "else the tool ignored the depth"
    ),
}


@dataclass(frozen=True)
class Asked:
    """What a trial was asked to do, as far as it is told; None where it is not.

    - `outstanding`, `block_size`, `write_pct`, `runtime_s`: I/Os in flight of all jobs, bytes, share of
      writes in %, seconds.
    - `bytes_an_io`: what was done by the tool's own count; tables of a run have IOPS x block size.
    - `paced`: whether pauses, syncs or a target of latency hold it back: fewer may be in flight then.
    - `doubts`: remarks of the reader that make its numbers doubtful.
    """

    outstanding: float | None = None
    block_size: float | None = None
    write_pct: float | None = None
    runtime_s: float | None = None
    bytes_an_io: float | None = None
    paced: bool = False
    doubts: tuple[str, ...] = ()


_NUMBERS = ("outstanding", "block_size", "write_pct", "runtime_s", "bytes_an_io")
_NOTHING = Asked()


@dataclass(frozen=True)
class Doubt:
    """What speaks against the numbers of one trial, in words; `grave` where none of them can be compared."""

    arm: str
    workload: str
    kind: Kind
    words: str
    grave: bool = False
    trial: str = ""


def doubts(
    trials: pd.DataFrame,
    asked: Mapping[str, Asked],
    rows: pd.DataFrame | None = None,
    totals: pd.DataFrame | None = None,
) -> list[Doubt]:
    """Look at every finished trial; return what speaks against its numbers, kind by kind.

    - `asked`: what each trial was asked to do, by its name; one that is missing is not compared.
    - `rows`, `totals`: `measured_rows(trials)` and `trial_totals(trials)`, where they are known already.
    """
    rows = measured_rows(trials) if rows is None else rows
    facts = _facts(trials, asked, rows, trial_totals(trials, rows) if totals is None else totals)
    by_look = [(look, look.far(facts)) for look in _LOOKS]
    return [
        Doubt(row["arm"], row["workload"], look.kind, look.words(row), look.grave, row["trial"])
        for look, far in by_look
        if far.any()
        for row in facts[far].to_dict("records")
    ]


def one_rate(cells: pd.DataFrame) -> list[Doubt]:
    """Cells of which another depth gives the same rate, and no limit that was named explains it."""
    if "one_rate" not in cells:
        return []
    names = ["arm", "workload", "one_rate"]
    rows = cells.loc[(cells["one_rate"] != "") & (cells["n_on_limit"] == 0), names].to_dict("records")
    return [Doubt(str(row["arm"]), str(row["workload"]), Kind.DEPTHS, str(row["one_rate"])) for row in rows]


def _facts(
    trials: pd.DataFrame, asked: Mapping[str, Asked], rows: pd.DataFrame, totals: pd.DataFrame
) -> pd.DataFrame:
    """One row a finished trial: totals, what each direction did, percentiles, and what was asked for."""
    trial = trial_keys(totals)
    names = [*trial, *CELL, "in_flight", "iops", "lat_mean_ms", "rate_offered", "runtime_s"]
    done = trials[(trials["status"] == "ok") & trials["direction"].isin(["read", "write"])]
    at = trial_codes(pd.concat([totals[trial], done[trial]]))[len(totals) :]
    there = np.bincount(at, minlength=len(totals)) > 0
    iops = done["iops"].to_numpy(float, na_value=np.nan)
    ios = done["ios"].to_numpy(float, na_value=np.nan) if "ios" in done else np.full(len(done), np.nan)
    written = np.where(done["direction"] == "write", iops, 0.0)
    sums = {
        name: np.where(there, np.bincount(at, values, len(totals)), np.nan)
        for name, values in (("ios", ios), ("done_iops", iops), ("written_iops", written))
    }
    facts = totals[names].join(_farthest_percentiles(rows)).join(_limits(rows))
    known = [asked.get(name, _NOTHING) for name in facts["trial"].tolist()]
    numbers = np.array([[getattr(item, name) for name in _NUMBERS] for item in known], dtype=float)
    numbers = numbers.reshape(len(known), len(_NUMBERS))
    held = np.array([item.paced for item in known], dtype=bool)
    return facts.assign(
        **sums,
        **{f"asked_{name}": values for name, values in zip(_NUMBERS, numbers.T, strict=True)},
        doubts=pd.Series([item.doubts for item in known], index=facts.index, dtype=object),
        held_back=held | facts["rate_offered"].notna(),
    )


def _farthest_percentiles(rows: pd.DataFrame) -> pd.DataFrame:
    """By number of a trial, p50 and p99 as multiples of the mean of a direction: greatest and least."""
    columns = {"p50_of_mean": "lat_p50_ms", "p99_of_mean": "lat_p99_ms"}
    mean = rows["lat_mean_ms"].where(rows["lat_mean_ms"] > 0)
    parts = pd.DataFrame(
        {name: rows[column] / mean if column in rows else np.nan for name, column in columns.items()},
        index=rows.index,
    )
    by_trial = parts.groupby(trial_codes(rows))
    return by_trial.agg({"p50_of_mean": "max", "p99_of_mean": "min"})


def _limits(rows: pd.DataFrame) -> pd.DataFrame:
    """By number of a trial: its MB/s, the highest limit of these, and its share of the lowest limit known."""
    iops, mb_s = (rows.filter(regex=rf"^cap_(disk|vm)_.*{unit}$").astype(float) for unit in ("iops", "mb_s"))
    rate = rows["iops"].astype(float)
    done = rate * rows["block_size_bytes"].astype(float) / MB
    share = pd.concat([rate / iops.min(axis=1), done / mb_s.min(axis=1)], axis=1).max(axis=1)
    parts = pd.DataFrame({"read_mb_s": done, "most_mb_s": mb_s.max(axis=1), "share": share})
    return parts.groupby(trial_codes(rows)).agg({"read_mb_s": "sum", "most_mb_s": "max", "share": "sum"})


def quota_hints(trials: pd.DataFrame) -> list[str]:
    """Say which cells stall as under a CPU quota: percentiles at multiples of 100 ms, the disk far from busy.

    A container that has used up its quota sleeps until the next period of 100 ms begins, whatever the disk.
    """
    rows = measured_rows(trials)
    names = [name for name in ("lat_p50_ms", "lat_p95_ms", "lat_p99_ms", "lat_p999_ms") if name in rows]
    values = rows[names].to_numpy(float, na_value=np.nan)
    periods = np.round(values / PERIOD_MS)
    near = (np.abs(values - PERIOD_MS * periods) <= NEAR_MS) & (periods >= 1) & (periods <= PERIODS)
    distinct = [len(set(of_row[kept])) for of_row, kept in zip(periods, near, strict=True)]
    known = _limits(rows).reindex(trial_codes(rows)).set_axis(rows.index)
    stalls = (np.array(distinct) >= 2) & ~(known["share"] > IDLE)
    cells = (
        pd.Series(stalls, rows.index).groupby([rows[name] for name in CELL], sort=False).mean().reset_index()
    )
    return [
        f"{arm}, {load}: percentiles at multiples of {PERIOD_MS:.0f} ms far below every known limit: a CPU "
        "quota of the container may stall it, not the disk. What helps: measure without the quota"
        for arm, load, share in cells.itertuples(index=False, name=None)
        if share > 0.5
    ]


@dataclass(frozen=True)
class _Look:
    """One check: which trials are far off, in words why, and whether that spoils every comparison."""

    kind: Kind
    far: Callable[[pd.DataFrame], pd.Series]
    words: Callable[[Row], str]
    grave: bool = False


def _in_flight(facts: pd.DataFrame) -> pd.Series:
    """IOPS x mean latency is far from what was outstanding; of what was held back only far above it."""
    share = facts["in_flight"] / facts["asked_outstanding"]
    drain = facts["lat_mean_ms"] / 1000 / facts["runtime_s"].where(facts["runtime_s"] > 0)
    many = share > MANY_IN_FLIGHT + drain.fillna(0.0)
    return many | ((share < FEW_IN_FLIGHT) & ~facts["held_back"])


def _in_flight_words(row: Row) -> str:
    share = row["in_flight"] / row["asked_outstanding"]
    why = "more was outstanding than is told" if share > 1 else "the queue was idle"
    outstanding = f"{row['asked_outstanding']:,.0f} outstanding"
    return (
        f"IOPS x mean latency is {_multiple(share)} the {outstanding}: latencies have a wrong unit, or {why}"
    )


def _memory(facts: pd.DataFrame) -> pd.Series:
    """Reads faster than any disk: by the time of each, or by a rate twice the highest known limit."""
    each_ms = 1000 * facts["asked_outstanding"] / facts["iops"].where(facts["iops"] > 0)
    is_fast = (each_ms < MEMORY_MS) | (facts["read_mb_s"] > BEYOND_LIMITS * facts["most_mb_s"])
    return is_fast & (facts["written_iops"] == 0) & (facts["done_iops"] > 0) & ~facts["held_back"]


def _writes(facts: pd.DataFrame) -> pd.Series:
    part = facts["asked_write_pct"] / 100
    chance = 4 * (part * (1 - part) / facts["ios"].clip(lower=1.0).fillna(1.0)) ** 0.5
    bound = (SHARE + chance).where((part > 0) & (part < 1), STRAY)
    return (facts["written_iops"] / facts["done_iops"] - part).abs() > bound


def _writes_words(row: Row) -> str:
    done = 100 * row["written_iops"] / row["done_iops"]
    return f"{row['asked_write_pct']:.0f} % writes were asked for, {done:.0f} % were done"


def _bytes(facts: pd.DataFrame) -> pd.Series:
    at_end_of_ramp = (facts["asked_outstanding"] / facts["ios"].where(facts["ios"] > 0)).fillna(0.0)
    off: pd.Series = (facts["asked_bytes_an_io"] / facts["asked_block_size"] - 1).abs()
    return off > BYTES + at_end_of_ramp


def _bytes_words(row: Row) -> str:
    block, done = row["asked_block_size"], row["asked_bytes_an_io"]
    return f"{block:,.0f} bytes an I/O were asked for, {done:,.0f} done"


def _rate(facts: pd.DataFrame) -> pd.Series:
    return (facts["iops"] / facts["rate_offered"].where(facts["rate_offered"] > 0) - 1).abs() > RATE


def _time(facts: pd.DataFrame) -> pd.Series:
    seconds, asked_s = facts["runtime_s"], facts["asked_runtime_s"]
    return (seconds < SHORT * asked_s) | (seconds > LONG * asked_s + LONG_S)


_LOOKS = (
    _Look(Kind.IN_FLIGHT, _in_flight, _in_flight_words, True),
    _Look(
        Kind.CACHE,
        _memory,
        lambda row: f"{row['read_mb_s']:,.0f} MB/s are read: the page cache answers, not the disk",
        True,
    ),
    _Look(
        Kind.MEDIAN,
        lambda facts: facts["p50_of_mean"] > ABOVE_MEAN,
        lambda row: f"p50 is {_multiple(row['p50_of_mean'])} the mean, and more than twice it there is none",
    ),
    _Look(Kind.WRITES, _writes, _writes_words, True),
    _Look(Kind.BYTES, _bytes, _bytes_words, True),
    _Look(
        Kind.RATE,
        _rate,
        lambda row: f"{row['iops']:,.0f} of the {row['rate_offered']:,.0f} IOPS asked for were done",
    ),
    _Look(
        Kind.TIME,
        _time,
        lambda row: f"{row['asked_runtime_s']:,.4g} s were asked for, {row['runtime_s']:,.4g} s measured",
    ),
    _Look(
        Kind.TAIL,
        lambda facts: facts["p99_of_mean"] < BELOW_MEAN,
        lambda row: f"p99 is {_multiple(row['p99_of_mean'])} the mean",
    ),
    _Look(
        Kind.REMARK,
        lambda facts: facts["doubts"].map(bool).astype(bool),
        lambda row: "; ".join(row["doubts"]),
    ),
)


def _multiple(value: float) -> str:
    """Word a multiple with two digits, e.g. "0.0010 times"."""
    return f"{value:,.0f} times" if value >= 10 else f"{value:.2g} times"


def by_cell(items: Iterable[Doubt]) -> dict[tuple[str, str], list[Doubt]]:
    """Doubts of each cell."""
    cells: dict[tuple[str, str], list[Doubt]] = {}
    for item in items:
        cells.setdefault((item.arm, item.workload), []).append(item)
    return cells
