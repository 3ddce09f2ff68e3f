"""Disks that are slow after an attach, played: all arms meet it alike, and their ratio is the planted one."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from diskbook.design import attachments as planned_early
from diskbook.design.schema import EARLY
from diskbook.design.totals import measured_rows
from diskbook.report.analysis.run import analyse
from diskbook.results import plan as plans
from diskbook.stats.gates.attachment import NOT_CHECKED
from support import SCENARIOS, emulated, played

pytestmark = [pytest.mark.whole]

SLOW_AFTER_AN_ATTACH = """
extends = "quiet"
[attach]
slow_s = %s
factor = 3.0
[zones]
home = "1"
"""


@pytest.fixture(scope="module", autouse=True)
def place() -> Iterator[None]:
    """Runs and emulators in a folder of their own, with a short path."""
    with emulated.own_place():
        yield


def test_a_disk_that_stays_is_attached_as_often_as_one_that_moves(tmp_path: Path) -> None:
    profile = tmp_path / "slow.toml"
    profile.write_text(SLOW_AFTER_AN_ATTACH % 600.0)
    run = emulated.measured("moved", str(SCENARIOS / "moved.toml"), str(profile))
    rows = measured_rows(analyse(run).trials)
    assert len(rows) == 6 and set(rows["attaches_in_block"]) == {2}
    assert rows["since_create_s"].gt(rows["since_attach_s"]).all()

    truth = json.loads((run.folder / "truth.json").read_text())
    assert truth["emulator"]["attach"] == {"slow_s": 600.0, "factor": 3.0, "sku": None}
    # By the latencies that the disks drew: a busy machine adds to what fio sees. Home is zone 1.
    drawn = played.drawn_ms(rows, truth)
    written = drawn.groupby(rows["arm"]).mean()
    assert written["lrs-z1"] == pytest.approx(3 * 1.3, rel=0.15)
    assert written["zrs-z1"] / written["lrs-z1"] == pytest.approx(3.2 / 1.3, rel=0.15)
    assert (rows["lat_mean_ms"] > drawn - played.EARLY_MS).all()

    gates = analyse(run).gates
    (gate,) = gates[gates["gate"] == "attachment"].to_dict("records")
    assert gate["cause"].startswith(NOT_CHECKED)  # all trials come right after an attach
    events = [event for event in run.ledger() if event["event"] in ("attached", "trial")]
    for before, event in pairwise(events):
        if event["event"] == "trial":  # each arm has one trial a block: it comes right after an attach
            place = {"replicate": 1, "disk": event["disk"], "machine": event["machine"]}
            assert before["event"] == "attached" and place.items() <= before.items()


def test_trials_come_right_after_an_attach_and_after_settling(tmp_path: Path) -> None:
    """Disks are slow for 2.5 s and settle for 3.5 s: 350 s at a time scale of 0.01."""
    profile = tmp_path / "slow.toml"
    profile.write_text(SLOW_AFTER_AN_ATTACH % 2.5)
    changes = {"design.settle_s": 350}
    run = emulated.measured("settled", str(SCENARIOS / "moved.toml"), str(profile), changes, time_scale=0.01)
    analysed = analyse(run)
    early, late = analysed.trials[analysed.trials["status"] == EARLY], measured_rows(analysed.trials)
    assert len(early) == len(late) == 6  # of each visit one
    assert early["since_attach_s"].max() < 2.5 and late["since_attach_s"].min() > 3.4
    assert plans.blocks_of(run) == planned_early.plan_after_attach(run.scenario)

    truth = json.loads((run.folder / "truth.json").read_text())
    drawn = [played.drawn_ms(rows, truth).groupby(rows["arm"]).mean() for rows in (early, late)]
    assert (drawn[0] / drawn[1]).between(1.5, 3.3).all()  # below 3 where a busy computer delays a trial

    (gate,) = analysed.gates[analysed.gates["gate"] == "attachment"].to_dict("records")
    assert "in the same 2 visits; late over early, 90 % intervals: ZRS, zone 1 -" in gate["cause"]
