"""Planted limits that no table names: every queue is refused a latency, and hardly any latency is."""

from __future__ import annotations

import math

import numpy as np
import pytest

from checks import hidden_limits
from diskbook.design.vocabulary import Label


@pytest.mark.long
def test_every_cell_behind_a_hidden_limit_is_refused_and_by_no_table() -> None:
    outcomes = list(hidden_limits.planted("saturated", hidden_limits.PAIRS["saturated"], 1))
    behind = hidden_limits.labels_of(outcomes, 2.5, math.inf)
    assert len(behind) >= 200
    assert {label for label, _ in behind} == {Label.SATURATED}
    assert not any(printed for _, printed in behind)
    assert {outcome.verdict for outcome in outcomes} == {"saturated"}


@pytest.mark.long
def test_latencies_that_are_the_disks_own_are_kept() -> None:
    outcomes = list(hidden_limits.planted("unqueued", hidden_limits.PAIRS["unqueued"], 1))
    plain = hidden_limits.labels_of(outcomes, 0.0, 1.5)
    assert len(plain) >= 200
    assert sum(label != Label.BELOW_CAP for label, _ in plain) <= 4


@pytest.mark.long
@pytest.mark.parametrize(("name", "label"), [("near", Label.NEAR_A_CAP), ("credit", Label.CAPPED)])
def test_rates_that_a_limit_may_have_cut_get_no_verdict_and_no_interval(name: str, label: Label) -> None:
    outcomes = list(hidden_limits.planted(name, hidden_limits.PAIRS[name], 1))
    assert len(outcomes) == 150 and not any(map(hidden_limits.is_decided, outcomes))
    assert sum(label in outcome.labels for outcome in outcomes) > 100


def test_what_is_planted_is_what_it_says() -> None:
    rng = np.random.default_rng(3)
    asked = [cell.asks for _ in range(200) for cell in hidden_limits.saturated(rng)]
    assert sum(times >= 2.5 for times in asked) > 300
    assert max(cell.asks for _ in range(200) for cell in hidden_limits.unqueued(rng)) <= 1.5
    # 256 outstanding at 4,000 IOPS, where a single I/O takes 2 ms: 8 are needed.
    assert hidden_limits.Load(2.0, 256, 4096, limit=4000.0).asks == pytest.approx(32)


@pytest.mark.long
def test_the_command_fails_where_a_queue_passes_for_a_latency(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(hidden_limits, "PAIRS", dict.fromkeys(hidden_limits.PAIRS, 2))
    assert hidden_limits.main([]) == 0 and capsys.readouterr().out.endswith("passed\n")
    monkeypatch.setattr("diskbook.stats.saturation._findings", lambda cells, shown: ())
    assert hidden_limits.main([]) == 1 and capsys.readouterr().out.endswith("FAILED\n")
