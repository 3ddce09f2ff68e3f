"""Sections of `diskbook plan` on creating and paying: offline, unless Azure or its prices are asked.

For your own hosts the sections say what would be written there. That costs nothing.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta
from typing import Any

from azure.core.exceptions import AzureError

from diskbook.cloud import connect, kinds
from diskbook.cloud.azure import expiry, offers, preflight, refusals, signin
from diskbook.cloud.azure.clients import Clients
from diskbook.cost import budget, plan_sections, retail
from diskbook.cost.estimate import Estimate
from diskbook.design.model import Scenario
from diskbook.design.vocabulary import Provenance
from diskbook.facts.errors import DiskbookError
from diskbook.facts.units import GIB
from diskbook.hosts import hosts_file
from diskbook.results import run as runs


@dataclass(frozen=True)
class Creation:
    """What would be created: its sections of the plan, and what it costs."""

    sections: list[str]
    estimate: Estimate


def creation(
    scenario: Scenario,
    cloud: str = "emulator",
    *,
    subscription: str | None = None,
    live: bool = False,
    limit: float | None = None,
    expires_h: float | None = None,
) -> Creation:
    """Say what would be created, with its limits, cost and quota, and what stands in the way.

    Cloud "azure" asks the subscription what it may have, and the Retail Prices API; `live` asks for these
    prices also for an emulated run. `expires_h` bounds what a run costs that is never torn down. Raises
    DiskbookError when Azure is asked and nobody is signed in, or it cannot be reached.
    """
    kinds.check(cloud)
    clients = connect.azure_clients(subscription) if cloud == "azure" else None
    identity = signin.identity(clients, scenario.region) if clients else None
    asked = _price_source(clients, identity)
    life = timedelta(hours=expires_h or expiry.DEFAULT_H)
    estimate = budget.estimated(scenario, asked or (retail.Endpoint() if live else None), life, date.today())
    binding = budget.limit_of(scenario, cloud, limit)
    texts = [
        plan_sections.created(scenario, estimate),
        plan_sections.limits(scenario),
        "\n".join(
            [
                plan_sections.cost(estimate, binding, cloud),
                *plan_sections.shares(scenario, estimate),
            ]
        ),
    ]
    texts += _of_subscription(scenario, clients, identity) if clients and identity else [_quota(scenario)]
    return Creation(texts, estimate)


def _price_source(clients: Clients | None, identity: signin.Identity | None) -> retail.Endpoint | None:
    """Say where prices are asked for. An emulator has its own; only the endpoint says that it is one."""
    if clients is None or identity is None:
        return retail.endpoint()
    emulated = identity.provenance == Provenance.EMULATED
    return budget.price_source(replace(clients.cloud, emulated=emulated))


def _quota(scenario: Scenario) -> str:
    """Quota needed, from the table of sizes; names of address quotas differ, so that one is said in words."""
    need = preflight.needed(scenario, offers.Region(scenario.region))
    replicates = scenario.design.replicates
    rows = [(name, count * replicates) for name, count in need.items() if name not in preflight.ADDRESSES]
    renamed = [
        ("vCPUs of the region" if name == preflight.CORES else f"vCPUs, {name}", n) for name, n in rows
    ]
    if scenario.network.is_private:
        return plan_sections.quota([], renamed)
    return plan_sections.quota([], [*renamed, ("public addresses", len(scenario.machine) * replicates)])


def _of_subscription(scenario: Scenario, clients: Clients, identity: signin.Identity) -> list[str]:
    """Ask the subscription what is free, and what stands in the way."""
    try:
        here = offers.ask(clients, scenario.region)
        replicates = scenario.design.replicates
        need: Sequence[tuple[offers.Quota, int]] = preflight.quota_rows(scenario, here, replicates)
        problems = preflight.problems_of(clients, scenario, replicates, date.today())
        differ = offers.of_scenario(scenario, here)
    except AzureError as error:
        raise DiskbookError(f"Azure cannot say what is free: {refusals.message(error)}") from error
    lines = [f"  {problem}" for problem in problems] or [
        "  nothing: sizes, zones, disks and quotas are to be had"
    ]
    return [
        plan_sections.quota(need, []),
        "\n".join([f"what stands in the way ({identity}):", *lines]),
        *(
            ["\n".join(["where Azure and the table of sizes differ:", *(f"  {text}" for text in differ)])]
            if differ
            else []
        ),
    ]


def own_sections(scenario: Scenario, asked: Mapping[str, Any]) -> tuple[Scenario, list[str]]:
    """Return the scenario as it is on such hosts (`hosts` or `folder`), and what the plan says of them.

    No host is asked. Raises UsageError as a run would.
    """
    own = hosts_file.as_own(scenario)
    hosts = connect.choose_hosts(asked, own, runs.runs_root() / "RUN")
    needed = max(load.working_set_bytes for load in own.workload) / GIB
    lines = ["would be measured, and removed or released at the end:", *_places(hosts["hosts"], needed)]
    return own, ["\n".join(lines), "cost: 0 USD; hosts of your own are not Azure's to bill"]


def _places(hosts: Mapping[str, Any], needed_gib: float) -> Iterator[str]:
    for machine, host in hosts.items():
        where = host["address"] or "this machine"
        for disk, place in host["places"].items():
            what = f"device {place['device']}" if "device" in place else f"a file in or at {place['path']}"
            yield f"  {disk} of {machine}: {what}, {needed_gib:.3g} GiB, on {host['name']} ({where})"
