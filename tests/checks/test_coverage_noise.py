"""Coverage under the noise of real machines: the noise drawn, the truth, and that it can fail."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from checks import coverage_docs, coverage_noise, simulate
from checks.coverage_noise import HOURS, LASTING, TITLE, Cell, Condition, Row, cells, draw, measure
from checks.simulate import ARM, BASE
from diskbook.design.vocabulary import Scope
from diskbook.stats import outliers
from diskbook.stats.drift import COMMON, DriftVerdict, drift
from diskbook_emulator.profile import Noise, load_profile

AZURE = load_profile("azure-noise-2024").noise
STILL = replace(AZURE, hours_between_blocks=0.0)
DAILY = replace(AZURE, hours_between_blocks=24.0)


def drawn(levels: Noise, replicates: int, blocks: int, n_runs: int) -> coverage_noise.Drawn:
    return draw(levels, replicates, blocks, n_runs, np.random.default_rng(3))


def measured(levels: Noise, replicates: int, blocks: int) -> dict[str, Row]:
    cell = Cell(Condition("check", levels), replicates, blocks)
    return {row.claim: row for row in measure(cell, 3000, 1)}


def test_without_noise_both_truths_are_the_planted_overhead() -> None:
    runs = drawn(Noise(), 2, 3, 5)
    for ratio in (runs.now, runs.lasting, np.diff(runs.log_latency)[..., 0]):
        assert np.allclose(ratio, math.log(1.02))


def test_what_a_machine_adds_is_no_factor() -> None:
    runs = drawn(Noise(machine_us=200.0), 400, 1, 5)
    base_us = 1000 * np.exp(runs.log_latency[:, :, 0, 0, 0]) - 2200
    assert base_us.std() == pytest.approx(200, rel=0.1)
    slow = base_us > 200
    assert runs.lasting[slow].max() < math.log(1.02) < runs.lasting[base_us < -200].min()


def test_fresh_pairs_on_one_machine_differ_as_published() -> None:
    """Log ratio of two disks on a fresh machine: 0.02 (.014 to .029) core, to 0.04 with slow pairs."""
    runs = drawn(STILL, 1, 1, 20_000)
    core = 1.4826 * np.median(np.abs(runs.now - np.median(runs.now)))
    assert 0.014 < core < 0.029
    assert 0.03 < runs.now.std() < 0.045


def test_in_minutes_nothing_wanders_and_in_days_it_does() -> None:
    for levels, spread in ((STILL, 0.0), (DAILY, 0.01)):
        moved = drawn(replace(levels, trial=0.0, second=0.0, block=0.0, drift=0.0), 1, 5, 500)
        ratios = np.diff(moved.log_latency).mean(axis=(3, 4))
        assert ratios.std(axis=-1).mean() == pytest.approx(spread, abs=0.004)


@pytest.mark.parametrize("shared", [0.0, 0.5, 1.0])
def test_disks_of_one_machine_differ_by_their_own_share_of_the_hour(shared: float) -> None:
    """Log ratios of blocks of a run: what both disks share cancels, but for the minutes between trials."""
    for hours in (0.0, 3.0):
        levels = Noise(drift=0.02, shared=shared, hours_between_blocks=hours)
        runs = drawn(levels, 1, 10, 2000)
        ratios = simulate.block_log_ratios(runs.log_latency)[:, 0]
        expected = 0.02 * math.sqrt(2 * (1 - shared))
        assert (ratios - math.log(1.02)).std() == pytest.approx(expected, rel=0.1, abs=0.002)
        # The time of the run is what these hours' truth is about.
        assert np.abs(ratios.mean(axis=-1) - runs.now[:, 0]).max() < 0.004
        assert ((runs.now - runs.lasting).std() > 0.001) == (shared < 1)


def test_intervals_cover_these_hours_and_the_kind_but_not_the_months() -> None:
    still, daily = measured(STILL, 3, 5), measured(DAILY, 3, 5)
    for rows in (still, daily):
        assert not any(row.is_off for row in rows.values())
        assert rows[HOURS].coverage > 0.94 and rows[Scope.LIKE_THESE].coverage > 0.94
        assert rows[LASTING].is_known_limit and rows[LASTING].coverage < 0.6
    assert daily[LASTING].coverage > still[LASTING].coverage + 0.1  # spreading blocks over days helps in part
    assert measured(STILL, 1, 3)[Scope.LIKE_THESE].is_refused


def test_a_memory_of_hours_misses_the_long_run_and_hours_between_blocks_help() -> None:
    near, far = (replace(coverage_noise.MEMORY, hours_between_blocks=hours) for hours in (1.0, 12.0))
    rows = measured(near, 1, 10)
    assert rows[HOURS].coverage > 0.96 and not rows[HOURS].is_off
    assert rows[LASTING].is_known_limit and rows[LASTING].coverage < 0.75
    assert measured(far, 1, 10)[LASTING].coverage > 0.91


def test_a_wrong_interval_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    within = coverage_noise.intervals.within_replicates
    monkeypatch.setattr(coverage_noise.intervals, "over_replicates", within)
    row = measured(STILL, 3, 5)[Scope.LIKE_THESE]
    assert row.is_off and "!" in coverage_docs.printed(TITLE, [row])


def test_the_table_names_every_noise_and_its_limit() -> None:
    rows = [row for cell in cells(quick=True) for row in measure(cell, 50, 1)]
    printed = coverage_docs.printed(TITLE, rows)
    for condition in coverage_noise.conditions():
        assert printed.count(f"{condition.name} ") == 12
    assert "known limit: " in printed and "say 'in these hours'" in printed and "NaN" in printed
    assert len(list(cells())) == 200 and len(rows) == 120


def test_isolated_slow_runs_are_counted_as_outliers() -> None:
    levels = replace(STILL, slow_runs=0.01, wander=(), slow_pairs=0.0)
    logs = drawn(levels, 1, 10, 400).log_latency
    counts = outliers.count(logs[..., ARM], logs[..., BASE])
    n_slow, n_trials = int(counts.arm.sum() + counts.base.sum()), logs.size
    interval = stats.binomtest(n_slow, n_trials).proportion_ci(0.999)
    assert interval.low < 0.01 < interval.high
    calm = drawn(replace(levels, slow_runs=0.0), 1, 10, 400).log_latency
    assert not any(part.any() for part in outliers.count(calm[..., ARM], calm[..., BASE]))


@pytest.mark.long
def test_a_shift_of_level_is_named_by_a_row_of_drift() -> None:
    shifting = Noise(trial=0.004, second=0.006, shifts_a_month=1.5, hours_between_blocks=24.0)
    runs = drawn(shifting, 1, 10, 400)
    steps = np.abs(np.diff(simulate.block_log_ratios(runs.log_latency)[:, 0])) > 0.03
    once = np.flatnonzero((steps.sum(axis=1) == 1) & steps[:, 3:6].any(axis=1))[:30]
    assert len(once) == 30 and drifting(runs, once) >= 27
    still = drawn(replace(shifting, shifts_a_month=0.0), 1, 10, 30)
    assert drifting(still, np.arange(30)) <= 3


def drifting(runs: coverage_noise.Drawn, numbers: np.ndarray) -> int:
    """How many of some runs have a row that says that one arm drifts."""
    table = drift(pd.concat([as_trials(runs, number) for number in numbers.tolist()], ignore_index=True))
    named = table[(table["verdict"] == DriftVerdict.DRIFTS) & (table["arm"] != COMMON)]
    return int(named["workload"].nunique())


def as_trials(runs: coverage_noise.Drawn, number: int) -> pd.DataFrame:
    """One run as a table of trials."""
    logs = runs.log_latency[number : number + 1]
    position = np.broadcast_to(np.arange(4).reshape(2, 2), logs.shape)
    nothing, zone = np.zeros(logs.shape, dtype=bool), np.zeros((1, 1), dtype=int)
    whole = simulate.Simulated(logs, position, runs.now[number], zone, 0.0, np.zeros(3), nothing)
    return simulate.trials(whole, 0, f"run-{number}")
