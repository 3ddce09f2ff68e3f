"""What volumes outlive, from made-up losses: the matrix and its words."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd

from diskbook.clusters.analysis.nested import losses
from diskbook.clusters.design import volume_rules
from diskbook.design import scenario_file, schema
from diskbook.design.model import Scenario
from diskbook.results.run import Run
from diskbook.results.tables import Tables
from support import SCENARIOS

SCENARIO = scenario_file.load(str(SCENARIOS / "losses.toml"), "quick")


@dataclass
class Made:
    """As much of an analysed run as losses need."""

    rows: list[dict[str, Any]]
    manifest: dict[str, Any] = field(default_factory=dict)
    scenario: Scenario = SCENARIO
    provenance: str = "emulated"
    run: Run = field(default_factory=lambda: Run(Path("made-up")))

    @property
    def tables(self) -> Tables:
        none = {name: schema.empty(table) for name, table in _ALWAYS.items()}
        return Tables(**none, losses=schema.from_rows(schema.LOSSES, self.rows))


_ALWAYS = {"trials": schema.TRIALS, "bins": schema.BINS, "series": schema.SERIES}


def row(loss: str, online: str | None = "yes", replicate: int = 1, **changes: Any) -> dict[str, Any]:
    of = next(item for item in SCENARIO.loss if item.name == loss)
    volume = SCENARIO.volume_named(of.volume)
    expected = "yes" if volume_rules.of_volume(SCENARIO, volume, of.lost) else "no"
    numbers = {"noticed_s": 1.0, "resync_s": 2.0, "resync_bytes": 4e6}
    numbers |= {"iops_before": 200.0, "iops_during": 190.0, "iops_resync": 100.0}
    return {
        "run": "r", "replicate": replicate, "loss": loss, "volume": of.volume, "kind": volume.kind,
        "lost": of.lost, "started_utc": "2026-11-22T00:00:00+00:00", "online": online,
        "expected_online": expected, "blocks_written": 100, "blocks_verified": 100, **numbers,
        "error": None, **changes,
    }  # fmt: skip


PLAYED = [
    row("mirror-drive-each", "no"),
    row("mirror-node"),
    row("nested-drive-each"),
    row("nested-node"),
    row("majority", "no"),
]


def made(rows: list[dict[str, Any]], **more: Any) -> Any:
    return Made(rows, **more)


def cell(cells: pd.DataFrame, kind: str, lost: str) -> dict[str, Any]:
    (found,) = cells[cells["kind"].str.startswith(kind) & (cells["lost"] == lost)].to_dict("records")
    return found


def test_the_matrix_has_every_kind_and_loss_and_bounds_beside() -> None:
    cells = losses.matrix(made(PLAYED))
    counts = cells.groupby("kind", sort=False).size().to_dict()
    assert counts == {
        "two-way mirror, 2 nodes": 5,
        "three-way mirror, 3 nodes": 6,
        "nested mirror, 2 nodes": 5,
        "single parity, 3 nodes": 6,
        "dual parity, 4 nodes": 6,
    }
    assert (
        cell(cells, "two-way", "node")["online"] == "yes" and cell(cells, "two-way", "drive")["online"] == ""
    )
    played = cells[cells["online"] != ""]
    assert len(played) == 5 and (played["online"] == played["expected"]).all()


def test_replicates_are_added_up_and_one_that_is_offline_counts() -> None:
    again = row("nested-node", "no", replicate=2, blocks_verified=90)
    found = cell(losses.matrix(made([*PLAYED, again])), "nested mirror", "node")
    assert (found["online"], found["expected"], found["n"]) == ("no", "yes", 2)
    assert (found["blocks_written"], found["blocks_verified"]) == (200, 190)
    said = losses.words(made([*PLAYED, again]))
    assert "600 acknowledged blocks; 10 of them were not there" in said[0]
    assert "nested mirror, 2 nodes without one node: played no, by the rule yes" in said


def test_a_loss_that_failed_is_no_outcome() -> None:
    failed = row("mirror-node", None, error="it cannot be done", blocks_written=0, blocks_verified=0)
    a = made([failed])
    assert cell(losses.matrix(a), "two-way", "node")["failed"]
    assert losses.loss_table(a)["Online"].tolist() == ["failed"]
    assert "told by the rule alone" in losses.words(a)[0]


def test_a_loss_has_one_resync_per_pool_whatever_its_volumes() -> None:
    """The cause of the old 7, 11 and 30 MB/s: one time of the pool divided by the bytes of each volume."""
    rows = [row("mirror-node"), row("nested-node", resync_bytes=12e6, iops_resync=20.0)]
    only = losses.resync_table(made(rows)).iloc[0]
    assert (only["Pool"], only["Until all volumes were whole"]) == ("pair, p10", "2 s")
    assert (only["Copied back, MB"], only["MB/s"]) == (16, 8)
    assert only["Load while they resync, % of before"] == 30
    assert losses.resync_words(made(rows)) == [
        "pool pair, p10: a load of one block at a time on each volume keeps 30 to 30 % of its rate while "
        "what was lost resyncs (losses: 1)"
    ]


def test_a_volume_that_went_offline_leaves_the_load_and_keeps_its_bytes() -> None:
    offline = row("mirror-drive-each", "no", resync_bytes=None, iops_resync=0.0, resync_s=90.0)
    both = losses.by_pool(made([offline, row("nested-drive-each", resync_s=90.0)])).iloc[0]
    assert both["resync"] == 50 and math.isnan(both["mb"]) and math.isnan(both["mb_s"])
    assert losses.resync_table(made([offline])).empty and losses.resync_words(made([])) == []
    assert losses.resync_table(made([row("nested-drive-each", resync_s=90.0)])).iloc[0, 2] == "2 min"


def test_the_matrix_says_what_was_played_and_what_the_rule_says() -> None:
    shown = losses.matrix_table(made(PLAYED)).set_index("Volume")
    mirror, whole = shown.loc["two-way mirror, 2 nodes"], shown.loc["nested mirror, 2 nodes"]
    assert mirror["one node"] == whole["one node"] == "online; all 100 blocks read back"
    assert mirror["a drive of each of two nodes"] == (
        "offline; all 100 blocks read back once its members were back"
    )
    assert (mirror["one drive"], mirror["two nodes"]) == ("(online)", "")
    contradicted = losses.matrix_table(made([row("nested-node", "no", blocks_verified=9)]))
    assert contradicted.set_index("Volume")["one node"]["nested mirror, 2 nodes"] == (
        "offline; 9 of 100 blocks read back once its members were back; the rule: online"
    )
    assert losses.loss_table(made([])).empty
