"""Where the copies of a volume may lie, by the rules of its kind. Pure.

A band is a stretch of a volume, striped over columns; each row has it whole: a copy of a mirror, or data
and parity on the disks of one node. Which drive a real slab lies on Storage Spaces chooses; what
is fixed is on which nodes copies lie, and that no two of a band share a drive. Disks take turns here.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from diskbook.clusters.design.volume_rules import COPIES, MOST_COLUMNS_OF_PARITY
from diskbook.design.model import Volume

Bands = tuple[tuple[tuple[int, ...], ...], ...]
"""Members by band, row and column; numbered node by node."""


@dataclass(frozen=True)
class Tier:
    """The first bands of a tier; the last column of each row of a parity tier is its parity."""

    parity: bool
    members: Bands


@dataclass(frozen=True)
class Arrangement:
    """Where the first bands of a volume lie; `nodes` has the number of the node of each member."""

    nodes: tuple[int, ...]
    tiers: tuple[Tier, ...]
    by_rule: bool


def by_rule(volume: Volume, nodes: int, disks: int, bands: int = 4) -> Arrangement:
    """Lay the first bands of a volume out on nodes of so many disks each."""
    tiers = [Tier(False, _mirror(volume.kind, nodes, disks, volume.columns, bands))]
    if volume.kind == "nested-parity":
        tiers.append(Tier(True, _parity(disks, bands)))
    return Arrangement(tuple(node for node in range(nodes) for _ in range(disks)), tuple(tiers), True)


def of_layout(layout: Mapping[str, Any], bands: int = 4) -> Arrangement:
    """Return the arrangement that an emulated machine has told of a volume."""
    tiers = tuple(Tier(bool(tier["parity"]), _tuples(tier["members"][:bands])) for tier in layout["tiers"])
    return Arrangement(tuple(int(node) for node in layout["nodes"]), tiers, False)


def _tuples(members: Sequence[Sequence[Sequence[int]]]) -> Bands:
    return tuple(tuple(tuple(int(member) for member in row) for row in band) for band in members)


def _mirror(kind: str, nodes: int, disks: int, columns: int, bands: int) -> Bands:
    """Copies on different nodes, or two on disks of each node."""
    rows = COPIES[kind]
    each = rows // nodes if rows > nodes else 1  # copies on a node

    def member(band: int, row: int, column: int) -> int:
        node = (band + row // each) % nodes if rows < nodes else row // each
        disk = (band * each + row % each) * columns + column
        return node * disks + (disk + band // int(disks**node)) % disks

    return tuple(
        tuple(tuple(member(band, row, column) for column in range(columns)) for row in range(rows))
        for band in range(bands)
    )


def _parity(disks: int, bands: int) -> Bands:
    """A row on each of two nodes, whose parity is on another disk in each band."""
    width = min(disks, MOST_COLUMNS_OF_PARITY)
    return tuple(
        tuple(tuple(row * disks + (band + column) % disks for column in range(width)) for row in range(2))
        for band in range(bands)
    )
