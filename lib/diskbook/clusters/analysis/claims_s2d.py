"""What the article on Storage Spaces Direct in Azure claims, judged by its figures and by documented limits.

Its machines were measured in 2019, before VM sizes burst: base limits alone held (`vm_rates`). Reads are
taken as answered by the owning node, as its plateau of 20,000 IOPS has it.
"""

import pandas as pd

from diskbook.clusters.stats import volume_bound
from diskbook.clusters.stats.ratio_map import Predicted, ratio_map
from diskbook.clusters.stats.volume_bound import Load, Rates, Setup, Shape
from diskbook.facts import catalog, quantities
from diskbook.facts.units import KIB, MB, MB_PER_MIB
from diskbook.report.analysis.published_claims import ClaimVerdict, Finding, Judge, one_figure

SERVER, NODE, DISKS, NODES = "Standard_D32s_v3", "Standard_L16s", 4, 3
DEPTH = 8
"""Outstanding a thread."""
TABLE_THREADS = 12
BLOCKS_KIB = (4, 8, 64)
CLUSTER_RULE = (16, 24, 200_000, 0.3)
"""Nodes, drives a node, IOPS a drive and share, of a rule given in the comments."""


def disk_rates(tier: str = "P30") -> Rates:
    """Limits of one disk of the article's pools."""
    row = catalog.tier_named(tier)
    return Rates(row.iops, row.mb_s)


def vm_rates(name: str, bursting: bool = False) -> Rates:
    """Uncached limits of a size, as in 2019 or with the burst of today."""
    size = catalog.vm_size(name)
    burst = (size.uncached_burst_iops, size.uncached_burst_mb_s) if bursting else (None, None)
    return Rates(size.uncached_iops, size.uncached_mb_s, *burst)


def server(disks: int = DISKS, bursting: bool = False) -> Setup:
    """One machine with a simple volume over its disks."""
    return Setup(Shape("simple", disks, disks), disk_rates(), vm_rates(SERVER, bursting))


def cluster(size: str = NODE, bursting: bool = False) -> Setup:
    """Three nodes with a three-way mirror, whose owner answers reads."""
    shape = Shape("three-way", DISKS, DISKS, nodes=NODES)
    return Setup(shape, disk_rates(), vm_rates(size, bursting), local_share=1.0)


def predicted_map(latency_ms: float, threads: int = TABLE_THREADS) -> list[Predicted]:
    """Ratios of cluster and server that limits alone predict, by block size and direction."""
    loads = [Load(kib * KIB, share, DEPTH * threads) for kib in BLOCKS_KIB for share in (0.0, 1.0)]
    return ratio_map(cluster(), server(), loads, latency_ms)


def knee_threads(kib: int, latency_ms: float, disks: int = DISKS) -> float:
    """Threads at which the server meets its lowest limit: rate x latency / outstanding a thread."""
    return volume_bound.knee(server(disks), Load(kib * KIB, 1.0), latency_ms) / DEPTH


def _rate(figures: pd.DataFrame, size: str = SERVER) -> tuple[float, float]:
    """The one rate printed of a size in IOPS, and the latency that follows from it, in ms."""
    row = one_figure(figures, metric="iops", vm_size=size)
    return float(row["base"]), float(row["lat_ms"])


def _agrees(stated: tuple[float, ...], documented: tuple[float, ...]) -> ClaimVerdict:
    return ClaimVerdict.SUPPORTED if stated == documented else ClaimVerdict.NOT_SUPPORTED


def _disk_totals(figures: pd.DataFrame) -> Finding:
    stated = tuple(float(one_figure(figures, metric=name)["base"]) for name in ("cap_iops", "cap_throughput"))
    disk = disk_rates()
    total = DISKS * float(disk.iops or 0), DISKS * float(disk.mb_s or 0)
    return _agrees(stated, total), (
        f"{DISKS} x {disk.iops:,.0f} = {total[0]:,.0f} IOPS and {DISKS} x {disk.mb_s:,.0f} = "
        f"{total[1]:,.0f} MB/s: stated limits, not measurements"
    )


def _vm_limit(figures: pd.DataFrame) -> Finding:
    names = ("vm_cap_iops", "vm_cap_throughput")
    stated = tuple(float(one_figure(figures, metric=name, vm_size=SERVER)["base"]) for name in names)
    vm, large = vm_rates(SERVER), Load(64 * KIB, 1.0)
    today = server(bursting=True)
    hours = volume_bound.burst_lasts_s(today, large) / 3600
    return _agrees(stated, (float(vm.iops or 0), float(vm.mb_s or 0))), (
        f"documented; at 64K the {volume_bound.bound(server(), large).words} lies below the disks' "
        f"{volume_bound.caps(today, large)['cap_disk_mb_s']:,.0f}; today the size bursts, and the same disks "
        f"({volume_bound.bound(today, large).words}) meet its base after {hours:.0f} h at full rate only"
    )


def _single_thread(figures: pd.DataFrame) -> Finding:
    rate, _ = _rate(figures)
    printed = float(one_figure(figures, metric="throughput", vm_size=SERVER)["value"])
    mb_s = rate * 4 * KIB / MB
    mib_s = mb_s / MB_PER_MIB
    agrees = abs(mib_s - printed) < 0.01
    return ClaimVerdict.SUPPORTED if agrees else ClaimVerdict.NOT_SUPPORTED, (
        f"{rate:,.0f} x 4,096 bytes are {mb_s:.2f} MB/s or {mib_s:.2f} MiB/s: the unit is MiB/s; one run"
    )


def _few_threads(figures: pd.DataFrame) -> Finding:
    rate = one_figure(figures, metric="iops", vm_size=SERVER)
    vm = one_figure(figures, metric="vm_cap_iops", vm_size=SERVER)["base"]
    threads = one_figure(figures, metric="threads_at_limit")
    return ClaimVerdict.NOT_SUPPORTED if rate["on_cap"] else ClaimVerdict.SUPPORTED, (
        f"1 thread of {rate['outstanding']:.0f} gave {rate['base']:,.0f} IOPS, {100 * rate['share']:.0f} % "
        f"of the disks' limit and {100 * rate['base'] / vm:.0f} % of the VM's; {threads['supports']}; one run"
    )


def _minimum_latency(figures: pd.DataFrame) -> Finding:
    rate = one_figure(figures, metric="iops", vm_size=SERVER)
    n = rate["outstanding"]
    return ClaimVerdict.NOT_SUPPORTED, (
        f"{n:.0f} / {rate['base']:,.0f} IOPS = {rate['lat_ms']:.2f} ms is the response time at {n:.0f} "
        "outstanding; a minimum needs depth 1, which was not measured"
    )


def _knees(figures: pd.DataFrame, *blocks_kib: int) -> Finding:
    _, latency = _rate(figures)
    low, high = (float(n) for n in str(one_figure(figures, metric="threads_at_limit")["printed"]).split("-"))
    threads = [knee_threads(kib, latency) for kib in blocks_kib]
    right = all(low <= number <= high for number in threads)
    words = [
        f"the {volume_bound.bound(server(), Load(kib * KIB, 1.0)).words} with {number:.1f} threads at {kib}K"
        for kib, number in zip(blocks_kib, threads, strict=True)
    ]
    as_4k = "" if blocks_kib[0] == 4 else ", if these take as long as 4K"
    return ClaimVerdict.SUPPORTED if right else ClaimVerdict.NOT_SUPPORTED, (
        f"by Little's law {latency:.2f} ms meet {' and '.join(words)}{as_4k}"
    )


def _small_knees(figures: pd.DataFrame) -> Finding:
    return _knees(figures, 4, 8)


def _large_knee(figures: pd.DataFrame) -> Finding:
    return _knees(figures, 64)


def _reaches(figures: pd.DataFrame) -> Finding:
    rate, _ = _rate(figures, NODE)
    writes = volume_bound.bound(cluster(), Load(4 * KIB, 1.0))
    capped = rate >= 0.95 * writes.iops
    return ClaimVerdict.CAPPED if capped else ClaimVerdict.NOT_SUPPORTED, (
        f"{rate:,.0f} IOPS are the {writes.words}: two limits coincide, so neither is shown to bind; the "
        f"size's {vm_rates(NODE).mb_s:,.0f} MB/s are not mentioned"
    )


def _ratios(figures: pd.DataFrame) -> str:
    """The map that limits alone predict, in words; reads and writes agree."""
    cells = predicted_map(_rate(figures)[1])
    words = [f"{_change(cell.ratio)} at {cell.load.block_bytes / KIB:.0f}K" for cell in cells[1::2]]
    return f"limits alone predict {', '.join(words[:-1])} and {words[-1]} with {TABLE_THREADS} threads"


def _change(ratio: float) -> str:
    return "no change" if abs(ratio - 1) < 0.005 else quantities.change(ratio)


def _cluster_close(figures: pd.DataFrame) -> Finding:
    rate = one_figure(figures, metric="iops", vm_size=NODE)
    if not rate["on_cap"]:
        return ClaimVerdict.NOT_SUPPORTED, "one run each: no interval"
    return ClaimVerdict.CAPPED, (
        f"the cluster's one rate, {rate['base']:,.0f} IOPS, sits on the {rate['limit']}; {_ratios(figures)}, "
        "so the table shows two VM sizes and no effect of the cluster; the machines differ as well"
    )


def _same_mb_s(figures: pd.DataFrame) -> Finding:
    large = predicted_map(_rate(figures)[1])[-1]
    mb_s = large.mb_s
    return ClaimVerdict.CAPPED if large.limits_only else ClaimVerdict.NOT_MEASURED, (
        f"MB/s are IOPS x block size: at 64K {mb_s[0]:,.0f} against {mb_s[1]:,.0f} MB/s, "
        f"{quantities.change(large.ratio)}, is the {large.other.words} against the {large.base.words}"
    )


def _not_the_network(figures: pd.DataFrame) -> Finding:
    small = predicted_map(_rate(figures)[1])[1]
    ours, theirs = small.latencies_ms
    n = small.load.outstanding
    verdict = ClaimVerdict.CAPPED if small.limits_only else ClaimVerdict.NOT_MEASURED
    return verdict, (
        f"not known: at 4K and {TABLE_THREADS} threads {n} / {small.other.iops:,.0f} = {ours:.2f} ms "
        f"and {n} / {small.base.iops:,.0f} = {theirs:.2f} ms on both sides, whatever the network takes"
    )


def _correlates(figures: pd.DataFrame) -> Finding:
    cells = predicted_map(_rate(figures)[1])
    same = all(abs(cell.latencies_ms[1] / cell.latencies_ms[0] / cell.ratio - 1) < 1e-9 for cell in cells)
    return ClaimVerdict.SUPPORTED if same else ClaimVerdict.NOT_SUPPORTED, (
        f"as arithmetic: with {DEPTH * TABLE_THREADS} outstanding latency is {DEPTH * TABLE_THREADS} / IOPS "
        "and MB/s are IOPS x block size, so that one finding is counted three times"
    )


def _quoted_latency(figures: pd.DataFrame) -> Finding:
    quoted = float(one_figure(figures, metric="lat_mean")["base"])
    rate, latency = _rate(figures)
    alike = abs(latency / quoted - 1) < 0.1
    return ClaimVerdict.SUPPORTED if alike else ClaimVerdict.NOT_SUPPORTED, (
        f"1000 / {quoted:g} = {1000 / quoted:,.0f} is right, but the article's own rate is "
        f"{DEPTH} / {rate:,.0f} = {latency:.2f} ms at a tenth of the limit"
    )


def _more_threads(figures: pd.DataFrame) -> Finding:
    threads = one_figure(figures, metric="threads_at_limit")
    why = f"{threads['supports']}; more depth a thread would do as well as more threads"
    return ClaimVerdict.SUPPORTED, why


def _more_disks(figures: pd.DataFrame) -> Finding:
    _, latency = _rate(figures)
    four, eight = (knee_threads(4, latency, disks) for disks in (DISKS, 2 * DISKS))
    return ClaimVerdict.SUPPORTED if eight > four else ClaimVerdict.NOT_SUPPORTED, (
        f"by Little's law: {DISKS} disks need {four:.0f} threads of {DEPTH} at {latency:.2f} ms, {2 * DISKS} "
        f"need {eight:.0f}; more depth a thread does as well"
    )


def _cluster_rule(_: pd.DataFrame) -> Finding:
    nodes, drives, iops, share = CLUSTER_RULE
    setup = Setup(Shape("three-way", drives, 8, nodes=nodes), Rates(iops), Rates())
    reads, writes = (volume_bound.bound(setup, Load(4 * KIB, w)).iops for w in (0.0, 1.0))
    return ClaimVerdict.NOT_SUPPORTED, (
        f"{drives} x {iops:,} x {nodes} x {share:g} = {nodes * drives * iops * share / 1e6:.1f} million, and "
        f"neither copies nor limits of nodes are in it: with drives alone a three-way mirror reads at most "
        f"{reads / 1e6:.1f} and writes at most {writes / 1e6:.1f} million"
    )


def _picture(figures: pd.DataFrame) -> Finding:
    total = DISKS * float(disk_rates().iops or 0)
    stated = float(one_figure(figures, metric="cap_iops")["base"])
    return _agrees((stated,), (total,)), (
        f"the reader is right: {DISKS} x {disk_rates().iops:,.0f} = {total:,.0f} IOPS"
    )


def _sync(_: pd.DataFrame) -> Finding:
    return ClaimVerdict.NOT_SUPPORTED, (
        "two meanings of one word: a write waits for all its copies, and DiskSpd kept "
        f"{DEPTH} a thread in flight all the same"
    )


def _eight_nodes(_: pd.DataFrame) -> Finding:
    return ClaimVerdict.SUPPORTED, (
        "as documented: a three-way mirror keeps three copies and stands two faults with any number of "
        "nodes (with three, one node at most, since a pool needs most of its drives); no figure bears on it"
    )


def no_host_cache() -> str:
    """Say what the cluster's size does without a host cache, by the table of sizes."""
    size = catalog.vm_size(NODE)
    cache = "has" if size.host_cache else "has no"
    return (
        f"{NODE} {cache} host cache, so its durable disks together reach its uncached {size.uncached_iops:,} "
        f"IOPS and {size.uncached_mb_s:,.0f} MB/s at most. A host cache answers reads alone, and Microsoft "
        "asks for none on the disks of a pool, whatever the size"
    )


def _no_host_cache(_: pd.DataFrame) -> Finding:
    supported = not catalog.vm_size(NODE).host_cache
    verdict = ClaimVerdict.SUPPORTED if supported else ClaimVerdict.NOT_SUPPORTED
    return verdict, f"as documented: {no_host_cache()}; no figure bears on it"


JUDGES: dict[tuple[str, str], Judge | str] = {
    ("s2d-azure", "documented limits are not reached"): _few_threads,
    ("s2d-azure", "minimum latency about 4 ms"): _minimum_latency,
    ("s2d-azure", "cluster and single server are close"): _cluster_close,
    ("s2d-azure", "the network is not what costs"): _not_the_network,
    ("s2d-azure", "more disks do not help"): "figures of one number of disks (four) are printed",
    ("s2d-azure", "only more threads"): _more_threads,
    ("s2d-azure", "four P30 total"): _disk_totals,
    ("s2d-azure", "the VM size can do"): _vm_limit,
    ("s2d-azure", "4K with a single thread"): _single_thread,
    ("s2d-azure", "limits are hit with 8 to 12 threads at 4K"): _small_knees,
    ("s2d-azure", "limits are hit with 8 to 12 threads at 64K"): _large_knee,
    ("s2d-azure", "the cluster reaches"): _reaches,
    ("s2d-azure", "MB/s are close as well"): _same_mb_s,
    ("s2d-azure", "tests are red or green alike"): _correlates,
    ("s2d-azure", "latency is around 2 ms"): _quoted_latency,
    ("s2d-azure", "with more disks"): _more_disks,
    ("s2d-azure", "Storage Spaces Direct uses sync I/O"): _sync,
    ("s2d-azure", "the laptop's SSD differs"): "no number (charts only); local-disk measures such a disk",
    ("s2d-azure", "30 % of disks x IOPS x nodes"): _cluster_rule,
    ("s2d-azure", "eight nodes have the same"): _eight_nodes,
    ("s2d-azure", "a limit of 2000 IOPS in a picture"): _picture,
    ("s2d-azure", "L-series machines have no host cache"): _no_host_cache,
}
"""What judges each claim, by article and the claim's first words."""
