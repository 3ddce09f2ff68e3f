"""A disk that moves between groups of blocks, played: few attaches, and the planted ratio of each zone."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from itertools import groupby

import pytest

from diskbook.cloud import kinds
from diskbook.design import schedule
from diskbook.design.totals import measured_rows
from diskbook.measure.bench import trials as bench_trials
from diskbook.measure.runs import stages
from diskbook.report import show
from diskbook.report.analysis.run import analyse
from diskbook.results.run import Run
from support import SCENARIOS, emulated, played

pytestmark = [pytest.mark.whole]

PLACED = str(SCENARIOS / "placed.toml")
AT_HOME_IN_1 = """
extends = "quiet"
[zones]
home = "1"
"""


@pytest.fixture(scope="module", autouse=True)
def place() -> Iterator[None]:
    """Runs and emulators in a folder of their own, with a short path."""
    with emulated.own_place():
        yield


@pytest.fixture(scope="module")
def run(place: None, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A run that is cut short in its sixth block, in the middle of a group, and resumed."""
    profile = tmp_path_factory.mktemp("profile") / "home.toml"
    profile.write_text(AT_HOME_IN_1)
    emulator = {"profile": str(profile), "time_scale": 0.0}
    folder = stages.begin("placed", PLACED, "emulator", "quick", None, emulator)
    try:
        kinds.of(folder).start(folder, owner=True)
        stages.provision(folder)
        with pytest.MonkeyPatch.context() as patch:
            whole = bench_trials._block

            def cut(rig: bench_trials.Rig, block: schedule.Block) -> bool:
                if block.block == 6:
                    raise KeyboardInterrupt
                return whole(rig, block)

            patch.setattr(bench_trials, "_block", cut)
            with pytest.raises(KeyboardInterrupt):
                stages.benchmark(folder)
        stages.benchmark(folder)
    finally:
        stages.teardown(folder)
    return folder


def test_the_disk_moves_between_groups_of_blocks_only(run: Run) -> None:
    attached = [event for event in run.ledger() if event["event"] == "attached"]
    assert Counter(event["disk"] for event in attached) == {"lrs-z1": 1, "lrs-z2": 1, "zrs": 3}
    detached = [event for event in run.ledger() if event.get("name") == "detach"]
    assert len(detached) == 2
    trials = [event for event in run.ledger() if event["event"] == "trial"]
    groups = [machine for machine, _ in groupby(event["machine"] for event in trials)]
    assert len(groups) == 3 and groups[0] == groups[2] != groups[1]
    assert sorted(event["block"] for event in trials) == sorted([*range(1, 9)] * 2)
    blocks = measured_rows(analyse(run).trials).groupby("arm")["block"].apply(sorted)
    assert all(of_arm == [1, 2, 3, 4] for of_arm in blocks)


def test_the_planted_ratio_of_each_zone_is_found(run: Run) -> None:
    """By the latencies that the disks drew, since a busy machine adds to what fio sees."""
    analysis = analyse(run)
    rows = measured_rows(analysis.trials)
    truth = json.loads((run.folder / "truth.json").read_text())
    written = played.drawn_ms(rows, truth).groupby(rows["arm"]).mean()
    for zone in (1, 2):
        planted = {
            ("zrs" if row["disk_id"].endswith("-zrs") else "lrs"): row["population"]["write_mean_ms"]
            for row in truth["attachments"]
            if row["machine_id"].endswith(f"-vm{zone}")
        }
        found = written[f"zrs-z{zone}"] / written[f"lrs-z{zone}"]
        assert planted["zrs"] / planted["lrs"] > 1.5
        assert found == pytest.approx(planted["zrs"] / planted["lrs"], rel=0.15)


def test_the_answer_is_yes_from_each_zone(run: Run) -> None:
    analysis = analyse(run)
    table = analysis.comparisons
    zones = table[(table["arm"] == "zrs-z2") & (table["base_arm"] == "zrs-z1")]
    assert len(zones) and not zones["verdict"].isin(["difference", "equivalent within 5 %"]).any()
    assert zones["n_blocks"].max() == 4  # first blocks of both zones make a pair, and so on
    # The first decided answer leads. A busy machine can leave that of a zone open.
    answers = table[table["family"] == "headline"].groupby("arm")["verdict"].agg(set)
    leads = next(zone for zone in (1, 2) if "difference" in answers[f"zrs-z{zone}"])
    assert analysis.headline.startswith(f"On the emulator, one 4K write from zone {leads} takes ")
    shown = show.headline_table(analysis)
    for zone in (1, 2):
        assert f"ZRS, zone {zone} / LRS, zone {zone}" in shown
    assert " IOPS<" not in shown
