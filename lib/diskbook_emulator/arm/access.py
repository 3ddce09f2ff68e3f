"""What the account may do, and which providers the subscription has registered."""

import random
import re
from dataclasses import replace

from diskbook.facts import catalog
from diskbook_emulator.arm.errors import ArmError
from diskbook_emulator.arm.plane import Call, ControlPlane, Reply
from diskbook_emulator.arm.settings import Settings
from diskbook_emulator.types import Json

PROVIDERS = ("Microsoft.Compute", "Microsoft.Network", "Microsoft.Storage", "Microsoft.DevTestLab")
# Microsoft's page of built-in roles: actions and what is taken from them.
ROLES: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "Owner": (("*",), ()),
    "Contributor": (
        ("*",),
        (
            "Microsoft.Authorization/*/Delete",
            "Microsoft.Authorization/*/Write",
            "Microsoft.Authorization/elevateAccess/Action",
        ),
    ),
    "Reader": (("*/read",), ()),
    "none": ((), ()),
}
_VERBS = {"GET": "read", "HEAD": "read", "PUT": "write", "PATCH": "write", "DELETE": "delete"}


def check(settings: Settings, method: str, path: str) -> None:
    """Refuse what the role does not allow, and writes to a provider that is not registered.

    Raises ArmError: 403 AuthorizationFailed, or 409 MissingSubscriptionRegistration.
    """
    action = action_of(method, path)
    if action and not _granted(settings.role, action):
        raise ArmError(
            403,
            "AuthorizationFailed",
            f"The client '{settings.tenant_id}' with object id '{settings.tenant_id}' does not have "
            f"authorization to perform action '{action}' over scope '{path}' or the scope is invalid. "
            "If access was recently granted, please refresh your credentials.",
        )
    provider = action.partition("/")[0]
    if method == "PUT" and provider in settings.unregistered:
        message = (
            f"The subscription is not registered to use namespace '{provider}'. See "
            "https://aka.ms/rps-not-found for how to register subscriptions."
        )
        detail = {"code": "MissingSubscriptionRegistration", "target": provider, "message": message}
        raise ArmError(409, "MissingSubscriptionRegistration", message, details=[detail])


def action_of(method: str, path: str) -> str:
    """Action that a request performs, e.g. Microsoft.Compute/disks/write; "" outside of subscriptions."""
    parts = [part for part in path.split("/") if part]
    if not parts or parts[0] != "subscriptions":
        return ""
    if "providers" in parts and parts.index("providers") + 2 < len(parts):
        namespace, *rest = parts[parts.index("providers") + 1 :]
        kinds = "/".join([namespace, *rest[0::2]])
        return f"{kinds}/{_VERBS.get(method) or 'action'}"
    if parts[-1] == "metrics:getBatch":
        return "Microsoft.Insights/metrics/read"
    kind = "subscriptions/resourceGroups" if "resourceGroups" in parts else "subscriptions"
    return f"Microsoft.Resources/{kind}/{_VERBS.get(method, 'action')}"


def _granted(role: str, action: str) -> bool:
    allowed, taken = ROLES[role]
    return any(_matches(name, action) for name in allowed) and not any(
        _matches(name, action) for name in taken
    )


def _matches(pattern: str, action: str) -> bool:
    return re.fullmatch(re.escape(pattern).replace(r"\*", ".*"), action, re.IGNORECASE) is not None


def permissions(plane: ControlPlane, call: Call) -> Reply:
    """List what the account may do in the subscription, role by role."""
    allowed, taken = ROLES[plane.settings.role]
    row = {"actions": list(allowed), "notActions": list(taken), "dataActions": [], "notDataActions": []}
    return Reply(200, {"value": [row] if allowed else []})


def provider(plane: ControlPlane, call: Call) -> Reply:
    """Show a provider, and whether it is registered; a POST registers it."""
    namespace = call.params["provider"]
    if call.method == "POST":
        left = tuple(name for name in plane.settings.unregistered if name != namespace)
        plane.settings = replace(plane.settings, unregistered=left)
        return Reply(200, {**_provider(plane, namespace), "registrationState": "Registering"})
    return Reply(200, _provider(plane, namespace))


def _provider(plane: ControlPlane, namespace: str) -> Json:
    registered = namespace in PROVIDERS and namespace not in plane.settings.unregistered
    return {
        "id": f"{plane.root}/providers/{namespace}",
        "namespace": namespace,
        "registrationPolicy": "RegistrationRequired",
        "registrationState": "Registered" if registered else "NotRegistered",
        "resourceTypes": [],
    }


def physical_zones(seed: int, region: catalog.Region) -> dict[str, str]:
    """Map logical to physical zones, e.g. "1" to "westeurope-az3"; fixed for a seed as for a subscription."""
    order = list(region.zones)
    random.Random(f"{seed}:{region.name}").shuffle(order)
    return {logical: f"{region.name}-az{place}" for logical, place in zip(region.zones, order, strict=True)}


def subscription(plane: ControlPlane, call: Call) -> Reply:
    return Reply(
        200,
        {
            "id": plane.root,
            "subscriptionId": plane.settings.subscription_id,
            "tenantId": plane.settings.tenant_id,
            "displayName": "diskbook emulator (emulated, not Azure)",
            "state": "Enabled",
        },
    )


def listing(plane: ControlPlane, call: Call) -> Reply:
    return Reply(200, {"value": [_location(plane, region) for region in catalog.regions().values()]})


def _location(plane: ControlPlane, region: catalog.Region) -> Json:
    body: Json = {
        "id": f"{plane.root}/locations/{region.name}",
        "name": region.name,
        "type": "Region",
        "displayName": region.display_name,
        "regionalDisplayName": region.display_name,
        "metadata": {"regionType": "Physical", "regionCategory": "Recommended"},
    }
    if region.zones:
        zones = physical_zones(plane.settings.seed, region)
        body["availabilityZoneMappings"] = [
            {"logicalZone": logical, "physicalZone": physical} for logical, physical in zones.items()
        ]
    return body
