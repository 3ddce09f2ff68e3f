"""What Azure refuses in a request of any kind: versions of APIs, tags, several zones, unknown properties.

Azure Resource Manager judges version, tags, zones and the outermost members itself. What is below
`properties` is judged by the provider: Microsoft.Compute and Microsoft.Network refuse a name that they do
not know. Microsoft.Storage, schedules and the settings of an extension are not judged here: nothing was read
on them. Properties that can only be read are known, and ignored.
"""

from collections.abc import Iterator
from typing import Any

from diskbook.facts import arm, catalog
from diskbook_emulator.arm.errors import ArmError, bad_request
from diskbook_emulator.arm.plane import Call, ControlPlane
from diskbook_emulator.types import Json

COMPUTE, NETWORK, RESOURCES = "Microsoft.Compute", "Microsoft.Network", "Microsoft.Resources"
ONE_ZONE = (f"{COMPUTE}/disks", f"{COMPUTE}/virtualMachines")
# Azure/azure-resource-manager-rpc, resource-api-reference.md and common-api-contracts.md
MEMBERS = {
    "id", "name", "type", "location", "tags", "kind", "sku", "plan", "identity", "zones", "managedby",
    "managedbyextended", "etag", "properties", "extendedlocation", "placement", "systemdata", "scale",
    "apiversion", "resources",
}  # fmt: skip
MODELS = {
    f"{COMPUTE}/disks": "compute.Disk",
    f"{COMPUTE}/virtualMachines": "compute.VirtualMachine",
    f"{COMPUTE}/virtualMachines/extensions": "compute.VirtualMachineExtension",
    f"{COMPUTE}/virtualMachines/attachDetachDataDisks": "compute.AttachDetachDataDisksRequest",
    f"{NETWORK}/virtualNetworks": "network.VirtualNetwork",
    f"{NETWORK}/virtualNetworks/subnets": "network.Subnet",
    f"{NETWORK}/publicIPAddresses": "network.PublicIPAddress",
    f"{NETWORK}/networkSecurityGroups": "network.NetworkSecurityGroup",
    f"{NETWORK}/networkSecurityGroups/securityRules": "network.SecurityRule",
    f"{NETWORK}/networkInterfaces": "network.NetworkInterface",
}
TARGETS = {"compute.VirtualMachine": "vm", "compute.Disk": "disk"}


def check(plane: ControlPlane, call: Call) -> None:
    """Raise Azure's error for the first of these rules that a request breaks."""
    kind = kind_of(call.path)
    if kind is None:
        return
    _check_form(call.body)
    _check_version(plane, call, kind)
    if call.method in ("PUT", "PATCH"):
        _check_members(call.body)
        _check_tags(call.body.get("tags") or {}, kind)
        _check_zones(call.body.get("zones") or [], kind)
    if call.method in ("PUT", "PATCH", "POST") and kind in MODELS:
        _check_properties(MODELS[kind], call.body)


def kind_of(path: str) -> str | None:
    """Kind of resource that a path is about, e.g. Microsoft.Compute/disks; None outside of subscriptions."""
    parts = [part for part in path.split("/") if part]
    if not parts or parts[0] != "subscriptions" or parts[-1] == "metrics:getBatch":
        return None
    if "providers" not in parts or parts.index("providers") + 2 >= len(parts):
        return RESOURCES
    namespace, *rest = parts[parts.index("providers") + 1 :]
    return "/".join([namespace, *rest[0::2]])


def _check_version(plane: ControlPlane, call: Call, kind: str) -> None:
    """Refuse a version that does not exist, in the words quoted in docs/reference/azure-rules.md."""
    known, asked = arm.api_versions(kind), call.api_version
    if not known or asked in known:
        return
    if kind == RESOURCES:
        raise bad_request(
            f"The api-version '{asked}' is invalid. The supported versions are '{','.join(known)}'.",
            "InvalidApiVersionParameter",
        )
    namespace, _, name = kind.partition("/")
    if location := _location(plane, call):
        raise bad_request(
            f"No registered resource provider found for location '{location}' and API version '{asked}' for "
            f"type '{name}'. The supported api-versions are '{', '.join(known)}'. The supported locations "
            f"are '{', '.join(catalog.regions())}'.",
            "NoRegisteredProviderFound",
        )
    raise ArmError(
        404,
        "InvalidResourceType",
        f"The resource type '{name}' could not be found in the namespace '{namespace}' for api version "
        f"'{asked}'. The supported api-versions are '{','.join(known)}'.",
        {"x-ms-failure-cause": "gateway"},
    )


def _location(plane: ControlPlane, call: Call) -> str:
    """Where a request goes: to the region in its body, or that of the resource it is about."""
    if call.body.get("location"):
        return str(call.body["location"])
    above = (call.path.rsplit("/", cut)[0] for cut in range(3))
    standing = next(filter(None, map(plane.store.get, above)), None)
    return str(standing.body["location"]) if standing else ""


def _check_form(body: Any) -> None:
    """Refuse a body that is no object, and tags that are no texts by name."""
    tags = (body.get("tags") or {}) if isinstance(body, dict) else None
    if not isinstance(tags, dict) or any(isinstance(value, dict | list) for value in tags.values()):
        # wording from our knowledge, not read
        raise bad_request(
            "The request content was invalid and could not be deserialized: 'Error converting value.'.",
            "InvalidRequestContent",
        )


def _check_members(body: Json) -> None:
    for member in body:
        if member.lower() not in MEMBERS:
            raise bad_request(
                "The request content was invalid and could not be deserialized: 'Could not find member "
                f"'{member}' on object of type 'ResourceDefinition'. Path '{member}'.'.",
                "InvalidRequestContent",
            )


def _check_tags(tags: Json, kind: str) -> None:
    if len(tags) > arm.TAGS:
        # code and wording from our knowledge, not read
        raise bad_request(
            f"The number of tags {len(tags)} exceeds the maximum of {arm.TAGS} tags.", "TooManyTags"
        )
    longest = arm.TAG_NAME_OF_STORAGE if kind.startswith("Microsoft.Storage/") else arm.TAG_NAME
    for name, value in tags.items():
        if set(name) & set(arm.TAG_NAME_NOT) or not name.isprintable():
            raise bad_request(
                f"The tag names '{name}' have reserved characters '{','.join(arm.TAG_NAME_NOT)}' or control "
                "characters. These characters are only allowed for tags that start with the prefix "
                "'hidden, link'.",
                "InvalidTagNameCharacters",
            )
        if len(name) > longest:
            raise bad_request(
                f"Tag key too large. Following tag name '{name}' exceeded the maximum length. Maximum "
                f"allowed length for tag name - '{longest}' characters.",
                "InvalidTagName",
            )
        if len(str(value or "")) > arm.TAG_VALUE:
            raise bad_request(
                f"Tag value too large. Following tag value '{value}' exceeded the maximum length. Maximum "
                f"allowed length for tag value - '{arm.TAG_VALUE}' characters.",
                "InvalidTagValueLength",
            )


def _check_zones(zones: list[str], kind: str) -> None:
    if kind in ONE_ZONE and len(zones) > 1:
        raise bad_request(
            f"The resource type '{kind.partition('/')[2]}' does not support multiple availability zones. The "
            f"provided zones are '{','.join(map(str, zones))}'. Please provide a single availability zone.",
            "ResourceTypeNotSupportMultiZones",
        )


def _check_properties(model: str, body: Json) -> None:
    """Refuse the first property that a provider does not know; the type's name is the SDK's, not Azure's."""
    for path, owner in _unknown(model, body, ""):
        name = path.rpartition(".")[2]
        message = f"Could not find member '{name}' on object of type '{owner}'. Path '{path}'."
        if model.startswith("compute."):
            target = f"{TARGETS[model]}.{path}" if model in TARGETS else path
            raise bad_request(message, "BadRequest", target)
        detail = {"code": "InvalidJson", "message": message}
        raise ArmError(400, "InvalidRequestFormat", "Cannot parse the request.", details=[detail])


def _unknown(model: str, value: Any, at: str) -> Iterator[tuple[str, str]]:
    """Yield path and owner of each name that a model does not have; in lists, of each entry."""
    if isinstance(value, list):
        for number, inner in enumerate(value):
            yield from _unknown(model, inner, f"{at.rstrip('.')}[{number}].")
    elif isinstance(value, dict):
        known = arm.shapes()[model]
        for name, inner in value.items():
            if name.lower() not in known and (at or name.lower() not in MEMBERS):
                yield f"{at}{name}", model.partition(".")[2]
            elif below := known.get(name.lower(), ""):
                yield from _unknown(below, inner, f"{at}{name}.")
