"""What Azure refuses is told in one line, with what to change; what merely broke off is done once more."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from azure.core.exceptions import AzureError, HttpResponseError, ServiceRequestError

from diskbook.cloud.azure import refusals
from diskbook.cloud.azure.attach import Attachments
from diskbook.cloud.azure.clients import Clients, Cloud, StaticToken
from diskbook.design.model import Disk
from diskbook.facts.errors import DiskbookError
from diskbook.results import run as runs
from support.arm_plane import SUBSCRIPTION, TOKEN, World


def _error(call: Callable[[], Any]) -> AzureError:
    with pytest.raises(AzureError) as caught:
        call()
    return caught.value


def _refused(plane: World, code: str, message: str = "No.", status: int = 409) -> AzureError:
    action = {"status": status, "code": code, "message": message}
    plane.faults({"match": {"method": "PUT", "path_regex": "/disks/d$"}, "action": action})
    return _error(lambda: plane.disk("refusals", "d"))


def _ended(plane: World, code: str, message: str = "It broke off.") -> AzureError:
    action = {"operation_failed": {"code": code, "message": message}}
    plane.faults({"match": {"operation": "disk-create"}, "action": action})
    return _error(lambda: plane.disk("refusals", "d"))


@pytest.fixture(scope="module", autouse=True)
def group(plane: World) -> str:
    return plane.group("refusals")


@pytest.mark.parametrize(
    ("code", "message", "status", "hint"),
    [
        ("SkuNotAvailable", "Not there.", 409, "another size, zone or region"),
        ("AllocationFailed", "Allocation failed.", 409, "no room for this size now"),
        ("QuotaExceeded", "Too many.", 400, "ask for more quota"),
        ("QuotaExceeded", "Public IPv4 addresses: quota.", 400, "delete those that are not needed"),
        ("PublicIPCountLimitReached", "Too many.", 400, "quota of public addresses is used up"),
        ("OperationNotAllowed", "exceeding approved Cores quota.", 409, "the quota of cores is used up"),
        ("RequestDisallowedByAzure", "Best regions.", 403, "may use only some regions"),
        ("RequestDisallowedByPolicy", "Disallowed.", 403, "--tag KEY=VALUE"),
        ("OSProvisioningTimedOut", "Not in time.", 409, "--debug-minutes 10"),
        ("VMExtensionProvisioningError", "Exit code 1.", 409, "lets the machine out to port 443"),
        ("PlatformImageNotFound", "Not found.", 404, "begin a new run"),
        ("MarketplacePurchaseEligibilityFailed", "No.", 400, "may not buy from the Marketplace"),
        ("NoRegisteredProviderFound", "No provider.", 400, "'az provider register'"),
        ("AuthorizationFailed", "The client does not have authorization.", 403, "the role Contributor"),
        ("SubscriptionNotFound", "Not found.", 404, "--subscription"),
        ("ExpiredAuthenticationToken", "Expired.", 401, "az login"),
    ],
)
def test_what_is_refused_says_what_to_change(
    plane: World, code: str, message: str, status: int, hint: str
) -> None:
    error = _refused(plane, code, message, status)
    assert refusals.code(error) == code
    assert refusals.message(error) == f"{code}: {message}"
    assert hint in refusals.advice(error)
    assert refusals.with_advice(error).lower().startswith(f"{code}: {message}".lower())
    assert hint.lower() in refusals.with_advice(error).lower()
    assert not refusals.repeatable(error)


def test_other_refusals_of_that_code_get_no_wrong_hint(plane: World) -> None:
    error = _refused(plane, "OperationNotAllowed", "Disk d is attached to VM v.")
    assert refusals.with_advice(error) == "OperationNotAllowed: Disk d is attached to VM v."


@pytest.mark.parametrize(
    ("code", "message", "again"),
    [
        ("InternalExecutionError", "An internal execution error occurred.", True),
        ("OperationPreempted", "Preempted by a more recent operation.", True),
        ("RetryableError", "Please retry later.", True),
        ("AllocationFailed", "The VM allocation failed due to an internal error. Please retry later.", True),
        ("AllocationFailed", "Allocation failed. Please try reducing the VM size.", False),
        ("OverconstrainedAllocationRequest", "Too many constraints.", False),
        ("SomethingNew", "Who knows.", False),
    ],
)
def test_an_operation_that_ended_failed(plane: World, code: str, message: str, again: bool) -> None:
    error = _ended(plane, code, message)
    assert refusals.code(error) == code and refusals.message(error) == f"{code}: {message}"
    assert refusals.repeatable(error) is again


def test_a_cancelled_operation_is_worth_another_try() -> None:
    # Without "error": from the REST specification of asynchronous operations, not seen on the wire.
    answer = SimpleNamespace(text=lambda: '{"status": "Canceled"}', reason="OK", status_code=200)
    error = HttpResponseError("Operation failed or canceled", answer)
    assert refusals.message(error) == "Canceled: the operation was ended by Azure"
    assert refusals.repeatable(error)


def test_once_more_is_once(plane: World) -> None:
    told: list[str] = []
    failed = {"operation_failed": {"code": "InternalExecutionError", "message": "Oh."}}
    plane.faults({"match": {"operation": "disk-create"}, "times": 1, "action": failed})
    assert refusals.retry_once(lambda: plane.disk("refusals", "once"), told.append).name == "once"
    assert told == ["Azure ended an operation with InternalExecutionError; trying it once more"]
    plane.faults({"match": {"operation": "disk-create"}, "times": 2, "action": failed})
    error = _error(lambda: refusals.retry_once(lambda: plane.disk("refusals", "twice"), told.append))
    assert refusals.code(error) == "InternalExecutionError"
    plane.faults({"match": {"operation": "disk-create"}, "times": 1, "action": failed})
    failed["operation_failed"]["code"] = "AllocationFailed"
    plane.faults({"match": {"operation": "disk-create"}, "times": 1, "action": failed})
    _error(lambda: refusals.retry_once(lambda: plane.disk("refusals", "never"), told.append))
    assert plane.raw("GET", "/diskbook/faults").json()["value"][0]["seen"] == 1


def test_a_disk_is_moved_although_an_operation_broke_off(plane: World, tmp_path: Path) -> None:
    plane.faults()
    told: list[str] = []
    cloud = Cloud("emulator", SUBSCRIPTION, StaticToken(TOKEN), plane.url, plane.ca, 0.0)
    folder = runs.Run(tmp_path)
    disk = Disk(name="moved", sku="Premium_ZRS", size_gib=64)
    made = {"machines": {"vm": plane.vm("refusals", "vm")}, "disks": {}}
    made["disks"]["moved"] = plane.disk("refusals", "moved", "Premium_ZRS", 64)
    rows = {kind: {name: {"id": thing.id.lower()} for name, thing in made[kind].items()} for kind in made}
    attachments = Attachments(Clients(cloud, told.append), folder, rows)
    broken = {"operation_failed": {"code": "InternalExecutionError", "message": "Oh."}}
    plane.faults(
        *({"match": {"operation": f"disk-{kind}"}, "action": broken} for kind in ("attach", "detach"))
    )
    assert attachments.attach(disk, "vm") == 0
    assert attachments.where("moved") == [("vm", 0)]
    attachments.detach("moved", "vm")
    assert attachments.where("moved") == []
    assert told == ["Azure ended an operation with InternalExecutionError; trying it once more"] * 2
    plane.faults({"match": {"operation": "disk-attach"}, "times": 0, "action": broken})
    with pytest.raises(DiskbookError, match="attach moved to vm: InternalExecutionError: Oh"):
        attachments.attach(disk, "vm")
    plane.faults()


def test_the_throttle_names_its_own_code(plane: World) -> None:
    throttle = {"throttle": {"group": "PutVM3Min", "retry_after_s": 1}}
    plane.faults({"match": {"path_regex": "/disks/d$"}, "times": 0, "action": throttle})
    error = _error(lambda: plane.disk("refusals", "d"))
    plane.faults()
    assert refusals.code(error) == "TooManyRequests"
    assert refusals.message(error).startswith("OperationNotAllowed: The server rejected the request")
    assert "wait some minutes" in refusals.advice(error)


def test_urls_lose_their_signatures(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AZURE_CLIENT_SECRET", "planted-in-the-environment")
    error = ServiceRequestError(
        "HTTPSConnectionPool(host='management.azure.com', port=443): Max retries exceeded with url: "
        "/subscriptions/s/operations/o?api-version=1&t=6&s=SIGNED (Caused by planted-in-the-environment)"
    )
    said = refusals.message(error)
    assert "SIGNED" not in said and "planted" not in said
    assert said.endswith("/subscriptions/s/operations/o (Caused by (hidden))")
    assert refusals.code(error) == "" and not refusals.repeatable(error)
