"""Steps on volumes of emulated machines: make, place, watch, count, and see them fail and return."""

import time
from collections.abc import Iterator, Sequence

import numpy as np

from diskbook.clusters.design.volume_rules import COPIES
from diskbook.clusters.powershell import steps
from diskbook.facts.units import GIB, KIB
from diskbook_emulator.records import Pool, VolumeRecord
from diskbook_emulator.step_call import Call, Json, StepError, same
from diskbook_emulator.volume_host import Volume, room_slabs
from diskbook_emulator.volumes import MOST_PLACES, Layout, slabs_taken

TEMPLATES = {"nested-mirror": ("NestedMirror",), "nested-parity": ("NestedMirror", "NestedParity")}
_NO_POOL = (
    "No MSFT_StoragePool objects found with property 'FriendlyName' equal to '{name}'.  "
    "Verify the value of the property and retry."
)
_UNFIT = (
    "The storage pool does not have sufficient eligible resources for the creation of the specified virtual "
    "disk."
)
SHOWN_BANDS = 8
_FULL = "Not enough available capacity"


# ---- making one -------------------------------------------------------------------------------------


def volume(call: Call, asked: steps.Volume) -> Json:
    """Make a volume, unless it is there, and compare what came of it."""
    if asked.kind != "simple":
        call.reaches_others()
    record = _named(call, asked.name)
    if record is None:
        record = _made(call, asked)
    if record.kind == "simple":
        _formatted(call, record)
    parts = _parts(call, record)
    same(f"the number of parts of {asked.name}", len(asked.parts), len(parts))
    for part, expected in zip(parts, asked.parts, strict=True):
        _compare(part, expected)
    same(f"the health of {asked.name}", "Healthy", call.read("health", _health(call, asked.name)["health"]))
    call.machines.show(record.nodes)
    layout = record.layout
    owner = call.computer if record.kind == "simple" else _owner(call, record)
    return {
        "volume": record.name,
        "kind": asked.kind,
        "owner": owner,
        "path": record.path,
        "fill_path": record.fill_path,
        "parts": parts,
        "size_bytes": layout.size_bytes,
        "footprint_bytes": layout.footprint_bytes,
        "layout": {"nodes": list(layout.nodes), "tiers": _first_bands(layout)},
    }


def _first_bands(layout: Layout) -> list[Json]:
    """Members that hold the first bands of each tier, by band, row and column; Windows tells none."""
    tiers = layout.tiers
    return [{"parity": tier.parity, "members": tier.members[:SHOWN_BANDS].tolist()} for tier in tiers]


def _made(call: Call, asked: steps.Volume) -> VolumeRecord:
    pool = _pool(call, asked.pool)
    for template in TEMPLATES.get(asked.kind, ()):
        if template not in pool.tiers:
            pool.tiers.append(template)
            call.change(f"tier {template}")
    record = _new(call, asked, pool)
    call.change("volume")
    return record


def _named(call: Call, name: str) -> VolumeRecord | None:
    volumes = call.spaces.volumes_of(call.vm_id)
    return next((record for record in volumes if record.name.lower() == name.lower()), None)


def _pool(call: Call, name: str) -> Pool:
    pool = next(
        (pool for pool in call.spaces.pools_of(call.vm_id) if pool.name.lower() == name.lower()), None
    )
    if pool is None:
        raise StepError(_NO_POOL.format(name=name))
    return pool


def _new(call: Call, asked: steps.Volume, pool: Pool) -> VolumeRecord:
    cluster = call.spaces.cluster_of(call.vm_id)
    nested = asked.kind in TEMPLATES
    sizes = (asked.mirror_bytes, asked.parity_bytes) if nested else (asked.size_bytes,)
    record = VolumeRecord(
        number=call.spaces.new_number(),
        name=asked.name,
        kind=asked.kind,
        pool=pool.name,
        nodes=list(pool.nodes),
        disks=list(pool.disks),
        sizes_gib=[size / GIB for size in sizes if size],
        columns=asked.columns or _columns(asked.kind, len(pool.disks) // len(pool.nodes)),
        interleave_kib=(asked.interleave_bytes or steps.INTERLEAVE_BYTES) // KIB,
        taken=_taken(call, pool),
        drive_letter=asked.drive_letter,
        witness=bool(cluster and cluster.witness),
        made=time.time(),
    )
    _check_room(record, pool)
    call.host.open(record)
    call.spaces.volumes.append(record)
    call.host.serve(record)
    if record.kind != "simple" and call.vm_id in record.nodes:
        call.host.volumes[record.number].file.owner = record.nodes.index(call.vm_id)
    return record


def _taken(call: Call, pool: Pool) -> list[int]:
    """Count the slabs of each disk of a pool that its volumes have."""
    ids = [disk.disk_id for disk in pool.disks]
    taken = np.zeros(len(ids), np.int64)
    for record in call.spaces.there:
        if [disk.disk_id for disk in record.disks] == ids:
            taken += slabs_taken(record.layout)
    return [int(slabs) for slabs in taken]


def _columns(kind: str, disks: int) -> int:
    """What Windows chooses is not documented; two copies of a nested one share the disks of a node."""
    return min(disks // 2 if kind in TEMPLATES else disks, MOST_PLACES // COPIES[kind])


def _check_room(record: VolumeRecord, pool: Pool) -> None:
    """Refuse what the pool has no disks or no room for, in Windows' words."""
    if record.kind != "simple" and not pool.clustered:
        raise StepError(_UNFIT)
    try:
        slabs = slabs_taken(record.layout)
    except (ValueError, ZeroDivisionError):
        raise StepError(_UNFIT) from None
    for before, more, disk in zip(record.taken, slabs, record.disks, strict=True):
        if before + more > room_slabs(disk):
            raise StepError(_FULL)


def _formatted(call: Call, record: VolumeRecord) -> None:
    if not record.partitioned:
        record.partitioned = True
        call.change("partition table")
    if not record.formatted:
        record.formatted = True
        call.change("file system")


def _parts(call: Call, record: VolumeRecord) -> list[Json]:
    """What a volume, or each of its tiers, turned out to be."""
    layout = record.layout
    parts: list[Json] = []
    for tier in layout.tiers:
        nested = record.kind in TEMPLATES
        template = "NestedParity" if tier.parity else "NestedMirror"
        copies = 2 if tier.parity else COPIES[record.kind]
        facts: Json = {
            "resiliency": "Parity" if tier.parity else "Simple" if record.kind == "simple" else "Mirror",
            "copies": copies,
            "columns": tier.members.shape[2],
            "redundancy": 1 if tier.parity else copies - 1,
            "interleave_bytes": layout.interleave_bytes,
            "size_bytes": tier.size_bytes,
            "footprint_bytes": tier.members.size
            * (tier.size_bytes // (len(tier.members) * tier.data_columns)),
        }
        read = {name: call.read(name, fact) if not parts else fact for name, fact in facts.items()}
        parts.append({"name": f"{record.name}-{template}" if nested else record.name, **read})
    return parts


def _compare(part: Json, expected: steps.Part) -> None:
    for fact in ("resiliency", "copies", "columns", "redundancy", "interleave_bytes"):
        if getattr(expected, fact) is not None:
            same(f"{fact} of {part['name']}", getattr(expected, fact), part[fact])
    if part["footprint_bytes"] < expected.footprint_at_least_bytes:
        raise StepError(
            f"{part['name']} takes {part['footprint_bytes']} bytes of the pool; its copies need "
            f"{expected.footprint_at_least_bytes}"
        )


# ---- its owner --------------------------------------------------------------------------------------


def place(call: Call, asked: steps.Place) -> Json:
    call.reaches_others()
    call.cluster()
    record = _named(call, asked.volume)
    if record is None or record.kind == "simple":
        raise StepError(f"The cluster resource 'Cluster Virtual Disk ({asked.volume})' could not be found.")
    if _owner(call, record).lower() != asked.node.lower():
        vm_id = call.vm_of(asked.node)
        if vm_id not in record.nodes:
            raise StepError("The cluster node could not be found.")
        if not call.book.is_up(vm_id):
            raise StepError("The cluster node is down.")
        call.host.volumes[record.number].file.owner = record.nodes.index(vm_id)
        call.change("owner")
    owner = call.read("owner", _owner(call, record))
    same(f"the owner of {asked.volume}", asked.node, owner)
    return {"volume": record.name, "owner": owner, "access": _access(call, record)}


def _owner(call: Call, record: VolumeRecord) -> str:
    return call.name_of(record.nodes[call.host.volumes[record.number].file.owner])


def _access(call: Call, record: VolumeRecord) -> list[Json]:
    """How each node reaches a volume; ReFS sends the data of others to the owner."""
    owner = _owner(call, record)
    direct = {"state": "Direct", "reason": "NotFileSystemRedirected"}
    redirected = {"state": "FileSystemRedirected", "reason": "FileSystemReFs"}
    names = sorted((call.name_of(vm_id) for vm_id in record.nodes), key=str.lower)
    return [{"node": name, **(direct if name == owner else redirected)} for name in names]


# ---- how it is --------------------------------------------------------------------------------------


def _health(call: Call, name: str) -> Json:
    """What Get-VolumeHealth of common.ps1 says of a volume."""
    record = _named(call, name)
    if record is None:
        return {"volume": name, "health": "absent", "status": "", "detached": ""}
    volume = call.host.volumes[record.number]
    if not volume.online:
        majority = "Majority Disks Unhealthy"
        return {"volume": name, "health": "Unhealthy", "status": "Detached", "detached": majority}
    if volume.repaired() == 1 and not any(volume.lost):
        return {"volume": name, "health": "Healthy", "status": "OK", "detached": "None"}
    status = "InService" if volume.to_repair_bytes() else "Degraded"
    return {"volume": name, "health": "Warning", "status": status, "detached": "None"}


def _ill(call: Call, names: Sequence[str]) -> list[str]:
    return [name for name in names if _health(call, name)["health"] != "Healthy"]


def _jobs(call: Call) -> list[Json]:
    """What Get-RunningJob of common.ps1 says."""
    rows: list[Json] = []
    for record in call.spaces.volumes_of(call.vm_id):
        volume: Volume = call.host.volumes[record.number]
        if not volume.online or not volume.to_repair_bytes():
            continue
        counts, percent = volume.file.counts(), int(100 * volume.repaired())
        done, total = counts.repair_done, max(counts.repair_found, counts.repair_done)
        row = {"name": f"{record.name}-Repair", "state": "Running", "percent": min(99, percent)}
        rows.append({**row, "bytes_done": done, "bytes_total": total})
    return rows


def _state_of(call: Call, names: Sequence[str]) -> Json:
    return {"health": [_health(call, name) for name in names], "jobs": _jobs(call)}


def idle(call: Call, asked: steps.Idle) -> Json:
    """Wait until no repair runs, all is healthy, and nothing moves between tiers."""
    began = time.monotonic()
    absent = [name for name in asked.volumes if _named(call, name) is None]
    if absent:
        raise StepError(f"there is no volume {', '.join(absent)}")
    names = ", ".join(asked.volumes)
    call.wait_until("that no storage job runs", asked.wait_s, lambda: not _jobs(call))
    call.wait_until(f"that {names} are healthy", asked.wait_s, lambda: not _ill(call, asked.volumes))
    if asked.quiet_s > 0:
        what = f"{asked.quiet_s} s without data moved to the slow tier"
        call.wait_until(what, asked.wait_s, _Quiet(call, asked))
    waited = round(time.monotonic() - began, 1)
    state = _state_of(call, asked.volumes)
    return {"waited_s": waited, "jobs": state["jobs"], "health": state["health"], "quiet_s": asked.quiet_s}


class _Quiet:
    """Tells whether nothing has moved to a slow tier for a while."""

    def __init__(self, call: Call, asked: steps.Idle) -> None:
        self._call, self._asked = call, asked
        self._moved, self._since = -1, 0.0

    def __call__(self) -> bool:
        moved = sum(self._call.host.moved_to_parity(name) for name in self._asked.volumes)
        if moved != self._moved:
            self._moved, self._since = moved, time.monotonic()
        return time.monotonic() - self._since >= self._asked.quiet_s


def counters(call: Call, asked: steps.Counters) -> Json:
    return {"computer": call.computer, "samples": samples(call, asked.paths)}


# ---- what it loses ----------------------------------------------------------------------------------


def fail(call: Call, asked: steps.Loss) -> Json:
    """Wait until a loss is noticed."""
    began = time.monotonic()
    call.wait_until(f"the loss of {_lost(asked)}", asked.wait_s, lambda: not _is_back(call, asked))
    noticed = round(time.monotonic() - began, 1)
    for record in call.spaces.volumes_of(call.vm_id):
        call.host.repaired_before[record.number] = call.host.volumes[record.number].file.counts().repair_done
    return {"noticed_s": noticed, **_state_of(call, asked.volumes), "nodes": _nodes(call)}


def restore(call: Call, asked: steps.Loss) -> Json:
    """Wait for a return; the repair goes on by itself."""
    call.wait_until(f"the return of {_lost(asked)}", asked.wait_s, lambda: _is_back(call, asked))
    broken = _ill(call, asked.volumes)
    if broken and not _jobs(call):
        for name in broken:
            call.change(f"repair of {name}")
    state = _state_of(call, asked.volumes)
    ill = [row for row in state["health"] if row["health"] != "Healthy"]
    return {"done": not ill and not state["jobs"], **state, "ended": list(_ended_jobs(call))}


def _ended_jobs(call: Call) -> Iterator[Json]:
    """Repairs that have come to their end since the last loss."""
    for record in call.spaces.volumes_of(call.vm_id):
        volume, before = call.host.volumes[record.number], call.host.repaired_before.get(record.number, 0)
        done = volume.file.counts().repair_done
        if done > before and not volume.to_repair_bytes():
            name = f"{record.name}-Repair"
            yield {"id": f"{name}-{before}", "name": name, "bytes_done": done - before}


def _lost(asked: steps.Loss) -> str:
    return f"disk {asked.unique_id}" if asked.kind == "disk" else f"node {asked.node}"


def _is_back(call: Call, asked: steps.Loss) -> bool:
    if asked.kind == "disk":
        return _disk_is_there(call, asked.unique_id)
    return _node_is_up(call, asked.node)


def _disk_is_there(call: Call, unique_id: str | None) -> bool:
    wished = (unique_id or "").lower()
    for pool in call.spaces.pools_of(call.vm_id):
        for disk in pool.disks:
            if disk.unique_id.lower() == wished:
                there = call.book.is_at(disk.vm_id, disk.disk_id, disk.unique_id)
                return there and call.book.is_up(disk.vm_id)
    return any(entry.disk.unique_id.lower() == wished for entry in call.book.attached_to(call.vm_id))


def _node_is_up(call: Call, node: str | None) -> bool:
    vm_id = call.vm_of(node or "")
    if vm_id not in call.cluster().nodes:
        raise StepError(f"The cluster node '{node}' could not be found.")
    return call.book.is_up(vm_id)


def _nodes(call: Call) -> list[Json]:
    return [
        {"node": call.name_of(vm_id), "state": "Up" if call.book.is_up(vm_id) else "Down"}
        for vm_id in sorted(call.cluster().nodes, key=lambda vm_id: call.name_of(vm_id).lower())
    ]


# ---- performance counters: running totals of what volumes did


ADAPTER = "microsoft hyper-v network adapter"
RATE = "RateOfCountsPerSecond64"
TICKS = 10_000_000
"""Of Windows' clocks, a second."""
_FILETIME_EPOCH_S = 11_644_473_600  # from 1601 to 1970
_CLUSTER_BYTES = 64 * 1024  # of ReFS on cluster shared volumes
_READS, _WRITES, _READ_BYTES, _WRITE_BYTES, _VIA_READ, _VIA_WRITE, _SENT, _RECEIVED = range(8)
_OF_VOLUME = {
    r"\cluster csvfs(*)\reads/sec": _READS,
    r"\cluster csvfs(*)\writes/sec": _WRITES,
    r"\cluster csvfs(*)\read bytes/sec": _READ_BYTES,
    r"\cluster csvfs(*)\write bytes/sec": _WRITE_BYTES,
}
_OF_SHARES = {
    r"\smb client shares(*)\read bytes/sec": _VIA_READ,
    r"\smb client shares(*)\write bytes/sec": _VIA_WRITE,
}
_OF_NETWORK = {
    r"\network interface(*)\bytes sent/sec": _SENT,
    r"\network interface(*)\bytes received/sec": _RECEIVED,
}
_FILL = r"\refs(*)\fast tier data fill ratio"
_FILL_UNIT = 10_000  # of REFS_VOLUME_DATA_BUFFER
_SLOW_TIER = r"\refs(*)\allocation of data clusters on slow tier/sec"


def samples(call: Call, paths: Sequence[str]) -> list[Json]:
    """Read counters as Get-Counter does: names in small letters, all instances, sorted by path."""
    now = time.time()
    rows = [row for path in paths for row in _of_path(call, path)]
    clock = {
        "kind": RATE,
        "base": int(time.monotonic() * TICKS),
        "at_100ns": int((now + _FILETIME_EPOCH_S) * TICKS),
    }
    order = ("path", "instance", "raw", "base", "kind", "at_100ns")
    whole = [{**row, **clock} for row in sorted(rows, key=lambda row: str(row["path"]))]
    return [{name: row[name] for name in order} for row in whole]


def _of_path(call: Call, path: str) -> Iterator[Json]:
    for instance, raw in _totals(call, path.lower()):
        shown = path.lower().replace("(*)", f"({instance})")
        yield {"path": rf"\\{call.name.lower()}{shown}", "instance": instance, "raw": raw}


def _totals(call: Call, path: str) -> Iterator[tuple[str, int]]:
    counted = call.host.counted(call.vm_id)
    clustered = call.spaces.cluster_of(call.vm_id) is not None
    if path in _OF_NETWORK:
        yield ADAPTER, sum(int(totals[_OF_NETWORK[path]]) for totals in counted.values())
    elif path in _OF_VOLUME and clustered:
        for name, totals in sorted(counted.items()):
            yield name.lower(), int(totals[_OF_VOLUME[path]])
    elif path in _OF_SHARES and clustered:
        yield "_total", sum(int(totals[_OF_SHARES[path]]) for totals in counted.values())
    elif path == _SLOW_TIER:
        for name in sorted(counted):
            yield name.lower(), call.host.moved_to_parity(name) // _CLUSTER_BYTES
    elif path == _FILL:
        for name, fill in sorted(call.host.mirror_fill(call.vm_id).items()):
            yield name.lower(), round(_FILL_UNIT * fill)
    else:
        raise StepError("The specified object was not found on the computer.")
