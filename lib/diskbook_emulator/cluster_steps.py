"""What the scripts of `clusters.powershell` do on emulated machines, done on the emulator's own state.

The answers are those that the .ps1 files would print, errors in their words included; where Windows itself
would speak, in Windows' as far as they are known. A step looks, changes what differs, and looks again, so
called twice it changes nothing the second time. Here are the steps that make a cluster and its
pool; `volume_steps` has the others. No PowerShell runs.
"""

import base64
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pydantic import ValidationError

from diskbook.clusters.powershell import steps
from diskbook.facts.units import GIB
from diskbook_emulator import fleet, volume_steps
from diskbook_emulator.exports import OS_LUN
from diskbook_emulator.records import Cluster, Node, Pool, PoolDisk, digest
from diskbook_emulator.step_call import Call, Json, Killed, StepError, same

BUILDS = {"2019": 17763, "2022": 20348, "2025": 26100}
NEWEST = "2025"
LEAST_BUILD = 26100
CLOUD_WITNESS = "Cloud Witness"
IO_TIMEOUT_MS = 30000
ABSENT = 0xFFFD0000
"""How PowerShell ends that was given a script which is not there."""
_YEAR = re.compile(r"20\d\d")


def answer(call: Call, step: str, request: Mapping[str, Any], inner: str = "") -> Json | None:
    """Carry a step out; returns what it prints, or None where it was killed.

    - `step`, `request`: what, in the words of `machines.cluster.steps`.
    - `inner`: what the script within `task` is on this machine: "ours", "missing" or "other".
    """
    outcome: Json
    try:
        asked = _request(step, request)
        state = task(call, asked, inner) if isinstance(asked, steps.Task) else _STEPS[step](call, asked)
        outcome = {"step": step, "ok": True, "changed": call.changed, "state": state}
    except Killed:
        return None
    except StepError as error:
        message = _hidden(str(error), request)
        failure = {"message": message, "id": message, "where": ""}
        outcome = {"step": step, "ok": False, "changed": call.changed, "error": failure}
    call.machines.save()
    return outcome


def _request(step: str, request: Mapping[str, Any]) -> steps.Request:
    if step not in (*_STEPS, "task"):
        raise StepError(f"there is no step {step}")
    try:
        return steps.STEPS[step].model_validate(dict(request))
    except ValidationError as error:
        where = ".".join(str(part) for part in error.errors()[0]["loc"])
        raise StepError(f"the request of step {step} cannot be read: {where}") from None


def _hidden(text: str, request: Mapping[str, Any]) -> str:
    """Blot secrets out, as Hide-Secret of common.ps1 does."""
    inner = request.get("request") or {}
    for secret in (request.get("password"), request.get("witness_key"), inner.get("witness_key")):
        text = text.replace(secret, "(hidden)") if secret else text
    return text


def task(call: Call, asked: steps.Task, inner: str) -> Json:
    """Run another step as the cluster's account."""
    within = replace(call, account=asked.account, password=asked.password, changed=[])
    if not within.admits(call.vm_id):
        raise StepError("The user name or password is incorrect.")
    call.changed.append("task")
    if inner != "ours":
        path = steps.path(asked.step)
        output = f"The argument '{path}' to the -File parameter does not exist." if inner == "missing" else ""
        return {"step": asked.step, "result": ABSENT if inner == "missing" else 1, "output": output}
    outcome = answer(within, asked.step, asked.request)
    if outcome is None:
        raise Killed
    output = _hidden(json.dumps(outcome, separators=(",", ":")), asked.model_dump())
    return {"step": asked.step, "result": 0 if outcome["ok"] else 1, "output": output + "\r\n"}


def prepare(call: Call, asked: steps.Prepare) -> Json:
    year = _YEAR.search(call.book.spec(call.vm_id).image)
    build = BUILDS.get(year[0] if year else NEWEST, 0)
    if build < LEAST_BUILD:
        needs = f"Windows Server {NEWEST} (build {LEAST_BUILD})"
        raise StepError(f"workgroup clusters of virtual machines need {needs}, and this is {build}")
    node = call.spaces.nodes.setdefault(call.vm_id, Node())
    lacking = [feature for feature in asked.features if feature not in node.features]
    if lacking:
        node.features += lacking
        call.change("features")
    is_new = node.account.lower() != asked.account.lower()
    node.account, node.password = asked.account, digest(call.vm_id, asked.password)
    for what in ("account", "administrators") if is_new else ():
        call.change(what)
    trusted = ",".join(asked.nodes)
    _set(call, node, "LocalAccountTokenFilterPolicy", "1")
    _set(call, node, "HwTimeout", str(IO_TIMEOUT_MS))
    _set(call, node, "NV Domain", asked.dns_suffix)
    _set(call, node, "trusted hosts", trusted)
    same("HwTimeout", IO_TIMEOUT_MS, call.read("io_timeout_ms", IO_TIMEOUT_MS))
    due = "Hyper-V" in lacking or node.restart_due or "HwTimeout" in call.changed
    if due and asked.restart:
        call.machines.restart_soon(call.vm_id)
    caption = f"Windows Server {year[0] if year else NEWEST} Datacenter (emulated on Linux)"
    facts = {"caption": caption, "version": f"10.0.{build}", "computer": call.computer, "restart_due": due}
    return {**facts, "io_timeout_ms": IO_TIMEOUT_MS, "dns_suffix": node.suffix_in_force}


def _set(call: Call, node: Node, entry: str, content: str) -> None:
    if node.settings.get(entry) != content:
        node.settings[entry] = content
        call.change(entry)


def validate(call: Call, asked: steps.Validate) -> Json:
    """Test the nodes; the report says that it is none of Microsoft's."""
    call.reaches_others()
    as_asked = replace(call, account=asked.account, password=asked.password)
    for name in asked.nodes:
        _reached(as_asked, name)
    rows = "".join(f"<li>{name}</li>" for name in asked.nodes)
    report = f"<html><h1>{asked.report}: emulated, nothing was tested</h1><ul>{rows}</ul></html>\n"
    file = {"name": f"{asked.report}.htm", "content": base64.b64encode(report.encode()).decode()}
    returned = rf"{steps.FOLDER}\reports\{asked.report}.htm"
    return {"returned": returned, "warnings": call.read("warnings", []), "files": [file]}


def _reached(call: Call, name: str) -> str:
    """Return the machine of a node to be, as far as the account of the call gets there."""
    vm_id = call.vm_of(name)
    if vm_id is None or not call.book.is_up(vm_id):
        raise StepError(
            f"Unable to connect to {name} via WMI. This may be due to networking issues or firewall "
            f"configuration on {name}."
        )
    if not call.admits(vm_id):
        raise StepError(f"You do not have administrative privileges on the server '{name}'.")
    node = call.spaces.nodes[vm_id]
    if "Failover-Clustering" not in node.features:
        raise StepError(
            f"The server '{name}' does not have the Failover Clustering feature installed. Use Server "
            "Manager to install the feature on this server."
        )
    if node.restart_due:
        raise StepError(f"{name} has no primary DNS suffix yet: restart it (emulated)")
    return vm_id


def cluster(call: Call, asked: steps.Cluster) -> Json:
    if len(asked.nodes) == 2 and not asked.witness_account:
        raise StepError("a cluster of two nodes needs a witness, and none was named")
    call.reaches_others()
    as_asked = replace(call, account=asked.account, password=asked.password)
    own = call.spaces.cluster_of(call.vm_id)
    if own is None:
        members = [_joins(as_asked, name) for name in asked.nodes]
        own = Cluster(asked.name, members[:1])
        call.spaces.clusters.append(own)
        call.change("cluster")  # killed here, it has one node
        own.nodes = members
    same("the name of the cluster", asked.name, call.read("cluster", own.name))
    there = [call.name_of(vm_id).lower() for vm_id in own.nodes]
    for name in [name for name in asked.nodes if name.lower() not in there]:
        own.nodes.append(_joins(as_asked, name))
        call.change(f"node {name}")
    names = sorted((call.name_of(vm_id) for vm_id in own.nodes), key=str.lower)
    names = call.read("nodes", names)
    asked_for = ", ".join(sorted(asked.nodes, key=str.lower))
    same("the nodes of the cluster", asked_for, ", ".join(names))
    if asked.witness_account and own.witness != CLOUD_WITNESS:
        if not call.machines.opens_account(asked.witness_account, asked.witness_key or ""):
            raise StepError("An error occurred while validating access to Azure.")
        own.witness = CLOUD_WITNESS
        call.change("witness")
    for name in names:
        same(f"node {name}", "Up", "Up" if call.book.is_up(call.vm_of(name) or "") else "Down")
    return {"name": own.name, "nodes": names, "witness": own.witness}


def _joins(call: Call, name: str) -> str:
    vm_id = _reached(call, name)
    if call.spaces.cluster_of(vm_id) is not None:
        raise StepError(f"The computer '{name}' is joined to a cluster.")
    return vm_id


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
    own = call.cluster()
    if not own.direct:
        own.direct = True
        call.change("Storage Spaces Direct")
    same("S2DEnabled", 1, call.read("s2d_enabled", 1))
    same("the cache of Storage Spaces Direct", "Disabled", call.read("cache", "Disabled"))
    if own.block_cache_mb:
        own.block_cache_mb = 0
        call.change("BlockCacheSize")
    same("BlockCacheSize", 0, call.read("block_cache_mb", 0))
    for rule in RULES:
        if rule not in own.rules:
            own.rules.append(rule)
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


_STEPS: dict[str, Callable[[Call, Any], Json]] = {
    "prepare": prepare,
    "validate": validate,
    "cluster": cluster,
    "enable": enable,
    "volume": volume_steps.volume,
    "place": volume_steps.place,
    "idle": volume_steps.idle,
    "counters": volume_steps.counters,
    "fleet": fleet.fleet,
    "fail": volume_steps.fail,
    "restore": volume_steps.restore,
}
