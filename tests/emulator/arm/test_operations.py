"""The control plane's long-running operations, faults, restarts and concurrency."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from azure.core.exceptions import HttpResponseError, ServiceRequestError, ServiceResponseError

from diskbook.facts.errors import UsageError
from diskbook_emulator.arm import Settings, create_app
from support.arm_plane import LOCATION, SUBSCRIPTION, World, held_operations, refused, world
from support.emulated import soon


def _operations(of: World, kind: str) -> list[dict]:
    rows = of.raw("GET", "/diskbook/operations").json()["value"]
    return [row for row in rows if row["kind"] == kind]


def test_operations_keep_real_and_unscaled_times(plane: World) -> None:
    group = plane.group("op-times")
    plane.faults({"match": {"operation": "disk-create"}, "action": {"delay_s": 60}})
    plane.disk(group, "d")
    last = _operations(plane, "disk-create")[-1]
    assert (last["status"], last["unscaled_s"]) == ("Succeeded", 60.5)
    assert last["target"].endswith("/disks/d")
    assert 60.5 * plane.settings.time_scale <= last["real_s"] < 60.5 / 2  # a second or so, on a busy machine
    assert last["started_utc"] <= last["ended_utc"] < last["unscaled_ended_utc"]


def test_delays_are_azures_and_can_be_set(tmp_path: Path) -> None:
    with world(tmp_path, time_scale=1.0, delays_s={"disk-create": 0.05}) as made:
        made.disk(made.group("g"), "d")
        row = _operations(made, "disk-create")[0]
        assert row["unscaled_s"] == 0.05 and row["real_s"] >= 0.05


def test_a_waiting_client_sleeps_what_the_polls_say(tmp_path: Path) -> None:
    with held_operations() as goes_on, world(tmp_path) as made:
        group = made.group("g")

        def slept(operation: Callable[[], Any]) -> list[float]:
            """Waits of a client while an operation is in progress, which ends after three of them."""
            made.slept.clear()
            goes_on.clear()
            with ThreadPoolExecutor(1) as pool:
                answer = pool.submit(operation)
                assert soon(lambda: len(made.slept) >= 3 or answer.done())
                goes_on.set()
                answer.result()
            return made.slept

        assert set(slept(lambda: made.disk(group, "d"))) == {2}
        assert set(slept(lambda: made.nic(group, "nic"))) == {10}
        goes_on.set()
        body = made.vm_body(made.nic(group, "another").id)
        create = made.compute.virtual_machines.begin_create_or_update
        first, *others = slept(lambda: create(group, "vm", body).result())
        assert first == 50 and set(others) == {10}


def test_continuation_tokens_survive_the_poller(plane: World) -> None:
    group = plane.group("op-token")
    body = {"location": LOCATION, "properties": {"creationData": {"createOption": "Empty"}, "diskSizeGB": 4}}
    token = plane.compute.disks.begin_create_or_update(group, "d", body).continuation_token()
    again = plane.compute.disks.begin_create_or_update(group, "d", body, continuation_token=token)
    assert again.result().disk_size_gb == 4


@pytest.mark.long
def test_forty_disks_from_eight_threads(plane: World) -> None:
    group = plane.group("op-many")
    with ThreadPoolExecutor(8) as pool:
        made = list(pool.map(lambda number: plane.disk(group, f"d{number}", size=4), range(40)))
    assert len({disk.unique_id for disk in made}) == 40
    assert {disk.provisioning_state for disk in made} == {"Succeeded"}


def test_a_request_can_be_made_to_fail(plane: World) -> None:
    group = plane.group("fault-request")
    message = (
        "The requested VM size for resource 'Following SKUs have failed for Capacity Restrictions: "
        "Standard_D4as_v4' is currently not available in location 'westeurope'."
    )
    action = {"status": 409, "code": "SkuNotAvailable", "message": message}
    plane.faults(
        {"match": {"method": "PUT", "path_regex": "/virtualMachines/"}, "after": 1, "action": action}
    )
    plane.vm(group, "vm1")
    assert refused(lambda: plane.vm(group, "vm2")) == (409, "SkuNotAvailable", message)
    plane.vm(group, "vm2")
    assert plane.raw("GET", "/diskbook/faults").json()["value"][0]["seen"] == 3
    plane.faults()


def test_throttling_is_azures_own_and_is_retried(plane: World) -> None:
    group = plane.group("fault-throttle")
    throttle = {"group": "CreateUpdateDisks3Min", "retry_after_s": 7}
    plane.faults({"match": {"path_regex": "/disks/d$"}, "times": 2, "action": {"throttle": throttle}})
    path = f"/subscriptions/{SUBSCRIPTION}/resourceGroups/{group}/providers/Microsoft.Compute/disks/d"
    answer = plane.raw("GET", f"{path}?api-version=2026-03-02")
    assert (answer.status_code, answer.headers["Retry-After"]) == (429, "7")
    assert answer.headers["x-ms-ratelimit-remaining-resource"] == "Microsoft.Compute/CreateUpdateDisks3Min;0"
    error = answer.json()["error"]
    assert error["code"] == "OperationNotAllowed"
    assert error["details"][0]["code"] == "TooManyRequests"
    assert error["details"][0]["target"] == "CreateUpdateDisks3Min"
    plane.slept.clear()
    assert plane.disk(group, "d").disk_size_gb == 1024
    first, *polls = plane.slept
    assert first == 7.0 and set(polls) <= {2.0}  # a poll, if the operation was still in progress


def test_an_operation_can_be_made_to_fail(plane: World) -> None:
    group = plane.group("fault-operation")
    failed = {"code": "AllocationFailed", "message": "Allocation failed."}
    plane.faults({"match": {"operation": "disk-.*"}, "action": {"operation_failed": failed}})
    assert refused(lambda: plane.disk(group, "d")) == (200, "AllocationFailed", "Allocation failed.")
    assert refused(lambda: plane.compute.disks.get(group, "d"))[1] == "ResourceNotFound"
    plane.disk(group, "d")


def test_a_request_or_operation_can_take_long(plane: World) -> None:
    group = plane.group("fault-slow")
    plane.faults(
        {"match": {"method": "PUT", "path_regex": "/disks/d$"}, "action": {"delay_s": 400}},
        {"match": {"operation": "disk-create"}, "action": {"delay_s": 300}},
    )
    began = time.monotonic()
    plane.disk(group, "d")
    assert time.monotonic() - began >= (400 + 300) * plane.settings.time_scale
    assert _operations(plane, "disk-create")[-1]["unscaled_s"] == 300.5


def test_a_connection_can_be_cut(plane: World) -> None:
    group = plane.group("fault-reset")
    plane.disk(group, "d")
    plane.faults({"match": {"path_regex": "/disks/d$"}, "times": 1, "action": {"reset": True}})
    assert plane.compute.disks.get(group, "d").name == "d"  # the client tried again
    plane.faults({"match": {"path_regex": "/disks/d$"}, "times": 0, "action": {"reset": True}})
    with pytest.raises((ServiceRequestError, ServiceResponseError)):
        plane.compute.disks.get(group, "d", retry_total=1)
    plane.faults()


@pytest.mark.parametrize(
    "fault",
    [
        {"match": {}, "action": {"explode": True}},
        {"match": {}},
        {"match": {"path_regex": "("}, "action": {"reset": True}},
        {"match": {"bucket": ".*"}, "action": {"bucket_share": 0}},
    ],
)
def test_a_fault_nobody_understands_is_refused(plane: World, tmp_path: Path, fault: dict) -> None:
    answer = plane.raw("PUT", "/diskbook/faults", json=[fault])
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "InvalidFault")
    with pytest.raises(UsageError, match="faults"):
        create_app(Settings("s", "t", "k", faults=(fault,)), plane.backend, tmp_path / "state")


def test_state_survives_a_restart(tmp_path: Path) -> None:
    with world(tmp_path) as made:
        group = made.group("g")
        disk = made.disk(group, "data", zones=["1"])
        vm = made.vm(group, "vm")
        made.vm(group, "off")
        made.attach(group, "vm", disk.id, lun=2)
        made.compute.virtual_machines.begin_deallocate(group, "off").result()
        made.stop()
        made.backend.calls.clear()
        made.serve()
        calls = [(call[0], getattr(call[1], "id", call[1])) for call in made.backend.calls]
        assert calls == [("start_vm", vm.id.lower()), ("attach", vm.id.lower())]
        assert made.backend.named("start_vm")[0][0].custom_data == "#cloud-config\n"
        assert made.backend.named("attach")[0][1:3][0] == 2
        again = made.compute.disks.get(group, "data")
        assert (again.unique_id, again.managed_by) == (disk.unique_id, vm.id)
        assert made.compute.virtual_machines.get(group, "vm").vm_id == vm.vm_id
        power = made.compute.virtual_machines.instance_view(group, "off").statuses[-1].code
        assert power == "PowerState/deallocated"


def test_a_restart_ends_what_was_under_way(tmp_path: Path) -> None:
    with world(tmp_path, delays_s={"group-delete": 1e6, "disk-attach": 1e6, "disk-create": 1e6}) as made:
        for name in ("gone", "kept"):
            made.group(name)
        made.vm("kept", "vm")
        made.vm("gone", "vm")
        body = {
            "location": LOCATION,
            "zones": ["1"],
            "properties": {"creationData": {"createOption": "Empty"}, "diskSizeGB": 4},
        }
        # raw requests: no poller thread goes on when the server stops
        path = f"/subscriptions/{SUBSCRIPTION}/resourceGroups/kept/providers/Microsoft.Compute"
        poll = made.raw("PUT", f"{path}/disks/d?api-version=2026-03-02", json=body).headers[
            "Azure-AsyncOperation"
        ]
        rows = {"dataDisksToAttach": [{"diskId": f"{path}/disks/d", "lun": 0}]}
        attach = made.raw(
            "POST", f"{path}/virtualMachines/vm/attachDetachDataDisks?api-version=2026-04-01", json=rows
        )
        assert attach.status_code == 200
        made.raw("DELETE", f"/subscriptions/{SUBSCRIPTION}/resourceGroups/gone?api-version=2025-04-01")
        assert soon(lambda: made.backend.named("delete_vm") and made.backend.named("attach"))
        made.stop()
        made.settings = Settings(SUBSCRIPTION, "a-tenant", made.settings.token, time_scale=0.0)
        made.serve()
        polls = [url.split(SUBSCRIPTION)[1] for url in (poll, attach.headers["Azure-AsyncOperation"])]
        states = []
        for tail in polls:
            place = f"/subscriptions/{SUBSCRIPTION}{tail}"
            assert soon(lambda place=place: made.raw("GET", place).json()["status"] != "InProgress")
            states.append(made.raw("GET", place).json()["status"])
        assert states == ["Succeeded", "Failed"]
        assert not made.compute.virtual_machines.get("kept", "vm").storage_profile.data_disks
        assert made.compute.disks.get("kept", "d").disk_state == "Unattached"
        assert soon(lambda: not made.resource.resource_groups.check_existence("gone"))


def test_a_machine_that_changes_takes_no_second_change(tmp_path: Path) -> None:
    with held_operations() as goes_on, world(tmp_path) as made:
        goes_on.set()
        group = made.group("g")
        disks = [made.disk(group, name, "Premium_ZRS") for name in ("a", "b")]
        made.vm(group, "vm")
        made.vm(group, "vm2", zone="2")
        goes_on.clear()
        body = {"dataDisksToAttach": [{"diskId": disks[0].id, "lun": 0}]}
        poller = made.compute.virtual_machines.begin_attach_detach_data_disks(group, "vm", body)
        assert refused(lambda: made.attach(group, "vm", disks[1].id))[:2] == (409, "Conflict")
        goes_on.set()
        poller.result()
        goes_on.clear()
        body = {"dataDisksToDetach": [{"diskId": disks[0].id}]}
        poller = made.compute.virtual_machines.begin_attach_detach_data_disks(group, "vm", body)
        assert refused(lambda: made.attach(group, "vm2", disks[0].id))[:2] == (
            409,
            "AttachDiskWhileBeingDetached",
        )
        row = made.compute.virtual_machines.get(group, "vm").storage_profile.data_disks[0]
        assert row.to_be_detached is True
        goes_on.set()
        poller.result()
        made.attach(group, "vm2", disks[0].id)


def test_an_unknown_operation_is_not_found(plane: World) -> None:
    path = f"/subscriptions/{SUBSCRIPTION}/providers/Microsoft.Compute/locations/{LOCATION}/operations/none"
    assert plane.raw("GET", f"{path}?api-version=1").status_code == 404
    with pytest.raises(HttpResponseError):
        plane.disk("no-such-group", "d")
