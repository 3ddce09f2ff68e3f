"""Delete resource groups, make sure by reading back, and name what is left where that fails."""

from __future__ import annotations

import base64
import binascii
import contextlib
import json
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable
from typing import Any
from urllib.parse import urlsplit

from azure.core.exceptions import AzureError, HttpResponseError, ResourceNotFoundError

from diskbook.azure.clients import Clients
from diskbook.azure.provision import azure_message, operation
from diskbook.base.errors import DiskbookError
from diskbook.store.run import Run

Say = Callable[[str], None]
NEWS_S = 60.0  # how often a deletion that takes long says so
PATIENCE_S = 3600.0  # then it is left to Azure, and taken up by the next teardown
CONFLICT_PAUSES_S = (10.0, 20.0, 40.0, 60.0, 60.0)  # unscaled; an operation under way ends meanwhile
_LASTING = {"ScopeLocked", "RequestDisallowedByPolicy", "DenyActionPolicyViolation"}  # waiting does not help
_MAIN = {"virtualMachines": "machine", "disks": "disk"}  # named first: they cost most


def delete_group(clients: Clients, run: Run, group: str, say: Say | None = None) -> bool:
    """Delete a resource group of this run with all it holds.

    A deletion that an earlier teardown has begun, and that still runs, is waited for rather than begun again.

    Parameters
    ----------
    clients, run, group
        The group must be tagged with the run's name.
    say
        Takes a line when the deletion begins, and about once a minute while it lasts.

    Returns
    -------
    bool
        Whether there was one.

    Raises
    ------
    DiskbookError
        When the group does not carry this run's tag (it is not touched), or still exists afterwards; what is
        left in it is named.
    """
    found = find(clients, group)
    if found is None:
        return False
    if (found.tags or {}).get("diskbook-run") != run.name:
        raise DiskbookError(f"resource group {group} is not tagged with run {run.name}; it was left alone")
    known = {row["name"]: row.get("deletion") for row in run.manifest["resource_groups"]}
    with operation(run, "delete resource group", group, clients):
        remove(
            clients,
            group,
            again=f"'diskbook teardown {run.name}'",
            token=known.get(group) if found.properties.provisioning_state == "Deleting" else None,
            begun=lambda token: _remember(run, group, token),
            say=lambda text: _tell(run, text, say),
        )
    return True


def find(clients: Clients, group: str) -> Any | None:
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
        raise DiskbookError(f"look for resource group {group}: {azure_message(error)}") from error


def remove(
    clients: Clients,
    group: str,
    *,
    again: str,
    token: str | None = None,
    begun: Callable[[str], None] = lambda token: None,
    say: Say = lambda text: None,
) -> None:
    """Delete a resource group, whatever its tags, and wait until it is gone.

    Parameters
    ----------
    clients, group
        What to delete.
    again
        Command that takes the deletion up again, for messages.
    token
        Continuation token of a deletion under way.
    begun
        Takes the continuation token of the deletion that was begun.
    say
        Takes progress lines.

    Raises
    ------
    DiskbookError
        When it is refused, fails twice, or takes longer than `PATIENCE_S`.
    """
    if token and _taken_up(clients, group, token, again, say):
        return
    for last in (False, True):  # a deletion that failed on one resource mostly succeeds the second time
        try:
            say(f"deleting resource group {group}")
            poller = _begin(clients, group)
            begun(poller.continuation_token())
            _wait(poller, group, again, say)
            break
        except ResourceNotFoundError:
            break
        except AzureError as error:
            if last or _code(error) in _LASTING or not _exists(clients, group):
                raise DiskbookError(_refusal(clients, group, error, again)) from error
    if _exists(clients, group):
        raise DiskbookError(
            f"resource group {group} still exists after its deletion, with {_left(clients, group)}; "
            f"{again} tries again"
        )


def _begin(clients: Clients, group: str) -> Any:
    """Begin a deletion; where another operation is in the way, after it."""
    for pause_s in CONFLICT_PAUSES_S:
        try:
            return clients.resource.resource_groups.begin_delete(group)
        except HttpResponseError as error:
            if error.status_code != 409 or _code(error) in _LASTING:
                raise
        time.sleep(pause_s * clients.cloud.time_scale)
    return clients.resource.resource_groups.begin_delete(group)


def _wait(poller: Any, group: str, again: str, say: Say) -> None:
    began = said = time.monotonic()
    while not poller.done():
        poller.wait(1.0)
        now = time.monotonic()
        if now - began > PATIENCE_S:
            raise DiskbookError(
                f"resource group {group} is still being deleted after {(now - began) / 60:.0f} min; it "
                f"goes on without us: {again} waits for it"
            )
        if now - said > NEWS_S:
            said = now
            say(f"resource group {group} is being deleted since {(now - began) / 60:.0f} min")
    poller.result()


def _taken_up(clients: Clients, group: str, token: str, again: str, say: Say) -> bool:
    """Wait for a deletion begun earlier; False when it is not known any more and the group still there."""
    if not _leads_to(token, clients):
        return False
    with contextlib.suppress(AzureError, ValueError):  # an old token: then the deletion is begun again
        poller = clients.resource.resource_groups.begin_delete(group, continuation_token=token)
        say(f"resource group {group} is being deleted already; waiting for it")
        _wait(poller, group, again, say)
    return not _exists(clients, group)


def _leads_to(token: str, clients: Clients) -> bool:
    """Whether a continuation token polls this cloud only: our access token goes wherever it leads.

    It comes out of a manifest, and manifests are passed on.
    """
    endpoint = urlsplit(clients.cloud.endpoint or "https://management.azure.com")
    try:
        headers = json.loads(base64.b64decode(token))["data"]["response"]["headers"]
        urls = [urlsplit(value) for key, value in headers.items() if key.lower() in _POLLED]
    except (binascii.Error, ValueError, KeyError, TypeError, AttributeError):
        return False
    return all((url.scheme, url.netloc) == (endpoint.scheme, endpoint.netloc) for url in urls)


_POLLED = {"location", "azure-asyncoperation", "operation-location"}


def _tell(run: Run, text: str, say: Say | None) -> None:
    """Say a line, and keep it; a full disk, for one, is no reason to leave a group standing."""
    with contextlib.suppress(DiskbookError):
        run.append("deletion", text=text)
    if say:
        say(text)


def _remember(run: Run, group: str, token: str) -> None:
    with contextlib.suppress(DiskbookError):
        rows = run.manifest["resource_groups"]
        run.update_manifest(
            resource_groups=[{**row, "deletion": token} if row["name"] == group else row for row in rows]
        )


def _exists(clients: Clients, group: str) -> bool:
    return find(clients, group) is not None


def _code(error: AzureError) -> str | None:
    return getattr(getattr(error, "error", None), "code", None)


def _refusal(clients: Clients, group: str, error: AzureError, again: str) -> str:
    remedy = f"{again} tries again"
    if _code(error) == "ScopeLocked":
        remedy = f"remove the lock ('az lock list -g {group}' shows it), then {again}"
    return f"delete resource group {group}: {azure_message(error)}; left: {_left(clients, group)}; {remedy}"


def _left(clients: Clients, group: str) -> str:
    """Name what is left in a group, for a message."""
    try:
        return ", ".join(_short(one.id) for one in contents(clients, group)) or "nothing in it"
    except AzureError as error:
        return f"unknown ({azure_message(error)})"


def contents(clients: Clients, group: str) -> list[Any]:
    """Return the resources in a group, machines and disks first."""
    found = list(clients.resource.resources.list_by_resource_group(group))
    order = [*_MAIN]

    def rank(one: Any) -> tuple[int, str, str]:
        kind = _kind(one.type)
        return (order.index(kind) if kind in order else len(order), one.type, one.name)

    return sorted(found, key=rank)


def counted(resources: Iterable[Any]) -> str:
    """Say how many resources there are: "1 machine, 2 disks, 4 others"."""
    counts = Counter(_MAIN.get(_kind(one.type), "other") for one in resources)
    kinds = [kind for kind in (*_MAIN.values(), "other") if counts[kind]]
    return ", ".join(f"{counts[kind]} {kind}{'s' * (counts[kind] > 1)}" for kind in kinds) or "nothing"


def check_elsewhere(clients: Clients, run: Run) -> None:
    """Make sure, once a run's resource groups are deleted, that nothing outside of them carries its tag.

    Raises
    ------
    DiskbookError
        When something does. It is named and left alone.
    """
    rows = run.manifest["resource_groups"]
    if not all(row["deleted_utc"] for row in rows):
        return  # that has been told, and matters more
    own = [row["name"] for row in rows]
    try:
        found = elsewhere(clients, run.name, own)
    except AzureError as error:
        raise DiskbookError(
            f"the resource groups of run {run.name} are deleted, but whether it has left anything elsewhere "
            f"cannot be told ({azure_message(error)})"
        ) from error
    if found:
        raise DiskbookError(
            f"tagged with run {run.name} but outside of its resource groups, so left alone: "
            f"{', '.join(found)}; delete what is not needed, or its tag diskbook-run"
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
    found = [str(one.id) for one in clients.resource.resource_groups.list(filter=tagged)]
    found += [str(one.id) for one in clients.resource.resources.list(filter=tagged)]
    return [one for one in found if _group(one).lower() not in own]


def _group(resource_id: str) -> str:
    parts = resource_id.split("/")
    return parts[4] if len(parts) > 4 else ""


def _kind(resource_type: str) -> str:
    return resource_type.rsplit("/", 1)[-1]


def _short(resource_id: str) -> str:
    kind, name = resource_id.rsplit("/", 2)[-2:]
    return f"{kind} {name}"
