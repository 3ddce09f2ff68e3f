"""The check of outlooks: they come true in 80 % of runs, and those that do not are noticed."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest

from checks import coverage_docs, coverage_outlooks
from checks.coverage_outlooks import BLOCKS_MORE, FRESH, REPLICATES_MORE, Cell, Row
from checks.simulate import LEVELS
from diskbook.facts import paths
from diskbook.stats.intervals import quantile


@pytest.mark.parametrize("claim", [REPLICATES_MORE, BLOCKS_MORE, FRESH])
def test_what_is_said_comes_true_in_75_to_90_percent_of_runs(claim: str) -> None:
    (row,) = coverage_outlooks.measure(Cell(LEVELS[0], claim, 3, 5), 1000, 1)
    assert 0.75 < row.coverage < 0.9 and not row.is_off


def test_a_width_at_the_spread_seen_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    def at_the_spread_seen(half: Any, n: int, more: int, df: float) -> Any:
        return half * float(quantile(0.95, df + more) / quantile(0.95, df)) * math.sqrt(n / (n + more))

    monkeypatch.setattr(coverage_outlooks.power, "narrowed", at_the_spread_seen)
    (row,) = coverage_outlooks.measure(Cell(LEVELS[0], REPLICATES_MORE, 3, 5), 1000, 1)
    assert row.coverage < 0.5 and row.is_off and coverage_docs.printed("", [row]).endswith("!")


def test_rare_slow_trials_are_a_known_limit_and_widths_that_are_too_safe_none() -> None:
    outliers, quiet = (Row(Cell(LEVELS[i], BLOCKS_MORE, 3, 5), BLOCKS_MORE, 4000, 0.6) for i in (3, 0))
    assert outliers.is_known_limit and not outliers.is_off and quiet.is_off
    assert replace(outliers, coverage=0.95).is_off
    assert "| known limit: rare slow trials" in coverage_docs.table([outliers])


def test_the_document_has_every_outlook() -> None:
    text = (paths.ROOT / "docs" / "explanation" / "coverage.md").read_text("utf-8")
    names = {f"| {cell.level.name} | {cell.claim} |" for cell in coverage_outlooks.cells()}
    assert not [name for name in names if name not in text]
