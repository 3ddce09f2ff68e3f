"""Delete resource groups, read back that they are gone, and name what is left where that fails."""

import base64
import binascii
import contextlib
import json
import time
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

from azure.core.exceptions import AzureError, HttpResponseError, ResourceNotFoundError

from diskbook.cloud.azure import inventory, named_group, refusals
from diskbook.cloud.azure.clients import Clients
from diskbook.cloud.azure.refusals import operation
from diskbook.facts.errors import DiskbookError
from diskbook.results.run import Run

Say = Callable[[str], None]
NEWS_S = 60.0  # how often a deletion that takes long says so
PATIENCE_S = 3600.0  # then it is left to Azure, and taken up by the next teardown
CONFLICT_PAUSES_S = (10.0, 20.0, 40.0, 60.0, 60.0)  # unscaled; an operation under way ends meanwhile
_OF_POLICY = ("RequestDisallowedByPolicy", "DenyActionPolicyViolation")
_LASTING = {"ScopeLocked", "AuthorizationFailed", *_OF_POLICY}  # waiting does not help


def delete_group(clients: Clients, run: Run, group: str, say: Say | None = None) -> bool:
    """Delete a run's own group with all it holds, or what the run has in a named one; False without it.

    A deletion that an earlier teardown has begun, and that still runs, is waited for. `say` takes a line when
    the deletion begins, and about once a minute. Raises DiskbookError when the group is not the run's, and so
    is not touched, or still exists afterwards; the message names what is left.
    """

    def announce(text: str) -> None:
        with contextlib.suppress(DiskbookError):  # a full disk is no reason to leave a group standing
            run.append("deletion", text=text)
        if say:
            say(text)

    if prefix := inventory.prefix_in(run, group):
        with operation(run, "delete resources", group, clients):
            return named_group.remove(clients, group, prefix, run.name, announce)
    resource = inventory.find_group(clients, group)
    if resource is None:
        return False
    inventory.check_owner(clients, run, resource)
    spare_foreign(clients, group, run.name, announce)
    known = {row["name"]: row.get("deletion") for row in run.manifest["resource_groups"]}
    with operation(run, "delete resource group", group, clients):
        remove(
            clients,
            group,
            again=f"'diskbook teardown {run.name}'",
            run=run.name,
            token=known.get(group) if resource.properties.provisioning_state == "Deleting" else None,
            begun=lambda token: _record_token(run, group, token),
            say=announce,
        )
    return True


class LeftStandingError(DiskbookError):
    """A resource group still stands, and what is in it may cost money."""

    exit_code = 3


def spare_foreign(clients: Clients, group: str, run: str, say: Say) -> None:
    """Delete only the run's resources if its own group holds others as well, and say how to delete the rest.

    Raises LeftStandingError, which names the foreign resources, if there are any.
    """
    others = inventory.foreign(inventory.contents(clients, group), run)
    if not others:
        return
    say(f"deleting the resources of run {run} in {group} one by one: it holds others as well")
    left = _remove_own(clients, group, run)
    own = f"these of the run could not be deleted: {', '.join(left)}" if left else "the run's own are deleted"
    raise LeftStandingError(
        f"resource group {group} still stands and may cost money. It holds "
        f"{inventory.foreign_text(others, run)}; {own}. To delete all of it: 'diskbook sweep --delete "
        f"--group {group} --with-foreign', or 'az group delete --name {group} --subscription "
        f"{clients.cloud.subscription}'"
    )


def remove(
    clients: Clients,
    group: str,
    *,
    again: str,
    run: str = "",
    token: str | None = None,
    begun: Callable[[str], None] = lambda token: None,
    say: Say = lambda text: None,
) -> None:
    """Delete a resource group, whatever its tags, and wait until it is gone.

    - `again`: command that takes the deletion up again, for messages.
    - `run`: whose resources go one by one where a lock, policy or missing right refuses the whole for good.
    - `token`, `begun`: continuation token of a deletion under way; takes that of a new one.

    Raises LeftStandingError when it is refused, fails twice, or takes longer than `PATIENCE_S`.
    """
    if token and _resumed(clients, group, token, again, say):
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
                if run and _code(error) in _LASTING:
                    say(f"resource group {group} cannot be deleted; deleting what is in it one by one")
                    with contextlib.suppress(AzureError):  # why the group stands matters more
                        _remove_own(clients, group, run)
                raise LeftStandingError(_refusal(clients, group, error, again)) from error
    if _exists(clients, group):
        left = inventory.left_text(clients, group)
        raise LeftStandingError(
            f"resource group {group} still exists after its deletion, with {left}; {again} tries again"
        )


def _remove_own(clients: Clients, group: str, run: str) -> list[str]:
    """Delete the run's resources in its own group; return what could not be deleted, and why."""
    rows = inventory.contents(clients, group)
    own = {row.id.lower() for row in rows} - {row.id.lower() for row in inventory.foreign(rows, run)}
    return named_group.remove_own(clients, group, lambda row: row.id.lower() in own)


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
    began = last_news = time.monotonic()
    while not poller.done():
        poller.wait(1.0)
        now = time.monotonic()
        if now - began > PATIENCE_S:
            raise LeftStandingError(
                f"resource group {group} is still being deleted after {(now - began) / 60:.0f} min; it "
                f"goes on without us: {again} waits for it"
            )
        if now - last_news > NEWS_S:
            last_news = now
            say(f"resource group {group} is being deleted since {(now - began) / 60:.0f} min")
    poller.result()


def _resumed(clients: Clients, group: str, token: str, again: str, say: Say) -> bool:
    """Wait for a deletion begun earlier; False when it is not known any more and the group still there."""
    if not _polls_this_cloud(token, clients):
        return False
    with contextlib.suppress(AzureError, ValueError):  # an old token: then the deletion is begun again
        poller = clients.resource.resource_groups.begin_delete(group, continuation_token=token)
        say(f"resource group {group} is being deleted already; waiting for it")
        _wait(poller, group, again, say)
    return not _exists(clients, group)


def _polls_this_cloud(token: str, clients: Clients) -> bool:
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


def _record_token(run: Run, group: str, token: str) -> None:
    with contextlib.suppress(DiskbookError):
        rows = run.manifest["resource_groups"]
        run.update_manifest(
            resource_groups=[{**row, "deletion": token} if row["name"] == group else row for row in rows]
        )


def _exists(clients: Clients, group: str) -> bool:
    return inventory.find_group(clients, group) is not None


def _code(error: AzureError) -> str | None:
    return getattr(getattr(error, "error", None), "code", None)


def _refusal(clients: Clients, group: str, error: AzureError, again: str) -> str:
    remedy = f"{again} tries again"
    if _code(error) == "ScopeLocked":
        remedy = f"remove the lock ('az lock list -g {group}' shows it), then {again}"
    left = inventory.left_text(clients, group)
    return f"delete resource group {group}: {refusals.message(error)}; left: {left}; {remedy}"
