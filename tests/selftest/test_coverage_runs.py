"""The check of runs beside runs: it passes as it is, and can fail."""

from __future__ import annotations

import numpy as np
import pytest

from diskbook.base import paths
from diskbook.selftest import coverage_docs, coverage_runs
from diskbook.selftest.coverage_runs import Cell
from diskbook.selftest.simulate import LEVELS
from diskbook.stats import ratio_of_ratios
from diskbook.stats.intervals import Interval


def test_pairs_of_one_truth_show_a_difference_in_2_to_7_percent() -> None:
    (row,) = coverage_runs.measure(Cell(LEVELS[1], 3, 3), 2000, 1)
    assert 0.02 < row.shown < 0.07 and 0.02 < row.family < 0.07 and not row.is_off


def test_a_planted_ratio_of_ratios_is_found_at_the_size_that_plan_names() -> None:
    number = coverage_runs.planned(LEVELS[2])
    (row,) = coverage_runs.measure(Cell(LEVELS[2], number, number, planted=0.1), 1000, 1)
    assert row.shown > 0.8 and not row.is_off
    assert row._replace(shown=0.6).is_off and row._replace(coverage=0.8).is_off


def test_intervals_that_are_too_narrow_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = ratio_of_ratios.of_kinds

    def narrow(first: Interval, other: Interval, level: float = 0.95) -> Interval:
        item = plain(first, other, level)
        return item._replace(low=item.mean + 0.5 * (item.low - item.mean), se=0.5 * np.asarray(item.se))

    monkeypatch.setattr(coverage_runs.ratio_of_ratios, "of_kinds", narrow)
    (row,) = coverage_runs.measure(Cell(LEVELS[1], 3, 3), 500, 1)
    assert row.is_off and coverage_runs.text([row]).endswith("!")


def test_the_document_has_every_condition() -> None:
    text = (paths.ROOT / "docs" / "coverage.md").read_text("utf-8")
    assert not [cell.name for cell in coverage_runs.cells() if f"| {cell.name} |" not in text]


def test_a_line_says_how_many_pairs_show_a_difference() -> None:
    rows = [row for cell in coverage_runs.cells(quick=True) for row in coverage_runs.measure(cell, 100, 1)]
    lines = list(coverage_docs.of_runs(rows))
    assert lines[0].words.startswith("a difference is shown in ") and "of seven comparisons" in lines[0].words
    assert any("as plan names" in line.words for line in lines)
    assert any(line.claim == "spread between runs" for line in lines)
    assert any("known limit" in line.words for line in lines)
