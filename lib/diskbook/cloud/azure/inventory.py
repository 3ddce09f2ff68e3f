"""List the resources of a run's groups, and check whose a group is. Only reads.

Whose a group is gets checked before anything is created in it, and before it is deleted: anybody can choose
names and tags. A group belongs to a run if it has the run's name and tags, if this client signed the tags,
and if everything in the group carries the run's tag.
"""

import re
import secrets
from collections import Counter
from collections.abc import Collection, Iterable
from typing import Any

from azure.core.exceptions import AzureError, ResourceNotFoundError

from diskbook.cloud.azure import refusals
from diskbook.cloud.azure.clients import Clients
from diskbook.facts.errors import DiskbookError
from diskbook.results import session
from diskbook.results.run import Run

_MAIN = {"virtualMachines": "machine", "disks": "disk"}  # named first: they cost most


def find_group(clients: Clients, group: str) -> Any | None:
    """Return a resource group, None where there is none. Raises DiskbookError when the cloud does not say."""
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

    Raises DiskbookError when Azure does not say.
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
            f"cannot be determined ({refusals.message(error)})"
        ) from error
    if ids:
        clients.tell(
            f"tagged with run {run.name} but outside of its resource groups, so left alone: "
            f"{', '.join(ids)}; delete what is not needed, or its tag diskbook-run"
        )


def elsewhere(clients: Clients, run: str, groups: Collection[str]) -> list[str]:
    """Ids of what carries a run's tag outside of its groups: nothing should, and the user is to judge it."""
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


_SHOWN = 5  # resources that are named one by one


def new_group(clients: Clients, run: Run, number: int) -> str:
    """Name for the run's next resource group. DiskbookError when there is one: it is somebody else's."""
    group = f"diskbook-{run.name}-{number}-{secrets.token_hex(4)}"
    if find_group(clients, group) is not None:
        raise DiskbookError(f"resource group {group} exists already and is not this run's; try again")
    return group


def check_owner(clients: Clients, run: Run, group: Any) -> None:
    """Raise DiskbookError, with the reason, unless a group is the run's own, whatever is in it."""
    tags = group.tags or {}
    reason = None
    if tags.get(session.RUN_TAG) != run.name:
        reason = f"it is not tagged with run {run.name}"
    elif not re.fullmatch(rf"diskbook-{re.escape(run.name)}-\d+-[0-9a-f]{{8}}", group.name, re.IGNORECASE):
        reason = f"its name is not one of run {run.name}"
    elif not session.is_group_of(run, tags, clients.cloud.subscription, group.name):
        reason = "it was not made by you on this computer"
    if reason:
        raise DiskbookError(f"resource group {group.name} was left alone, it is not ours: {reason}")


def prefix_in(run: Run, group: str) -> str:
    """Prefix of a run's resources in a group, by its manifest; "" in a group of its own."""
    rows = run.manifest["resource_groups"]
    return next((str(row.get("prefix", "")) for row in rows if row["name"] == group), "")


def foreign(resources: Iterable[Any], run: str) -> list[Any]:
    """Return the resources of a run's group that are not the run's.

    What Azure makes within a resource of the run, such as an extension of a machine, belongs to the run. So
    does the OS disk of a machine, which has no tag: its name tells it (`requests.os_disk_name`; earlier
    versions left the name to Azure). Another disk does not, even if it is attached to a machine of the run.
    """
    rows = list(resources)
    own = {row.id.lower() for row in rows if (row.tags or {}).get(session.RUN_TAG) == run}

    def belongs(row: Any) -> bool:
        identity = row.id.lower()
        within = any(identity.startswith(f"{part}/") for part in own)
        return identity in own or within or bool(_OS_DISK.search(identity))

    return [row for row in rows if not belongs(row)]


_OS_DISK = re.compile(r"/disks/r\d+-[^/]+(-os|_osdisk_1_[0-9a-f]{32})$")


def foreign_text(resources: list[Any], run: str) -> str:
    """Name what is not a run's, for a message."""
    names = [short(row.id) for row in resources[:_SHOWN]]
    more = f" and {len(resources) - _SHOWN} more" if len(resources) > _SHOWN else ""
    return f"{', '.join(names)}{more} without the tag of run {run}"
