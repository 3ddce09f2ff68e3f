"""Whose a resource group is: asked before anything is made in one, and before one is deleted.

Names and tags of groups can be anybody's. A group is a run's own when its name is that of the run, its tags
are those of the run and signed by this client, and everything in it carries the run's tag.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterable
from typing import Any

from diskbook.cloud.azure import inventory
from diskbook.cloud.azure.clients import Clients
from diskbook.facts.errors import DiskbookError
from diskbook.results import session
from diskbook.results.run import Run

_SHOWN = 5  # resources that are named one by one


def new_group(clients: Clients, run: Run, number: int) -> str:
    """Name for the run's next resource group; there is none of that name yet.

    Raises
    ------
    DiskbookError
        When there is one all the same: it is somebody else's, and nothing is put into it.
    """
    group = f"diskbook-{run.name}-{number}-{secrets.token_hex(4)}"
    if inventory.find_group(clients, group) is not None:
        raise DiskbookError(f"resource group {group} exists already and is not this run's; try again")
    return group


def check(clients: Clients, run: Run, group: Any) -> None:
    """Make sure that a resource group is the run's own, whatever others have put into it.

    Parameters
    ----------
    clients, run
        Of the run.
    group
        The group as Azure shows it.

    Raises
    ------
    DiskbookError
        When it is not, with the reason. Then nothing in it may be touched.
    """
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
    names = [inventory.short(row.id) for row in resources[:_SHOWN]]
    more = f" and {len(resources) - _SHOWN} more" if len(resources) > _SHOWN else ""
    return f"{', '.join(names)}{more} without the tag of run {run}"
