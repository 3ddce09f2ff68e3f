"""Provisioning on a real emulator: all replicates at once, in one group, and what is kept when one fails."""

from __future__ import annotations

import json
import re
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from azure.core.rest import HttpRequest

from diskbook.cloud.azure import provision, requests, teardown, witness
from diskbook.cloud.azure.attach import Attachments
from diskbook.cloud.azure.keys import run_key
from diskbook.cloud.connect import clients_of
from diskbook.design import scenario_file
from diskbook.design.model import Disk
from diskbook.facts.errors import DiskbookError
from diskbook.hosts.ssh import Connection, Host
from diskbook.measure.runs import stages
from diskbook.results import session
from diskbook.results.run import Run
from diskbook_emulator import lifecycle
from support import SCENARIOS
from support.emulated import leftovers
from support.strict import Watch

pytestmark = pytest.mark.emulator

SMALL = str(SCENARIOS / "small.toml")
ULTRA = {"disk.lrs.sku": "UltraSSD_LRS", "disk.lrs.size_gib": 64, "disk.lrs.iops": 4000, "disk.lrs.mb_s": 200}
SHARED = {"disk.zrs.max_shares": 2}


@pytest.fixture(scope="module")
def shared() -> Iterator[dict[str, Any]]:
    """An emulator that the user named; nothing is left of it and its runs."""
    with (
        tempfile.TemporaryDirectory(prefix="diskbook-test-", dir="/tmp") as name,
        pytest.MonkeyPatch.context() as patch,
    ):
        patch.setenv("TMPDIR", name)
        patch.setenv("DISKBOOK_RUNS", f"{name}/runs")
        lifecycle.start("shared", profile="quiet", time_scale=0.01, owner=True)
        yield {"name": "shared"}
        lifecycle.stop("shared")
        assert leftovers(Path(name)) == []


def _begin(name: str, emulator: dict[str, Any], replicates: int, **more: Any) -> Run:
    overrides = {"design.replicates": replicates, **more}
    return stages.begin(name, SMALL, "emulator", "quick", overrides, emulator=emulator)


def _faults(run: Run, *faults: dict[str, Any]) -> None:
    clients = clients_of(run)
    request = HttpRequest("PUT", f"{clients.cloud.endpoint}/diskbook/faults", json=list(faults))
    clients.resource.send_request(request).raise_for_status()


@pytest.fixture(scope="module")
def two(shared: dict[str, Any]) -> Iterator[Run]:
    """A provisioned run of two replicates."""
    run = _begin("two", shared, 2)
    stages.provision(run)
    yield run
    stages.teardown(run)
    assert not (run.folder / "keys").exists()


def test_all_replicates_stand_in_one_group_with_one_network(two: Run) -> None:
    manifest = two.manifest
    (group,) = [row["name"] for row in manifest["resource_groups"]]
    rows = manifest["replicates"]
    assert [(row["replicate"], row["origin"], row["resource_group"]) for row in rows] == [
        (number, number, group) for number in (1, 2)
    ]
    clients = clients_of(two)
    found = [row.type for row in clients.resource.resources.list_by_resource_group(group)]
    assert found.count("Microsoft.Network/virtualNetworks") == 1
    assert found.count("Microsoft.Network/networkSecurityGroups") == 1
    assert found.count("Microsoft.Compute/virtualMachines") == 4
    ids = [disk["unique_id"] for row in rows for disk in row["disks"].values()]
    assert len(ids) == len(set(ids)) == 4
    assert all(stages.running_machines(two, clients, number) for number in (1, 2))


@pytest.mark.parametrize(
    ("name", "depth"), [("shared-zrs", "32"), ("zone-disks", "256"), ("disk-options", "128")]
)
def test_the_tags_say_how_deep_a_job_is(name: str, depth: str) -> None:
    """A held rate of fio has one I/O a job, whatever the depth of the load."""
    assert provision.group_tags("run", scenario_file.load(name, "quick"), "")["diskbook-depth"] == depth


def test_machines_answer_with_the_host_key_they_were_given(two: Run) -> None:
    key = run_key(two.folder)
    assert stat.S_IMODE(key.stat().st_mode) == 0o600
    assert stat.S_IMODE(key.parent.stat().st_mode) == 0o700
    keys = set()
    for row in two.manifest["replicates"]:
        for machine in row["machines"].values():
            with Connection(Host(**machine["host"], private_key=key)) as connection:
                assert connection.run("true").status == 0  # any other key would have been refused
            keys.add(machine["host"]["host_key"])
    assert len(keys) == 4
    assert "PRIVATE KEY" not in json.dumps(two.manifest) + (two.folder / "ledger.jsonl").read_text()


def test_the_bodies_of_a_provision_were_judged(two: Run, watch: Watch) -> None:
    """By the SDK's models; without this a look that missed the clients would find nothing wrong."""
    compute, network = "microsoft.compute", "microsoft.network"
    assert watch.sent >= {
        "PUT resourcegroups",
        f"PUT {compute}/disks",
        f"PUT {compute}/virtualmachines",
        f"PUT {network}/virtualnetworks",
        f"PUT {network}/networksecuritygroups",
        f"PUT {network}/publicipaddresses",
        f"PUT {network}/networkinterfaces",
    }


def test_round_trips_between_zones_are_recorded_as_emulated(two: Run) -> None:
    zones = two.manifest["zone_map"]
    for row in two.manifest["replicates"]:
        pairs = row["round_trips"]
        assert {(pair["from"], pair["to"]) for pair in pairs} == {("vm1", "vm2"), ("vm2", "vm1")}
        assert {pair["from_zone"] for pair in pairs} == {zones["1"], zones["2"]}
        assert all(0 < pair["min_ms"] <= pair["median_ms"] for pair in pairs)
        assert {(pair["n"], pair["provenance"]) for pair in pairs} == {(9, "emulated")}


def test_the_requests_of_a_provision_are_counted(two: Run) -> None:
    (event,) = [event for event in two.ledger() if event["event"] == "stage"]
    counts = event["requests"]
    assert counts["PUT disks"] == counts["PUT virtualMachines"] == counts["PUT networkInterfaces"] == 4
    assert counts["PUT virtualNetworks"] == counts["PUT networkSecurityGroups"] == 1
    assert counts["GET operations"] > 4


def test_foreign_resources_outlive_all_that_the_run_has_made(two: Run) -> None:
    """A policy's security group, and a colleague's disk that is attached to a machine of the run."""
    (group,) = [row["name"] for row in two.manifest["resource_groups"]]
    clients = clients_of(two)
    region = {"location": two.scenario.region}
    clients.network.network_security_groups.begin_create_or_update(group, "policy", region).result()
    body = requests.disk(Disk(name="d", sku="Premium_LRS", size_gib=64, zone="1"), region["location"], {})
    disk = clients.compute.disks.begin_create_or_update(group, "payroll", body).result()
    row = {"diskId": disk.id, "lun": 30, "deleteOption": "Detach"}
    attach = clients.compute.virtual_machines.begin_attach_detach_data_disks
    attach(group, "r1-vm1", {"dataDisksToAttach": [row]}).result()
    with pytest.raises(DiskbookError, match=r"holds disks payroll, .* policy .*; the run's own are deleted"):
        stages.teardown(two)
    left = sorted(row.name for row in clients.resource.resources.list_by_resource_group(group))
    assert left == ["payroll", "policy"]
    teardown.remove(clients, group, again="")


def test_a_size_with_an_nvme_controller_alone_is_measured(shared: dict[str, Any]) -> None:
    """Asked for, read back, its disk known by the namespace, filled and measured."""
    overrides = {"machine.vm1.size": "Standard_D2s_v6"}
    run = stages.begin("nvme", str(SCENARIOS / "tiny.toml"), "emulator", "quick", overrides, emulator=shared)
    try:
        stages.provision(run)
        (row,) = run.manifest["replicates"]
        machine = row["machines"]["vm1"]
        assert machine["read_back"]["disk_controller"] == "NVMe" and "size_differs" not in machine
        assert (machine["limits"]["iops"], machine["limits"]["burst_iops"]) == (3750.0, 40_000)
        stages.benchmark(run)
        (lun,) = {event["lun"] for event in run.ledger() if event["event"] == "trial"}
        with Connection(Host(**machine["host"], private_key=run_key(run.folder))) as connection:
            listed = json.loads(connection.check("diskbook-disks"))
    finally:
        stages.teardown(run)
    assert {event["status"] for event in run.ledger() if event["event"] == "trial"} == {"ok"}
    assert listed[str(lun)]["nvme"] == {"model": "MSFT NVMe Accelerator v1.0", "namespace": lun + 2}


def test_what_was_complete_is_kept_when_a_machine_fails(shared: dict[str, Any]) -> None:
    run = _begin("half", shared, 2, **ULTRA, **SHARED)
    failed = {"operation_failed": {"code": "SkuNotAvailable", "message": "No room."}, "delay_s": 800}
    # The fourth machine fails 8 s after the others are there.
    _faults(run, {"match": {"operation": "vm-create-zonal"}, "after": 3, "times": 1, "action": failed})
    try:
        with pytest.raises(DiskbookError, match=r"create machine r\d-vm\d: SkuNotAvailable: No room"):
            stages.provision(run)
        (kept,) = run.manifest["replicates"]
        assert len(run.manifest["resource_groups"]) == 1
        assert _of_replicates(run) == {kept["replicate"]}  # the other one's machine and disks are gone
        assert stages.running_machines(run, clients_of(run), kept["origin"])
        _faults(run)
        stages.provision(run)
        rows = run.manifest["replicates"]
        assert [row["replicate"] for row in rows] == [1, 2] and kept in rows
        first, second = [row["name"] for row in run.manifest["resource_groups"]]
        assert {row["resource_group"] for row in rows} == {first, second}
        before = run.manifest
        stages.provision(run)
        assert run.manifest == before
        _attach_ultra(run, rows[0])
        _attach_shared(run, rows[1])
    finally:
        _faults(run)
        stages.teardown(run)
    assert all(row["deleted_utc"] for row in run.manifest["resource_groups"])


def _attach_ultra(run: Run, row: dict[str, Any]) -> None:
    """The machines of an Ultra disk were made for it: it is attached, and refused in another zone."""
    assert all(machine["read_back"]["ultra_ssd"] for machine in row["machines"].values())
    disk, attachments = run.scenario.disk_named("lrs"), Attachments(clients_of(run), run, row)
    assert row["disks"]["lrs"]["limits"]["iops"] == 4000
    assert attachments.attach(disk, "vm1") == 0
    attachments.detach("lrs", "vm1")
    with pytest.raises(DiskbookError, match="is not in the same zone as the VM"):
        attachments.attach(disk, "vm2")


def _attach_shared(run: Run, row: dict[str, Any]) -> None:
    """A shared disk is attached to both machines, and goes with its group only: teardown follows."""
    disk, attachments = run.scenario.disk_named("zrs"), Attachments(clients_of(run), run, row)
    assert [attachments.attach(disk, machine) for machine in ("vm1", "vm2")] == [0, 0]
    assert [machine for machine, _ in attachments.where("zrs")] == ["vm1", "vm2"]
    attached = [event["read_back"] for event in run.ledger() if event["event"] == "attached"]
    assert [item["delete_option"] for item in attached] == ["Delete", "Detach", "Detach"]


def _of_replicates(run: Run) -> set[int]:
    """Numbers of the replicates that anything in the run's groups belongs to."""
    clients = clients_of(run)
    groups = [row["name"] for row in run.manifest["resource_groups"] if not row["deleted_utc"]]
    names = [row.name for group in groups for row in clients.resource.resources.list_by_resource_group(group)]
    return {int(name[1:].partition("-")[0]) for name in names if re.match(r"r\d+-", name)}


def test_a_failed_provisioning_is_deleted_at_once_unless_kept(shared: dict[str, Any]) -> None:
    run = _begin("dropped", shared, 1)
    failed = {"operation_failed": {"code": "SkuNotAvailable", "message": "No room."}}
    try:
        for number, kept in enumerate((False, True)):
            session.record_kept(run, kept)
            fault = {"match": {"operation": "vm-create-zonal"}, "after": 1, "times": 1, "action": failed}
            _faults(run, fault)
            with pytest.raises(DiskbookError, match=r"create machine r\d-vm\d: SkuNotAvailable: No room"):
                stages.provision(run)
            group = run.manifest["resource_groups"][number]
            there = clients_of(run).resource.resource_groups.check_existence(group["name"])
            assert there is kept and bool(group["deleted_utc"]) is not kept
            assert (run.folder / "keys").exists() is kept
    finally:
        _faults(run)
        stages.teardown(run)


def test_what_cannot_be_deleted_is_told_beside_the_failure(
    shared: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    run = _begin("stuck", shared, 1)
    failed = {"operation_failed": {"code": "SkuNotAvailable", "message": "No room."}}
    blocked = {"status": 409, "code": "ScopeLocked", "message": "A lock."}
    _faults(
        run,
        {"match": {"operation": "vm-create-zonal"}, "action": failed},
        {
            "match": {"method": "DELETE", "path_regex": "/resourceGroups/[^/]+$"},
            "times": 0,
            "action": blocked,
        },
    )
    try:
        with pytest.raises(DiskbookError, match="SkuNotAvailable: No room"):
            stages.provision(run)
        assert "what was half made still stands (delete resource group" in capsys.readouterr().out
        assert [
            event for event in run.ledger() if event["event"] == "notice" and "ScopeLocked" in event["text"]
        ]
    finally:
        _faults(run)
        stages.teardown(run)


@pytest.mark.parametrize(
    ("missing", "used", "numbers"),
    [
        ([1, 2, 3], [], {1: 1, 2: 2, 3: 3}),
        ([2], [1, 3], {2: 2}),
        ([1], [1, 2, 3], {4: 1}),
        ([1, 3], [1, 2, 3], {4: 1, 5: 3}),
        ([1, 2], [1, 4], {5: 1, 2: 2}),
    ],
)
def test_a_measured_number_is_never_given_again(
    missing: list[int], used: list[int], numbers: dict[int, int]
) -> None:
    scenario = scenario_file.load(SMALL, "quick", {"design.replicates": 3})
    assert stages._numbered(scenario, missing, used) == numbers


CLUSTER = """
[scenario]
title = "Two nodes"
article = "none"
analysis = "zone-disks"
question = "Does a cluster's hardware come up?"
region = "westeurope"

[[machine]]
name = "n1"
size = "Standard_L16s"
zone = "1"
os = "windows"

[[machine]]
name = "n2"
size = "Standard_L16s"
zone = "1"
os = "windows"

[[disk]]
name = "p30"
sku = "Premium_LRS"
size_gib = 1024
count = 2

[[cluster]]
name = "c"
nodes = ["n1", "n2"]
witness = "cloud"

[[volume]]
name = "v"
kind = "two-way"
cluster = "c"
disk = "p30"
columns = 2
size_gib = 64

[[arm]]
name = "a"
volume = "v"
machine = "n1"

[[workload]]
name = "w"
block_size = "4K"
write_pct = 0
runtime_s = 1

[design]
seed = 3
"""


@pytest.fixture(scope="module")
def cluster(shared: dict[str, Any]) -> Iterator[Run]:
    """A provisioned run of two nodes with pools and a cloud witness."""
    with tempfile.TemporaryDirectory(dir="/tmp") as name:
        path = Path(name) / "two.toml"
        path.write_text(CLUSTER, "utf-8")
        run = stages.begin("cluster", str(path), "emulator", "quick", {}, emulator=shared)
        stages.provision(run)
        yield run
        stages.teardown(run)


def test_disks_of_pools_are_made_one_by_one_and_read_back(cluster: Run) -> None:
    (row,) = cluster.manifest["replicates"]
    assert list(row["disks"]) == ["p30-n1-1", "p30-n1-2", "p30-n2-1", "p30-n2-2"]
    assert all(disk["id"].endswith(f"/disks/r1-{name}") for name, disk in row["disks"].items())
    assert {disk["read_back"]["zone"] for disk in row["disks"].values()} == {"1"}  # their machines'
    assert {disk["limits"]["iops"] for disk in row["disks"].values()} == {5000}
    compute = clients_of(cluster).compute
    group = row["resource_group"]
    assert compute.disks.get(group, "r1-p30-n2-2").unique_id == row["disks"]["p30-n2-2"]["unique_id"]
    back = row["machines"]["n2"]["read_back"]
    assert back["image"] == "MicrosoftWindowsServer:WindowsServer:2025-datacenter-g2"
    assert back["computer_name"] == "r1-n2"


def test_the_witness_is_in_the_manifest_and_its_key_is_not(cluster: Run) -> None:
    (row,) = cluster.manifest["replicates"]
    assert row["witness"].keys() == {"id", "account", "endpoint", "read_back"}
    key = witness.key(clients_of(cluster), row)
    files = [path.read_bytes() for path in cluster.folder.rglob("*") if path.is_file()]
    assert files and not [content for content in files if key.encode() in content]


def test_disks_of_a_pool_are_attached_by_their_own_names(cluster: Run) -> None:
    (row,) = cluster.manifest["replicates"]
    attachments = Attachments(clients_of(cluster), cluster, row)
    made = cluster.scenario.made_disks()
    luns = [attachments.attach(disk, machine) for disk, machine in made if machine is not None]
    assert luns == [0, 1, 0, 1]
    assert [attachments.where(disk.name) for disk, _ in made] == [
        [("n1", 0)],
        [("n1", 1)],
        [("n2", 0)],
        [("n2", 1)],
    ]


def test_a_replicate_that_stands_is_not_made_again(cluster: Run) -> None:
    before = cluster.manifest["replicates"]
    stages.provision(cluster)
    assert cluster.manifest["replicates"] == before
