"""The emulated DiskSpd tells how busy the cores were, alone and in a fleet."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from diskbook.clusters.vmfleet import fleet
from diskbook.design.diskspd_arguments import parse
from diskbook.design.vocabulary import GateStatus
from diskbook.stats.gates.guests import CellGuest, guest_gate
from diskbook.tools.diskspd import xml
from diskbook.tools.record import Measurement
from diskbook_emulator import windows_diskspd
from support.fleets import Vm, machine_of, xml_of

BEFORE = b"cpu  0 0 0 0 0 0 0 0 0 0\ncpu0 10 0 10 100 0 0 0 0 0 0\ncpu1 0 0 0 0 0 0 0 0 0 0\nintr 5\n"
AFTER = b"cpu  0 0 0 0 0 0 0 0 0 0\ncpu0 40 10 30 130 0 5 5 0 0 0\ncpu1 0 0 0 100 0 0 0 0 0 0\nintr 9\n"


def test_shares_of_each_core() -> None:
    assert windows_diskspd.shares(BEFORE, AFTER) == [(40.0, 30.0), (0.0, 0.0)]
    with windows_diskspd.watched() as cores:
        sum(range(200_000))
    assert all(0 <= part <= 100 for core in cores for part in core)


def read(cores: list[tuple[float, float]]) -> Measurement:
    text = xml_of(Vm("vm-1"), parse("-b8K -t1 -o1 -r -w0 -d10 -L #1"), cores).decode()
    return xml.parse(text, "test").measurements[0]


def test_the_stand_in_tells_as_diskspd_does() -> None:
    known = read([(40.0, 30.0), (0.0, 0.0)])
    assert (known.usr_pct, known.sys_pct, known.busiest_core_pct) == (20.0, 15.0, 70.0)
    assert math.isnan(read([]).busiest_core_pct)


@pytest.mark.parametrize(("busiest", "worst"), [((20.0, 95.0), 95.0), ((20.0, math.nan), math.nan)])
def test_the_busiest_core_of_a_fleet_is_that_of_any_machine(busiest, worst: float) -> None:
    machines = [machine_of(Vm(f"vm-{number}")) for number in (1, 2)]
    machines = [
        replace(item, measurement=replace(item.measurement, busiest_core_pct=value))
        for item, value in zip(machines, busiest, strict=True)
    ]
    assert fleet.join(machines, "fleet").busiest_core_pct == pytest.approx(worst, nan_ok=True)


def test_a_windows_machine_can_pass_the_gate() -> None:
    """Windows tells of no steal, which the gate does not ask for."""
    guest = CellGuest(4, 0, 4, 0, 0, math.nan, 20.0, {"kernel": ("Windows",)})
    assert guest_gate(("a", "b"), [guest, guest], "azure").status is GateStatus.PASSED
    unknown = guest_gate(("a", "b"), [replace(guest, n_core=0), guest], "azure")
    assert unknown.status is GateStatus.NOT_ASSESSABLE and "every trial tells" in unknown.remedy
