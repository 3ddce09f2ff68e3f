"""Clusters of emulated machines without a control plane: a backend, and what a run would ask of it."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from diskbook.clusters.powershell import steps
from diskbook.facts import paths
from diskbook.facts.units import GIB
from diskbook_emulator.backend import LocalBackend
from diskbook_emulator.disk import build_plugin
from diskbook_emulator.model import Model
from diskbook_emulator.profile import Profile, load_profile
from diskbook_emulator.step_call import Planted
from diskbook_emulator.types import DiskSpec, VmSpec

GROUP = "/subscriptions/s/resourcegroups/g"
ACCOUNT, PASSWORD = "dbk-cluster", "Correct-Horse-7"
SIZE_GIB = 32
NOTHING = Planted()


def vm_id(name: str) -> str:
    return f"{GROUP}/providers/microsoft.compute/virtualmachines/{name}"


def disk_id(name: str) -> str:
    return f"{GROUP}/providers/microsoft.compute/disks/{name}"


def machine(name: str, size: str = "Standard_L16s", image: str = "") -> VmSpec:
    tags = {"diskbook-site": "s2d-azure"}
    return VmSpec(vm_id(name), name, size, "1", "windows", "user", (), "", tags=tags, image=image)


def p30(name: str) -> DiskSpec:
    tags = {"diskbook-site": "s2d-azure"}
    return DiskSpec(
        disk_id(name),
        name,
        "Premium_LRS",
        SIZE_GIB,
        "1",
        1,
        5000,
        200,
        False,
        False,
        "P30",
        tags,
        f"uid-{name}",
    )


@dataclass
class Spaces:
    """A backend in a folder, with machines and disks, and a short way to its steps."""

    folder: Path
    plugin: Path
    profile: Profile
    nodes: tuple[str, ...]
    disks: int = 4
    size: str = "Standard_L16s"
    backend: LocalBackend = field(init=False)

    def __post_init__(self) -> None:
        self.start()

    def start(self) -> None:
        """Start the backend as a restart of the emulator does: machines come back with their disks."""
        self.backend = LocalBackend(self.folder, "test", Model(self.profile, 1), self.plugin)
        for name in self.nodes:
            self.backend.start_vm(machine(name, self.size))
            for lun in range(self.disks):
                self.attach(name, lun)

    def attach(self, node: str, lun: int) -> None:
        self.backend.attach(vm_id(node), lun, p30(f"{node}-{lun + 1}"), "None")

    def detach(self, node: str, lun: int) -> None:
        self.backend.detach(vm_id(node), lun)

    def call(
        self, node: str, step: str, request: Any, planted: Planted = NOTHING, inner: str = "ours"
    ) -> Any:
        """Carry a step out; returns the JSON document that it prints."""
        secret = self.backend._machine(self.backend._record(vm_id(node))).secret()
        asked = request.model_dump(mode="json") if isinstance(request, steps.Request) else request
        return self.backend.step(vm_id(node), secret, step, asked, inner, planted)

    def run(self, node: str, step: str, request: steps.Request, planted: Planted = NOTHING) -> Any:
        """Carry a step out as the cluster's account; returns its state, or raises StepFailed."""
        wrapped = steps.as_task(step, request, ACCOUNT, PASSWORD)
        printed = self.call(node, "task", wrapped, planted)
        return steps.outcome("task", "" if printed is None else json.dumps(printed), node).state

    def changed(self, node: str, step: str, request: steps.Request) -> list[str]:
        """Carry a step out as the cluster's account; returns what it changed."""
        wrapped = steps.as_task(step, request, ACCOUNT, PASSWORD)
        within = json.loads(self.call(node, "task", wrapped)["state"]["output"])
        assert within["ok"], within
        return list(within["changed"])

    # requests

    def prepare(self, **more: Any) -> steps.Prepare:
        return steps.Prepare(
            account=ACCOUNT,
            password=PASSWORD,
            nodes=self.nodes,
            dns_suffix="dbk.internal",
            subnet="10.0.0.0/24",
            **more,
        )

    def cluster(self, **more: Any) -> steps.Cluster:
        return steps.Cluster(account=ACCOUNT, password=PASSWORD, nodes=self.nodes, name="dbk", **more)

    def enable(self, wait_s: int = 1, **more: Any) -> steps.Enable:
        size = SIZE_GIB * GIB
        disks = [
            steps.PoolDisk(node=node, lun=lun, unique_id=f"uid-{node}-{lun + 1}", size_bytes=size)
            for node in self.nodes
            for lun in range(self.disks)
        ]
        asked = {"pool": "dbk", "disks": disks, "clustered": len(self.nodes) > 1, "wait_s": wait_s, **more}
        return steps.Enable.model_validate(asked)

    def prepared(self) -> None:
        """Prepare all nodes, and restart them."""
        for node in self.nodes:
            self.call(node, "prepare", self.prepare())
            self.backend.stop_vm(vm_id(node))
            self.backend.start_vm(machine(node, self.size))

    def clustered(self) -> None:
        """Come as far as the pool."""
        self.prepared()
        first = self.nodes[0]
        if len(self.nodes) > 1:
            witness = {"witness_account": "w", "witness_key": "key-of-w"} if len(self.nodes) == 2 else {}
            self.run(first, "cluster", self.cluster(**witness))
        self.run(first, "enable", self.enable())


@contextmanager
def spaces(
    nodes: int = 3, profile: str = "quiet", disks: int = 4, size: str = "Standard_L16s"
) -> Iterator[Spaces]:
    """Machines with disks in a folder of their own."""
    names = tuple(f"r1-n{number + 1}" for number in range(nodes))
    with tempfile.TemporaryDirectory(prefix="diskbook-test-", dir="/tmp") as name:
        folder = Path(name)
        made = Spaces(folder / "e", build_plugin(paths.CACHE), load_profile(profile), names, disks, size)
        try:
            yield made
        finally:
            made.backend.close()
