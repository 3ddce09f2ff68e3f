"""A fleet's trial kept as one raw file: read back, compared with its hash, and made into tables."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from diskbook.facts.errors import DiskbookError
from diskbook.results import tables as store_tables
from diskbook.results.run import Run
from support import fleets


@pytest.fixture
def run(tmp_path: Path) -> Run:
    folder = tmp_path / "small"
    folder.mkdir()
    made = Run(folder)
    fleets.write_run(made, {"r1-b01-t1": fleets.fleet(4, spread_s=0.4), "r1-b01-t2": fleets.fleet(4, cv=0.1)})
    return made


def test_a_fleet_is_one_trial_and_its_machines_have_a_table(run: Run) -> None:
    built = store_tables.build(run)
    assert len(built.trials) == 4 and set(built.trials["status"]) == {"ok"}
    first = built.trials[built.trials["trial"] == "r1-b01-t1"].set_index("direction")
    assert first["iops"].to_dict() == pytest.approx({"read": 1120, "write": 480}, rel=1e-3)
    assert set(first["tool"]) == {"vmfleet"} and set(first["outstanding"]) == {4 * 2 * 4}
    assert set(first["tool_version"]) == {"vmfleet, diskspd 2.0.21 (emulated by fio-3.33)"}
    assert len(built.fleet) == 2 * 4 * 2
    assert built.fleet["throughput_mb_s"].to_numpy() == pytest.approx(built.fleet["iops"] * 4096 / 1e6)
    assert set(built.fleet["volume"]) == {"two-way-1", "two-way-2"}
    assert not built.series.empty and not built.bins.empty


@pytest.mark.long
def test_the_table_is_written_and_read_back(run: Run, tmp_path: Path) -> None:
    built = store_tables.rebuilt(run)
    assert (run.folder / "fleet.parquet").exists()
    assert store_tables.read(run.folder).fleet.equals(built.fleet)
    old = Run(tmp_path / "old")
    old.folder.mkdir()
    store_tables.write(store_tables.Tables(built.trials, built.bins, built.series), old.folder)
    assert not (old.folder / "fleet.parquet").exists()
    assert store_tables.read(old.folder).fleet.empty


def test_a_fleet_that_lacks_a_machine_is_refused_again(run: Run) -> None:
    path = next((run.folder / "raw").glob("r1-b01-t1*"))
    path.write_bytes(gzip.compress(fleets.archive_of(fleets.fleet(3))))
    with pytest.raises(DiskbookError, match="changed after the trial"):
        store_tables.build(run)
