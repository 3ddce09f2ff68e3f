"""What the machines' side of an emulator remembers, and its file."""

import hashlib
import json
import math
import re
from dataclasses import asdict, dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import TypeAdapter, ValidationError

from diskbook.facts.errors import DiskbookError
from diskbook.facts.files import write_atomic
from diskbook_emulator.types import DiskSpec, Session, VmAddress, VmSpec
from diskbook_emulator.volumes import Layout, arrange

SHARED_ROOT = r"C:\ClusterStorage"
FILL_ROOT = r"C:\DiskbookFill"
"""Where the emulator has the same volumes without caps and latencies; Windows has nothing like it."""
BLOCK_CACHE_MB = 1024
"""What a cluster of Windows Server 2019 or later begins with (windowsserverdocs, "CSV cache")."""


@dataclass
class Node:
    """What `prepare` left on a machine; `suffix_in_force` is what it began with, `password` a digest."""

    account: str = ""
    password: str = ""
    features: list[str] = field(default_factory=list)
    settings: dict[str, str] = field(default_factory=dict)
    suffix_in_force: str = ""

    @property
    def restart_due(self) -> bool:
        """Whether a setting waits for a restart."""
        return self.settings.get("NV Domain", "") != self.suffix_in_force

    def restarted(self) -> None:
        """Put in force what waited for a restart."""
        self.suffix_in_force = self.settings.get("NV Domain", "")


@dataclass
class Cluster:
    """A failover cluster; `rules` are health settings that were switched off."""

    name: str
    nodes: list[str]
    witness: str = ""
    direct: bool = False
    block_cache_mb: int = BLOCK_CACHE_MB
    rules: list[str] = field(default_factory=list)


@dataclass
class PoolDisk:
    """A disk of a pool, and the machine that it is attached to."""

    vm_id: str
    disk_id: str
    unique_id: str
    size_bytes: int
    medium: str = "Unspecified"


@dataclass
class Pool:
    """A pool of the disks of a machine, or of those of all nodes of a cluster."""

    name: str
    nodes: list[str]
    disks: list[PoolDisk]
    clustered: bool
    tiers: list[str] = field(default_factory=list)


@dataclass
class VolumeRecord:
    """A volume: what its layout follows from, how far it was made, and what it did until it ended.

    `disks` are those of its pool, node by node; `taken` the slabs of each that other volumes had before.
    Times are seconds since the Unix epoch. `sessions` are by machine.
    """

    number: int
    name: str
    kind: str
    pool: str
    nodes: list[str]
    disks: list[PoolDisk]
    sizes_gib: list[float]
    columns: int
    interleave_kib: int
    taken: list[int]
    drive_letter: str
    witness: bool
    made: float
    partitioned: bool = False
    formatted: bool = False
    ended: float | None = None
    sessions: dict[str, list[Session]] = field(default_factory=dict)
    repair_found: int = 0
    repair_done: int = 0

    @property
    def disks_a_node(self) -> int:
        return len(self.disks) // len(self.nodes)

    @property
    def id(self) -> str:
        """Name it for the seed and for truth, beside its first machine."""
        return f"{group_of(self.nodes[0])}/providers/diskbook/volumes/{self.name.lower()}"

    @property
    def path(self) -> str:
        """Where its files are on Windows."""
        return f"{self.drive_letter}:\\" if self.kind == "simple" else rf"{SHARED_ROOT}\{self.name}"

    @property
    def fill_path(self) -> str:
        """The same without caps and latencies; it ends as `path` does."""
        return rf"{FILL_ROOT}\{self.name}" + ("\\" if self.kind == "simple" else "")

    @property
    def layout(self) -> Layout:
        """Where its copies lie."""
        shape = self.disks_a_node, len(self.nodes), tuple(self.sizes_gib), self.columns, self.interleave_kib
        return _layout(self.kind, *shape, tuple(self.taken))


@lru_cache(maxsize=8)
def _layout(
    kind: str,
    disks: int,
    nodes: int,
    sizes: tuple[float, ...],
    columns: int,
    kib: int,
    taken: tuple[int, ...],
) -> Layout:
    return arrange(kind, disks, nodes, sizes, columns, kib, np.array(taken, np.int64))


@dataclass
class Spaces:
    """All that is known, volumes that have ended too."""

    nodes: dict[str, Node] = field(default_factory=dict)
    clusters: list[Cluster] = field(default_factory=list)
    pools: list[Pool] = field(default_factory=list)
    volumes: list[VolumeRecord] = field(default_factory=list)

    def cluster_of(self, vm_id: str) -> Cluster | None:
        return next((cluster for cluster in self.clusters if vm_id in cluster.nodes), None)

    def pools_of(self, vm_id: str) -> list[Pool]:
        return [pool for pool in self.pools if vm_id in pool.nodes]

    def volumes_of(self, vm_id: str) -> list[VolumeRecord]:
        return [volume for volume in self.there if vm_id in volume.nodes]

    @property
    def there(self) -> list[VolumeRecord]:
        """Volumes that have not ended."""
        return [volume for volume in self.volumes if volume.ended is None]

    def pool_with(self, disk_id: str) -> Pool | None:
        pools = (pool for pool in self.pools for disk in pool.disks if disk.disk_id == disk_id)
        return next(pools, None)

    def new_number(self) -> int:
        return 1 + max((volume.number for volume in self.volumes), default=0)

    def forget(self, vm_id: str) -> list[VolumeRecord]:
        """Take a machine that is deleted out; return the volumes that no machine is left of."""
        self.nodes.pop(vm_id, None)
        for cluster in self.clusters:
            cluster.nodes = [node for node in cluster.nodes if node != vm_id]
        for pool in self.pools:
            pool.nodes = [node for node in pool.nodes if node != vm_id]
        self.clusters = [cluster for cluster in self.clusters if cluster.nodes]
        gone = [pool for pool in self.pools if not pool.nodes]
        self.pools = [pool for pool in self.pools if pool.nodes]
        disks = {disk.disk_id for pool in gone for disk in pool.disks}
        return [volume for volume in self.there if {disk.disk_id for disk in volume.disks} & disks]


def group_of(arm_id: str) -> str:
    """Return the id without type and name: what is in it may belong together."""
    return arm_id.partition("/providers/")[0] if "/providers/" in arm_id else arm_id.rpartition("/")[0]


def digest(vm_id: str, password: str) -> str:
    """Return what is kept of a password."""
    return hashlib.scrypt(password.encode(), salt=vm_id.encode(), n=256, r=8, p=1).hex()


_GROUP = re.compile(r"/resourcegroups/(?P<group>[^/]+)/providers/(?P<rest>.+)")


@dataclass
class VmRecord:
    """A machine: what was asked for, where it listens, whether it is on.

    `block` is the block of its run, at which its noise clock stands.
    """

    spec: VmSpec
    address: VmAddress
    running: bool
    block: int = 1


@dataclass
class Attachment:
    """One stretch of time in which a disk was attached to a machine.

    `number` is its own in the emulator, `times_before` counts earlier attachments of this disk to this
    machine. Times are seconds since the Unix epoch; `detached` is None while attached.
    """

    number: int
    times_before: int
    vm_id: str
    lun: int
    disk: DiskSpec
    caching: str
    attached: float
    detached: float | None = None
    sessions: list[Session] = field(default_factory=list)


@dataclass
class Book:
    """All machines, those deleted too, and all attachments; `began` is when it first started (epoch).

    `groups` are the resource groups in the order in which they were first used, `spaces` the clusters,
    pools and volumes.
    """

    began: float
    vms: dict[str, VmRecord] = field(default_factory=dict)
    gone: dict[str, VmRecord] = field(default_factory=dict)
    attachments: list[Attachment] = field(default_factory=list)
    groups: list[str] = field(default_factory=list)
    spaces: Spaces = field(default_factory=Spaces)

    def entity(self, arm_id: str) -> str:
        """Name a machine or disk for the seed: by the place of its resource group, its type and its name.

        So the first run on an emulator gets the same draws whatever its name and subscription, and the next
        run gets others.
        """
        match = _GROUP.search(arm_id.lower())
        if match is None:
            return arm_id.lower()
        if match["group"] not in self.groups:
            self.groups.append(match["group"])
        return f"{self.groups.index(match['group'])}/{match['rest']}"

    def attached_to(self, vm_id: str) -> list[Attachment]:
        return [entry for entry in self.attachments if entry.vm_id == vm_id and entry.detached is None]

    def of_disk(self, disk_id: str) -> list[Attachment]:
        return [entry for entry in self.attachments if entry.disk.id == disk_id and entry.detached is None]

    def spec(self, vm_id: str) -> VmSpec:
        """Return what was asked for of a machine, also of a deleted one."""
        return (self.vms.get(vm_id) or self.gone[vm_id]).spec

    def disk(self, disk_id: str) -> DiskSpec:
        """Return a disk as it was attached last."""
        return next(entry.disk for entry in reversed(self.attachments) if entry.disk.id == disk_id)

    def is_up(self, vm_id: str) -> bool:
        return vm_id in self.vms and self.vms[vm_id].running

    def is_at(self, vm_id: str, disk_id: str, unique_id: str) -> bool:
        """Tell whether a disk is attached to a machine now, and not another one of its name."""
        return any(
            entry.vm_id == vm_id and entry.disk.unique_id == unique_id for entry in self.of_disk(disk_id)
        )

    def at(self, vm_id: str, lun: int) -> Attachment | None:
        """Return what is at a LUN of a machine now."""
        return next((entry for entry in self.attached_to(vm_id) if entry.lun == lun), None)

    def add(self, vm_id: str, lun: int, disk: DiskSpec, caching: str, now: float) -> Attachment:
        before = sum(entry.vm_id == vm_id and entry.disk.id == disk.id for entry in self.attachments)
        number = 1 + max((entry.number for entry in self.attachments), default=0)
        attachment = Attachment(number, before, vm_id, lun, disk, caching, now)
        self.attachments.append(attachment)
        return attachment


def save_book(path: Path, book: Book) -> None:
    """Write the book so that a crash leaves the old one or the new one."""
    write_atomic(path, json.dumps(asdict(book), default=str))


def load_book(path: Path) -> Book | None:
    """Read the book, None when there is none.

    Raises DiskbookError when the file is not what `save_book` writes.
    """
    if not path.exists():
        return None
    try:
        return TypeAdapter(Book).validate_json(path.read_bytes())
    except ValidationError as error:
        reason = error.errors()[0]["msg"]
        raise DiskbookError(f"{path}: the emulator's state cannot be read ({reason}): remove it.") from error


def without_nan(value: Any) -> Any:
    """Replace NaN by None, all through a document, so that it is JSON."""
    if isinstance(value, dict):
        return {key: without_nan(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [without_nan(entry) for entry in value]
    return None if isinstance(value, float) and math.isnan(value) else value
