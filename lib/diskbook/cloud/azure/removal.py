"""Delete resources of a run one by one, where their resource group stays.

It stays for other replicates, or because it holds resources that are not the run's.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from typing import Any

from azure.core.exceptions import AzureError, ResourceNotFoundError

from diskbook.cloud.azure import expiry, inventory, refusals, witness
from diskbook.cloud.azure.clients import Clients
from diskbook.cloud.azure.operation import operation
from diskbook.facts.errors import DiskbookError
from diskbook.results.run import Run

LISTING_PAUSES_S = (0.0, 5.0, 15.0)  # unscaled; Resource Manager's list of a group lags behind


def remove_replicate(clients: Clients, run: Run, group: str, number: int) -> None:
    """Delete machines, disks, interfaces, addresses and witness of a replicate, and list that they are gone.

    Its machines go first, and with them what they hold. Network and security group belong to all replicates
    of the group and cost nothing: they stay.

    Parameters
    ----------
    clients, run, group
        The group must be the run's own (`ownership.check`), or the one that the user named.
    number
        Of the replicate.

    Raises
    ------
    DiskbookError
        With Azure's own message, or when something of it is left.
    """
    resource = inventory.find_group(clients, group)
    if resource is None:
        return
    prefix = inventory.prefix_in(run, group)
    if not prefix:
        inventory.check_owner(clients, run, resource)
    home = witness.home(group, prefix)
    account = witness.account_name(clients.cloud.subscription, home, number)
    start = f"{prefix}r{number}-"
    kinds = list(_kinds(clients, witnessed=run.scenario.witness_redundancy is not None))
    with operation(run, "delete replicate", f"r{number} of {group}", clients):
        for rows, begin_delete in kinds:
            own = [row.name for row in rows(group) if _is_of(row.name, start, account)]
            for poller in [begin_delete(group, name) for name in own]:
                poller.result()
        left = [row.name for rows, _ in kinds for row in rows(group) if _is_of(row.name, start, account)]
    if left:
        raise DiskbookError(f"of replicate {number} is left in {group}: {', '.join(left)}")


def remove_own(clients: Clients, group: str, is_own: Callable[[Any], bool]) -> list[str]:
    """Delete a run's resources in a group, and leave those that are not the run's.

    A deletion that Azure refuses keeps no other resource standing.

    Parameters
    ----------
    clients
        Of the group's cloud.
    group, is_own
        The group, and which of its resources are the run's, by id, name and tags.

    Returns
    -------
    list of str
        What could not be deleted: a resource of the run and Azure's reason, per entry.
    """
    rows = inventory.contents(clients, group)
    witnessed = any("/storageaccounts/" in row.id.lower() for row in rows if is_own(row))
    reasons: dict[str, str] = {}
    for listing, begin_delete in [*_kinds(clients, witnessed=witnessed), *_shared_kinds(clients)]:
        begun = []
        for row in listing(group):
            if is_own(row):
                with _noted(reasons, row.id):
                    begun.append((row.id, begin_delete(group, row.name)))
        for identity, poller in begun:
            with _noted(reasons, identity):
                poller.result()
    for pause_s in LISTING_PAUSES_S:
        time.sleep(pause_s * clients.cloud.time_scale)
        left = [row.id for row in inventory.contents(clients, group) if is_own(row)]
        if {identity.lower() for identity in left} <= reasons.keys():
            break
    return [f"{inventory.short(row)} ({reasons.get(row.lower(), 'still listed')})" for row in left]


@contextlib.contextmanager
def _noted(reasons: dict[str, str], identity: str) -> Iterator[None]:
    """Keep Azure's reason why a resource was not deleted."""
    try:
        yield
    except AzureError as error:
        reasons[identity.lower()] = refusals.message(error)


Listing = Callable[[str], Any]
Kind = tuple[Listing, Callable[[str, str], Any]]


def _kinds(clients: Clients, *, witnessed: bool) -> Iterator[Kind]:
    """List the kinds of resources of a replicate in the order of their deletion: how to list and delete each.

    The providers are asked, not Resource Manager's own list, which is behind by some seconds.
    """
    compute, network = clients.compute, clients.network
    yield compute.virtual_machines.list, compute.virtual_machines.begin_delete
    yield compute.disks.list_by_resource_group, compute.disks.begin_delete
    yield network.network_interfaces.list, network.network_interfaces.begin_delete
    yield network.public_ip_addresses.list, network.public_ip_addresses.begin_delete
    if witnessed:  # else the provider of storage need not even be registered
        accounts = clients.storage.storage_accounts
        yield accounts.list_by_resource_group, lambda group, name: _Deleted(accounts.delete, group, name)


def _shared_kinds(clients: Clients) -> Iterator[Kind]:
    """List the kinds that replicates share, and schedules, which outlive their machines."""
    network = clients.network
    yield network.virtual_networks.list, network.virtual_networks.begin_delete
    yield network.network_security_groups.list, network.network_security_groups.begin_delete

    def schedules(group: str) -> list[Any]:
        rows = inventory.contents(clients, group)
        return [row for row in rows if row.type.lower() == "microsoft.devtestlab/schedules"]

    def begin_delete(group: str, name: str) -> Any:
        (identity,) = [row.id for row in schedules(group) if row.name == name]
        return clients.resource.resources.begin_delete_by_id(identity, api_version=expiry.API)

    yield schedules, begin_delete


class _Deleted:
    """A deletion that ends with its request, in the form of one that is waited for."""

    def __init__(self, delete: Callable[[str, str], None], group: str, name: str) -> None:
        with contextlib.suppress(ResourceNotFoundError):
            delete(group, name)

    def result(self) -> None:
        """Return at once."""


def _is_of(name: str, start: str, account: str) -> bool:
    return name.startswith(start) or name == account
