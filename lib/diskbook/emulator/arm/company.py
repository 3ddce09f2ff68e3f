"""What a company has made before any run: a network for each region, a Bastion, a policy.

The group and all in it are not the run's. Subnets have loopback addresses, of which only the emulated jump
host and the Bastion's tunnels know where they lead (`emulator.jump`).
"""

from __future__ import annotations

import ipaddress
import json
from typing import Any

from diskbook.emulator.arm import ids
from diskbook.emulator.arm.errors import ArmError
from diskbook.emulator.arm.network_fill import FILL, PROVIDER, etag
from diskbook.emulator.arm.plane import Call, ControlPlane, Reply
from diskbook.emulator.arm.state import Resource
from diskbook.emulator.jump import prefix_of
from diskbook.emulator.types import Json
from diskbook.reference import catalog

GROUP, SUBNET, BASTION = "corp-network", "machines", "corp-bastion"
BASTION_SUBNET = "AzureBastionSubnet"
ASSIGNMENT = "no-public-addresses"
# Built-in definition "Network interfaces should not have public IPs" (Azure/azure-policy).
DEFINITION = "83a86a26-fd1f-447c-b59d-e51f44264114"
_TITLE = "Network interfaces should not have public IPs"


class Disallowed(ArmError):
    """403 of Azure Policy, in the words and form recorded in Azure/azure-cli issue 32417."""

    def __init__(self, plane: ControlPlane, name: str) -> None:
        assignment, definition = _assignment(plane), _definition()
        identifiers = json.dumps(
            [
                {
                    "policyAssignment": {"name": _TITLE, "id": assignment},
                    "policyDefinition": {"name": _TITLE, "id": definition, "version": "1.1.0"},
                }
            ],
            separators=(",", ":"),
        )
        message = f"Resource '{name}' was disallowed by policy. Policy identifiers: '{identifiers}'."
        super().__init__(403, "RequestDisallowedByPolicy", message, target=name)
        self._info = {
            "policyDefinitionDisplayName": _TITLE,
            "policyAssignmentDisplayName": _TITLE,
            "policyDefinitionId": definition,
            "policyDefinitionEffect": "deny",
            "policyAssignmentId": assignment,
        }

    def inner(self) -> Json:
        """What stands in the envelope, with the policy."""
        return {**super().inner(), "additionalInfo": [{"type": "PolicyViolation", "info": self._info}]}


def network_name(region: str) -> str:
    """Name of the company's network in a region."""
    return f"corp-{region}"


def furnish(plane: ControlPlane) -> None:
    """Make group, networks and Bastions, unless they are there from an earlier start."""
    group = plane.group_id(GROUP)
    if plane.store.get(group) is not None:
        return
    home = next(iter(catalog.regions()))
    body = {"id": group, "name": GROUP, "type": "Microsoft.Resources/resourceGroups", "location": home}
    plane.store.save(Resource({**body, "tags": {}, "properties": {"provisioningState": "Succeeded"}}))
    for number, region in enumerate(catalog.regions()):
        _add_network(plane, region, prefix_of(number))


def _add_network(plane: ControlPlane, region: str, prefix: ipaddress.IPv4Network) -> None:
    machines, bastions = prefix.subnets()
    subnets = [
        {"name": SUBNET, "properties": {"addressPrefix": str(machines)}},
        {"name": BASTION_SUBNET, "properties": {"addressPrefix": str(bastions)}},
    ]
    properties = {"addressSpace": {"addressPrefixes": [str(prefix)]}, "subnets": subnets}
    network = _resource(plane, "virtualNetworks", network_name(region), region, properties)
    FILL["virtualNetworks"](plane, network, None)
    plane.store.save(network)
    subnet = {"id": f"{network.id}/subnets/{BASTION_SUBNET}"}
    address = {"id": plane.resource_id(GROUP, f"{PROVIDER}/publicIPAddresses", f"{BASTION}-ip")}
    row = {"name": "primary", "properties": {"subnet": subnet, "publicIPAddress": address}}
    bastion = _resource(
        plane,
        "bastionHosts",
        f"{BASTION}-{region}",
        region,
        {"enableTunneling": True, "ipConfigurations": [row]},
    )
    bastion.body["sku"] = {"name": "Standard"}
    plane.store.save(bastion)


def _resource(plane: ControlPlane, kind: str, name: str, region: str, properties: Json) -> Resource:
    return Resource(
        {
            "id": plane.resource_id(GROUP, f"{PROVIDER}/{kind}", name),
            "name": name,
            "type": f"{PROVIDER}/{kind}",
            "location": region,
            "etag": etag(),
            "tags": {"costcenter": "4711"},
            "properties": {**properties, "provisioningState": "Succeeded"},
        }
    )


def private_address(nic: Resource) -> str | None:
    """Address of an interface in one of the company's subnets; None for any other interface."""
    for row in nic.properties["ipConfigurations"]:
        subnet = str((row["properties"].get("subnet") or {}).get("id", ""))
        if ids.group_of(subnet).lower() == GROUP:
            return str(row["properties"]["privateIPAddress"])
    return None


# Policy


def check_allowed(plane: ControlPlane, kind: str, name: str, body: Json) -> None:
    """Refuse a public address, and an interface with one, where the company's policy does."""
    if plane.settings.public_addresses == "refused" and _has_public_address(kind, body):
        raise Disallowed(plane, name)


def restrictions(plane: ControlPlane, call: Call) -> Reply:
    """Say what a policy would refuse: Policy Restrictions - Check At Subscription Scope."""
    content = (call.body.get("resourceDetails") or {}).get("resourceContent") or {}
    kind = str(content.get("type", "")).rpartition("/")[2]
    refused = plane.settings.public_addresses == "refused" and _has_public_address(kind, content)
    info = {"policyAssignmentId": _assignment(plane), "policyDefinitionId": _definition()}
    evaluation = {
        "policyInfo": info,
        "evaluationResult": "NonCompliant",
        "effectDetails": {"policyEffect": "Deny"},
    }
    evaluations = [evaluation] if refused else []
    return Reply(
        200, {"fieldRestrictions": [], "contentEvaluationResult": {"policyEvaluations": evaluations}}
    )


def _has_public_address(kind: str, body: Json) -> bool:
    rows: list[Any] = (body.get("properties") or {}).get("ipConfigurations") or []
    with_address = any((row.get("properties") or {}).get("publicIPAddress") for row in rows)
    return kind == "publicIPAddresses" or (kind == "networkInterfaces" and with_address)


def _assignment(plane: ControlPlane) -> str:
    return f"{plane.root}/providers/Microsoft.Authorization/policyAssignments/{ASSIGNMENT}"


def _definition() -> str:
    return f"/providers/Microsoft.Authorization/policyDefinitions/{DEFINITION}"


# What network resources say besides


def usages(plane: ControlPlane, call: Call) -> Reply:
    """List the addresses in use of each subnet: Virtual Networks - List Usage."""
    network = plane.find(call.group, f"{PROVIDER}/virtualNetworks", call.params["name"])
    return Reply(200, {"value": [_usage(plane, row) for row in network.properties["subnets"]]})


def _usage(plane: ControlPlane, subnet: Json) -> Json:
    prefix = ipaddress.ip_network(subnet["properties"]["addressPrefix"])
    return {
        "currentValue": len(plane.users(subnet["id"])),
        "id": subnet["id"],
        "limit": prefix.num_addresses - 5,  # Azure keeps five of each subnet
        "name": {"localizedValue": "Subnet size and usage", "value": "SubnetSpace"},
        "unit": "Count",
    }
