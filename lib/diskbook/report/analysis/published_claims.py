"""What articles claim, and whether their own figures can carry it: a verdict a claim, made from the numbers.

The claims are those of published-setups.csv.
"""

import math
from collections.abc import Callable, Mapping
from enum import StrEnum
from importlib import import_module
from pathlib import Path
from typing import Any

import pandas as pd

from diskbook.facts import neighbours, paths, quantities
from diskbook.facts.errors import DiskbookError
from diskbook.facts.table_writers import Notes, capital
from diskbook.report.analysis import published
from diskbook.report.show.html import Html, table


class ClaimVerdict(StrEnum):
    """What an article's own figures say of one of its claims."""

    SUPPORTED = "supported"
    """As far as one set-up goes."""
    NOT_SUPPORTED = "not supported"
    CAPPED = "capped"
    """The figures sit on a limit, so they cannot say."""
    NOT_MEASURED = "not measured"
    """No figure bears on it."""


Finding = tuple[ClaimVerdict, str]
"""Verdict and why."""
Judge = Callable[[pd.DataFrame], Finding]


def one_figure(figures: pd.DataFrame, **values: str) -> dict[Any, Any]:
    """First figure with these values; `drive` is the letter that the disk-options article gives a disk."""
    rows = of_drive(figures, values.pop("drive", ""))
    for name, value in values.items():
        rows = rows[rows[name] == value]
    return rows.iloc[0].to_dict()


def of_drive(figures: pd.DataFrame, letter: str) -> pd.DataFrame:
    """Figures of the drive of that letter; all of them without one."""
    return figures[figures["note"].str.match(rf"drive {letter}\b")] if letter else figures


__all__ = ["JUDGES", "ClaimVerdict", "judge", "judges", "read"]


def read(folder: Path = paths.REFERENCE) -> pd.DataFrame:
    """Read the claims of every article, one a row: `article`, `claim`."""
    rows = pd.read_csv(folder / "published-setups.csv", dtype=str, keep_default_na=False)
    rows = rows[rows["element"] == "claims"]
    claims = rows.assign(claim=rows["what"].str.split("; ")).explode("claim", ignore_index=True)
    return claims[["article", "claim"]]


def judge(assessed: pd.DataFrame, claims: pd.DataFrame | None = None) -> pd.DataFrame:
    """Judge every claim by the figures of its article.

    - `assessed`: from `diskbook.report.analysis.published.assess`, of all articles.
    - `claims`: from `read`, which is the default.

    Returns `article`, `claim`, `verdict` (a `ClaimVerdict`), `why` (a sentence).

    Raises DiskbookError when the table of claims has one that nothing here judges.
    """
    claims = read() if claims is None else claims
    judged = [
        _judge(article, claim, assessed) for article, claim in claims.itertuples(index=False, name=None)
    ]
    return claims.assign(verdict=[verdict for verdict, _ in judged], why=[why for _, why in judged])


def judges() -> dict[tuple[str, str], Judge | str]:
    """What judges each claim: `JUDGES`, and those that neighbours have."""
    modules = [import_module(name) for name in neighbours.CLAIMS]
    return JUDGES | {claim: answer for module in modules for claim, answer in module.JUDGES.items()}


def _judge(article: str, claim: str, assessed: pd.DataFrame) -> Finding:
    for (of, start), answer in judges().items():
        if of == article and claim.startswith(start):
            figures = assessed[assessed["article"] == article]
            return (ClaimVerdict.NOT_MEASURED, answer) if isinstance(answer, str) else answer(figures)
    raise DiskbookError(
        f"published-setups.csv: no rule judges the claim '{claim}' of {article}; "
        "add one to diskbook.report.analysis.published_claims.JUDGES"
    )


_ANOTHER_MACHINE = "from another machine, measured once, whose own difference is part of it"

# --- shared-zrs


def _two_percent(figures: pd.DataFrame) -> Finding:
    lrs, zrs = (
        one_figure(figures, metric="lat_mean", redundancy=name, disk_zone_relation="same zone")
        for name in ("LRS", "ZRS")
    )
    ratio = quantities.change(zrs["base"] / lrs["base"])
    if not (lrs["on_cap"] and zrs["on_cap"]):
        return (
            ClaimVerdict.SUPPORTED,
            f"ZRS / LRS: {zrs['base']:.2f} / {lrs['base']:.2f} ms is {ratio}; one run",
        )
    shares = f"{100 * lrs['share']:.0f} and {100 * zrs['share']:.0f} %"
    queues = " and ".join(_queue(row) for row in (lrs, zrs))
    return ClaimVerdict.CAPPED, (
        f"both disks sit on the {lrs['limit']} ({shares} of it), so {lrs['base']:.2f} and {zrs['base']:.2f} "
        f"ms are outstanding / IOPS: {queues}; ZRS / LRS is {ratio}, which compares two throttles"
    )


def _queue(row: dict[Any, Any]) -> str:
    n, rate = row["outstanding"], row["iops"]
    return f"{n:.0f} / {rate:,.0f} = {1000 * n / rate:.2f} ms"


def _remote_zone(figures: pd.DataFrame) -> Finding:
    lrs = one_figure(figures, metric="lat_mean", redundancy="LRS")
    near = one_figure(figures, metric="lat_mean", redundancy="ZRS", disk_zone_relation="same zone")
    far = one_figure(figures, metric="lat_mean", disk_zone_relation="remote zone")
    times = quantities.change(far["base"] / lrs["base"])
    ratio = f"remote ZRS / LRS: {far['base']:.2f} / {lrs['base']:.2f} ms is {times}"
    if not lrs["on_cap"]:
        return ClaimVerdict.NOT_SUPPORTED, f"{ratio}; one run, {_ANOTHER_MACHINE}"
    another = published.suspected_limit(far, figures)
    again = quantities.change(far["base"] / near["base"])
    return ClaimVerdict.CAPPED, (
        f"{ratio}, but the baseline is capped: a lower bound at best ({again} against ZRS in the same zone, "
        f"capped too); the remote row is at {100 * far['share']:.0f} % of the disk limit"
        + (f", but {another}" if another else "")
        + f"; it is {_ANOTHER_MACHINE}"
    )


def _two_zones(figures: pd.DataFrame) -> Finding:
    zones = figures.loc[figures["redundancy"] == "ZRS", "disk_zone_relation"].nunique()
    return ClaimVerdict.NOT_SUPPORTED, (
        "zone-redundant storage keeps a disk in three zones, as Azure documents it; the article measured "
        f"from {zones} of them, which cannot tell"
    )


# --- zone-disks


def _reads_equal(figures: pd.DataFrame) -> Finding:
    lrs, zrs = _by_redundancy(figures, "0")
    return ClaimVerdict.NOT_SUPPORTED, (
        f"ZRS against LRS: {_reach(zrs / lrs)} by zone; the "
        f"closest is {zrs.min():g} against {lrs:g} ms, one run each on different machines: without a spread, "
        "equality within a margin cannot be shown"
    )


def _writes_slower(figures: pd.DataFrame) -> Finding:
    lrs, zrs = _by_redundancy(figures, "100")
    here = zrs.iloc[0]  # zone 1, the one machine that measured both
    return ClaimVerdict.SUPPORTED if here > lrs else ClaimVerdict.NOT_SUPPORTED, (
        f"ZRS against LRS: {_reach(zrs / lrs)} from {len(zrs)} "
        f"zones, below every cap: {quantities.change(here / lrs)} on the machine in zone 1, and elsewhere "
        f"{_ANOTHER_MACHINE}; that is these two disks in that hour, one run each: no "
        "interval, and 'always' goes beyond them"
    )


def _reach(ratios: pd.Series) -> str:
    return f"{quantities.change(ratios.min())} to {quantities.change(ratios.max())}"


def _by_redundancy(figures: pd.DataFrame, write_pct: str) -> tuple[float, pd.Series]:
    """Latencies below every cap, in ms: of LRS, and of ZRS from each zone."""
    rows = figures[
        (figures["metric"] == "lat_mean") & (figures["write_pct"] == write_pct) & ~figures["on_cap"]
    ]
    values = rows.set_index("redundancy")["base"]
    return float(values["LRS"]), values[["ZRS"]]


def _same_iops(figures: pd.DataFrame) -> Finding:
    rows = figures[figures["metric"] == "iops"]
    low, high = rows["base"].min(), rows["base"].max()
    if not rows["on_cap"].all():
        return ClaimVerdict.NOT_SUPPORTED, f"{low:,.0f} to {high:,.0f} IOPS, one run each: no interval"
    first, times = rows.iloc[0], rows["lat_ms"]
    return ClaimVerdict.CAPPED, (
        f"all {len(rows)} rows ({low:,.0f} to {high:,.0f} IOPS) sit on the {first['limit']}: "
        f"{first['outstanding']:.0f} outstanding / IOPS = {times.min():.1f} to {times.max():.1f} ms; "
        "the limit is the same, the disks were not asked"
    )


# --- disk-options


def _vm_caps(figures: pd.DataFrame) -> Finding:
    burst = one_figure(figures, metric="vm_burst_cap_iops", vm_size="Standard_E2as_v5")
    base = published.caps(burst)["cap_vm_iops"]
    largest = one_figure(figures, drive="K", metric="iops")
    return ClaimVerdict.NOT_MEASURED, (
        f"no rate on that size is printed; its burst limit is {burst['base']:,.0f} IOPS, and {base:,.0f} is "
        f"what lasts (data/reference); on the size measured, {largest['base']:,.0f} IOPS sit on the "
        f"{largest['limit']}"
    )


def _accelerated(figures: pd.DataFrame) -> Finding:
    changes, words = [], []
    for both, off, on in (("with performance plus", "G", "F"), ("without an option", "H", "L")):
        without, with_it = (
            one_figure(figures, drive=name, metric="access_time")["base"] for name in (off, on)
        )
        changes.append(with_it / without)
        words.append(f"{both} {quantities.change(changes[-1])} ({without:g} to {with_it:g} ms)")
    if max(changes) < 1:
        return ClaimVerdict.SUPPORTED, f"both pairs agree: {'; '.join(words)}; no spread is printed"
    how = "contradict each other" if min(changes) < 1 else "both speak against it"
    why = f"the two pairs of drives that differ in it alone {how}: {'; '.join(words)}"
    return ClaimVerdict.NOT_SUPPORTED, why


def _lowest_access(figures: pd.DataFrame) -> Finding:
    rows = figures[figures["metric"] == "access_time"].sort_values("base")
    lowest, newer = rows.iloc[0], rows["disk"].str.endswith("v2")
    v2, others = (
        rows.loc[newer, "base"],
        rows[~newer & ~rows["options"].str.contains(published.CACHED)]["base"],
    )
    return ClaimVerdict.SUPPORTED if lowest["disk"].endswith("v2") else ClaimVerdict.NOT_SUPPORTED, (
        f"the lowest is {lowest['base']:g} ms on {lowest['disk']} ({lowest['options']}); without a "
        f"cache v2 has {v2.min():g} to {v2.max():g} ms against {others.min():g} to {others.max():g}, but v2 "
        "is LRS and the others are ZRS, and no spread is printed"
    )


def _add_up(figures: pd.DataFrame) -> Finding:
    both = of_drive(figures, "E").query("metric == 'iops'")
    alone = one_figure(figures, drive="I", metric="iops", write_pct="0")
    if not (both["on_cap"].all() and alone["on_cap"]):
        return ClaimVerdict.NOT_SUPPORTED, "no spread is printed"
    low, high = both["base"].min(), both["base"].max()
    return ClaimVerdict.CAPPED, (
        f"with both, {low:,.0f} to {high:,.0f} IOPS sit on the {both['limit'].iloc[0]}, which bursting alone "
        f"reaches too ({alone['base']:,.0f}): what the other option adds does not show"
    )


_NO_FIGURE = "no figure bears on it"

JUDGES: dict[tuple[str, str], Judge | str] = {
    ("shared-zrs", "2 % overhead"): _two_percent,
    ("shared-zrs", "25 % more write latency"): _remote_zone,
    ("shared-zrs", "not both zones fail alike"): f"{_NO_FIGURE}: no zone was made to fail",
    ("shared-zrs", "no manual zone fail-over"): f"{_NO_FIGURE}: no zone was made to fail",
    ("shared-zrs", "monitor the role's zone"): "advice, which rests on the +25 % above",
    ("shared-zrs", "the disk is said to span two zones"): _two_zones,
    ("zone-disks", "reads can equal LRS"): _reads_equal,
    ("zone-disks", "writes are always slower"): _writes_slower,
    ("zone-disks", "IOPS do not differ"): _same_iops,
    ("zone-disks", "RPO 0"): f"{_NO_FIGURE}: what was written was not compared",
    ("zone-disks", "RTO is the time"): f"{_NO_FIGURE}: no time to re-attach is printed",
    ("zone-disks", "next: shared disk"): "an announcement",
    ("disk-options", "the VM size caps"): _vm_caps,
    ("disk-options", "accelerated networking lowers"): _accelerated,
    ("disk-options", "Premium SSD v2 has the lowest"): _lowest_access,
    ("disk-options", "performance plus is free"): (
        "a price, not a measurement: by the list a disk costs what its size and redundancy do, with the "
        "option or without; it is given to new disks of 513 GiB or more only"
    ),
    ("disk-options", "bursting and performance plus add up"): _add_up,
}
"""What judges each claim, by article and the claim's first words: a function, or why nothing was measured."""


WORDS = {
    "iops": "IOPS",
    "lat_mean": "mean latency",
    "lat_min": "minimum",
    **dict.fromkeys(("cap_iops", "cap_throughput"), "disk limit"),
    **dict.fromkeys(("vm_cap_iops", "vm_cap_throughput"), "VM limit"),
    **dict.fromkeys(("vm_burst_cap_iops", "vm_burst_cap_throughput"), "VM burst limit"),
}
DECIMALS = {"ms": 3, "MB/s": 1}


def figures_of(assessed: pd.DataFrame, article: str) -> Html:
    """Every published figure of an article in base units, with its limit; what it supports is a footnote.

    A set-up is named once, in the first of its rows.
    """
    notes = Notes()
    rows: list[dict[str, str]] = []
    setup = ""
    for row in assessed[assessed["article"] == article].to_dict("records"):
        before, setup = setup, _setup(row)
        rows.append({"Set-up": "" if setup == before else setup, **_figure_cells(row, notes)})
    caption = f"{len(rows)} figures of {article} (published)"
    return table(rows, caption, notes)


def _figure_cells(row: Mapping[Any, Any], notes: Notes) -> dict[str, str]:
    """One published figure, cell by cell."""
    base = f"{row['base']:,.{DECIMALS.get(row['unit'], 0)}f} {row['unit']}"
    share = "" if math.isnan(row["share"]) else f", {100 * row['share']:.0f} %"
    operation = {"0": "read", "100": "write"}.get(row["write_pct"], "")
    return {
        "Load": " ".join(filter(None, [row["block_size"], row["pattern"], operation])),
        "Depth": row["outstanding_total"],
        "What": WORDS.get(row["metric"], row["metric"].replace("_", " ")),
        "Printed": f"{row['printed']} {row['unit_as_printed']}".strip(),
        "Base units": "" if math.isnan(row["base"]) else base,
        "Little's law": row["little"],
        "Of the limit": f"{row['label']}{share}",
        "Supports": notes.mark(row["supports"]),
    }


def _setup(row: Mapping[Any, Any]) -> str:
    """Disk, redundancy, zone and options in one line; a zone that was assumed is left out."""
    options = "" if row["options"] == "none" else row["options"]
    zone = "" if "disk_zone_relation" in row["assumed"] else row["disk_zone_relation"]
    disk = " ".join(filter(None, [row["disk"], row["redundancy"]]))
    return ", ".join(filter(None, [disk or row["vm_size"], zone if disk else "", options]))


def claims_of(
    judged: pd.DataFrame, article: str, here: Mapping[str, str] | None = None, provenance: str = ""
) -> Html:
    """Claims of an article with verdict and reason; and with what a run says of each."""
    # Answers of a run are named by the first words of a claim.
    frame = judged.loc[judged["article"] == article, ["claim", "verdict", "why"]]
    names = {"claim": "Claim", "verdict": "Verdict", "why": "Why"}
    if here is None:
        return table(frame.rename(columns=names).map(capital), f"Claims of {article} (published)")
    own = f"Here ({provenance})"
    frame[own] = [_answer(claim, here) for claim in frame["claim"]]
    caption = f"Claims of {article} (published), and what this run says of them ({provenance})"
    return table(frame.rename(columns=names).map(capital), caption)


def _answer(claim: str, here: Mapping[str, str]) -> str:
    return next((answer for start, answer in here.items() if claim.startswith(start)), "nothing")


def verdict_counts(judged: pd.DataFrame) -> Html:
    """How many claims of each article get which verdict."""
    counts = judged.groupby(["article", "verdict"], sort=False).size().unstack(fill_value=0)
    counts = counts.reindex(columns=list(ClaimVerdict), fill_value=0).reset_index()
    return table(counts.rename(columns={"article": "Article"}), "Claims by verdict (published)")
