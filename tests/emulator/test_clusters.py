"""A cluster on a whole emulator: made over SSH, measured, lost in part, restarted with, and gone with its group."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from diskbook.azure import keys, requests, windows
from diskbook.base.units import GIB
from diskbook.emulator import lifecycle
from diskbook.machines.cluster import steps
from diskbook.machines.ssh import Host
from diskbook.machines.ssh_windows import WindowsConnection
from diskbook.scenario.model import Disk, Machine
from support.emulated import GROUP, REGION, Azure, leftovers, soon
from support.spaces import ACCOUNT, PASSWORD

pytestmark = pytest.mark.emulator

NODES = ("r1-n1", "r1-n2", "r1-n3")
P2 = Disk(name="d", sku="Premium_LRS", size_gib=8, zone="1")
FILE = r"C:\ClusterStorage\vol\diskbook.dat"
FILL = r"C:\DiskbookFill\vol\diskbook.dat"


class Windows(Azure):
    """Windows machines on an emulator."""

    def server(self, name: str) -> Host:
        """Create a machine with a disk at LUN 0, set it up, and put the scripts on it."""
        network, common = self.clients.network, {"location": REGION}
        net = network.virtual_networks.begin_create_or_update(
            GROUP, "net", {**common, "properties": requests.network()}
        ).result()
        address = network.public_ip_addresses.begin_create_or_update(
            GROUP, f"{name}-ip", {**common, **requests.public_address("1")}
        ).result()
        group = network.network_security_groups.begin_create_or_update(
            GROUP, "nsg", {**common, "properties": {"securityRules": [requests.ssh_only("*")]}}
        ).result()
        nic = network.network_interfaces.begin_create_or_update(
            GROUP,
            f"{name}-nic",
            {**common, "properties": requests.interface(net.subnets[0].id, address.id, group.id)},
        ).result()
        host_key, public = keys.new_pair(name), self.key.with_suffix(".pub").read_text().strip()
        spec = Machine(name=name, size="Standard_L16s", zone="1", os="windows")
        body = requests.machine(
            spec, REGION, {}, name=name, nic_id=nic.id, user=self.emulator.admin_user, public_key=public,
            host_key=host_key,
        )  # fmt: skip
        image = body["properties"]["storageProfile"]["imageReference"]
        body["properties"]["storageProfile"]["imageReference"] = {**image, "sku": "2025-datacenter"}
        machines = self.clients.compute.virtual_machines
        machines.begin_create_or_update(GROUP, name, body).result()
        self.clients.compute.virtual_machine_extensions.begin_create_or_update(
            GROUP, name, "diskbook-setup", windows.extension(REGION, {}, host_key, public)
        ).result()
        self.attach(name, self.disk(P2.model_copy(update={"name": f"{name}-d"})))
        return self.host(name, " ".join(host_key.public.split()[:2]))


def put_scripts(folder: Path) -> None:
    """Put all scripts on a machine, as a run does."""
    for step in steps.STEPS:
        file = folder / "drives" / "c" / "programdata" / "diskbook" / "cluster" / f"{step}.ps1"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(steps.script(step))


class Cluster:
    """Three nodes over SSH."""

    def __init__(self, azure: Windows) -> None:
        self.azure = azure
        self.hosts = {name: azure.server(name) for name in NODES}
        self.folders = {name: next((self.state / "vms").glob(f"{name}-*")) for name in NODES}
        self.connections: dict[str, WindowsConnection] = {}
        for folder in self.folders.values():
            put_scripts(folder)

    @property
    def state(self) -> Path:
        return Path(self.azure.emulator.ca_path).parents[1]

    def on(self, node: str) -> WindowsConnection:
        if node not in self.connections:
            self.connections[node] = WindowsConnection(self.hosts[node])
        return self.connections[node]

    def direct(self, node: str, step: str, request: steps.Request) -> dict[str, Any]:
        output = self.on(node).run(steps.command(step), stdin=steps.standard_input(request))
        return steps.answer(step, (output.stdout + output.stderr).decode(), node)

    def run(self, node: str, step: str, request: steps.Request) -> dict[str, Any]:
        return self.direct(node, "task", steps.as_task(step, request, ACCOUNT, PASSWORD))

    def make(self) -> dict[str, Any]:
        nodes = {"account": ACCOUNT, "password": PASSWORD, "nodes": NODES}
        prepare = steps.Prepare(**nodes, dns_suffix="dbk.internal", subnet="10.0.0.0/24", restart=True)  # type: ignore[arg-type]
        for node in NODES:
            assert self.direct(node, "prepare", prepare)["restart_due"]
        for node in NODES:
            assert soon(lambda: not self.direct(node, "prepare", prepare)["restart_due"])  # noqa: B023
        disks = []
        for node in NODES:
            (row,) = self.on(node).disks()
            disk = {"node": node, "lun": 0, "unique_id": row["unique_id"], "size_bytes": row["size_bytes"]}
            disks.append(steps.PoolDisk.model_validate(disk))
        self.run(NODES[0], "cluster", steps.Cluster(**nodes, name="dbk"))  # type: ignore[arg-type]
        self.run(NODES[0], "enable", steps.Enable(pool="dbk", disks=tuple(disks), clustered=True))
        assert self.on(NODES[0]).disks() == []
        return self.run(NODES[0], "volume", steps.mirror("dbk", "vol", GIB, 1, 3))

    def diskspd(self, node: str, job: str, *words: str) -> str:
        on = self.on(node)
        on.start_job(job, ["diskspd", *words])
        files = on.finish_job(job, [], expected_s=0.5, limit_s=60)
        assert files["status"].strip() == b"0", files
        return files["stdout"].decode()

    def counted(self, node: str) -> dict[str, int]:
        samples = self.direct(node, "counters", steps.Counters())["samples"]
        return {row["path"].partition("\\")[2].split("\\", 2)[-1]: row["raw"] for row in samples}


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with (
        tempfile.TemporaryDirectory(prefix="diskbook-test-", dir="/tmp") as name,
        pytest.MonkeyPatch.context() as patch,
    ):
        patch.setenv("TMPDIR", name)
        place = Path(name)
        made = Cluster(Windows(lifecycle.start("spaces", profile="quiet", time_scale=0.0), place / "run"))
        made.make()
        yield made
        for connection in made.connections.values():
            connection.close()
        for running in lifecycle.status():
            lifecycle.stop(running.name)
        assert soon(lambda: not leftovers(place))


def test_it(cluster: Cluster) -> None:
    load = ("-b64K", "-t1", "-o8", "-w100", "-s", "-Sh", "-W0", "-d1", "-L", "-Rxml")
    cluster.diskspd("r1-n1", "fill", *load, "-c64M", FILL)
    before = cluster.counted("r1-n1")
    cluster.diskspd("r1-n2", "load", *load, FILE)
    print(before, cluster.counted("r1-n1"), cluster.counted("r1-n2"))
