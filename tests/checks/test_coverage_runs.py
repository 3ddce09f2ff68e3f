"""The check of runs beside runs: it passes as it is, and can fail."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from checks import coverage_docs, coverage_runs
from checks.coverage_runs import Cell
from checks.simulate import LEVELS
from diskbook.facts import paths
from diskbook.stats import intervals
from diskbook.stats.intervals import Interval


def pooled(first: Interval, other: Interval, level: float = 0.95) -> Interval:
    """Student's interval with one variance for both runs."""
    df = first.df + other.df
    squares = (item.df * item.se**2 * (item.df + 1) for item in (first, other))
    se = np.sqrt(sum(squares) / df * (1 / (first.df + 1) + 1 / (other.df + 1)))
    return intervals.student(other.mean - first.mean, se, df, level)


def satterthwaite(first: Interval, other: Interval, level: float = 0.95) -> Interval:
    """Welch's interval with the degrees of freedom of Satterthwaite."""
    se = np.hypot(first.se, other.se)
    df = se**4 / (first.se**4 / first.df + other.se**4 / other.df)
    return intervals.student(other.mean - first.mean, se, df, level)


@pytest.mark.parametrize("cell", [Cell(LEVELS[1], (3, 3)), Cell(None, (20, 3), times=3.0)])
def test_of_pairs_of_one_truth_at_most_5_percent_differ(cell: Cell) -> None:
    (row,) = coverage_runs.measure(cell, 2000, 1)
    assert row.shown < 0.06 and row.family < 0.06 and not row.is_off


@pytest.mark.parametrize(("method", "sizes"), [(pooled, (10, 3)), (satterthwaite, (20, 3))])
def test_a_method_that_needs_equal_spreads_is_noticed(
    monkeypatch: pytest.MonkeyPatch, method: object, sizes: tuple[int, int]
) -> None:
    monkeypatch.setattr(coverage_runs.ratio_of_ratios, "interval", method)
    (row,) = coverage_runs.measure(Cell(None, sizes, times=3.0), 2000, 1)
    assert row.is_off and row.family > 0.07 and coverage_docs.printed("", [row]).endswith("!")


def test_pairs_with_2_replicates_get_no_verdict(monkeypatch: pytest.MonkeyPatch) -> None:
    cell = Cell(None, (2, 5))
    (row,) = coverage_runs.measure(cell, 200, 1)
    assert math.isnan(row.shown) and math.isnan(row.family) and not row.is_off
    monkeypatch.setattr(coverage_runs.ratio_of_ratios, "p_difference", intervals.p_difference)
    (row,) = coverage_runs.measure(cell, 200, 1)
    assert row.is_off


def test_a_planted_ratio_of_ratios_is_found_at_the_size_that_plan_names() -> None:
    number = coverage_runs.planned(LEVELS[2])
    (row,) = coverage_runs.measure(Cell(LEVELS[2], (number, number), planted=0.1), 1000, 1)
    assert row.shown > 0.8 and not row.is_off
    assert replace(row, shown=0.6).is_off and replace(row, coverage=0.8).is_off


def test_a_spread_between_runs_that_is_none_is_seldom_shown() -> None:
    (row,) = coverage_runs.measure(Cell(None, (10, 10, 3), times=3.0, spread=0.0), 1000, 1)
    assert row.shown < 0.08 and not row.is_off and replace(row, shown=0.3).is_off


def test_the_grid_has_every_number_of_replicates_and_spread() -> None:
    grid = {
        (*cell.replicates, cell.times)
        for cell in coverage_runs.cells()
        if cell.level is None and math.isnan(cell.spread) and not cell.planted
    }
    numbers = (2, 3, 5, 10, 20)
    assert grid == {(a, b, times) for a in numbers for b in numbers for times in (1, 1.5, 2, 3, 5)}


def test_the_document_has_every_condition() -> None:
    text = (paths.ROOT / "docs" / "explanation" / "coverage.md").read_text("utf-8")
    assert not [cell.name for cell in coverage_runs.cells() if f"| {cell.name} |" not in text]


def test_a_line_says_how_many_pairs_show_a_difference() -> None:
    rows = [row for cell in coverage_runs.cells(quick=True) for row in coverage_runs.measure(cell, 100, 1)]
    unjudged = [row.cell.size for row in rows if row.cell.is_unjudged and row.cell.times == 1]
    assert unjudged == ["2+2", "2+3", "2+5", "3+2", "5+2"]
    found = [row for row in rows if row.cell.planted]
    assert all(math.isnan(row.false) and row.shown > 0 for row in found) and len(found) == 3
    table = coverage_docs.table(rows)
    assert "| False, % |" in table and "| spread between runs |" in table
