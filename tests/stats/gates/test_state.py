"""The gate on the state of the disks: slopes over blocks, planted and in A/A runs; how disks were made."""

from __future__ import annotations

import numpy as np
import pytest

from checks import simulate
from diskbook.design.model import Comparison
from diskbook.design.vocabulary import GateStatus, Verdict
from diskbook.stats import drift
from diskbook.stats.compare import compare
from diskbook.stats.gates import attachment
from diskbook.stats.gates.attachment import STATE, UNKNOWN, Conditioning, state_gate
from diskbook.stats.intervals import Interval

OVER = Conditioning(filled=True, overwritten=True)
ARMS = ("arm", "base")
BOTH = dict.fromkeys(ARMS, OVER)
ITEM = Comparison(arm="arm", base_arm="base", workload="randread-qd1", pairing="same-machine")


def slopes(change: float, base: float = 0.0, blocks: int = 10) -> tuple[Interval, Interval, Interval]:
    """Of three replicates of an arm and a base that change so much a block, with a little noise."""
    noise = np.random.default_rng(3).normal(0, 0.005, (2, 3, blocks))
    logs = noise + np.array([change, base])[:, None, None] * np.arange(blocks)
    of_all = drift.slopes(np.stack([*logs, logs[0] - logs[1]]), np.arange(blocks, dtype=float))
    arm, base_, ratio = (Interval(*(part[place] for part in of_all)) for place in range(3))
    return arm, base_, ratio


def test_a_drift_of_one_arm_makes_its_ratio_invalid_and_is_said_in_percent() -> None:
    gate = state_gate(ARMS, BOTH, slopes(0.02), 10, 0.05)
    assert (gate.status, gate.verdict) == (GateStatus.FAILED, Verdict.INVALID)
    assert "each arm was filled and written over at random; change a block: arm +2.0" in gate.cause
    assert gate.cause.endswith("the ratio drifts") and "write the working set over again" in gate.remedy


def test_a_drift_that_both_arms_share_cancels() -> None:
    gate = state_gate(ARMS, BOTH, slopes(0.02, 0.02), 10, 0.05)
    assert gate.status is GateStatus.PASSED and "base +2.0" in gate.cause


def test_a_drift_within_the_margin_is_none_that_matters() -> None:
    assert state_gate(ARMS, BOTH, slopes(0.004), 10, 0.05).status is GateStatus.PASSED
    assert state_gate(ARMS, BOTH, slopes(0.004), 10, 0.02).status is GateStatus.FAILED


def test_an_emulated_run_is_warned_of_and_stays_valid() -> None:
    gate = state_gate(ARMS, BOTH, slopes(0.02), 10, 0.05, "emulated")
    assert (gate.status, gate.verdict) == (GateStatus.FAILED, None) and "computer that emulates" in gate.cause


@pytest.mark.parametrize(
    ("how", "words"),
    [
        (UNKNOWN, "is in a state that nobody recorded"),
        (Conditioning(filled=True, overwritten=False), "was filled in order, and not written over"),
    ],
)
def test_a_drift_decides_whatever_is_known_of_the_fill(how: Conditioning, words: str) -> None:
    steady, drifting = (
        state_gate(ARMS, dict.fromkeys(ARMS, how), slopes(change), 10, 0.05) for change in (0.0, 0.02)
    )
    assert (steady.status, steady.verdict) == (GateStatus.NOT_ASSESSABLE, None)
    assert (drifting.status, drifting.verdict) == (GateStatus.FAILED, Verdict.INVALID)
    for gate in (steady, drifting):
        assert words in gate.cause and "written over at random after their fill" in gate.remedy


def test_a_reason_to_leave_the_pass_out_is_said() -> None:
    reasoned = Conditioning(filled=True, overwritten=False, reason="emulated disks keep no state")
    gate = state_gate(ARMS, {"arm": reasoned, "base": OVER}, slopes(0.0), 10, 0.05)
    assert gate.status is GateStatus.PASSED
    assert (
        "arm was filled in order, and not written over (emulated disks keep no state); base was" in gate.cause
    )


def test_two_blocks_show_no_slope() -> None:
    gate = state_gate(ARMS, BOTH, slopes(0.1, blocks=2), 2, 0.05)
    assert gate.status is GateStatus.NOT_ASSESSABLE and "fewer than 3 blocks" in gate.cause


@pytest.mark.parametrize("level", simulate.LEVELS, ids=lambda level: level.name)
def test_false_alarms_and_what_is_seen(level: simulate.Level) -> None:
    """At most one in a hundred A/A runs of 5 comparisons, so one in 500 of one comparison."""
    design = simulate.Design(3, 5)
    runs = simulate.simulate(level, design, simulate.Truth(0.0), 4000, np.random.default_rng(15))
    ratios, blocks = simulate.block_log_ratios(runs.log_latency), np.arange(5.0)
    alarms = attachment.drifts(drift.slopes(ratios, blocks), 5, 0.05)
    assert alarms.mean() < 0.004
    planted = attachment.drifts(drift.slopes(ratios + 0.08 * blocks, blocks), 5, 0.05)
    assert planted.mean() > 0.8


def test_a_run_is_judged_by_what_its_tables_and_its_ledger_say() -> None:
    runs = simulate.simulate(
        simulate.LEVELS[0], simulate.Design(2, 8), simulate.Truth(0.0), 1, np.random.default_rng(1)
    )
    runs.log_latency[..., simulate.ARM] += 0.03 * np.arange(8)[:, None]
    trials = simulate.trials(runs, 0).assign(provenance="azure")
    found = compare(trials, [ITEM], conditioning=BOTH)
    row = found.gates[found.gates["gate"] == STATE].iloc[0]
    assert row["status"] == "failed" and set(found.table["verdict"]) == {"invalid"}
    imported = compare(trials.assign(provenance="imported"), [ITEM])
    row = imported.gates[imported.gates["gate"] == STATE].iloc[0]
    assert row["status"] == "failed" and set(imported.table["verdict"]) == {"invalid"}
    assert imported.table["warnings"].str.contains("the ratio drifts").all()
