"""Each setting asked for is compared with what GET says; a mismatch stops the run and names it."""

from __future__ import annotations

import copy
import functools
import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from diskbook.cloud.azure import offers, readback, requests
from diskbook.cloud.azure.attach import Attachments
from diskbook.cloud.azure.clients import Clients, Cloud
from diskbook.cloud.azure.create import Maker, Place
from diskbook.design import azure_rules
from diskbook.design.model import Disk, Machine
from diskbook.facts import arm, catalog
from diskbook.facts.disk_options import OPTIONS, Option
from diskbook.facts.errors import DiskbookError
from diskbook.results.run import Run
from support import disk_options
from support.arm_plane import SUBSCRIPTION, Credential, World

DISK = Disk(name="d", sku="Premium_LRS", size_gib=1024, zone="1", performance_plus=True)
P30 = Disk(name="p30", sku="Premium_LRS", size_gib=1024, zone="1")
SHARED = Disk(name="s", sku="Premium_ZRS", size_gib=1024, max_shares=2)
FLEXIBLE = Disk(name="v2", sku="PremiumV2_LRS", size_gib=1024, zone="1", iops=8000, mb_s=300)
ULTRA = Disk(name="u", sku="UltraSSD_LRS", size_gib=64, zone="1", iops=4000, mb_s=200)
MACHINE = Machine(name="vm1", size="Standard_D4as_v4", zone="1")
Change = Callable[[dict[str, Any]], None]
_numbers = itertools.count()


@pytest.fixture(scope="module")
def clients(plane: World) -> Clients:
    where: dict[str, Any] = {"endpoint": plane.url, "ca": plane.ca, "time_scale": 0.0005}
    return Clients(Cloud("emulator", SUBSCRIPTION, Credential(), ssh_source="192.0.2.7/32", **where))


@pytest.fixture
def maker(plane: World, clients: Clients, tmp_path: Path) -> Maker:
    group = plane.group(f"readback-{next(_numbers)}")
    tags = {"diskbook-run": "test", "diskbook-expires": "2027-01-01T00:00:00+00:00"}
    return Maker(clients, Run(tmp_path), Place(group, "westeurope", tags), {"1": "westeurope-az3"})


@functools.cache
def _size(clients: Clients, name: str) -> offers.Size:
    """Ask once: the list that Azure has of them is long."""
    return offers.measured_sizes(clients, "westeurope", {name})[name]


def _interface(maker: Maker, spec: Machine = MACHINE) -> Any:
    parts = {
        "subnet": maker.network(),
        "address": maker.address("r1-vm1", spec.zone),
        "group": maker.security_group(),
    }
    return maker.interface("r1-vm1", spec, parts, _size(maker.clients, spec.size))


def _machine(maker: Maker, ultra: bool = False) -> dict[str, Any]:
    size = _size(maker.clients, MACHINE.size)
    return maker.machine("r1-vm1", MACHINE, _interface(maker), size, images={"linux": "1.0.10"}, ultra=ultra)


def _altered(monkeypatch: pytest.MonkeyPatch, name: str, change: Change) -> None:
    """Have the body of a request changed on its way, as a portal's policy or a wrong default would."""
    make = getattr(requests, name)

    def altered(*args: Any, **kwargs: Any) -> dict[str, Any]:
        body = copy.deepcopy(make(*args, **kwargs))
        change(body)
        return body  # type: ignore[no-any-return]

    monkeypatch.setattr(requests, name, altered)


def _set(path: str, value: Any) -> Change:
    """Set one entry of a body, given as "properties/maxShares"; None takes it out."""

    def change(body: dict[str, Any]) -> None:
        *above, last = path.split("/")
        for step in above:
            body = body[int(step)] if isinstance(body, list) else body[step]
        if value is None:
            body.pop(last)
        else:
            body[last] = value

    return change


@pytest.mark.parametrize("spec", [DISK, SHARED, FLEXIBLE])
def test_a_disk_that_is_as_asked_is_recorded(maker: Maker, spec: Disk) -> None:
    entry = maker.disk(f"r1-{spec.name}", spec)
    found = entry["read_back"]
    assert {key: found[key] for key in ("sku", "size_gib", "zone", "max_shares")} == {
        "sku": spec.sku,
        "size_gib": 1024,
        "zone": spec.zone,
        "max_shares": spec.max_shares,
    }
    assert (found["network_access"], found["public_network_access"]) == ("DenyAll", "Disabled")
    assert entry["physical_zone"] == ("westeurope-az3" if spec.zone else None)
    assert found["tier"] == ("P30" if spec.sku.startswith("Premium_") else None)
    assert entry["unique_id"] and entry["id"] == entry["id"].lower()


@pytest.mark.parametrize("option", OPTIONS, ids=lambda option: option.name)
def test_the_control_plane_keeps_every_option(maker: Maker, option: Option) -> None:
    asked = FLEXIBLE if option.flexible else P30.model_copy(update={option.name: disk_options.other(option)})
    read_back = maker.disk("r1-d", asked)["read_back"]
    assert read_back[option.name] == getattr(asked, option.name) != option.default


@pytest.mark.long
@pytest.mark.parametrize(
    ("spec", "change", "told"),
    [
        (
            DISK,
            _set("sku/name", "StandardSSD_LRS"),
            "sku was to be Premium_LRS, but Azure says Standard",
        ),
        (DISK, _set("properties/diskSizeGB", 2048), "size_gib was to be 1024, but Azure says 2048"),
        (DISK, _set("zones", ["2"]), "zone was to be 1, but Azure says 2"),
        (DISK, _set("zones", None), "zone was to be 1, but Azure says None"),
        (DISK, _set("properties/creationData/performancePlus", None), "performance_plus was to be True"),
        (DISK, _set("properties/burstingEnabled", True), "bursting was to be False, but Azure says True"),
        (DISK, _set("properties/networkAccessPolicy", "AllowAll"), "network_access was to be DenyAll"),
        (DISK, _set("properties/publicNetworkAccess", "Enabled"), "public_network_access was to be Disabled"),
        (DISK, _set("properties/tier", "P50"), "tier was to be P30, but Azure says P50"),
        (SHARED, _set("properties/maxShares", 3), "max_shares was to be 2, but Azure says 3"),
        (FLEXIBLE, _set("properties/diskIOPSReadWrite", 4000), "iops was to be 8000, but Azure says 4000"),
        (FLEXIBLE, _set("properties/diskMBpsReadWrite", 200), "mb_s was to be 300, but Azure says 200"),
    ],
)
def test_a_disk_that_is_not_as_asked_stops_the_run(
    maker: Maker, monkeypatch: pytest.MonkeyPatch, spec: Disk, change: Change, told: str
) -> None:
    _altered(monkeypatch, "disk", change)
    with pytest.raises(DiskbookError, match=rf"^disk {spec.name}: {told}.*; the run stops$"):
        maker.disk("r1-d", spec)


def test_a_machine_that_is_as_asked_is_recorded(maker: Maker) -> None:
    entry = _machine(maker)
    assert entry["read_back"] == {
        "size": "Standard_D4as_v4",
        "zone": "1",
        "image": "Canonical:ubuntu-24_04-lts:server",
        "image_version": "1.0.10",
        "computer_name": "r1-vm1",
        "os_disk_delete_option": "Delete",
        "os_disk_local": None,
        "os_disk_gib": 30,
        "interface_delete_option": "Delete",
        "disk_controller": "SCSI",
        "security_type": None,
        "encryption_at_host": False,
        "ultra_ssd": False,
    }
    network = entry["network"]
    assert network["accelerated_networking"] is True
    assert network["security_group"].endswith("/nsg") and network["public_address"].endswith("/r1-vm1-ip")
    assert network["public_address_delete_option"] == "Delete" and network["private_address"] == "10.0.0.4"
    assert entry["physical_zone"] == "westeurope-az3"
    assert entry["host"]["host_key"].startswith("ssh-ed25519 ")


@pytest.mark.long
@pytest.mark.parametrize(
    ("change", "told"),
    [
        (_set("properties/hardwareProfile/vmSize", "Standard_D4as_v5"), "size was to be Standard_D4as_v4"),
        (_set("zones", None), "zone was to be 1, but Azure says None"),
        (
            _set("properties/additionalCapabilities", {"ultraSSDEnabled": False}),
            "ultra_ssd was to be True, but Azure says False",
        ),
        (
            _set("properties/storageProfile/osDisk/deleteOption", None),
            "os_disk_delete_option was to be",
        ),
        (
            _set("properties/storageProfile/osDisk/diffDiskSettings", {"placement": "CacheDisk"}),
            "os_disk_local was to be None, but Azure says CacheDisk",
        ),
        (
            _set("properties/networkProfile/networkInterfaces/0/properties/deleteOption", "Detach"),
            "interface_delete_option was to be Delete, but Azure says Detach",
        ),
    ],
)
def test_a_machine_that_is_not_as_asked_stops_the_run(
    maker: Maker, monkeypatch: pytest.MonkeyPatch, change: Change, told: str
) -> None:
    _altered(monkeypatch, "machine", change)
    with pytest.raises(DiskbookError, match=rf"^machine vm1: {told}.*; the run stops$"):
        _machine(maker)


def test_another_image_than_asked_for_is_told(maker: Maker) -> None:
    entry = _machine(maker)
    made = maker.clients.compute.virtual_machines.get(maker.place.group, "r1-vm1")
    body = requests.machine(
        MACHINE, "westeurope", {}, name="r1-vm1", nic_id="x", user="u", public_key="k",
        host_key=requests.KeyPair("private", "public"), image_version="1.0.10",
    )  # fmt: skip
    readback.check_machine(MACHINE, body, made)
    image = {**arm.IMAGES["linux"], "sku": "minimal", "version": "1.0.10"}
    body["properties"]["storageProfile"]["imageReference"] = image
    with pytest.raises(DiskbookError, match="image was to be Canonical:ubuntu-24_04-lts:minimal, but Azure"):
        readback.check_machine(MACHINE, body, made)
    assert entry["id"] == made.id.lower()


@pytest.mark.parametrize(
    ("size", "controller", "image"),
    [
        ("Standard_D4as_v4", None, "server"),
        ("Standard_E2bs_v5", "SCSI", "server"),
        ("Standard_D2s_v6", "NVMe", "server"),
        ("Standard_D2ps_v5", None, "server-arm64"),
    ],
)
def test_controller_and_image_are_asked_for_by_the_size(
    size: str, controller: str | None, image: str
) -> None:
    body = requests.machine(
        MACHINE.model_copy(update={"size": size}), "westeurope", {}, name="r1-vm1", nic_id="x", user="u",
        public_key="k", host_key=requests.KeyPair("private", "public"), image_version="1.0.10",
        traits=azure_rules.documented(catalog.vm_size(size)),
    )  # fmt: skip
    profile = body["properties"]["storageProfile"]
    assert (profile.get("diskControllerType"), profile["imageReference"]["sku"]) == (controller, image)


def test_a_controller_that_the_size_has_not_is_refused(maker: Maker, monkeypatch: pytest.MonkeyPatch) -> None:
    def scsi(body: dict[str, Any]) -> None:
        body["properties"]["storageProfile"]["diskControllerType"] = "SCSI"

    spec = MACHINE.model_copy(update={"size": "Standard_D2s_v6"})
    nic, size = _interface(maker, spec), _size(maker.clients, spec.size)
    _altered(monkeypatch, "machine", scsi)
    with pytest.raises(DiskbookError, match="can't boot with DiskControllerTypes"):
        maker.machine("r1-vm1", spec, nic, size, images={"linux": "1.0.10"})


def test_accelerated_networking_is_asked_for_where_the_size_has_it(maker: Maker) -> None:
    off = MACHINE.model_copy(update={"accelerated_networking": False})
    assert not readback.interface(_interface(maker, off))["accelerated_networking"]
    assert readback.interface(_interface(maker))["accelerated_networking"]
    without = offers.Size({}, accelerated_networking=False)
    address, group = maker.address("r1-b", "1"), maker.security_group()
    parts = {"subnet": maker.network(), "address": address, "group": group}
    assert not readback.interface(maker.interface("r1-b", MACHINE, parts, without))["accelerated_networking"]


@pytest.mark.long
@pytest.mark.parametrize(
    ("path", "value", "told"),
    [
        ("enableAcceleratedNetworking", False, "accelerated_networking was to be True, but Azure says False"),
        ("networkSecurityGroup", None, "security_group was to be /.*/nsg, but Azure says None"),
        ("ipConfigurations/0/properties/publicIPAddress", None, "public_address was to be /.*-ip, but"),
    ],
)
def test_an_interface_that_is_not_as_asked_stops_the_run(
    maker: Maker, path: str, value: Any, told: str
) -> None:
    made = _interface(maker)
    asked = requests.interface(
        maker.network(), maker.address("r1-vm1", "1"), maker.security_group(), accelerated=True
    )
    readback.check_interface("vm1", asked, made)
    body = {"location": "westeurope", "properties": copy.deepcopy(asked)}
    _set(f"properties/{path}", value)(body)
    changed = maker.clients.network.network_interfaces.begin_create_or_update(
        maker.place.group, "r1-vm1-nic", body
    ).result()
    with pytest.raises(DiskbookError, match=f"^network interface of machine vm1: {told}"):
        readback.check_interface("vm1", asked, changed)


def test_a_security_group_that_lets_in_more_stops_the_run(
    maker: Maker, monkeypatch: pytest.MonkeyPatch
) -> None:
    maker.security_group()
    _altered(monkeypatch, "ssh_only", _set("properties/sourceAddressPrefix", "*"))
    told = r"lets in was to be Tcp 22 from 192.0.2.7/32, but Azure says Tcp 22 from \*"
    with pytest.raises(DiskbookError, match=told):
        maker.security_group()


def test_everything_is_tagged_and_goes_with_its_machine(maker: Maker, plane: World) -> None:
    entry = _machine(maker)
    disk = maker.disk("r1-d", DISK)
    group = maker.place.group
    resources = list(plane.resource.resources.list_by_resource_group(group))
    tagged = {row.name: row.tags for row in resources if row.name != requests.os_disk_name("r1-vm1")}
    assert set(tagged) == {"nsg", "net", "r1-vm1-ip", "r1-vm1-nic", "r1-vm1", "r1-d"}
    assert all(maker.place.tags.items() <= tags.items() for tags in tagged.values())

    replicate = {"machines": {"vm1": entry}, "disks": {"d": disk}}
    Attachments(maker.clients, maker.run, replicate).move(DISK, "vm1")
    plane.compute.virtual_machines.begin_delete(group, "r1-vm1").result()
    left = {row.name for row in plane.resource.resources.list_by_resource_group(group)}
    assert left == {"nsg", "net"}


@pytest.mark.long
@pytest.mark.parametrize(
    ("key", "value", "told"),
    [
        ("caching", "ReadOnly", "cache was to be None, but Azure says ReadOnly"),
        ("deleteOption", "Detach", "delete_option was to be Delete, but Azure says Detach"),
        ("lun", 5, "lun was to be 0, but Azure says 5"),
    ],
)
def test_an_attachment_that_is_not_as_asked_stops_the_run(
    maker: Maker, monkeypatch: pytest.MonkeyPatch, key: str, value: Any, told: str
) -> None:
    replicate = {"machines": {"vm1": _machine(maker)}, "disks": {"d": maker.disk("r1-d", DISK)}}
    attachments = Attachments(maker.clients, maker.run, replicate)
    machines = maker.clients.compute.virtual_machines
    send = machines.begin_attach_detach_data_disks

    def altered(group: str, name: str, body: dict[str, Any]) -> Any:
        body["dataDisksToAttach"][0][key] = value
        return send(group, name, body)

    monkeypatch.setattr(machines, "begin_attach_detach_data_disks", altered)
    with pytest.raises(DiskbookError, match=f"^attached disk d: {told}; the run stops$"):
        attachments.move(DISK, "vm1")


@pytest.mark.long
def test_a_shared_disk_stays_when_its_machine_goes_and_goes_with_its_group(
    maker: Maker, plane: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Azure deletes no shared disk with a machine; asked to, it refuses (Microsoft, delete.md)."""
    replicate = {"machines": {"vm1": _machine(maker)}, "disks": {"s": maker.disk("r1-s", SHARED)}}
    attachments, group = Attachments(maker.clients, maker.run, replicate), maker.place.group
    with monkeypatch.context() as patch:
        _altered(patch, "attachment", _set("deleteOption", "Delete"))
        with pytest.raises(DiskbookError, match=r"InvalidParameter.*cannot be set to 'Delete'"):
            attachments.move(SHARED, "vm1")
    assert attachments.move(SHARED, "vm1") == 0
    (record,) = [event for event in maker.run.ledger() if event["event"] == "attached"]
    assert record["read_back"]["delete_option"] == "Detach"
    plane.compute.virtual_machines.begin_delete(group, "r1-vm1").result()
    left = {row.name for row in plane.resource.resources.list_by_resource_group(group)}
    assert left == {"nsg", "net", "r1-s"}
    plane.resource.resource_groups.begin_delete(group).result()
    assert not plane.resource.resource_groups.check_existence(group)
    assert (replicate["disks"]["s"]["id"],) in plane.backend.named("delete_disk")


@pytest.mark.long
def test_a_machine_for_ultra_disks_says_so_and_takes_one(maker: Maker) -> None:
    replicate = {"machines": {"vm1": _machine(maker, ultra=True)}, "disks": {"u": maker.disk("r1-u", ULTRA)}}
    assert replicate["machines"]["vm1"]["read_back"]["ultra_ssd"] is True
    assert replicate["disks"]["u"]["limits"]["iops"] == 4000
    assert Attachments(maker.clients, maker.run, replicate).move(ULTRA, "vm1") == 0


@pytest.mark.long
def test_an_operation_that_azure_ended_for_no_fault_of_ours_is_tried_once_more(
    maker: Maker, plane: World
) -> None:
    failed = {"operation_failed": {"code": "InternalExecutionError", "message": "An internal error."}}
    kinds = ("nsg", "vnet", "public-ip", "nic", "vm-create-zonal", "disk-create")
    plane.faults(*({"match": {"operation": kind}, "times": 1, "action": failed} for kind in kinds))
    try:
        entry = _machine(maker)
        maker.disk("r1-d", DISK)
        assert [fault["seen"] for fault in plane.raw("GET", "/diskbook/faults").json()["value"]] == [2] * 6
    finally:
        plane.faults()
    seen = plane.compute.virtual_machines.get(maker.place.group, "r1-vm1")
    assert (seen.provisioning_state, entry["vm_id"]) == ("Succeeded", seen.vm_id)
