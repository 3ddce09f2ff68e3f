"""What the article on nested resiliency claims, judged by documented rules and by counting disk I/Os.

It prints charts and no numbers, so that what a kind does is judged by a run alone
(`diskbook.clusters.analysis.nested.verdicts`).
"""

import pandas as pd

from diskbook.clusters.design import rules, volume_rules
from diskbook.clusters.design.volume_rules import COPIES, MOST_COLUMNS_OF_PARITY, NESTED_DISKS, efficiency
from diskbook.clusters.stats import volume_bound
from diskbook.clusters.stats.volume_bound import IOS_A_WRITE, Load, Rates, Setup, Shape
from diskbook.design.model import Volume, VolumeKind
from diskbook.facts import quantities
from diskbook.facts.units import KIB
from diskbook.report.analysis.published_claims import ClaimVerdict, Finding, Judge

NODES, VOLUMES, MACHINES, THREADS, DEPTH = 2, 2, 28, 10, 8
"""Nodes; volumes of each kind, machines on all of them, and what each machine keeps in flight."""
MIRROR_GB, PARITY_GB, FILE_GB = 100, 500, 10
"""Tiers of a volume, and the file that VMFleet makes in each machine by default (`New-Fleet`)."""
_CHARTS = "the text prints no number (charts only)"


def usable(kind: VolumeKind, disks: int, tiers: tuple[int, int] | None = None, nodes: int = NODES) -> float:
    """Usable share of the drives, with some in each node; `tiers` are sizes of mirror and parity."""
    mirror, parity = tiers or (None, None)
    volume = Volume(
        name="v", kind=kind, disk="d", columns=1, size_gib=None if tiers else 1, mirror_gib=mirror,
        parity_gib=parity,
    )  # fmt: skip
    return efficiency(volume, nodes, disks)


def of_a_mirror(kind: VolumeKind, write_share: float) -> float:
    """Rate of a kind over that of a two-way mirror that drives alone allow, small random I/Os."""
    rates = [
        volume_bound.bound(Setup(Shape(of, 4, 1, NODES), Rates(1.0), Rates()), Load(4 * KIB, write_share))
        for of in (kind, _MIRROR)
    ]
    return rates[0].iops / rates[1].iops


_MIRROR: VolumeKind = "two-way"


def _goes_offline(_: pd.DataFrame) -> Finding:
    ways = ("drive-each", "node-and-drive")
    stands = any(volume_rules.survives(_MIRROR, NODES, NESTED_DISKS, lost) for lost in ways)
    return ClaimVerdict.NOT_SUPPORTED if stands else ClaimVerdict.SUPPORTED, (
        f"as documented: {COPIES[_MIRROR]} copies, one in each node, so that what a lost drive or node held "
        "is one copy from gone; a run plays it"
    )


def _two_of_three(_: pd.DataFrame) -> Finding:
    stands = volume_rules.survives("three-way", 3, NESTED_DISKS, "two-nodes")
    return ClaimVerdict.SUPPORTED if stands else ClaimVerdict.NOT_SUPPORTED, (
        "as documented: copies are left, but one of three nodes holds no majority of the pool's drives, and "
        "the pool stops; a run plays it"
    )


def _terrible(_: pd.DataFrame) -> Finding:
    writes, reads = (of_a_mirror("nested-parity", share) for share in (1.0, 0.0))
    return ClaimVerdict.SUPPORTED if writes < 0.5 else ClaimVerdict.NOT_SUPPORTED, (
        f"for small writes in place: {IOS_A_WRITE['nested-parity']} disk I/Os against "
        f"{IOS_A_WRITE[_MIRROR]} allow {100 * writes:.0f} % of a mirror's rate; of reads {100 * reads:.0f} %"
    )


def _only_a_quarter(_: pd.DataFrame) -> Finding:
    share = usable("nested-mirror", NESTED_DISKS)
    return ClaimVerdict.SUPPORTED if share == 0.25 else ClaimVerdict.NOT_SUPPORTED, (
        f"{COPIES['nested-mirror']} copies: {100 * share:.0f} %"
    )


def _more_effective(_: pd.DataFrame) -> Finding:
    nested = usable("nested-mirror", NESTED_DISKS)
    few, most = (usable("nested-parity", disks, (20, 80)) for disks in (NESTED_DISKS, MOST_COLUMNS_OF_PARITY))
    return ClaimVerdict.SUPPORTED if few > 1.2 * nested else ClaimVerdict.NOT_SUPPORTED, (
        f"{100 * few:.1f} to {100 * most:.1f} % with {NESTED_DISKS} to {MOST_COLUMNS_OF_PARITY} drives a "
        f"node and more, against {100 * nested:.0f} %: "
        f"{quantities.changed(few / nested, 'more')} to {quantities.changed(most / nested, 'more')}"
    )


def _data_set(_: pd.DataFrame) -> Finding:
    data, kept = MACHINES / VOLUMES * FILE_GB, rules.ROTATE_AT * MIRROR_GB
    why = f"files of {FILE_GB} GB, VMFleet's default, are {data:.0f} GB a volume, and {kept:.0f} GB stay in"
    return ClaimVerdict.NOT_MEASURED, (
        f"{_CHARTS}, of one data set and one size of the mirror; {why} its mirror of {MIRROR_GB} GB"
    )


def _half_the_disks(_: pd.DataFrame) -> Finding:
    ratio = of_a_mirror("nested-mirror", 1.0)
    return ClaimVerdict.SUPPORTED if ratio == 0.5 else ClaimVerdict.NOT_SUPPORTED, (
        f"as a bound, with full queues: {IOS_A_WRITE[_MIRROR]} / {IOS_A_WRITE['nested-mirror']} disk I/Os a "
        f"write allow {100 * ratio:.0f} % of a mirror's writes, whatever is measured; below that limit it is "
        "the slowest of four copies instead of two"
    )


def _calculations(_: pd.DataFrame) -> Finding:
    ratio = of_a_mirror("nested-parity", 1.0)
    return ClaimVerdict.NOT_SUPPORTED, (
        f"the cause is misnamed: old data and parity are read and new ones written on both nodes, "
        f"{IOS_A_WRITE['nested-parity']} disk I/Os against {IOS_A_WRITE[_MIRROR]}, which allow "
        f"{100 * ratio:.0f} % of a mirror's writes; what the calculation takes is not in any chart"
    )


def _invest(_: pd.DataFrame) -> Finding:
    tiers = (MIRROR_GB, PARITY_GB)
    few, most = (
        usable("nested-parity", disks, tiers) / usable("nested-mirror", disks)
        for disks in (NESTED_DISKS, MOST_COLUMNS_OF_PARITY)
    )
    gain = of_a_mirror("nested-mirror", 1.0) / of_a_mirror("nested-parity", 1.0)
    return ClaimVerdict.SUPPORTED if gain > 1 else ClaimVerdict.NOT_SUPPORTED, (
        f"by counting, at equal capacity: {quantities.changed(few, 'more')} to "
        f"{quantities.changed(most, 'more')} drives give {quantities.changed(gain * few, 'more')} to "
        f"{quantities.changed(gain * most, 'more')} of the small writes that are made in place, "
        f"{quantities.changed(gain, 'more')} per drive; of reads each drive gives as many"
    )


def _grid(_: pd.DataFrame) -> Finding:
    outstanding = MACHINES * THREADS * DEPTH
    return ClaimVerdict.CAPPED, (
        f"{outstanding:,} I/Os are in flight in each of the 27 cells, measured once, one kind after the "
        "other: rates of full queues are those of limits, latency is outstanding / IOPS, and drift is in "
        "every ratio"
    )


JUDGES: dict[tuple[str, str], Judge | str] = {
    ("nested-resiliency", "a two-node mirror goes offline"): _goes_offline,
    ("nested-resiliency", "a three-way mirror on three nodes"): _two_of_three,
    ("nested-resiliency", "parity has terrible"): _terrible,
    ("nested-resiliency", "nested mirror leaves only 25 %"): _only_a_quarter,
    ("nested-resiliency", "accelerated parity with 20 %"): _more_effective,
    ("nested-resiliency", "accelerated parity uses its mirrored part"): lambda _: (
        ClaimVerdict.NOT_SUPPORTED,
        "for writes only, as documented: they go into the mirrored part while it has room; what is read "
        "never moves back into it",
    ),
    ("nested-resiliency", "little or no read loss"): _CHARTS,
    ("nested-resiliency", "a bigger read loss"): (
        f"{_CHARTS}; not known: on one kind of drive reading parity is documented to be as fast, and "
        "whether the data were written in full before is not said"
    ),
    ("nested-resiliency", "very little loss with a smaller data set"): _data_set,
    ("nested-resiliency", "write loss for nested mirror"): _half_the_disks,
    ("nested-resiliency", "heavy write loss"): _calculations,
    ("nested-resiliency", "buy disks"): _invest,
    ("nested-resiliency", "28 VMs of 10 threads x 8"): _grid,
}
"""What judges each claim, by article and the claim's first words."""
