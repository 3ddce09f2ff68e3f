"""Windows nodes that answer steps from a table, and a replicate on them: no machine, no cloud, no process."""

from __future__ import annotations

import base64
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from diskbook.cloud.azure import witness
from diskbook.clusters.measure import node_steps
from diskbook.clusters.powershell import steps
from diskbook.clusters.vmfleet import line as names
from diskbook.design import scenario_file, scenario_tables
from diskbook.design.diskspd_arguments import parse
from diskbook.facts.units import GIB
from diskbook.hosts import disks as machine_disks
from diskbook.hosts.device import Device, Facts
from diskbook.hosts.ssh import Host
from diskbook.hosts.ssh_windows import WindowsConnection
from diskbook.measure.bench.rig import Rig
from diskbook.results.run import Run
from support import SCENARIOS, fleets
from support.manifests import MINIMAL

MACHINES = ("single", "n1", "n2")


WITNESS_KEY = "the-key-of-the-witness"


@dataclass
class Nodes:
    """What the nodes are, and what they were asked: (machine, step, whether as a task, request).

    `plant` has, by step, what is laid over its true state, or an exception; `restarts` how often a machine's
    step `prepare` wants another restart.
    """

    asked: list[tuple[str, str, bool, Any]] = field(default_factory=list)
    plant: dict[str, Any] = field(default_factory=dict)
    restarts: dict[str, int] = field(default_factory=dict)
    owners: dict[str, str] = field(default_factory=dict)
    counted: int = 0
    shows_ids: bool = True
    fleet_iops: float = 200.0  # of each machine of a fleet

    def steps(self, *names: str) -> list[tuple[str, str]]:
        """Machine and step of each call, in order, of these steps alone where any are named."""
        return [(machine, step) for machine, step, _, _ in self.asked if not names or step in names]

    def requests(self, step: str) -> list[Any]:
        """What a step was asked, in order."""
        return [request for _, name, _, request in self.asked if name == step]


class Node(WindowsConnection):
    """A node that answers steps by itself."""

    def __init__(self, machine: str, nodes: Nodes) -> None:
        super().__init__(Host(f"r1-{machine}", "127.0.0.1", 1, "me", "ssh-ed25519 AAAA", Path("none")))
        self.machine, self.nodes = machine, nodes

    def run_step(self, step: str, request: steps.Request, *, limit_s: float) -> steps.Answer:
        is_task = isinstance(request, steps.Task)
        inner = request.step if isinstance(request, steps.Task) else step
        asked = steps.STEPS[inner].model_validate(request.request) if is_task else request  # type: ignore[attr-defined]
        self.nodes.asked.append((self.machine, inner, is_task, asked))
        planted = self.nodes.plant.get(inner, {})
        if isinstance(planted, list):
            planted = planted.pop(0) if planted else {}
        if isinstance(planted, Exception):
            raise planted
        state, changed = getattr(self, f"_{inner}")(asked)
        return steps.Answer({**state, **planted}, tuple(changed))

    def disks(self) -> list[dict[str, Any]]:
        shown = self.nodes.shows_ids
        return [
            {"lun": lun, **({"unique_id": f"w-{self.machine}-{lun}"} if shown else {})} for lun in range(9)
        ]

    def end_jobs(self) -> None:
        raise AssertionError("steps leave alone what runs on a machine")

    def _prepare(self, asked: steps.Prepare) -> tuple[dict[str, Any], list[str]]:
        left = self.nodes.restarts.get(self.machine, 0)
        self.nodes.restarts[self.machine] = left - 1
        return {"restart_due": left > 0}, ["features"]

    def _validate(self, asked: steps.Validate) -> tuple[dict[str, Any], list[str]]:
        file = {"name": "a report.htm", "content": base64.b64encode(b"<html>").decode()}
        return {"returned": "x", "warnings": ["a warning"], "files": [file]}, []

    def _cluster(self, asked: steps.Cluster) -> tuple[dict[str, Any], list[str]]:
        return {"name": asked.name, "nodes": [node.upper() for node in asked.nodes], "witness": ""}, []

    def _enable(self, asked: steps.Enable) -> tuple[dict[str, Any], list[str]]:
        disks = [{"unique_id": disk.unique_id, "size_bytes": disk.size_bytes} for disk in asked.disks]
        return {"pool": asked.pool, "block_cache_mb": 0, "size_bytes": 1, "disks": disks}, ["pool"]

    def _volume(self, asked: steps.Volume) -> tuple[dict[str, Any], list[str]]:
        parts = [
            {
                "name": asked.name,
                **{key: value or 1 for key, value in part.model_dump(exclude_none=False).items()},
                "redundancy": part.redundancy or 0,
                "footprint_bytes": part.footprint_at_least_bytes,
            }
            for part in asked.parts
        ]
        is_simple = asked.kind == "simple"
        path = f"{asked.drive_letter}:\\" if is_simple else f"C:\\ClusterStorage\\{asked.name}"
        size = asked.size_bytes or (asked.mirror_bytes or 0) + (asked.parity_bytes or 0)
        owner = self.nodes.owners.setdefault(asked.name, self.host.name).upper()
        sizes = {"size_bytes": size, "footprint_bytes": 3 * size}
        return {
            "volume": asked.name,
            "kind": asked.kind,
            "owner": owner,
            "path": path,
            "parts": parts,
            **sizes,
        }, []

    def _place(self, asked: steps.Place) -> tuple[dict[str, Any], list[str]]:
        moved = self.nodes.owners[asked.volume] != asked.node
        self.nodes.owners[asked.volume] = asked.node
        return {"volume": asked.volume, "owner": asked.node.upper()}, ["owner"] if moved else []

    def _idle(self, asked: steps.Idle) -> tuple[dict[str, Any], list[str]]:
        return {"waited_s": 0.0}, []

    def guest(self, number: int | None) -> dict[str, Any]:
        """Say what machine this is."""
        return {"kernel": "10.0.20348.0", "cpu_model": "a scripted one"}

    def _fleet(self, asked: steps.Fleet) -> tuple[dict[str, Any], list[str]]:
        line = parse(asked.line)
        iops = {"read": self.nodes.fleet_iops * (100 - line.write_pct) / 100}
        iops["write"] = self.nodes.fleet_iops - iops["read"]
        machines = [
            fleets.Vm(
                names.machine(volume.name, volume.node, number),
                volume.name,
                volume.node,
                runtime_s=float(line.duration_s),
                iops=iops,
            )
            for volume in asked.volumes
            for number in range(1, asked.instances + 1)
        ]
        packed = fleets.archive_of(machines, spec=asked.spec, line=asked.line)
        return {"archive": base64.b64encode(packed).decode(), "seconds": 1.0}, []

    def _counters(self, asked: steps.Counters) -> tuple[dict[str, Any], list[str]]:
        self.nodes.counted += 1
        path = rf"\\{self.host.name}\network interface(nic)\bytes sent/sec"
        return {"samples": [{"path": path, "instance": "nic", "raw": self.nodes.counted}]}, []


@dataclass
class Cloud:
    """Attachments of disks to machines."""

    luns: dict[str, dict[str, int]] = field(default_factory=dict)

    def attach_all(self, disks: Any, machine: str) -> dict[str, int]:
        there = self.luns.setdefault(machine, {})
        for disk in disks:
            there.setdefault(disk.name, len(there))
        return {disk.name: there[disk.name] for disk in disks}


class ScriptedRig(Rig):
    """A replicate on scripted nodes."""

    nodes: Nodes

    def new_connection(self, machine: str, *, recover: bool = True) -> Node:
        return Node(machine, self.nodes)


def rig(
    folder: Path, monkeypatch: pytest.MonkeyPatch, change: Callable[[dict[str, Any]], None] | None = None
) -> ScriptedRig:
    """A provisioned replicate of the scenario `spaces`, whose disks are all proved to be ours."""
    scenario = scenario_file.load(str(SCENARIOS / "spaces.toml"), "quick")
    if change:
        tables = scenario.model_dump()
        change(tables)
        scenario = scenario_tables.from_dict(tables, "changed")
    folder.mkdir(parents=True, exist_ok=True)
    machines = {name: {"id": f"/{name}", "host": {"name": f"r1-{name}"}} for name in MACHINES}
    disks = {
        disk.name: {"id": f"/{disk.name}", "unique_id": f"a-{disk.name}"} for disk, _ in scenario.made_disks()
    }
    replicate = {"replicate": 1, "origin": 1, "resource_group": "g", "machines": machines, "disks": disks}
    replicate["witness"] = {"account": "dbk1", "endpoint": "core.windows.net"}
    monkeypatch.setattr(node_steps, "run_step", Node.run_step)
    monkeypatch.setattr(witness, "key", lambda *_: WITNESS_KEY)
    run = Run(folder)
    run.write_manifest({**MINIMAL, "run": folder.name, "resource_groups": [], "replicates": [replicate]})
    device = Device("windows", "#1", "#1", 128 * GIB)
    proof = machine_disks.OwnDisk(device, Facts((), (), b""), True)
    monkeypatch.setattr(machine_disks, "ours", lambda *_, **__: proof)
    made = ScriptedRig(run, scenario, replicate, Cloud(), None, time_scale=0.0)  # type: ignore[arg-type]
    made.nodes = Nodes()
    return made
