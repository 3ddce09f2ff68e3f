"""The step `enable` on emulated machines: Storage Spaces Direct, and the pool of exactly a run's disks."""

from collections.abc import Sequence
from dataclasses import dataclass

from diskbook.clusters.powershell import steps
from diskbook.facts.units import GIB
from diskbook_emulator.exports import OS_LUN
from diskbook_emulator.step_call import Call, Json, StepError, same
from diskbook_emulator.storage_spaces import Pool, PoolDisk

RULES = ("AutoPool", "AutoReplace", "AutoRetire.OnLostCommunication")


@dataclass(frozen=True)
class Seen:
    """A physical disk as the storage subsystem has it."""

    disk: PoolDisk
    lun: int


def enable(call: Call, asked: steps.Enable) -> Json:
    """Make the pool; with `clustered` over all nodes of the cluster, else of this machine alone."""
    if asked.clustered:
        call.reaches_others()
        _direct(call)
    nodes = call.cluster().nodes if asked.clustered else [call.vm_id]
    if "Storage Spaces Direct" in call.changed:
        ids = [disk.unique_id for disk in asked.disks]
        what = f"that all disks are seen: {', '.join(ids)}"
        call.wait_until(
            what, asked.wait_s, lambda: set(ids) <= {seen.disk.unique_id for seen in _visible(call, nodes)}
        )
    members = _members(call, asked, _visible(call, nodes))
    pool = next((pool for pool in call.spaces.pools_of(call.vm_id) if pool.name == asked.pool), None)
    if pool is None:
        pool = _new_pool(call, asked, members, nodes)
    expected = sorted(disk.unique_id for disk in asked.disks)
    pooled = sorted(disk.unique_id for disk in pool.disks)
    if call.planted.reads.get("disk"):
        pooled = sorted([call.planted.reads["disk"], *pooled[1:]])
    same(f"the disks of pool {asked.pool}", ", ".join(expected), ", ".join(pooled))
    for disk in sorted(pool.disks, key=lambda disk: disk.unique_id):
        if disk.medium != "SSD":
            disk.medium = "SSD"
            call.change(f"medium of {disk.unique_id}")
    return _state(call, asked, pool)


def _direct(call: Call) -> None:
    """Switch Storage Spaces Direct on, without cache; nothing may join or replace a disk by itself."""
    cluster = call.cluster()
    if not cluster.direct:
        cluster.direct = True
        call.change("Storage Spaces Direct")
    same("S2DEnabled", 1, call.read("s2d_enabled", 1))
    same("the cache of Storage Spaces Direct", "Disabled", call.read("cache", "Disabled"))
    if cluster.block_cache_mb:
        cluster.block_cache_mb = 0
        call.change("BlockCacheSize")
    same("BlockCacheSize", 0, call.read("block_cache_mb", 0))
    for rule in RULES:
        if rule not in cluster.rules:
            cluster.rules.append(rule)
            call.change(rule)


def _visible(call: Call, nodes: Sequence[str]) -> list[Seen]:
    """Data disks of the nodes that run, as Get-PhysicalDisk lists them."""
    return [
        Seen(PoolDisk(vm_id, entry.disk.id, entry.disk.unique_id, entry.disk.size_gib * GIB), entry.lun)
        for vm_id in nodes
        if call.book.is_up(vm_id)
        for entry in call.book.attached_to(vm_id)
        if entry.lun != OS_LUN
    ]


def _members(call: Call, asked: steps.Enable, visible: list[Seen]) -> list[Seen]:
    """Match each disk that was asked for, and compare its size and its node."""
    members = []
    for place, disk in enumerate(asked.disks):
        matches = [seen for seen in visible if seen.disk.unique_id.lower() == disk.unique_id.lower()]
        label = f"the disk of {disk.node} at LUN {disk.lun} ({disk.unique_id})"
        if len(matches) != 1:
            raise StepError(f"{label} is seen {len(matches)} times by the storage subsystem, not once")
        (match,) = matches
        first = place == 0
        if call.spaces.pool_with(match.disk.disk_id) is None:
            size = match.disk.size_bytes
            same(f"the size of {label}", disk.size_bytes, call.read("size_bytes", size) if first else size)
        if asked.clustered:
            holder = call.name_of(match.disk.vm_id)
            same(f"the node of {label}", disk.node, call.read("node", holder) if first else holder)
        members.append(match)
    return members


def _new_pool(call: Call, asked: steps.Enable, members: list[Seen], nodes: Sequence[str]) -> Pool:
    for member in members:
        if call.spaces.pool_with(member.disk.disk_id) is not None:
            raise StepError(f"disk {member.disk.unique_id} cannot join a pool: In a Pool")
    ordered = sorted(members, key=lambda member: (nodes.index(member.disk.vm_id), member.lun))
    disks = [member.disk for member in ordered]
    counts = {sum(disk.vm_id == vm_id for disk in disks) for vm_id in nodes}
    if len(counts) > 1:
        raise StepError("emulated pools have equally many disks on each node")
    pool = Pool(asked.pool, list(nodes), disks, asked.clustered)
    call.spaces.pools.append(pool)
    call.machines.show(nodes)
    call.change("pool")
    return pool


def _state(call: Call, asked: steps.Enable, pool: Pool) -> Json:
    cache = call.cluster().block_cache_mb if asked.clustered else 0
    disks = [
        {
            "unique_id": disk.unique_id,
            "size_bytes": disk.size_bytes,
            "bus": "SAS",
            "medium": disk.medium,
            "usage": "Auto-Select",
            "health": "Healthy" if call.book.is_at(disk.vm_id, disk.disk_id, disk.unique_id) else "Warning",
        }
        for disk in sorted(pool.disks, key=lambda disk: disk.unique_id)
    ]
    size = sum(disk.size_bytes for disk in pool.disks)
    return {"pool": pool.name, "block_cache_mb": cache, "size_bytes": size, "disks": disks}
