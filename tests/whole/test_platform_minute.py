"""A run on the emulator, of two minutes, with the platform's metrics as Azure has them: one a minute.

It waits for nearly all of that time: its disk is small, and takes 240 I/Os a second.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from diskbook.report.analysis import why_text
from diskbook.report.analysis.run import Analysis, analyse
from support import SCENARIOS, emulated

pytestmark = [pytest.mark.whole, pytest.mark.emulator]

ALONE = ("lrs-z1", "read-qd8")
LIMIT = 240  # IOPS of a P6
MINUTE = 120.0  # the least length that holds a whole minute whenever it begins


@pytest.fixture(scope="module")
def measured() -> Iterator[Analysis]:
    with emulated.own_place():
        rates = {"workload.write-qd8.rate": 100, "workload.read-qd1.rate": 100}
        changes = {"design.evidence_s": MINUTE, "disk.lrs.size_gib": 64, **rates}
        yield analyse(emulated.measured("minute", str(SCENARIOS / "evidence.toml"), "quiet", changes))


def test_the_trial_for_evidence_is_last_and_in_no_table_but_its_own(measured: Analysis) -> None:
    trials = [event for event in measured.run.ledger() if event["event"] == "trial"]
    assert [event.get("evidence_s") for event in trials] == [None] * 3 + [MINUTE]
    assert (trials[-1]["arm"], trials[-1]["workload"]) == ALONE and trials[-1]["status"] == "ok"
    name, built = trials[-1]["trial"], measured.tables
    assert set(built.evidence["trial"]) == {name}
    for table in (built.trials, built.bins, built.series, built.guest):
        assert len(table) and name not in set(table["trial"])


def test_its_minute_is_evidence_for_its_cell_and_others_have_a_reason(measured: Analysis) -> None:
    metrics = next(event for event in measured.run.ledger() if event["event"] == "metrics")
    assert (metrics["status"], metrics["grain_s"]) == ("ok", 60) and metrics["files"]
    cells = measured.cells.set_index(["arm", "workload"])
    # What the emulator counted over its minute and what fio saw over two are the same rate.
    seen = 100 * measured.tables.evidence["iops"].iloc[0] / LIMIT
    words = cells.loc[ALONE, "platform"].split(", ")[0]
    assert words.startswith("disk IOPS ") and float(words.split()[2]) == pytest.approx(seen, abs=5)
    assert cells.loc[ALONE, "agrees"].endswith("of 1")
    for load in ("read-qd1", "write-qd8"):
        assert cells.loc[("lrs-z1", load), "platform"] == "none: by its depth or rate below every limit"


def test_why_says_which_cells_have_evidence(measured: Analysis) -> None:
    text = why_text.platform_text(measured.cells)
    assert text.startswith("evidence from the platform: 1 of 3 cells\n  lrs-z1, read-qd8: disk IOPS ")
    none = next(line for line in text.splitlines() if "below every limit: " in line).partition("limit: ")[2]
    assert none == "lrs-z1: write-qd8, read-qd1"
