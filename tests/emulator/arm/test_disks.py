"""The control plane's managed disks, through the Azure compute client."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
from azure.mgmt.compute.models import CreationData, Disk, DiskSku

from diskbook_emulator.arm.disk_rules import fill
from diskbook_emulator.arm.state import Resource
from support.arm_plane import LOCATION, SUBSCRIPTION, World, refused


def _path(group: str, name: str) -> str:
    return (
        f"/subscriptions/{SUBSCRIPTION}/resourceGroups/{group}/providers/Microsoft.Compute/disks/{name}"
        "?api-version=2026-03-02"
    )


def test_a_disk_is_accepted_with_202_and_ends_as_recorded(plane: World) -> None:
    group = plane.group("disk-shape")
    body = {
        "location": LOCATION,
        "sku": {"name": "Premium_LRS"},
        "properties": {
            "creationData": {"createOption": "Empty"},
            "diskSizeGB": 1024,
            "burstingEnabled": True,
        },
    }
    answer = plane.raw("PUT", _path(group, "d"), json=body)
    assert answer.status_code == 202
    assert "Retry-After" not in answer.headers  # nor isArmResource in the body, as recorded in 2025
    assert set(answer.json()["properties"]) == {*body["properties"], "provisioningState"}
    poll = answer.headers["Azure-AsyncOperation"]
    assert f"/providers/Microsoft.Compute/locations/{LOCATION}/DiskOperations/" in poll
    assert "monitor=true" in answer.headers["Location"] and "monitor" not in poll
    assert answer.headers["x-ms-request-id"] in poll
    assert "CreateUpdateDisks3Min;" in answer.headers["x-ms-ratelimit-remaining-resource"]
    assert answer.json()["properties"]["provisioningState"] == "Updating"
    assert "tier" not in answer.json()["sku"]
    made = plane.compute.disks.begin_create_or_update(group, "d2", body).result()
    assert (made.sku.name, made.sku.tier, made.tier) == ("Premium_LRS", "Premium", "P30")
    assert (made.disk_iops_read_write, made.disk_m_bps_read_write) == (5000, 200)
    assert (made.disk_state, made.disk_size_bytes) == ("Unattached", 1024 * 1024**3)
    raw = plane.raw("GET", _path(group, "d2")).json()
    assert len(raw["properties"]["timeCreated"].split(".")[1]) == len("0744425+00:00")
    assert raw["properties"]["uniqueId"] and raw["properties"]["burstingEnabledTime"]


def test_an_operation_hands_over_the_disk(plane: World) -> None:
    group = plane.group("disk-output")
    body = {"location": LOCATION, "properties": {"creationData": {"createOption": "Empty"}, "diskSizeGB": 4}}
    poll = (
        plane.raw("PUT", _path(group, "d"), json=body).headers["Azure-AsyncOperation"].removeprefix(plane.url)
    )
    seen = plane.raw("GET", poll).json()
    while seen["status"] == "InProgress":
        assert set(seen) == {"startTime", "status", "name"}
        seen = plane.raw("GET", poll).json()
    assert seen["status"] == "Succeeded" and seen["endTime"]
    assert seen["properties"]["output"]["properties"]["provisioningState"] == "Succeeded"


@pytest.mark.parametrize(
    ("sku", "size", "extra", "expected"),
    [
        ("Premium_ZRS", 2, {}, ("P1", 120, 25)),
        ("Premium_LRS", 530, {"creation": {"performancePlus": True}}, ("P30", 8000, 300)),
        ("Premium_LRS", 1024, {"tier": "P50"}, ("P50", 7500, 250)),
        ("Premium_LRS", 1024, {"maxShares": 3}, ("P30", 5000, 200)),
        ("Standard_LRS", 4, {}, (None, 500, 60)),
        ("StandardSSD_ZRS", 1024, {}, (None, 500, 100)),
        (
            "PremiumV2_LRS",
            1024,
            {"zones": ["1"], "diskIOPSReadWrite": 80000, "diskMBpsReadWrite": 1200},
            (None, 80000, 1200),
        ),
        ("PremiumV2_LRS", 1024, {"zones": ["2"]}, (None, 3000, 125)),
        (
            "UltraSSD_LRS",
            1024,
            {"zones": ["1"], "diskIOPSReadWrite": 10000, "diskMBpsReadWrite": 400},
            (None, 10000, 400),
        ),
    ],
)
def test_figures_follow_from_sku_size_and_options(
    plane: World, sku: str, size: int, extra: dict, expected: tuple
) -> None:
    group = plane.group("disk-figures")
    made = plane.disk(group, f"{sku}-{size}-{len(str(extra))}".replace("_", "-"), sku, size, **extra)
    assert (made.tier, made.disk_iops_read_write, made.disk_m_bps_read_write) == expected
    assert made.zones == extra.get("zones")


def test_models_with_flattened_keywords_work(plane: World) -> None:
    group = plane.group("disk-model")
    wish = Disk(
        location=LOCATION,
        sku=DiskSku(name="Premium_ZRS"),
        creation_data=CreationData(create_option="Empty", performance_plus=True),
        disk_size_gb=1024,
        max_shares=2,
    )
    made = plane.compute.disks.begin_create_or_update(group, "d", wish).result()
    assert (made.max_shares, made.creation_data.performance_plus, made.zones) == (2, True, None)


def test_an_update_changes_figures_and_keeps_identity(plane: World) -> None:
    group = plane.group("disk-update")
    made = plane.disk(group, "d")
    changed = plane.compute.disks.begin_update(
        group, "d", {"properties": {"diskSizeGB": 2048}, "tags": {"a": "b"}}
    )
    after = changed.result()
    assert (after.tier, after.disk_iops_read_write, after.tags) == ("P40", 7500, {"a": "b"})
    assert after.unique_id == made.unique_id
    v2 = plane.disk(group, "v2", "PremiumV2_LRS", 100, zones=["1"])
    assert v2.disk_iops_read_write == 3000
    body = {"properties": {"diskIOPSReadWrite": 6000, "diskMBpsReadWrite": 300}}
    faster = plane.compute.disks.begin_update(group, "v2", body).result()
    assert (faster.disk_iops_read_write, faster.disk_m_bps_read_write) == (6000, 300)


def test_what_an_existing_disk_does_not_take(plane: World) -> None:
    group = plane.group("disk-refuse")
    plane.disk(group, "d", burstingEnabled=True)
    update = plane.compute.disks.begin_update
    assert refused(lambda: update(group, "d", {"properties": {"diskSizeGB": 512}}))[:2] == (
        409,
        "OperationNotAllowed",
    )
    plus = {"properties": {"creationData": {"performancePlus": True}}}
    for body, name in ((plus, "creationData.performancePlus"), ({"sku": {"name": "Premium_ZRS"}}, "sku")):
        sentence = f"Changing property '{name}' is not allowed for existing disk 'd'."
        assert refused(lambda body=body: update(group, "d", body)) == (400, "BadRequest", sentence)
    off = refused(lambda: update(group, "d", {"properties": {"burstingEnabled": False}}))
    assert off[1] == "OperationNotAllowed" and "12 hours" in off[2]


@pytest.mark.long
def test_lists_come_in_pages(plane: World) -> None:
    group = plane.group("disk-pages")
    names = [f"d{number:02}" for number in range(53)]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda name: plane.disk(group, name, size=4), names))
    first = plane.raw("GET", _path(group, "").replace("/disks/?", "/disks?")).json()
    assert len(first["value"]) == 50 and "nextLink" in first
    assert sorted(one.name for one in plane.compute.disks.list_by_resource_group(group)) == names
    assert set(names) <= {one.name for one in plane.compute.disks.list()}


def test_deleting_a_disk(plane: World) -> None:
    group = plane.group("disk-delete")
    made = plane.disk(group, "d")
    plane.compute.disks.begin_delete(group, "d").result()
    assert refused(lambda: plane.compute.disks.get(group, "d"))[1] == "ResourceNotFound"
    assert (made.id.lower(),) in plane.backend.named("delete_disk")
    assert plane.raw("DELETE", _path(group, "d")).status_code == 204


def test_drives_planted_in_a_site_are_what_azure_reports_of_its_disks() -> None:
    planted = {"nested-resiliency": (1470, 50)}
    sizes = {"creationData": {"createOption": "Empty"}, "diskSizeGB": 1024}
    figures = []
    for site in ("nested-resiliency", "s2d-azure"):
        body = {"sku": {"name": "Premium_LRS"}, "properties": dict(sizes), "tags": {"diskbook-site": site}}
        disk = Resource({"id": "/x", "name": "d", **body})
        fill(disk, planted)
        figures.append([disk.properties[f"disk{unit}ReadWrite"] for unit in ("IOPS", "MBps")])
        assert disk.properties["tier"] == "P30"
    assert figures == [[1470, 50], [5000, 200]]
