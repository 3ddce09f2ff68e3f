"""Use an existing resource group that the user names, and delete a run's resources one by one.

The group and the resources of others in it are never deleted. A resource belongs to the run if its name
begins with the run's prefix and its tags are signed for that prefix. OS disks have no tags, so they are found
by the name of their machine. Other groups are treated in the same way while they hold other replicates, or
resources that are not the run's.
"""

import contextlib
import re
import secrets
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from azure.core.exceptions import AzureError, ResourceNotFoundError

from diskbook.cloud.azure import expiry, inventory, refusals, witness
from diskbook.cloud.azure.clients import Clients
from diskbook.cloud.azure.refusals import operation
from diskbook.facts.errors import DiskbookError
from diskbook.results import session
from diskbook.results.run import Run

LISTING_PAUSES_S = (0.0, 5.0, 15.0)  # unscaled; Resource Manager's list of a group lags behind


def remove_replicate(clients: Clients, run: Run, group: str, number: int) -> None:
    """Delete machines, disks, interfaces, addresses and witness of a replicate, and list that they are gone.

    The group must be the run's own (`inventory.check_owner`) or one that the user named. Machines go first,
    and with them what they hold. Network and security group belong to all replicates and cost nothing: they
    stay. Raises DiskbookError with Azure's own message, or when something of it is left.
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
    """Delete a run's resources in a group; return what could not be deleted, each with Azure's reason.

    A deletion that Azure refuses keeps no other resource standing.
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


_PREFIX = re.compile(r"(?:^|shutdown-computevm-)(?P<prefix>dbk[0-9a-f]{12}-)", re.IGNORECASE)
_REPLICATES = 100
Say = Callable[[str], None]


@dataclass(frozen=True)
class Part:
    """Resources of one run in an existing group. `tags` are those of one of them."""

    group: str
    prefix: str
    tags: dict[str, str]
    rows: tuple[Any, ...]


def new_prefix() -> str:
    """Make the beginning of the names of a run's resources in an existing group."""
    return f"dbk{secrets.token_hex(6)}-"


def check(clients: Clients, group: str) -> None:
    """Raise DiskbookError if there is no such group."""
    if problem := missing(clients, group):
        raise DiskbookError(problem)


def missing(clients: Clients, group: str) -> str:
    """Say that a group which the user named is not there; "" if it is, or none was named."""
    if not group or inventory.find_group(clients, group) is not None:
        return ""
    return (
        f"there is no resource group {group} in subscription {clients.cloud.subscription}: create it, name "
        "another with --resource-group, or leave that out for a group of the run's own"
    )


def is_own(row: Any, subscription: str, group: str, prefix: str) -> bool:
    """Whether a resource of an existing group is of the run whose names begin with a prefix."""
    name = row.name.lower()
    if re.search(rf"/disks/{prefix}r\d+-[^/]+-os$", row.id.lower()):
        return True
    if not session.is_signed(row.tags or {}, subscription, group, prefix):
        return False
    match = _PREFIX.match(name)
    if match is not None:
        return match["prefix"] == prefix
    place = witness.home(group, prefix)
    return name in {witness.account_name(subscription, place, number) for number in range(1, _REPLICATES)}


def is_used(rows: Iterable[Any]) -> bool:
    """Whether a group holds resources with the names that runs use in a group that the user named."""
    return any(_PREFIX.match(row.name.lower()) for row in rows)


def find(clients: Clients) -> list[Part]:
    """Find what runs of this user have in groups that are not a run's own."""
    tagged = clients.resource.resources.list(filter=f"tagName eq '{session.RUN_TAG}'")
    ids = [inventory.group_of(row.id) for row in tagged if _PREFIX.match(row.name)]
    groups = {group.lower(): group for group in reversed(ids)}  # schedules give names in small letters
    return [part for _, group in sorted(groups.items()) for part in parts(clients, group)]


def parts(clients: Clients, group: str) -> Iterator[Part]:
    """Divide what is in a group by run, and leave out what is nobody's of these."""
    rows = inventory.contents(clients, group)
    subscription = clients.cloud.subscription
    named: dict[str, list[Any]] = defaultdict(list)
    for row in rows:
        if match := _PREFIX.match(row.name.lower()):
            named[match["prefix"]].append(row)
    for prefix, candidates in named.items():
        own = [row for row in candidates if is_own(row, subscription, group, prefix)]
        tagged = [row for row in own if (row.tags or {}).get(session.RUN_TAG)]
        if tagged:
            yield Part(group, prefix, dict(tagged[0].tags), tuple(own))


def remove(clients: Clients, group: str, prefix: str, run: str, say: Say) -> bool:
    """Delete a run's resources from an existing group, and read that back; return whether the group is there.

    Raises DiskbookError if something is left, with Azure's reasons.
    """
    if inventory.find_group(clients, group) is None:
        return False
    say(f"deleting the resources of run {run} in {group} one by one: the group is not the run's, and stays")
    subscription = clients.cloud.subscription
    left = remove_own(clients, group, lambda row: is_own(row, subscription, group, prefix))
    if left:
        raise DiskbookError(
            f"in resource group {group} is left of run {run}, and may cost money: {', '.join(left)}; "
            f"'diskbook teardown {run}' or 'diskbook sweep --delete' tries again"
        )
    return True


def standing(rows: Iterable[dict[str, Any]], group: str) -> dict[str, Any] | None:
    """Row of the manifest of what a run has standing in an existing group, if any."""
    return next((row for row in rows if row["name"] == group and not row["deleted_utc"]), None)
