"""A cluster on a whole emulator: made over SSH, measured, lost in part, restarted, gone with its group."""

from __future__ import annotations

import os
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from diskbook.cloud.azure import keys, requests
from diskbook.clusters.powershell import steps
from diskbook.design.model import Disk, Machine
from diskbook.facts.units import GIB, MIB
from diskbook.hosts.ssh import Host
from diskbook.hosts.ssh_windows import WindowsConnection
from diskbook_emulator import lifecycle
from diskbook_emulator.played import TrialWindow, build_truth
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
            host_key=host_key, image_version="1.0.10",
        )  # fmt: skip
        image = body["properties"]["storageProfile"]["imageReference"]
        body["properties"]["storageProfile"]["imageReference"] = {**image, "sku": "2025-datacenter"}
        machines = self.clients.compute.virtual_machines
        machines.begin_create_or_update(GROUP, name, body).result()
        self.clients.compute.virtual_machine_extensions.begin_create_or_update(
            GROUP, name, "diskbook-setup", requests.windows_extension(REGION, {}, host_key, public)
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
        return steps.outcome(step, (output.stdout + output.stderr).decode(), node).state

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
        return self.run(NODES[0], "volume", steps.striped("dbk", "vol", GIB, 1, 3))

    def diskspd(self, node: str, job: str, *words: str) -> str:
        on = self.on(node)
        on.start_job(job, ["diskspd", *words])
        files = on.finish_job(job, [], limit_s=60)
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


LOAD = ("-b64K", "-t1", "-o8", "-w100", "-s", "-Sh", "-W0", "-d1", "-L", "-Rxml")
NETWORK = "network interface(microsoft hyper-v network adapter)"


def health(cluster: Cluster, node: str) -> str:
    state = cluster.direct(node, "idle", steps.Idle(volumes=("vol",), wait_s=30))
    return str(state["health"][0]["health"])


def repaired(cluster: Cluster, node: str, back: steps.Loss) -> bool:
    return bool(cluster.direct(node, "restore", back)["done"])


def test_a_file_on_the_volume_is_measured_from_any_node_and_its_bytes_are_counted(cluster: Cluster) -> None:
    cluster.diskspd("r1-n1", "fill", *LOAD, "-c64M", FILL)
    before = {node: cluster.counted(node) for node in NODES}
    assert "emulated by fio" in cluster.diskspd("r1-n2", "load", *LOAD, FILE)
    grown = {
        node: {path: count - before[node][path] for path, count in cluster.counted(node).items()}
        for node in NODES
    }
    written = grown["r1-n2"]["cluster csvfs(vol)\\write bytes/sec"]
    sent, received = f"{NETWORK}\\bytes sent/sec", f"{NETWORK}\\bytes received/sec"
    assert written > MIB and grown["r1-n1"]["cluster csvfs(vol)\\write bytes/sec"] == 0
    # The owner gets all bytes, and sends them to both others; one of them issued them.
    assert grown["r1-n1"][received] == written and grown["r1-n1"][sent] == 2 * written
    assert grown["r1-n2"][sent] == grown["r1-n2"][received] == grown["r1-n3"][received] == written


def test_a_file_that_is_not_there_is_an_error_of_diskspd(cluster: Cluster) -> None:
    on = cluster.on("r1-n1")
    on.start_job("none", ["diskspd", *LOAD, r"C:\ClusterStorage\vol\other.dat"])
    files = on.finish_job("none", [], limit_s=30)
    assert files["status"].strip() == b"1" and b"Error opening file" in files["stderr"]


def test_a_mistake_is_planted_through_the_control_plane_and_found_where_it_is_read(cluster: Cluster) -> None:
    place = steps.Place(volume="vol", node="r1-n1")
    match = {"step": "place", "machine_regex": "n1$"}
    lifecycle.plant(cluster.azure.emulator, [{"match": match, "action": {"reads": {"owner": "r1-n3"}}}])
    with pytest.raises(steps.StepFailed, match="the owner of vol is 'r1-n3', but 'r1-n1' was asked for"):
        cluster.run("r1-n1", "place", place)
    assert cluster.run("r1-n1", "place", place)["owner"] == "r1-n1"
    lifecycle.plant(cluster.azure.emulator, [])


def test_only_scripts_of_the_workbook_are_run(cluster: Cluster) -> None:
    folder = cluster.folders["r1-n1"] / "drives" / "c" / "programdata" / "diskbook" / "cluster"
    (folder / "idle.ps1").rename(folder / "kept")
    absent = cluster.on("r1-n1").run(steps.command("idle"), stdin=b"{}")
    assert absent.status != 0 and b"does not exist" in absent.stderr
    (folder / "idle.ps1").write_text("Remove-Item C:")
    strange = cluster.on("r1-n1").run(steps.command("idle"), stdin=b"{}")
    assert strange.status != 0 and b"knows only the scripts of diskbook" in strange.stderr
    (folder / "kept").rename(folder / "idle.ps1")


def test_a_detached_disk_is_lost_and_repaired_when_it_is_back(cluster: Cluster) -> None:
    disk = next(row for row in cluster.azure.clients.compute.disks.list() if row.name == "r1-n3-d")
    unique_id = disk.unique_id
    lost = steps.Loss(kind="disk", volumes=("vol",), unique_id=unique_id, wait_s=10)
    cluster.azure.detach("r1-n3", str(disk.id))
    assert cluster.direct("r1-n1", "fail", lost)["health"][0]["status"] == "Degraded"
    cluster.diskspd("r1-n1", "without", *LOAD, FILE)
    cluster.azure.attach("r1-n3", str(disk.id))
    assert soon(lambda: repaired(cluster, "r1-n1", lost))
    assert health(cluster, "r1-n1") == "Healthy"


def test_a_deallocated_owner_gives_the_volume_to_another_node(cluster: Cluster) -> None:
    cluster.run("r1-n1", "place", steps.Place(volume="vol", node="r1-n3"))
    cluster.azure.clients.compute.virtual_machines.begin_deallocate(GROUP, "r1-n3").result()
    lost = steps.Loss(kind="node", volumes=("vol",), node="r1-n3", wait_s=10)
    state = cluster.direct("r1-n1", "fail", lost)
    assert {row["node"]: row["state"] for row in state["nodes"]} == {
        "r1-n1": "Up",
        "r1-n2": "Up",
        "r1-n3": "Down",
    }
    with pytest.raises(steps.StepFailed, match="The cluster node is down"):
        cluster.run("r1-n1", "place", steps.Place(volume="vol", node="r1-n3"))
    cluster.diskspd("r1-n1", "two", *LOAD, FILE)
    cluster.azure.clients.compute.virtual_machines.begin_start(GROUP, "r1-n3").result()
    cluster.connections.pop("r1-n3", None)
    assert soon(lambda: repaired(cluster, "r1-n1", lost))
    truth = lifecycle.read_truth(cluster.azure.emulator)["volumes"][0]
    assert truth["owner"].endswith("r1-n1") and truth["repair_done_bytes"] > 0


def test_truth_says_what_is_planted_and_what_was_played(cluster: Cluster) -> None:
    cluster.diskspd("r1-n1", "fill", *LOAD, "-c64M", FILL)
    cluster.diskspd("r1-n1", "load", *LOAD, FILE)
    (volume,) = lifecycle.read_truth(cluster.azure.emulator)["volumes"]
    assert volume["id"] == f"{GROUP}/vol" and (volume["copies"], volume["columns"]) == (3, 1)
    disk = 1.3  # the default site's write; the slowest of three at sigma 0.2 and a hop
    assert 1.174 * disk < volume["expected_write_ms"] < 1.174 * disk + 0.15
    use = next(use for use in volume["uses"] if use["machine_id"].endswith("r1-n1"))
    session = use["sessions"][-1]
    assert session["write_mean_ms"] == pytest.approx(volume["expected_write_ms"], rel=0.05)
    window = TrialWindow("t", use["machine_id"], f"{GROUP}/r1-vol", session["started"], session["ended"])
    response = lifecycle.read_truth(cluster.azure.emulator)
    (trial,) = build_truth(response, [window])["trials"]
    assert trial["matched"] and trial["realised"]["write_mean_ms"] == session["write_mean_ms"]


def test_a_killed_emulator_comes_back_with_the_cluster_and_its_data(cluster: Cluster) -> None:
    emulator = cluster.azure.emulator
    cluster.run("r1-n1", "place", steps.Place(volume="vol", node="r1-n2"))
    before = members(cluster)
    for connection in cluster.connections.values():
        connection.close()
    cluster.connections.clear()
    os.kill(emulator.pid, signal.SIGKILL)
    assert soon(lambda: not leftovers(cluster.state))
    cluster.azure.emulator = lifecycle.start("spaces", time_scale=0.0)
    state = cluster.run("r1-n1", "volume", steps.striped("dbk", "vol", GIB, 1, 3))
    assert state["owner"] == "r1-n2" and members(cluster) == before
    assert health(cluster, "r1-n1") == "Healthy"
    assert "emulated by fio" in cluster.diskspd("r1-n1", "again", *LOAD, FILE)


def members(cluster: Cluster) -> list[bytes]:
    """First MiB of what each disk of the pool holds."""
    return [path.open("rb").read(MIB) for path in sorted((cluster.state / "disks").glob("r1-*-d-*.img"))]


def test_z_with_its_group_it_is_gone(cluster: Cluster) -> None:
    cluster.azure.clients.resource.resource_groups.begin_delete(GROUP).result()
    assert not list((cluster.state / "volumes").glob("*")) and not list((cluster.state / "disks").glob("*"))
    (volume,) = lifecycle.read_truth(cluster.azure.emulator)["volumes"]
    assert sum(len(use["sessions"]) for use in volume["uses"]) >= 3  # it is remembered
