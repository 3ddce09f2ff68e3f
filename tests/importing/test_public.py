"""Public data sets as runs: what they hold, whose they are, and what their figures say."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from diskbook.api.results import RunResults
from diskbook.cli import main
from diskbook.design.vocabulary import Label
from diskbook.facts import paths
from diskbook.facts.errors import DiskbookError, UsageError
from diskbook.importing import public, run as importer
from diskbook.report.analysis.run import Analysis, analyse
from diskbook.results.run import Run
from support import notebooks

ROWS = {"cockroach-2019": 312, "cloud-storage-bench-2026": 47, "aks-fio-2022": 5826}
LICENCES = {"Apache-2.0", "CC-BY-4.0", "MIT"}


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Run]:
    folder = tmp_path_factory.mktemp("public")
    return {name: importer.write_run(public.plan(name, f"{folder}/{name}")).run for name in ROWS}


@pytest.fixture(scope="module")
def analysed(runs: dict[str, Run]) -> Callable[[str], Analysis]:
    """Analysis of a run, made when a test first asks; none changes it."""
    return functools.cache(lambda name: analyse(runs[name]))


@pytest.mark.parametrize("name", public.names())
def test_a_source_says_whose_it_is_and_names_every_column(name: str) -> None:
    dataset = public.load(name)
    assert {*public.load(name).said} >= {
        "authors",
        "repository",
        "commit",
        "attribution",
        "measured",
        "region",
    }
    assert dataset.source["licence"] in LICENCES and len(dataset.source["commit"]) == 40
    table = next(dataset.folder.glob("table.*"))
    frame = pd.read_csv(table) if table.suffix == ".csv" else pd.read_parquet(table)
    assert list(frame.columns) == list(dataset.source["columns"])
    assert ("run" in dataset.source) == (name in ROWS)


@pytest.mark.long
@pytest.mark.parametrize("name", ROWS)
def test_a_run_keeps_its_source_and_every_row(analysed: Callable[[str], Analysis], name: str) -> None:
    a = analysed(name)
    assert len(a.trials) == ROWS[name] and set(a.trials["status"]) == {"ok"}
    assert a.manifest["imported"]["dataset"]["attribution"] == public.load(name).source["attribution"]
    assert a.provenance == "imported"


@pytest.mark.long
def test_the_caps_of_temporary_disks_are_those_that_azure_documents(
    analysed: Callable[[str], Analysis],
) -> None:
    """Plateaus at 16 threads, in 10^6 bytes/s, and the documented limits (docs of the sizes)."""
    cells = analysed("cockroach-2019").cells.set_index(["arm", "workload"])
    for arm, documented in {"d16s-v3-12sep": 256, "ds14-v2-12sep": 512, "ds5-v2-12sep": 512}.items():
        cell = cells.loc[(arm, "fsync-write-32k-t16")]
        assert cell["mb_s"] == pytest.approx(documented, rel=0.005) and cell["label"] == Label.CAPPED
        assert cells.loc[(arm, "fsync-write-32k-t1"), "label"] == Label.BELOW_CAP


@pytest.mark.long
@pytest.mark.parametrize(
    ("size", "change_pct"),
    [("d16s-v3", -29.6), ("f16s-v2", -9.8), ("ds5-v2", 9.3), ("e16s-v3", 7.9), ("h16r", -3.7)],
)
def test_two_machines_of_a_size_differ_and_no_verdict_is_given(
    analysed: Callable[[str], Analysis], size: str, change_pct: float
) -> None:
    run = RunResults(analysed("cockroach-2019"))
    asked = {"workload": "fsync-write-32k-t1", "metric": "iops"}
    write = run.compare(f"{size}-16sep", f"{size}-12sep", **asked)
    assert write.change_pct == pytest.approx(change_pct, abs=0.05)
    assert write.verdict == "invalid" and "measured wholly before the other" in write.reason
    table = pd.read_csv(public.FOLDER / "cockroach-2019" / "table.csv")
    of_load = table[table["workload"] == asked["workload"]].set_index("arm")["requests_per_s"].map(np.log)
    by_hand = stats.ttest_rel(of_load[f"{size}-16sep"], of_load[f"{size}-12sep"]).confidence_interval()
    expected = 100 * np.expm1([by_hand.low, by_hand.high])
    assert list(write.these_disks.ci_pct) == pytest.approx(list(expected), abs=0.01)  # wider by rounding


@pytest.mark.long
def test_the_burst_of_an_e10_holds_its_reads(analysed: Callable[[str], Analysis]) -> None:
    cells = analysed("cloud-storage-bench-2026").cells.set_index(["arm", "workload"])
    for load in ("read-64k-t4", "read-64k-t16"):
        assert cells.loc[("e10-sweep", load), "label"] == Label.CAPPED
        assert cells.loc[("e10-sweep", load), "iops"] == pytest.approx(612, abs=1)
    assert cells.loc[("e10-sweep", "read-64k-t1"), "label"] == Label.BELOW_CAP


@pytest.mark.long
def test_writes_that_the_guest_serialises_are_no_cap(analysed: Callable[[str], Analysis]) -> None:
    """440 to 539 IOPS at every depth: 499 at 16 threads is the E10's limit of 500 by chance alone."""
    cells = analysed("cloud-storage-bench-2026").cells.set_index(["arm", "workload"])
    assert cells.loc[("e10-sweep", "write-64k-t16"), "label"] == Label.NEAR_A_CAP
    for load in ("write-64k-t4", "write-64k-t64"):
        assert cells.loc[("e10-sweep", load), "label"] == Label.SATURATED
        assert "one I/O is worked on at a time" in cells.loc[("e10-sweep", load), "evidence"]
    assert cells.loc[("e10-sweep", "read-16m-t4"), "label"] == Label.CAPPED


@pytest.mark.long
def test_latencies_that_nobody_recorded_are_no_evidence(analysed: Callable[[str], Analysis]) -> None:
    """Of the first arm: all six are alike in this."""
    a = analysed("aks-fio-2022")
    of_one = a.trials[a.trials["arm"] == a.trials["arm"].iloc[0]]
    cells = replace(a, tables=replace(a.tables, trials=of_one)).cells
    assert a.trials["lat_mean_ms"].isna().all() and len(cells) > 100
    assert cells["lat_mean_ms"].isna().all()
    assert not cells["evidence"].str.contains("nan").any()


def test_a_set_without_a_run_says_where_its_figures_are() -> None:
    with pytest.raises(DiskbookError, match=r"db-zone-2025 makes no run: notebooks/"):
        public.plan("db-zone-2025", "x")
    with pytest.raises(
        UsageError, match="there is no data set 'cokroach-2019'; did you mean 'cockroach-2019'"
    ):
        public.plan("cokroach-2019", "x")


@pytest.mark.long
def test_the_notebook_of_real_disks_goes_through() -> None:
    """Reads stand at the burst limit plus 2 %; PostgreSQL's zone has one degree of freedom."""
    text = str(notebooks.executed(paths.NOTEBOOKS / "7-real-disks.ipynb", {}))
    for number in ("-29.62", "-33.27", "609.50", "600.33", "618.81", "2.49", "-19.6"):
        assert number in text


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--from", "x"], "--from recomputes the tables of a data set: name it by --dataset NAME"),
        (["x", "--dataset", "cockroach-2019"], "--dataset takes no PATH"),
        (["--dataset", "cockroach-2019", "--base", "x"], "--base has no meaning with --dataset"),
        (["--dataset", "azure-vm-noise-2024", "--from", "x", "--report"], "--report has no meaning"),
        ([], "name files or folders to import, or a public data set by --dataset NAME"),
    ],
)
def test_options_that_do_not_go_together_cost_a_sentence(
    words: list[str], sentence: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["diskbook", "import", *words])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2 and sentence in capsys.readouterr().err


@pytest.mark.long
def test_the_command_makes_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("DISKBOOK_RUNS", str(tmp_path))
    monkeypatch.setattr(sys, "argv", ["diskbook", "import", "--dataset", "cloud-storage-bench-2026"])
    with pytest.raises(SystemExit) as ended:
        main()
    assert (
        ended.value.code in (0, None) and (tmp_path / "cloud-storage-bench-2026" / "manifest.json").exists()
    )
    assert "47 measurements of 2 arms" in capsys.readouterr().out
