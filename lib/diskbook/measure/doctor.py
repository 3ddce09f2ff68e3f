"""Check what a run on Azure needs: the subscription, the way there, and room for results here. Only reads.

The checks of this computer: whether runs can be written, with room for their results.
"""

import os
import shutil
import socket
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import date, timedelta
from functools import partial
from pathlib import Path
from typing import Any

from azure.core import PipelineClient
from azure.core.exceptions import AzureError
from azure.core.pipeline.policies import RetryPolicy
from azure.core.rest import HttpRequest
from azure.core.settings import settings
from azure.mgmt.core.tools import get_arm_endpoints

from diskbook.cloud import connect
from diskbook.cloud.azure import expiry, monitor, offers, preflight, refusals, signin
from diskbook.cloud.azure.clients import Clients, Cloud
from diskbook.cloud.kinds import Asked, Check, State, look, not_asked
from diskbook.cost import budget, estimate as cost_estimate, retail
from diskbook.design.model import Scenario
from diskbook.design.vocabulary import Provenance
from diskbook.facts.errors import DiskbookError
from diskbook.facts.prices import PriceList
from diskbook.results import run as runs


def all_ok(checks: Sequence[Check]) -> bool:
    """Whether a run may begin."""
    return all(check.state == State.OK for check in checks)


def text_of(subject: str, checks: Sequence[Check]) -> str:
    """A line a check, and in the last one whether a run may begin."""
    width = max(len(check.name) for check in checks)
    lines = [f"{check.state:<9}  {check.name:<{width}}  {check.text}" for check in checks]
    bad = sum(check.state != State.OK for check in checks)
    last = "all is there; nothing was created" if not bad else f"{bad} of {len(checks)} lines to mend first"
    return "\n".join([f"{subject}:", *lines, last])


SPARE_BYTES = 10**9
"""Raw results, tables and figures of a run, and what grows beside it."""


def runs_folder() -> str:
    """Make sure that runs can be written, with some room."""
    folder = existing(runs.runs_root())
    if not os.access(folder, os.W_OK):
        raise DiskbookError(f"{folder} cannot be written: make it yours, or name another with DISKBOOK_RUNS")
    return room(folder, SPARE_BYTES, "name another folder of runs with DISKBOOK_RUNS")


def existing(folder: Path) -> Path:
    """The folder, or the nearest above it that is there."""
    return next(path for path in (folder, *folder.parents) if path.exists())


def room(folder: Path, needed: int, remedy: str) -> str:
    """Say how much is free in a folder; raise DiskbookError with the remedy if that is less than needed."""
    free = shutil.disk_usage(folder).free
    if free < needed:
        raise DiskbookError(
            f"{folder} has {free / 1e9:.1f} GB free and a run needs about {needed / 1e9:.1f}: make room, or "
            f"{remedy}"
        )
    return f"{folder}: {free / 1e9:.1f} GB free, about {needed / 1e9:.1f} needed"


TIMEOUT_S = 5
SSH_PORT = 22
AUTHORITY = "https://login.microsoftonline.com"
_BY_MACHINE = ("IDENTITY_ENDPOINT", "MSI_ENDPOINT")  # where a managed identity signs in instead
_REACH = (
    "let this machine out to it (port 443; HTTPS_PROXY names a proxy, REQUESTS_CA_BUNDLE the certificates of "
    "one that looks into TLS)"
)
_OF_SUBSCRIPTION = ("role", "providers", "sizes and disks", "quota", "images", "stays behind")
WATCHER_GROUP = "NetworkWatcherRG"
"""Where Azure enables Network Watcher by itself (learn.microsoft.com/azure/network-watcher)."""


def checks(scenario: Scenario, asked: Asked, today: date) -> list[Check]:
    """Look at all of it; what rests on something that failed is not asked."""
    rows = [
        look("folder of runs", runs_folder),
        look("SSH source", lambda: connect.find_ssh_source(asked.ssh_source)),
    ]
    if (host := asked.try_ssh) is not None:
        rows.append(look("way to port 22", lambda: _try_ssh(host)))
    named, clients = _named(asked.subscription)
    if clients is None:
        rest = not_asked(("Resource Manager", "sign-in", *_OF_SUBSCRIPTION), "no subscription to ask")
        return [*rows, named, *rest, *_money(scenario, None, asked, today)]
    reached = [look(name, partial(_reach, url, clients)) for name, url in _hosts(clients, scenario)]
    if reached[0].state == State.OK:
        signed, cloud = _signed(clients, scenario)
    else:  # a sign-in would be tried for a minute
        signed, cloud = not_asked(("sign-in",), f"{reached[0].name} does not answer")[0], clients.cloud
    if signed.state == State.OK:
        rest = _of_subscription(clients, scenario, today)
    else:
        rest = not_asked(_OF_SUBSCRIPTION, "nobody is signed in")
    return [*rows, named, *reached, signed, *rest, *_money(scenario, cloud, asked, today)]


def _named(given: str | None) -> tuple[Check, Clients | None]:
    """The subscription that is named, and its clients."""
    made: list[Clients] = []

    def name() -> str:
        chosen = signin.find_subscription(given)
        made.append(connect.azure_clients(chosen.id))
        return f"{chosen.id}, from {chosen.source}"

    return look("subscription", name), made[0] if made else None


# The way there


def _hosts(clients: Clients, scenario: Scenario) -> list[tuple[str, str]]:
    """What a run talks to, by name; a managed identity signs in on its own machine."""
    own = clients.cloud.endpoint
    manager = own or str(get_arm_endpoints(settings.azure_cloud())["resource_manager"])
    hosts = [("Resource Manager", manager)]
    if not any(os.environ.get(name) for name in _BY_MACHINE):
        authority = os.environ.get("AZURE_AUTHORITY_HOST") or AUTHORITY
        hosts.append(
            ("sign-in service", authority if authority.startswith("https://") else f"https://{authority}")
        )
    if own is None:
        hosts.append(("metrics", monitor.host_of(scenario.region)))
    return hosts


def _reach(url: str, clients: Clients) -> str:
    """Get any answer of a host, whatever it says: nobody is signed in for this."""
    ca = clients.cloud.ca
    verify: dict[str, Any] = {"connection_verify": str(ca)} if ca else {}
    client: PipelineClient[Any, Any] = PipelineClient(
        url, policies=[RetryPolicy(retry_total=0)], connection_timeout=TIMEOUT_S,
        read_timeout=TIMEOUT_S, **verify,
    )  # fmt: skip
    with client:
        try:
            status = client.send_request(HttpRequest("GET", url)).status_code
        except AzureError as error:
            raise DiskbookError(f"{url} cannot be reached ({refusals.message(error)}): {_REACH}") from error
    return f"{url} answers (HTTP {status})"


def _try_ssh(host: str) -> str:
    """Open a connection to a host's port 22, where machines of a run listen, and close it unused."""
    try:
        socket.create_connection((host, SSH_PORT), TIMEOUT_S).close()
    except OSError as error:
        raise DiskbookError(
            f"{host}, port 22, cannot be reached ({error}): if it is up, let this machine out to port 22, "
            "run from another network, or use an existing network (network.kind=private) with a Bastion"
        ) from error
    return f"{host} takes connections at port 22"


def _signed(clients: Clients, scenario: Scenario) -> tuple[Check, Cloud]:
    """Who is signed in, and the cloud as its endpoint says it is: Azure, or emulated."""
    made: list[signin.Identity] = []

    def sign_in() -> str:
        made.append(signin.identity(clients, scenario.region))
        return str(made[0])

    row = look("sign-in", sign_in)
    emulated = bool(made) and made[0].provenance == Provenance.EMULATED
    return row, replace(clients.cloud, emulated=emulated)


# The subscription


def _of_subscription(clients: Clients, scenario: Scenario, today: date) -> list[Check]:
    problems: list[str] = []

    def offered() -> str:
        problems.extend(preflight.problems_of(clients, scenario, scenario.design.replicates, today))
        _refuse([text for text in problems if not _is_quota(text)])
        return f"to be had in {scenario.region} for {_size(scenario)}"

    def quota() -> str:
        _refuse([text for text in problems if _is_quota(text)])
        return f"enough is free in {scenario.region} for {_size(scenario)}"

    asked: Mapping[str, Callable[[], str]] = {
        "role": lambda: _role(clients, scenario),
        "providers": lambda: _providers(clients, scenario),
        "sizes and disks": offered,
    }
    rows = [look(name, ask) for name, ask in asked.items()]
    known = rows[-1].state == State.OK or bool(problems)
    rows += [look("quota", quota)] if known else not_asked(("quota",), "the lists of the region did not come")
    rows.append(look("images", lambda: _images(clients, scenario)))
    return [*rows, look("stays behind", lambda: _stays_behind(clients, scenario))]


def _is_quota(problem: str) -> bool:
    return problem.startswith("quota:")


def _refuse(problems: Sequence[str]) -> None:
    if problems:
        raise DiskbookError(". ".join(problems))


def _size(scenario: Scenario) -> str:
    count = scenario.design.replicates
    return f"{count} replicate{'s' * (count > 1)} of {scenario.name}, preset {scenario.preset}"


def _role(clients: Clients, scenario: Scenario) -> str:
    needs = signin.needs(scenario, clients.cloud.subscription)
    for need in needs:
        if missing := signin.access_refused(clients, need):
            more = f" and {len(missing) - 3} more" if len(missing) > 3 else ""
            role = "Network Contributor" if "/subnets/" in need.scope else "Contributor"
            raise DiskbookError(
                f"the account may not {', '.join(missing[:3])}{more}: ask the owner for the role {role} ('az "
                f'role assignment create --assignee ACCOUNT --role "{role}" --scope {need.scope}\')'
            )
    return f"may do all {sum(len(need.actions) for need in needs)} things that a run does"


def _providers(clients: Clients, scenario: Scenario) -> str:
    needed = signin.providers(scenario)
    missing = signin.unregistered(clients, needed)
    if missing:
        commands = " && ".join(f"az provider register --namespace {name} --wait" for name in missing)
        raise DiskbookError(f"not registered in this subscription: {', '.join(missing)}; run '{commands}'")
    return f"{', '.join(needed)} are registered"


def _images(clients: Clients, scenario: Scenario) -> str:
    traits = {machine.size: offers.traits(machine.size, None) for machine in scenario.machine}
    names = sorted(offers.images_needed(scenario, traits))
    versions = [f"{name} {offers.latest_image(clients, scenario.region, name)}" for name in names]
    return ", ".join(versions)


def _stays_behind(clients: Clients, scenario: Scenario) -> str:
    """Say what Azure and its SDK make outside of a run's groups, which no teardown deletes."""
    registered = "a provider that the SDK registers at a run's first request stays registered"
    if scenario.network.is_private:
        return registered
    is_there = clients.resource.resource_groups.check_existence(WATCHER_GROUP)
    made = "is there already" if is_there else "is made by Azure with the first network of a region"
    return f"resource group {WATCHER_GROUP} {made}; it costs nothing and no teardown deletes it; {registered}"


# Money


def _money(scenario: Scenario, cloud: Cloud | None, asked: Asked, today: date) -> list[Check]:
    source = None if cloud is None else budget.price_source(cloud)
    prices = retail.look_up(scenario.region, cost_estimate.meters(scenario), source, today)
    if cloud is None:
        row = not_asked(("prices",), "no subscription says of which cloud")
    else:
        row = [look("prices", lambda: _prices(prices, source))]
    return [*row, look("cost", lambda: _cost(scenario, prices, asked))]


def _prices(prices: PriceList, source: retail.Endpoint | None) -> str:
    live = [price for price in prices.prices.values() if price.quality == "live"]
    if source is None:
        return f"the {prices.source}: the price list is that of Azure's own cloud, and not asked for another"
    if not live:
        raise DiskbookError(
            f"{prices.notes[0]}; let this machine out to {source.url}, or name another address with "
            f"{retail.ENDPOINT}; a run would go on by the {prices.source}"
        )
    notes = "".join(f"; {note}" for note in prices.notes)
    return f"{len(live)} of {len(prices.prices)} from the {prices.source}{notes}"


def _cost(scenario: Scenario, prices: PriceList, asked: Asked) -> str:
    life = timedelta(hours=asked.expires_h or expiry.DEFAULT_H)
    estimate = cost_estimate.estimate(scenario, prices, life.total_seconds() / 3600)
    limit = budget.limit_of(scenario, "azure", asked.max_cost_usd)
    _refuse([text for text in [budget.too_dear(estimate, limit)] if text])
    return (
        f"{estimate.usd:.2f} USD expected, {estimate.worst_usd:.2f} USD if it is never torn down and expires "
        f"after {round(estimate.worst_hours, 1):g} h; the limit is {limit:g} USD"
    )
