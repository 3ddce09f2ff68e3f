"""How long provisioning takes on the emulator, against what no order could beat: `make bench-provision`.

Prints wall time, the longest chain of operations, their ratio, and the requests that went over the wire, for
the scenario zone-disks with one replicate and with three. Beside them stands the time of the order in which
the article's own script creates its things, each after the one before. Delays are those of the emulator's
profile, recorded where a recording was found; none of this says how fast Azure is.
"""

import os
import sys
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from azure.core.rest import HttpRequest

from diskbook.cloud import connect, kinds
from diskbook.cloud.azure import provision
from diskbook.cloud.azure.create import Maker
from diskbook.design.model import Scenario
from diskbook.measure.runs import stages
from diskbook.results.run import Run

SCENARIO = "zone-disks"
SCALE = 0.2  # the machine's own work counts five times at this scale, ten times at 0.1
ALLOWED = 1.15
REPLICATES = (1, 3)

# What a step makes: type in Azure, and what is added to the machine's name.
_MADE = {
    "security group": ("networksecuritygroups", "nsg"),
    "network": ("virtualnetworks", "net"),
    "address": ("publicipaddresses", "-ip"),
    "interface": ("networkinterfaces", "-nic"),
    "machine": ("virtualmachines", ""),
    "disk": ("disks", ""),
}
# The article (data/reference/published-setups.csv) has no public address, and one disk of each kind.
_NOT_IN_ARTICLE = ("address ", "security group", "lrs-b", "lrs-z2", "lrs-z3")


@dataclass(frozen=True)
class Timing:
    """One provisioning. All times in s of the emulator's own clock, as Azure would take them."""

    replicates: int
    wall_s: float
    checks_s: float
    chain_s: float
    chain: tuple[str, ...]
    serial_s: float
    requests: int

    @property
    def ratio(self) -> float:
        """Wall time / longest chain."""
        return self.wall_s / self.chain_s


def main() -> None:
    """Measure and print; exit with 1 where a ratio is above what is allowed."""
    import azure.mgmt.compute  # loading the SDK takes a second, once a session: not timed
    import azure.mgmt.network
    import azure.mgmt.resource.resources  # noqa: F401

    rows = [measure(replicates) for replicates in REPLICATES]
    print("\n".join(table(rows)))
    sys.exit(status(rows))


def measure(replicates: int, scale: float = SCALE) -> Timing:
    """Provision the scenario on an emulator of its own, and take it down again."""
    with TemporaryDirectory(prefix="diskbook-bench-") as place:
        folder = Path(place) / f"bench-{os.getpid()}-{replicates}"
        overrides = {"design.replicates": replicates}
        run = stages.begin(str(folder), SCENARIO, "emulator", "quick", overrides, {"time_scale": scale})
        try:
            kinds.of(run).start(run, owner=True)
            began_utc, began = datetime.now(UTC), time.monotonic()
            stages.provision(run)
            return _timing(run, began_utc, (time.monotonic() - began) / scale, scale)
        finally:
            stages.teardown(run)


def _timing(run: Run, began_utc: datetime, wall_s: float, scale: float) -> Timing:
    clients, scenario = connect.clients_of(run), run.scenario
    needs = needs_of(run, scenario)
    durations_s = durations(needs, operations(clients))
    chain_s, chain = provision.longest_chain(needs, durations_s)
    events = run.ledger()
    requests = next(event["requests"] for event in events if event["event"] == "stage")
    first = next(event["started_utc"] for event in events if event["event"] == "operation")
    checks_s = (datetime.fromisoformat(first) - began_utc).total_seconds() / scale
    timed = tuple(step for step in chain if durations_s.get(step))
    return Timing(
        replicates=scenario.design.replicates,
        wall_s=wall_s,
        checks_s=checks_s,
        chain_s=chain_s,
        chain=timed,
        serial_s=serial_s(durations_s),
        requests=sum(requests.values()),
    )


def needs_of(run: Run, scenario: Scenario) -> dict[str, tuple[str, ...]]:
    """Steps of provisioning a scenario, with the steps that each needs; nothing is done."""
    place = provision.Place("group", scenario.region, {})
    maker = Maker(connect.clients_of(run), run, place, {})
    steps = provision.steps(maker, scenario, list(stages.origins(scenario)))
    return {name: step.needs for name, step in steps.items()}


def operations(clients: Any) -> dict[tuple[str, str], float]:
    """Time in s of the operations that the emulator has done, by type and name of what they made."""
    request = HttpRequest("GET", f"{clients.cloud.endpoint}/diskbook/operations")
    answer = clients.resource.send_request(request)
    answer.raise_for_status()
    longest: dict[tuple[str, str], float] = {}
    for row in answer.json()["value"]:
        kind, name = row["target"].lower().split("/")[-2:]
        longest[kind, name] = longest.get((kind, name), 0.0) + row["delay_s"]
    return longest


def durations(steps: Iterable[str], operations_s: Mapping[tuple[str, str], float]) -> dict[str, float]:
    """Time in s of each step that is an operation; the others have none."""
    seconds = {}
    for step in steps:
        made = next((kind for kind in _MADE if step == kind or step.startswith(f"{kind} ")), None)
        if made is not None:
            kind, ending = _MADE[made]
            seconds[step] = operations_s[kind, f"{step.removeprefix(made).strip()}{ending}"]
    return seconds


def serial_s(durations_s: Mapping[str, float]) -> float:
    """Time in s of the article's order: network, then machine after machine and disk after disk."""
    return sum(
        seconds for step, seconds in durations_s.items() if not any(word in step for word in _NOT_IN_ARTICLE)
    )


def table(rows: Iterable[Timing]) -> list[str]:
    lines = [
        f"Provisioning {SCENARIO} (emulated; delays of the profile, time scale {SCALE}, times unscaled)",
        "",
        f"{'replicates':>10}{'wall s':>9}{'checks s':>10}{'chain s':>9}{'ratio':>7}{'requests':>10}"
        f"{'serial s':>10}",
    ]
    for row in rows:
        lines.append(
            f"{row.replicates:>10}{row.wall_s:>9.1f}{row.checks_s:>10.1f}{row.chain_s:>9.1f}{row.ratio:>7.3f}"
            f"{row.requests:>10}{row.serial_s:>10.1f}"
        )
        longest = " -> ".join(row.chain)
    return [
        *lines,
        "",
        f"Longest chain: {longest}.",
        f"Allowed: {ALLOWED} x the chain. Wall time is that of the whole stage: checks of quota and prices",
        "before anything is created, the group, every operation, reading back, the first sign-in everywhere.",
        "Serial: the article's order, each thing created after the one before (sum of the operations).",
    ]


def status(rows: Iterable[Timing]) -> int:
    """Exit status: 1 where provisioning took longer than allowed."""
    return int(any(row.ratio > ALLOWED for row in rows))


if __name__ == "__main__":
    main()
