"""What Azure fills into network resources: defaults, ids of their parts, private addresses, links."""

import ipaddress
import uuid
from collections.abc import Callable

from diskbook.facts import catalog
from diskbook_emulator.arm import ids
from diskbook_emulator.arm.errors import bad_request, not_in_region
from diskbook_emulator.arm.plane import ControlPlane
from diskbook_emulator.arm.state import Resource
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
    """Interfaces of a machine, the primary first."""
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
