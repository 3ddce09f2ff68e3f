"""Coverage of held rates: what it simulates, and that it sees intervals that miss the open loop."""

from __future__ import annotations

from dataclasses import replace

import pytest

from checks import coverage_docs, coverage_held
from checks.coverage_held import Arm, Cell
from diskbook.tools.fio import held_rate

pytestmark = pytest.mark.long  # simulations


def test_stalls_alike_are_printed_and_cover() -> None:
    rows = coverage_held.measure(Cell("stalls alike", 500, Arm(0.035), Arm(0.03)), 40, 1)
    assert not any(row.is_off for row in rows) and all(row.refused < 0.2 for row in rows)
    assert "stalls alike" in coverage_docs.printed(coverage_held.TITLE, rows)
    assert coverage_docs.table(rows).count("| 500 per second, stalls alike |") == 2


def test_lateness_that_is_dropped_below_an_arms_own_latencies_is_seen(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    plain = held_rate._stream

    def forgiving(*job: object) -> held_rate._Stream:
        found = plain(*job)  # type: ignore[arg-type]
        return replace(found, late_ms=0 * found.late_ms, least_ms=found.own_ms)

    monkeypatch.setattr(held_rate, "_stream", forgiving)
    cell = Cell("three times the stalls", 500, Arm(0.03), Arm(0.01), is_alike=False)
    rows = coverage_held.measure(cell, 40, 1)
    assert any(row.is_off for row in rows) and "!" in coverage_docs.printed(coverage_held.TITLE, rows)
