"""Disks that are slow after an attach, played: all arms meet it alike, and their ratio is the planted one."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from diskbook.analysis.run import analyse
from diskbook.tables.totals import measured_rows
from support import SCENARIOS, emulated, played

pytestmark = [pytest.mark.whole]

SLOW_AFTER_AN_ATTACH = """
extends = "quiet"
[attach]
slow_s = 600.0
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
    profile.write_text(SLOW_AFTER_AN_ATTACH)
    run = emulated.measured("moved", str(SCENARIOS / "moved.toml"), str(profile))
    rows = measured_rows(analyse(run).trials)
    assert len(rows) == 6 and set(rows["attaches_in_block"]) == {2}
    assert rows["since_create_s"].gt(rows["since_attach_s"]).all()

    truth = json.loads((run.folder / "truth.json").read_text())
    assert truth["emulator"]["attach"] == {"slow_s": 600.0, "factor": 3.0}
    # By the latencies that the disks drew: a busy machine adds to what fio sees. Home is zone 1.
    drawn = played.drawn_ms(rows, truth)
    written = drawn.groupby(rows["arm"]).mean()
    assert written["lrs-z1"] == pytest.approx(3 * 1.3, rel=0.15)
    assert written["zrs-z1"] / written["lrs-z1"] == pytest.approx(3.2 / 1.3, rel=0.15)
    assert (rows["lat_mean_ms"] > drawn - played.EARLY_MS).all()

    gates = analyse(run).gates
    (gate,) = gates[gates["gate"] == "attachment"].to_dict("records")
    assert gate["status"] == "passed", gate["cause"]
    events = [event for event in run.ledger() if event["event"] in ("attached", "trial")]
    for before, event in pairwise(events):
        if event["event"] == "trial":  # each arm has one trial a block: it comes right after an attach
            place = {"replicate": 1, "disk": event["disk"], "machine": event["machine"]}
            assert before["event"] == "attached" and place.items() <= before.items()
