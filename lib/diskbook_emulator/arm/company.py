"""What a company has made before any run: a network for each region, a Bastion, policies.

The group and all in it are not the run's. Subnets have loopback addresses, of which only the emulated jump
host and the Bastion's tunnels know where they lead (`emulator.jump`).
"""

import ipaddress
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from diskbook.facts import catalog
from diskbook_emulator.arm import ids
from diskbook_emulator.arm.errors import ArmError, bad_request
from diskbook_emulator.arm.network import FILL, PROVIDER, etag
from diskbook_emulator.arm.plane import Call, ControlPlane, Reply
from diskbook_emulator.arm.state import Resource
from diskbook_emulator.jump import prefix_of
from diskbook_emulator.types import Json

GROUP, SUBNET, BASTION = "corp-network", "machines", "corp-bastion"
BASTION_SUBNET = "AzureBastionSubnet"
_MACHINE, _GROUP = "microsoft.compute/virtualmachines", "microsoft.resources/subscriptions/resourcegroups"


@dataclass(frozen=True)
class Policy:
    """A built-in definition of Azure/azure-policy, assigned to the subscription."""

    assignment: str
    title: str
    definition: str


_ADDRESSES = Policy(
    "no-public-addresses",
    "Network interfaces should not have public IPs",
    "83a86a26-fd1f-447c-b59d-e51f44264114",
)
POLICIES = {
    "tags": Policy("required-tags", "Require a tag on resources", "871b6d14-10aa-478d-b590-94f262ecfa99"),
    "locations": Policy("allowed-locations", "Allowed locations", "e56962a6-4747-49cd-b67b-bf8b01975c4c"),
    "sizes": Policy(
        "allowed-sizes", "Allowed virtual machine size SKUs", "cccc23c7-8427-4f53-ad12-b6a63eb452b3"
    ),
}


class Disallowed(ArmError):
    """403 of Azure Policy, in the words and form recorded in Azure/azure-cli issue 32417."""

    def __init__(self, plane: ControlPlane, name: str, policy: Policy) -> None:
        assignment, definition = _assignment(plane, policy), _definition(policy)
        identifiers = json.dumps(
            [
                {
                    "policyAssignment": {"name": policy.title, "id": assignment},
                    "policyDefinition": {"name": policy.title, "id": definition, "version": "1.1.0"},
                }
            ],
            separators=(",", ":"),
        )
        message = f"Resource '{name}' was disallowed by policy. Policy identifiers: '{identifiers}'."
        super().__init__(403, "RequestDisallowedByPolicy", message, target=name)
        self._info = {
            "policyDefinitionDisplayName": policy.title,
            "policyAssignmentDisplayName": policy.title,
            "policyDefinitionId": definition,
            "policyDefinitionEffect": "deny",
            "policyAssignmentId": assignment,
        }

    def inner(self) -> Json:
        """What stands in the envelope, with the policy."""
        return {**super().inner(), "additionalInfo": [{"type": "PolicyViolation", "info": self._info}]}


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
    network = _resource(plane, "virtualNetworks", f"corp-{region}", region, properties)
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


def check_allowed(plane: ControlPlane, path: str, body: Json) -> None:
    """Refuse to create a resource, or a group, that a policy of the company denies."""
    kind, name = _named(path)
    denied = next(_denied(plane, kind, body), None) if kind else None
    if denied is not None:
        raise Disallowed(plane, name, denied[0])


def restrictions(plane: ControlPlane, call: Call) -> Reply:
    """Say what a policy would refuse: Policy Restrictions - Check At Subscription (or Group) Scope."""
    content = (call.body.get("resourceDetails") or {}).get("resourceContent") or {}
    evaluations = [
        {
            "policyInfo": {
                "policyAssignmentId": _assignment(plane, policy),
                "policyDefinitionId": _definition(policy),
            },
            "evaluationResult": "NonCompliant",
            "evaluationDetails": {"evaluatedExpressions": [{"result": "True", **met}] if met else []},
            "effectDetails": {"policyEffect": "Deny"},
        }
        for policy, met in _denied(plane, str(content.get("type", "")), content)
    ]
    return Reply(
        200, {"fieldRestrictions": [], "contentEvaluationResult": {"policyEvaluations": evaluations}}
    )


def _denied(plane: ControlPlane, kind: str, body: Json) -> Iterator[tuple[Policy, Json]]:
    """Policies that deny a resource, each with the expression that it met."""
    policies, kind = plane.settings.policies, kind.lower()
    if plane.settings.public_addresses == "refused" and _has_public_address(kind, body):
        yield _ADDRESSES, {}
    given = {name.lower() for name in body.get("tags") or {}}
    for tag in policies.get("tags", ()):
        if tag.lower() not in given and kind != _GROUP:  # groups have a definition of their own
            yield POLICIES["tags"], _met(f"tags[{tag}]", "exists", "False")
    locations = policies.get("locations", ())
    if locations and kind != _GROUP and str(body.get("location")) not in locations:
        yield POLICIES["locations"], _met("location", "notIn", list(locations))
    sizes, profile = policies.get("sizes", ()), (body.get("properties") or {}).get("hardwareProfile") or {}
    if sizes and kind == _MACHINE and profile.get("vmSize") not in sizes:
        yield POLICIES["sizes"], _met("Microsoft.Compute/virtualMachines/sku.name", "notIn", list(sizes))


def policies(body: Json) -> dict[str, tuple[str, ...]]:
    """Read what an offer says of the policies of a subscription; refuse one that there is not."""
    read = {name: tuple(values) for name, values in body.get("policies", {}).items()}
    if strange := read.keys() - POLICIES:
        raise bad_request(f"there is no policy on {min(strange)}", "InvalidOffer")
    return read


def _met(field: str, operator: str, target: object) -> Json:
    return {
        "expressionKind": "field",
        "expression": field,
        "path": field,
        "targetValue": target,
        "operator": operator,
    }


def _named(path: str) -> tuple[str, str]:
    """Type and name of what a path creates; no type for what lies within a resource."""
    parts = path.partition("/providers/")[2].split("/")
    if not parts[0]:
        return _GROUP, ids.name_of(path)
    return ("/".join(parts[:2]) if len(parts) == 3 else ""), parts[-1]


def _has_public_address(kind: str, body: Json) -> bool:
    rows: list[Any] = (body.get("properties") or {}).get("ipConfigurations") or []
    with_address = any((row.get("properties") or {}).get("publicIPAddress") for row in rows)
    return kind.endswith("/publicipaddresses") or (kind.endswith("/networkinterfaces") and with_address)


def _assignment(plane: ControlPlane, policy: Policy) -> str:
    return f"{plane.root}/providers/Microsoft.Authorization/policyAssignments/{policy.assignment}"


def _definition(policy: Policy) -> str:
    return f"/providers/Microsoft.Authorization/policyDefinitions/{policy.definition}"


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
