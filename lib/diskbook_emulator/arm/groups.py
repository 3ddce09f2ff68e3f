"""Resource groups and the list of resources."""

import base64
import json
import re

from diskbook_emulator.arm.disks import owners
from diskbook_emulator.arm.errors import ArmError, bad_request, not_allowed
from diskbook_emulator.arm.operations import Work
from diskbook_emulator.arm.plane import DISK, Call, ControlPlane, Reply, remove_all
from diskbook_emulator.arm.state import Resource, shown

RETRY_AFTER_S = "15"
_NAME = re.compile(r"^[-\w._()]{1,90}(?<!\.)$")
_TAG = re.compile(r"tagName\s+eq\s+'([^']*)'(?:\s+and\s+tagValue\s+eq\s+'([^']*)')?", re.IGNORECASE)
_TYPE = re.compile(r"resourceType\s+eq\s+'([^']*)'", re.IGNORECASE)


def put(plane: ControlPlane, call: Call) -> Reply:
    name = call.group
    if not _NAME.match(name):
        # wording from our knowledge, not read
        raise bad_request(
            f"The provided resource group name '{name}' has invalid characters.", "InvalidParameter"
        )
    existing = plane.store.get(plane.group_id(name))
    region = plane.region(str(call.body.get("location", "")))
    if existing is not None:
        return _retag(plane, call, region.name)
    group = Resource(
        {
            "id": plane.group_id(name),
            "name": name,
            "type": "Microsoft.Resources/resourceGroups",
            "location": region.name,
            "tags": dict(call.body.get("tags") or {}),
            "properties": {"provisioningState": "Succeeded"},
        }
    )
    return Reply(201, shown(plane.store.save(group)))


def _retag(plane: ControlPlane, call: Call, location: str) -> Reply:
    """Give a group that is there other tags; it stays where it is."""
    group = plane.writable_group(call.group)
    if group.body["location"] != location:
        # wording from our knowledge, not read
        raise ArmError(
            409,
            "InvalidResourceGroupLocation",
            f"Invalid resource group location '{location}'. The Resource group already exists in "
            f"location '{group.body['location']}'.",
        )
    group.body["tags"] = dict(call.body.get("tags") or {})
    return Reply(200, shown(plane.store.save(group)))


def patch(plane: ControlPlane, call: Call) -> Reply:
    group = plane.writable_group(call.group)
    if "tags" in call.body:
        group.body["tags"] = dict(call.body["tags"] or {})
    return Reply(200, shown(plane.store.save(group)))


def get(plane: ControlPlane, call: Call) -> Reply:
    return Reply(200, shown(plane.group(call.group)))


def head(plane: ControlPlane, call: Call) -> Reply:
    """Say whether a group exists: 204 or 404, without body."""
    return Reply(204 if plane.store.get(plane.group_id(call.group)) else 404)


def listing(plane: ControlPlane, call: Call) -> Reply:
    groups = plane.store.of_type("Microsoft.Resources/resourceGroups")
    return Reply(200, {"value": [shown(group) for group in groups if _matches(group, call)]})


def resources(plane: ControlPlane, call: Call) -> Reply:
    """List resources of the subscription or a group, by tag or type if asked."""
    if "group" in call.params:
        plane.group(call.group)
        members = plane.store.in_group(call.group)
    else:
        members = [resource for resource in plane.store.resources.values() if "/providers/" in resource.key]
    fields = ("id", "name", "type", "location", "tags", "sku", "managedBy")
    rows = [
        {key: resource.body[key] for key in fields if key in resource.body}
        for resource in members
        if _matches(resource, call)
    ]
    return Reply(200, {"value": rows})


def _matches(resource: Resource, call: Call) -> bool:
    condition = call.query.get("$filter", "")
    tag, kind = _TAG.search(condition), _TYPE.search(condition)
    if condition and not (tag or kind):
        # wording from our knowledge, not read
        raise bad_request(f"Invalid filter clause '{condition}'.", "InvalidFilterInQueryString")
    if kind and resource.type.lower() != kind[1].lower():
        return False
    if tag is None:
        return True
    tags = {key.lower(): value for key, value in (resource.body.get("tags") or {}).items()}
    value = tags.get(tag[1].lower())
    return value is not None and (tag[2] is None or value == tag[2])


def delete(plane: ControlPlane, call: Call) -> Reply:
    group = plane.group(call.group)
    if group.properties["provisioningState"] != "Deleting":
        group.properties["provisioningState"] = "Deleting"
        group.hidden["deletion"] = plane.operations.start("group-delete", group.id, deletion(plane, group))
        plane.store.save(group)
    return Reply(202, headers=_location(plane, call, group.hidden["deletion"], group))


def deletion(plane: ControlPlane, group: Resource) -> Work:
    members = plane.store.in_group(group.name)
    take_away = remove_all(plane, members)

    def effect() -> None:
        with plane.store.lock:
            _refuse_held(plane, members)
        take_away()

    def settle(error: ArmError | None) -> None:
        if error is not None:
            group.properties["provisioningState"] = "Succeeded"
            plane.store.save(group)
            return
        for member in plane.store.in_group(group.name):
            plane.store.remove(member.id)
        plane.store.remove(group.id)

    return Work(effect, settle, tuple(resource.id for resource in members))


def _refuse_held(plane: ControlPlane, members: list[Resource]) -> None:
    """Raise Azure's error for a disk of the group that a machine outside of it has."""
    inside = {member.key for member in members}
    for disk in members:
        for vm in owners(plane, disk) if disk.type == DISK else []:
            if vm.key not in inside:
                raise not_allowed(f"Disk {disk.name} is attached to VM {vm.id}.")


def _location(plane: ControlPlane, call: Call, op_id: str, group: Resource) -> dict[str, str]:
    region = str(group.body["location"])
    job = {
        "jobId": f"RESOURCEGROUPDELETIONJOB-{group.name.upper()}-{op_id}-{region.upper()}",
        "jobLocation": region,
    }
    token = base64.urlsafe_b64encode(json.dumps(job, separators=(",", ":")).encode()).decode().rstrip("=")
    url = f"{call.base}{plane.root}/operationresults/{token}?api-version={call.api_version}"
    return {"Location": url, "Retry-After": RETRY_AFTER_S}


def poll(plane: ControlPlane, call: Call) -> Reply:
    """Answer a poll of a group's deletion: 202 with the same headers, then 200, both empty."""
    token = call.params["token"]
    try:
        job = json.loads(base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)))["jobId"]
    except (ValueError, KeyError, TypeError):
        raise bad_request("The operation result token is not valid.", "InvalidOperationResultToken") from None
    bodies = [body for op_id, body in plane.store.operations.items() if f"-{op_id}-".upper() in job.upper()]
    if not bodies:
        raise ArmError(404, "OperationNotFound", f"The operation '{job}' could not be found.")
    body = bodies[0]
    if body["status"] == "InProgress":
        url = f"{call.base}{plane.root}/operationresults/{token}?api-version={call.api_version}"
        return Reply(202, headers={"Location": url, "Retry-After": RETRY_AFTER_S})
    if body["status"] in ("Failed", "Canceled"):
        return Reply(409, {"error": body["error"]})
    return Reply(200)
