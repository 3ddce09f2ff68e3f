"""Looks that a plan proposes, and what it says of blocks that are spread over hours."""

from __future__ import annotations

import re

import pytest

from diskbook.design import scenario_file
from diskbook.facts.errors import UsageError
from diskbook.measure.plan import sample_size, terminal
from diskbook.measure.plan.terminal import Sources
from diskbook.stats import intervals, power
from diskbook.stats.gates.plan import constant_level, stopping


@pytest.mark.long
def test_the_last_look_keeps_the_width_that_one_look_does() -> None:
    single = power.for_half_width(0.05, 0.02)
    at = sample_size.proposed_looks(0.05, 0.02, single)
    level = 1 - constant_level(at)

    def half(n: int, level: float) -> float:
        wider = intervals.quantile(level, n - 1) / intervals.quantile(0.95, n - 1)
        return float(wider) * power.half_width_of(0.05, n)

    assert single < at[-1] < 2 * single and half(at[-1], level) == pytest.approx(0.02, rel=0.05)
    assert half(at[-2], level) > 0.02


@pytest.mark.parametrize(("effect", "stop", "least"), [(0.5, 26, 0.70), (1.0, 14, 0.99), (2.0, 9.5, 0.99)])
def test_runs_stop_where_an_independent_simulation_has_them_stop(
    effect: float, stop: float, least: float
) -> None:
    number, decided = stopping((9, 18, 27, 36), effect, 1e-9)
    assert number == pytest.approx(stop, rel=0.05) and decided > least


@pytest.mark.long
def test_a_plan_proposes_looks_with_what_they_cost() -> None:
    scenario = scenario_file.load("zone-disks", "quick", {"design.replicates": 1})
    text = terminal.plan_text(scenario, terminal.target_of("2%", None, None, looks=True), Sources(), "run")
    found = re.search(r'looks = \[(\d+), (\d+), (\d+), (\d+)\], look_unit = "blocks"', text)
    assert found and [int(number) for number in found.groups()] == sorted(map(int, found.groups()))
    assert re.search(
        r"true change 0 %: stops after [\d.]+ blocks on average, [\d.]+ USD, \d+ % decided", text
    )
    assert sample_size.PARALLEL not in text
    replicates = scenario_file.load("zone-disks", "quick", {"design.replicates": 4, "design.looks": [2, 4]})
    text = terminal.plan_text(replicates, terminal.target_of("2%", None, None, looks=True), Sources(), "run")
    assert "looks after 2, 4 replicates:" in text and text.count(sample_size.PARALLEL) == 2
    with pytest.raises(UsageError, match="--looks needs the width"):
        terminal.plan_text(scenario, terminal.target_of(None, None, None, looks=True), Sources(), "run")


def test_a_plan_says_whether_spread_blocks_or_replicates_cost_less() -> None:
    scenario = scenario_file.load("zone-disks", "quick", {"design.spread": "12h"})
    text = terminal.plan_text(scenario, terminal.Target(), Sources(), "run")
    found = re.search(
        r"costs ([\d.]+) USD with blocks 4 h apart, and ([\d.]+) USD with .* at once: (.*) cost", text
    )
    assert found
    dear, cheap = float(found[1]), float(found[2])
    assert found[3] == ("replicates" if cheap <= dear else "the spread blocks")
