"""How many requests a run sends to Azure, and the documented buckets that these are drawn from.

Creating is counted as the run counts itself (`RequestCount`): a test holds both against each other. Moves are
those that `plan` says. Left out: sign-in, metrics, prices, and whatever Azure asks to have sent again.
"""

from collections import Counter
from dataclasses import dataclass

from diskbook.cloud.azure import preflight
from diskbook.cloud.azure.clients import poll_interval_s
from diskbook.cost import durations
from diskbook.design.model import Scenario
from diskbook.facts.arm import DELAYS_S

NAMED_S = 50.0
"""Time between polls that Azure names in its first answer about a new machine."""
# Checks of offers, quotas, policies and zones before the first create, and the group.
_FIRST = {
    "GET skus": 2, "GET usages": 2, "GET resourceGroups": 1,
    "GET locations": 1, "PUT resourceGroups": 1, "GET publishers/artifacttypes/offers/skus/versions": 1,
}  # fmt: skip
_NETWORK = ("networkSecurityGroups", "virtualNetworks")
_OF_MACHINE = ("networkInterfaces", "virtualMachines")
_TEARDOWN = 6  # the group, what is in it, its deletion, whether it is gone, and what is elsewhere


@dataclass(frozen=True)
class Bucket:
    """Requests that may be sent at once, and how many more each second."""

    name: str
    capacity: float
    refill_per_s: float


RESOURCE_MANAGER = (
    Bucket("reads", 250, 25),
    Bucket("writes", 200, 10),
    Bucket("deletes", 200, 10),
)
"""Of a subscription, sign-in and region, by Microsoft's page "Understand how Azure Resource Manager throttles
requests", read on 2026-11-23. All sign-ins of a subscription together have 15 times as much."""


@dataclass(frozen=True)
class Requests:
    """Requests of one run, all replicates together.

    - `writes`, `reads`, `polls`: PUT and PATCH; GET, but those that wait for an operation; those.
    - `moves`: POST of attach and detach (`attach_calls`).
    """

    writes: int
    reads: int
    polls: int
    moves: int

    @property
    def total(self) -> int:
        """All of them."""
        return self.writes + self.reads + self.polls + self.moves


def of_run(scenario: Scenario) -> Requests:
    """Count what a run sends from its first check to its tear-down."""
    made, replicates = creating(scenario), scenario.design.replicates
    calls = durations.attach_calls(scenario)
    moves = replicates * calls.total
    # Before a disk is moved all machines of its replicate are asked where it is; LUNs before and after.
    attached = replicates * durations.moves(scenario)[0]
    looks = attached * (len(scenario.machine) + 2) + 2 * replicates * calls.pools
    return Requests(
        writes=sum(number for kind, number in made.items() if kind.startswith("PUT")),
        reads=sum(number for kind, number in made.items() if not kind.startswith("PUT"))
        + round(looks)
        + _TEARDOWN,
        polls=creation_polls(scenario)
        + round(moves * polls(DELAYS_S["disk-attach"]))
        + polls(DELAYS_S["group-delete"]),
        moves=round(moves),
    )


def creating(scenario: Scenario) -> Counter[str]:
    """Requests that create and read back machines and disks, without polls, by method and kind."""
    replicates = scenario.design.replicates
    machines, disks = replicates * len(scenario.machine), replicates * len(scenario.made_disks())
    local = replicates * sum(scenario.os_disk_of(machine.name) is not None for machine in scenario.machine)
    windows = replicates * sum(machine.os == "windows" for machine in scenario.machine)
    made = Counter(_FIRST)
    made["POST checkPolicyRestrictions"] = len(preflight.contents(scenario, ""))
    made.update({f"{method} {kind}": 1 for kind in _NETWORK for method in ("PUT", "GET")})
    addresses = () if scenario.network.is_private else ("publicIPAddresses",)
    for kind, number in [("disks", disks), *((kind, machines) for kind in (*addresses, *_OF_MACHINE))]:
        made.update({f"PUT {kind}": number, f"GET {kind}": 2 * number})
    made["PUT schedules"] = machines - local
    made.update({f"{method} virtualMachines/extensions": windows for method in ("PUT", "GET")})
    if scenario.witness_redundancy is not None:
        made.update({f"{method} storageAccounts": replicates for method in ("PUT", "GET")})
    return +made


def creation_polls(scenario: Scenario) -> int:
    """Polls while machines and disks are made."""
    replicates, machines = scenario.design.replicates, len(scenario.machine)
    each = polls(
        DELAYS_S["vm-create-zonal" if any(machine.zone for machine in scenario.machine) else "vm-create"],
        NAMED_S,
    )
    each += 0 if scenario.network.is_private else polls(DELAYS_S["public-ip"])
    windows = sum(machine.os == "windows" for machine in scenario.machine)
    of_replicate = machines * each + windows * polls(DELAYS_S["vm-extension"])
    of_replicate += len(scenario.made_disks()) * polls(DELAYS_S["disk-create"])
    return replicates * of_replicate + polls(DELAYS_S["nsg"]) + polls(DELAYS_S["vnet"])


def polls(operation_s: float, named_s: float = 0.0) -> int:
    """How often an operation is polled for its end, at the pace of `azure.polling`."""
    number, waited_s = 0, 0.0
    while waited_s < operation_s:
        waited_s += poll_interval_s(waited_s, named_s)
        number += 1
    return number
