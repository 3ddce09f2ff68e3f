"""What `make bench-stats` measures is real work on the size it says."""

from __future__ import annotations

from pathlib import Path

import pytest

from checks import bench_stats
from diskbook.results import tables as store_tables
from diskbook.stats.compare import compare
from diskbook.stats.gates.plan import Plan


@pytest.mark.long
def test_cells_and_trials_are_as_many_as_said() -> None:
    trials, series, items = bench_stats.made_up_trials()
    assert trials.groupby(["arm", "workload"]).size().tolist() == [96] * 60
    assert len(series) == 30 * len(trials)
    found = compare(trials, items, series, {}, plan=Plan(planned=1, complete=1))
    assert len(found.table) == 100 and found.table["ci_low"].notna().all()
    others = found.gates[found.gates["status"] != "passed"]
    assert set(others["status"]) == {"not assessable"}  # of these nobody asked a machine or a cloud
    assert set(others["gate"]) == {"attachment", "guest", "saturation", "state"}


@pytest.mark.emulator
def test_files_are_of_a_real_fio_and_all_are_read(tmp_path: Path) -> None:
    run = bench_stats.many_files(tmp_path / "bench", 3)
    tables = store_tables.build(run)
    assert len(tables.trials) == 3 and (tables.trials["status"] == "ok").all()
    assert len(tables.bins) > 3 * 20 and tables.bins["count"].sum() == tables.trials["ios"].sum()


@pytest.mark.parametrize(("ours_s", "code"), [(0.05, 0), (0.15, 1)])
def test_a_row_that_misses_its_limit_ends_with_1(
    ours_s: float, code: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(bench_stats, "made_up_trials", lambda: (None, None, []))
    in_time = bench_stats.Timing("parsed", 0.3, 0.2, "pandas", 0.4)
    monkeypatch.setattr(bench_stats, "_parsed", lambda: in_time)
    compared = bench_stats.Timing("compared", 0.1, ours_s, "scipy", 0.4)
    monkeypatch.setattr(bench_stats, "_compared", lambda *_: compared)
    assert bench_stats.main() == code
    assert capsys.readouterr().out.count("missed") == 2 * code
