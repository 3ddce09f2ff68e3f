"""Where the copies of an emulated volume lie, and what it outlives. Pure: numbers in, arrays out.

A tier is a row of bands. A band holds a stretch of the volume, striped over columns, in rows: each row has it
whole, as a copy of a mirror, or as data and parity on the disks of one node. Where a row's column lies is a
slab of a disk.
"""

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from diskbook.clusters.design.volume_rules import COPIES, MOST_COLUMNS_OF_PARITY
from diskbook.facts.units import GIB, MIB

SLAB_BYTES = 4 * MIB
"""Storage Spaces has 256 MiB; 4 MiB let the small working sets of emulated trials lie on all disks alike."""
REGION_BYTES = MIB
"""What a volume with two tiers moves at a time; ReFS has 64 MiB."""
MOST_PLACES = 32

Places = NDArray[np.int32]
Slabs = NDArray[np.uint32]


@dataclass(frozen=True)
class Tier:
    """A part of a volume: the member and the slab of each band, row and column (arrays of that shape).

    The last column of a row of a parity tier is its parity.
    """

    parity: bool
    members: Places
    slabs: Slabs

    @property
    def data_columns(self) -> int:
        return self.members.shape[2] - self.parity

    @property
    def size_bytes(self) -> int:
        """What it holds."""
        return self.members.shape[0] * self.data_columns * SLAB_BYTES


@dataclass(frozen=True)
class Layout:
    """All tiers of a volume; `nodes` has the node of each member. One with two tiers maps its regions."""

    kind: str
    nodes: tuple[int, ...]
    interleave_bytes: int
    tiers: tuple[Tier, ...]
    size_bytes: int

    @property
    def footprint_bytes(self) -> int:
        """What it takes of the pool."""
        return sum(tier.members.size for tier in self.tiers) * SLAB_BYTES


def arrange(
    kind: str,
    disks: int,
    nodes: int,
    sizes_gib: Sequence[float],
    columns: int,
    interleave_kib: int = 256,
    taken: NDArray[np.int64] | None = None,
) -> Layout:
    """Lay a volume out on a pool.

    - `kind`: as in scenarios: simple, two-way, three-way, nested-mirror, nested-parity.
    - `disks`, `nodes`: disks of each node, and nodes. Members are numbered node by node.
    - `sizes_gib`: its size; of a nested-parity volume those of its mirror and its parity tier.
    - `columns`: disks that data are striped over; a parity tier takes all disks of a node, at most 7.
    - `interleave_kib`: how much lies on a disk before the next one's turn.
    - `taken`: slabs of each member that other volumes have; by default none.

    Raises ValueError: it cannot lie on these disks.
    """
    start = np.zeros(nodes * disks, np.int64) if taken is None else taken.copy()
    if SLAB_BYTES % (interleave_kib * 1024):
        raise ValueError(f"an interleave of {interleave_kib} KiB does not divide a slab of 4 MiB")
    tiers = [_tier(_mirror(kind, disks, nodes, columns, _bands(sizes_gib[0], columns)), False, start)]
    if kind == "nested-parity":
        width = min(disks, MOST_COLUMNS_OF_PARITY)
        tiers.append(_tier(_parity(disks, width, _bands(sizes_gib[1], width - 1)), True, start))
    size = sum(tier.size_bytes for tier in tiers)
    if len(tiers) > 1:
        size = sum(tier.size_bytes // REGION_BYTES for tier in tiers) * REGION_BYTES
    of_members = tuple(node for node in range(nodes) for _ in range(disks))
    return Layout(kind, of_members, interleave_kib * 1024, tuple(tiers), size)


def _bands(size_gib: float, data_columns: int) -> int:
    return max(1, math.ceil(size_gib * GIB / (data_columns * SLAB_BYTES)))


def _mirror(kind: str, disks: int, nodes: int, columns: int, bands: int) -> Places:
    """Members of every band, row and column: copies on different nodes, or two on disks of each node."""
    rows = COPIES[kind]
    each = rows // nodes if rows > nodes else 1  # copies on a node
    if rows > each * nodes or each * columns > disks or rows * columns > MOST_PLACES:
        raise ValueError(f"a {kind} volume of {columns} columns does not fit on {nodes} x {disks} disks")
    band, row, column = np.ix_(np.arange(bands), np.arange(rows), np.arange(columns))
    node = (band + row // each) % nodes if rows < nodes else row // each + 0 * band
    # Data of a disk have their other copy, a little each, on all disks of the other nodes.
    shift = band // disks**node
    disk = (band * each * columns + row % each * columns + column + shift) % disks
    return (node * disks + disk).astype(np.int32)


def _parity(disks: int, width: int, bands: int) -> Places:
    """Members of a parity tier: a row on each of two nodes, whose parity is on another disk in each band."""
    if width < 3:
        raise ValueError(f"parity needs at least 3 disks a node, not {width}")
    band, row, column = np.ix_(np.arange(bands), np.arange(2), np.arange(width))
    return (row * disks + (band + column) % disks).astype(np.int32)


def _tier(members: Places, parity: bool, start: NDArray[np.int64]) -> Tier:
    """Give each place the next slab of its member; `start` moves on."""
    flat = members.reshape(-1)
    slabs = np.empty(flat.size, np.uint32)
    for member in range(start.size):
        where = np.flatnonzero(flat == member)
        slabs[where] = start[member] + np.arange(where.size)
        start[member] += where.size
    return Tier(parity, members, slabs.reshape(members.shape))


def slabs_taken(layout: Layout) -> NDArray[np.int64]:
    """Count the slabs that each member has given."""
    counts = np.zeros(len(layout.nodes), np.int64)
    for tier in layout.tiers:
        counts += np.bincount(tier.members.reshape(-1), minlength=counts.size)
    return counts


def lost_bands(tier: Tier, clean: NDArray[np.bool_]) -> int:
    """Count the bands of which something can be had from no row.

    - `clean`: whether each place can be read, of the shape of `tier.members`.
    """
    if tier.parity:  # a row tells one column from all its others
        whole = clean.sum(axis=2) >= clean.shape[2] - 1
        lost = ~(clean[..., : tier.data_columns] | whole[..., None]).any(axis=1)
    else:
        lost = ~clean.any(axis=1)
    return int(lost.any(axis=1).sum())


def pool_holds(nodes: Sequence[int], up: Collection[int], up_nodes: Collection[int], witness: bool) -> bool:
    """Tell whether the pool keeps its majority.

    - `nodes`: node of each member.
    - `up`, `up_nodes`: members and nodes that are there.
    - `witness`: whether the cluster has one.

    "Understanding cluster and pool quorum" (MicrosoftDocs/windowsserverdocs): of three nodes one may fail, a
    second one not, since most drives must be there; of two nodes with a witness one may, and, with nested
    resiliency, a drive of the other one; without a witness none.
    """
    count = len(set(nodes))
    there = [member for member in up if nodes[member] in up_nodes]
    if count == 1:
        return bool(up_nodes)
    if count == 2:
        return bool(there) and (witness or len(up_nodes) == 2)
    return 2 * len(there) > len(nodes)


def expected_write_ms(
    means_ms: Sequence[float],
    sigma: float,
    hops_ms: Sequence[float] = (),
    draws: int = 400_000,
    hop_sigma: float = 0.0,
) -> float:
    """Mean latency of a write that ends with its slowest copy, each a lognormal plus its hop, another one.

    By `draws` draws of a fixed seed: 0.1 % or better up to a sigma of 0.5.
    """
    random = np.random.default_rng(1)
    hops = list(hops_ms) or [0.0] * len(means_ms)
    slowest = np.zeros(draws)
    for mean, hop in zip(means_ms, hops, strict=True):
        copy = mean * np.exp(sigma * (random.standard_normal(draws) - sigma / 2))
        if hop:
            copy += (
                hop * np.exp(hop_sigma * (random.standard_normal(draws) - hop_sigma / 2))
                if hop_sigma
                else hop
            )
        np.maximum(slowest, copy, out=slowest)
    return float(slowest.mean())
