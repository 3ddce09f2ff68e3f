"""Trials as wholes: rows of several runs are distinguished, although their trials have the same names."""

from __future__ import annotations

import math

import pandas as pd
import pytest

from diskbook.design import schema
from diskbook.design.grid import grid
from diskbook.design.model import Comparison
from diskbook.design.totals import (
    little_ok,
    little_tolerance,
    measured_rows,
    rate_kept,
    several_runs,
    trial_totals,
)
from diskbook.stats import evidence, plausibility, ratios
from diskbook.stats.compare import compare
from diskbook.stats.drift import drift
from diskbook.stats.gates import guests
from diskbook.stats.gates.design import cell_checks
from support import synthetic

LOADS = (synthetic.READ, synthetic.COMMIT)
SLOW = synthetic.Truth({"lrs-z1": {"read": 4.4, "commit": 3.8}, "zrs-z1": {"read": 4.4, "commit": 3.8}})
FAST = synthetic.Truth({"lrs-z1": {"read": 2.2, "commit": 1.9}, "zrs-z1": {"read": 4.4, "commit": 3.8}})
READ = Comparison(arm="zrs-z1", base_arm="lrs-z1", workload="randread-qd1", pairing="same-machine")


def tables(truth: synthetic.Truth, run: str) -> tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame]:
    trials, bins, series = synthetic.tables(truth=truth, loads=LOADS, provenance="azure")
    return trials.assign(run=run), bins, series


@pytest.fixture(scope="module")
def runs() -> tuple[tuple[pd.DataFrame, ...], tuple[pd.DataFrame, ...], tuple[pd.DataFrame, ...]]:
    """Tables of two runs, and of both put under each other, whose trials have the same names."""
    one, other = tables(FAST, "fast"), tables(SLOW, "slow")
    return one, other, tuple(pd.concat(pair, ignore_index=True) for pair in zip(one, other, strict=True))


def test_no_trial_of_two_runs_is_lost_or_added_to_another(runs) -> None:
    one, other, both = (of[0] for of in runs)
    assert len(measured_rows(both)) == len(measured_rows(one)) + len(measured_rows(other))
    apart = pd.concat([trial_totals(one), trial_totals(other)], ignore_index=True)
    pd.testing.assert_frame_equal(trial_totals(both), apart)


def test_a_replicate_is_one_of_its_run(runs) -> None:
    one, other, both = (grid(measured_rows(of[0]), "lat_mean_ms") for of in runs)
    assert both.values.shape == (4, 2, 4, 1) and len(set(both.replicates)) == 2
    for run, alone in enumerate((one, other)):
        for key, place in alone.keys.items():
            assert both.values[both.keys[key], run] == pytest.approx(alone.values[place, 0])
    assert set(drift(runs[2][0])["n_replicates"]) == {2}


def test_counts_and_doubts_are_those_of_both_runs(runs) -> None:
    one, other, both = (of[0] for of in runs)
    checks = cell_checks(both)
    assert set(checks["n_trials"]) == {8} and set(checks["n_repeated_rows"]) == {0}
    failed = one.assign(status="failed")
    lost = cell_checks(pd.concat([failed, other], ignore_index=True))
    assert set(lost["n_lost"]) == {4} and set(lost["n_repeated"]) == {0} and set(lost["n_places"]) == {8}
    wrong = both.assign(iops=both["iops"].where(both["run"] == "fast", 100 * both["iops"]))
    asked = {name: plausibility.Asked(outstanding=1.0) for name in both["trial"]}
    assert len(plausibility.doubts(wrong, asked)) == len(trial_totals(other))


def test_a_machine_is_that_of_its_own_run(runs) -> None:
    both = runs[2][0]
    rows = both.drop_duplicates(["run", "trial"])[["run", "trial"]].assign(machine="vm1")
    rows["steal_pct"] = rows["run"].map({"fast": 0.0, "slow": 5.0})
    empty = dict.fromkeys(schema.GUEST.names)
    guest = schema.from_rows(schema.GUEST, [{**empty, **row} for row in rows.to_dict("records")])
    cells = guests.guests_by_cell(measured_rows(both), guest)
    assert {(cell.n_trials, cell.n_stolen) for cell in cells.values()} == {(8, 4)}


def test_a_curve_has_each_trial_once(runs) -> None:
    def curves(trials: pd.DataFrame) -> pd.DataFrame:
        rates = [trials.assign(workload=f"r{rate}", rate_offered=rate) for rate in (50.0, 100.0, 150.0)]
        every = pd.concat(rates)
        every["trial"] += every["workload"]
        return evidence.load_curve_points(every, dict.fromkeys(set(every["workload"]), "read"))

    one, _, both = (curves(of[0]) for of in runs)
    assert len(both) == 2 * len(one) > 0


def test_the_gate_refuses_several_runs_in_one_sentence(runs) -> None:
    one, _, both = runs
    assert several_runs(one[0]) == "" and several_runs(one[0].drop(columns="run")) == ""
    found = compare(both[0], [READ], both[2], {})
    assert set(found.table["verdict"]) == {"invalid"}
    assert found.table[["ratio", "ci_low", "ci_high", "diff_ms"]].isna().all(axis=None)
    assert set(found.table["warnings"]) == {
        "the table of trials holds 2 runs (fast, slow), in which the same numbers mean other machines and "
        "disks: analyse each run by itself, and compare runs with 'diskbook compare'"
    }
    assert "invalid" not in set(compare(one[0], [READ], one[2], {}).table["verdict"])


def test_log_means_of_two_runs_are_not_mixed(runs) -> None:
    one, _, both = (ratios.log_means(of[0], "lat_mean_ms") for of in runs)
    of_both = ratios.as_array(ratios.block_log_ratios(both, "zrs-z1", "lrs-z1", "randread-qd1", "read"))
    of_one = ratios.as_array(ratios.block_log_ratios(one, "zrs-z1", "lrs-z1", "randread-qd1", "read"))
    assert of_both.shape == (2, 4) and of_both[0] == pytest.approx(of_one[0])


def rows(*measured: tuple[str, float, float]) -> pd.DataFrame:
    """Rows of one trial: direction, IOPS and mean latency in ms of each."""
    of_trial = pd.DataFrame(measured, columns=["direction", "iops", "lat_mean_ms"])
    return of_trial.assign(trial="t", status="ok", runtime_s=30.0, outstanding=4, block_size_bytes=4096)


@pytest.mark.parametrize(
    ("direction", "latency_ms", "tolerance"),
    [
        ("read", 2.0, 0.01 + 0.002 / 30 + 0.02 / 2),
        ("write", 2.0, 0.01 + 0.002 / 30 + 0.02 / 2),  # drains for 2 ms of 30 s, 20 us of the client
        ("commit", 2.0, 0.01 + 0.002 / 30 + 2 * 0.02 / 2),
        ("read", 0.01, 0.01 + 0.00001 / 30 + 0.5),  # a client takes half of the time at most
    ],
)
def test_the_ios_in_flight_may_be_off_by_what_draining_and_the_client_take(
    direction: str, latency_ms: float, tolerance: float
) -> None:
    totals = trial_totals(rows((direction, 500.0, latency_ms)))
    assert totals["kind"].tolist() == [direction]
    assert little_tolerance(totals).tolist() == pytest.approx([tolerance])
    for times, is_ok in ((0.999, True), (1.001, False)):
        iops = 4000 / latency_ms * (1 - times * tolerance)
        totals = trial_totals(rows((direction, iops, latency_ms))).assign(rate_offered=math.nan)
        assert little_ok(totals).tolist() == [is_ok]


@pytest.mark.parametrize(
    ("iops", "latency_ms", "is_kept"),
    [
        (100.49, 200.0, True),
        (100.51, 200.0, False),
        (99.51, 200.0, True),
        (99.49, 200.0, False),
        (100.0, 287.0, True),  # 28.7 of 32 may be in flight
        (100.0, 289.0, False),  # a closed loop, whatever it was told
    ],
)
def test_a_rate_is_kept_within_half_a_percent_and_with_depth_to_spare(
    iops: float, latency_ms: float, is_kept: bool
) -> None:
    totals = trial_totals(rows(("read", iops, latency_ms)).assign(outstanding=32, rate_offered=100.0))
    assert rate_kept(totals).tolist() == [is_kept]
    assert little_ok(totals).tolist() == [is_kept]
    assert not rate_kept(totals.assign(rate_offered=math.nan)).any()
