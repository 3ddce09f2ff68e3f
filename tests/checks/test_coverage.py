"""The self-check of the intervals: its simulator, its identity with the analysis, and that it can fail."""

from __future__ import annotations

import functools
import math

import numpy as np
import pandas as pd
import pytest

from checks import coverage, coverage_cells, coverage_docs, simulate
from checks.coverage_cells import ANALYSIS, Cell, Condition
from checks.simulate import LEVELS, Design, Level, Truth
from diskbook.design.model import Comparison
from diskbook.design.vocabulary import Scope
from diskbook.stats import intervals, ratios
from diskbook.stats.compare import compare

pytestmark = pytest.mark.long  # simulations

MILD, OUTLIERS = LEVELS[1], LEVELS[3]
QUIET = Level("quiet", 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0)


def simulated(level: Level, design: Design, n_runs: int, **truth: object) -> simulate.Simulated:
    return simulate.simulate(level, design, Truth(**truth), n_runs, np.random.default_rng(7))


@pytest.mark.parametrize("level", LEVELS, ids=lambda level: level.name)
def test_a_trial_is_its_seconds(level: Level) -> None:
    """The mean of one-second samples, drawn one by one, has the standard deviation that trials are given."""
    rng, n_trials = np.random.default_rng(2), 20_000
    innovations = rng.normal(0, level.second * math.sqrt(1 - level.phi**2), (simulate.SECONDS, n_trials))
    logs = np.empty_like(innovations)
    logs[0] = rng.normal(0, level.second, n_trials)
    for second in range(1, simulate.SECONDS):
        logs[second] = level.phi * logs[second - 1] + innovations[second]
    means = np.log(np.exp(logs).mean(axis=0))
    given = simulate.sd_of_mean(level.second, level.phi, simulate.SECONDS)
    assert means.std() == pytest.approx(given, rel=0.02)
    assert means.mean() == pytest.approx(0, abs=level.second**2)


def test_without_noise_the_planted_ratio_comes_out() -> None:
    runs = simulated(QUIET, Design(2, 3), 5, overhead=0.02)
    assert np.allclose(simulate.block_log_ratios(runs.log_latency), math.log(1.02))


@pytest.mark.parametrize("level", [*LEVELS, simulate.ONE_SIDED], ids=lambda level: level.name)
def test_truth_is_the_mean_of_what_is_drawn(level: Level) -> None:
    runs = simulated(level, Design(2, 4), 20_000)
    found = simulate.block_log_ratios(runs.log_latency).mean(axis=(1, 2))
    error = found.std() / math.sqrt(len(found))
    assert abs(found.mean() - runs.population) < 4 * error
    assert abs((found - runs.pair.mean(axis=1)).mean()) < 4 * error


def test_arms_are_mirrored_in_a_block_and_drift_cancels() -> None:
    drifting = simulate.replace(QUIET, drift=0.1)
    runs = simulated(drifting, Design(1, 2, 2), 50, overhead=0.0)
    assert np.array_equal(np.sort(runs.position.reshape(50, 2, 4)), np.tile(np.arange(4), (50, 2, 1)))
    assert np.allclose(simulate.block_log_ratios(runs.log_latency), 0)
    assert np.ptp(runs.log_latency, axis=(1, 2, 3, 4)).max() > 0.05


def test_one_trial_in_ten_fails() -> None:
    runs = simulated(MILD, Design(2, 5, 2, 0.1), 2000)
    assert np.isnan(runs.log_latency).mean() == pytest.approx(0.1, abs=0.005)


def test_hidden_zones_are_a_mixture() -> None:
    runs = simulated(QUIET, Design(3, 1), 3000, overhead=0.0, hidden_zone=True)
    reads = 2.2 * np.exp(runs.pair)
    assert set(np.round(np.unique(reads), 6)) == {2.2, 3.2, 4.3}
    assert runs.population == pytest.approx(np.mean(np.log([2.2, 3.2, 4.3])) - math.log(2.2))


CELLS = [
    Design(1, 3),
    Design(3, 2, 1, 0.1),
    Design(2, 5, 2, 0.1),
    Design(2, 4, 2, slow_lost=0.1),
    Design(1, 5, 1, slow_repeated=0.2),
]


def alone(trials: pd.DataFrame, number: int) -> pd.DataFrame:
    """Trials with a block size of their own, so that no other run shows that no limit holds them."""
    size = 512 * (number + 1)
    return trials.assign(block_size_bytes=size, throughput_mb_s=trials["iops"] * size / 1e6)


@pytest.mark.parametrize("design", CELLS, ids=str)
def test_the_check_computes_what_the_analysis_prints(design: Design) -> None:
    """Thirty runs through tables and `compare`: the same intervals, refused and flagged in the same runs."""
    runs = simulated(OUTLIERS, design, 30)
    names = [f"run-{number}" for number in range(30)]
    trials = pd.concat(
        [alone(simulate.trials(runs, number, name), number) for number, name in enumerate(names)]
    )
    items = [Comparison(arm="arm", base_arm="base", workload=name, pairing="same-machine") for name in names]
    found = compare(trials.reset_index(drop=True), items)
    table = found.table.set_index(["scope", "workload"])
    failed = found.gates.pivot(index="workload", columns="gate", values="status").loc[names] == "failed"
    for scope, outcome in coverage_cells.outcomes(runs).items():
        printed = table.loc[scope].loc[names]
        for column in ("low", "high"):
            theirs = np.log(printed[f"ci_{column}"].to_numpy(float))
            assert np.allclose(getattr(outcome.interval, column), theirs, atol=1e-12, rtol=0, equal_nan=True)
        assert np.array_equal(outcome.selected, failed["losses by arm"].to_numpy())
        assert np.array_equal(outcome.flagged, failed[["failed trials", "losses by arm"]].any(axis=1))
        assert np.array_equal(outcome.noisy, failed["one-sided noise"].to_numpy())


def holds(row: coverage_cells.Row) -> bool:
    """Whether its intervals are printed, and cover as they are to."""
    return not (row.is_refused or row.is_off or row.is_known_limit)


def measured(condition: Condition, design: Design, methods: coverage_cells.Methods = ANALYSIS) -> dict:
    cell = Cell(condition, design.replicates, design.blocks)
    assert cell.design == design
    return {row.claim: row for row in coverage_cells.measure(cell, 4000, 1, methods)}


@pytest.mark.parametrize("level", LEVELS, ids=lambda level: level.name)
def test_intervals_of_the_analysis_cover(level: Level) -> None:
    for failed in (0.0, 0.1):
        rows = measured(Condition("check", level, 2, failed), Design(3, 3, 2, failed))
        assert all(map(holds, rows.values()))
        assert rows[Scope.LIKE_THESE].false < 0.07 and rows[Scope.THESE].false < 0.07


def test_widths_are_those_of_the_published_simulation() -> None:
    """Noise level B: half-widths of 8.2, 1.5 and 0.8 points at 2x5, 5x5 and 10x10."""
    widths = {(2, 5): 8.2, (5, 5): 1.5, (10, 10): 0.8}
    for (replicates, blocks), wanted in widths.items():
        row = measured(Condition("check", MILD), Design(replicates, blocks))[Scope.LIKE_THESE]
        assert 100 * row.half_width == pytest.approx(wanted, rel=0.1)


def pooled(log_ratios: np.ndarray) -> intervals.Interval:
    """Blocks of all replicates taken as independent: wrong for disks of the kind."""
    return intervals.t_interval(log_ratios.reshape(len(log_ratios), -1))


WRONG = {
    "level 0.8": functools.partial(intervals.over_replicates, level=0.8),
    "blocks pooled": pooled,
    "general claim from these disks": intervals.within_replicates,
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_interval_is_found(name: str) -> None:
    rows = measured(Condition("check", MILD), Design(3, 5), {**ANALYSIS, Scope.LIKE_THESE: WRONG[name]})
    assert rows[Scope.LIKE_THESE].is_off and rows[Scope.LIKE_THESE].false > 0.1
    assert holds(rows[Scope.THESE])


def test_a_wide_interval_is_called_conservative() -> None:
    wide = functools.partial(intervals.over_replicates, level=0.99)
    row = measured(Condition("check", MILD), Design(3, 5), {Scope.LIKE_THESE: wide})[Scope.LIKE_THESE]
    assert row.is_conservative and row.coverage == pytest.approx(0.99, abs=0.006)


def test_one_replicate_is_refused_and_too_many_losses_are_flagged() -> None:
    rows = measured(Condition("check", MILD), Design(1, 3))
    assert rows[Scope.LIKE_THESE].is_refused and holds(rows[Scope.THESE])
    rows = measured(Condition("check", MILD, 2, 0.6), Design(3, 10, 2, 0.6))
    assert all(row.is_refused and row.flagged > row.refused for row in rows.values())


def test_zones_apart_cover_and_pooled_zones_are_flagged() -> None:
    truth, design = Truth(hidden_zone=True), Design(3, 3)
    unknown = measured(Condition("check", MILD, truth=truth), design)
    apart = measured(Condition("check", MILD, truth=truth, zones="apart"), design)
    pooled_zones = measured(Condition("check", MILD, truth=truth, zones="pooled"), design)
    told = measured(Condition("check", MILD, truth=truth, zones="unprobed"), design)
    assert told[Scope.LIKE_THESE].is_refused and holds(told[Scope.THESE])
    assert unknown[Scope.LIKE_THESE].is_off and holds(unknown[Scope.THESE])
    assert holds(apart[Scope.LIKE_THESE]) and apart[Scope.LIKE_THESE].n_printed > 2500
    # Of three replicates in three zones, one run in nine has all in the same zone.
    assert pooled_zones[Scope.LIKE_THESE].flagged == pytest.approx(8 / 9, abs=0.02)


def test_one_sided_noise_is_a_known_limit_that_the_gate_sees_in_part() -> None:
    """The gate warns where noise occurred, which is where the spread shows it; the others cover least."""
    row = measured(Condition("check", simulate.ONE_SIDED, known_limit="unseen"), Design(5, 5))[Scope.THESE]
    assert row.is_known_limit and 0.2 < row.noisy < 0.8
    assert row.coverage_quiet < row.coverage < 0.93
    assert coverage_docs.printed("", [row]).endswith(" ?")
    assert "known limit: unseen" in coverage_docs.table([row])


@pytest.mark.parametrize("selection", [{"slow_lost": 0.1}, {"slow_repeated": 0.16}], ids=str)
def test_losses_of_the_slow_trials_are_flagged_and_the_bound_covers(selection: dict[str, float]) -> None:
    condition = Condition("check", MILD, 2, **selection, known_limit="unseen")
    for row in measured(condition, Design(5, 10, 2, **selection)).values():
        assert row.flagged > 0.97 and row.coverage_flagged < 0.93 and row.coverage_bound > 0.97
        assert row.is_refused and not row.is_off
    for row in measured(condition, Design(3, 3, 2, **selection)).values():
        assert row.coverage_bound > 0.93 and not row.is_off


def test_a_bound_that_does_not_cover_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    shift = coverage_cells.outliers.shift
    monkeypatch.setattr(coverage_cells.outliers, "shift", lambda *given: shift(*given) / 4)
    monkeypatch.setattr(coverage_cells.outliers, "SMALL", 0.02)
    condition = Condition("check", MILD, 2, slow_repeated=0.16, known_limit="unseen")
    assert measured(condition, Design(5, 10, 2, slow_repeated=0.16))[Scope.THESE].is_off


@pytest.mark.parametrize("method", ["level 0.8", ""])
def test_the_command_fails_with_a_wrong_interval_alone(
    method: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    parts = {name: coverage.PARTS[name] for name in (coverage.RATIOS, "Planned looks")}
    monkeypatch.setattr(coverage, "PARTS", parts)  # all have tests of their own
    if method:
        wrong = {**ANALYSIS, Scope.LIKE_THESE: WRONG[method]}
        monkeypatch.setattr(coverage_cells, "ANALYSIS", wrong)
    assert coverage.main(["--quick", "--runs", "250", "--jobs", "1"]) == bool(method)
    printed = capsys.readouterr().out
    assert ("Ratios: 0 of" in printed) == (not method) and " ?" in printed
    off = [line for line in printed.splitlines() if "B mild, 2 repeats " in line and line.endswith("!")]
    assert any("disks like these" in line and "3 x 5" in line for line in off) == bool(method)


def test_same_functions_as_the_analysis() -> None:
    values = np.array([[0.01, 0.03, 0.02], [0.05, 0.02, np.nan]])
    for scope, found in zip((Scope.LIKE_THESE, Scope.THESE), ratios.estimates(values), strict=True):
        assert found.scope == scope
        assert math.log(found.low) == pytest.approx(float(ANALYSIS[scope](values).low))
