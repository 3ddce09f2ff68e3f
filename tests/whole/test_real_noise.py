"""Noise of real machines, planted large and played: the noise clock, what it moves, and what finds it.

Levels are scaled up, since two cores add 20 to 90 microseconds of their own; the small ones are planted and
found in simulation (tests/emulator/test_noise.py, tests/checks/test_coverage_noise.py).
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from diskbook.report.analysis import run as analysis_run
from diskbook.report.analysis.run import Analysis
from support import SCENARIOS, emulated, played
from support.disturbance import load_sensitive
from support.played import EARLY_MS

pytestmark = [pytest.mark.whole, pytest.mark.measures]

READS = '\n[[latency]]\nsku = "Premium_LRS"\nop = "read"\nmean_ms = 2.2\nsigma = 0.05\n'
NOISE = """
extends = "azure-noise-2024-burstable"
[noise]
machine_us = 400
shared = 0.5
slow_pairs = 0.5
slow_pair_next = 0.6
slow_pair_factor = 0.7
slow_runs = 0.25
slow_run_up_to = 2
credit_empty = 1
hours_between_blocks = 24
[[noise.wander]]
hours = 6
sd = 0.1
"""
WANDER = 0.1  # of the ratio of two disks, whose own share is half
Played = tuple[Analysis, dict[str, Any]]


@pytest.fixture(scope="module")
def days(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Played]:
    """Blocks a day apart, on two burstable machines with two disks each, both measured at once."""
    profile = tmp_path_factory.mktemp("days") / "days.toml"
    profile.write_text(NOISE + READS)
    with emulated.own_place(), pytest.MonkeyPatch.context() as patch:
        patch.setattr("os.cpu_count", lambda: 4)
        run = emulated.measured("days", str(SCENARIOS / "noise.toml"), str(profile))
        yield analysis_run.analyse(run), json.loads((run.folder / "truth.json").read_text())


def single_reads(played: Played) -> pd.DataFrame:
    """Trials of single reads, with what was drawn for each: logs, and the machine's offset in ms."""
    analysis, truth = played
    machines, disks = ({row[f"{kind}_id"]: row for row in truth[f"{kind}s"]} for kind in ("machine", "disk"))
    drawn = {row["trial"]: row for row in truth["trials"]}
    rows = []
    for trial in analysis.trials.query("workload == 'read-qd1'").itertuples():
        session = drawn[trial.trial]
        machine, disk = machines[session["machine_id"]], disks[session["disk_id"]]
        parts = [part[key] for part in (machine, disk) for key in ("log_factor", "slow_log")]
        moves = [part["moves"][min(trial.block, len(part["moves"])) - 1] for part in (machine, disk)]
        rows.append(
            {
                "replicate": trial.replicate,
                "block": trial.block,
                "arm": trial.arm,
                "seen_ms": trial.lat_mean_ms,
                "constant": sum(parts),
                "moved": sum(moves),
                "trial_log": session["trial_log"],
                "offset_ms": machine["offset_us"] / 1000,
                "played_ms": session["realised"]["read_mean_ms"],
            }
        )
    return pd.DataFrame(rows)


def test_the_noise_clock_is_set_on_between_blocks_and_recorded(days: Played) -> None:
    analysis, truth = days
    assert analysis.run.manifest["emulator"]["hours_between_blocks"] == 24
    assert truth["emulator"]["noise"]["hours_between_blocks"] == 24
    for row in (*truth["machines"], *truth["disks"]):
        assert len(set(row["moves"])) == len(row["moves"]) == 4
    assert len({row["offset_us"] for row in truth["machines"]}) == 2


def test_the_disk_drew_and_fio_saw_what_was_planted(days: Played) -> None:
    trials = single_reads(days)
    logs = trials["constant"] + trials["moved"] + trials["trial_log"]
    planted = 2.2 * np.exp(logs) + trials["offset_ms"]
    away = np.log(trials["played_ms"] / planted)
    # Seconds (0.015), drift (0.006), half minutes (0.004) come on top, in trials of half a second: 5 s.d.
    assert np.abs(away).max() < 0.083 and np.abs(away).median() < 0.035
    # A disk that plays half or twice what it drew is 1.1 ms off.
    added = trials["seen_ms"] - trials["played_ms"]
    assert added.min() > -EARLY_MS
    with load_sensitive():
        assert -0.7 < added.median() < 1.0


def test_slow_pairs_are_among_machines_and_disks(days: Played) -> None:
    slow = [row["slow_log"] for row in (*days[1]["machines"], *days[1]["disks"])]
    assert {round(value, 6) for value in slow} == {0.0, round(math.log(1 / 0.7), 6)}


def test_the_share_of_slow_runs_lies_in_its_interval(days: Played) -> None:
    trials = single_reads(days)
    base = 2.2 * np.exp(trials["constant"] + trials["moved"]) + trials["offset_ms"]
    slow = int((trials["played_ms"] / base > 1.08).sum())
    interval = stats.binomtest(slow, len(trials)).proportion_ci(0.99)
    assert slow > 0 and interval.low < 0.25 < interval.high


def test_the_wander_of_the_disks_lies_in_the_interval_of_its_spread(days: Played) -> None:
    trials = single_reads(days)
    logs = np.log(trials["played_ms"] - trials["offset_ms"]) - trials["trial_log"]
    wide = trials.assign(log=logs).pivot(index=["replicate", "block"], columns="arm", values="log")
    ratios = wide["two-z1"] - wide["one-z1"]
    about = ratios - ratios.groupby("replicate").transform("mean")
    total, df = float((about**2).sum()), len(ratios) - 2
    low, high = (math.sqrt(total / stats.chi2.ppf(p, df)) for p in (0.9995, 0.0005))
    assert low < WANDER < high and low > 0.02


def test_the_interval_holds_what_the_disks_were_in_these_hours(days: Played) -> None:
    analysis, truth = days
    trials = single_reads(days)
    logs = np.log(trials["played_ms"]).groupby(trials["arm"]).mean()
    ratio, base_ms = math.exp(logs["two-z1"] - logs["one-z1"]), math.exp(logs["one-z1"])
    least, most = played.as_seen(ratio, base_ms, analysis.trials, truth)
    (row,) = analysis.comparisons.query("workload == 'read-qd1' and scope == 'these disks'").to_dict(
        "records"
    )
    with load_sensitive():
        assert row["ci_low"] < most and least < row["ci_high"]


def test_a_burstable_machine_without_credit_is_held_at_its_base_and_the_limit_is_named(days: Played) -> None:
    analysis, truth = days
    assert {row["credit_share"] for row in truth["machines"]} == {0}
    deep = analysis.trials[analysis.trials["workload"] == "read-64k-qd32"]
    # 51 to 57 in the series; the disks alone would allow 200.
    assert deep["throughput_mb_s"].median() < 51 * 1.1
    cells = analysis.compared.cells
    cells = cells[cells["workload"] == "read-64k-qd32"]
    with load_sensitive():
        assert deep["throughput_mb_s"].median() > 51 * 0.93
        assert set(cells["label"]) <= {"capped", "near a cap"}
        assert cells["binds"].str.contains("VM uncached limit of 50 MB/s").all()
