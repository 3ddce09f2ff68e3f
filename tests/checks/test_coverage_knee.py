"""The check of knees: it passes as it is, and can fail."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from checks import coverage_docs, coverage_knee
from checks.coverage_knee import Cell
from diskbook.stats.knee import SHARP_LIMITS

pytestmark = pytest.mark.long  # simulations

CELL = Cell(20_400.0, 5, 0.02, 0.01)


def test_knees_of_five_blocks_are_covered_and_no_wider_than_they_may_be() -> None:
    (row,) = coverage_knee.measure(CELL, 4000, 1)
    assert 0.93 < row.coverage < 0.98 and row.half_width < 0.10 and not row.is_off and CELL.is_due


def test_two_blocks_give_no_interval() -> None:
    (row,) = coverage_knee.measure(CELL._replace(blocks=2), 50, 1)
    assert row.is_refused and not row.is_off
    assert not replace(row, refused=0.0).is_refused and replace(row, refused=0.0).is_off


@pytest.mark.parametrize("cell", [cell for cell in coverage_knee.cells() if cell.smooth])
def test_a_smooth_bend_is_a_known_limit_of_the_size_that_is_said(cell: Cell) -> None:
    (row,) = coverage_knee.measure(cell, 1000, 1)
    assert row.is_known_limit and not row.is_off and 0.01 < row.too_deep < 0.05
    assert coverage_docs.printed("", [row]).endswith(" ?")
    assert replace(row, too_deep=0.06).is_off and "5 % too deep" in SHARP_LIMITS


def test_a_knee_that_is_read_off_the_bend_falls_short(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = coverage_knee.knee.curves

    def bent(outstanding: np.ndarray, iops: np.ndarray, *rest: np.ndarray) -> object:
        return plain(outstanding, iops, *rest)._replace(
            cap_iops=iops[..., outstanding < CELL.knee].max(axis=-1)
        )

    monkeypatch.setattr(coverage_knee.knee, "curves", bent)
    (row,) = coverage_knee.measure(CELL, 500, 1)
    assert row.is_off and coverage_docs.printed("", [row]).endswith("!")


def test_what_a_volume_loses_at_the_start_and_to_chance_is_allowed_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Trials played I/O by I/O give 0.4 % less without a ramp, and 1 % less than their disks together."""
    cell = next(cell for cell in coverage_knee.cells(quick=True) if cell.disks > 1)
    (row,) = coverage_knee.measure(cell, 500, 1)
    assert row.coverage > 0.95 and not row.is_off and -0.02 < row.too_deep < -0.005
    monkeypatch.setattr(coverage_knee.knee, "UNEVEN", 0.0)
    (narrow,) = coverage_knee.measure(cell, 500, 1)
    assert narrow.coverage < 0.93 and narrow.is_off
    filling = coverage_knee.LATENCY_MS / 1000 / coverage_knee.RUNTIME_S
    without, after = (coverage_knee.play(144, 10_200.0, 1, 1, ramp_s)[0].mean() for ramp_s in (0.0, 0.1))
    assert 1 - without / after == pytest.approx(filling, rel=0.1) and after == pytest.approx(10_200, rel=1e-3)


def test_the_document_has_a_line_a_noise_and_number_of_blocks() -> None:
    rows = [row for cell in coverage_knee.cells(quick=True) for row in coverage_knee.measure(cell, 200, 1)]
    smooth, *lines = coverage_docs.table(rows).splitlines()[2:]
    assert "known limit" in smooth and "smooth bend" in smooth and len(lines) == 3
    assert (
        not any("FAILED" in line for line in lines) and sum("without a ramp" in line for line in lines) == 1
    )
    assert sum(line.startswith("| 2 blocks") and "| 100.0 to 100.0 |" in line for line in lines) == 1
