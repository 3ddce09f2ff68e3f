"""Check the tables `[azure]` (tags, resource group) and `[network]` (subnet, jump host, Bastion).

Limits of tags are those of Microsoft's page "Use tags to organize your Azure resources".
"""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from diskbook.design.model import Network, Scenario
from diskbook.facts.errors import is_visible

# Names of resource groups, networks, subnets and Bastions: what Azure's rules for resource names allow.
_NAME = r"[A-Za-z0-9_](?:[\w.()-]{0,88}[\w()-])?"
_ID = re.compile(
    rf"/subscriptions/(?P<subscription>[0-9a-f-]{{36}})/resourceGroups/(?P<group>{_NAME})"
    rf"/providers/Microsoft\.Network/virtualNetworks/(?P<network>{_NAME})/subnets/(?P<subnet>{_NAME})/?",
    re.IGNORECASE | re.ASCII,
)
_PAIR = re.compile(rf"(?P<network>{_NAME})/(?P<subnet>{_NAME})", re.ASCII)
_PLAIN = re.compile(_NAME, re.ASCII)
_JUMP = re.compile(
    r"(?:(?P<user>[A-Za-z0-9_][\w.\\+-]{0,63})@)?(?P<host>[A-Za-z0-9_][\w.-]{0,252})(?::(?P<port>\d{1,5}))?",
    re.ASCII,
)
RESERVED = ("GatewaySubnet", "AzureBastionSubnet", "AzureFirewallSubnet", "RouteServerSubnet")
"""Subnets that Azure keeps for services of its own."""
_SUBNET = 'an id (/subscriptions/.../subnets/NAME), or "network/subnet" with network.resource_group'
_WAYS = "network.jump_host (user@host[:port]) or network.bastion (its name)"


@dataclass(frozen=True)
class Subnet:
    """A subnet by its names; `subscription` is None where only names were given."""

    subscription: str | None
    group: str
    network: str
    name: str


@dataclass(frozen=True)
class JumpPlace:
    """A jump host; None is what the SSH configuration, or OpenSSH by default, has."""

    host: str
    user: str | None
    port: int | None


def is_azure_name(text: str) -> bool:
    """Whether a text is the name of a resource group, network, subnet or Bastion."""
    return _PLAIN.fullmatch(text) is not None


def subnet(network: Network) -> Subnet | None:
    """Read `network.subnet`; None where it is neither an id nor two names with a group."""
    whole = _ID.fullmatch(network.subnet)
    if whole is not None:
        return Subnet(whole["subscription"].lower(), whole["group"], whole["network"], whole["subnet"])
    pair = _PAIR.fullmatch(network.subnet)
    if pair is None or not network.resource_group:
        return None
    return Subnet(None, network.resource_group, pair["network"], pair["subnet"])


def jump_place(text: str) -> JumpPlace | None:
    """Read "[user@]host[:port]"; None where it is something else."""
    parts = _JUMP.fullmatch(text)
    if parts is None or not 0 < int(parts["port"] or 22) < 65536:
        return None
    return JumpPlace(parts["host"], parts["user"], int(parts["port"]) if parts["port"] else None)


def bastion_group(network: Network) -> str:
    """Resource group of the Bastion: its own key, or the group of the subnet."""
    place = subnet(network)
    return network.bastion_group or (place.group if place else "")


def check_network(network: Network) -> list[str]:
    """Sentences on what `[network]` says wrong; none where it is in order."""
    return list(_private(network) if network.is_private else _public(network))


def _public(network: Network) -> Iterator[str]:
    named = [key for key, value in network.model_dump(exclude={"kind"}).items() if value]
    if named:
        yield f'[network]: {named[0]} goes with kind = "private"; write that, or leave {named[0]} out'


def _private(network: Network) -> Iterator[str]:
    place = subnet(network)
    if not network.subnet:
        yield f"[network]: a private network needs an existing subnet; write network.subnet, {_SUBNET}"
    elif place is None:
        yield f"[network]: subnet = {network.subnet!r} names no subnet; write {_SUBNET}"
    elif place.name.lower() in {name.lower() for name in RESERVED}:
        yield f"[network]: subnet {place.name} is Azure's own and takes no machines; name another one"
    if bool(network.jump_host) == bool(network.bastion):
        many = "both are named" if network.bastion else "none is named"
        yield f"[network]: machines without public addresses are reached in one way, {_WAYS}; {many}"
    if network.jump_host and jump_place(network.jump_host) is None:
        yield f"[network]: jump_host = {network.jump_host!r} is none; write user@host or user@host:port"
    for key in ("resource_group", "bastion", "bastion_group"):
        value = getattr(network, key)
        if value and not is_azure_name(value):
            yield f"[network]: {key} = {value!r} is not a name of Azure's; write the name alone"


OURS = (
    *("diskbook-run", "diskbook-owner", "diskbook-scenario", "diskbook-site", "diskbook-credit-scale"),
    *("diskbook-depth", "diskbook-expires", "diskbook-client", "diskbook-created", "diskbook-signature"),
)
"""Tags that every resource of a run has, which count as well."""
PREFIX = "diskbook-"
MOST_TAGS, LONGEST_NAME, LONGEST_VALUE = 50, 512, 256
LONGEST_NAME_OF_ACCOUNT = 128
"""Characters in the name of a tag of a storage account."""
REFUSED = "<>%&\\?/"
"""Characters that the name of a tag cannot have."""


def check(scenario: Scenario) -> list[str]:
    """Sentences on what `[azure]` says wrong; none where it is in order."""
    group = scenario.azure.resource_group
    named = (
        [] if not group or is_azure_name(group) else [f"[azure]: {group!r} is not a name of a resource group"]
    )
    return [*named, *_number(scenario), *_names(scenario), *_values(scenario)]


def _number(scenario: Scenario) -> Iterator[str]:
    own, most = len(scenario.azure.tags), MOST_TAGS - len(OURS)
    if own > most:
        yield (
            f"[azure.tags]: {own} tags; Azure takes {MOST_TAGS} per resource, of which {len(OURS)} are "
            f"diskbook's: give at most {most}"
        )
    many = [
        name for name, count in Counter(name.lower() for name in scenario.azure.tags).items() if count > 1
    ]
    if many:
        yield f"[azure.tags]: {many[0]} is there twice: Azure ignores case in names of tags; leave one out"


def _names(scenario: Scenario) -> Iterator[str]:
    witnessed = scenario.witness_redundancy is not None
    longest = LONGEST_NAME_OF_ACCOUNT if witnessed else LONGEST_NAME
    of = " of a storage account" if witnessed else ""
    for name in scenario.azure.tags:
        shown = f"[azure.tags]: tag {name[:40]!r}"
        refused = [sign for sign in REFUSED if sign in name]
        if not name.strip() or not is_visible(name):
            yield f"{shown}: a name has one character or more, and no control characters"
        elif refused:
            yield f"{shown} has {refused[0]!r} in its name, which Azure refuses, as each of {REFUSED}"
        elif len(name) > longest:
            yield f"{shown}: its name has {len(name)} characters, and a tag{of} may have {longest}"
        elif name.lower().startswith(PREFIX):
            yield f"{shown}: names with {PREFIX!r} in front are diskbook's; take another"


def _values(scenario: Scenario) -> Iterator[str]:
    for name, value in scenario.azure.tags.items():
        if len(value) > LONGEST_VALUE:
            yield (
                f"[azure.tags]: the value of {name[:40]!r} has {len(value)} characters, and Azure takes "
                f"{LONGEST_VALUE}"
            )
        elif not is_visible(value):
            yield f"[azure.tags]: the value of {name[:40]!r} has control characters; write text"
