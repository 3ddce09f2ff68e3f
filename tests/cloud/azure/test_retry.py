"""Retries: bounded, told, and safe; every request and every wait is counted."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any

import pytest
from azure.core.exceptions import HttpResponseError, ServiceRequestError, ServiceResponseError

from diskbook.cloud.azure.clients import Clients, Cloud, StaticToken
from diskbook.cloud.azure.retry import (
    CAP_S,
    CONNECTIONS,
    BoundedRetryPolicy,
    RequestCount,
    ScaledTransport,
    kind_of,
)
from diskbook.facts.errors import DiskbookError
from support.arm_plane import LOCATION, SUBSCRIPTION, TOKEN, World, refused

DISK = {
    "location": LOCATION,
    "sku": {"name": "Premium_ZRS"},
    "properties": {"creationData": {"createOption": "Empty"}, "diskSizeGB": 4},
}


class Ours:
    """The workbook's clients on a plane, with what they tell the user."""

    def __init__(self, plane: World, time_scale: float = 0.0005) -> None:
        self.told: list[str] = []
        cloud = Cloud("emulator", SUBSCRIPTION, StaticToken(TOKEN), plane.url, plane.ca, time_scale)
        self.clients = Clients(cloud, tell=self.told.append)

    def disk(self, group: str, name: str = "d") -> Any:
        return self.clients.compute.disks.begin_create_or_update(group, name, DISK).result()


@pytest.fixture
def ours(plane: World) -> Ours:
    plane.faults()
    return Ours(plane)


def _throttle(match: dict[str, str], seconds: int, times: int = 1) -> dict[str, Any]:
    action = {"throttle": {"group": "CreateUpdateDisks3Min", "retry_after_s": seconds}}
    return {"match": match, "times": times, "action": action}


PUT_DISK = {"method": "PUT", "path_regex": "/disks/d$"}
ATTACH = {"method": "POST", "path_regex": "/attachDetachDataDisks$"}


def test_a_throttled_request_waits_as_asked_and_says_so(plane: World, ours: Ours) -> None:
    group = plane.group("wait-short")
    plane.faults(_throttle(PUT_DISK, 37, times=2))
    assert ours.disk(group).disk_size_gb == 4
    line = "Azure (emulated) asks to wait 37 s (throttled: CreateUpdateDisks3Min)"
    assert ours.told == [line, line]
    assert ours.clients.waited_s >= 2 * 37
    assert ours.clients.requests["PUT disks"] == 3


def test_a_short_wait_is_not_told(plane: World, ours: Ours) -> None:
    group = plane.group("wait-untold")
    plane.faults(_throttle(PUT_DISK, 2))
    ours.disk(group)
    assert ours.told == [] and ours.clients.requests["PUT disks"] == 2


def test_a_long_wait_ends_the_run_and_says_how_long(plane: World, ours: Ours) -> None:
    group = plane.group("wait-long")
    plane.faults(_throttle(PUT_DISK, 1200))
    with pytest.raises(DiskbookError, match=r"wait 20 min \(throttled: CreateUpdateDisks3Min\), longer"):
        ours.disk(group)
    assert ours.clients.waited_s == 0 and ours.clients.requests == {"PUT disks": 1}
    ours.disk(group)  # and it can be done afterwards


def test_a_long_wait_in_a_poll_ends_the_run_too(plane: World, ours: Ours) -> None:
    group = plane.group("wait-poll")
    plane.faults(_throttle({"method": "GET", "path_regex": "Operations/"}, 600))
    with pytest.raises(DiskbookError, match="asks to wait 10 min"):
        ours.disk(group)


@pytest.mark.parametrize("headers", [{}, {"Retry-After": "soon"}])
def test_a_post_that_is_throttled_without_a_time_is_sent_again(
    plane: World, ours: Ours, headers: dict[str, str]
) -> None:
    group = plane.group(f"wait-post-{len(headers)}")
    plane.vm(group, "vm")
    disk = plane.disk(group, "d", "Premium_ZRS")
    busy = {"status": 429, "code": "TooManyRequests", "message": "Later.", "headers": headers}
    plane.faults({"match": ATTACH, "times": 2, "action": busy})
    body = {"dataDisksToAttach": [{"diskId": disk.id, "lun": 0}]}
    ours.clients.compute.virtual_machines.begin_attach_detach_data_disks(group, "vm", body).result()
    assert ours.clients.requests["POST virtualMachines/attachDetachDataDisks"] == 3


def test_throttling_without_end_is_given_up(plane: World, ours: Ours) -> None:
    group = plane.group("wait-endless")
    plane.faults(_throttle(PUT_DISK, 30, times=0))
    assert refused(lambda: ours.disk(group))[:2] == (429, "OperationNotAllowed")
    assert ours.clients.requests == {"PUT disks": 5}


@pytest.mark.long
@pytest.mark.parametrize("action", [{"reset": True}, {"status": 502}, {"status": 503}])
@pytest.mark.parametrize("match", [PUT_DISK, ATTACH])
def test_what_is_cut_off_or_fails_for_a_moment_is_repeated(
    plane: World, ours: Ours, match: dict[str, str], action: dict[str, Any]
) -> None:
    group = plane.group(f"moment-{match['method']}-{len(str(action))}-{action.get('status', 0)}")
    plane.vm(group, "vm")
    plane.faults({"match": match, "times": 3, "action": action})
    disk = ours.disk(group)
    body = {"dataDisksToAttach": [{"diskId": disk.id, "lun": 0}]}
    ours.clients.compute.virtual_machines.begin_attach_detach_data_disks(group, "vm", body).result()
    sent = ours.clients.requests
    assert sent["PUT disks"] + sent["POST virtualMachines/attachDetachDataDisks"] == 5
    assert plane.compute.disks.get(group, "d").disk_state == "Attached"


def test_a_conflict_after_a_cut_is_with_the_request_that_was_cut(plane: World, ours: Ours) -> None:
    group = plane.group("cut-conflict")
    conflict = {"status": 409, "code": "Conflict", "message": "Another operation is in progress."}
    plane.faults({"match": PUT_DISK, "action": conflict})
    assert refused(lambda: ours.disk(group))[:2] == (409, "Conflict")
    plane.faults(
        {"match": PUT_DISK, "action": {"reset": True}},
        {"match": PUT_DISK, "times": 2, "action": conflict},
    )
    before = ours.clients.requests["PUT disks"]
    assert ours.disk(group).disk_size_gb == 4
    assert ours.clients.requests["PUT disks"] - before == 4


def test_a_connection_that_stays_cut_is_told_and_given_up(plane: World, ours: Ours) -> None:
    group = plane.group("cut-endless")
    plane.faults({"match": PUT_DISK, "times": 0, "action": {"reset": True}})
    with pytest.raises(ServiceResponseError):
        ours.disk(group)
    assert ours.told == ["Azure (emulated) cut us off; trying again in 6 s"]
    plane.faults({"match": PUT_DISK, "times": 0, "action": {"status": 503}})
    with pytest.raises(HttpResponseError):
        ours.disk(group)
    assert ours.told[1:] == ["Azure (emulated) answers 503; trying again in 6 s"]


def test_a_cloud_that_is_away_is_told(plane: World) -> None:
    ours = Ours(plane, time_scale=0.0)
    nobody = Cloud("emulator", SUBSCRIPTION, StaticToken(TOKEN), "https://127.83.0.9:9", plane.ca, 0.0)
    clients = Clients(nobody, tell=ours.told.append)
    with pytest.raises(ServiceRequestError):
        clients.zone_map(LOCATION)
    assert ours.told == [
        f"Azure (emulated) cannot be reached; trying again in {seconds} s" for seconds in (6, 13, 26)
    ]
    assert CAP_S > clients.waited_s > 45


def test_what_many_wait_for_is_told_once() -> None:
    told: list[str] = []
    policy = BoundedRetryPolicy("Azure", told.append)
    asleep, awake = threading.Barrier(4), threading.Event()

    def sleep(duration: float) -> None:
        asleep.wait(30)
        awake.wait(30)

    row = SimpleNamespace(error=None, http_response=SimpleNamespace(status_code=503))
    settings = policy.configure_retries({}) | {"history": [row] * 4}
    with ThreadPoolExecutor(3) as pool:
        sleeping = [pool.submit(policy.sleep, settings, SimpleNamespace(sleep=sleep)) for _ in range(3)]
        asleep.wait(30)  # all three wait by now
        assert told == ["Azure answers 503; trying again in 6 s"]
        awake.set()
        for future in sleeping:
            future.result()
    policy.sleep(settings, SimpleNamespace(sleep=lambda duration: None))
    assert told == ["Azure answers 503; trying again in 6 s"] * 2


def test_an_error_of_ours_is_not_repeated(plane: World, ours: Ours) -> None:
    group = plane.group("no-repeat")
    plane.faults({"match": PUT_DISK, "action": {"status": 400, "code": "BadRequest", "message": "No."}})
    assert refused(lambda: ours.disk(group)) == (400, "BadRequest", "No.")
    assert ours.clients.requests == {"PUT disks": 1} and ours.clients.waited_s == 0


def test_requests_are_counted_by_kind(plane: World, ours: Ours) -> None:
    group = plane.group("count")
    ours.disk(group)
    ours.clients.resource.resource_groups.get(group)
    ours.clients.zone_map(LOCATION)
    counted = ours.clients.requests
    polls = counted.pop("GET operations")
    assert polls >= 1
    assert counted == {"PUT disks": 1, "GET disks": 1, "GET resourceGroups": 1, "GET locations": 1}


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/subscriptions/s", "subscriptions"),
        ("/subscriptions/s/resourcegroups/g", "resourceGroups"),
        ("/subscriptions/s/operationresults/abc", "operations"),
        ("/subscriptions/s/resourceGroups/g/providers/Microsoft.Compute/disks/d", "disks"),
        ("/subscriptions/s/providers/Microsoft.Compute/skus", "skus"),
        ("/subscriptions/s/providers/Microsoft.Compute/locations/l/usages", "usages"),
        ("/subscriptions/s/providers/Microsoft.Compute/locations/l/DiskOperations/o", "operations"),
        ("/subscriptions/s/resourceGroups/g/providers/Microsoft.Network/virtualNetworks/n/subnets/s",
         "virtualNetworks/subnets"),
        ("/subscriptions/s/providers", "providers"),
    ],
)  # fmt: skip
def test_the_kind_of_a_url(path: str, kind: str) -> None:
    assert kind_of(f"https://management.azure.com{path}?api-version=1&t=2") == kind


def test_a_transport_is_ready_before_its_first_request() -> None:
    """Two threads that open it at their first requests send them through a session that is half set up."""
    session: Any = ScaledTransport(1.0, RequestCount()).session
    pool: Any = session.get_adapter("https://127.0.0.1").poolmanager
    assert pool.connection_pool_kw["maxsize"] == CONNECTIONS
