"""Private networks: an existing subnet, machines without public addresses, and the way to reach them.

The run does not change the group of the subnet. It makes its interfaces in its own group. A security group at
each interface lets SSH in from the virtual network alone. The service tag "VirtualNetwork" means the
addresses of the network, of peered networks and of on-premises networks (Microsoft's "Virtual network service
tags"). Jump hosts and Bastion connect from there.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import paramiko
from azure.core.exceptions import HttpResponseError, ResourceNotFoundError

from diskbook.cloud.azure import requests
from diskbook.cloud.azure.clients import Clients
from diskbook.cloud.azure.keys import run_key
from diskbook.design import company_rules
from diskbook.design.company_rules import Subnet
from diskbook.design.model import Network, Scenario
from diskbook.facts.errors import DiskbookError
from diskbook.hosts import private_access
from diskbook.hosts.ssh import Host

SSH_SOURCE = "VirtualNetwork"
"""From where machines without a public address let in SSH."""
TUNNELLING_SKUS = ("Standard", "Premium")
"""SKUs of Bastion with native clients (MicrosoftDocs/azure-docs, articles/bastion/native-client.md)."""


# The way


def route_entry(network: Network, subscription: str, machine_id: str) -> dict[str, str]:
    """Entry of the manifest that says how a machine is reached; empty for one with a public address."""
    if not network.is_private:
        return {}
    if network.jump_host:
        return {"jump_host": network.jump_host}
    way = {"bastion": network.bastion, "group": company_rules.bastion_group(network)}
    return {**way, "subscription": subscription, "target": machine_id}


def host_of(machine: Mapping[str, Any], folder: Path) -> Host:
    """How to reach a machine, from its entry of the manifest and the run's folder."""
    return Host(**machine["host"], private_key=run_key(folder), route=_route(machine.get("route") or {}))


def _route(entry: Mapping[str, str]) -> private_access.Route | None:
    if "jump_host" in entry:
        return _jump(entry["jump_host"])
    if "bastion" in entry:
        return private_access.Bastion(
            entry["bastion"], entry["group"], entry["subscription"], entry["target"]
        )
    return None


def _jump(text: str) -> private_access.Jump:
    place = company_rules.jump_place(text)
    if place is None:
        raise DiskbookError(f"the run's manifest names the jump host {text!r}, which is none")
    return private_access.Jump(place.host, place.user, place.port)


# What is there


def subnet_id(clients: Clients, network: Network) -> str:
    """Id of the existing subnet; DiskbookError when it is not there."""
    return str(_subnet(clients, network).id)


def prefix(clients: Clients, network: Network) -> str:
    """Addresses of the subnet that a run's machines are in, as a CIDR."""
    if not network.is_private:
        return requests.SUBNET
    made = _subnet(clients, network)
    return str(made.address_prefix or made.address_prefixes[0])


def _subnet(clients: Clients, network: Network) -> Any:
    place = _place(network)
    try:
        return clients.network.subnets.get(place.group, place.network, place.name)
    except ResourceNotFoundError:
        raise DiskbookError(_missing(place)) from None


def problems(clients: Clients, scenario: Scenario, replicates: int) -> list[str]:
    """Ask whether the network can take so many replicates, and be reached; one sentence a problem."""
    network = scenario.network
    if not network.is_private:
        return []
    return [
        *_of_subnet(clients, scenario, replicates),
        *(_of_bastion(clients, network) if network.bastion else _of_jump_host(network)),
    ]


def _place(network: Network) -> Subnet:
    place = company_rules.subnet(network)
    assert place is not None  # scenarios are checked when they are loaded
    return place


def _missing(place: Subnet) -> str:
    return (
        f"[network]: there is no subnet {place.name} in network {place.network} of group {place.group}; "
        "'az network vnet subnet list' shows those that there are"
    )


def _of_subnet(clients: Clients, scenario: Scenario, replicates: int) -> Iterator[str]:
    place = _place(scenario.network)
    subscription = clients.cloud.subscription.lower()
    if place.subscription not in (None, subscription):
        yield (
            f"[network]: subnet {place.name} is in subscription {place.subscription}, and machines "
            f"can only be in one of their own, {subscription}; run with --subscription {place.subscription}"
        )
        return
    try:
        there = clients.network.virtual_networks.get(place.group, place.network)
        usages = list(clients.network.virtual_networks.list_usage(place.group, place.network))
    except ResourceNotFoundError:
        yield _missing(place)
        return
    except HttpResponseError as error:
        if error.status_code != 403:
            raise
        yield f"[network]: you may not read network {place.network} of {place.group}; ask for the role Reader"
        return
    yield from _fits(place, there, usages, scenario, replicates)


def _fits(place: Subnet, there: Any, usages: list[Any], scenario: Scenario, replicates: int) -> Iterator[str]:
    """Hold a subnet against the region of the scenario, and the addresses that it needs."""
    if there.location.replace(" ", "").lower() != scenario.region.lower():
        yield (
            f"[network]: network {place.network} is in {there.location}, and machines of {scenario.region} "
            f"cannot be in it; name a subnet of that region, or set scenario.region={there.location}"
        )
    subnets = {row.name.lower(): row for row in there.subnets or []}
    subnet = subnets.get(place.name.lower())
    if subnet is None:
        yield _missing(place)
        return
    if subnet.delegations:
        service = subnet.delegations[0].service_name
        yield f"[network]: subnet {place.name} is delegated to {service} and takes no machines; name another"
    need = len(scenario.machine) * replicates
    for row in usages:
        free = int(row.limit - row.current_value)
        if row.id.lower() == subnet.id.lower() and free < need:
            yield (
                f"[network]: the run needs {need} addresses at a time and subnet {place.name} has {free} of "
                f"{row.limit:.0f} free; take fewer replicates or a larger subnet"
            )


def _of_bastion(clients: Clients, network: Network) -> Iterator[str]:
    """Whether the Bastion is there, opens tunnels and reaches the subnet, and the Azure CLI is here."""
    group, name = company_rules.bastion_group(network), network.bastion
    try:
        private_access.azure_cli()
    except DiskbookError as error:
        yield str(error)
    try:
        bastion = clients.network.bastion_hosts.get(group, name)
    except ResourceNotFoundError:
        yield f"[network]: there is no Bastion {name} in group {group}; set network.bastion_group"
        return
    sku = str(getattr(bastion.sku.name, "value", bastion.sku.name)) if bastion.sku else "Basic"
    if sku not in TUNNELLING_SKUS or not bastion.enable_tunneling:
        yield (
            f"[network]: Bastion {name} (SKU {sku}) opens no tunnels; its owner can allow that: 'az network "
            f"bastion update --name {name} --resource-group {group} --sku Standard --enable-tunneling true'"
        )


def _of_jump_host(network: Network) -> Iterator[str]:
    """Whether the jump host answers, is the one that the user knows, and lets the user in."""
    jump = _jump(network.jump_host)
    try:
        private_access.open_jump(jump).close()
    except (DiskbookError, private_access.JumpAway) as error:
        yield str(error)
    except (paramiko.SSHException, OSError) as error:
        yield f"jump host {jump} cannot be reached ({error})"
