"""The disks of a pool: attached, each to its own machine, proved to be this run's, and put into the pool.

Windows names a disk by its own uniqueId, which is the run's only by its place: so it is read at the LUN at
which Azure says the disk is, once `hosts.disks.ours` has proved it, and recorded. In a pool a disk is no
drive any more, and is known by what was recorded.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from diskbook.clusters.measure import node_steps
from diskbook.clusters.measure.node_steps import name_of
from diskbook.clusters.powershell import steps
from diskbook.design.model import Disk, Scenario, Volume
from diskbook.facts.errors import DiskbookError
from diskbook.facts.units import GIB
from diskbook.hosts import disks as machine_disks
from diskbook.measure.bench.rig import Rig


@dataclass(frozen=True)
class Pool:
    """A pool and the volumes on it; `nodes` are the scenario's names, `cluster` is None for one server."""

    disk: str
    nodes: tuple[str, ...]
    cluster: str | None
    volumes: tuple[Volume, ...]

    @property
    def name(self) -> str:
        """Its name on Windows."""
        return f"dbk-{self.disk}"

    @property
    def key(self) -> str:
        """Its name in the manifest: one server may have a pool of the same disks as another one."""
        return f"{self.disk}-{self.cluster or self.nodes[0]}"

    @property
    def first(self) -> str:
        """The machine that its steps run on."""
        return self.nodes[0]


def of(scenario: Scenario) -> list[Pool]:
    volumes: dict[tuple[str, tuple[str, ...], str | None], list[Volume]] = {}
    for volume in scenario.volume:
        key = volume.disk, scenario.nodes_of(volume), volume.cluster
        volumes.setdefault(key, []).append(volume)
    return [Pool(*key, tuple(of_pool)) for key, of_pool in volumes.items()]


def attach(rig: Rig, pools: list[Pool]) -> dict[str, tuple[steps.PoolDisk, ...]]:
    """Have the disks of pools on their machines, each proved to be ours; machines side by side.

    Returns the pool's key to its disks, as its step names them.

    Raises DiskbookError as `hosts.disks.ours` does; the pool is not made then.
    """
    places = {(pool.key, node): partial(_on_node, rig, pool, node) for pool in pools for node in pool.nodes}
    node_steps.side_by_side((node, action) for (_, node), action in places.items())
    return {
        pool.key: tuple(disk for node in pool.nodes for disk in _named(rig, pool, node)) for pool in pools
    }


def _on_node(rig: Rig, pool: Pool, node: str) -> None:
    """Have the disks of a pool on one of its machines; those that are new are proved to be ours."""
    members = specs(rig, pool, node)
    luns = rig.attachments.attach_all(members, node)
    proved: dict[str, Any] = rig.replicate.get("pool_disks", {})
    new = [spec for spec in members if spec.name not in proved]
    unique_ids = {name: row["unique_id"] for name, row in proved.items()}
    unique_ids |= _prove(rig, node, new, luns) if new else {}
    parts = {spec.name: {"unique_id": unique_ids[spec.name], "lun": luns[spec.name]} for spec in members}
    rig.record_parts("pool_disks", parts)


def specs(rig: Rig, pool: Pool, node: str) -> list[Disk]:
    """Disks of a pool on one of its machines, in order."""
    made = {disk.name: disk for disk, machine in rig.scenario.made_disks() if machine == node}
    count = rig.scenario.disk_named(pool.disk).count
    return [made[f"{pool.disk}-{node}-{number}"] for number in range(1, count + 1)]


def _prove(rig: Rig, node: str, new: list[Disk], luns: Mapping[str, int]) -> dict[str, str]:
    """Make sure that disks are ours; return how Windows names each."""
    connection = rig.windows(node)
    for spec in new:
        row = rig.replicate["disks"][spec.name]
        size_bytes = spec.size_gib * GIB
        machine_disks.ours(connection, luns[spec.name], size_bytes=size_bytes, unique_id=row["unique_id"])
    shown = {int(row["lun"]): str(row.get("unique_id") or "") for row in connection.disks()}
    for spec in new:
        if not shown.get(luns[spec.name]):
            raise DiskbookError(
                f"machine {connection.host.name}: the disk at LUN {luns[spec.name]} shows no uniqueId, so it "
                "cannot be distinguished from others in a pool; nothing was written"
            )
    return {spec.name: shown[luns[spec.name]] for spec in new}


def _named(rig: Rig, pool: Pool, node: str) -> list[steps.PoolDisk]:
    """Disks of a pool on one of its machines, as the step names them."""
    rows = [(spec, rig.replicate["pool_disks"][spec.name]) for spec in specs(rig, pool, node)]
    return [
        steps.PoolDisk(node=name_of(rig, node), size_bytes=spec.size_gib * GIB, **row) for spec, row in rows
    ]


def enable(rig: Rig, pool: Pool, disks: tuple[steps.PoolDisk, ...]) -> None:
    """Make a pool of exactly these disks, without cache; read it back and record it.

    Raises DiskbookError when Storage Spaces refuses, or the pool is not what was asked for.
    """
    clustered = pool.cluster is not None
    request = steps.Enable(pool=pool.name, disks=disks, clustered=clustered)
    state = node_steps.run(
        rig, pool.first, "enable", request, clustered=clustered, wait_s=request.wait_s
    ).state
    where = f"replicate {rig.number}: pool {pool.name} of {', '.join(pool.nodes)}"
    asked, there = {disk.unique_id for disk in disks}, {disk["unique_id"] for disk in state["disks"]}
    if asked != there:
        strange = ", ".join(sorted(asked ^ there))
        raise DiskbookError(f"{where} does not consist of this run's disks; it differs in {strange}")
    if state["block_cache_mb"] != 0:
        raise DiskbookError(
            f"{where}: BlockCacheSize is {state['block_cache_mb']} MB, but no cache was asked for"
        )
    rig.record_parts("pools", {pool.key: {"nodes": list(pool.nodes), "cluster": pool.cluster, **state}})
