"""Hidden limits near what disks would reach: what is planted, and that the check can fail."""

from __future__ import annotations

import math

import numpy as np
import pytest

from checks import coverage_docs, coverage_limits
from checks.coverage_limits import Cell, measure
from diskbook.stats import view
from diskbook.stats.gates import limits

pytestmark = pytest.mark.long  # simulations


@pytest.mark.parametrize(
    "cell",
    [
        Cell("both arms", 1.2, 4),
        Cell("one arm", 1.1, 2),
        Cell("one machine", 1.35, 2),
        Cell("single I/Os, both arms, probed", 1.5, 2),
        Cell("single I/Os, one arm, no probe", 1.5, 4),
        Cell("none, slow alike", math.nan, 4),
    ],
    ids=str,
)
def test_limits_get_no_false_verdict_and_free_cells_are_kept(cell: Cell) -> None:
    (row,) = measure(cell, 60, 1)
    assert not row.is_off and (row.n_moved > 0) == (cell.times > 1)


def test_arms_that_slow_unlike_are_refused_which_is_the_price() -> None:
    (row,) = measure(Cell("none, slow unlike", math.nan, 10), 40, 1)
    assert row.refused > 0.9 and not row.is_off


def test_without_the_detectors_the_check_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(view, "apart_at_depth", lambda *_: None)
    monkeypatch.setattr(limits, "is_open", lambda cell: False)
    (row,) = measure(Cell("both arms", 1.2, 4), 60, 1)
    assert row.is_off and row.false > 0.05 and row.latency > 0


def test_what_is_planted_is_what_it_says() -> None:
    rng = np.random.default_rng(3)
    cell = Cell("one arm", 1.5, 2)
    for _ in range(20):
        assert abs(coverage_limits.moved_by(cell, coverage_limits.draw(cell, 1.08, rng, 4096))) == (
            pytest.approx(math.log(1.5))
        )
    one_machine = coverage_limits.draw(Cell("one machine", 2.0, 2), 1.0, rng, 4096)
    assert [load.limit < math.inf for pair in one_machine for load in pair] == [True] * 2 + [False] * 4
    assert len(list(coverage_limits.cells())) > 100


def test_the_table_has_a_line_a_limit_over_blocks() -> None:
    rows = [row for blocks in (2, 4) for row in measure(Cell("one arm", 2.0, blocks), 8, 1)]
    lines = coverage_docs.table(rows).splitlines()
    assert len(lines) == 3 and lines[2].startswith(
        "| one arm, 2 times below | verdict on a latency | 0.0 to 0.0 |"
    )
    assert coverage_docs.printed("", rows).count("one arm") == 2
