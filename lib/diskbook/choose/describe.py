"""A choice in words: what each candidate costs, lets through and takes, and what cannot be had."""

import json
import math
import shlex
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import date

from diskbook.choose import candidates, search
from diskbook.choose.candidates import Candidate, Disks
from diskbook.choose.need import SURVIVES, Need
from diskbook.choose.search import Found
from diskbook.facts import catalog, rules
from diskbook.facts.catalog import EPHEMERAL
from diskbook.facts.prices import PriceList
from diskbook.facts.quantities import many
from diskbook.facts.units import KIB, duration, percent
from diskbook.report.analysis.computed import NOTHING
from diskbook.stats import expected

Latency = Callable[[Disks, Need], str]
"""What is known of the latency of disks under a need, in words."""
SHOWN = 5
"""Candidates that the text shows of each list."""


@dataclass(frozen=True)
class Row:
    """A candidate with all that is said of it; None and infinite where there is none."""

    candidate: Candidate
    usd: float | None
    priced_from: date | None
    priced_to: date | None
    undated: bool
    inferred: bool
    lasting_iops: float
    headroom: float
    binds: str
    burst_iops: float
    burst_s: float
    drawn_share: float
    outstanding: float
    carries: bool
    latency: str

    @property
    def prices_of(self) -> str:
        """When the prices of the sum were read, in words."""
        dates = [day.isoformat() for day in (self.priced_from, self.priced_to) if day]
        when = " to ".join(dict.fromkeys(dates)) or "no date"
        return (
            f"prices of {when}"
            + ", some undated" * (self.undated and bool(dates))
            + ", part inferred" * self.inferred
        )


def not_measured(disks: Disks, need: Need) -> str:
    """Say that the latency is not known."""
    return NOTHING


def row(candidate: Candidate, need: Need, prices: PriceList, latency: Latency = not_measured) -> Row:
    """Work out all that is said of a candidate."""
    held = candidate.held(need)
    # Little's law with a latency below all that were printed.
    least_ms = expected.LEAST_MS_OF.get(candidate.disks.disk.sku, expected.LEAST_MS)
    usd, parts = search.usd_a_month(candidate, need, prices)
    dates = [part.as_of for part in parts if part.as_of]
    each = [limit.lasting_iops / limit.base if limit.base else 1.0 for limit in held]
    burst = min(limit.burst * factor for limit, factor in zip(held, each, strict=True))
    lasts = min(limit.burst_s(burst / factor * (1 - 1e-12)) for limit, factor in zip(held, each, strict=True))
    return Row(
        candidate, usd, min(dates, default=None), max(dates, default=None),
        any(part.as_of is None for part in parts), any(part.quality == "inferred" for part in parts),
        held[0].lasting_iops, min(limit.headroom for limit in held), held[0].shown, burst, lasts,
        max(limit.drawn_share for limit in held), need.peak_iops * least_ms / 1000,
        all(limit.carries for limit in held), latency(candidate.disks, need),
    )  # fmt: skip


def need_words(need: Need) -> str:
    """Say what is needed, in a line."""
    is_one_rate = len(need.iops) == 1
    rate = f"{need.peak_iops:,.0f} IOPS" if is_one_rate else f"up to {need.peak_iops:,.0f} IOPS"
    mean = "" if is_one_rate else f", {need.mean_iops:,.0f} on average"
    wish = f"; the wished p99 of {need.p99_ms:g} ms neither filters nor ranks" if need.p99_ms else ""
    hits = f", a host cache is assumed to answer {percent(need.cache_hits)} of reads" * bool(need.cache_hits)
    return (
        f"{rate} of {_block(need)} ({float(need.mb_s.max()):,.4g} MB/s){mean}, "
        f"{percent(need.read_share)} reads, {need.size_gib:,} GiB, data survive: {need.survive}; "
        f"{need.region}, {need.os}{hits}{wish}"
    )


def _block(need: Need) -> str:
    kib = need.block_bytes / KIB
    return f"{kib:,.3g} KiB" if kib < 100 else f"{kib:,.0f} KiB"


def row_words(shown: Row, need: Need) -> str:
    """Say what a candidate costs, lets through and takes."""
    cost = "price unknown" if shown.usd is None else f"USD {shown.usd:,.0f} a month ({shown.prices_of})"
    if shown.burst_iops > shown.lasting_iops * (1 + 1e-6):
        burst = f"bursts to {shown.burst_iops:,.0f} IOPS for {duration(shown.burst_s)} from full credit"
    else:
        burst = "no burst above that"
    drawn = f"; your load draws {percent(shown.drawn_share, '.0f')} of the credit" * (
        0 < shown.drawn_share <= 1
    )
    flight = max(1, math.ceil(shown.outstanding))
    return "\n".join(
        [
            f"  {shown.candidate.label}: {cost}",
            f"    lasts at {shown.lasting_iops:,.0f} IOPS ({percent(shown.headroom, '+.0f')} over your peak)"
            f": the {shown.binds} binds; {burst}{drawn}",
            f"    needs at least {many(flight, 'outstanding I/O')}; {shown.latency}; data survive: "
            f"{SURVIVES[shown.candidate.disks.survives]}",
        ]
    )


def choice_words(choice: Found, need: Need, prices: PriceList, latency: Latency) -> Iterator[str]:
    """Say what carries the need, paragraph by paragraph."""
    if choice.cheapest:
        sizes = many(len(choice.cheapest), "priced size")
        yield f"Cheapest of the {sizes} that carry it, each with its cheapest disks:"
        for priced in choice.cheapest[:SHOWN]:
            yield row_words(row(priced.candidate, need, prices, latency), need)
        more = [priced for priced in choice.front if priced not in choice.cheapest[:SHOWN]]
        if more:
            yield "What lasts at a higher rate or survives more, where nothing cheaper does as much:"
            for priced in more[:SHOWN]:
                yield row_words(row(priced.candidate, need, prices, latency), need)
            if len(more) > SHOWN:
                yield f"  and {many(len(more) - SHOWN, 'more step')} (--json)"
    if choice.unpriced:
        names = ", ".join(name.removeprefix("Standard_") for name in choice.unpriced[:6])
        yield (
            f"Price unknown: {many(len(choice.unpriced), 'other size')} that also carry it, e.g. {names}. "
            "Any of them may be cheaper; --prices FILE reads a saved answer of Azure's price list."
        )


def why_words(candidate: Candidate, need: Need) -> Iterator[str]:
    """Walk through each limit of a candidate."""
    for sentence in candidates.sentences(candidate, catalog.region(need.region)):
        yield f"  cannot be had: {sentence}"
    for sentence in candidates.unmet(candidate, need):
        yield f"  cannot do: {sentence}"
    for limit in candidate.held(need):
        state = "lets your load through" if limit.carries else "does not let your load through"
        if limit.carries and limit.drawn_share:
            state = f"lets your load through on {percent(limit.drawn_share, '.0f')} of its burst credit"
        burst = f", bursting to {limit.burst:,.0f}" if limit.burst > limit.base else ""
        block = f"= {limit.lasting_iops:,.0f} IOPS of {_block(need) if len(need.iops) == 1 else 'your load'}"
        yield f"  {limit.shown}{burst} {block}: {state}"
    held = candidate.held(need)
    disk, vm = (
        min((limit.lasting_iops for limit in held if kind in limit.limit.column), default=math.inf)
        for kind in ("disk", "vm")
    )
    if vm < disk < math.inf:
        yield f"  You pay for {disk:,.0f} IOPS of disk; the VM lets {vm:,.0f} through: change the VM first."
    elif disk < vm < math.inf:
        yield f"  The VM would let {vm:,.0f} IOPS through; the disks give {disk:,.0f}: change these first."


def nearest(need: Need, prices_of: Callable[[str], PriceList], today: date) -> str:
    """Say what is in the way of a need that nothing carries, and the nearest that can be had."""
    for what, relaxed in _relaxed(need):
        answer = search.find(relaxed, prices_of(relaxed.region), today)
        if answer.fits:
            best = answer.cheapest[0].candidate.label if answer.cheapest else answer.unpriced[0]
            where = f" in {relaxed.region}" if relaxed.region != need.region else ""
            kept = f" with --survive {relaxed.survive}" if relaxed.survive != need.survive else ""
            return f"Nothing carries it because of {what}. The nearest that does{where}{kept}: {best}."
    for share in (0.75, 0.5, 0.25, 0.1, 0.01):
        slower = replace(need, iops=share * need.iops, mb_s=share * need.mb_s)
        if search.find(slower, prices_of(need.region), today).fits:
            less = f"{percent(share, '.0f')} of it can be had; split the load over machines."
            return f"Nothing carries it: the rate is too high. {less}"
    return "Nothing carries it, and no wish alone is in the way: ask for less data or a lower rate."


def _relaxed(need: Need) -> Iterator[tuple[str, Need]]:
    """The need without one of its wishes at a time, and which."""
    if need.vm or need.vcpus > 1 or need.memory_gib:
        yield "the VM sizes asked for", replace(need, vm="", vcpus=1, memory_gib=0.0)
    if need.disk:
        yield "the disks asked for", replace(need, disk="")
    for region in catalog.regions():
        yield need.region, replace(need, region=region)
    for level in reversed(SURVIVES[: SURVIVES.index(need.survive)]):
        yield f"--survive {need.survive}", replace(need, survive=level)


def plan_command(candidate: Candidate, need: Need) -> str:
    """Write the command that would measure a choice: one disk of it, at its share of the peak rate."""
    region = catalog.region(need.region)
    disk = candidates.in_zone(candidate.disks.disk, region)
    settings = {
        "scenario.region": need.region,
        "machine.vm1.size": candidate.size.name,
        "machine.vm1.zone": region.first_zone,
        "disk.p6.sku": disk.sku,
        "disk.p6.size_gib": disk.size_gib,
        "disk.p6.zone": None if disk.sku == EPHEMERAL else disk.zone,
        "disk.p6.cache": candidate.disks.cache,
        **{f"disk.p6.{key}": value for key, value in _options(disk).items()},
        "workload.randread-qd32.block_size": max(512, 512 * round(need.block_bytes / 512)),
        "workload.randread-qd32.write_pct": round(100 * (1 - need.read_share)),
        "workload.randread-qd32.rate": max(1, round(need.peak_iops / candidate.disks.count)),
    }
    words = ["diskbook", "plan", "first-run"]
    for key, value in settings.items():
        text = value if isinstance(value, str) and not value.isdigit() else json.dumps(value)
        if not (key.endswith("cache") and value == "None"):
            words += ["--set", f"{key}={text}"]
    pairs = zip(words[3::2], words[4::2], strict=True)
    return " \\\n".join([shlex.join(words[:3]), *(f"    {shlex.join(pair)}" for pair in pairs)])


def _options(disk: rules.DiskAsk) -> dict[str, object]:
    plain = rules.DiskAsk(disk.sku, disk.size_gib)
    names = ("tier", "bursting", "performance_plus", "iops", "mb_s")
    return {name: getattr(disk, name) for name in names if getattr(disk, name) != getattr(plain, name)}
