"""Sign in to Azure, choose the subscription, and check what the account may do.

The credential is azure-identity's own `DefaultAzureCredential`, unchanged: it uses a service principal of the
environment, a managed identity, or the sign-in of a developer's tool, usually the Azure CLI. Its variables
apply, among them `AZURE_TOKEN_CREDENTIALS` to narrow it and `AZURE_AUTHORITY_HOST` for other clouds. The
SDK's `AZURE_SDK_CLOUD_CONF` chooses the cloud (AZURE_US_GOVERNMENT, AZURE_CHINA_CLOUD).

The subscription is the named one, that of the environment, or the Azure CLI's default.

Effective permissions are those of all roles together, each without its own `notActions` (Microsoft's page on
role definitions). `GET {scope}/providers/Microsoft.Authorization/permissions` lists those of the caller.
"""

import json
import logging
import os
import re
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from azure.core.exceptions import AzureError, ServiceRequestError, ServiceResponseError
from azure.core.rest import HttpRequest

from diskbook.cloud.azure import refusals
from diskbook.cloud.azure.clients import Clients
from diskbook.design import company_rules
from diskbook.design.model import Scenario
from diskbook.design.vocabulary import Provenance
from diskbook.facts import redact
from diskbook.facts.errors import DiskbookError, UsageError

SUBSCRIPTIONS_API = "2022-12-01"
PROVENANCE_HEADER = "x-diskbook-provenance"  # every answer of an emulator has it
_USABLE = ("Enabled", "Warned", "PastDue")


@dataclass(frozen=True)
class Identity:
    """Where a sign-in leads: ids and names, nothing secret."""

    subscription: str
    subscription_name: str
    tenant: str
    region: str
    provenance: str  # what the endpoint itself says

    def __str__(self) -> str:
        text = f"subscription {self.subscription_name} ({self.subscription}), tenant {self.tenant}"
        return f"{text}, region {self.region}" + (
            ", emulated" if self.provenance == Provenance.EMULATED else ""
        )


@cache
def credential() -> Any:
    """Return the credential of this process, which caches tokens; UsageError if its variables are wrong."""
    from azure.identity import DefaultAzureCredential

    logger = logging.getLogger("azure.identity")
    if logger.level == logging.NOTSET:
        logger.setLevel(logging.CRITICAL)  # it logs a page of text where we say a line
    try:
        return DefaultAzureCredential()
    except ValueError as error:
        raise UsageError(f"azure-identity cannot be set up: {error}") from None


def identity(clients: Clients, region: str) -> Identity:
    """Ask who is signed in and where that leads: the first request of a run, and the cheapest.

    Raises UsageError when nobody is signed in, the sign-in is not accepted, or the subscription cannot be
    seen or used; DiskbookError when Azure cannot be reached, or does not answer as it should.
    """
    body, provenance = _ask(clients)
    return described(clients.cloud.subscription, body, region, provenance)


def described(subscription: str, body: dict[str, Any], region: str, provenance: str) -> Identity:
    """Take the names from Azure's answer about a subscription; raise UsageError when it cannot be used."""
    name, tenant = str(body.get("displayName") or "without a name"), str(body.get("tenantId") or "unknown")
    state = str(body.get("state") or _USABLE[0])
    if state not in _USABLE:
        raise UsageError(
            f"subscription {name} ({subscription}) is {state.lower()}: have it enabled again, or name "
            "another with --subscription"
        )
    return Identity(subscription, name, tenant, region, provenance)


def _ask(clients: Clients) -> tuple[dict[str, Any], str]:
    """Get the subscription, and what the endpoint says about itself."""
    subscription = clients.cloud.subscription
    request = HttpRequest("GET", f"/subscriptions/{subscription}", params={"api-version": SUBSCRIPTIONS_API})
    try:
        answer = clients.resource.send_request(request)
        answer.raise_for_status()
        return answer.json(), answer.headers.get(PROVENANCE_HEADER, Provenance.AZURE)
    except (ServiceRequestError, ServiceResponseError) as error:
        raise DiskbookError(f"Azure cannot be reached: {refusals.message(error)}") from error
    except AzureError as error:
        text = refusals.with_advice(error)
        if refusals.code(error):
            text = f"Azure does not let us use subscription {subscription}: {text}"
        raise UsageError(text) from error
    except ValueError as error:
        raise DiskbookError(f"Azure's answer about subscription {subscription} is not JSON") from error


Verbs = Mapping[str, tuple[str, ...]]

PERMISSIONS_API = "2022-04-01"
# Verbs by kind of resource. A resource that refers to another one needs "join" on that.
_ALWAYS: Verbs = {
    "Microsoft.Compute/virtualMachines": (
        *("read", "write", "delete", "start/action", "restart/action", "powerOff/action"),
        *("deallocate/action", "attachDetachDataDisks/action"),
    ),
    "Microsoft.Compute/disks": ("read", "write", "delete"),
    "Microsoft.Network/networkSecurityGroups": ("read", "write", "delete", "join/action"),
    "Microsoft.Network/networkInterfaces": ("read", "write", "delete", "join/action"),
    "Microsoft.DevTestLab/schedules": ("write", "delete"),
    "Microsoft.Insights/metrics": ("read",),
}
_OWN_GROUP: Verbs = {"Microsoft.Resources/subscriptions/resourceGroups": ("read", "write", "delete")}
_OWN_NETWORK: Verbs = {
    "Microsoft.Network/virtualNetworks": ("read", "write", "delete"),
    "Microsoft.Network/publicIPAddresses": ("read", "write", "delete", "join/action"),
}
_SUBNET: Verbs = {"Microsoft.Network/virtualNetworks/subnets": ("join/action",)}
_WINDOWS: Verbs = {"Microsoft.Compute/virtualMachines/extensions": ("read", "write")}
_WITNESS: Verbs = {
    "Microsoft.Storage/storageAccounts": ("read", "write", "delete", "listKeys/action"),
}
_PROVIDERS = ("Microsoft.Compute", "Microsoft.Network", "Microsoft.DevTestLab")


@dataclass(frozen=True)
class Need:
    """Actions that a run takes in a scope: the id of a subscription, a group or a subnet."""

    scope: str
    actions: tuple[str, ...]


def needs(scenario: Scenario, subscription: str) -> list[Need]:
    """Actions that a run of a scenario takes, by scope.

    What a run creates is in the subscription or, if the user named one, in an existing group. A subnet of
    somebody else's may let the account join it alone.
    """
    named, network = scenario.azure.resource_group, scenario.network
    whole = f"/subscriptions/{subscription}"
    parts = [*([] if named else [_OWN_GROUP]), _ALWAYS]
    parts += [] if network.is_private else [_OWN_NETWORK, _SUBNET]
    parts += [_WINDOWS] if any(machine.os == "windows" for machine in scenario.machine) else []
    parts += [_WITNESS] if scenario.witness_redundancy else []
    rows = [Need(f"{whole}/resourceGroups/{named}" if named else whole, _actions(*parts))]
    place = company_rules.subnet(network) if network.is_private else None
    if place is not None:
        home = f"/subscriptions/{place.subscription}" if place.subscription else whole
        of_group = f"{home}/resourceGroups/{place.group}/providers/Microsoft.Network"
        subnet = f"{of_group}/virtualNetworks/{place.network}/subnets/{place.name}"
        rows.append(Need(subnet, _actions(_SUBNET)))
    return rows


def _actions(*parts: Verbs) -> tuple[str, ...]:
    return tuple(f"{kind}/{verb}" for part in parts for kind, verbs in part.items() for verb in verbs)


def providers(scenario: Scenario) -> tuple[str, ...]:
    """Namespaces that the subscription must have registered for a run of a scenario."""
    return _PROVIDERS + (("Microsoft.Storage",) if scenario.witness_redundancy else ())


def access_refused(clients: Clients, need: Need) -> list[str]:
    """Ask what the account may do in a scope, and return the actions that it may not."""
    url = f"{need.scope}/providers/Microsoft.Authorization/permissions"
    answer = clients.resource.send_request(HttpRequest("GET", url, params={"api-version": PERMISSIONS_API}))
    answer.raise_for_status()
    return not_granted(answer.json()["value"], need.actions)


def not_granted(rows: Sequence[Mapping[str, Any]], needed: Iterable[str]) -> list[str]:
    """Actions that no role allows: one allows what its actions match and its notActions do not."""
    return [action for action in needed if not any(_allows(row, action) for row in rows)]


def _allows(row: Mapping[str, Any], action: str) -> bool:
    def matches(key: str) -> bool:
        return any(
            re.fullmatch(re.escape(str(pattern)).replace(r"\*", ".*"), action, re.IGNORECASE)
            for pattern in row.get(key) or ()
        )

    return matches("actions") and not matches("notActions")


def unregistered(clients: Clients, needed: Iterable[str]) -> list[str]:
    """Ask which of some providers the subscription has not registered."""
    states = {name: clients.resource.providers.get(name).registration_state for name in needed}
    return [name for name, state in states.items() if state != "Registered"]


VARIABLE = "AZURE_SUBSCRIPTION_ID"
_NAME_ONE = f"name one with --subscription or {VARIABLE}"
_SHOWN = 5  # subscriptions listed in a message


@dataclass(frozen=True)
class Subscription:
    """A subscription's id (no secret), and where it was found."""

    id: str
    source: str


def find_subscription(given: str | None = None) -> Subscription:
    """Decide on the subscription; an id that is given comes first.

    Raises UsageError when none is named, it is not an id, or the Azure CLI's profile cannot be read.
    """
    if given:
        return Subscription(_id(given, "--subscription"), "--subscription")
    if named := os.environ.get(VARIABLE, "").strip():
        return Subscription(_id(named, VARIABLE), VARIABLE)
    path = profile_path()
    return Subscription(_id(str(_default(path)["id"]), str(path)), "the Azure CLI's default subscription")


def profile_path() -> Path:
    """Where the Azure CLI keeps its list of subscriptions."""
    return Path(os.environ.get("AZURE_CONFIG_DIR") or Path.home() / ".azure") / "azureProfile.json"


def _id(text: str, where: str) -> str:
    try:
        return str(uuid.UUID(text.strip()))
    except ValueError:
        raise UsageError(
            f"{where}: '{redact.hide(text)}' is not a subscription id, which looks like "
            "00000000-0000-0000-0000-000000000000; 'az account list --output table' shows yours"
        ) from None


def _default(path: Path) -> dict[str, Any]:
    rows = _subscriptions(path)
    chosen = [row for row in rows if row.get("isDefault")]
    if len(chosen) == 1:
        return chosen[0]
    if not rows:
        raise UsageError(f"{path} lists no subscription: run 'az login', or {_NAME_ONE}")
    listed = ", ".join(f"{row['id']} ({row.get('name', '?')})" for row in rows[:_SHOWN])
    more = f" and {len(rows) - _SHOWN} more" if len(rows) > _SHOWN else ""
    raise UsageError(
        f"{path} lists {len(rows)} subscriptions with {len(chosen) or 'no'} default: "
        f"choose by 'az account set --subscription ID', or {_NAME_ONE}: {listed}{more}"
    )


def _subscriptions(path: Path) -> list[dict[str, Any]]:
    damaged = f"{path} is damaged; run 'az login' again, or {_NAME_ONE}"
    try:
        document = json.loads(path.read_text("utf-8-sig"))  # the CLI writes a byte order mark
    except FileNotFoundError:
        raise UsageError(
            f"no Azure subscription is named: {_NAME_ONE}, or run 'az login' ({path} is not there)"
        ) from None
    except OSError as error:
        raise UsageError(f"{path} cannot be read ({error.strerror}): {_NAME_ONE}") from None
    except ValueError:
        raise UsageError(damaged) from None
    rows = document.get("subscriptions", []) if isinstance(document, dict) else None
    if not isinstance(rows, list) or not all(isinstance(row, dict) and row.get("id") for row in rows):
        raise UsageError(damaged)
    return rows
