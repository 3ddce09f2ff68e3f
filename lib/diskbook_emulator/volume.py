"""Emulated volumes: an nbdkit process for each node that uses one, disks and nodes that fail and return."""

import ctypes
import os
from collections.abc import Collection, Iterable
from pathlib import Path

import numpy as np

from diskbook.facts.errors import DiskbookError
from diskbook_emulator.disk import Server, make_sparse
from diskbook_emulator.layout_file import DEPTH, LayoutFile, VolumeModel
from diskbook_emulator.types import ExportModel, Latency
from diskbook_emulator.volumes import SLAB_BYTES, Layout, lost_bands, pool_holds, slabs_taken

VOLUME_SOURCE = Path(__file__).with_name("volume.c")
_PUNCH_HOLE, _KEEP_SIZE = 2, 1  # fallocate(2)
_NOTHING = Latency(0.0)


class VolumeServer(Server):
    """A volume as one node sees it.

    - `socket`, `plugin`, `work_dir`, `epoch_s`, `threads`: as of a `Server`; the plugin is that of
      `VOLUME_SOURCE`.
    - `layout`: the volume's layout file, shared by the servers of all nodes.
    - `flush`, `trial_log`: what a flush costs, and the noise of trials.
    """

    def __init__(
        self,
        socket: Path,
        plugin: Path,
        work_dir: Path,
        layout: Path,
        node: int,
        *,
        flush: Latency = _NOTHING,
        trial_log: tuple[float, ...] = (0.0,),
        epoch_s: float | None = None,
        threads: int = DEPTH,
    ) -> None:
        model = ExportModel(_NOTHING, _NOTHING, flush, trial_log=trial_log)
        super().__init__(socket, plugin, work_dir, model, epoch_s, threads)
        self._layout, self._node = layout, node

    def _settings(self) -> dict[str, object]:
        return {"layout": self._layout.absolute(), "node": self._node}


class Volume:
    """A volume on its disks: made, and told what fails and what returns.

    - `path`: its layout file; made, with the files of its disks, when there is none.
    - `witness`: whether its cluster has one.

    Raises DiskbookError: a disk's file cannot be made.
    """

    def __init__(self, path: Path, layout: Layout, model: VolumeModel, *, witness: bool = False) -> None:
        self.layout, self.model, self.witness = layout, model, witness
        for member, slabs in zip(model.members, slabs_taken(layout), strict=True):
            make_sparse(member.backing, int(slabs) * SLAB_BYTES)
        self.file = LayoutFile(path) if path.exists() else LayoutFile.create(path, layout, model)
        self._lost_members, self._lost_nodes = self.file.down()

    @property
    def online(self) -> bool:
        """Whether it can be used: the pool holds, and of everything there is something to read."""
        nodes = set(self.layout.nodes) - self._lost_nodes
        members = set(range(len(self.layout.nodes))) - self._lost_members
        if not pool_holds(self.layout.nodes, members, nodes, self.witness):
            return False
        gone = list(self._gone() | self.file.wiped())
        if not gone and self.file.is_clean():
            return True
        return not any(
            lost_bands(tier, ~np.isin(tier.members, gone) & ~self.file.marks(number))
            for number, tier in enumerate(self.layout.tiers)
        )

    def lose(self, *, members: Iterable[int] = (), nodes: Iterable[int] = ()) -> None:
        """Take disks or nodes away. Another node owns the volume where its owner is lost."""
        self._lost_members |= set(members)
        self._lost_nodes |= set(nodes)
        left = set(self.layout.nodes) - self._lost_nodes
        if self.file.owner not in left and left:
            self.file.owner = min(left)
        self._put()

    def bring_back(
        self, *, members: Collection[int] = (), nodes: Iterable[int] = (), empty: bool = False
    ) -> None:
        """Let disks or nodes return, `empty` with other disks; what they missed is copied back."""
        if empty:
            for member in members:
                _empty(self.model.members[member].backing)
                self.file.set_wiped(member)
        self._lost_members -= set(members)
        self._lost_nodes -= set(nodes)
        self._put()

    @property
    def lost(self) -> tuple[set[int], set[int]]:
        """Members, and nodes, that are away."""
        return set(self._lost_members), set(self._lost_nodes)

    def to_repair_bytes(self) -> int:
        """Count the bytes that a repair can copy back now: dirty, on disks that are there."""
        if self.file.is_clean():
            return 0
        gone = list(self._gone())
        marked = (
            (self.file.marks(number) & ~np.isin(tier.members, gone)).sum()
            for number, tier in enumerate(self.layout.tiers)
        )
        wiped = sum(np.isin(tier.members, list(self.file.wiped())).sum() for tier in self.layout.tiers)
        return int(sum(marked) + wiped) * SLAB_BYTES

    def repaired(self) -> float:
        """Share of what had to be copied back that was, since the volume was made; 1 when all is clean."""
        counts = self.file.counts()
        if not self.file.dirty_bytes() and not self.file.wiped():
            return 1.0
        return min(1.0, counts.repair_done / counts.repair_found) if counts.repair_found else 0.0

    def _gone(self) -> set[int]:
        on_lost = {member for member, node in enumerate(self.layout.nodes) if node in self._lost_nodes}
        return self._lost_members | on_lost

    def _put(self) -> None:
        self.file.set_up(
            members=[member not in self._lost_members for member in range(len(self.layout.nodes))],
            nodes=[node not in self._lost_nodes for node in range(len(self.model.nodes))],
            online=self.online,
        )


def _empty(backing: Path) -> None:
    """Make a file all hole, without making it shorter meanwhile: those that map it would be killed."""
    libc = ctypes.CDLL(None, use_errno=True)
    with backing.open("r+b") as file:
        size = ctypes.c_int64(os.fstat(file.fileno()).st_size)
        if libc.fallocate(file.fileno(), _PUNCH_HOLE | _KEEP_SIZE, ctypes.c_int64(0), size):
            raise DiskbookError(f"{backing} cannot be emptied: {os.strerror(ctypes.get_errno())}.")
