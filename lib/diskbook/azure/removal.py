"""Delete what one replicate has made in a resource group, where the others of the group go on standing."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

from azure.core.exceptions import ResourceNotFoundError

from diskbook.azure import inventory, ownership, witness
from diskbook.azure.clients import Clients
from diskbook.azure.operation import operation
from diskbook.base.errors import DiskbookError
from diskbook.scenario import volume_rules
from diskbook.store.run import Run


def remove_replicate(clients: Clients, run: Run, group: str, number: int) -> None:
    """Delete machines, disks, interfaces, addresses and witness of a replicate, and list that they are gone.

    Its machines go first, and with them what they hold. Network and security group belong to all replicates
    of the group and cost nothing: they stay.

    Parameters
    ----------
    clients, run, group
        The group must be the run's own (`ownership.check`).
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
    ownership.check(clients, run, resource)
    account = witness.account_name(clients.cloud.subscription, group, number)
    kinds = list(_kinds(clients, group, witnessed=volume_rules.witness_redundancy(run.scenario) is not None))
    with operation(run, "delete replicate", f"r{number} of {group}", clients):
        for names, begin_delete in kinds:
            own = [name for name in names() if _is_of(name, number, account)]
            for poller in [begin_delete(group, name) for name in own]:
                poller.result()
        left = [name for names, _ in kinds for name in names() if _is_of(name, number, account)]
    if left:
        raise DiskbookError(f"of replicate {number} is left in {group}: {', '.join(left)}")


Names = Callable[[], list[str]]


def _kinds(
    clients: Clients, group: str, *, witnessed: bool
) -> Iterator[tuple[Names, Callable[[str, str], Any]]]:
    """What a replicate is made of, in the order in which it can be deleted: how to list and delete each.

    The providers are asked, not Resource Manager's own list, which is behind by some seconds.
    """
    compute, network = clients.compute, clients.network

    def names(listing: Callable[[str], Any]) -> Names:
        return lambda: [str(row.name) for row in listing(group)]

    yield names(compute.virtual_machines.list), compute.virtual_machines.begin_delete
    yield names(compute.disks.list_by_resource_group), compute.disks.begin_delete
    yield names(network.network_interfaces.list), network.network_interfaces.begin_delete
    yield names(network.public_ip_addresses.list), network.public_ip_addresses.begin_delete
    if witnessed:  # else the provider of storage need not even be registered
        accounts = clients.storage.storage_accounts
        yield (
            names(accounts.list_by_resource_group),
            lambda group, name: _Deleted(accounts.delete, group, name),
        )


class _Deleted:
    """A deletion that ends with its request, in the form of one that is waited for."""

    def __init__(self, delete: Callable[[str, str], None], group: str, name: str) -> None:
        with contextlib.suppress(ResourceNotFoundError):
            delete(group, name)

    def result(self) -> None:
        """Return at once."""


def _is_of(name: str, number: int, account: str) -> bool:
    return name.startswith(f"r{number}-") or name == account
