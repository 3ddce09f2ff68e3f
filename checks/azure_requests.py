"""Requests that Azure takes, and small changes of them that it refuses: the words of `azure_rules_table`.

A request is a method, a path below its resource group, and a lawful body in which some keys are changed. In
bodies "<disks/d>" stands for the id of that resource.
"""

import base64
import copy
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

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

_TEXT = Path(__file__).with_suffix(".yaml").read_text("utf-8")
_BODIES, _KEYS = (yaml.safe_load(_TEXT)[part] for part in ("bodies", "keys"))


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
    """PUT a P30 in zone 1; `changes` by its short names of keys, or by outermost members."""
    return Request("PUT", f"disks/{name}", _BODIES["disk"], _by_long_names("disk", changes), query=query)


def change(name: str = "d", **changes: Any) -> Request:
    """PATCH a disk; `changes` as in `disk`."""
    return Request("PATCH", f"disks/{name}", {}, _by_long_names("disk", changes))


def _by_long_names(kind: str, changes: Mapping[str, Any]) -> Json:
    return {_KEYS[kind].get(key, key): value for key, value in changes.items()}


def network(**changes: Any) -> Request:
    """PUT a virtual network with one subnet."""
    return Request("PUT", "virtualNetworks/net", _BODIES["network"], changes)


def address(name: str = "ip", **changes: Any) -> Request:
    """PUT a standard public address in zone 1."""
    return Request("PUT", f"publicIPAddresses/{name}", _BODIES["address"], _by_long_names("address", changes))


def nic(name: str = "nic", **changes: Any) -> Request:
    """PUT an interface with the address."""
    return Request("PUT", f"networkInterfaces/{name}", _BODIES["nic"], _by_long_names("nic", changes))


def nsg(**changes: Any) -> Request:
    """PUT a security group with one rule."""
    return Request("PUT", "networkSecurityGroups/nsg", _BODIES["nsg"], _by_long_names("nsg", changes))


def vm(name: str = "vm", **changes: Any) -> Request:
    """PUT a D4as_v4 in zone 1 with the interface; `changes` by the short names of its keys."""
    return Request("PUT", f"virtualMachines/{name}", _BODIES["vm"], _by_long_names("vm", changes))


def resize(**changes: Any) -> Request:
    """PATCH the machine."""
    return Request("PATCH", "virtualMachines/vm", {}, _by_long_names("vm", changes))


def attach(machine: str = "vm", **changes: Any) -> Request:
    """POST that the disk is attached to the machine at LUN 0, without cache."""
    return Request(
        "POST", f"virtualMachines/{machine}/attachDetachDataDisks", _BODIES["attach"],
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
