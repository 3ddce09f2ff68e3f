"""Virtual networks, subnets, public addresses, security groups and interfaces."""

import copy
import ipaddress
import uuid
from collections.abc import Callable

from diskbook.facts import catalog
from diskbook_emulator.arm import ids
from diskbook_emulator.arm.errors import ArmError, bad_request, not_found, not_in_region, not_registered
from diskbook_emulator.arm.operations import Work
from diskbook_emulator.arm.plane import Call, ControlPlane, Reply, creation, poll_headers
from diskbook_emulator.arm.state import Resource, shown
from diskbook_emulator.types import Json

PROVIDER = "Microsoft.Network"


def child_row(parent: Resource, child: str, row: Json) -> Json:
    """Complete the row of a subnet or security rule within its parent."""
    row["id"] = f"{parent.id}/{child}/{row['name']}"
    row["type"] = f"{parent.type}/{child}"
    row["etag"] = parent.body["etag"]
    row.setdefault("properties", {})["provisioningState"] = "Succeeded"
    return row


def etag() -> str:
    return f'W/"{uuid.uuid4()}"'


def _fill_vnet(plane: ControlPlane, vnet: Resource, old: Resource | None) -> None:
    properties = vnet.properties
    properties.setdefault("addressSpace", {"addressPrefixes": ["10.0.0.0/16"]})
    properties["subnets"] = [child_row(vnet, "subnets", row) for row in properties.get("subnets") or []]


def _fill_nsg(plane: ControlPlane, group: Resource, old: Resource | None) -> None:
    rows = group.properties.get("securityRules") or []
    for row in rows:
        priority = (row.get("properties") or {}).get("priority")
        if not isinstance(priority, int) or not 100 <= priority <= 4096:
            # wording from our knowledge, not read
            raise bad_request(
                f"Security rule has invalid Priority. Value provided: {priority} Allowed range 100-4096.",
                "SecurityRuleInvalidPriority",
            )
    group.properties["securityRules"] = [child_row(group, "securityRules", row) for row in rows]


def _fill_address(plane: ControlPlane, address: Resource, old: Resource | None) -> None:
    address.body["sku"] = {"name": "Basic", "tier": "Regional"} | (address.body.get("sku") or {})
    defaults = {
        "publicIPAllocationMethod": "Dynamic",
        "publicIPAddressVersion": "IPv4",
        "idleTimeoutInMinutes": 4,
    }
    for key, value in defaults.items():
        address.properties.setdefault(key, value)
    _check_address(address, plane.region(str(address.body["location"])))
    for key in ("ipAddress", "ipConfiguration"):
        if old is not None and key in old.properties:
            address.properties[key] = old.properties[key]


def _check_address(address: Resource, region: catalog.Region) -> None:
    """Raise Azure's error for a SKU, zones and an allocation that a public address cannot have."""
    if address.body.get("zones") and not region.zones:
        raise bad_request(
            "The resource type 'publicIPAddresses' does not support availability zones at location "
            f"'{region.name}'.",
            "ResourceTypeNotSupportAvailabilityZones",
        )
    if address.body["sku"]["name"] == "Basic":  # also where none is named
        raise bad_request(
            "Cannot create more than 0 IPv4 Basic SKU public IP addresses for this subscription in this "
            "region.",
            "IPv4BasicSkuPublicIpCountLimitReached",
        )
    if address.properties["publicIPAllocationMethod"] != "Static":
        raise bad_request(
            f"Standard sku publicIp {address.id} must have AllocationMethod set to Static.",
            "StandardSkuPublicIPAddressesMustBeStatic",
        )


def _fill_interface(plane: ControlPlane, nic: Resource, old: Resource | None) -> None:
    properties = nic.properties
    rows = properties.get("ipConfigurations") or []
    if not rows:
        # wording from our knowledge, not read
        raise bad_request(
            f"Network interface {nic.id} must have at least one IP configuration.", "NicWithoutIpConfig"
        )
    taken = {row.get("name"): row for row in (old.properties["ipConfigurations"] if old else [])}
    for index, row in enumerate(rows):
        row["id"] = f"{nic.id}/ipConfigurations/{row['name']}"
        row["etag"] = nic.body["etag"]
        before = taken.get(row["name"], {}).get("properties", {}).get("privateIPAddress")
        _fill_configuration(plane, nic, row["properties"], before)
        row["properties"].setdefault("primary", index == 0)
    properties.setdefault("enableAcceleratedNetworking", False)
    properties.setdefault("enableIPForwarding", False)
    properties["dnsSettings"] = {"dnsServers": [], "appliedDnsServers": []} | properties.get(
        "dnsSettings", {}
    )
    if old is not None and "virtualMachine" in old.properties:
        properties["virtualMachine"] = old.properties["virtualMachine"]
    link_addresses(plane, nic, nic)


def _fill_configuration(plane: ControlPlane, nic: Resource, properties: Json, before: str | None) -> None:
    subnet = _subnet(plane, nic, str((properties.get("subnet") or {}).get("id", "")))
    address_id = (properties.get("publicIPAddress") or {}).get("id")
    if address_id:
        _check_reference(nic, plane.find_id(address_id, f"{PROVIDER}/publicIPAddresses"))
    properties.setdefault("privateIPAllocationMethod", "Dynamic")
    properties.setdefault("privateIPAddressVersion", "IPv4")
    properties.setdefault("privateIPAddress", before or _free_address(plane, subnet))
    properties["provisioningState"] = "Succeeded"


def _check_reference(nic: Resource, address: Resource) -> None:
    """Raise Azure's error for a public address in another region, or of another interface."""
    if address.body["location"] != nic.body["location"]:
        raise not_in_region(address.id, nic.id)
    holder = str((address.properties.get("ipConfiguration") or {}).get("id", ""))
    if holder and not ids.key(holder).startswith(f"{nic.key}/"):
        # wording from our knowledge, not read
        raise bad_request(
            f"Resource {nic.id} is referencing public IP address {address.id} that is already allocated to "
            f"resource {holder}.",
            "PublicIPAddressInUse",
        )


def _subnet(plane: ControlPlane, nic: Resource, subnet_id: str) -> Json:
    vnet_id, _, name = subnet_id.rpartition("/subnets/")
    vnet = plane.store.get(vnet_id) if vnet_id else None
    if vnet is not None and vnet.body["location"] == nic.body["location"]:
        for row in vnet.properties["subnets"]:
            if row["name"].lower() == name.lower():
                subnet: Json = row
                return subnet
    raise not_in_region(subnet_id, nic.id)


def _free_address(plane: ControlPlane, subnet: Json) -> str:
    """Take the first free address of a subnet; Azure keeps the first four (0 to 3) and the last."""
    prefix = subnet["properties"].get("addressPrefix") or subnet["properties"]["addressPrefixes"][0]
    used = set()
    for nic in plane.store.of_type(f"{PROVIDER}/networkInterfaces"):
        for row in nic.properties["ipConfigurations"]:
            if ids.key(row["properties"]["subnet"]["id"]) == ids.key(subnet["id"]):
                used.add(row["properties"]["privateIPAddress"])
    hosts = list(ipaddress.ip_network(prefix).hosts())[3:]
    for host in hosts:
        if str(host) not in used:
            return str(host)
    raise bad_request(
        f"Subnet {subnet['id']} is full.", "SubnetIsFull"
    )  # wording from our knowledge, not read


def address_ids(nic: Resource) -> list[str]:
    rows = [row["properties"].get("publicIPAddress") or {} for row in nic.properties["ipConfigurations"]]
    return [str(row["id"]) for row in rows if "id" in row]


def link_addresses(plane: ControlPlane, nic: Resource, owner: Resource | None) -> None:
    """Write into the public addresses which interface they belong to."""
    for row in nic.properties["ipConfigurations"]:
        address = plane.store.get(str((row["properties"].get("publicIPAddress") or {}).get("id", "")))
        if address is None:
            continue
        address.properties.pop("ipConfiguration", None)
        if owner is not None:
            address.properties["ipConfiguration"] = {"id": row["id"]}
        plane.store.save(address)


def nics(plane: ControlPlane, vm: Resource) -> list[Resource]:
    rows = vm.properties["networkProfile"]["networkInterfaces"]
    rows = sorted(rows, key=lambda row: not (row.get("properties") or {}).get("primary", False))
    interfaces = [plane.store.get(str(row["id"])) for row in rows]
    return [nic for nic in interfaces if nic is not None]


FILL: dict[str, Callable[[ControlPlane, Resource, Resource | None], None]] = {
    "virtualNetworks": _fill_vnet,
    "networkSecurityGroups": _fill_nsg,
    "publicIPAddresses": _fill_address,
    "networkInterfaces": _fill_interface,
}


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
    new = old is None
    delay, retry_s = KINDS[call.params["kind"]]
    # A NIC is Succeeded in its first answer already.
    done = call.params["kind"] == "networkInterfaces"
    resource.properties["provisioningState"] = "Succeeded" if done else "Updating"
    plane.store.save(resource)
    op_id = plane.operations.start(delay, resource.id, creation(plane, resource, new))
    headers = _headers(plane, call, op_id, str(resource.body["location"]), retry_s)
    return Reply(201 if new else 200, shown(resource), headers)


def deletion(plane: ControlPlane, resource: Resource) -> Work:

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
