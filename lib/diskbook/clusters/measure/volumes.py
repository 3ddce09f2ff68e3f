"""Volumes of a replicate: made by the steps of their nodes, read back, placed and waited for.

Every step looks before it changes anything, so a resumed run calls all of them again. Which node owns a
volume is asked again in each block.
"""

import base64
import re
from functools import partial
from typing import Any

from diskbook.cloud.azure import private, witness
from diskbook.cloud.azure.clients import Clients
from diskbook.clusters.design.volume_rules import COPIES
from diskbook.clusters.measure import node_steps, pools
from diskbook.clusters.powershell import steps
from diskbook.design.model import Arm, Cluster, Volume
from diskbook.facts.errors import DiskbookError
from diskbook.facts.units import GIB, KIB
from diskbook.hosts.device import Device
from diskbook.measure.bench.rig import Rig
from diskbook.measure.bench.steps import condition

FILE = "diskbook.dat"
LETTERS = "STUVWXYZEFGHIJKLMNOPQR"
"""Drive letters of one server's volumes, in the scenario's order."""
DNS_SUFFIX = "diskbook.internal"
IDLE_S = 600.0
QUIET_S, SETTLED_S = 30, 10
"""Seconds without data moved between tiers: before a block on them, and before the next trial in it."""


def make(rig: Rig, clients: Clients) -> None:
    """Make the clusters, pools and volumes of a replicate, and record what became of each.

    Raises DiskbookError with the sentence of the node whose step failed, or of what is not as it was asked
    for.
    """
    made = pools.of(rig.scenario)
    if not made:
        return
    members = pools.attach(rig, made)
    peers = {node: pool.nodes for pool in made for node in pool.nodes}
    peers |= {node: item.nodes for item in rig.scenario.cluster for node in item.nodes if node in peers}
    subnet = private.prefix(clients, rig.scenario.network)
    prepared = ((node, partial(_prepare, rig, node, nodes, subnet)) for node, nodes in peers.items())
    node_steps.side_by_side(prepared)
    clusters = [item for item in rig.scenario.cluster if any(pool.cluster == item.name for pool in made)]
    jobs = [(item.nodes[0], partial(_cluster, rig, clients, item)) for item in clusters]
    jobs += [(pool.first, partial(_pool_and_volumes, rig, pool, members[pool.key])) for pool in made]
    node_steps.side_by_side(jobs)


def _prepare(rig: Rig, node: str, peers: tuple[str, ...], subnet: str) -> None:
    """Make a machine ready; one server is prepared as nodes are, so that it differs in nothing else."""
    request = steps.Prepare(
        account=node_steps.ACCOUNT,
        password=node_steps.password(rig.run.folder),
        nodes=tuple(node_steps.name_of(rig, name) for name in peers),
        dns_suffix=DNS_SUFFIX,
        subnet=subnet,
    )
    node_steps.prepare(rig, node, request)


def _cluster(rig: Rig, clients: Clients, cluster: Cluster) -> None:
    """Have a cluster validated once, and formed."""
    report = rig.replicate.get("clusters", {}).get(cluster.name, {}).get("validation")
    state = {"validation": report or _validate(rig, cluster)}
    rig.record_parts("clusters", {cluster.name: state})
    state |= _form(rig, clients, cluster)
    rig.record_parts("clusters", {cluster.name: state})


def _validate(rig: Rig, cluster: Cluster) -> dict[str, Any]:
    """Have the nodes validated; the report is kept raw, and its verdict is a value."""
    request = steps.Validate(
        account=node_steps.ACCOUNT,
        password=node_steps.password(rig.run.folder),
        nodes=tuple(node_steps.name_of(rig, name) for name in cluster.nodes),
    )
    state = node_steps.run(rig, cluster.nodes[0], "validate", request).state
    number = 1 + sum(path.name.startswith(f"validation-r{rig.number}-") for path in rig.run.raw_paths())
    files = [
        rig.run.write_raw(
            f"validation-r{rig.number}-{cluster.name}-{number + position}-{_plain(file['name'])}",
            base64.b64decode(file["content"]),
        )
        for position, file in enumerate(state["files"])
    ]
    return {"returned": state["returned"], "warnings": list(state["warnings"]), "files": files}


def _plain(name: str) -> str:
    """A file's name without what a path could be made of."""
    return re.sub(r"[^A-Za-z0-9.]+", "-", name)[-60:].lstrip(".")


def _form(rig: Rig, clients: Clients, cluster: Cluster) -> dict[str, Any]:
    """Form a cluster, with the witness that two nodes need."""
    vote: dict[str, Any] = {}
    if cluster.witness == "cloud":
        account = rig.replicate["witness"]
        vote = {
            "witness_account": account["account"],
            "witness_key": witness.key(clients, rig.replicate),
            "witness_endpoint": account["endpoint"],
        }
    request = steps.Cluster(
        account=node_steps.ACCOUNT,
        password=node_steps.password(rig.run.folder),
        nodes=tuple(node_steps.name_of(rig, name) for name in cluster.nodes),
        name=f"r{rig.number}-{cluster.name}"[:15],
        **vote,
    )
    state = node_steps.run(rig, cluster.nodes[0], "cluster", request).state
    there = {node_steps.machine_of(rig, node) for node in state["nodes"]}
    if there != set(cluster.nodes):
        raise DiskbookError(
            f"replicate {rig.number}: cluster {cluster.name} has the nodes {', '.join(sorted(there))}, "
            f"not {', '.join(cluster.nodes)}"
        )
    return {**state, "nodes": list(cluster.nodes)}


def _pool_and_volumes(rig: Rig, pool: pools.Pool, disks: tuple[steps.PoolDisk, ...]) -> None:
    pools.enable(rig, pool, disks)
    for volume in pool.volumes:
        for name in rig.scenario.members_of(volume):
            _volume(rig, pool, volume, name)


def _volume(rig: Rig, pool: pools.Pool, volume: Volume, name: str) -> None:
    """Make a volume of an entry, read it back and record it."""
    request = asked(pool.name, volume, _letter(rig, volume, name)).model_copy(update={"name": name})
    clustered = pool.cluster is not None
    state = node_steps.run(rig, pool.first, "volume", request, clustered=clustered).state
    check(f"replicate {rig.number}: volume {name}", request, state)
    owner = node_steps.machine_of(rig, state["owner"])
    if owner not in pool.nodes:
        raise DiskbookError(
            f"replicate {rig.number}: volume {name} is owned by {owner}, which is not a node of it"
        )
    names = {
        "id": volume_id(rig, name),
        "entry": volume.name,
        "pool": pool.key,
        "cluster": pool.cluster,
    }
    entry = {**names, **state, "volume": request.name, "nodes": list(pool.nodes), "owner": owner}
    rig.record_parts("volumes", {name: entry})


def volume_id(rig: Rig, name: str) -> str:
    """Return the id of a volume, or of all those of an entry: Azure has none for them."""
    return f"{rig.replicate['resource_group']}/r{rig.number}-{name}"


def ledger_place(rig: Rig, entry: str) -> dict[str, str]:
    """How the ledger names what is measured on the volumes of an entry."""
    return {"disk": "", "disk_id": volume_id(rig, entry), "volume": entry}


def _letter(rig: Rig, volume: Volume, name: str) -> str:
    """Drive letter of a simple volume; a cluster's has none, and takes the first for nothing."""
    entries = [item for item in rig.scenario.volume if item.machine == volume.machine]
    of_machine = [made for item in entries for made in rig.scenario.members_of(item)]
    return LETTERS[of_machine.index(name) if volume.machine else 0]


def asked(pool: str, volume: Volume, letter: str = LETTERS[0]) -> steps.Volume:
    """Say a volume of the scenario as its step takes it."""
    made = _request(pool, volume).model_copy(update={"drive_letter": letter})
    if volume.nested:  # templates as Microsoft describes them: nothing of theirs is chosen
        return made
    interleave = volume.interleave_kib * KIB
    parts = tuple(part.model_copy(update={"interleave_bytes": interleave}) for part in made.parts)
    chosen = {"interleave_bytes": interleave} if volume.kind == "simple" else {}
    return made.model_copy(update={"parts": parts, **chosen})


def _request(pool: str, volume: Volume) -> steps.Volume:
    room = round(volume.room_gib * GIB)
    if not volume.nested:
        return steps.striped(pool, volume.name, room, volume.columns, COPIES[volume.kind])
    if volume.kind == "nested-mirror":
        return steps.nested(pool, volume.name, room)
    mirror, parity = (round((gib or 0) * GIB) for gib in (volume.mirror_gib, volume.parity_gib))
    return steps.nested(pool, volume.name, mirror, parity)


def check(where: str, request: steps.Volume, state: dict[str, Any]) -> None:
    """Hold what became of a volume against what was asked for.

    Raises DiskbookError with the first fact that differs.
    """
    if len(state["parts"]) != len(request.parts):
        raise DiskbookError(f"{where} has {len(state['parts'])} parts, not {len(request.parts)}")
    for part, there in zip(request.parts, state["parts"], strict=True):
        expected = part.model_dump(exclude={"footprint_at_least_bytes"}, exclude_none=True)
        for fact, value in expected.items():
            if there[fact] != value:
                raise DiskbookError(
                    f"{where}: {fact} of {there['name']} is {there[fact]}, but {value} was asked for"
                )
        if there["footprint_bytes"] < part.footprint_at_least_bytes:
            raise DiskbookError(
                f"{where}: {there['name']} takes {there['footprint_bytes']} bytes of the pool; "
                f"its copies need {part.footprint_at_least_bytes}"
            )
    wished = request.size_bytes or (request.mirror_bytes or 0) + (request.parity_bytes or 0)
    if state["size_bytes"] < wished:
        raise DiskbookError(f"{where} has {state['size_bytes']} bytes, but {wished} were asked for")


# --- while it is measured


def prefill(rig: Rig, arm: Arm) -> None:
    """Make, fill and write over the file on a volume once, as a disk is."""
    at = ledger_place(rig, arm.volume)
    if at["disk_id"] not in rig.prefilled:
        forget(rig, arm.volume)
    condition(rig, at["disk_id"], arm.machine, device(rig, arm), at)


def device(rig: Rig, arm: Arm) -> Device:
    """Return the file on its volume that an arm measures; its prefilling makes it."""
    entry = rig.replicate["volumes"][arm.volume]
    path, fill = entry["path"], entry.get("fill_path") or entry["path"]
    return Device("windows", _below(path), _below(fill), int(entry["size_bytes"]))


def _below(folder: str) -> str:
    return folder.rstrip("\\") + "\\" + FILE


def owner_for(rig: Rig, arm: Arm) -> str:
    """Return the node that is to own an arm's volume while it is measured; "" where several do."""
    owners = set(rig.scenario.owners_of(arm).values())
    return owners.pop() if len(owners) == 1 else ""


def place(rig: Rig, arm: Arm) -> dict[str, str]:
    """Have each of an arm's volumes owned by the node that the arm wants; return these nodes.

    Raises StepFailed with the node's own sentence.
    """
    owners = rig.scenario.owners_of(arm)
    for name, owner in owners.items():
        _place(rig, name, owner)
    return owners


def _place(rig: Rig, name: str, owner: str) -> None:
    entry = rig.replicate["volumes"][name]
    if entry["cluster"] is None or rig.owners.get(name) == owner:
        return
    rig.owners.pop(name, None)
    request = steps.Place(volume=entry["volume"], node=node_steps.name_of(rig, owner))
    answer = node_steps.run(rig, entry["nodes"][0], "place", request, wait_s=request.wait_s)
    now = node_steps.machine_of(rig, answer.state["owner"])
    if now != owner:
        raise steps.StepFailed(f"volume {name} is owned by {now}, though {owner} was asked for")
    if answer.changed:
        rig.counted.pop(entry["cluster"], None)
    rig.owners[name] = owner


def idle(rig: Rig, *, now: bool = False) -> None:
    """Wait until the volumes are healthy and nothing but the load to come works on them; forget their owners.

    - `now`: do not wait: they must be so already.

    Raises StepFailed when that does not come about, with what is in the way.
    """
    rig.owners.clear()
    rig.counted.clear()
    rig.rotating = False
    entries: dict[str, Any] = rig.replicate.get("volumes", {})
    wait_s = 0 if now else max(10, round(IDLE_S * rig.time_scale))
    jobs = []
    for pool in pools.of(rig.scenario):  # one after another where they are one machine's
        tiers = any(volume.kind == "nested-parity" for volume in pool.volumes)
        made = [name for volume in pool.volumes for name in rig.scenario.members_of(volume)]
        names = tuple(entries[name]["volume"] for name in made)
        quiet_s = max(1, round(QUIET_S * rig.time_scale)) if tiers and not now else 0
        request = steps.Idle(volumes=names, quiet_s=quiet_s, wait_s=wait_s)
        jobs.append(
            (pool.first, partial(node_steps.run, rig, pool.first, "idle", request, wait_s=3 * wait_s))
        )
    node_steps.side_by_side(jobs)


def settle(rig: Rig, arm: Arm, write_pct: int) -> None:
    """Remember whether what was just written to an arm's volumes may still move between their tiers."""
    tiers = bool(arm.volume) and rig.scenario.volume_named(arm.volume).kind == "nested-parity"
    rig.rotating |= tiers and write_pct > 0


def await_settled(rig: Rig) -> None:
    """Wait until what an earlier trial wrote moves no more: all volumes of a pool share its disks.

    Raises StepFailed when it does not end, with the node's own sentence.
    """
    if not rig.rotating:
        return
    entries: dict[str, Any] = rig.replicate["volumes"]
    wait_s = max(10, round(IDLE_S * rig.time_scale))
    for pool in pools.of(rig.scenario):
        tiers = [volume for volume in pool.volumes if volume.kind == "nested-parity"]
        names = tuple(entries[name]["volume"] for volume in tiers for name in rig.scenario.members_of(volume))
        if names:
            quiet_s = max(1, round(SETTLED_S * rig.time_scale))
            request = steps.Idle(volumes=names, quiet_s=quiet_s, wait_s=wait_s)
            node_steps.run(rig, pool.first, "idle", request, wait_s=3 * wait_s)
    rig.counted.clear()
    rig.rotating = False


def check_block(rig: Rig, block: int) -> None:
    """Make sure that the volumes are still healthy at the end of a block, which is measured again otherwise.

    Raises StepFailed with what is in the way.
    """
    try:
        idle(rig, now=True)
    except steps.StepFailed as failure:
        raise steps.StepFailed(
            f"{failure}; block {block} was measured on that, and is measured again"
        ) from None


def forget(rig: Rig, volume: str) -> None:
    """Ask for the owners of an entry's volumes, and nodes for their counters, before they are used next."""
    for name in rig.scenario.members_of(rig.scenario.volume_named(volume)):
        rig.owners.pop(name, None)
        rig.counted.pop(rig.replicate["volumes"][name]["cluster"], None)
