"""What of the drives is left to use, against what was measured, and what equal capacity costs.

Efficiency is usable / footprint on the pool (`design.volume_rules.footprint_gib`). Drives are counted for
equal usable capacity, without a reserve; prices are list prices of the dated table.
"""

import math
from collections.abc import Sequence
from itertools import count
from typing import NamedTuple

import pandas as pd

from diskbook.clusters.analysis import claims_nested, decision
from diskbook.clusters.analysis.nested import arms, saturated
from diskbook.clusters.design.volume_rules import (
    LEAST_DISKS,
    MOST_COLUMNS_OF_PARITY,
    NESTED_DISKS,
    efficiency,
)
from diskbook.clusters.stats import volume_bound
from diskbook.clusters.stats.volume_bound import Load, Rates, Setup, Shape
from diskbook.design.model import Volume, VolumeKind
from diskbook.facts import quantities
from diskbook.facts.catalog import tier_named
from diskbook.facts.prices import Meter, PriceList
from diskbook.facts.units import KIB
from diskbook.report.show.analysed import Analysed

ARTICLES_TIERS = claims_nested.MIRROR_GB, claims_nested.PARITY_GB
FIFTH = (20, 80)
USABLE_TIB = 8
DRIVE, NODE = "P30", "Standard_D32s_v5"
_WRITES = Load(4 * KIB, 1.0)


class Choice(NamedTuple):
    """A way to lay a volume out: its kind, the GiB of its tiers where it has two, and the nodes it needs."""

    name: str
    kind: VolumeKind
    tiers: tuple[int, int] | None = None
    nodes: int = 2

    def efficiency(self, disks: int) -> float:
        """Usable share of the drives, with some of them in each node."""
        return claims_nested.usable(self.kind, disks, self.tiers, self.nodes)

    def least_disks(self) -> int:
        """Drives a node that it needs at least."""
        return NESTED_DISKS if self.kind.startswith("nested-") else LEAST_DISKS


CHOICES = (
    Choice("two-way mirror", "two-way"),
    Choice("three-way mirror, 3 nodes", "three-way", nodes=3),
    Choice("accelerated parity, 1/6 mirror", "nested-parity", ARTICLES_TIERS),
    Choice("accelerated parity, 20 % mirror", "nested-parity", FIFTH),
    Choice("nested mirror", "nested-mirror"),
)
MOST_PARITY = CHOICES[2]
"""Accelerated parity as the article has it."""


def by_drives(choice: Choice) -> dict[int, float]:
    """Efficiency by drives a node, from those it needs to those beyond which it stays the same."""
    return {disks: choice.efficiency(disks) for disks in range(NESTED_DISKS, MOST_COLUMNS_OF_PARITY + 1)}


def drives_a_node(choice: Choice, usable_tib: float, drive_tib: float = 1.0) -> int:
    """Fewest drives a node that give a usable capacity."""
    return next(
        disks
        for disks in count(choice.least_disks())
        if choice.nodes * disks * drive_tib * choice.efficiency(disks) >= usable_tib - 1e-9
    )


def times_the_drives(disks: int) -> float:
    """Drives of a nested mirror over those of accelerated parity as the article has it, at equal capacity."""
    nested = CHOICES[-1]
    return MOST_PARITY.efficiency(disks) / nested.efficiency(disks)


def points(a: Analysed) -> pd.DataFrame:
    """Every kind that was measured with full queues: capacity and ratio to the two-way mirror by write share.

    Returns `arm, label, capacity_pct, most_pct` (with seven drives a node and more), `write_pct, ratio, low,
    high` (of the smallest blocks), `bound`; the two-way mirror is 1.
    """
    table = saturated.ratios(a)
    base = arms.base(a)
    if table.empty or base is None:
        return pd.DataFrame(
            columns=["arm", "label", "capacity_pct", "most_pct", "write_pct", "ratio", "low", "high", "bound"]
        )
    table = table[table["block_size_bytes"] == table["block_size_bytes"].min()]
    own = pd.DataFrame(
        {"arm": base, "write_pct": sorted(set(table["write_pct"])), "ratio": 1.0, "bound": 1.0}
    )
    rows = pd.concat([own, table], ignore_index=True)[["arm", "write_pct", "ratio", "low", "high", "bound"]]
    capacity = {name: of_arm(a, name) for name in set(rows["arm"])}
    return rows.assign(
        label=[arms.words(a, name) for name in rows["arm"]],
        capacity_pct=[100 * capacity[name][0] for name in rows["arm"]],
        most_pct=[100 * capacity[name][1] for name in rows["arm"]],
    )


def of_arm(a: Analysed, name: str) -> tuple[float, float]:
    """Efficiency of an arm's volume with its drives a node, and with as many as count.

    An imported arm has no drives: those of the article's volumes on four and on seven drives a node.
    """
    made = arms.volume(a.scenario, name)
    if made is None:
        of = arms.kind(a.scenario, name)
        choice = next((item for item in CHOICES if item.kind == of), CHOICES[0])
        shares = list(by_drives(choice).values())
        return shares[0], shares[-1]
    nodes, disks = len(a.scenario.nodes_of(made)), a.scenario.disk_named(made.disk).count
    most = max(disks, MOST_COLUMNS_OF_PARITY)
    return efficiency(made, nodes, disks), efficiency(made, nodes, most)


def read_back(a: Analysed) -> dict[str, float]:
    """Efficiency of every volume as the nodes read it back, by its name; empty where none did."""
    made = [part for row in a.manifest["replicates"] for part in row.get("volumes", {}).items()]
    return {
        name: volume["size_bytes"] / volume["footprint_bytes"]
        for name, volume in made
        if volume.get("footprint_bytes")
    }


def efficiency_table(a: Analysed) -> pd.DataFrame:
    """Efficiency of every kind by drives a node, and what the nodes of this run read back."""
    seen = read_back(a)
    rows = []
    for choice in CHOICES:
        shares = by_drives(choice)
        names = [
            item.name for item in a.scenario.volume
            if item.kind == choice.kind and _same_tiers(item, choice.tiers)
        ]  # fmt: skip
        members = [
            name for item in a.scenario.volume if item.name in names for name in a.scenario.members_of(item)
        ]
        back = sorted({f"{100 * seen[name]:.1f}" for name in members if name in seen})
        rows.append({
            "Volume": choice.name,
            **{_heading(disks): f"{100 * share:.1f}" for disks, share in shares.items()},
            "Read back here, %": " to ".join(back[:1] + back[1:][-1:]),
            "TB on the pool for 2 x 600 GB": f"{1.2 / shares[NESTED_DISKS]:.2f}",
        })  # fmt: skip
    return pd.DataFrame(rows)


def decision_table(a: Analysed) -> pd.DataFrame:
    """Drives, dollars and writes of every kind at equal usable capacity, beside what was measured."""
    prices = decision.prices_of(a.scenario.region, [Meter("disk", f"{DRIVE} LRS"), Meter("vm-windows", NODE)])
    cells = saturated.ratios(a)
    return pd.DataFrame([_row(a, choice, prices, cells) for choice in CHOICES])


def decision_words(a: Analysed) -> list[str]:
    """Say what a nested mirror costs more than accelerated parity, and where prices are from."""
    few, many = (times_the_drives(disks) for disks in (NESTED_DISKS, MOST_COLUMNS_OF_PARITY))
    prices = decision.prices_of(a.scenario.region, [Meter("disk", f"{DRIVE} LRS"), Meter("vm-windows", NODE)])
    return [
        f"for the same capacity a nested mirror takes {quantities.changed(few, 'more')} drives than "
        f"accelerated parity with {NESTED_DISKS} drives a node, and {quantities.changed(many, 'more')} with "
        f"{MOST_COLUMNS_OF_PARITY} or more; more drives also do more, so that writes that last are given for "
        "the drives of each row",
        f"{decision.price_words(prices, a.scenario.region)}; {DRIVE} and {NODE} stand for drives and nodes: "
        "on hardware put your own prices in",
        "no row has a reserve; Microsoft recommends one drive a node",
    ]


def _row(a: Analysed, choice: Choice, prices: PriceList, cells: pd.DataFrame) -> dict[str, object]:
    disks = drives_a_node(choice, USABLE_TIB)
    number = choice.nodes * disks
    meters = [(Meter("disk", f"{DRIVE} LRS"), number), (Meter("vm-windows", NODE), choice.nodes)]
    month, of_drives = decision.month_usd(meters, prices), decision.month_usd(meters[:1], prices)
    return {
        f"For {USABLE_TIB} usable TiB": choice.name,
        f"Drives of 1 TiB ({DRIVE})": f"{choice.nodes} x {disks}",
        "USD a month, drives": of_drives,
        "with nodes": month,
        "Writes that last (bound), IOPS": volume_bound.bound(_setup(choice, disks), _WRITES, spent=True).iops,
        "Measured here: 4K writes, times two-way": _measured(a, choice, cells),
    }


def _setup(choice: Choice, disks: int) -> Setup:
    """Drives alone: what machines allow is another matter."""
    tier = tier_named(DRIVE)
    return Setup(Shape(choice.kind, disks, 1, choice.nodes), Rates(tier.iops, tier.mb_s), Rates())


def _measured(a: Analysed, choice: Choice, rows: pd.DataFrame) -> str:
    if choice.kind == arms.BASE:
        return "1" if arms.base(a) else decision.NOT_MEASURED
    rows = rows[(rows["write_pct"] == 100) & (rows["block_size_bytes"] == 4 * KIB)]
    rows = rows[rows["kind"] == choice.kind]
    rows = rows[[_arms_tiers(a, name, choice.tiers) for name in rows["arm"]]] if len(rows) else rows
    return f"{rows['ratio'].iloc[0]:.2f} ({a.provenance})" if len(rows) else decision.NOT_MEASURED


def _arms_tiers(a: Analysed, name: str, tiers: Sequence[int] | None) -> bool:
    made = arms.volume(a.scenario, name)
    if made is None:
        return tiers != FIFTH
    return _same_tiers(made, tiers) and not arms.is_inside(a.scenario, name)


def _same_tiers(made: Volume, tiers: Sequence[int] | None) -> bool:
    """Whether a volume has the same mirror share."""
    if tiers is None or made.mirror_gib is None:
        return tiers is None and made.mirror_gib is None
    return math.isclose(made.mirror_gib / made.room_gib, tiers[0] / sum(tiers), rel_tol=0.02)


def _heading(disks: int) -> str:
    return f"{disks}{' or more' * (disks == MOST_COLUMNS_OF_PARITY)} drives a node, %"
