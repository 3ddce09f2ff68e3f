"""Folders of VMFleet's results: the machines of one cell of a sweep are one trial."""

from __future__ import annotations

import gzip
from pathlib import Path

import pandas as pd
import pytest

from diskbook.facts.errors import DiskbookError, UsageError
from diskbook.importing import run as importer, terminal as import_text
from diskbook.importing.run import Imported
from diskbook.importing.scenario import Settings
from diskbook.results import tables
from support import fleets

READ, WRITE = fleets.LINE.replace("-w30", "-w0"), fleets.LINE.replace("-w30", "-w100")
LINES = {"read": READ, "write": WRITE}


def make(tmp_path: Path, *paths: Path, **settings: object) -> Imported:
    return importer.make([str(path) for path in paths], f"{tmp_path}/run", Settings(**settings))


def sweep(
    folder: Path, count: int = 4, *, spec: str = "", scale: float = 1.0, began: int = 0, group: str = "base"
) -> Path:
    """A folder as Start-FleetSweep leaves it: a read and a write cell, a file a machine."""
    folder.mkdir(parents=True, exist_ok=True)
    for number, (direction, line) in enumerate(LINES.items()):
        machines = [
            fleets.Vm(
                f"vm-{group}-n{1 + vm % 2}-{vm // 2 + 1:03d}",
                iops={direction: scale * (100.0 + vm)},
                started_s=60.0 * (began + number),
            )
            for vm in range(count)
        ]
        for name, content in fleets.files_of(machines, spec=spec, line=line, listed=False).items():
            (folder / name).write_bytes(content)
    return folder


def rows(made: Imported) -> pd.DataFrame:
    return tables.read(made.run.folder).trials


def test_a_sweeps_machines_are_one_trial_and_a_folder_is_an_arm(tmp_path: Path) -> None:
    base = tmp_path / "result"
    sweep(base / "two-way")
    sweep(base / "nested", scale=0.5, began=10)
    made = make(tmp_path, base)
    assert made.arms == {"nested": 2, "two-way": 2} and not made.refused
    trials = rows(made)
    assert len(trials) == 4 and set(trials["tool"]) == {"vmfleet"} and set(trials["outstanding"]) == {4 * 8}
    iops = trials.set_index(["arm", "direction"])["iops"]
    assert iops["two-way", "read"] == pytest.approx(406) and iops["nested", "write"] == pytest.approx(
        203, abs=1
    )
    assert set(trials["workload"]) == {"randread-4k-vms4-t2-qd4", "randwrite-4k-vms4-t2-qd4-dsync"}
    pairings = {item["pairing"] for item in made.run.manifest["scenario"]["comparison"]}
    assert pairings == {"replicate"}  # kinds that followed one another: drift is in their ratio
    assert any("to the second" in flag for flag in made.flags)


def test_each_machine_is_kept_and_the_tables_follow_from_the_files(tmp_path: Path) -> None:
    made = make(tmp_path, sweep(tmp_path / "two-way"))
    before = tables.read(made.run.folder)
    assert len(before.fleet) == 8 and set(before.fleet["node"]) == {"n1", "n2"}
    assert len(made.run.manifest["imported"]["files"]) == 8
    assert len(list((made.run.folder / "raw").iterdir())) == 8
    again = tables.build(made.run)
    assert again.fleet.equals(before.fleet) and again.trials.equals(before.trials)
    damaged = next((made.run.folder / "raw").iterdir())
    damaged.write_bytes(gzip.compress(b"x"))
    with pytest.raises(DiskbookError, match="hash differs"):
        tables.build(made.run)


@pytest.mark.long
def test_words_and_groups_of_sweeps_tell_arms_apart(tmp_path: Path) -> None:
    base = tmp_path / "result"
    sweep(base, spec="aligned", group="mirror")
    sweep(base, spec="moved", group="mirror", began=5)
    assert set(make(tmp_path, base).arms) == {"mirror-aligned", "mirror-moved"}
    by_folder = importer.make([str(base)], f"{tmp_path}/again", Settings(arms_by="folder"))
    assert set(by_folder.arms) == {"result"}
    assert set(rows(by_folder).groupby("workload")["block"].nunique()) == {2}


@pytest.mark.long
def test_another_analysis_may_be_named(tmp_path: Path) -> None:
    made = make(tmp_path, sweep(tmp_path / "two-way"), analysis="s2d-azure")
    assert made.run.manifest["scenario"]["scenario"]["analysis"] == "s2d-azure"
    assert "3-analyse-s2d-azure.ipynb" in import_text.text(made)
    with pytest.raises(UsageError, match="analysis"):
        make(tmp_path, tmp_path / "two-way", analysis="../x")


def test_the_names_of_core_workloads(tmp_path: Path) -> None:
    base = tmp_path / "9d1c"
    base.mkdir()
    for name, content in fleets.files_of(fleets.fleet(3, cv=0.1), listed=False).items():
        vm = name[name.index("-vm-") :]
        (base / f"result-qos2500{vm}").write_bytes(content)
    made = make(tmp_path, base)
    assert made.arms == {"two-way": 1}


def test_a_cell_that_lacks_a_machine_is_refused_and_the_others_are_read(tmp_path: Path) -> None:
    base = sweep(tmp_path / "two-way")
    next(base.glob("*w0pr-vm-base-n2-002.xml")).unlink()
    made = make(tmp_path, base)
    assert made.n_trials == 1 and set(rows(made)["direction"]) == {"write"}
    (sentence,) = made.refused
    assert "result-b4t2o4w0pr: 3 of the 4 machines" in sentence and "vm-base-n2-002 is missing" in sentence


def test_machines_that_did_not_run_together_are_refused(tmp_path: Path) -> None:
    base = tmp_path / "x"
    base.mkdir()
    for name, content in fleets.files_of(fleets.fleet(2, spread_s=60.0), listed=False).items():
        (base / name).write_bytes(content)
    with pytest.raises(DiskbookError, match="0 % of their run only"):
        make(tmp_path, base)


def test_files_named_one_by_one_are_a_fleet_too(tmp_path: Path) -> None:
    base = sweep(tmp_path / "two-way")
    made = make(tmp_path, *sorted(base.iterdir()))
    assert made.arms == {"two-way": 2}


def test_one_machine_alone_is_no_fleet(tmp_path: Path) -> None:
    made = make(tmp_path, sweep(tmp_path / "x", 1))
    assert set(made.arms) == {"vm-base-n1-001"} and set(rows(made)["tool"]) == {"diskspd"}


def test_archives_of_our_own_trials(tmp_path: Path) -> None:
    base = tmp_path / "raw"
    base.mkdir()
    for number in (1, 2):
        machines = fleets.fleet(4, iops={"read": 100.0 * number})
        (base / f"r1-b0{number}-a1.zip").write_bytes(fleets.archive_of(machines, spec=f"t{number}"))
    made = make(tmp_path, base)
    assert made.arms == {"two-way": 2} and not made.refused
    assert sorted(rows(made)["iops"]) == pytest.approx([400, 800])
    assert len(tables.read(made.run.folder).fleet) == 8
