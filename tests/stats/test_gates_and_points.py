"""Every gate agrees with its point of the protocol, and what a remedy asks for can be done."""

from __future__ import annotations

import math

import numpy as np
import pytest

from diskbook.design import scenario_file
from diskbook.design.vocabulary import GateStatus, Provenance
from diskbook.facts import paths
from diskbook.report.analysis import protocol as run_protocol
from diskbook.stats import protocol
from diskbook.stats.compare import compare
from diskbook.stats.gates.attachment import Conditioning, state_gate
from diskbook.stats.gates.tool import _AGAIN as OF_RATES
from diskbook.stats.intervals import Interval
from diskbook.stats.protocol import Facts, Status
from support import synthetic

SCENARIOS = sorted(file.stem for file in paths.SCENARIOS.glob("*.toml"))
UNEQUAL = {"lrs-z1": (20.0, 3.0), "lrs-z2": (400.0, 1.0)}
"""Seconds since the attach, and attaches in a block, that fail the gate on disks."""


@pytest.fixture(scope="module")
def unequal():
    trials, _, series = synthetic.tables(1, n_blocks=3)
    trials["since_attach_s"] = trials["arm"].map(lambda arm: UNEQUAL.get(arm, (100.0, 1.0))[0])
    trials["attaches_in_block"] = trials["arm"].map(lambda arm: UNEQUAL.get(arm, (100.0, 1.0))[1])
    return trials, series


def gates_of(tables, exempt: dict[str, str]):
    items = synthetic.comparisons()[:1]
    key = items[0].arm, items[0].base_arm
    return compare(tables[0], items, tables[1], exempt={key: exempt}).gates


@pytest.mark.long
@pytest.mark.parametrize("provenance", ["azure", "emulated", "inventory", "imported"])
@pytest.mark.parametrize("is_attached", [True, False])
def test_a_gate_does_not_apply_where_its_point_does_not(unequal, provenance: str, is_attached: bool) -> None:
    exempt = protocol.exempt(provenance, is_attached=is_attached)
    gates = gates_of(unequal, exempt)
    facts = Facts(provenance, is_attached=is_attached, is_rate_held=True)
    for finding in protocol.judge(facts, gates.to_dict("records")):
        if finding.answer.status is not Status.NOT_APPLICABLE or not finding.point.gates:
            continue
        of_point = gates[gates["gate"].isin(finding.point.gates)]
        assert set(of_point["status"]) == {GateStatus.PASSED}, finding.point.title
        assert set(of_point["cause"]) == {finding.answer.why}
    if is_attached and provenance != Provenance.INVENTORY:  # disks are judged as before
        assert "attachment" not in exempt
        assert set(gates.loc[gates["gate"] == "attachment", "status"]) == {GateStatus.FAILED}


@pytest.mark.parametrize("name", SCENARIOS)
@pytest.mark.parametrize("provenance", ["azure", "inventory"])
def test_of_every_scenario_the_gates_agree_with_the_points(name: str, provenance: str) -> None:
    scenario = scenario_file.load(name)
    exempt = run_protocol.exempt(scenario, provenance)
    for item in scenario.comparison:
        of_item = exempt[item.arm, item.base_arm]
        is_attached = run_protocol._is_attached(scenario, provenance, item)
        assert ("attachment" in of_item) is not is_attached
        failed = [{"gate": gate, "status": "failed", "cause": "", "remedy": ""} for gate in of_item]
        others = [{"gate": "data", "status": "passed", "cause": "", "remedy": ""}]
        facts = Facts(provenance, is_attached=is_attached)
        named = {
            gate
            for finding in protocol.judge(facts, failed + others)
            if finding.answer.status is Status.MISSING
            for gate in finding.point.gates
        }
        assert not named & of_item.keys()


def test_devices_may_differ_where_a_scenario_compares_them() -> None:
    exempt = run_protocol.exempt(scenario_file.load("s2d-azure"), "azure")
    alike, unlike = exempt["s2d-3-remote", "s2d-3"], exempt["s2d-3", "ss-4"]
    assert not {"driver", "cpu_model"} & alike.keys() and "driver" in unlike
    sizes = run_protocol.exempt(scenario_file.load("disk-options"), "azure")["ephemeral", "lrs-e4ads"]
    assert "write_cache" in sizes and not {"kernel", "power_plan", "scheduler"} & {*unlike, *sizes}


def test_what_blocks_are_lacking_is_measured_by_more_of_them() -> None:
    unknown = Interval(*(np.array(math.nan) for _ in Interval._fields))
    filled = dict.fromkeys(("a", "b"), Conditioning(filled=True, overwritten=False, reason="fleets fill"))
    gate = state_gate(("a", "b"), filled, (unknown, unknown, unknown), 1, 0.05)
    assert gate.remedy == "measure 3 blocks or more"
    assert "written over" in state_gate(("a", "b"), {}, (unknown, unknown, unknown), 1, 0.05).remedy


def test_where_fio_cannot_measure_the_remedy_for_a_rate_is_another_one() -> None:
    point = next(point for point in protocol.POINTS if point.name == "held rate")
    assert all("on Windows" in remedy for remedy in (OF_RATES, point.remedy))
