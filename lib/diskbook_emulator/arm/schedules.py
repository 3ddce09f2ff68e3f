"""Machines that shut down at a time: Azure's auto-shutdown, and the timer that cloud-init sets in a machine.

Azure's (`Microsoft.DevTestLab/schedules`) deallocates the machine; the machine's own leaves it stopped, which
Azure goes on billing. What no documentation says is played as the profile has it (`[schedules]`). The times
are the computer's, moved ahead or made faster by what was put to `/diskbook/clock`.
"""

import logging
import re
import threading
from datetime import UTC, datetime, timedelta
from typing import TypeGuard

from diskbook_emulator import machine
from diskbook_emulator.arm import vms
from diskbook_emulator.arm.errors import ArmError, bad_request
from diskbook_emulator.arm.ids import key, name_of
from diskbook_emulator.arm.operations import Work
from diskbook_emulator.arm.plane import VM, Call, Clock, ControlPlane, Reply, running
from diskbook_emulator.arm.state import Resource, shown

log = logging.getLogger(__name__)
KIND = "Microsoft.DevTestLab/schedules"
GUEST = "guest-shutdown"  # an operation of the machine itself, not of Azure
TICK_S = 0.2
FASTEST = 3600  # times as fast as the computer's clock
_TIME = re.compile(r"([01]\d|2[0-3]):?([0-5]\d)")


def put(plane: ControlPlane, call: Call) -> Reply:
    """Create or replace a schedule. Shapes from the REST specification (2018-09-15), not seen on the wire."""
    group = plane.writable_group(call.group)
    name = call.params["name"]
    wished = dict(call.body.get("properties") or {})
    target = _checked(plane, name, wished)
    existing = plane.store.get(plane.resource_id(call.group, KIND, name))
    ahead = timedelta(minutes=plane.settings.schedules.least_ahead_min)
    schedule = Resource(
        {
            "id": plane.resource_id(call.group, KIND, name),
            "name": name,
            "type": KIND,
            "location": plane.region(str(call.body.get("location", group.body["location"]))).name,
            "tags": dict(call.body.get("tags") or {}),
            "properties": {**wished, "provisioningState": "Succeeded", "targetResourceId": target.id},
        },
        {"next_utc": _first(str(wished["dailyRecurrence"]["time"]), now(plane) + ahead).isoformat()},
    )
    return Reply(200 if existing else 201, shown(plane.store.save(schedule)))


def get(plane: ControlPlane, call: Call) -> Reply:
    return Reply(200, shown(plane.find(call.group, KIND, call.params["name"])))


def delete(plane: ControlPlane, call: Call) -> Reply:
    """Delete a schedule; 204 where there is none."""
    plane.group(call.group)
    schedule = plane.store.get(plane.resource_id(call.group, KIND, call.params["name"]))
    if schedule is None:
        return Reply(204)
    plane.store.remove(schedule.id)
    return Reply(200)


def clock(plane: ControlPlane, call: Call) -> Reply:
    """Show how far the clock of schedules is ahead, or set it: ``{"ahead_s": 43200, "rate": 360}``.

    From then on it goes `rate` times as fast as the computer's, at its own rate where that is left out.
    """
    if call.method == "PUT":
        ahead_s, rate = call.body.get("ahead_s"), call.body.get("rate", 1)
        if not (_is_number(ahead_s) and ahead_s >= 0 and _is_number(rate) and 1 <= rate <= FASTEST):
            message = f"a clock is set by {{'ahead_s': seconds, 'rate': times}}, 0 or more and 1 to {FASTEST}"
            raise bad_request(message, "InvalidClock")
        plane.clock = Clock(float(ahead_s), float(rate), datetime.now(UTC))
    clock = {"ahead_s": plane.clock.ahead_s, "rate": plane.clock.rate}
    return Reply(200, {**clock, "now_utc": now(plane).isoformat()})


def _is_number(value: object) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool)


def now(plane: ControlPlane) -> datetime:
    """Return the time that schedules go by."""
    return plane.clock.time(datetime.now(UTC))


def _checked(plane: ControlPlane, name: str, wished: dict[str, object]) -> Resource:
    """Check what Azure checks of a compute schedule, and return its machine."""
    # wordings in this function are from our knowledge, not read
    target = str(wished.get("targetResourceId", ""))
    if name.lower() != f"shutdown-computevm-{name_of(target)}".lower():
        raise bad_request(
            f"Schedule '{name}' is not named shutdown-computevm-<machine>.", "InvalidScheduleId"
        )
    if wished.get("taskType") != "ComputeVmShutdownTask":
        raise bad_request(
            f"The task type '{wished.get('taskType')}' is not supported.", "InvalidScheduleTaskType"
        )
    daily = wished.get("dailyRecurrence")
    if not isinstance(daily, dict) or not _TIME.fullmatch(str(daily.get("time", ""))):
        raise bad_request("The daily recurrence has no valid time.", "InvalidScheduleRecurrence")
    if wished.get("timeZoneId") != "UTC":
        raise ArmError(400, "InvalidTimeZoneId", "The emulator knows the time zone UTC only.")
    return plane.find_id(target, VM)


def _first(time: str, after: datetime) -> datetime:
    """First time after a moment at which a daily schedule comes."""
    match = _TIME.fullmatch(time)
    assert match is not None
    today = after.replace(hour=int(match[1]), minute=int(match[2]), second=0, microsecond=0)
    return today if today > after else today + timedelta(days=1)


class Watch:
    """The thread that acts when a time has come."""

    def __init__(self, plane: ControlPlane) -> None:
        self._plane = plane
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="arm-schedules", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._stop.wait(TICK_S):
            try:
                act(self._plane)
            except Exception:
                log.exception("schedules")

    def close(self) -> None:
        self._stop.set()
        self._thread.join()


def act(plane: ControlPlane) -> None:
    """Begin what is due: deallocations by Azure, shutdowns by the machines themselves."""
    with plane.store.lock:
        moment = now(plane)
        for schedule in plane.store.of_type(KIND):
            if datetime.fromisoformat(schedule.hidden["next_utc"]) <= moment:
                _deallocate(plane, schedule, moment)
        for vm in plane.store.of_type(VM):
            off = _own_timer(vm)
            if off is not None and off <= moment and _is_up(vm) and not _going_down(plane, vm):
                plane.operations.start(GUEST, vm.id, shutdown(plane, vm))


def shutdown(plane: ControlPlane, vm: Resource) -> Work:
    """Build the work of a machine that shuts itself down: it is stopped, not deallocated."""
    return vms.power_work(plane, vm, "powerOff")


def _deallocate(plane: ControlPlane, schedule: Resource, moment: datetime) -> None:
    daily = str(schedule.properties["dailyRecurrence"]["time"])
    schedule.hidden["next_utc"] = _first(daily, moment).isoformat()
    plane.store.save(schedule)
    vm = plane.store.get(str(schedule.properties["targetResourceId"]))
    if vm is None or schedule.properties.get("status") != "Enabled":
        return
    left = {"deallocated"} | ({"stopped"} if plane.settings.schedules.stopped_machine == "left" else set())
    if vm.properties["provisioningState"] != "Deleting" and vm.hidden.get("power") not in left:
        plane.operations.start("vm-deallocate", vm.id, vms.power_work(plane, vm, "deallocate"))


def _own_timer(vm: Resource) -> datetime | None:
    """When the machine's own timer comes; worked out once, its user data do not change."""
    if "off_utc" not in vm.hidden:
        shutdown = machine.shutdown_at(str(vm.hidden.get("custom_data", "")))
        vm.hidden["off_utc"] = shutdown.isoformat() if shutdown else None
    return datetime.fromisoformat(vm.hidden["off_utc"]) if vm.hidden["off_utc"] else None


def _is_up(vm: Resource) -> bool:
    return running(vm) and vm.properties["provisioningState"] != "Deleting"


def _going_down(plane: ControlPlane, vm: Resource) -> bool:
    """Whether the machine is being shut down at this moment."""
    return any(
        body["status"] == "InProgress"
        and body["kind"] in (GUEST, "vm-deallocate")
        and key(body["target"]) == vm.key
        for body in plane.store.operations.values()
    )
