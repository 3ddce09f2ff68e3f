"""Ask Azure Policy, before anything is created, what it would refuse: regions, sizes, tags, public addresses.

Policy Restrictions - Check At Subscription Scope, or At Resource Group Scope (Microsoft.PolicyInsights,
learn.microsoft.com/rest). A denial names the fields that led to it in `evaluationDetails`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from azure.core.rest import HttpRequest

from diskbook.cloud.azure.clients import Clients
from diskbook.design.company_rules import OURS
from diskbook.design.model import Scenario

API = "2023-03-01"
NETWORK_API, COMPUTE_API, GROUP_API = "2024-05-01", "2024-07-01", "2021-04-01"
_GROUP = "Microsoft.Resources/subscriptions/resourceGroups"
_MACHINE, _DISK = "Microsoft.Compute/virtualMachines", "Microsoft.Compute/disks"
_INTERFACE, _ADDRESS = "Microsoft.Network/networkInterfaces", "Microsoft.Network/publicIPAddresses"
_ROUTE = (
    "use an existing subnet: --set network.kind=private --set network.subnet=ID, and network.jump_host or "
    "network.bastion"
)


@dataclass(frozen=True)
class Content:
    """A resource that a run would create: what it is, how its size is set, what Policy is asked."""

    what: str
    key: str
    api: str
    body: Mapping[str, Any]


def contents(scenario: Scenario, subscription: str) -> list[Content]:
    """Resources that a run creates, each kind, size and SKU once."""
    common = {"location": scenario.region, "tags": {**dict.fromkeys(OURS, "-"), **scenario.azure.tags}}

    def content(what: str, key: str, api: str, kind: str, **more: Any) -> Content:
        return Content(what, key, api, {"type": kind, **common, **more})

    rows = [] if scenario.azure.resource_group else [content("resource groups", "", GROUP_API, _GROUP)]
    for size, machine in {machine.size: machine for machine in scenario.machine}.items():
        asked, key = {"hardwareProfile": {"vmSize": size}}, f"machine.{machine.name}.size=SIZE"
        rows.append(content(f"size {size}", key, COMPUTE_API, _MACHINE, properties=asked))
    for sku, disk in {disk.sku: disk for disk in scenario.data_disks}.items():
        key, size_gib = f"disk.{disk.name}.sku=SKU", {"diskSizeGB": disk.size_gib}
        rows.append(content(f"{sku} disks", key, COMPUTE_API, _DISK, sku={"name": sku}, properties=size_gib))
    return [*rows, *_of_network(scenario, subscription, content)]


def _of_network(scenario: Scenario, subscription: str, content: Any) -> Iterator[Content]:
    address: dict[str, Any] = {}
    if not scenario.network.is_private:
        name = f"/subscriptions/{subscription}/resourceGroups/diskbook/providers/{_ADDRESS}/ip"
        address = {"publicIPAddress": {"id": name}}
        static = {"publicIPAllocationMethod": "Static"}
        yield content("public addresses", "", NETWORK_API, _ADDRESS, properties=static)
    ip = {"ipConfigurations": [{"name": "primary", "properties": address}]}
    yield content("network interfaces", "", NETWORK_API, _INTERFACE, properties=ip)


def problems(clients: Clients, scenario: Scenario) -> list[str]:
    """Sentences on what Azure Policy would refuse, none twice; none if it cannot be asked."""
    public = not scenario.network.is_private
    sentences = [
        _sentence(content, scenario.region, denial, public=public)
        for content in contents(scenario, clients.cloud.subscription)
        for denial in _denials(clients, scenario, content)
    ]
    return list(dict.fromkeys(sentences))


def _denials(clients: Clients, scenario: Scenario, content: Content) -> list[Mapping[str, Any]]:
    """Evaluations of the policies that deny such a resource."""
    named = scenario.azure.resource_group
    scope = f"/subscriptions/{clients.cloud.subscription}" + (f"/resourceGroups/{named}" if named else "")
    url = f"{scope}/providers/Microsoft.PolicyInsights/checkPolicyRestrictions"
    details = {"resourceContent": content.body, "apiVersion": content.api}
    request = HttpRequest("POST", url, params={"api-version": API}, json={"resourceDetails": details})
    answer = clients.resource.send_request(request)
    if answer.status_code != 200:
        return []  # who may create may not be allowed to ask; Azure then says so at the first create
    evaluated = (answer.json().get("contentEvaluationResult") or {}).get("policyEvaluations") or []
    return [
        row
        for row in evaluated
        if row.get("evaluationResult") == "NonCompliant"
        and (row.get("effectDetails") or {}).get("policyEffect", "Deny").lower() == "deny"
    ]


def _sentence(content: Content, region: str, denial: Mapping[str, Any], *, public: bool) -> str:
    """Say which policy refuses what, by the field that it names, and what to change."""
    policy = (
        f"policy {str((denial.get('policyInfo') or {}).get('policyAssignmentId', '?')).rpartition('/')[2]}"
    )
    fields = _fields(denial)
    if tag := re.search(r"tags[.\[]'?([^'\]|]+)", "|".join(fields)):
        return f"{policy} requires the tag {tag[1]!r}: give it with --tag '{tag[1]}=VALUE'"
    if "location" in fields:
        allowed = f" ({fields['location']})" if fields["location"] else ""
        return f"{policy} allows other regions{allowed} than {region}: --set scenario.region=REGION"
    sized = next((name for name in fields if re.search(r"sku|size", name, re.IGNORECASE)), None)
    if content.key and sized:
        allowed = f"; it allows {fields[sized]}" if fields[sized] else ""
        return f"{policy} does not allow {content.what}{allowed}: --set {content.key}"
    if public and content.body["type"] in (_INTERFACE, _ADDRESS):
        return f"{policy} refuses public addresses here; {_ROUTE}"
    named = f" ({', '.join(fields)})" if fields else ""
    return f"{policy} refuses {content.what} as the run makes them{named}; ask its owner"


def _fields(denial: Mapping[str, Any]) -> dict[str, str]:
    """Fields by which a policy met its condition, each with the values that it allows, if named."""
    fields: dict[str, str] = {}
    for row in (denial.get("evaluationDetails") or {}).get("evaluatedExpressions") or []:
        name, values = str(row.get("path") or row.get("expression")), row.get("targetValue")
        if str(row.get("result", "True")).lower() != "true" or name.lower() == "type":
            continue
        is_list = isinstance(values, list) and str(row.get("operator")).lower() == "notin"
        fields[name] = " or ".join(map(str, values[:5])) if is_list else fields.get(name, "")
    return fields
