"""What stands in a resource group, and what carries a run's tag outside of its groups. Only reads."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable
from typing import Any

from azure.core.exceptions import AzureError, ResourceNotFoundError

from diskbook.cloud.azure import refusals
from diskbook.cloud.azure.clients import Clients
from diskbook.facts.errors import DiskbookError
from diskbook.results.run import Run

_MAIN = {"virtualMachines": "machine", "disks": "disk"}  # named first: they cost most


def find_group(clients: Clients, group: str) -> Any | None:
    """Return a resource group, None where there is none.

    Raises
    ------
    DiskbookError
        When the cloud does not say.
    """
    try:
        return clients.resource.resource_groups.get(group)
    except ResourceNotFoundError:
        return None
    except AzureError as error:
        raise DiskbookError(f"look for resource group {group}: {refusals.message(error)}") from error


def left_text(clients: Clients, group: str) -> str:
    """Name what is left in a group, for a message."""
    try:
        return ", ".join(short(resource.id) for resource in contents(clients, group)) or "nothing in it"
    except AzureError as error:
        return f"unknown ({refusals.message(error)})"


def contents(clients: Clients, group: str) -> list[Any]:
    """Return the resources in a group, machines and disks first; none if the group has just been deleted."""
    order = [*_MAIN]

    def rank(resource: Any) -> tuple[int, str, str]:
        kind = _kind(resource.type)
        return (order.index(kind) if kind in order else len(order), resource.type, resource.name)

    try:
        return sorted(clients.resource.resources.list_by_resource_group(group), key=rank)
    except ResourceNotFoundError:
        return []


def counted(resources: Iterable[Any]) -> str:
    """Say how many resources there are: "1 machine, 2 disks, 4 others"."""
    counts = Counter(_MAIN.get(_kind(resource.type), "other") for resource in resources)
    kinds = [kind for kind in (*_MAIN.values(), "other") if counts[kind]]
    return ", ".join(f"{counts[kind]} {kind}{'s' * (counts[kind] > 1)}" for kind in kinds) or "nothing"


def tell_elsewhere(clients: Clients, run: Run) -> None:
    """Tell, once a run's resource groups are deleted, what outside of them carries its tag.

    A run makes nothing there, and anybody may write a tag, so it is left alone and no failure of the run.

    Raises
    ------
    DiskbookError
        When Azure does not say.
    """
    rows = run.manifest["resource_groups"]
    if not all(row["deleted_utc"] for row in rows):
        return  # that has been told, and matters more
    own = [row["name"] for row in rows]
    try:
        ids = elsewhere(clients, run.name, own)
    except AzureError as error:
        raise DiskbookError(
            f"the resource groups of run {run.name} are deleted, but whether it has left anything elsewhere "
            f"cannot be told ({refusals.message(error)})"
        ) from error
    if ids:
        clients.tell(
            f"tagged with run {run.name} but outside of its resource groups, so left alone: "
            f"{', '.join(ids)}; delete what is not needed, or its tag diskbook-run"
        )


def elsewhere(clients: Clients, run: str, groups: Collection[str]) -> list[str]:
    """Find what carries a run's tag outside of its resource groups: there should be nothing.

    Returns
    -------
    list of str
        Ids of resources and groups. They are for the user to judge, not to be deleted.
    """
    tagged = f"tagName eq 'diskbook-run' and tagValue eq '{run}'"
    own = {group.lower() for group in groups}
    tagged_groups = clients.resource.resource_groups.list(filter=tagged)
    tagged_resources = clients.resource.resources.list(filter=tagged)
    ids = [str(row.id) for row in (*tagged_groups, *tagged_resources)]
    return [resource_id for resource_id in ids if group_of(resource_id).lower() not in own]


def group_of(resource_id: str) -> str:
    """Name of the resource group in an id; "" if there is none."""
    parts = resource_id.split("/")
    return parts[4] if len(parts) > 4 else ""


def _kind(resource_type: str) -> str:
    return resource_type.rsplit("/", 1)[-1]


def short(resource_id: str) -> str:
    """Kind and name of a resource, from its id."""
    kind, name = resource_id.rsplit("/", 2)[-2:]
    return f"{kind} {name}"
