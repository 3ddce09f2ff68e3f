"""The check of the gate of stationarity: it passes as it is, and can fail."""

from __future__ import annotations

import pandas as pd
import pytest

from checks import coverage_docs, coverage_stationarity
from checks.coverage_stationarity import FALLS, Cell

CELL = Cell(0.03, 0.3, 8)


def test_the_gate_as_it_is_passes_with_all_falls_that_are_due() -> None:
    (row,) = coverage_stationarity.measure(CELL, 200, 1)
    assert all(fall.is_due(CELL) for fall in FALLS) and not row.is_off
    assert min(row.seen.values()) >= 0.95


@pytest.mark.parametrize("answer", [True, False])
def test_a_gate_that_always_says_the_same_falls_short(monkeypatch: pytest.MonkeyPatch, answer: bool) -> None:
    judge = coverage_stationarity.rate_changed

    def constant(*arguments: object) -> pd.DataFrame:
        return judge(*arguments).assign(moved=answer, far=answer, cell_change=float("nan"))

    monkeypatch.setattr(coverage_stationarity, "rate_changed", constant)
    (row,) = coverage_stationarity.measure(CELL, 50, 1)
    assert row.is_off and coverage_docs.printed("", [row]).endswith("!")


def test_what_noise_hides_is_not_due() -> None:
    loud = Cell(0.10, 0.8, 8)
    assert [fall.name for fall in FALLS if fall.is_due(loud)] == []
    assert Cell(0.10, 0.8, 20).noise == pytest.approx(0.077, abs=0.001)
