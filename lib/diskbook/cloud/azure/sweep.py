"""Find the resource groups that runs have left in a cloud, and decide which of them a sweep may delete.

A group is ours only if this client signed its tags; its name alone proves nothing. A sweep deletes it when it
has expired, or when its run was not to be kept and no longer has a process. A group that holds resources
without the run's tag stays until a person decides. A group that another client made stays until a person
names it.
"""

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from azure.core.exceptions import ResourceNotFoundError

from diskbook.cloud.azure import inventory, named_group
from diskbook.cloud.azure.clients import Clients
from diskbook.results import session
from diskbook.results.run import Run
from diskbook.results.session import RunState

PREFIX = "diskbook-"
NEEDED = ("diskbook-run", "diskbook-owner", "diskbook-scenario", "diskbook-expires")
WORKERS = 8
_WHY_KEPT = {
    RunState.LIVE: "live",
    RunState.KEPT: "kept until it expires",
    RunState.UNREADABLE: "until it expires: the manifest of its run is damaged, was not written here, or is "
    "older than the newest; 'diskbook sweep --delete --group NAME' deletes it",
}
_ELSEWHERE = "not made by you on this computer: only 'diskbook sweep --delete --group {group}' deletes it"


@dataclass(frozen=True)
class Label:
    """What the tags of a run's group say; `created` may be missing."""

    run: str
    owner: str
    scenario: str
    expires: datetime
    created: datetime | None


@dataclass(frozen=True)
class Group:
    """A resource group as a sweep sees it.

    `label` is None where the tags are not those of a run; `goes` says that a sweep deletes it, `state` why;
    `holds` counts its resources by kind; `may_be_named` says that it goes where a person names it, `named`
    that one did. `foreign` names resources that are not the run's, `spares` says that a sweep leaves them.
    With a `prefix` the user named the group: it stays, and the rest is about what one run has in it.
    """

    name: str
    label: Label | None
    state: str
    goes: bool
    holds: str
    may_be_named: bool = False
    named: bool = False
    foreign: tuple[str, ...] = ()
    spares: bool = True
    prefix: str = ""


def label_of(tags: Mapping[str, str]) -> Label | str:
    """Read the tags of a group; a sentence where they are not those of a run."""
    missing = [name for name in NEEDED if not tags.get(name)]
    if missing:
        return f"no tag {missing[0]}"
    expires = _time(tags["diskbook-expires"])
    if expires is None:
        return f"its tag diskbook-expires is not a time: {tags['diskbook-expires'][:40]!r}"
    run = tags["diskbook-run"]
    if Path(run).name != run or run in (".", ".."):
        return f"its tag diskbook-run is not a name: {run[:40]!r}"
    return Label(
        run=run,
        owner=tags["diskbook-owner"],
        scenario=tags["diskbook-scenario"],
        expires=expires,
        created=_time(tags.get(session.CREATED_TAG, "")),
    )


def judge(group: str, label: Label, own: bool, runs: Path, now: datetime) -> tuple[str, bool]:
    """State of a group with the tags of a run, and whether a sweep deletes it; `own`: this client made it."""
    expired = now >= label.expires
    if not own:  # whether a process elsewhere still works on it cannot be seen from here
        return f"{'expired, ' if expired else ''}{_ELSEWHERE.format(group=group)}", False
    if expired:
        return "expired", True
    state = session.run_state(Run(runs / label.run), group)
    return (_WHY_KEPT[state], False) if state in _WHY_KEPT else ("no live run", True)


def find_groups(clients: Clients, runs: Path) -> list[Group]:
    """Groups that runs have left, or that only look like it; AzureError when the cloud does not answer."""
    listed = clients.resource.resource_groups.list()
    candidates = [row for row in listed if _looks_ours(row.name, row.tags or {})]
    with ThreadPoolExecutor(WORKERS) as pool:
        groups = list(pool.map(lambda row: _group_of(clients, row, runs), candidates))
    named = [_part_of(clients, part, runs) for part in named_group.find(clients)]
    return sorted([*(group for group in groups if group is not None), *named], key=lambda group: group.name)


def read_again(clients: Clients, listed: Group, runs: Path) -> Group | None:
    """Look afresh at a group, or at what a run has in one that the user named; None if it is gone."""
    if not listed.prefix:
        return read_group(clients, listed.name, runs)
    parts = named_group.parts(clients, listed.name)
    same = [part for part in parts if part.prefix == listed.prefix]
    return _part_of(clients, same[0], runs) if same else None


def _part_of(clients: Clients, part: named_group.Part, runs: Path) -> Group:
    label, holds = label_of(part.tags), inventory.counted(part.rows)
    if isinstance(label, str):
        return Group(part.group, None, f"not touched: {label}", False, holds, prefix=part.prefix)
    own = session.is_own_group(part.tags, runs, clients.cloud.subscription, part.group, part.prefix)
    state, goes = judge(part.group, label, own, runs, datetime.now(UTC))
    may_be_named = goes or not own or state == _WHY_KEPT[RunState.UNREADABLE]
    state = f"{state}, in an existing group, which stays"
    return Group(part.group, label, state, goes, holds, may_be_named=may_be_named, prefix=part.prefix)


def read_group(clients: Clients, group: str, runs: Path) -> Group | None:
    """Look at one group afresh; None when it is gone. Raises DiskbookError when the cloud does not say."""
    resource = inventory.find_group(clients, group)
    return None if resource is None else _group_of(clients, resource, runs)


def _looks_ours(name: str, tags: Mapping[str, str]) -> bool:
    return name.startswith(PREFIX) or any(tag.lower().startswith(PREFIX) for tag in tags)


def _group_of(clients: Clients, resource: object, runs: Path) -> Group | None:
    name: str = resource.name  # type: ignore[attr-defined]
    tags: dict[str, str] = resource.tags or {}  # type: ignore[attr-defined]
    try:
        contents = inventory.contents(clients, name)
    except ResourceNotFoundError:
        return None  # it has just gone
    holds = inventory.counted(contents)
    label = label_of(tags)
    if isinstance(label, str):
        return Group(name, None, f"not touched: {label}", False, holds)
    if named_group.is_used(contents):
        state = "never deleted: runs were told to use it, and their resources are in it"
        return Group(name, label, state, False, holds)
    own = session.is_own_group(tags, runs, clients.cloud.subscription, name)
    foreign = inventory.foreign(contents, label.run)
    others = inventory.foreign_text(foreign, label.run)
    if foreign and not own:
        return Group(name, label, f"not ours, not touched: in it {others}", False, holds)
    state, goes = judge(name, label, own, runs, datetime.now(UTC))
    may_be_named = goes or not own or state == _WHY_KEPT[RunState.UNREADABLE]
    names = tuple(inventory.short(row.id) for row in foreign)
    if foreign:
        only = "only " if len(foreign) == len(contents) else ""
        state = f"{state}, in it {only}{others}"
    if resource.properties.provisioning_state == "Deleting":  # type: ignore[attr-defined]
        state += ", being deleted"
    return Group(name, label, state, goes, holds, may_be_named=may_be_named, foreign=names)


def _time(text: str) -> datetime | None:
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        return None
    return time if time.tzinfo else None
