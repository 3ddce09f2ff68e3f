"""Sections of `diskbook plan` for hosts of the user's own: what would be written there; it costs nothing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from diskbook.cloud import connect
from diskbook.design.model import Scenario
from diskbook.facts.units import GIB
from diskbook.hosts import fit
from diskbook.results import run as runs


def sections(scenario: Scenario, asked: Mapping[str, Any]) -> tuple[Scenario, list[str]]:
    """Return the scenario as it is on such hosts, and what the plan says of them; no host is asked.

    Parameters
    ----------
    scenario
        As the file has it.
    asked
        `hosts` or `folder`, as for a run.

    Raises
    ------
    UsageError
        As a run would.
    """
    own = fit.as_own(scenario)
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
