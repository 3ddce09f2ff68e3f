"""Virtual networks, subnets, public addresses, security groups and interfaces."""

import copy
import uuid

from diskbook_emulator.arm.errors import ArmError, bad_request, not_found, not_registered
from diskbook_emulator.arm.network_fill import FILL, PROVIDER, child_row, etag, link_addresses
from diskbook_emulator.arm.operations import Work
from diskbook_emulator.arm.plane import Call, ControlPlane, Reply, creation, poll_headers
from diskbook_emulator.arm.state import Resource, shown
from diskbook_emulator.types import Json

# kind: (name of its delay, Retry-After of the first answer; 3 is recorded for the vnet)
KINDS = {
    "virtualNetworks": ("vnet", 3),
    "publicIPAddresses": ("public-ip", 3),
    "networkSecurityGroups": ("nsg", 3),
    "networkInterfaces": ("nic", 3),
}
# stand before any run, and are shown only
STANDING = ("bastionHosts",)
# child: (parent, key within the parent's properties)
CHILDREN = {
    "subnets": ("virtualNetworks", "subnets"),
    "securityRules": ("networkSecurityGroups", "securityRules"),
}
# wordings of the codes below are from our knowledge, not read
IN_USE = {
    "virtualNetworks": "InUseVirtualNetworkCannotBeDeleted",
    "publicIPAddresses": "PublicIPAddressCannotBeDeleted",
    "networkSecurityGroups": "InUseNetworkSecurityGroupCannotBeDeleted",
    "networkInterfaces": "NicInUse",
    "subnets": "InUseSubnetCannotBeDeleted",
}


def _kind(call: Call) -> str:
    kind = call.params["kind"]
    if kind not in KINDS and (kind not in STANDING or call.method != "GET"):
        raise not_registered(f"{PROVIDER}/{kind}")
    return f"{PROVIDER}/{kind}"


def put(plane: ControlPlane, call: Call) -> Reply:
    kind = _kind(call)
    plane.writable_group(call.group)
    region = plane.region(str(call.body.get("location", "")))
    resource_id = plane.resource_id(call.group, kind, call.params["name"])
    old = plane.store.get(resource_id)
    body: Json = copy.deepcopy(call.body)
    body |= {
        "id": old.id if old else resource_id,
        "name": old.name if old else call.params["name"],
        "type": kind,
        "location": region.name,
        "etag": etag(),
    }
    body.setdefault("properties", {})["resourceGuid"] = (
        old.properties["resourceGuid"] if old else str(uuid.uuid4())
    )
    resource = Resource(body, old.hidden if old else {})
    FILL[call.params["kind"]](plane, resource, old)
    return _accept(plane, call, resource, old is None)


def _accept(plane: ControlPlane, call: Call, resource: Resource, new: bool) -> Reply:
    delay, retry_s = KINDS[call.params["kind"]]
    # A NIC is Succeeded in its first answer already.
    done = call.params["kind"] == "networkInterfaces"
    resource.properties["provisioningState"] = "Succeeded" if done else "Updating"
    plane.store.save(resource)
    op_id = plane.operations.start(delay, resource.id, creation(plane, resource, new))
    headers = _headers(plane, call, op_id, str(resource.body["location"]), retry_s)
    return Reply(201 if new else 200, shown(resource), headers)


def deletion(plane: ControlPlane, resource: Resource) -> Work:
    """Build the work of deleting a network resource."""

    def settle(error: ArmError | None) -> None:
        if error is None:
            remove(plane, resource)

    return Work(settle=settle)


def _headers(plane: ControlPlane, call: Call, op_id: str, location: str, retry_s: int) -> dict[str, str]:
    return poll_headers(plane, call, op_id, location, PROVIDER, retry_after_s=retry_s, monitor=False)


def get(plane: ControlPlane, call: Call) -> Reply:
    resource = plane.find(call.group, _kind(call), call.params["name"])
    return Reply(200, shown(resource), {"ETag": str(resource.body["etag"])})


def listing(plane: ControlPlane, call: Call) -> Reply:
    """List network resources of a kind, in a group or the subscription."""
    return Reply(200, {"value": [shown(resource) for resource in plane.listed(call, _kind(call))]})


def patch(plane: ControlPlane, call: Call) -> Reply:
    """Change tags."""
    resource = plane.find(call.group, _kind(call), call.params["name"])
    resource.body["tags"] = dict(call.body.get("tags") or {})
    return Reply(200, shown(plane.store.save(resource)))


def delete(plane: ControlPlane, call: Call) -> Reply:
    """Delete a network resource that nothing uses; 204 where there is none."""
    kind = _kind(call)
    resource = plane.store.get(plane.resource_id(call.group, kind, call.params["name"]))
    if resource is None:
        return Reply(204)
    refuse_in_use(plane, resource, call.params["kind"])
    resource.properties["provisioningState"] = "Deleting"
    plane.store.save(resource)
    op_id = plane.operations.start("network-delete", resource.id, deletion(plane, resource))
    return Reply(202, headers=_delete_headers(plane, call, op_id, str(resource.body["location"])))


def _delete_headers(plane: ControlPlane, call: Call, op_id: str, location: str) -> dict[str, str]:
    headers = _headers(plane, call, op_id, location, 10)
    url = f"{call.base}{plane.root}/providers/{PROVIDER}/locations/{location}/operationResults/{op_id}"
    return headers | {"Location": f"{url}?api-version={call.api_version}"}


def remove(plane: ControlPlane, resource: Resource) -> None:
    """Forget a network resource and what it links to."""
    plane.store.remove(resource.id)
    if resource.type == f"{PROVIDER}/networkInterfaces":
        link_addresses(plane, resource, None)


def refuse_in_use(plane: ControlPlane, resource: Resource, kind: str) -> None:
    """Raise Azure's 400 when something uses the resource."""
    users = plane.users(resource.id)
    if kind == "virtualNetworks":
        users = [user for subnet in resource.properties["subnets"] for user in plane.users(subnet["id"])]
    if kind == "networkInterfaces":
        users = [user for user in users if user.type.endswith("virtualMachines")]
    if users:
        raise bad_request(
            f"{kind} {resource.id} is in use by {users[0].id} and cannot be deleted.",
            IN_USE[kind],
        )


def put_child(plane: ControlPlane, call: Call) -> Reply:
    """Create or replace a subnet or a security rule."""
    parent, rows = _parent(plane, call)
    name, child = call.params["child_name"], call.params["child"]
    old = [row for row in rows if row["name"].lower() == name.lower()]
    body = child_row(parent, child, {**copy.deepcopy(call.body), "name": name})
    rows[:] = [row for row in rows if row not in old] + [body]
    plane.store.save(parent)
    op_id = plane.operations.start("subnet", body["id"], Work())
    headers = _headers(plane, call, op_id, str(parent.body["location"]), 3)
    return Reply(200 if old else 201, copy.deepcopy(body), headers)


def get_child(plane: ControlPlane, call: Call) -> Reply:
    return Reply(200, copy.deepcopy(_find_child(plane, call)))


def list_children(plane: ControlPlane, call: Call) -> Reply:
    return Reply(200, {"value": copy.deepcopy(_parent(plane, call)[1])})


def delete_child(plane: ControlPlane, call: Call) -> Reply:
    parent, rows = _parent(plane, call)
    children = [row for row in rows if row["name"].lower() == call.params["child_name"].lower()]
    if not children:
        return Reply(204)
    if users := plane.users(children[0]["id"]):
        raise bad_request(
            f"{call.params['child']} {children[0]['id']} is in use by {users[0].id} and cannot be deleted.",
            IN_USE.get(call.params["child"], "InUse"),
        )
    rows.remove(children[0])
    plane.store.save(parent)
    op_id = plane.operations.start("network-delete", children[0]["id"], Work())
    return Reply(202, headers=_delete_headers(plane, call, op_id, str(parent.body["location"])))


def _parent(plane: ControlPlane, call: Call) -> tuple[Resource, list[Json]]:
    kind, key = CHILDREN.get(call.params["child"], ("", ""))
    if kind != call.params["kind"]:
        raise not_registered(call.path)
    parent = plane.find(call.group, f"{PROVIDER}/{kind}", call.params["name"])
    return parent, parent.properties.setdefault(key, [])


def _find_child(plane: ControlPlane, call: Call) -> Json:
    for row in _parent(plane, call)[1]:
        if row["name"].lower() == call.params["child_name"].lower():
            return row
    kind = f"{PROVIDER}/{call.params['kind']}/{call.params['name']}/{call.params['child']}"
    raise not_found(kind, call.params["child_name"], call.group)
