"""What polls of compute and network operations answer."""

from typing import Any

from diskbook_emulator.arm.errors import ArmError
from diskbook_emulator.arm.plane import Call, ControlPlane, Reply
from diskbook_emulator.arm.state import shown
from diskbook_emulator.types import Json

VM_FIRST_RETRY_S, DISK_RETRY_S, NETWORK_RETRY_S = "50", "2", "10"


def operation(plane: ControlPlane, call: Call) -> Reply:
    """Answer a poll of Azure-AsyncOperation, or of Location with monitor=true."""
    body = plane.store.operations.get(call.params["operation"])
    if body is None:
        # wording from our knowledge, not read
        raise ArmError(404, "NotFound", f"The entity was not found: operation '{call.params['operation']}'.")
    monitor = call.query.get("monitor", "").lower() == "true"
    if monitor or call.params["collection"].lower() == "operationresults":
        return _monitor(plane, call, body)
    if call.params["provider"] == "Microsoft.Network":
        return _network(body)
    return _compute(plane, body)


def _network(body: Json) -> Reply:
    answer: Json = {"status": body["status"]}
    if body["status"] in ("Failed", "Canceled"):
        answer["error"] = body["error"]
    headers = {"Retry-After": NETWORK_RETRY_S} if body["status"] == "InProgress" else {}
    return Reply(200, answer, headers)


def _compute(plane: ControlPlane, body: Json) -> Reply:
    answer: Json = {"startTime": body["started_utc"], "status": body["status"], "name": body["id"]}
    if body["status"] == "InProgress":
        return Reply(200, answer, _retry(body))
    answer["endTime"] = body["ended_utc"]
    if body["status"] in ("Failed", "Canceled"):
        answer["error"] = body["error"]
    elif (output := result(plane, body)) is not None:
        answer["properties"] = {"output": output}
    return Reply(200, answer)


def _retry(body: Json) -> dict[str, str]:
    """Retry-After of a poll: always for disks, on the first only for machines (as recorded)."""
    body["polls"] += 1
    if body["kind"] in ("disk-create", "disk-update", "disk-delete"):
        return {"Retry-After": DISK_RETRY_S}
    first_create = body["polls"] == 1 and body["kind"].startswith("vm-create")
    return {"Retry-After": VM_FIRST_RETRY_S} if first_create else {}


def _monitor(plane: ControlPlane, call: Call, body: Json) -> Reply:
    if body["status"] == "InProgress":
        query = "&".join(f"{key}={value}" for key, value in call.query.items())
        return Reply(202, headers={"Location": f"{call.base}{call.path}?{query}", "Retry-After": "10"})
    if body["status"] in ("Failed", "Canceled"):
        return Reply(409, {"error": body["error"]})
    return Reply(200, result(plane, body))


def result(plane: ControlPlane, body: Json) -> Any:
    """Return the resource that an operation made, None where it made none."""
    resource = plane.store.get(body["output"]) if body.get("output") else None
    return None if resource is None else shown(resource)
