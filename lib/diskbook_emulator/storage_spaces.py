"""What an emulator knows of clusters, pools and volumes, as plain records kept in its book. Pure.

Machines and disks are named by their ids in lower case, nodes of a cluster in the order in which it got them.
"""

import hashlib
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np

from diskbook_emulator.types import Session
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
        """Disks of each node."""
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
        """Return the cluster that a machine is a node of."""
        return next((cluster for cluster in self.clusters if vm_id in cluster.nodes), None)

    def pools_of(self, vm_id: str) -> list[Pool]:
        """Return the pools that a machine sees."""
        return [pool for pool in self.pools if vm_id in pool.nodes]

    def volumes_of(self, vm_id: str) -> list[VolumeRecord]:
        """Return the volumes that a machine sees."""
        return [volume for volume in self.there if vm_id in volume.nodes]

    @property
    def there(self) -> list[VolumeRecord]:
        """Volumes that have not ended."""
        return [volume for volume in self.volumes if volume.ended is None]

    def pool_with(self, disk_id: str) -> Pool | None:
        pools = (pool for pool in self.pools for disk in pool.disks if disk.disk_id == disk_id)
        return next(pools, None)

    def new_number(self) -> int:
        """Return a number that no volume has had."""
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
