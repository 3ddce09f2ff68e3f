"""Volumes of emulated machines: a process for each machine that uses one, on the files of its disks."""

import ctypes
import os
import shutil
import time
from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from diskbook.facts.errors import DiskbookError
from diskbook_emulator.disk import Server, build_plugin, make_sparse
from diskbook_emulator.exports import Exports
from diskbook_emulator.layout_file import DEPTH, Hop, LayoutFile, MemberModel, NodeModel, VolumeModel
from diskbook_emulator.model import Model
from diskbook_emulator.records import Book, PoolDisk, VolumeRecord
from diskbook_emulator.shm import ModelFile
from diskbook_emulator.types import ExportModel, Latency, Session
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


class VolumeHost:
    """All volumes of an emulator, and the processes that play them.

    - `folder`: state folder of the emulator.
    - `book`: what there is; read here.
    - `exports`: has the files and limits of disks.
    - `cache`: folder of compiled plugins.
    """

    def __init__(self, folder: Path, book: Book, model: Model, exports: Exports, cache: Path) -> None:
        self._folder, self._book, self._model, self._exports = folder, book, model, exports
        self._cache = cache
        self.volumes: dict[int, Volume] = {}
        self.running: dict[tuple[int, str], VolumeServer] = {}
        self.repaired_before: dict[int, int] = {}  # bytes, at the last loss that a step noticed
        self.activity = MemberActivity()
        for record in book.spaces.there:
            self.open(record)
        self.refresh()

    def serve(self, record: VolumeRecord) -> None:
        """Serve a volume to all its machines that run."""
        self.refresh()
        for vm_id in record.nodes:
            if self._book.is_up(vm_id):
                self._start(record, vm_id)

    def start(self, vm_id: str) -> None:
        for record in self._book.spaces.volumes_of(vm_id):
            self._start(record, vm_id)
        self.refresh()

    def stop(self, vm_id: str) -> None:
        for number, owner in list(self.running):
            if owner == vm_id:
                self.running.pop((number, vm_id)).stop()

    def refresh(self) -> None:
        """Have volumes lose, or get back, what machines and attachments say."""
        for record in self._book.spaces.there:
            volume = self.volumes[record.number]
            members, nodes = self._lost(record)
            had_members, had_nodes = volume.lost
            if members - had_members or nodes - had_nodes:
                volume.lose(members=members, nodes=nodes)
            if had_members - members or had_nodes - nodes:
                volume.bring_back(members=had_members - members, nodes=had_nodes - nodes)

    def _lost(self, record: VolumeRecord) -> tuple[set[int], set[int]]:
        there = [self._book.is_at(disk.vm_id, disk.disk_id, disk.unique_id) for disk in record.disks]
        members = {i for i, is_there in enumerate(there) if not is_there}
        return members, {i for i, vm_id in enumerate(record.nodes) if not self._book.is_up(vm_id)}

    def play(self, vm_id: str) -> None:
        """Have the volumes of a machine play what it is time for now."""
        for record in self._book.spaces.volumes_of(vm_id):
            self.volumes[record.number].file.play(self._model_of(record))

    def end(self, record: VolumeRecord) -> None:
        """Remove a volume; what it did stays in its record."""
        for place in [place for place in self.running if place[0] == record.number]:
            self.running.pop(place).stop()
        record.sessions = {vm_id: self.sessions(record, vm_id) for vm_id in record.nodes}
        counts = self.volumes.pop(record.number).file.counts()
        record.repair_found, record.repair_done = counts.repair_found, counts.repair_done
        record.ended = time.time()
        shutil.rmtree(self._home(record), ignore_errors=True)

    def heal(self) -> None:
        """Start again what has died, and look at what disks have done."""
        for record in self._book.spaces.there:
            disks = [disk.disk_id for disk in record.disks]
            self.activity.look(record.number, disks, self.volumes[record.number].file, time.time())
        for server in self.running.values():
            if not server.alive():
                server.start()

    def close(self) -> None:
        """End all processes; the volumes stay as they are."""
        for server in self.running.values():
            server.stop()
        self.running.clear()

    def sessions(self, record: VolumeRecord, vm_id: str) -> list[Session]:
        server = self.running.get((record.number, vm_id))
        if server is not None:
            return server.sessions()
        path = self._work(record, vm_id) / "model"
        if not path.exists():
            return record.sessions.get(vm_id, [])
        return ModelFile(path, self._exports.epoch_s).sessions()

    def shown(self, vm_id: str) -> list[dict[str, object]]:
        """What a machine sees of its volumes."""
        rows: list[dict[str, object]] = []
        for record in self._book.spaces.volumes_of(vm_id):
            server = self.running.get((record.number, vm_id))
            if server is None or (record.kind == "simple" and not record.formatted):
                continue
            size, files = record.layout.size_bytes, str(self.files(record).absolute())
            for path, uri in ((record.path, server.uri()), (record.fill_path, server.uri(unthrottled=True))):
                rows.append({"path": path, "uri": uri, "size_bytes": size, "files": files})
        return rows

    def files(self, record: VolumeRecord) -> Path:
        """Where a volume's files are recorded (see `windows_diskspd`)."""
        return self._home(record) / "files"

    # what a volume plays

    def open(self, record: VolumeRecord) -> None:
        """Open a volume; its files are made when missing."""
        home = self._home(record)
        self.files(record).mkdir(parents=True, exist_ok=True)
        model = self._model_of(record)
        volume = Volume(home / "layout", record.layout, model, witness=record.witness)
        volume.file.play(model)
        self.volumes[record.number] = volume

    def _model_of(self, record: VolumeRecord) -> VolumeModel:
        volumes = self._model.profile.volumes
        zones = {self._book.spec(vm_id).zone for vm_id in record.nodes}
        hop_ms = volumes.hop_ms if len(zones) == 1 else volumes.zone_hop_ms
        return VolumeModel(
            nodes=tuple(self._node(record, vm_id) for vm_id in record.nodes),
            members=tuple(self._member(disk) for disk in record.disks),
            local_share=volumes.local_share,
            hop=Hop(hop_ms, volumes.hop_sigma),
            software_ms=volumes.software_ms,
            rotate_at=volumes.rotate_at,
            repair_depth=int(volumes.repair_depth),
        )

    def _node(self, record: VolumeRecord, vm_id: str) -> NodeModel:
        vm = self._book.spec(vm_id)
        first = next(disk for disk in record.disks if disk.vm_id == vm_id)
        uncached, (out, into) = self._exports.limits_of_vm(vm), self._exports.limits_of_network(vm)
        return NodeModel(uncached, out, into, self.played(first).second_log)

    def _member(self, disk: PoolDisk) -> MemberModel:
        spec, played = self._book.disk(disk.disk_id), self.played(disk)
        limits, backing = self._exports.limits_of_disk(spec), self._exports.backing(disk.disk_id)
        return MemberModel(backing, limits, played.read, played.write, played.log_factor)

    def played(self, disk: PoolDisk) -> ExportModel:
        """What a disk of a pool plays by itself, at its machine and in the block that it is in."""
        record = self._book.vms.get(disk.vm_id) or self._book.gone[disk.vm_id]
        return self._model.export_model(record.spec, self._book.disk(disk.disk_id), "None", 0, record.block)

    # its processes

    def _start(self, record: VolumeRecord, vm_id: str) -> None:
        place = record.number, vm_id
        if place not in self.running:
            self.running[place] = self._new_server(record, vm_id)
        try:
            self.running[place].start()
        except Exception:
            del self.running[place]
            raise

    def _new_server(self, record: VolumeRecord, vm_id: str) -> VolumeServer:
        sockets, index = self._folder / "s", record.nodes.index(vm_id)
        sockets.mkdir(exist_ok=True)
        self._model_of(record)  # its limits are in force before the process reads them
        return VolumeServer(
            sockets / f"v{record.number}-{index}",
            build_plugin(self._cache, VOLUME_SOURCE),
            self._work(record, vm_id),
            self.volumes[record.number].file.path,
            index,
            flush=self.played(record.disks[0]).flush,
            trial_log=self._model.trials_of_volume(vm_id, record.id),
            epoch_s=self._exports.epoch_s,
        )

    def _home(self, record: VolumeRecord) -> Path:
        return self._folder / "volumes" / str(record.number)

    def _work(self, record: VolumeRecord, vm_id: str) -> Path:
        return self._home(record) / f"node-{record.nodes.index(vm_id)}"

    # what is counted

    def counted(self, vm_id: str) -> dict[str, NDArray[np.int64]]:
        """Running totals of a machine by volume: those of `node_ios`, then bytes sent and received."""
        totals = {}
        for record in self._book.spaces.volumes_of(vm_id):
            file, node = self.volumes[record.number].file, record.nodes.index(vm_id)
            totals[record.name] = np.concatenate([file.node_ios()[node], file.wire_bytes()[node]])
        return totals

    def moved_to_parity(self, name: str) -> int:
        """Bytes that a volume has written to its parity tier, past its mirror."""
        counts = [
            self.volumes[record.number].file.counts()
            for record in self._book.spaces.there
            if record.name == name
        ]
        return sum(entry.in_place_bytes + entry.rotated_bytes for entry in counts)

    def mirror_fill(self, vm_id: str) -> dict[str, float]:
        """Share of the mirror tier that holds data, of each volume of a machine; 0 for one without tiers."""
        records = self._book.spaces.volumes_of(vm_id)
        return {record.name: self.volumes[record.number].file.mirror_fill() for record in records}


def room_slabs(disk: PoolDisk) -> int:
    return disk.size_bytes // SLAB_BYTES


# ---- what disks of pools did second by second: from totals, looked at several times a second


class MemberActivity:
    """I/Os and bytes by second; what happens between two looks is the later one's."""

    def __init__(self) -> None:
        self._before: dict[int, NDArray[np.int64]] = {}
        self._counts: dict[str, dict[int, NDArray[np.int64]]] = defaultdict(dict)

    def look(self, number: int, disks: Sequence[str], file: LayoutFile, now: float) -> None:
        """Note what the disks of a volume have done since the last look; the first one only begins."""
        ios = file.member_ios()
        totals = np.stack([ios[:, :2].sum(axis=1), ios[:, 2:].sum(axis=1)], axis=1)
        grown = totals - self._before.get(number, totals)
        self._before[number] = totals
        for disk_id, more in zip(disks, grown, strict=True):
            if more.any():
                seconds = self._counts[disk_id]
                seconds[int(now)] = seconds.get(int(now), np.zeros(2, np.int64)) + more

    def of(self, disk_id: str, attached: float, detached: float | None) -> NDArray[np.int64]:
        """Rows as of `ModelFile.activity`: what a disk did in one attachment."""
        seconds = self._counts.get(disk_id, {})
        inside = [
            at for at in sorted(seconds) if int(attached) <= at and (detached is None or at <= detached)
        ]
        return np.array([[at, *seconds[at], 0, 0] for at in inside], np.int64).reshape(-1, 5)
