"""Runs that stop at planned looks, simulated: as few false alarms as one look, and naive levels are seen."""

from __future__ import annotations

import pytest

from checks import coverage_docs, coverage_looks
from checks.coverage_looks import Cell

NULL = Cell((5, 10, 20, 40), 1, 0.0)


@pytest.mark.long
def test_looks_err_as_seldom_as_one_and_stop_earlier() -> None:
    (null,), (large,) = (coverage_looks.measure(cell, 1000, 1) for cell in (NULL, NULL._replace(effect=1.0)))
    assert not null.is_off and not large.is_off
    assert null.blocks > 37 / 40 and large.blocks < 17 / 40 and 1.2 < null.width_ratio < 1.35
    text = coverage_docs.table([null, large])
    assert "| looks after 5, 10, 20, 40 blocks, effect 1 s.d. |" in text and not coverage_docs.printed(
        "", [null]
    ).endswith("!")


@pytest.mark.parametrize("headlines", [1, 5])
def test_naive_levels_are_seen(headlines: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(coverage_looks, "over_all_looks", lambda p, looks: p)
    (row,) = coverage_looks.measure(NULL._replace(headlines=headlines), 1000, 1)
    assert row.false > 0.1 and row.is_off
