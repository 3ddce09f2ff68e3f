"""Disks slow after an attach, simulated: no verdict is false or silent, and without the gate many are."""

from __future__ import annotations

import pytest

from checks import coverage_attach, coverage_docs
from checks.coverage_attach import LASTS, PLANTED, UNSETTLED, Cell, Row
from diskbook.stats.gates import passed
from diskbook.stats.gates.attachment import ATTACHMENT

RUNS = 60


def _row(name: str) -> Row:
    planted = next(item for item in PLANTED if item.name == name)
    (row,) = coverage_attach.measure(Cell(planted, 3, 5, 0.01), RUNS, 1)
    return row


def test_a_slow_arm_is_told_and_equal_ones_are_let_be() -> None:
    assert _row("one arm, 20 s").depends == 1
    assert _row(UNSETTLED).open == 1
    none, alike = _row("no attach effect"), _row("both arms alike")
    assert none.depends == alike.depends == 0 and none.open < 0.1
    assert not any(row.is_off for row in (none, alike, _row("one arm, by 6 %"), _row("one arm, 20 s")))


def test_what_outlasts_the_visit_is_a_known_limit() -> None:
    row = _row(LASTS)
    assert row.false > 0.9 and row.is_known_limit and not row.is_off
    assert coverage_attach.KNOWN_LIMIT in coverage_docs.table([row])
    assert coverage_docs.printed("", [row]).endswith(" ?")


@pytest.mark.parametrize("name", ["one arm, 20 s", "base arm, 60 s", "arms unlike, by 4 % each"])
def test_a_gate_that_counts_seconds_alone_is_seen(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(coverage_attach, "attachment_gate", lambda *_: passed(ATTACHMENT, "as long ago"))
    row = _row(name)
    assert row.silent > 0.8 and row.is_off
    assert "FAILED" in coverage_docs.table([row])


def test_without_settling_that_gate_prints_false_verdicts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(coverage_attach, "attachment_gate", lambda *_: passed(ATTACHMENT, "as long ago"))
    row = _row(UNSETTLED)
    assert row.false == 1 and row.is_off
