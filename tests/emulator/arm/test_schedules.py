"""Auto-shutdown on the control plane: Azure's schedule deallocates, the machine's own timer stops."""

from __future__ import annotations

import base64
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml

from diskbook.cloud.azure import expiry
from diskbook_emulator.arm import schedules
from diskbook_emulator.profile import Schedules
from support.arm_plane import LOCATION, World, refused, world
from support.emulated import soon

API = expiry.API


def schedule_id(vm: Any, name: str | None = None) -> str:
    stem = vm.id[: vm.id.index("/providers/")]
    return f"{stem}/providers/Microsoft.DevTestLab/schedules/{name or f'shutdown-computevm-{vm.name}'}"


def body_of(vm: Any, time: str, **changed: Any) -> dict[str, Any]:
    properties = {
        "status": "Enabled",
        "taskType": "ComputeVmShutdownTask",
        "dailyRecurrence": {"time": time},
        "timeZoneId": "UTC",
        "targetResourceId": vm.id,
    }
    return {"location": LOCATION, "properties": {**properties, **changed}}


def put(plane: World, vm: Any, time: str, name: str | None = None, **changed: Any) -> Any:
    resources = plane.resource.resources
    body = body_of(vm, time, **changed)
    return resources.begin_create_or_update_by_id(schedule_id(vm, name), body, api_version=API).result()


def ahead(plane: World, hours: float) -> None:
    answer = plane.raw("PUT", "/diskbook/clock", json={"ahead_s": hours * 3600})
    assert answer.status_code == 200, answer.text


def power(plane: World, group: str, name: str) -> str:
    view = plane.compute.virtual_machines.instance_view(group, name)
    return next(row.code for row in view.statuses if row.code.startswith("PowerState/"))


def test_a_schedule_deallocates_at_its_time_and_again_a_day_later(tmp_path: Path) -> None:
    with world(tmp_path) as plane:
        vm = plane.vm(plane.group("at-night"), "vm")
        made = put(plane, vm, f"{datetime.now(UTC) + timedelta(hours=5):%H%M}")
        assert made.properties["provisioningState"] == "Succeeded"
        assert plane.resource.resources.get_by_id(schedule_id(vm), api_version=API).type == schedules.KIND
        ahead(plane, 4.9)
        schedules.act(plane.app.state.plane)
        assert power(plane, "at-night", "vm") == "PowerState/running"
        for hours in (5, 29):
            ahead(plane, hours)
            assert soon(lambda: power(plane, "at-night", "vm") == "PowerState/deallocated")
            plane.compute.virtual_machines.begin_start("at-night", "vm").result()
            schedules.act(plane.app.state.plane)
            assert power(plane, "at-night", "vm") == "PowerState/running"


def test_a_schedule_survives_a_restart_and_goes_with_its_group(tmp_path: Path) -> None:
    with world(tmp_path) as plane:
        vm = plane.vm(plane.group("kept"), "vm")
        put(plane, vm, f"{datetime.now(UTC) + timedelta(hours=5):%H%M}")
        plane.stop()
        plane.serve()
        ahead(plane, 5)
        assert soon(lambda: power(plane, "kept", "vm") == "PowerState/deallocated")
        listed = [one.type for one in plane.resource.resources.list_by_resource_group("kept")]
        assert schedules.KIND in listed
        plane.resource.resource_groups.begin_delete("kept").result()
        assert not plane.app.state.plane.store.of_type(schedules.KIND)


def test_one_that_is_off_or_deleted_does_nothing(tmp_path: Path) -> None:
    with world(tmp_path) as plane:
        group = plane.group("off")
        first, second = plane.vm(group, "one"), plane.vm(group, "two")
        time = f"{datetime.now(UTC) + timedelta(hours=5):%H%M}"
        put(plane, first, time, status="Disabled")
        put(plane, second, time)
        plane.resource.resources.begin_delete_by_id(schedule_id(second), api_version=API).result()
        ahead(plane, 6)
        schedules.act(plane.app.state.plane)
        assert {power(plane, "off", name) for name in ("one", "two")} == {"PowerState/running"}


@pytest.mark.parametrize(
    ("changed", "code"),
    [
        ({"name": "shutdown-vm"}, "InvalidScheduleId"),
        ({"time": "2460"}, "InvalidScheduleRecurrence"),
        ({"taskType": "LabVmsShutdownTask"}, "InvalidScheduleTaskType"),
        ({"timeZoneId": "Mars"}, "InvalidTimeZoneId"),
    ],
)
def test_a_wrong_schedule_is_refused(plane: World, changed: dict[str, Any], code: str) -> None:
    group = plane.group(f"wrong-{code.lower()}")
    vm = plane.vm(group, "vm")
    wish = {"time": "0100", **changed}
    assert refused(lambda: put(plane, vm, **wish))[:2] == (400, code)


def test_a_machines_own_timer_stops_it_without_ending_its_bill(tmp_path: Path) -> None:
    with world(tmp_path) as plane:
        group = plane.group("own-timer")
        expires = (datetime.now(UTC) + timedelta(hours=30)).isoformat("T", "seconds")
        text = "#cloud-config\n" + yaml.safe_dump(expiry.cloud_config(expires))
        body = plane.vm_body(plane.nic(group, "nic").id, "1", "Standard_D4as_v4")
        body["properties"]["osProfile"]["customData"] = base64.b64encode(text.encode()).decode()
        plane.compute.virtual_machines.begin_create_or_update(group, "vm", body).result()
        ahead(plane, 29.9)
        schedules.act(plane.app.state.plane)
        assert power(plane, group, "vm") == "PowerState/running"
        ahead(plane, 30.2)
        assert soon(lambda: power(plane, group, "vm") == "PowerState/stopped")
        # the timer is persistent: a machine started beyond its time is stopped again
        plane.compute.virtual_machines.begin_start(group, "vm").result()
        assert soon(lambda: power(plane, group, "vm") == "PowerState/stopped")


@pytest.mark.parametrize(("reading", "power_state"), [("left", "stopped"), ("deallocated", "deallocated")])
def test_a_machine_that_is_stopped_already_meets_either_reading(
    tmp_path: Path, reading: Any, power_state: str
) -> None:
    with world(tmp_path, schedules=Schedules(stopped_machine=reading)) as plane:
        vm = plane.vm(plane.group("either"), "vm")
        put(plane, vm, f"{datetime.now(UTC) + timedelta(hours=5):%H%M}")
        plane.compute.virtual_machines.begin_power_off("either", "vm").result()
        ahead(plane, 5)
        schedules.act(plane.app.state.plane)
        assert soon(lambda: power(plane, "either", "vm") == f"PowerState/{power_state}")


@pytest.mark.parametrize(("least_min", "days"), [(0, 0), (30, 1)])
def test_a_schedule_set_shortly_ahead_may_first_run_a_day_later(
    tmp_path: Path, least_min: float, days: int
) -> None:
    with world(tmp_path, schedules=Schedules(least_ahead_min=least_min)) as plane:
        vm = plane.vm(plane.group("shortly"), "vm")
        time = datetime.now(UTC) + timedelta(minutes=20)
        put(plane, vm, f"{time:%H%M}")
        (made,) = plane.app.state.plane.store.of_type(schedules.KIND)
        ahead_of = datetime.fromisoformat(made.hidden["next_utc"]) - time
        assert ahead_of.days in (days - 1, days) and abs(ahead_of - timedelta(days=days)) < timedelta(
            minutes=1
        )


def test_the_clock_goes_ahead_only(plane: World) -> None:
    assert plane.raw("GET", "/diskbook/clock").json()["ahead_s"] == 0
    for wrong in (-1, "soon", None, True):
        assert plane.raw("PUT", "/diskbook/clock", json={"ahead_s": wrong}).status_code == 400
        assert plane.raw("PUT", "/diskbook/clock", json={"ahead_s": 0, "rate": wrong}).status_code == 400
