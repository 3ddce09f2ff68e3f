"""An attach is a treatment: arms must be measured as long after theirs, or their comparison is invalid."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta
from typing import Any

import pandas as pd
import pytest

from diskbook import load
from diskbook.scenario import attachments, schedule
from diskbook.scenario.model import Comparison, Scenario
from diskbook.stats.compare import compare
from diskbook.stats.gates.attachment import attachment_gate
from diskbook.store import attached
from diskbook.tables.vocabulary import GateStatus, Scope, Verdict
from support import synthetic

ARMS = ("zrs-z1", "lrs-z1")
NAN = math.nan
BLOCKS, TRIAL_S, ATTACH_S, SLOW_S, SLOW = 6, 30.0, 20.0, 60.0, 1.5


@pytest.mark.parametrize(
    ("since", "often", "status", "verdict", "words"),
    [
        ((3.0, 4.0), (3, 3), "passed", None, "passed 3.0 s (zrs-z1) and 4.0 s (lrs-z1), medians"),
        ((3.7, 111.0), (3, 0), "failed", Verdict.INVALID, "3.7 s (zrs-z1) and 111 s (lrs-z1)"),
        ((111.0, 3.7), (3, 3), "failed", Verdict.INVALID, "111 s (zrs-z1) and 3.7 s (lrs-z1)"),
        ((1.0, 9.0), (3, 3), "passed", None, "9.0 s"),  # nine times as long, but 8 s
        ((40.0, 70.0), (3, 3), "passed", None, "70.0 s"),  # 30 s longer, but not twice as long
        ((3.0, 4.0), (3, 1), "failed", None, "attached the disk 3 times (zrs-z1) and 1 times (lrs-z1)"),
        ((30.0, 90.0), (0, 0), "failed", None, "so that is the time in the run"),
        ((3000.0, 9000.0), (1, 1), "failed", Verdict.INVALID, "50 min (zrs-z1) and 2 h (lrs-z1)"),
        ((NAN, 4.0), (NAN, 3), "not assessable", None, "the disk of zrs-z1 was attached is not known"),
        ((NAN, NAN), (NAN, NAN), "not assessable", None, "zrs-z1 and lrs-z1"),
    ],
)
def test_how_long_ago_and_how_often(
    since: tuple[float, float], often: tuple[float, float], status: str, verdict: Verdict | None, words: str
) -> None:
    pairs = zip(since, often, strict=True)
    cells = [{"since_attach_s": ago, "attaches": times} for ago, times in pairs]
    gate = attachment_gate(ARMS, cells)
    assert (gate.status, gate.verdict) == (GateStatus(status), verdict)
    assert words in gate.cause
    assert bool(gate.remedy) == (gate.status is GateStatus.FAILED)


# --- planted: every disk slow for 60 s after an attach


def _scenario() -> Scenario:
    scenario = load.load("zone-disks", "quick", {"all_workloads.blocks": BLOCKS})
    names = (synthetic.READ.name, synthetic.WRITE.name)
    loads = tuple(item for item in scenario.workload if item.name in names)
    return scenario.model_copy(update={"workload": loads})


def _ledger(scenario: Scenario, balanced: bool) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Manifest and ledger of a run that attaches as planned, or only where a disk has to move."""
    events: list[dict[str, Any]] = []
    clock, place = datetime(2026, 11, 22, tzinfo=UTC), dict[str, str]()

    def attach(disk: str, machine: str) -> None:
        nonlocal clock
        clock, place[disk] = clock + timedelta(seconds=ATTACH_S), machine
        at = {"replicate": 1, "time_utc": clock.isoformat()}
        events.append({"event": "attached", "disk": disk, "machine": machine, **at})

    for block in schedule.plan(scenario):
        events.append({"event": "block", "replicate": 1, "block": block.block, "status": "begun"})
        cycles = attachments.cycles(scenario, block) if balanced else {}
        for trial in block.trials:
            arm = scenario.arm_named(trial.arm)
            moves = place.get(arm.disk) != arm.machine
            for _ in range(cycles.get(trial.position, int(moves))):
                attach(arm.disk, arm.machine)
            times = {"started_utc": clock.isoformat()}
            clock += timedelta(seconds=TRIAL_S)
            where = {"arm": arm.name, "disk": arm.disk, "machine": arm.machine, "workload": trial.workload}
            name = {"trial": trial.name(1), "block": block.block, "replicate": 1}
            events.append({"event": "trial", **name, **where, **times, "ended_utc": clock.isoformat()})
    return {"replicates": [{"replicate": 1, "disks": {}}], "scenario": {}}, events


def _measured(balanced: bool, ratio: float) -> pd.DataFrame:
    """Verdict and interval of ZRS against LRS, and of two LRS disks, with attaches as they were."""
    scenario = _scenario()
    base = {"read": 2.0, "write": 2.0, "commit": 2.0}
    slower = {name: ratio * value for name, value in base.items()}
    latencies = {arm.name: slower if arm.disk == "zrs" else base for arm in scenario.arm}
    truth = synthetic.Truth(latencies, block=0.02, trial=0.005)
    trials, _, series = synthetic.tables(
        7, truth, n_blocks=BLOCKS, loads=(synthetic.READ, synthetic.WRITE), samples=4, draws=10
    )
    since = attached.by_trial(*_ledger(scenario, balanced))
    planned = {
        (trial.block, trial.arm, trial.workload): since[trial.name(1)]
        for block in schedule.plan(scenario)
        for trial in block.trials
    }
    rows = [planned[key] for key in trials[["block", "arm", "workload"]].itertuples(index=False, name=None)]
    trials = trials.assign(**{name: [row[name] for row in rows] for name in attached.COLUMNS})
    slow_s = (SLOW_S - trials["since_attach_s"]).clip(0, TRIAL_S)
    factor = 1 + (SLOW - 1) * slow_s / TRIAL_S
    trials = trials.assign(lat_mean_ms=trials["lat_mean_ms"] * factor, iops=trials["iops"] / factor)
    asked = [
        Comparison(arm=arm, base_arm="lrs-z1", workload="randwrite-qd1", pairing="same-machine")
        for arm in ("zrs-z1", "lrs-b-z1")
    ]
    table = compare(trials, asked, series, {}).table
    return table[table["scope"].eq(Scope.THESE)].set_index("arm")


@pytest.mark.parametrize(("ratio", "verdict"), [(1.0, Verdict.EQUIVALENT), (1.6, Verdict.DIFFERENCE)])
def test_without_cycles_the_gate_refuses_and_with_them_the_ratio_is_there(
    ratio: float, verdict: Verdict
) -> None:
    """Of 6 blocks with 0.5 % of noise a trial the ratio has a standard error of 0.3 %."""
    without, planned = (_measured(balanced, ratio).loc["zrs-z1"] for balanced in (False, True))
    assert without["verdict"] == Verdict.INVALID
    assert "from attach to trial passed" in without["warnings"]
    assert without["ratio"] > 1.2 * ratio and without["ci_low"] > ratio  # what the gate saves from
    assert planned["verdict"].startswith(verdict)
    assert planned["ratio"] == pytest.approx(ratio, rel=0.01)


def test_two_disks_of_one_kind_stay_alike() -> None:
    row = _measured(True, 1.6).loc["lrs-b-z1"]
    assert row["ci_low"] < 1 < row["ci_high"] and row["verdict"] not in (Verdict.INVALID, Verdict.DIFFERENCE)
