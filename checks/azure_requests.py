"""Requests that Azure takes, and small changes of them that it refuses: the words of `azure_rules_table`.

A request is a method, a path below its resource group, and a lawful body in which some keys are changed. In
bodies "<disks/d>" stands for the id of that resource.
"""

import base64
import copy
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

Json = dict[str, Any]
REGION = "westeurope"
VERSIONS = {
    "disks": "2026-03-02",
    "virtualMachines": "2026-04-01",
    "": "2025-04-01",
}
_NETWORK_VERSION = "2026-03-01"
_OFF: Any = None
"""What a key is changed to that is left out."""
_FEW = 5
"""So many entries of an object are named, not counted."""

DISK: Json = {
    "location": REGION,
    "zones": ["1"],
    "sku": {"name": "Premium_LRS"},
    "properties": {"creationData": {"createOption": "Empty"}, "diskSizeGB": 1024},
}
NETWORK: Json = {
    "location": REGION,
    "properties": {
        "addressSpace": {"addressPrefixes": ["10.0.0.0/16"]},
        "subnets": [{"name": "s", "properties": {"addressPrefix": "10.0.0.0/24"}}],
    },
}
RULE: Json = {
    "protocol": "Tcp", "direction": "Inbound", "access": "Allow", "priority": 1000, "sourcePortRange": "*",
    "sourceAddressPrefix": "192.0.2.7", "destinationAddressPrefix": "*", "destinationPortRange": "22",
}  # fmt: skip
NSG: Json = {"location": REGION, "properties": {"securityRules": [{"name": "ssh", "properties": RULE}]}}
ADDRESS: Json = {
    "location": REGION,
    "zones": ["1"],
    "sku": {"name": "Standard"},
    "properties": {"publicIPAllocationMethod": "Static"},
}
NIC: Json = {
    "location": REGION,
    "properties": {
        "ipConfigurations": [
            {
                "name": "ip",
                "properties": {
                    "subnet": {"id": "<virtualNetworks/net/subnets/s>"},
                    "publicIPAddress": {"id": "<publicIPAddresses/ip>"},
                },
            }
        ],
        "enableAcceleratedNetworking": False,
    },
}
VM: Json = {
    "location": REGION,
    "zones": ["1"],
    "properties": {
        "hardwareProfile": {"vmSize": "Standard_D4as_v4"},
        "storageProfile": {
            "imageReference": {"publisher": "Canonical", "offer": "o", "sku": "server", "version": "latest"},
            "osDisk": {"createOption": "FromImage", "deleteOption": "Delete"},
            "dataDisks": [],
        },
        "osProfile": {
            "computerName": "vm",
            "adminUsername": "bench",
            "linuxConfiguration": {"disablePasswordAuthentication": True},
        },
        "networkProfile": {"networkInterfaces": [{"id": "<networkInterfaces/nic>"}]},
    },
}
ATTACH: Json = {
    "dataDisksToAttach": [{"diskId": "<disks/d>", "lun": 0, "caching": "None", "deleteOption": "Detach"}]
}


@dataclass(frozen=True)
class Request:
    """One request. `changes` are keys of the lawful body, with dots between, and what they are changed to.

    With `waits` its operation is waited for; `query` is what stands after the path, by default a version of
    the API that exists.
    """

    method: str
    path: str
    lawful: Mapping[str, Any] = field(default_factory=dict)
    changes: Mapping[str, Any] = field(default_factory=dict)
    waits: bool = True
    query: str | None = None

    @property
    def body(self) -> Json:
        """The lawful body with its changes."""
        body: Json = copy.deepcopy(dict(self.lawful))
        for key, value in self.changes.items():
            _set(body, key.split("."), value)
        return body

    @property
    def whole_query(self) -> str:
        if self.query is not None:
            return self.query
        return f"api-version={VERSIONS.get(self.path.partition('/')[0], _NETWORK_VERSION)}"

    def words(self) -> str:
        """The request in a line: what is asked for, and what is changed in it."""
        path = f"{self.method} {self.path}" if self.path else f"{self.method} the group"
        path += f"?{self.query}" if self.query else ""
        changes = ", ".join(f"{_short(key)} = {_value(value)}" for key, value in self.changes.items())
        return f"{path}: {changes}" if changes else path


def _set(body: Any, keys: list[str], value: Any) -> None:
    *above, last = keys
    for key in above:
        body = body[int(key)] if isinstance(body, list) else body.setdefault(key, {})
    if value is _OFF:
        body.pop(last, None)
    elif isinstance(body, list):
        body[int(last)] = value
    else:
        body[last] = value


def _short(key: str) -> str:
    """A key without what every reader fills in."""
    return ".".join(part for part in key.split(".") if part != "properties" and not part.isdigit())


def _value(value: Any) -> str:
    if value is _OFF:
        return "left out"
    if isinstance(value, list):
        return ", ".join(_value(item) for item in value) or "none"
    if isinstance(value, dict) and 0 < len(value) <= _FEW:
        return " ".join(f"{_value(key)} {_value(item)}" for key, item in value.items())
    if isinstance(value, dict):
        return f"{len(value)} entries" if value else "{}"
    text = str(value).lower() if isinstance(value, bool) else str(value)
    return f"{text[:20]}... ({len(text)} characters)" if len(text) > 60 else text or "empty"


def disk(name: str = "d", query: str | None = None, **changes: Any) -> Request:
    """PUT a P30 in zone 1; `changes` by the short names of `_DISK`, or by names of the outermost members."""
    return Request("PUT", f"disks/{name}", DISK, _by_long_names(_DISK, changes), query=query)


def change(name: str = "d", **changes: Any) -> Request:
    """PATCH a disk; `changes` as in `disk`."""
    return Request("PATCH", f"disks/{name}", {}, _by_long_names(_DISK, changes))


def _by_long_names(keys: Mapping[str, str], changes: Mapping[str, Any]) -> Json:
    return {keys.get(key, key): value for key, value in changes.items()}


_DISK = {
    "location": "location",
    "zones": "zones",
    "sku": "sku.name",
    "size": "properties.diskSizeGB",
    "shares": "properties.maxShares",
    "bursting": "properties.burstingEnabled",
    "plus": "properties.creationData.performancePlus",
    "sector": "properties.creationData.logicalSectorSize",
    "tier": "properties.tier",
    "iops": "properties.diskIOPSReadWrite",
    "mb_s": "properties.diskMBpsReadWrite",
    "state": "properties.diskState",
    "unknown": "properties.creationData.plus",
}


def network(**changes: Any) -> Request:
    """PUT a virtual network with one subnet."""
    return Request("PUT", "virtualNetworks/net", NETWORK, changes)


def address(name: str = "ip", **changes: Any) -> Request:
    """PUT a standard public address in zone 1."""
    keys = {
        "sku": "sku.name",
        "method": "properties.publicIPAllocationMethod",
        "idle_minutes": "properties.idleTimeoutInMinutes",
        "unknown": "properties.Sku",
    }
    return Request("PUT", f"publicIPAddresses/{name}", ADDRESS, _by_long_names(keys, changes))


def nic(name: str = "nic", **changes: Any) -> Request:
    """PUT an interface with the address."""
    configuration = "properties.ipConfigurations.0.properties"
    keys = {
        "address": f"{configuration}.publicIPAddress.id",
        "subnet": f"{configuration}.subnet.id",
        "accelerated": "properties.enableAcceleratedNetworking",
    }
    return Request("PUT", f"networkInterfaces/{name}", NIC, _by_long_names(keys, changes))


def nsg(**changes: Any) -> Request:
    """PUT a security group with one rule."""
    keys = {"priority": "properties.securityRules.0.properties.priority"}
    return Request("PUT", "networkSecurityGroups/nsg", NSG, _by_long_names(keys, changes))


_VM = {
    "location": "location",
    "zones": "zones",
    "size": "properties.hardwareProfile.vmSize",
    "ultra": "properties.additionalCapabilities.ultraSSDEnabled",
    "os_disk": "properties.storageProfile.osDisk.managedDisk.storageAccountType",
    "os_cache": "properties.storageProfile.osDisk.caching",
    "os_delete": "properties.storageProfile.osDisk.deleteOption",
    "os_size": "properties.storageProfile.osDisk.diskSizeGB",
    "local": "properties.storageProfile.osDisk.diffDiskSettings",
    "data_disks": "properties.storageProfile.dataDisks",
    "computer": "properties.osProfile.computerName",
    "admin": "properties.osProfile.adminUsername",
    "custom_data": "properties.osProfile.customData",
    "nics": "properties.networkProfile.networkInterfaces",
    "network": "properties.networkProfile",
    "windows": "properties.osProfile.windowsConfiguration",
    "linux": "properties.osProfile.linuxConfiguration",
    "password": "properties.osProfile.adminPassword",
    "events": "properties.scheduledEventsProfile",
    "unknown": "properties.scheduledEvents",
}


def vm(name: str = "vm", **changes: Any) -> Request:
    """PUT a D4as_v4 in zone 1 with the interface; `changes` by the short names of `_VM`."""
    return Request("PUT", f"virtualMachines/{name}", VM, _by_long_names(_VM, changes))


def resize(**changes: Any) -> Request:
    """PATCH the machine."""
    return Request("PATCH", "virtualMachines/vm", {}, _by_long_names(_VM, changes))


def attach(machine: str = "vm", **changes: Any) -> Request:
    """POST that the disk is attached to the machine at LUN 0, without cache."""
    return Request(
        "POST", f"virtualMachines/{machine}/attachDetachDataDisks", ATTACH,
        {f"dataDisksToAttach.0.{key}": value for key, value in changes.items()},
    )  # fmt: skip


def detach(name: str = "d", *, waits: bool = True) -> Request:
    """POST that a disk is detached from the machine."""
    return Request(
        "POST", "virtualMachines/vm/attachDetachDataDisks", {},
        {"dataDisksToDetach": [{"diskId": f"<disks/{name}>"}]}, waits,
    )  # fmt: skip


def deallocate(machine: str = "vm") -> Request:
    """POST that a machine is deallocated."""
    return Request("POST", f"virtualMachines/{machine}/deallocate")


def delete(path: str, *, waits: bool = True) -> Request:
    """DELETE a resource; an empty path is the group."""
    return Request("DELETE", path, waits=waits)


def group(query: str | None = None, **changes: Any) -> Request:
    """PUT the group that is there."""
    return Request("PUT", "", {"location": REGION}, changes, query=query)


def get(path: str, query: str | None = None) -> Request:
    """GET a resource."""
    return Request("GET", path, query=query)


def entry(name: str, lun: int, **keys: Any) -> Json:
    """Entry of dataDisks in the body of a machine."""
    return {"lun": lun, "createOption": "Attach", "managedDisk": {"id": f"<disks/{name}>"}, **keys}


def encoded(text: str) -> str:
    """Text as customData takes it."""
    return base64.b64encode(text.encode()).decode()


MACHINE = (network(), address(), nic(), vm())
"""What a machine needs, and it."""
SECOND = (
    address("ip2"),
    nic("nic2", address="<publicIPAddresses/ip2>"),
    vm("vm2", nics=[{"id": "<networkInterfaces/nic2>"}]),
)
"""The same of a second machine."""
