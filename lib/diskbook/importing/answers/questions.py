"""Three questions that public measurements of real Azure answer, computed from their tables.

Each answer says in its first words what its data cannot tell. Nothing here was measured by us.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

from diskbook.facts import catalog
from diskbook.facts.units import MIB
from diskbook.importing import public
from diskbook.importing.answers import drawn
from diskbook.report.figures import Picture, RunSource
from diskbook.stats import intervals, power

SINGLE, DEEP = 1, 64
"""Threads of the rates that two machines of one size are compared by."""
SIZES = {"d16s-v3": "D16s_v3", "f16s-v2": "F16s_v2", "e16s-v3": "E16s_v3", "ds5-v2": "DS5_v2", "h16r": "H16r"}
"""Sizes of which two machines were measured; the last one never reached a cap."""
HALF_WIDTH = 0.05
"""Half-width of the interval for which numbers of machines and days are given."""
E10 = ("StandardSSD_LRS", 100)


@dataclass(frozen=True)
class Answer:
    """The answer to one question.

    - `slug`, `dataset`: name of its figure and post, and the data set.
    - `question`, `title`, `headline`: what was asked; the finding as a title, and in one sentence with its
      doubt.
    - `findings`: what else the figures say, one sentence each.
    - `table`, `caption`: its numbers, and what they are.
    - `draw`: draws its main figure.
    """

    slug: str
    dataset: str
    question: str
    title: str
    headline: str
    findings: tuple[str, ...]
    table: pd.DataFrame
    caption: str
    draw: Callable[[RunSource], Picture]

    @cached_property
    def source(self) -> Mapping[str, Any]:
        """What `source.toml` says."""
        return public.load(self.dataset).source

    @cached_property
    def picture(self) -> Picture:
        """Its main figure, with the source's attribution."""
        return self.draw(RunSource(f"data set {self.dataset}", f"{self.source['attribution']}"))


@cache
def every() -> tuple[Answer, ...]:
    """Return all answers, in the order in which they are told."""
    return temporary_disk(), burst_or_lock(), second_zone()


def of_dataset(name: str) -> Answer | None:
    """Return the answer of a data set, None where it answers nothing."""
    return next((answer for answer in every() if answer.dataset == name), None)


# Do two machines of one size have the same temporary disk?


def machines(table: pd.DataFrame) -> pd.DataFrame:
    """Compare the second machine of each size in `cockroach-2019` with the first, by `requests_per_s`.

    Returns `size`, `threads`, `ratio` with `ci_low` and `ci_high` (95 %): geometric means, Welch's t on the
    logs.
    """
    logs = np.log(table["requests_per_s"]).groupby([table["arm"], table["threads"]])
    rows = []
    for size in SIZES:
        for threads in (SINGLE, DEEP):
            first, second = (logs.get_group((f"{size}-{day}sep", threads)) for day in (12, 16))
            rows.append((size, threads, *np.exp(_welch(second, first))))
    return pd.DataFrame(rows, columns=["size", "threads", "ratio", "ci_low", "ci_high"])


def _welch(second: pd.Series, first: pd.Series) -> tuple[float, float, float]:
    """Difference of means with its 95 % interval; degrees of freedom are rounded down."""
    test = stats.ttest_ind(second, first, equal_var=False)
    half = np.hypot(stats.sem(first), stats.sem(second)) * stats.t.ppf(0.975, np.floor(test.df))
    difference = float(second.mean() - first.mean())
    return difference, difference - half, difference + half


def temporary_disk() -> Answer:
    """Answer by the temporary disks of five sizes, two machines each."""
    # Long: an answer is one literal of sentences, figure and table.
    table = public.table_of("cockroach-2019")
    rows = machines(table)
    single = rows[rows["threads"] == SINGLE].set_index("size")
    deep = rows[rows["threads"] == DEEP].set_index("size")
    capped = deep.drop("h16r")
    size = next(iter(SIZES))
    lead: Mapping[Any, Any] = single.to_dict("index")[size]
    within = 100 * max((capped["ci_high"] - 1).max(), (1 - capped["ci_low"]).max())
    means = table[table["threads"] == SINGLE].groupby("arm")["lat_mean_ms"].mean()
    before, after = means[f"{size}-12sep"], means[f"{size}-16sep"]
    sd = float(np.sqrt((np.log(single["ratio"]) ** 2).mean()))
    needed = power.for_half_width(sd, HALF_WIDTH, len(single))
    return Answer(
        slug="real-temporary-disk",
        dataset="cockroach-2019",
        question="Do two machines of one size have the same temporary disk?",
        title=f"Two machines of one size: {_percent(lead['ratio'])} at one thread, equal on the cap",
        headline=(
            "machine and day cannot be separated here; with one thread, the second D16s_v3 differs by "
            f"{_percent(lead['ratio'])} (95 % CI {100 * (lead['ci_low'] - 1):.1f} to "
            f"{100 * (lead['ci_high'] - 1):.1f} %) in writes per second; on the cap, both are equal within "
            f"{within:.2f} %"
        ),
        findings=(
            f"Its mean latency with one thread is {after:.3f} ms against {before:.3f} ms: "
            f"{100 * (after / before - 1):.0f} % higher.",
            "With 64 threads, four of the five sizes sit on their cap: a ranking there ranks caps.",
            _cap_words(table),
            _growing(table),
            f"Two machines of a size differ by {100 * np.expm1(sd):.0f} % at one thread (root mean "
            f"square, day and machine together). An interval of ±{100 * HALF_WIDTH:.0f} % needs {needed} "
            f"machines per size, by a spread with {len(single)} degrees of freedom.",
            "All are temporary disks, written in 32 KiB with fsync. Nothing here is about managed disks.",
        ),
        table=_machines_table(rows),
        caption="Second machine (16 September 2019) against the first (12 September), writes per second",
        draw=lambda source: drawn.changes(
            "real-temporary-disk",
            f"Two machines of one size: {_percent(lead['ratio'])} at one thread, equal on the cap",
            [
                {**row, "name": f"{SIZES[row['size']]}, {row['threads']} thread{'s' * (row['threads'] > 1)}"}
                for row in rows.sort_values("threads", kind="stable").to_dict("records")
            ],
            "Writes per second, second machine against first",
            "Four runs per machine; bars: 95 % intervals (Welch's t). Machine and day are one.",
            source,
        ),
    )


def _cap_words(table: pd.DataFrame) -> str:
    rates = (table["mib_per_s"] * MIB / 1e6).groupby([table["arm"], table["threads"]])
    mean, low, high = _geometric(rates.get_group(("d16s-v3-12sep", 16)))
    deep, _, _ = _geometric(rates.get_group(("d16s-v3-12sep", 64)))
    documented = catalog.vm_size("Standard_D16s_v3").cached_mb_s
    return (
        f"The cap is decimal: the first D16s_v3 wrote {mean:.1f} MB/s ({low:.1f} to {high:.1f}) with 16 "
        f"threads and {deep:.0f} with 64. Azure documents {documented:.0f}."
    )


def _growing(table: pd.DataFrame) -> str:
    means = table.groupby(["arm", "threads"])["requests_per_s"].mean()["h16r-12sep"]
    grown = 100 * (means[64] / means[32] - 1)
    return f"H16r reached no cap: its rate grew by {grown:.0f} % from 32 to 64 threads."


def _machines_table(machines: pd.DataFrame) -> pd.DataFrame:
    words = machines.assign(change=[_with_interval(row) for row in machines.to_dict("records")])
    wide = words.pivot(index="size", columns="threads", values="change").loc[list(SIZES)]
    return pd.DataFrame(
        {"Size": list(SIZES.values()), "1 thread": list(wide[SINGLE]), "64 threads": list(wide[DEEP])}
    )


# Is that latency, the burst cap of an E10, or a lock?


def cells(table: pd.DataFrame) -> pd.DataFrame:
    """Summarise the sweep of 64 KiB of `cloud-storage-bench-2026` by operation and threads.

    Returns index (`operation`, `threads`); `n`, and geometric means with 95 % intervals (Student's t) of
    `iops` and `lat_mean_ms`.
    """
    sweep = table[(table["arm"] == "e10-sweep") & (table["block_size_bytes"] == 65536)]
    sweep = sweep.assign(lat_mean_ms=sweep["lat_mean_us"] / 1000)
    rows = {}
    for key, group in sweep.groupby(["operation", "threads"]):
        row: dict[str, float] = {"n": len(group)}
        for name in ("iops", "lat_mean_ms"):
            row |= dict(zip((name, f"{name}_low", f"{name}_high"), _geometric(group[name]), strict=True))
        rows[key] = row
    frame = pd.DataFrame.from_dict(rows, orient="index")
    frame.index = pd.MultiIndex.from_tuples(frame.index, names=["operation", "threads"])
    return frame


def exponent(totals: pd.DataFrame) -> tuple[float, float, float, int]:
    """Fit log throughput on log threads by least squares: slope, its 95 % interval, and cells."""
    fit = stats.linregress(np.log(totals["threads"]), np.log(totals["mib_s"]))
    half = stats.t.ppf(0.975, len(totals) - 2) * fit.stderr
    return float(fit.slope), float(fit.slope - half), float(fit.slope + half), len(totals)


def published_totals(published: pd.DataFrame) -> pd.DataFrame:
    """Add up reads and writes as the authors did; `is_complete` tells where both were measured."""
    parts = published[["read_mib_s", "write_mib_s"]]
    return published.assign(mib_s=parts.sum(axis=1), is_complete=parts.notna().all(axis=1))


def burst_or_lock() -> Answer:
    """Answer by the reads and writes of one E10."""
    # Long: an answer is one literal of sentences, figure and table.
    table = public.table_of("cloud-storage-bench-2026")
    by_cell = cells(table)
    burst = catalog.disk_limits(*E10).burst_iops or np.nan
    rows: dict[Any, dict[Any, Any]] = by_cell.to_dict("index")
    read, reads, deep, write = (rows[key] for key in (("read", 1), ("read", 4), ("read", 16), ("write", 1)))
    writes = table[
        (table["arm"] == "e10-sweep") & (table["operation"] == "write") & (table["block_size_bytes"] == 65536)
    ]["iops"]
    totals = published_totals(public.table_of("cloud-storage-bench-2026", "published"))
    missing = int((~totals["is_complete"]).sum())
    published, complete = exponent(totals), exponent(totals[totals["is_complete"]])
    title = f"An E10 reads at its burst cap of {burst:.0f} IOPS; its writes waited in the guest"
    return Answer(
        slug="real-e10",
        dataset="cloud-storage-bench-2026",
        question="Is that latency, the burst cap of an E10, or a lock?",
        title=title,
        headline=(
            f"reads sit on the burst cap, with {_value(reads, 'iops', 1)} IOPS at 4 threads "
            f"(burst {burst:.0f}); writes stay at {writes.min():.0f} to {writes.max():.0f} IOPS at any "
            "number of threads, below every cap: the guest serialised them"
        ),
        findings=(
            f"Reads with 16 threads reach {deep['iops']:.1f} IOPS, so their {deep['lat_mean_ms']:.1f} ms is "
            f"16 / {deep['iops']:.0f} s: a queue at the cap. There is no complete read with 64 threads.",
            f"One thread reads 64 KiB in {_value(read, 'lat_mean_ms', 3)} ms, and writes in "
            f"{_value(write, 'lat_mean_ms', 3)} ms (n = {int(read['n'])}, sequential).",
            "The disk never had more than one write at a time. A lock of the file system would do that.",
            f"The published scaling exponent, {_slope(published)}, is reproduced from the published totals. "
            f"It comes from {missing} of {published[3]} cells without a read phase.",
            f"The {complete[3]} complete cells give {_slope(complete)}.",
            "It is one disk on one machine: nothing is known of other disks, random I/O, or a long-run rate.",
        ),
        table=_cells_table(by_cell),
        caption="One E10, 64 KiB sequential: geometric means with 95 % intervals",
        draw=lambda source: drawn.rates(
            "real-e10",
            title,
            by_cell,
            {"base": catalog.disk_limits(*E10).iops or np.nan, "burst": burst},
            source,
        ),
    )


def _cells_table(by_cell: pd.DataFrame) -> pd.DataFrame:
    return pd.DataFrame(
        [
            {
                "Operation": operation,
                "Threads": threads,
                "n": int(row["n"]),
                "IOPS": _value(row, "iops", 1),
                "Mean latency, ms": _value(row, "lat_mean_ms", 3),
            }
            for (operation, threads), row in zip(by_cell.index, by_cell.to_dict("records"), strict=True)
        ]
    )


# What does a second zone cost a database?


def zones(table: pd.DataFrame) -> pd.DataFrame:
    """Compare replicas of `db-zone-2025` by rows per second on each day.

    Returns index (`service`, `clients`, `generated`); ratios `published` (replica in another zone against
    none), `replica` (in the same zone against none) and `zone` (another zone against the same one).
    """
    rows = table[(table["rows_per_insert"] == 1) & (table["service"] != "Azure SQL GP")]
    wide = rows.pivot(index=["service", "clients", "generated"], columns="mode", values="rows_per_s")
    return pd.DataFrame(
        {
            "published": wide["crosszone-ha"] / wide["no-ha"],
            "replica": wide["samezone-ha"] / wide["no-ha"],
            "zone": wide["crosszone-ha"] / wide["samezone-ha"],
        }
    )


def second_zone() -> Answer:
    """Answer by PostgreSQL and MySQL on two days."""
    # Long: an answer is one literal of sentences, figure and table.
    changes = zones(public.table_of("db-zone-2025"))
    first, second = pd.DataFrame(changes.loc["PostgreSQL"].loc[1]).to_dict("records")
    days = np.log(changes["zone"]).unstack("generated").dropna()
    four = np.exp(_t_interval(days.loc[("PostgreSQL", 4)].to_numpy()))
    of_service = days.loc["PostgreSQL"]
    sd = float(np.sqrt(of_service.var(axis=1, ddof=1).mean()))
    needed = power.for_half_width(sd, HALF_WIDTH, len(of_service))
    no_interval = {"ci_low": np.nan, "ci_high": np.nan}
    changes_of_client = f"{_percent(first['zone'])} one day, {_percent(second['zone'])} two days later"
    title = f"A second zone: one PostgreSQL client {changes_of_client}"
    return Answer(
        slug="real-second-zone",
        dataset="db-zone-2025",
        question="What does a second zone cost a database?",
        title=title,
        headline=(
            "nobody can tell from two days: the zone cost PostgreSQL's single client "
            f"{_percent(first['zone'])} on one and {_percent(second['zone'])} on the other; the published "
            f"{_percent(first['published'])} is {_percent(first['replica'])} for a replica in the same zone"
        ),
        findings=(
            f"With 4 clients the two days give {100 * (four[0] - 1):+.1f} % "
            f"({100 * (four[1] - 1):+.0f} to {100 * (four[2] - 1):+.0f} %), with one degree of freedom.",
            "The reports compare with a server without a replica. One in the same zone is the fair base.",
            f"PostgreSQL's zone effect varies by {100 * np.expm1(sd):.1f} % from day to day. An interval of "
            f"±{100 * HALF_WIDTH:.0f} % needs {needed} days, each with both servers made again.",
        ),
        table=_zones_table(changes),
        caption="Change of rows per second, by day of December 2025",
        draw=lambda source: drawn.changes(
            "real-second-zone",
            title,
            [
                {"name": f"{service} ({clients}), {day[8:]} Dec", "ratio": ratio, **no_interval}
                for (service, clients, day), ratio in zip(changes.index, changes["zone"], strict=True)
                if clients < 32
            ],
            "Rows per second, other zone against same zone",
            "In brackets: clients. One run per mark, so nothing has an interval.",
            source,
        ),
    )


def _zones_table(changes: pd.DataFrame) -> pd.DataFrame:
    index = {"service": "Service", "clients": "Clients", "generated": "Day"}
    ratios = {"replica": "Replica in the same zone", "zone": "The zone itself", "published": "As published"}
    return changes[list(ratios)].map(_percent).reset_index().rename(columns={**index, **ratios})


# Numbers in words


def _geometric(values: pd.Series) -> tuple[float, float, float]:
    """Geometric mean with its 95 % interval by Student's t."""
    mean, low, high = np.exp(_t_interval(np.log(values.to_numpy(float))))
    return float(mean), float(low), float(high)


def _t_interval(logs: np.ndarray) -> tuple[float, float, float]:
    interval = intervals.t_interval(logs, intervals.LEVEL)
    return float(interval.mean), float(interval.low), float(interval.high)


def _percent(ratio: Any) -> str:
    return f"{100 * (ratio - 1):+.1f} %"


def _with_interval(row: Mapping[Any, Any]) -> str:
    digits = 1 if abs(row["ratio"] - 1) > 0.01 else 2
    value, low, high = (100 * (row[name] - 1) for name in ("ratio", "ci_low", "ci_high"))
    return f"{value:+.{digits}f} % ({low:+.{digits}f} to {high:+.{digits}f} %)"


def _value(row: Mapping[Any, Any], name: str, digits: int) -> str:
    value, low, high = (row[key] for key in (name, f"{name}_low", f"{name}_high"))
    return f"{value:.{digits}f} ({low:.{digits}f} to {high:.{digits}f})"


def _slope(fit: tuple[float, float, float, int]) -> str:
    return f"{fit[0]:+.3f} ({fit[1]:+.3f} to {fit[2]:+.3f})"
