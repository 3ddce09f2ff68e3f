"""What the signed-in account may do in its subscription, and which providers that has registered.

Effective permissions are those of all roles together, each without its own `notActions` (Microsoft's page on
role definitions); `GET {scope}/providers/Microsoft.Authorization/permissions` lists them for who asks.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from azure.core.rest import HttpRequest

from diskbook.azure.clients import Clients
from diskbook.scenario import volume_rules
from diskbook.scenario.model import Scenario

PERMISSIONS_API = "2022-04-01"
_ACTIONS = (
    "Microsoft.Resources/subscriptions/resourceGroups/write",
    "Microsoft.Resources/subscriptions/resourceGroups/delete",
    "Microsoft.Compute/virtualMachines/write",
    "Microsoft.Compute/virtualMachines/delete",
    "Microsoft.Compute/virtualMachines/start/action",
    "Microsoft.Compute/virtualMachines/powerOff/action",
    "Microsoft.Compute/disks/write",
    "Microsoft.Compute/disks/delete",
    "Microsoft.Network/virtualNetworks/write",
    "Microsoft.Network/virtualNetworks/subnets/join/action",
    "Microsoft.Network/networkSecurityGroups/write",
    "Microsoft.Network/publicIPAddresses/write",
    "Microsoft.Network/networkInterfaces/write",
    "Microsoft.DevTestLab/schedules/write",
    "Microsoft.Insights/metrics/read",
)
_WITNESS = ("Microsoft.Storage/storageAccounts/write", "Microsoft.Storage/storageAccounts/listKeys/action")
_PROVIDERS = ("Microsoft.Compute", "Microsoft.Network", "Microsoft.DevTestLab")


def actions(scenario: Scenario) -> tuple[str, ...]:
    """Actions that a run of a scenario takes, as far as they decide whether it can be had."""
    return _ACTIONS + (_WITNESS if volume_rules.witness_redundancy(scenario) else ())


def providers(scenario: Scenario) -> tuple[str, ...]:
    """Namespaces that the subscription must have registered for a run of a scenario."""
    return _PROVIDERS + (("Microsoft.Storage",) if volume_rules.witness_redundancy(scenario) else ())


def refused(clients: Clients, needed: Iterable[str]) -> list[str]:
    """Ask what the account may do in the subscription, and return the actions that it may not."""
    url = f"/subscriptions/{clients.cloud.subscription}/providers/Microsoft.Authorization/permissions"
    answer = clients.resource.send_request(HttpRequest("GET", url, params={"api-version": PERMISSIONS_API}))
    answer.raise_for_status()
    return not_granted(answer.json()["value"], needed)


def not_granted(rows: Sequence[Mapping[str, Any]], needed: Iterable[str]) -> list[str]:
    """Actions that no role allows: one allows what its actions match and its notActions do not."""
    return [action for action in needed if not any(_allows(row, action) for row in rows)]


def _allows(row: Mapping[str, Any], action: str) -> bool:
    def matches(key: str) -> bool:
        return any(_matches(str(pattern), action) for pattern in row.get(key) or ())

    return matches("actions") and not matches("notActions")


def _matches(pattern: str, action: str) -> bool:
    return re.fullmatch(re.escape(pattern).replace(r"\*", ".*"), action, re.IGNORECASE) is not None


def unregistered(clients: Clients, needed: Iterable[str]) -> list[str]:
    """Ask which of some providers the subscription has not registered."""
    states = {name: clients.resource.providers.get(name).registration_state for name in needed}
    return [name for name, state in states.items() if state != "Registered"]
