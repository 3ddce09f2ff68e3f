"""Tables of results: their formats, scaled columns, arms and blocks by column, and a sentence per mistake."""

from __future__ import annotations

import sys
from pathlib import Path

import pandas as pd
import pytest

from diskbook.cli import main
from diskbook.facts.errors import DiskbookError, UsageError
from diskbook.importing import preview, run as importer, table
from diskbook.importing.scenario import Settings
from diskbook.report.analysis.run import analyse
from diskbook.results import tables

COLUMNS = "arm=disk,operation=op,block_size=bs,queue_depth=iodepth,iops=IOPS,lat_ms=lat_us/1000"
ROWS = """disk,op,bs,iodepth,IOPS,lat_us,run
lrs,randread,4K,1,800,1250,1
zrs,randread,4K,1,500,2000,1
lrs,randread,4K,1,820,1220,2
zrs,randread,4K,1,510,1960,2
lrs,randread,4K,1,810,1234,3
zrs,randread,4K,1,505,1980,3
"""


def imported(tmp_path: Path, path: Path, columns: str) -> pd.DataFrame:
    made = importer.make([str(path)], f"{tmp_path}/run", Settings(columns=columns))
    rebuilt = tables.build(made.run).trials
    written = tables.read(made.run.folder).trials
    assert list(rebuilt["iops"]) == list(written["iops"])
    return written


def put(tmp_path: Path, text: str, name: str = "results.csv") -> Path:
    path = tmp_path / name
    path.write_text(text, "utf-8")
    return path


@pytest.mark.long
@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_rows_become_trials_with_scaled_latencies(tmp_path: Path, delimiter: str) -> None:
    rows = imported(tmp_path, put(tmp_path, ROWS.replace(",", delimiter)), f"{COLUMNS},block=run")
    lrs = rows[rows["arm"] == "lrs"].sort_values("block")
    assert list(lrs["lat_mean_ms"]) == pytest.approx([1.25, 1.22, 1.234])
    assert list(lrs["iops"]) == [800, 820, 810] and list(lrs["block"]) == [1, 2, 3]
    assert set(rows["workload"]) == {"randread-4k-qd1"} and set(rows["tool"]) == {"other"}
    assert rows["lat_p99_ms"].isna().all()


@pytest.mark.long
@pytest.mark.parametrize("ending", ["parquet", "xlsx"])
def test_parquet_and_excel_hold_the_same(tmp_path: Path, ending: str) -> None:
    frame = pd.read_csv(put(tmp_path, ROWS))
    path = tmp_path / f"results.{ending}"
    frame.to_parquet(path) if ending == "parquet" else frame.to_excel(path, index=False)
    rows = imported(tmp_path, path, f"{COLUMNS},block=run")
    assert sorted(rows["iops"]) == [500, 505, 510, 800, 810, 820]
    assert set(rows["block_size_bytes"]) == {4096}


def test_the_two_rows_of_a_mixed_load_are_one_measurement(tmp_path: Path) -> None:
    """A third row has no other half, so it is left out and named."""
    rows = "disk,op,mix,bs,qd,iops\na,read,30,4K,8,700\na,write,30,4K,8,300\na,read,30,4K,16,1400\n"
    columns = "arm=disk,operation=op,write_pct=mix,block_size=bs,queue_depth=qd,iops=iops"
    made = importer.make([str(put(tmp_path, rows))], f"{tmp_path}/run", Settings(columns=columns))
    trials = tables.build(made.run).trials
    assert list(zip(trials["direction"], trials["iops"], strict=True)) == [("read", 700), ("write", 300)]
    assert set(trials["workload"]) == {"randrw30-4k-qd8"}
    assert any("row 3: a mixed load needs a row for reads and one for writes" in why for why in made.refused)


def test_a_mapping_file_has_columns_and_values(tmp_path: Path) -> None:
    mapping = put(
        tmp_path,
        '[columns]\narm = ["disk", "zone"]\nmib_s = "MiB/s"\n'
        '[values]\noperation = "write"\nblock_size = 65536\n',
        "mapping.toml",
    )
    path = put(tmp_path, "disk,zone,MiB/s\np30,1,100\np30,2,50\n")
    rows = imported(tmp_path, path, str(mapping)).sort_values("iops")
    assert rows["arm"].nunique() == 2 and list(rows["iops"]) == [800, 1600]
    assert list(rows["throughput_mb_s"]) == pytest.approx([52.4288, 104.8576])
    assert set(rows["direction"]) == {"write"}


@pytest.mark.long
def test_a_replicate_column_makes_replicates_and_a_host_does(tmp_path: Path) -> None:
    by_column = imported(tmp_path, put(tmp_path, ROWS), f"{COLUMNS},replicate=run")
    assert set(by_column["replicate"]) == {1, 2, 3} and set(by_column["block"]) == {1}
    other = tmp_path / "hosts"
    other.mkdir()
    by_host = imported(other, put(other, ROWS), f"{COLUMNS},host=run")
    assert set(by_host["replicate"]) == {1, 2, 3}


@pytest.mark.long
def test_a_table_without_repeats_gets_no_interval(tmp_path: Path) -> None:
    once = "".join(ROWS.splitlines(keepends=True)[:3])
    made = importer.make(
        [str(put(tmp_path, once))], f"{tmp_path}/run", Settings(columns=f"{COLUMNS},version:=1")
    )
    compared = analyse(made.run).comparisons
    assert set(compared["arm"]) == {"zrs"} and compared["ci_low"].isna().all()


def test_a_column_that_may_be_an_arm_is_named(tmp_path: Path) -> None:
    planned = importer.plan([str(put(tmp_path, ROWS))], "x", Settings(columns=COLUMNS))
    assert (
        "not mapped, but different within a cell: run; if one tells arms apart, add arm=run"
        in preview.words(planned)
    )


@pytest.mark.parametrize(
    ("columns", "sentence"),
    [
        ("iops", "'iops' is not field=column"),
        ("iopz=IOPS,operation=op,block_size=bs", "there is no field 'iopz'; did you mean 'iops'?"),
        ("iops=IOPS,iops=x,operation=op,block_size=bs", "names iops twice"),
        ("operation=op,block_size=bs", "names no rate"),
        ("iops=IOPS,block_size=bs", "does not tell reads from writes"),
        ("iops=IOPS,operation=op", "names no block size"),
        ("missing.toml", "there is no file missing.toml"),
    ],
)
def test_a_mapping_that_does_not_fit_is_refused(columns: str, sentence: str) -> None:
    with pytest.raises(UsageError, match=sentence):
        table.columns_of(columns)


@pytest.mark.parametrize(
    ("text", "columns", "sentence"),
    [
        (ROWS, COLUMNS.replace("=IOPS", "=IOPZ"), "there is no column 'IOPZ'; did you mean 'IOPS'?"),
        (ROWS, COLUMNS.replace("/1000", "/0"), "the number must be more than 0"),
        ("disk,op\n", COLUMNS, "there is no column"),
        ("", COLUMNS, "this is not a table"),
        (
            ROWS.replace("randread", "rw"),
            COLUMNS,
            "neither a read nor a write; a mixed load needs",
        ),
        (ROWS.replace("4K", "four"), COLUMNS, "block_size 'four' is not a size"),
        (ROWS, f"{COLUMNS},started=disk", "started 'lrs' is not an ISO date"),
        (ROWS, f"{COLUMNS},pattern=disk", "pattern 'lrs' is neither random nor sequential"),
        (ROWS, f"{COLUMNS},tool=disk", "several tools or versions"),
    ],
)
def test_a_table_that_cannot_be_used_costs_a_sentence(
    tmp_path: Path, text: str, columns: str, sentence: str
) -> None:
    with pytest.raises(DiskbookError, match=sentence):
        importer.plan([str(put(tmp_path, text))], "x", Settings(columns=columns))


def test_rows_with_bad_numbers_are_left_out_and_named(tmp_path: Path) -> None:
    text = ROWS.replace("800,1250", "fast,1250").replace("500,2000", "-5,2000").replace("820,", "nan,")
    planned = importer.plan([str(put(tmp_path, text))], "x", Settings(columns=COLUMNS))
    assert len(planned.entries) == 3
    assert planned.refused == (
        "results.csv: row 1: iops is not a number: 'fast'",
        "results.csv: row 2: iops is out of range: '-5'",
        "results.csv: row 3: it has no rate",
    )


def test_commas_are_read_by_the_delimiter(tmp_path: Path) -> None:
    european = put(tmp_path, "disk;op;bs;iodepth;IOPS;lat_us\nlrs;read;4K;1;812,5;1250\n", "de.csv")
    assert list(imported(tmp_path, european, COLUMNS)["iops"]) == [812.5]
    english = put(tmp_path, 'disk,op,bs,iodepth,IOPS,lat_us\nlrs,read,4K,1,"1,812.5",1250\n', "en.csv")
    (planned,) = importer.plan([str(english)], "x", Settings(columns=COLUMNS)).entries
    assert planned.measurement.directions["read"].iops == 1812.5
    wrong = put(tmp_path, 'disk,op,bs,iodepth,IOPS,lat_us\nlrs,read,4K,1,"1,5",1250\n', "wrong.csv")
    with pytest.raises(DiskbookError, match="iops is not a number: '1,5'"):
        importer.plan([str(wrong)], "x", Settings(columns=COLUMNS))


def test_the_command_reads_a_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def ended(*words: str) -> int:
        monkeypatch.setattr(sys, "argv", ["diskbook", "import", *words, "--columns", COLUMNS])
        with pytest.raises(SystemExit) as end:
            main()
        return int(end.value.code or 0)

    assert ended(str(put(tmp_path, ROWS)), "--dry-run") == 0
    assert "6 measurements would be 2 arms x 1 load" in capsys.readouterr().out
    assert ended(str(tmp_path), "--layout", "{arm}") == 2
    assert "leave --layout and --arms-by out" in capsys.readouterr().err
