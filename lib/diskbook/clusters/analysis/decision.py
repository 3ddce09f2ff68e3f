"""One server, a cluster or another disk: what survives, what lasts, what binds, and what it costs.

Lasting rates are bounds by documented limits, burst credit spent; prices are list prices of the dated table.
"""

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from diskbook.clusters.analysis import sweep
from diskbook.clusters.analysis.claims_s2d import CLUSTER_RULE, disk_rates, no_host_cache
from diskbook.clusters.stats import volume_bound, volume_setups
from diskbook.clusters.stats.volume_bound import Load, Rates, Setup, Shape
from diskbook.design.model import VolumeKind
from diskbook.design.totals import trial_totals
from diskbook.facts import catalog, paths
from diskbook.facts.errors import DiskbookError
from diskbook.facts.prices import HOURS_A_MONTH, Meter, PriceList, from_table, table
from diskbook.facts.units import KIB, MB
from diskbook.report.show.analysed import Analysed
from diskbook.results import tables as store_tables

NOT_MEASURED = "not measured here"
SLA_SOURCE = "Microsoft's SLA for Virtual Machines as of 2020-07 (version 1.9), quoted at second hand"
ONE_MACHINE, A_SET, ZONES = (
    "99.9 % (one machine, premium disks)",
    "99.95 % (availability set)",
    "99.99 % (zones)",
)
_SMALL, _LARGE = Load(4 * KIB, 1.0), Load(64 * KIB, 1.0)


@dataclass(frozen=True)
class Measured:
    """Where a latency at depth 1 was measured: the arm, and the sample run unless it is this one."""

    arm: str
    run: str = ""


@dataclass(frozen=True)
class Option:
    """A way to serve files: machines and disks with their prices, what it survives, and who measured it."""

    name: str
    size: str
    machines: int
    disks: tuple[tuple[Meter, float], ...]
    setup: Setup
    usable_tib: float
    survives: str
    sla: str
    measured: Measured | None = None

    @property
    def meters(self) -> Iterator[tuple[Meter, float]]:
        """What is billed, with its number."""
        yield Meter("vm-windows", self.size), self.machines
        yield from self.disks


def options() -> tuple[Option, ...]:
    """The rows of the decision: what this scenario measures, and what else a reader would consider."""
    p30, zrs = Meter("disk", "P30 LRS"), Meter("disk", "P30 ZRS")
    node, server = "Standard_D16s_v5", "Standard_D32s_v3"
    v2 = ("PremiumV2_LRS", 4096, 20_000, 600)
    return (
        Option("one server, 4 P30", server, 1, ((p30, 4),), _setup("simple", 4, 1, server), 4,
               "nothing but a disk's own three copies in one zone", ONE_MACHINE, Measured("ss-4")),
        Option("one server, 8 P30", server, 1, ((p30, 8),), _setup("simple", 8, 1, server), 8,
               "the same", ONE_MACHINE, Measured("ss-8")),
        Option("S2D, 2 nodes, two-way mirror", node, 2, ((p30, 8),), _setup("two-way", 4, 2, node), 4,
               "one node or one disk, with a witness", A_SET),
        Option("S2D, 3 nodes, three-way mirror", node, 3, ((p30, 12),), _setup("three-way", 4, 3, node), 4,
               "one node (two at once: the pool loses its majority)", A_SET, Measured("s2d-3")),
        Option("2 nodes on 4 shared ZRS P30", node, 2, ((zrs, 4), (Meter("mount", "P30 LRS"), 4)),
               _setup("simple", 4, 1, node), 4, "one node, and one zone", ZONES,
               Measured("zrs-n1", "sample-shared-zrs")),
        Option("one server, Premium SSD v2 of 4 TiB", node, 1, tuple(_flexible(*v2)),
               Setup(Shape("simple", 1, 1), Rates(v2[2], v2[3]), volume_setups.size_rates(node)), 4,
               "nothing but the disk's own copies in one zone", ONE_MACHINE),
    )  # fmt: skip


ELSEWHERE = ("Azure NetApp Files", "Elastic SAN")
"""Products that a reader would compare as well."""


def decision(a: Analysed) -> pd.DataFrame:
    prices = price_list(a)
    rows = [_row(a, option, prices) for option in options()]
    rows += [{"Option": name, "Depth-1 write, ms": NOT_MEASURED} for name in ELSEWHERE]
    return pd.DataFrame(rows).fillna({"Survives": "", "Documented SLA": "", "Binds": ""})


def price_list(a: Analysed) -> PriceList:
    """List prices of all options in the scenario's region."""
    return prices_of(a.scenario.region, (meter for option in options() for meter, _ in option.meters))


def prices_of(region: str, meters: Iterable[Meter]) -> PriceList:
    """List prices of meters in a region, by the dated table."""
    return from_table(region, list(dict.fromkeys(meters)), table())


def sources(a: Analysed) -> list[str]:
    """Say where prices, service levels and the other rows' latencies are from."""
    return [
        price_words(price_list(a), a.scenario.region),
        f"service levels: {SLA_SOURCE}; they promise that machines are reachable, not how fast a volume is",
        "rates that last are bounds by documented limits with all credit spent; of reads more may come, "
        "where nodes share them",
        "the latencies of the rows are of different runs: they name an order of size, and no ratio",
    ]


def price_words(prices: PriceList, region: str) -> str:
    """Say where list prices are from, and which of them nobody read."""
    inferred = sorted(str(meter) for meter, price in prices.prices.items() if price.quality == "inferred")
    rest = f"; inferred, not read: {', '.join(inferred)}" if inferred else ""
    return f"prices: {prices.source}, {region}{rest}"


def _setup(kind: VolumeKind, disks: int, nodes: int, size: str) -> Setup:
    tier = catalog.tier_named("P30")
    return Setup(
        Shape(kind, disks, disks, nodes), Rates(tier.iops, tier.mb_s), volume_setups.size_rates(size)
    )


def _flexible(sku: str, size_gib: int, iops: int, mb_s: int) -> Iterator[tuple[Meter, float]]:
    """What a Premium SSD v2 costs: capacity, and what is above the included rates."""
    yield Meter("v2-capacity", sku), size_gib
    yield Meter("v2-iops", sku), iops - 3000
    yield Meter("v2-mb-s", sku), mb_s - 125


def _row(a: Analysed, option: Option, prices: PriceList) -> dict[str, object]:
    small, large = (volume_bound.bound(option.setup, load, spent=True) for load in (_SMALL, _LARGE))
    month = month_usd(option.meters, prices)
    return {
        "Option": f"{option.name} ({option.machines} x {option.size.removeprefix('Standard_')})",
        "Survives": option.survives,
        "Documented SLA": option.sla,
        "Lasting write IOPS": small.iops,
        "Lasting write MB/s": large.iops * _LARGE.block_bytes / MB,
        "Binds": f"4K: {small.words}; 64K: {large.words}",
        "Depth-1 write, ms": latency(a, option.measured),
        "USD a month": month,
        "USD a usable TiB": month / option.usable_tib,
        "USD for 1,000 lasting IOPS": 1000 * month / small.iops,
    }


def month_usd(meters: Iterable[tuple[Meter, float]], prices: PriceList) -> float:
    """List price a month, without OS disks and addresses; NaN where a price is not known."""
    known = [(prices.of(meter.kind, meter.name), count) for meter, count in meters]
    return math.fsum(
        math.nan if price is None else price.usd_per_hour * HOURS_A_MONTH * count for price, count in known
    )


def latency(a: Analysed, measured: Measured | None) -> str:
    """Median latency of a 4K write at depth 1, and whose run it is from."""
    if measured is None:
        return NOT_MEASURED
    if not measured.run:
        rows = sweep.single_ios(a)
        here = rows[
            (rows["arm"] == measured.arm) & (rows["kind"] == "write") & (rows["block_size_bytes"] == 4096)
        ]
        return f"{here['lat_mean_ms'].iloc[0]:.2f} ({a.provenance})" if len(here) else NOT_MEASURED
    return _of_run(measured)


def _of_run(measured: Measured, runs: Path = paths.RUNS) -> str:
    """The same of a sample run; not measured where that is not there."""
    try:
        trials = store_tables.read(runs / measured.run).trials
    except DiskbookError:
        return NOT_MEASURED
    totals = trial_totals(trials)
    single = totals[
        (totals["outstanding"] == 1) & (totals["arm"] == measured.arm) & (totals["kind"] == "write")
    ]
    if single.empty:
        return NOT_MEASURED
    blocks = "/".join(f"{block // KIB}K" for block in sorted(set(single["block_size_bytes"])))
    note = f"{single['provenance'].iloc[0]}, {measured.run}" + (f", {blocks}" if blocks != "4K" else "")
    return f"{single['lat_mean_ms'].median():.2f} ({note})"


LATENCY_MS = 4.0
"""What the article's own rate comes to: 8 / 1,985 IOPS."""


def readers_table() -> pd.DataFrame:
    """Questions and answers, one row each."""
    rows = [
        _two_small_nodes(),
        _nine_disks(),
        _rule_of_drives(),
        _other_disks(),
        _no_host_cache(),
        _file_server(),
    ]
    return pd.DataFrame(rows, columns=["Question", "Answer", "By"])


def _two_small_nodes() -> tuple[str, str, str]:
    size = volume_setups.size_rates("Standard_DS1_v2")
    setup = Setup(Shape("two-way", 2, 2, nodes=2), disk_rates("P20"), size)
    small, large = (volume_bound.bound(setup, Load(kib * KIB, 1.0)) for kib in (4, 64))
    caps = volume_bound.caps(setup, Load(64 * KIB, 1.0))
    return (
        "2 x DS1_v2 with 2 P20 each are slow: change what first?",
        f"the VM size: writes stop at the {small.words}, and large ones at the {large.words}, "
        f"{100 * caps['cap_vm_mb_s'] / caps['cap_disk_mb_s']:.0f} % of the {caps['cap_disk_mb_s']:,.0f} "
        "MB/s that the disks are paid for; one vCPU runs the copies and the load as well",
        "limit / demand",
    )


def _nine_disks() -> tuple[str, str, str]:
    size = volume_setups.size_rates("Standard_E32s_v3")
    setup = Setup(Shape("two-way", 9, 8, nodes=2), disk_rates("P60"), size)
    small, large = Load(4 * KIB, 1.0), Load(64 * KIB, 1.0)
    caps, bytes_ = volume_bound.caps(setup, small), volume_bound.caps(setup, large)
    needed = volume_bound.knee(setup, small, LATENCY_MS, spent=True)
    return (
        "2 x E32s_v3 with 9 P60 each have latency: more threads or a bigger VM?",
        f"paid for are {caps['cap_disk_iops']:,.0f} IOPS and {bytes_['cap_disk_mb_s']:,.0f} MB/s a node, "
        f"usable {caps['cap_vm_iops']:,.0f} and {bytes_['cap_vm_mb_s']:,.0f} "
        f"({100 * caps['cap_vm_iops'] / caps['cap_disk_iops']:.0f} and "
        f"{100 * bytes_['cap_vm_mb_s'] / bytes_['cap_disk_mb_s']:.0f} %); latency is the disks' and the "
        f"copies', and does not fall with a bigger VM; at {LATENCY_MS:g} ms that rate takes {needed:.0f} "
        "I/Os in flight",
        "limit / demand, and Little's law",
    )


def _rule_of_drives() -> tuple[str, str, str]:
    nodes, drives, iops, share = CLUSTER_RULE
    setup = Setup(Shape("three-way", drives, 8, nodes=nodes), Rates(iops), Rates())
    reads, writes = (volume_bound.bound(setup, Load(4 * KIB, w)).iops / 1e6 for w in (0.0, 1.0))
    return (
        f"a rule for {nodes} nodes of {drives} drives: drives x IOPS x nodes x {100 * share:.0f} %?",
        f"{100 * share:.0f} % rest on nothing: by drives alone a three-way mirror reads at most {reads:.1f} "
        f"and writes at most {writes:.1f} million IOPS, and the nodes' own limits, processors and network, "
        "which bind long before, are not in it; it is a bound, and VMFleet measures what is below it",
        "limit / demand",
    )


def _other_disks() -> tuple[str, str, str]:
    return (
        "Ultra or shared disks instead?",
        "a shared disk needs no copies between nodes, so that a write waits for one disk and no hop: the "
        "table of the decision has shared ZRS and Premium SSD v2; Ultra was not measured",
        "what was measured",
    )


def _no_host_cache() -> tuple[str, str, str]:
    return (
        "do L-series machines limit their durable disks, since they have no host cache?",
        no_host_cache(),
        "documentation",
    )


def _file_server() -> tuple[str, str, str]:
    return (
        "is the service level of one machine enough for a file server?",
        "it is a question of what has to survive, not of speed: see the table of the decision; the SMB "
        "share, which "
        "clients of a file server wait for, was not measured: a workgroup cluster cannot serve one",
        "documentation",
    )
