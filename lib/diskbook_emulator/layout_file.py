"""The file that the processes of an emulated volume share with Python: its layout, its state, what it did.

The structs mirror those marked SHARED in volume.c; the magic word carries the version. Numbers are written
one 8-byte word at a time, as in `diskbook_emulator.shm`.
"""

import ctypes
import mmap
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

import numpy as np
from numpy.typing import NDArray

from diskbook.facts.errors import DiskbookError, UsageError
from diskbook.facts.files import replacing
from diskbook.facts.units import NS_PER_MS
from diskbook_emulator.shm import MAX_SECONDS, SharedLatency, set_latency
from diskbook_emulator.types import Latency
from diskbook_emulator.volumes import REGION_BYTES, SLAB_BYTES, Layout

MAGIC = int.from_bytes(b"DSKVOL02", "little")
DEPTH = 32  # I/Os that a connection to a volume can have under way
MAX_NODES = 8
MAX_MEMBERS = 128
_TIERS = 2
_LOCKS = 4096
_PATH_BYTES = 256
_BLOCK_BYTES = 4096
_PAGE = 4096


@dataclass(frozen=True)
class Hop:
    """What the network adds between two nodes: a lognormal."""

    mean_ms: float = 0.0
    sigma: float = 0.0


@dataclass(frozen=True)
class NodeModel:
    """A node: limits files of its machine's uncached path and of its network, and its noise by the second."""

    vm: Path | None = None
    nic_out: Path | None = None
    nic_in: Path | None = None
    second_log: tuple[float, ...] = (0.0,)


@dataclass(frozen=True)
class MemberModel:
    """A disk of a node: the file of its data, its limits file, and what it plays."""

    backing: Path
    limits: Path | None
    read: Latency
    write: Latency
    log_factor: float = 0.0


@dataclass(frozen=True)
class VolumeModel:
    """What a volume plays.

    `local_share` is the share of reads that the owner's own copies answer (1 / nodes: evenly spread).
    `hop` is that between any two nodes. Rotation begins when the mirror is full to `rotate_at` (0: never).
    Repair copies `repair_depth` chunks at a time.
    """

    nodes: tuple[NodeModel, ...]
    members: tuple[MemberModel, ...]
    local_share: float = 1.0
    hop: Hop = field(default_factory=Hop)
    software_ms: float = 0.0
    rotate_at: float = 0.85
    repair_depth: int = 8


@dataclass(frozen=True)
class Counts:
    """What a volume has done: reads by who answered, and bytes.

    `reallocated` are regions written to the mirror that were in parity; `repair_found` and `repair_done`
    bytes that had to be copied back, and that were.
    """

    local_reads: int
    remote_reads: int
    reallocated: int
    in_place_bytes: int
    rotated_bytes: int
    repair_found: int
    repair_done: int


class _Hop(ctypes.Structure):
    _fields_ = [("mean_ns", ctypes.c_double), ("sigma", ctypes.c_double)]


class _Node(ctypes.Structure):
    _fields_ = [
        ("up", ctypes.c_int64),
        ("seconds", ctypes.c_int64),
        ("wire_out", ctypes.c_int64),
        ("wire_in", ctypes.c_int64),
        ("count", ctypes.c_int64 * 2),
        ("bytes", ctypes.c_int64 * 2),
        ("redirected", ctypes.c_int64 * 2),
        ("hop", _Hop * MAX_NODES),
        ("vm", ctypes.c_char * _PATH_BYTES),
        ("nic_out", ctypes.c_char * _PATH_BYTES),
        ("nic_in", ctypes.c_char * _PATH_BYTES),
        ("second_log", ctypes.c_double * MAX_SECONDS),
    ]


class _Member(ctypes.Structure):
    _fields_ = [
        ("up", ctypes.c_int64),
        ("wiped", ctypes.c_int64),
        ("node", ctypes.c_int64),
        ("log_factor", ctypes.c_double),
        ("latency", SharedLatency * 2),
        ("count", ctypes.c_int64 * 2),
        ("bytes", ctypes.c_int64 * 2),
        ("backing", ctypes.c_char * _PATH_BYTES),
        ("limits", ctypes.c_char * _PATH_BYTES),
    ]


class _Tier(ctypes.Structure):
    _fields_ = [
        (name, ctypes.c_int64) for name in ("kind", "rows", "columns", "bands", "first_band", "first_place")
    ]


_SIZES = ("size_bytes", "slab_bytes", "interleave", "nodes", "members", "tiers")
_PARTS = ("places_at", "marks_at", "regions_at", "used_at", "queue_at", "bytes")


class _Layout(ctypes.Structure):
    _fields_ = [
        ("magic", ctypes.c_uint64),
        *((name, ctypes.c_int64) for name in (*_SIZES, *_PARTS, "online", "owner", "changes")),
        ("local_share", ctypes.c_double),
        ("rotate_at", ctypes.c_double),
        ("software_ns", ctypes.c_int64),
        ("repair_depth", ctypes.c_int64),
        ("keeper", ctypes.c_int64),
        ("used", ctypes.c_int64 * _TIERS),
        ("next", ctypes.c_int64 * _TIERS),
        ("queue_head", ctypes.c_int64),
        ("queue_tail", ctypes.c_int64),
        ("done", ctypes.c_int64 * 7),
        ("book", ctypes.c_int32),
        ("reserved", ctypes.c_int32),
        ("lock", ctypes.c_int32 * _LOCKS * 2),
        ("tier", _Tier * _TIERS),
        ("node", _Node * MAX_NODES),
        ("member", _Member * MAX_MEMBERS),
    ]


_PLACE = np.dtype([("member", np.int32), ("slab", np.uint32)])
_REGION = np.dtype([("at", np.int32, 2), ("valid", np.uint64, REGION_BYTES // _BLOCK_BYTES // 64)])


class LayoutFile:
    """A volume's layout and state.

    - `path`: a file made by `create`.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        with path.open("r+b") as file:
            size = os.fstat(file.fileno()).st_size
            if size < ctypes.sizeof(_Layout):
                raise DiskbookError(f"{path} is too short for a volume's layout; delete it and start again.")
            self._memory = mmap.mmap(file.fileno(), size)
        self._layout = _Layout.from_buffer(self._memory)
        if self._layout.magic != MAGIC:
            raise DiskbookError(
                f"{path} was made by another version of the emulator; delete it and start again."
            )

    @classmethod
    def create(cls, path: Path, layout: Layout, model: VolumeModel) -> Self:
        """Make the file, replacing one that is there: all is up and clean, and no region written.

        Raises UsageError when there are more nodes or members than it can hold, or a path is too long.
        """
        if len(model.nodes) > MAX_NODES or len(model.members) > MAX_MEMBERS:
            raise UsageError(f"a volume has at most {MAX_NODES} nodes and {MAX_MEMBERS} disks.")
        with replacing(path) as part:
            part.write_bytes(b"")
            os.truncate(part, _parts(layout)["bytes"])
            with part.open("r+b") as file, mmap.mmap(file.fileno(), 0) as memory:
                _write(memory, layout, model)
        return cls(path)

    def set_up(self, *, members: Sequence[bool], nodes: Sequence[bool], online: bool) -> None:
        """Say which members and nodes are there, and whether the volume is; repair looks again."""
        for shared, up in zip(self._layout.member, members, strict=False):
            shared.up = int(up)
        for shared_node, up in zip(self._layout.node, nodes, strict=False):
            shared_node.up = int(up)
        self._layout.online = int(online)
        self._layout.changes += 1

    def set_wiped(self, member: int) -> None:
        """Say that an empty disk has come in place of a member; call `set_up` next."""
        self._layout.member[member].wiped = 1

    @property
    def owner(self) -> int:
        """Node that owns the volume: its copies are local."""
        return int(self._layout.owner)

    @owner.setter
    def owner(self, node: int) -> None:
        self._layout.owner = node

    def marks(self, tier: int) -> NDArray[np.bool_]:
        """Tell which places of a tier are dirty; array of bands x rows x columns."""
        shared, words = self._layout.tier[tier], self._words(tier)
        bits = np.arange(shared.rows * shared.columns, dtype=np.uint64)
        dirty: NDArray[np.bool_] = (words[:, None] >> bits & np.uint64(1)).astype(bool)
        return dirty.reshape(shared.bands, shared.rows, shared.columns)

    def _words(self, tier: int) -> NDArray[np.uint64]:
        shared = self._layout.tier[tier]
        at = self._layout.marks_at + 8 * shared.first_band
        return np.frombuffer(self._memory, np.uint64, shared.bands, at)

    def is_clean(self) -> bool:
        """Tell whether no place is dirty, nor will be marked so."""
        low = np.uint64(0xFFFFFFFF)
        marked = any((self._words(tier) & low).any() for tier in range(self._layout.tiers))
        return not marked and not self.wiped()

    def dirty_bytes(self) -> int:
        """Count the bytes of places that are dirty, up or not."""
        if self.is_clean():
            return 0
        return sum(int(self.marks(tier).sum()) for tier in range(self._layout.tiers)) * SLAB_BYTES

    def down(self) -> tuple[set[int], set[int]]:
        """Members, and nodes, that are not there."""
        members, nodes = self._layout.member[: self._layout.members], self._layout.node[: self._layout.nodes]
        return (
            {index for index, member in enumerate(members) if not member.up},
            {index for index, node in enumerate(nodes) if not node.up},
        )

    def wiped(self) -> set[int]:
        """Members that came back empty, whose places are still to be marked."""
        members = self._layout.member[: self._layout.members]
        return {index for index, member in enumerate(members) if member.wiped}

    def counts(self) -> Counts:
        return Counts(*self._layout.done)

    def member_ios(self) -> NDArray[np.int64]:
        """Reads and writes, and bytes read and written, of each member; a row each."""
        shared = [self._layout.member[index] for index in range(self._layout.members)]
        return np.array([[*member.count, *member.bytes] for member in shared], np.int64)

    def wire_bytes(self) -> NDArray[np.int64]:
        """Bytes that each node has sent and received; a row each."""
        shared = [self._layout.node[index] for index in range(self._layout.nodes)]
        return np.array([[node.wire_out, node.wire_in] for node in shared], np.int64)

    def node_ios(self) -> NDArray[np.int64]:
        """Count what clients did on each node, a row each.

        Reads and writes, bytes read and written, and bytes read and written by way of another node.
        """
        shared = [self._layout.node[index] for index in range(self._layout.nodes)]
        return np.array([[*node.count, *node.bytes, *node.redirected] for node in shared], np.int64)

    def play(self, model: VolumeModel) -> None:
        """Play other noise from now on: of members, and of nodes by the second."""
        for node, node_model in zip(self._layout.node, model.nodes, strict=False):
            _write_seconds(node, node_model)
        for member, member_model in zip(self._layout.member, model.members, strict=False):
            _write_play(member, member_model)

    def mirror_fill(self) -> float:
        """Share of the mirror tier that is in use, of a volume with two tiers."""
        tier = self._layout.tier[0]
        return float(self._layout.used[0]) / (tier.bands * tier.columns * SLAB_BYTES // REGION_BYTES)


def _parts(layout: Layout) -> dict[str, int]:
    """Where each part of the file begins, and its length."""
    places = sum(tier.members.size for tier in layout.tiers)
    bands = sum(len(tier.members) for tier in layout.tiers)
    regions = layout.size_bytes // REGION_BYTES if len(layout.tiers) > 1 else 0
    sizes = (
        ctypes.sizeof(_Layout),
        places * _PLACE.itemsize,
        bands * 8,
        regions * _REGION.itemsize,
        regions,
        (regions + 1) * 8,
    )
    ends = np.cumsum([-(-size // _PAGE) * _PAGE for size in sizes])
    return {name: int(end) for name, end in zip(_PARTS, ends, strict=True)}


def _write(memory: mmap.mmap, layout: Layout, model: VolumeModel) -> None:
    shared = _Layout.from_buffer(memory)
    try:
        _write_head(shared, layout, model)
        places = shared.places_at
        for tier in layout.tiers:
            table = np.frombuffer(memory, _PLACE, tier.members.size, places)
            table["member"], table["slab"] = tier.members.reshape(-1), tier.slabs.reshape(-1)
            places += table.nbytes
            del table
        shared.magic = MAGIC
    finally:
        del shared


def _write_head(shared: _Layout, layout: Layout, model: VolumeModel) -> None:
    for name, at in _parts(layout).items():
        setattr(shared, name, at)
    sizes = (
        layout.size_bytes,
        SLAB_BYTES,
        layout.interleave_bytes,
        len(model.nodes),
        len(model.members),
        len(layout.tiers),
    )
    for name, value in zip(_SIZES, sizes, strict=True):
        setattr(shared, name, value)
    shared.online, shared.local_share, shared.rotate_at = 1, model.local_share, model.rotate_at
    shared.software_ns, shared.repair_depth = round(model.software_ms * NS_PER_MS), model.repair_depth
    band = place = 0
    for target, tier in zip(shared.tier, layout.tiers, strict=False):
        bands, rows, columns = tier.members.shape
        target.kind, target.rows, target.columns, target.bands = int(tier.parity), rows, columns, bands
        target.first_band, target.first_place = band, place
        band, place = band + bands, place + tier.members.size
    for node, node_model in zip(shared.node, model.nodes, strict=False):
        _write_node(node, node_model, model.hop)
    for member, member_model, on in zip(shared.member, model.members, layout.nodes, strict=False):
        member.up, member.node = 1, on
        member.backing, member.limits = _path(member_model.backing), _path(member_model.limits)
        _write_play(member, member_model)


def _write_node(shared: _Node, node: NodeModel, hop: Hop) -> None:
    shared.up = 1
    for name in ("vm", "nic_out", "nic_in"):
        setattr(shared, name, _path(getattr(node, name)))
    for way in shared.hop:
        way.mean_ns, way.sigma = hop.mean_ms * NS_PER_MS, hop.sigma
    _write_seconds(shared, node)


def _write_seconds(shared: _Node, node: NodeModel) -> None:
    shared.second_log[: len(node.second_log)] = list(node.second_log)
    shared.seconds = len(node.second_log)


def _write_play(shared: _Member, member: MemberModel) -> None:
    shared.log_factor = member.log_factor
    set_latency(shared.latency[0], member.read)
    set_latency(shared.latency[1], member.write)


def _path(path: Path | None) -> bytes:
    encoded = b"" if path is None else os.fsencode(path.absolute())
    if len(encoded) >= _PATH_BYTES:
        raise UsageError(f"the path {path} has {len(encoded)} bytes; a volume's may have {_PATH_BYTES - 1}.")
    return encoded
