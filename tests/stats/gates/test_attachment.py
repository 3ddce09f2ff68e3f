"""An attach is a treatment: arms must be measured as long after theirs, or their comparison is invalid."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pandas as pd
import pytest

from diskbook.design import attachments
from diskbook.design.model import Comparison, Scenario
from diskbook.design.schema import EARLY
from diskbook.design.vocabulary import GateStatus, Scope, Verdict
from diskbook.results import attached
from diskbook.stats.compare import compare
from diskbook.stats.gates import attachment
from diskbook.stats.gates.attachment import NOT_CHECKED, NOT_EXCLUDED, attachment_gate
from support import synthetic

ARMS = ("zrs-z1", "lrs-z1")
NAN = math.nan
UNCHECKED = "not assessable"
BLOCKS, TRIAL_S, ATTACH_S, SLOW_S, SLOW = 6, 30.0, 20.0, 60.0, 1.5


@pytest.mark.parametrize(
    ("since", "often", "status", "verdict", "words"),
    [
        ((3.0, 4.0), (3, 3), UNCHECKED, None, "passed 3.0 s (zrs-z1) and 4.0 s (lrs-z1), medians"),
        ((3.7, 111.0), (3, 0), "failed", Verdict.INVALID, "3.7 s (zrs-z1) and 111 s (lrs-z1)"),
        ((111.0, 3.7), (3, 3), "failed", Verdict.INVALID, "111 s (zrs-z1) and 3.7 s (lrs-z1)"),
        ((1.0, 9.0), (3, 3), UNCHECKED, None, "9.0 s"),  # nine times as long, but 8 s
        ((40.0, 70.0), (3, 3), UNCHECKED, None, "70.0 s"),  # 30 s longer, but not twice as long
        ((3.0, 4.0), (3, 1), "failed", None, "attached the disk 3 times (zrs-z1) and 1 times (lrs-z1)"),
        ((30.0, 90.0), (0, 0), UNCHECKED, None, "the first trial came 30.0 s after one"),
        ((130.0, 9000.0), (0, 0), "passed", None, "there is no attach effect to check"),
        ((70.0, 75.0), (0, 0), "passed", None, "there is no attach effect to check"),
        ((3000.0, 9000.0), (1, 1), "failed", Verdict.INVALID, "50 min (zrs-z1) and 2 h (lrs-z1)"),
        ((NAN, 4.0), (NAN, 3), "not assessable", None, "the disk of zrs-z1 was attached is not known"),
        ((NAN, NAN), (NAN, NAN), "not assessable", None, "zrs-z1 and lrs-z1"),
    ],
)
def test_how_long_ago_and_how_often(
    since: tuple[float, float], often: tuple[float, float], status: str, verdict: Verdict | None, words: str
) -> None:
    pairs = zip(since, often, strict=True)
    names = ("since_attach_s", "since_attach_least_s", "attaches")
    cells = [dict(zip(names, (ago, ago, times), strict=True)) for ago, times in pairs]
    gate = attachment_gate(ARMS, cells)
    assert (gate.status, gate.verdict) == (GateStatus(status), verdict)
    assert words in gate.cause
    is_known = not math.isnan(sum(since))
    assert gate.cause.startswith(NOT_CHECKED) == (is_known and status != "passed" and verdict is None)
    assert bool(gate.remedy) == (is_known and status != "passed")


CELL = {"since_attach_s": 120.0, "since_attach_least_s": 120.0, "attaches": 1}
STEPS = np.array([-1.0, 0.0, 1.0, 0.0])  # with a standard error of 0.41


@pytest.mark.parametrize(
    ("slow", "noise", "status", "words"),
    [
        ((0.0, 0.0), 0.01, "passed", "no difference beyond 5 %"),
        ((0.3, 0.3), 0.01, "passed", "the ratio is 1 right after an attach and 1 after settling"),
        ((0.4, 0.0), 0.01, "failed", "the ratio is 1.49 right after an attach and 1 after settling"),
        ((0.0, 0.4), 0.01, "failed", "lrs-z1 -33 % (-34 % to -32 %)"),
        ((0.0, -0.4), 0.01, "failed", "their ratio -33 %"),
        ((0.0, 0.0), 0.10, UNCHECKED, "attach effect not excluded: "),
        ((0.1, 0.0), 0.10, UNCHECKED, "attach effect not excluded: "),
        ((0.3, 0.3), 0.10, UNCHECKED, "attach effect not excluded: "),  # both alike, as far as one can see
    ],
)
def test_late_and_early_trials_agree_differ_or_leave_it_open(
    slow: tuple[float, float], noise: float, status: str, words: str
) -> None:
    late = noise * np.stack([STEPS, STEPS[::-1]])
    early = np.broadcast_to(np.array(slow)[:, None], late.shape)
    gate = attachment_gate(ARMS, [CELL, CELL], attachment.of_logs(early, late))
    assert gate.status == GateStatus(status) and words in gate.cause
    assert gate.decides == (Verdict.SINCE_ATTACH if status == "failed" else None)
    assert bool(gate.remedy) == (status != "passed")


def test_one_visit_excludes_nothing() -> None:
    one = attachment.of_logs(np.zeros((2, 1)), np.zeros((2, 1)))
    gate = attachment_gate(ARMS, [CELL, CELL], one)
    assert gate.cause.startswith(NOT_EXCLUDED) and "in the same 1 visits" in gate.cause


# --- planted: disks slow for a time after an attach


@dataclass(frozen=True)
class Planted:
    """What disks do after an attach, and how they are measured; by default all are slow for 60 s."""

    balanced: bool = True
    ratio: float = 1.0
    slow_s: float = SLOW_S
    zrs_alone: bool = False
    settle_s: float = 0.0


def _scenario(settle_s: float) -> Scenario:
    changes = {"all_workloads.blocks": BLOCKS, "design.settle_s": settle_s}
    scenario = synthetic.every_block("quick", changes)
    names = (synthetic.READ.name, synthetic.WRITE.name)
    loads = tuple(item for item in scenario.workload if item.name in names)
    return scenario.model_copy(update={"workload": loads})


def _ledger(scenario: Scenario, *, balanced: bool) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Manifest and ledger of a run that attaches as planned, or only where a disk has to move."""
    events: list[dict[str, Any]] = []
    clock, place = datetime(2026, 11, 22, tzinfo=UTC), dict[str, str]()

    def attach(disk: str, machine: str) -> None:
        nonlocal clock
        clock, place[disk] = clock + timedelta(seconds=ATTACH_S), machine
        at = {"replicate": 1, "time_utc": clock.isoformat()}
        events.append({"event": "attached", "disk": disk, "machine": machine, **at})

    for block in attachments.plan_after_attach(scenario):
        events.append({"event": "block", "replicate": 1, "block": block.block, "status": "begun"})
        cycles = attachments.cycles(scenario, block) if balanced else {}
        for trial in block.trials:
            arm = scenario.arm_named(trial.arm)
            moves = place.get(arm.disk) != arm.machine
            for _ in range(cycles.get(trial.position, int(moves))):
                attach(arm.disk, arm.machine)
                settled = clock + timedelta(seconds=scenario.design.settle_s)
            clock = clock if trial.early else max(clock, settled)
            times = {"started_utc": clock.isoformat()}
            clock += timedelta(seconds=TRIAL_S)
            where = {"arm": arm.name, "disk": arm.disk, "machine": arm.machine, "workload": trial.workload}
            name = {"trial": trial.name(1), "block": block.block, "replicate": 1}
            events.append({"event": "trial", **name, **where, **times, "ended_utc": clock.isoformat()})
    return {"replicates": [{"replicate": 1, "disks": {}}], "scenario": {}}, events


def _measured(planted: Planted) -> pd.DataFrame:
    """Verdict and interval of ZRS against LRS, and of two LRS disks, with attaches as they were."""
    scenario = _scenario(planted.settle_s)
    base = {"read": 2.0, "write": 2.0, "commit": 2.0}
    slower = {name: planted.ratio * value for name, value in base.items()}
    latencies = {arm.name: slower if arm.disk == "zrs" else base for arm in scenario.arm}
    truth = synthetic.Truth(latencies, block=0.02, trial=0.005)
    trials, _, series = synthetic.tables(
        7, truth, n_blocks=BLOCKS, loads=(synthetic.READ, synthetic.WRITE), samples=4, draws=10
    )
    noise = np.exp(np.random.default_rng(7).normal(0, 0.005, len(trials)))  # of trials right after an attach
    others = trials.assign(status=EARLY, lat_mean_ms=trials["lat_mean_ms"] * noise)
    trials = pd.concat([trials, others.assign(trial=others["trial"] + "-early")])
    since = attached.by_trial(*_ledger(scenario, balanced=planted.balanced))
    planned = {
        (trial.block, trial.arm, trial.workload, trial.early): since[trial.name(1)]
        for block in attachments.plan_after_attach(scenario)
        for trial in block.trials
    }
    places = (trials[name] for name in ("block", "arm", "workload"))
    keys = zip(*places, trials["status"] == EARLY, strict=True)
    rows = [planned.get(key, dict.fromkeys(attached.COLUMNS, NAN)) for key in keys]
    trials = trials.assign(**{name: [row[name] for row in rows] for name in attached.COLUMNS})
    trials = trials[trials["since_attach_s"].notna()]
    slow_s = (planted.slow_s - trials["since_attach_s"]).clip(0, TRIAL_S)
    slow_s = slow_s.where(trials["arm"].str.startswith("zrs") | (not planted.zrs_alone), 0.0)
    factor = 1 + (SLOW - 1) * slow_s / TRIAL_S
    trials = trials.assign(lat_mean_ms=trials["lat_mean_ms"] * factor, iops=trials["iops"] / factor)
    asked = [
        Comparison(arm=arm, base_arm="lrs-z1", workload="randwrite-qd1", pairing="same-machine")
        for arm in ("zrs-z1", "lrs-b-z1")
    ]
    table = compare(trials, asked, series, {}).table
    return table[table["scope"].eq(Scope.THESE)].set_index("arm")


@pytest.mark.long
@pytest.mark.parametrize(("ratio", "verdict"), [(1.0, Verdict.EQUIVALENT), (1.6, Verdict.DIFFERENCE)])
def test_without_cycles_the_gate_refuses_and_with_them_the_ratio_is_there(
    ratio: float, verdict: Verdict
) -> None:
    """Of 6 blocks with 0.5 % of noise a trial the ratio has a standard error of 0.3 %."""
    without, planned = (_measured(Planted(balanced, ratio)).loc["zrs-z1"] for balanced in (False, True))
    assert without["verdict"] == Verdict.INVALID
    assert "from attach to trial passed" in without["warnings"]
    assert without["ratio"] > 1.2 * ratio and without["ci_low"] > ratio  # what the gate saves from
    assert planned["verdict"].startswith(verdict)
    assert planned["ratio"] == pytest.approx(ratio, rel=0.01)
    assert NOT_CHECKED in planned["warnings"]  # all trials come right after an attach


def test_two_disks_of_one_kind_stay_alike() -> None:
    row = _measured(Planted(ratio=1.6)).loc["lrs-b-z1"]
    assert row["ci_low"] < 1 < row["ci_high"] and row["verdict"] not in (Verdict.INVALID, Verdict.DIFFERENCE)


def test_one_kind_that_is_slow_after_an_attach_is_not_called_slow() -> None:
    planted = Planted(ratio=0.94, zrs_alone=True)
    unsettled = _measured(planted).loc["zrs-z1"]
    assert unsettled["ci_low"] > 1 and NOT_CHECKED in unsettled["warnings"]  # as it was printed: slower
    settled = _measured(replace(planted, settle_s=120)).loc["zrs-z1"]
    assert settled["verdict"] == Verdict.SINCE_ATTACH
    assert settled["ratio"] == pytest.approx(0.94, rel=0.01)  # the late value
    assert "the ratio is 1.41 right after an attach and 0.943 after settling" in settled["warnings"]


@pytest.mark.long
@pytest.mark.parametrize("planted", [Planted(slow_s=0.0), Planted()])
def test_an_attach_that_changes_no_ratio_lets_the_verdict_be(planted: Planted) -> None:
    table = _measured(replace(planted, ratio=1.6, settle_s=120))
    assert table.loc["zrs-z1", "verdict"] == Verdict.DIFFERENCE
    assert table.loc["zrs-z1", "ratio"] == pytest.approx(1.6, rel=0.01)
    assert not table["warnings"].str.contains("attach").any()
