"""The coverage check of percentile ratios sees an interval that is centred elsewhere."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from checks import coverage_docs, coverage_percentiles
from checks.coverage_percentiles import CLAIM, TITLE, Cell, Row, cells, measure

pytestmark = pytest.mark.long  # simulations

QUIET = Cell(quantile=0.5, trial=0.002, bursts=0.0, replicates=1, blocks=4)


def test_quiet_trials_are_covered_and_narrow() -> None:
    (row,) = measure(QUIET, 60, seed=2)
    assert not row.is_off and row.coverage > 0.85
    assert row.half_width < 0.02  # a bin is 1.6 % wide, and would show


def test_another_centre_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    paired = coverage_percentiles.intervals.within_replicates

    def beside(values: np.ndarray) -> coverage_percentiles.intervals.Interval:
        return paired(values + 0.01)

    monkeypatch.setattr(coverage_percentiles.intervals, "within_replicates", beside)
    assert measure(QUIET, 60, seed=2)[0].is_off


def test_the_table_names_every_cell_and_marks_what_falls_short() -> None:
    rows = [Row(cell, CLAIM, 100, 0.5 if cell == QUIET else 0.95, 0.02) for cell in cells()]
    printed = coverage_docs.printed(TITLE, rows)
    assert len(printed.splitlines()) == 2 + len(rows) == 47 and printed.count("!") == 1
    assert len(list(cells(quick=True))) == 20


def test_bursts_of_one_arm_are_held_by_the_typical_trial_and_marked_for_all_ios() -> None:
    unlike = QUIET._replace(quantile=0.99, bursts=0.05, replicates=5, blocks=5, one_arm=True)
    (row,) = measure(unlike, 60, seed=2)
    assert not row.is_off and row.coverage > 0.8 and row.apart > 0.8
    assert measure(unlike._replace(bursts=0.0), 60, seed=2)[0].apart == 0


def test_few_blocks_that_miss_the_bursts_are_a_known_limit() -> None:
    few = Row(QUIET._replace(one_arm=True), CLAIM, 1_000, 0.6, 0.5)
    assert few.is_known_limit and not few.is_off
    many = replace(few, cell=few.cell._replace(replicates=5, blocks=5))
    assert many.is_off and not many.is_known_limit
