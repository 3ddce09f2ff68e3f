"""Disks that are slow after an attach, played: all arms meet it alike, and their ratio is the planted one."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import pandas as pd
import pytest

from diskbook.design import attachments as planned_early
from diskbook.design.schema import EARLY
from diskbook.design.totals import measured_rows
from diskbook.report.analysis.run import Analysis, analyse
from diskbook.results import plan as plans
from diskbook.results.run import Run
from support import SCENARIOS, emulated, played

pytestmark = [pytest.mark.whole]

SLOW_AFTER_AN_ATTACH = """
extends = "quiet"
[attach]
slow_s = 2.5
factor = 3.0
[zones]
home = "1"
"""


@dataclass
class Settled:
    """A run whose disks are slow for 2.5 s and settle for 3.5 s: 350 s at a time scale of 0.01."""

    run: Run
    analysis: Analysis
    early: pd.DataFrame
    late: pd.DataFrame

    def drawn(self, rows: pd.DataFrame) -> pd.Series:
        """Latencies that the disks drew, by arm: a busy machine adds to what fio sees."""
        truth = json.loads((self.run.folder / "truth.json").read_text())
        return played.drawn_ms(rows, truth).groupby(rows["arm"]).mean()


@pytest.fixture(scope="module")
def settled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Settled]:
    profile = tmp_path_factory.mktemp("profile") / "slow.toml"
    profile.write_text(SLOW_AFTER_AN_ATTACH)
    changes = {"design.settle_s": 350}
    with emulated.own_place():
        run = emulated.measured("settled", str(SCENARIOS / "moved.toml"), str(profile), changes, 0.01)
        analysis = analyse(run)
        early = analysis.trials[analysis.trials["status"] == EARLY]
        yield Settled(run, analysis, early, measured_rows(analysis.trials))


def test_a_disk_that_stays_is_attached_as_often_as_one_that_moves(settled: Settled) -> None:
    assert set(settled.late["attaches_in_block"]) == {2}
    assert settled.late["since_create_s"].gt(settled.late["since_attach_s"]).all()
    truth = json.loads((settled.run.folder / "truth.json").read_text())
    assert truth["emulator"]["attach"] == {"slow_s": 2.5, "factor": 3.0, "sku": None}
    written = settled.drawn(settled.late)  # home is zone 1
    assert written["lrs-z1"] == pytest.approx(1.3, rel=0.15)
    assert written["zrs-z1"] / written["lrs-z1"] == pytest.approx(3.2 / 1.3, rel=0.15)
    events = [event for event in settled.run.ledger() if event["event"] in ("attached", "trial")]
    for before, event in pairwise(events):
        if event.get("trial") in set(settled.early["trial"]):  # a visit comes right after an attach
            place = {"replicate": 1, "disk": event["disk"], "machine": event["machine"]}
            assert before["event"] == "attached" and place.items() <= before.items()


def test_trials_come_right_after_an_attach_and_after_settling(settled: Settled) -> None:
    early, late = settled.early, settled.late
    assert len(early) == len(late) == 6  # of each visit one
    assert early["since_attach_s"].max() < 2.5 and late["since_attach_s"].min() > 3
    assert plans.blocks_of(settled.run) == planned_early.plan_after_attach(settled.run.scenario)
    # 3 is planted: below it where a busy computer delays a trial, and above it by chance, in 40 I/Os.
    assert (settled.drawn(early) / settled.drawn(late)).between(1.5, 4.5).all()
    gates = settled.analysis.gates
    (gate,) = gates[gates["gate"] == "attachment"].to_dict("records")
    assert "in the same 2 visits; late over early, 90 % intervals: ZRS, zone 1 -" in gate["cause"]
