"""The public dataset imported: planted components come out again, and bad files are one sentence each."""

from __future__ import annotations

import sys
from pathlib import Path

import pandas as pd
import pytest

from diskbook.cli import main
from diskbook.facts import noise_series
from diskbook.facts.errors import DiskbookError, UsageError
from diskbook.importing.noise import dataset as azure_noise, dataset_files as files
from diskbook.importing.noise.dataset import Recomputed
from support import azure_noise as made


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made.write_all(tmp_path_factory.mktemp("vm-noise-data"))


@pytest.fixture(scope="module")
def recomputed(folder: Path) -> Recomputed:
    return azure_noise.recompute(folder)


@pytest.mark.long
def test_planted_components_are_recovered(recomputed: Recomputed) -> None:
    rows = {
        row.component: row for row in recomputed.components if row.kind == "latency" and row.hours is None
    }
    slow = 0.3365 * made.SLOW_RUNS**0.5  # log 1.4, in one run of 250
    truth = {
        "run": (made.RUN**2 + slow**2) ** 0.5,
        "day": made.DAY,
        "week": made.WEEK,
        "long-vm": made.VM,
        "fresh-robust": (made.FRESH**2 + made.RUN**2) ** 0.5,
        "calendar-day": made.COMMON,
    }
    for name, value in truth.items():
        assert rows[name].ci_low_log <= value <= rows[name].ci_high_log, rows[name]
        assert rows[name].sd_log == pytest.approx(value, rel=0.12), rows[name]
    assert rows["run-robust"].sd_log < 0.5 * rows["run"].sd_log  # slow runs are not in it
    shares = {row.quantity: row for row in recomputed.shares if row.operation == noise_series.LATENCY}
    for name, planted in (("slow-runs-10", made.SLOW_RUNS), ("slow-pairs-10", made.SLOW_PAIRS)):
        assert shares[name].ci_low <= planted <= shares[name].ci_high * 1.15


@pytest.mark.long
def test_a_cell_on_a_cap_is_told_from_one_that_shows_the_disk(recomputed: Recomputed) -> None:
    kinds = {(row.operation, row.kind) for row in recomputed.components}
    assert kinds == {("randread-8k-aio-qd64", "cap"), (noise_series.LATENCY, "latency")}


def test_what_the_files_have_otherwise_than_their_page_is_seen(recomputed: Recomputed) -> None:
    assert recomputed.units == {"microseconds": 2}
    assert recomputed.overlaps.as_ends == 0 and recomputed.overlaps.as_starts > 10_000


@pytest.mark.long
def test_the_command_writes_tables_that_are_read_again_and_says_where_they_differ(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    target = tmp_path / "out"
    words = ["import", "--dataset", "azure-vm-noise-2024", "--from", str(folder), "--name", str(target)]
    monkeypatch.setattr(sys, "argv", ["diskbook", *words])
    with pytest.raises(SystemExit) as ended:
        main()
    text = capsys.readouterr().out
    assert not ended.value.code and "provenance azure, imported: 6 files, 30,240 runs, 2 cells" in text
    assert "tried on generated files alone" in text and "not computed: level shifts" in text
    rows = noise_series.components(target / noise_series.COMPONENTS)
    assert noise_series.shares(target / noise_series.SHARES) and "azure, imported" in rows[0].source
    differences = pd.read_csv(target / azure_noise.DIFFERENCES)
    # The planted week is the table's, the slow runs are five times as many.
    known = differences[differences["cell"].str.startswith(noise_series.LATENCY)].set_index("what")["differs"]
    assert not known["week"] and known["slow-runs-10"]
    with pytest.raises(UsageError, match="exists already; choose another --name"):
        azure_noise.run(str(folder), str(target))


def one(root: Path, runs: pd.DataFrame) -> Path:
    return made.write(root, "sync", "long", runs)


RUNS = made.long_runs(weeks=2)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda runs: runs.rename(columns={"VM_id": "vm"}),
            "are value, runtime, starttime, vm; they",
        ),
        (lambda runs: runs.iloc[:0], "has no rows; fetch it again"),
        (lambda runs: runs.assign(value="fast"), "line 2: 'fast,33.2,.*' is not a value above 0"),
        (lambda runs: runs.assign(value=-1.0), "is not a value above 0"),
        (lambda runs: runs.assign(starttime="soon"), "line 2: .*soon.* time and VM"),
        (lambda runs: runs.assign(starttime="0001-01-01 00:00:00"), "line 2: .*0001-01.* time and VM"),
        (lambda runs: runs.assign(runtime=1e300), "line 2: .*1e.300.* runtime, time and VM"),
        (lambda runs: runs.iloc[:50], "50 runs, of 100 that it takes, of long-lived"),
    ],
)
def test_a_file_that_cannot_be_used_is_one_sentence(tmp_path: Path, change, message: str) -> None:
    one(tmp_path, change(RUNS))
    with pytest.raises(DiskbookError, match=message):
        azure_noise.recompute(tmp_path)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", r"IOPS\.csv is empty"),
        ("version https://git-lfs.github.com/spec/v1\noid sha256:1\n", "pointer of Git LFS"),
        ('value,runtime,starttime,VM_id\n"1,2', "cannot be read as CSV|is not a value"),
    ],
)
def test_a_damaged_file_is_one_sentence(tmp_path: Path, content: str, message: str) -> None:
    one(tmp_path, RUNS).write_text(content)
    with pytest.raises(DiskbookError, match=message):
        azure_noise.recompute(tmp_path)


@pytest.mark.long
@pytest.mark.parametrize(
    ("change", "components"),
    [
        (lambda runs: runs[runs["starttime"] < "2023-06-05"], {"run", "day", "long-vm"}),
        (lambda runs: runs.assign(starttime="2023-06-01 00:00:00"), {"run", "long-vm"}),
        (lambda runs: runs.assign(VM_id=range(len(runs))), {"long-vm"}),
        (lambda runs: runs.assign(value=5098.0), {"run", "day", "week", "long-vm", "apart"}),
        (lambda runs: runs.assign(starttime=runs["starttime"] + "+00:00"), {"run", "day", "week", "long-vm"}),
        (lambda runs: pd.concat([runs, runs]), {"run", "day", "week", "long-vm"}),
    ],
)
def test_what_is_not_there_is_not_made_up(tmp_path: Path, change, components: set[str]) -> None:
    """One week, one time, machines of one run each, no spread at all, another time zone, rows twice."""
    one(tmp_path, change(RUNS))
    made_of = azure_noise.recompute(tmp_path)
    assert components <= {row.component for row in made_of.components}
    assert not {"day", "week"} & {row.component for row in made_of.components} - components
    azure_noise.write(
        made_of, azure_noise.compare(made_of.components, noise_series.components()), tmp_path / "out"
    )
    noise_series.components(tmp_path / "out" / noise_series.COMPONENTS)
    noise_series.shares(tmp_path / "out" / noise_series.SHARES)


def test_rows_that_stand_twice_count_once(tmp_path: Path, recomputed: Recomputed) -> None:
    one(tmp_path, pd.concat([RUNS, RUNS]))
    again = azure_noise.recompute(tmp_path)
    assert again.n_runs == len(RUNS) and any("336 rows that stand twice" in note for note in again.notes)


def test_mixed_units_are_refused(tmp_path: Path) -> None:
    rates = made.capped(RUNS)
    made.write(tmp_path, "aio", "long", rates)
    microseconds = 64 / rates["value"] * 1e6
    mixed = microseconds.where(rates.reset_index().index % 2 == 0, microseconds / 1000)
    made.write(tmp_path, "aio", "long", rates.assign(value=mixed), "msec")
    with pytest.raises(DiskbookError, match=r"mixes units: .* 168 rows hold microseconds and 168 milli"):
        azure_noise.recompute(tmp_path)


def test_folders_names_and_missing_files(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="there is no folder"):
        azure_noise.recompute(tmp_path / "absent")
    with pytest.raises(DiskbookError, match="holds no file of the dataset; it needs test_suite="):
        azure_noise.recompute(tmp_path)
    made.write(tmp_path, "aio", "long", RUNS, "msec")
    with pytest.raises(DiskbookError, match=r"unit=IOPS\.csv is missing beside msec"):
        azure_noise.recompute(tmp_path)


def test_earlier_revisions_are_read_alike_and_two_at_once_are_refused(tmp_path: Path) -> None:
    new = one(tmp_path, RUNS)
    old = Path(str(new).replace("lifespan", "duration").replace("vm_sku", "vm_type").replace("unit=", ""))
    old.parent.mkdir(parents=True)
    new.rename(old)
    assert [cell for cell, _ in files.find(tmp_path).files] == [
        (noise_series.LATENCY, "remote", "D8s_v5", "eastus"),
    ]
    one(tmp_path, RUNS)
    with pytest.raises(DiskbookError, match=r"is there twice, as .*; keep one of the two revisions"):
        files.find(tmp_path)


def test_fresh_machines_of_which_no_two_share_a_day_say_nothing(tmp_path: Path) -> None:
    made.write(tmp_path, "sync", "short", made.fresh_runs(weeks=20, a_day=1))
    with pytest.raises(DiskbookError, match="no two runs share a day; nothing can be computed"):
        azure_noise.recompute(tmp_path)
