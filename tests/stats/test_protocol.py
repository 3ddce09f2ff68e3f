"""Closed and open by the protocol: each point planted as missing leaves the comparison open by that name."""

from __future__ import annotations

import dataclasses

import pytest

from diskbook.design.model import Comparison
from diskbook.design.vocabulary import GateStatus
from diskbook.facts.errors import DiskbookError
from diskbook.stats import protocol
from diskbook.stats.compare import compare
from diskbook.stats.protocol import POINTS, Conformance, Facts, Status
from support import synthetic

ALL = Facts(
    provenance="azure",
    is_plan_written=True,
    is_raw_kept=True,
    is_filled=True,
    is_overwritten=True,
    n_replicates=5,
    is_rate_held=True,
    is_from_intended=True,
    n_trials=8,
    n_guest=8,
)
FACTS = [
    (1, {"is_plan_written": None}, "nothing says what was planned"),
    (1, {"is_plan_written": False}, "no plan was written down"),
    (1, {"is_plan_changed": True}, "changed after its plan"),
    (2, {"provenance": "imported"}, "nobody here watched"),
    (2, {"provenance": "azure+emulated"}, "its provenance is azure+emulated"),
    (3, {"is_raw_kept": None}, "not all in the run's folder"),
    (7, {"is_filled": None}, "all of what it measures was filled"),
    (7, {"is_overwritten": False}, "not written over"),
    (13, {"n_replicates": 4}, "4 of 5 replicates"),
    (17, {"is_from_intended": None}, "when it was due"),
    (18, {"n_guest": 7}, "7 of 8 trials"),
]
NAMES = ("arm", "base", "load", "lat_mean_ms", "headline")


def row(gate: str, status: GateStatus = GateStatus.PASSED, remedy: str = "") -> dict[str, str]:
    return {"gate": gate, "status": status, "cause": f"cause of {gate}", "remedy": remedy}


def rows(**changes: dict[str, str]) -> list[dict[str, str]]:
    """Every gate that a point names, passed, and others on top."""
    return [changes.get(name, row(name)) for name in sorted(protocol.NAMED_GATES)]


def judged(facts: Facts = ALL, gates: list[dict[str, str]] | None = None) -> Conformance:
    findings = protocol.judge(facts, rows() if gates is None else gates)
    return Conformance(*NAMES, facts.provenance, findings)


def missing(item: Conformance) -> list[int]:
    return [finding.point.number for finding in item.missing]


def statuses(item: Conformance) -> dict[int, Status]:
    return {finding.point.number: finding.answer.status for finding in item.findings}


def test_a_comparison_that_meets_all_is_closed() -> None:
    item = judged()
    assert missing(item) == [] and item.is_closed
    assert item.words == "closed by protocol 1"
    assert {number for number, status in statuses(item).items() if status is Status.NOT_APPLICABLE} == {20}


def test_what_is_closed_elsewhere_says_so() -> None:
    emulated = judged(dataclasses.replace(ALL, provenance="emulated"))
    assert emulated.words == "closed (emulated) by protocol 1"
    own = judged(dataclasses.replace(ALL, provenance="inventory", is_attached=False))
    assert own.words == "closed (inventory) by protocol 1"
    assert all(statuses(own)[number] is Status.NOT_APPLICABLE for number in (5, 6, 12, 15))


@pytest.mark.parametrize(("number", "change", "why"), FACTS)
def test_a_fact_that_is_missing_is_named_alone(number: int, change: dict, why: str) -> None:
    item = judged(dataclasses.replace(ALL, **change))
    assert missing(item) == [number] and why in item.missing[0].answer.why
    assert item.missing[0].answer.remedy == POINTS[number - 1].remedy
    assert f"1 point missing ({POINTS[number - 1].title})" in item.words and item.words.startswith("open")


@pytest.mark.parametrize("gate", sorted(protocol.NAMED_GATES - {protocol.DATA}))
@pytest.mark.parametrize("status", [None, GateStatus.FAILED, GateStatus.NOT_ASSESSABLE])
def test_a_gate_that_is_missing_or_did_not_pass_is_named_alone(gate: str, status: GateStatus | None) -> None:
    (point,) = [point for point in POINTS if gate in point.gates]
    gates = [item for item in rows() if item["gate"] != gate]
    gates += [row(gate, status, "do this")] if status else []
    item = judged(gates=gates)
    assert missing(item) == [point.number]
    (finding,) = item.missing
    assert gate in finding.answer.why
    assert finding.answer.remedy == ("do this" if status else point.remedy)


def test_a_gate_that_no_point_names_counts_too() -> None:
    assert missing(judged(gates=[*rows(), row("new one", GateStatus.FAILED)])) == [20]
    assert statuses(judged(gates=[*rows(), row("new one")]))[20] is Status.MET


def test_one_of_several_rows_of_a_gate_is_enough() -> None:
    assert missing(judged(gates=[*rows(), row("cap", GateStatus.FAILED)])) == [15]


def test_what_was_not_measured_lacks_trials_and_nothing_else() -> None:
    assert missing(judged(Facts("azure"), [row("data", GateStatus.FAILED, "measure")])) == [19]


@pytest.mark.parametrize(
    ("number", "change", "gate"),
    [
        (6, {"is_attached": False}, "attachment"),
        (7, {"is_unwritten": True, "is_filled": False, "is_overwritten": False}, None),
        (14, {"is_general": True}, "memory"),
        (17, {"is_rate_held": False, "is_from_intended": None}, "offered rate"),
    ],
)
def test_what_does_not_apply_is_not_missing(number: int, change: dict, gate: str | None) -> None:
    item = judged(dataclasses.replace(ALL, **change), [item for item in rows() if item["gate"] != gate])
    assert missing(item) == [] and statuses(item)[number] is Status.NOT_APPLICABLE


def test_a_rate_needs_no_intended_start() -> None:
    item = judged(dataclasses.replace(ALL, is_latency=False, is_from_intended=None))
    assert statuses(item)[17] is Status.MET


def test_a_reason_not_to_write_over_is_met_and_stays_visible() -> None:
    item = judged(dataclasses.replace(ALL, is_overwritten=False, no_overwrite="2 TiB take a day"))
    assert item.is_closed and "2 TiB take a day" in item.findings[6].answer.why


def test_an_old_run_is_open_by_what_nobody_recorded_then() -> None:
    new = {"attachment", "state", "guest"}
    old = dataclasses.replace(ALL, is_overwritten=None, is_from_intended=None, n_guest=0)
    item = judged(old, [item for item in rows() if item["gate"] not in new])
    assert missing(item) == [6, 7, 8, 17, 18]
    assert item.words == (
        "open by protocol 1: 5 points missing (6 attachment, 7 fill, 8 state, 17 held rate, 18 guest)"
    )


def test_many_missing_points_are_cut_short() -> None:
    assert judged(Facts("azure"), []).words.endswith("6 attachment, 7 fill, and 11 more)")


def test_numbers_are_in_order_and_every_gate_is_in_one_point() -> None:
    assert [point.number for point in POINTS] == list(range(1, len(POINTS) + 1))
    gates = [gate for point in POINTS for gate in point.gates]
    assert len(gates) == len(set(gates)) and all(point.remedy and point.demands for point in POINTS)


def test_every_gate_of_a_run_has_its_point() -> None:
    trials, _, series = synthetic.tables(loads=(synthetic.WRITE,), n_replicates=1, n_blocks=2)
    item = Comparison(arm="zrs-z1", base_arm="lrs-z1", workload="randwrite-qd1", pairing="same-machine")
    assert set(compare(trials, [item], series, {}).gates["gate"]) <= protocol.NAMED_GATES


def test_the_table_keeps_every_word() -> None:
    items = [judged(), judged(dataclasses.replace(ALL, provenance="imported"), [])]
    items[1] = dataclasses.replace(items[1], workload="other")
    table = protocol.table(items)
    assert protocol.of_table(table) == items and len(table) == 2 * len(POINTS)
    with pytest.raises(DiskbookError, match=r"of another version than 1; run the analysis again"):
        protocol.of_table(table.assign(protocol=2))
