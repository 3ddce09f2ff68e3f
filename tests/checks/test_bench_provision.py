"""The bench of provisioning: its graph, its sums, its exit status. It is not timed here."""

from __future__ import annotations

from pathlib import Path

import pytest

from checks import bench_provision
from checks.bench_provision import Timing
from diskbook.cloud.azure import provision
from diskbook.cloud.azure.clients import Clients, Cloud
from diskbook.cloud.azure.create import Maker
from diskbook.design import scenario_file
from diskbook.facts.arm import DELAYS_S
from diskbook.results.run import Run


def _needs(replicates: int) -> dict[str, tuple[str, ...]]:
    scenario = scenario_file.load("zone-disks", "quick", {"design.replicates": replicates})
    place = provision.Place("group", scenario.region, {})
    maker = Maker(Clients(Cloud("emulator", "none", None)), Run(Path("none")), place, {})
    steps = provision.steps(maker, scenario, range(1, replicates + 1))
    return {name: step.needs for name, step in steps.items()}


def _operations(replicates: int) -> dict[tuple[str, str], float]:
    """As the emulator would tell them, with delays as recorded."""
    delays = DELAYS_S
    found = {
        ("networksecuritygroups", "nsg"): delays["nsg"],
        ("virtualnetworks", "net"): delays["vnet"],
    }
    for number in range(1, replicates + 1):
        for vm in ("vm1", "vm2", "vm3"):
            found["publicipaddresses", f"r{number}-{vm}-ip"] = delays["public-ip"]
            found["networkinterfaces", f"r{number}-{vm}-nic"] = delays["nic"]
            found["virtualmachines", f"r{number}-{vm}"] = delays["vm-create-zonal"]
        for disk in ("lrs", "lrs-b", "lrs-z2", "lrs-z3", "zrs"):
            found["disks", f"r{number}-{disk}"] = delays["disk-create"]
    return found


@pytest.mark.parametrize("replicates", [1, 3])
def test_replicates_do_not_lengthen_the_chain(replicates: int) -> None:
    needs = _needs(replicates)
    durations_s = bench_provision.durations(needs, _operations(replicates))
    assert len(durations_s) == 2 + replicates * (3 * 3 + 5)
    chain_s, chain = provision.longest_chain(needs, durations_s)
    assert chain_s == 3.0 + 0.5 + 168.0  # network, interface, machine
    timed = [step.split()[0] for step in chain if durations_s.get(step)]
    assert timed == ["network", "interface", "machine"]
    # The article: network; three machines with an interface each; one disk of each kind.
    assert bench_provision.serial_s(durations_s) == 3.0 + replicates * (3 * 168.5 + 2 * 0.5)


def test_what_can_be_begun_at_once_needs_nothing() -> None:
    needs = _needs(2)
    at_once = {name.split()[0] for name, before in needs.items() if not before}
    assert at_once == {"sizes", "security", "network", "address", "disk"}
    assert needs["images"] == ("sizes",)  # a size's processors decide the image
    assert needs["machine r2-vm1"] == ("interface r2-vm1", "sizes", "images")


def _timing(ratio: float) -> Timing:
    return Timing(1, 100.0 * ratio, 4.0, 100.0, ("network", "machine r1-vm1"), 509.5, 268)


def test_the_exit_status_says_whether_it_took_too_long() -> None:
    assert bench_provision.status([_timing(1.0), _timing(1.15)]) == 0
    assert bench_provision.status([_timing(1.0), _timing(1.16)]) == 1


def test_the_table_says_emulated_and_names_the_chain() -> None:
    lines = bench_provision.table([_timing(1.1)])
    assert "emulated" in lines[0]
    assert lines[3].split() == ["1", "110.0", "4.0", "100.0", "1.100", "268", "509.5"]
    assert "network -> machine r1-vm1" in lines[5]
