"""The catalogue of a folder of runs: who joins, who is current, and what readers see in any state of it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from checks import many_runs
from diskbook import cli
from diskbook.batch.catalogue import join, layout, read, rebuild, schema
from diskbook.facts import paths
from diskbook.facts.errors import DiskbookError, UsageError
from diskbook.measure.runs import overview
from diskbook.publish import site
from diskbook.results.run import Run
from support.few_runs import NAMES

SAMPLE = Run(paths.RUNS / "sample-zone-disks")


def files(folder: Path, table: str = "runs") -> list[Path]:
    return layout.files(layout.folder_of(folder), table)


def change(run: Path) -> None:
    """Give a run other ratios in a file of the same size and time of writing."""
    path = run / "comparisons.csv"
    info, text = path.stat(), path.read_text()
    path.write_text(
        text.replace(",difference,", ",DIFFERENCE,").replace("DIFFERENCE", "equivalent")[: len(text)]
    )
    os.utime(path, ns=(info.st_atime_ns, info.st_mtime_ns))
    assert path.stat().st_size == info.st_size


@pytest.mark.long
def test_a_run_joins_by_its_own_files_and_replaces_no_others(folder: Path) -> None:
    for name in NAMES:
        join.join(Run(folder / name))
    before = {path: path.read_bytes() for path in files(folder)}
    change(folder / NAMES[0])
    join.join(Run(folder / NAMES[0]))
    changed = [path for path in files(folder) if before.get(path) != path.read_bytes()]
    assert len(before) == 3 and [path.name for path in changed] == [layout.name_of(NAMES[0])]
    assert read.view(folder).others == []


@pytest.mark.long
def test_the_tables_hold_what_the_run_has(tmp_path: Path) -> None:
    shutil.copytree(SAMPLE.folder, tmp_path / SAMPLE.name)
    join.join(Run(tmp_path / SAMPLE.name))
    seen = read.view(tmp_path)
    for table in ("trials", "bins"):
        own = pd.read_parquet(SAMPLE.folder / f"{table}.parquet")
        shared = [name for name in own.columns if name not in ("run", "scenario")]
        pd.testing.assert_frame_equal(seen.frame(table)[shared], own[shared])
    (row,) = read.runs(tmp_path, "zone-disks").to_dict("records")
    assert (row["state"], row["preset"], row["profile"], row["n_replicates"]) == (
        "measured",
        "sample",
        "default",
        3,
    )
    assert row["answer"].startswith("On the emulator, ") and row["report"] == "sample-zone-disks/report.html"
    assert row["expected_usd"] == SAMPLE.manifest["cost"][-1]["expected_usd"]
    compared = read.comparisons(tmp_path, "zone-disks")
    assert not compared["closed"].any() and compared["missing"].str.contains("replicates").all()


@pytest.fixture(scope="module")
def of_folders(shared: Path) -> list[object]:
    """What readers show without a catalogue."""
    return everything(shared)


@pytest.mark.long
@pytest.mark.parametrize("how", ["joined", "rebuilt", "half", "damaged", "old", "twice"])
def test_readers_show_the_same_whatever_the_catalogue_is(
    shared: Path, of_folders: list[object], how: str
) -> None:
    put(shared, how)
    assert bool(read.view(shared).entries) is (how not in ("damaged", "old"))
    assert everything(shared) == of_folders
    shutil.rmtree(layout.folder_of(shared))


@pytest.mark.long
def test_readers_show_the_folders_where_the_catalogue_is_stale(folder: Path) -> None:
    put(folder, "stale")
    shown = everything(folder)
    shutil.rmtree(layout.folder_of(folder))
    assert shown == everything(folder)


def everything(folder: Path) -> list[object]:
    """All that reads the catalogue."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DISKBOOK_RUNS", str(folder))
        asked = [("list",), ("compare", *NAMES[:2], "--json"), ("compare", "--scenario", "shared-zrs")]
        return [*(printed(*words) for words in asked), site.read_all(folder), overview.run_rows()]


def put(folder: Path, how: str) -> None:
    """Bring the catalogue of a folder into a state."""
    if how == "none":
        return
    if how in ("joined", "half"):
        for name in NAMES[: 2 if how == "half" else None]:
            join.join(Run(folder / name))
        return
    rebuild.rebuild(folder)
    path = files(folder)[0]
    if how == "stale":
        change(folder / NAMES[0])
        shutil.rmtree(folder / NAMES[-1])
    elif how == "damaged":
        path.write_bytes(path.read_bytes()[:-100])
    elif how == "old":
        table = pq.read_table(path)
        pq.write_table(table.replace_schema_metadata({b"diskbook.report.catalogue": b"0"}), path)
    elif how == "twice":
        join.join(Run(folder / NAMES[0]))


def printed(*words: str) -> str:
    done = CliRunner().invoke(cli.cli, [*words], catch_exceptions=False)
    assert done.exit_code == 0
    return done.stdout


def test_a_stale_row_is_never_shown(folder: Path) -> None:
    rebuild.rebuild(folder)
    change(folder / NAMES[0])
    shutil.rmtree(folder / NAMES[1])
    seen = read.view(folder)
    assert seen.others == [NAMES[0]] and NAMES[1] not in seen.entries
    frame = seen.frame("comparisons", "shared-zrs")
    assert set(frame["run"]) == {NAMES[0]} and "difference" not in set(frame["verdict"])


@pytest.mark.long
@pytest.mark.parametrize(("how", "why"), [("damaged", "is damaged"), ("old", "has schema 0")])
def test_what_cannot_be_read_is_said_once_with_its_remedy(folder: Path, how: str, why: str) -> None:
    put(folder, how)
    seen = read.view(folder)
    assert why in seen.note and "'diskbook catalog'" in seen.note and "\n" not in seen.note
    done = CliRunner().invoke(cli.cli, ["list"], env={"DISKBOOK_RUNS": str(folder)})
    assert done.exit_code == 0 and done.stderr.count(why) == 1
    rebuild.rebuild(folder)
    assert read.view(folder).note == "" and read.view(folder).others == []


def test_a_flipped_number_is_seen(folder: Path) -> None:
    rebuild.rebuild(folder)
    for path in files(folder, "comparisons"):
        content = bytearray(path.read_bytes())
        content[200] ^= 1
        path.write_bytes(content)
    with pytest.raises(DiskbookError, match="is damaged"):
        read.view(folder).frame("comparisons")


@pytest.mark.long
def test_a_rebuild_puts_many_files_into_few_and_drops_what_is_gone(folder: Path) -> None:
    for name in NAMES:
        join.join(Run(folder / name))
    shutil.rmtree(folder / NAMES[1])
    (folder / NAMES[2] / "comparisons.csv").write_text("arm,base_arm\n1,2\n")
    rebuilt = rebuild.rebuild(folder)
    assert rebuilt.rows["runs"] == 1 and [line.split(":")[0] for line in rebuilt.left_out] == [NAMES[2]]
    assert all(path.name.startswith("many-") for path in files(folder)) and len(files(folder)) == 1
    assert read.view(folder).others == [NAMES[2]]


@pytest.mark.long
def test_a_run_that_joins_during_a_rebuild_stays(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = NAMES[0]
    join.join(Run(folder / first))
    written = rebuild._written

    def meanwhile(made: Path, of: Path) -> rebuild.Rebuilt:
        result = written(made, of)
        change(folder / first)
        join.join(Run(folder / first))
        return result

    monkeypatch.setattr(rebuild, "_written", meanwhile)
    rebuild.rebuild(folder)
    seen = read.view(folder)
    assert seen.others == [] and len(seen.frame("runs")) == 3
    assert "difference" not in set(seen.frame("comparisons").query("run == @first")["verdict"])


@pytest.mark.long
def test_a_view_that_was_overtaken_says_so(folder: Path) -> None:
    rebuild.rebuild(folder)
    seen = read.view(folder)
    rebuild.rebuild(folder)
    with pytest.raises(DiskbookError, match="rebuilt meanwhile; try again"):
        seen.frame("runs")


@pytest.mark.emulator
def test_processes_join_at_once(folder: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from diskbook.batch.catalogue import join; "
        "from diskbook.results.run import Run; print(flush=True)\n"
        "for name in sys.argv[2:] * 2: join.join(Run(Path(sys.argv[1], name)))"
    )
    other = subprocess.Popen(
        [sys.executable, "-c", code, str(folder), *NAMES[:2]], cwd=paths.ROOT, stdout=subprocess.PIPE
    )
    assert other.stdout is not None and other.stdout.readline() == b"\n"
    for name in NAMES[1:] * 2:  # one of them is joined by both
        join.join(Run(folder / name))
    assert other.wait() == 0
    seen = read.view(folder)
    assert seen.others == [] and len(seen.frame("runs")) == 3
    assert not [path for path in layout.folder_of(folder).rglob(".*") if path.is_file()]


@pytest.mark.long
def test_other_engines_read_the_same_files(folder: Path) -> None:
    dd = pytest.importorskip(
        "dask.dataframe", reason="the extra 'cluster' is not installed ('make azurite' does)"
    )
    rebuild.rebuild(folder)
    own = read.comparisons(folder)
    frame = dd.read_parquet(
        str(layout.folder_of(folder) / "comparisons"), columns=["run", "ratio", "scenario"]
    )
    counts = frame.groupby("scenario", observed=True)["ratio"].count().compute()
    assert counts.to_dict() == own.groupby("scenario")["ratio"].count().to_dict()


def test_what_does_not_fit_memory_is_read_in_batches(tmp_path: Path) -> None:
    many_runs.catalogued(tmp_path, range(3), 4, 10)
    seen = read.view(tmp_path)
    (tmp_path / "zone-disks-000001" / "manifest.json").touch()
    assert sum(batch.num_rows for batch in read.batches(seen, "bins")) == 120
    current = list(read.batches(read.view(tmp_path), "bins", "zone-disks", ["run", "count"]))
    assert sum(batch.num_rows for batch in current) == 80 and current[0].schema.names[:2] == ["run", "count"]


def test_a_foreign_folder_gets_no_catalogue_by_a_report(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = Run(folder / NAMES[0])
    assert join.join_finished(run) == "" and not layout.folder_of(folder).exists()
    monkeypatch.setenv("DISKBOOK_RUNS", str(folder))
    assert join.join_finished(run) == "" and len(files(folder)) == 1
    (run.folder / "comparisons.csv").write_text("no table")
    assert "comparisons" in join.join_finished(run)


def test_links_are_not_followed(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    layout.folder_of(folder).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(DiskbookError, match="is a link"):
        join.join(Run(folder / NAMES[0]))
    with pytest.raises(DiskbookError, match="is a link"):
        rebuild.rebuild(folder)
    assert list((tmp_path / "elsewhere").glob("*/*")) == []


def test_mistakes_get_a_sentence(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DISKBOOK_RUNS", str(folder))
    for words, said in {
        ("catalog", "nowhere"): "nowhere is not a folder",
        ("compare", "--scenario", "zone-diks"): "did you mean 'zone-disks'",
        ("compare", "a", "--scenario", "zone-disks"): "leave out RUN",
        ("compare", "--runs", "x", "a", "b"): "--runs goes with --scenario",
        ("compare", "--scenario", "zone-disks", "--runs", "nowhere"): "nowhere is not a folder",
    }.items():
        done = CliRunner().invoke(cli.cli, [*words])
        assert isinstance(done.exception, UsageError) and said in str(done.exception)


def test_all_columns_are_named_by_their_units() -> None:
    ends = {"float64": ("_usd", "_ms", "_s", "_iops", "_mb_s", "_share")}
    plain = {"ratio", "ci_low", "ci_high", "level", "p_adjusted", "ios", "iops", "rate_offered"}
    plain |= {"attaches_in_block", "rate_window_worst", "df", "lat_p99_rise"}
    for table in schema.TABLES.values():
        numbers = {field.name for field in table if pa.types.is_floating(field.type)}
        assert {name for name in numbers if not name.endswith(ends["float64"])} <= plain


def test_json_is_the_document(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DISKBOOK_RUNS", str(folder))
    made = json.loads(printed("catalog", "--json"))
    assert made["n_runs"] == 3 and made["schema"] == "diskbook/catalog/1" and made["left_out"] == []
    over = json.loads(printed("compare", "--scenario", "shared-zrs", "--json"))
    assert over["n_runs"] == 2 and over["schema"] == "diskbook/compare-scenario/1"
    assert {row["n_runs"] for row in over["comparisons"]} == {2} and over["left_out"] == []
