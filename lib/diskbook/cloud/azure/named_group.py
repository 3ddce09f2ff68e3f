"""An existing resource group that the user names: a run's resources in it, and their deletion one by one.

The group is never deleted, and neither is what others have in it. A resource in it is the run's if its name
begins with the run's prefix and its tags are signed for that prefix. OS disks have no tags, so the name of
their machine tells them.
"""

from __future__ import annotations

import re
import secrets
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from diskbook.cloud.azure import inventory, removal, witness
from diskbook.cloud.azure.clients import Clients
from diskbook.facts.errors import DiskbookError
from diskbook.results import session

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
    """Whether a resource of an existing group is of the run with a prefix.

    Parameters
    ----------
    row
        The resource: its id, name and tags.
    subscription, group, prefix
        Where it is, and how the names of the run's resources begin.
    """
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
    """Delete a run's resources from an existing group, and read back that they are gone.

    Returns
    -------
    bool
        Whether the group is there.

    Raises
    ------
    DiskbookError
        If something is left, with Azure's reasons.
    """
    if inventory.find_group(clients, group) is None:
        return False
    say(f"deleting the resources of run {run} in {group} one by one: the group is not the run's, and stays")
    subscription = clients.cloud.subscription
    left = removal.remove_own(clients, group, lambda row: is_own(row, subscription, group, prefix))
    if left:
        raise DiskbookError(
            f"in resource group {group} is left of run {run}, and may cost money: {', '.join(left)}; "
            f"'diskbook teardown {run}' or 'diskbook sweep --delete' tries again"
        )
    return True


def standing(rows: Iterable[dict[str, Any]], group: str) -> dict[str, Any] | None:
    """Row of the manifest of what a run has standing in an existing group, if any."""
    return next((row for row in rows if row["name"] == group and not row["deleted_utc"]), None)
