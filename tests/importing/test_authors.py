"""Tables of public data computed again from their authors' files: made-up files, in the authors' forms."""

from __future__ import annotations

import shutil
from pathlib import Path

import pandas as pd
import pytest

from diskbook.cli import cli
from diskbook.facts.errors import DiskbookError, UsageError
from diskbook.importing import authors, public
from support.other_tools import elbencho_csv, elbencho_row, sysbench_result

LOG = "results/azure/Standard_D16s_v3/20190912/0/io-wr-results.log"
SWEEP = "results-sweep-azure/raw/azure-block-balanced-c04-r1.elbencho.csv"


def _sysbench() -> tuple[str, dict[str, object], str]:
    text = "".join(
        sysbench_result(threads=threads, test="random write", block=32, every=1, flags="(none)")
        for threads in (1, 4)
    )
    figures = {"requests_per_s": "2000.00", "mib_per_s": "62.50", "lat_mean_ms": "2.00000"}
    figures |= {"lat_min_ms": "0.50", "lat_p95_ms": "4.00", "lat_max_ms": "18.00", "events": "20000"}
    return LOG, {"path": LOG, "threads": "4", **figures, "seconds": "10.0000"}, text


def _elbencho() -> tuple[str, dict[str, object], str]:
    """elbencho appends: the second of two writes is the one that the table has."""
    again = {"ISO date": "2026-08-17T10:00:00.125+0000", "time ms [last]": 32_000}
    row = {"raw_file": SWEEP, "operation": "write", "started_utc": "2026-08-17T10:00:00.125Z", "threads": "4"}
    row |= {"block_size_bytes": "65536", "file_gib": "1", "last_done_ms": "32000", "iops": "512.000"}
    row |= {"lat_min_us": "1500", "lat_mean_us": "9750", "lat_max_us": "30000"}
    return SWEEP, row, elbencho_csv(elbencho_row(), elbencho_row(**again))


def _table() -> tuple[str, dict[str, object], str]:
    """The authors' MB are MiB times 1.024, and a mixed load has two rows."""
    head = "ctr-runtime,node,readwrite,bs,numjobs,iodepth,op,IOPS,BW (MB/s)"
    rows = [
        f"runc,Standard_D4s_v4,randrw,4k,1,8,{op},{iops},{mb}"
        for op, iops, mb in (("read", 1024, 4.096), ("write", 2048, 8.192))
    ]
    keys = {"vm_size": "Standard_D4s_v4", "runtime": "runc", "access": "randrw", "operation": "write"}
    keys |= {"block_size": "4k", "jobs": "1", "queue_depth": "8"}
    return "data.csv", {**keys, "iops": "2048", "mib_s": "8.0"}, "\n".join([head, *rows, ""])


FORMS = {"cockroach-2019": _sysbench, "cloud-storage-bench-2026": _elbencho, "aks-fio-2022": _table}


@pytest.fixture
def made_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Data sets of one row each, with the source.toml of the real ones; their files are in `raw`."""
    real = public.FOLDER
    for name, form in FORMS.items():
        (tmp_path / "sets" / name).mkdir(parents=True)
        shutil.copy(real / name / "source.toml", tmp_path / "sets" / name)
        path, row, text = form()
        pd.DataFrame([row]).to_csv(tmp_path / "sets" / name / "table.csv", index=False)
        (tmp_path / "raw" / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "raw" / path).write_text(text)
    monkeypatch.setattr(public, "FOLDER", tmp_path / "sets")
    monkeypatch.setenv("DISKBOOK_RUNS", str(tmp_path / "runs"))
    return tmp_path


@pytest.mark.parametrize("name", FORMS)
def test_a_table_comes_out_of_its_authors_files_byte_by_byte(name: str, made_up: Path) -> None:
    table = made_up / "sets" / name / "table.csv"
    told = authors.run(name, str(made_up / "raw"), "again")
    assert f"{name}: 1 of 1 row computed again" in told and "0 figures of the table" in told
    assert (made_up / "runs" / "again" / "table.csv").read_text() == table.read_text()
    for figure, wrong in (("2000.00", "2000.20"), ("512.000", "513.000"), ("2048", "2050")):
        table.write_text(table.read_text().replace(figure, wrong))
    assert "1 figure of the table that comes with diskbook differ:\n  row 1, " in authors.run(
        name, str(made_up / "raw"), "other"
    )


def test_the_command_says_what_is_not_there(made_up: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (table := made_up / "sets" / "cockroach-2019" / "table.csv").write_text(
        f"{table.read_text()}{table.read_text().partition(chr(10))[2].replace('/0/', '/1/')}"
    )
    words = ["import", "--dataset", "cockroach-2019", "--from", str(made_up / "raw"), "--name", "again"]
    cli(words, standalone_mode=False)
    told = " ".join(capsys.readouterr().out.split())
    assert "1 of 2 rows" in told and "not here: results/azure/Standard_D16s_v3/20190912/1/" in told
    with pytest.raises(UsageError, match="again exists already; choose another --name"):
        cli(words, standalone_mode=False)


def test_files_that_do_not_give_the_table_cost_a_sentence(made_up: Path) -> None:
    with pytest.raises(UsageError, match=r"holds no data\.csv: check out https://github\.com/CyanDevs/"):
        authors.run("aks-fio-2022", str(made_up), None)
    (made_up / "raw" / LOG).write_text(sysbench_result(threads=8, test="random write"))
    with pytest.raises(DiskbookError, match=r"wr-results\.log: 0 results in it would be row 1 of the table"):
        authors.run("cockroach-2019", str(made_up / "raw"), None)
    (made_up / "raw" / LOG).write_text("nothing of a tool")
    with pytest.raises(DiskbookError, match="no format that is known here"):
        authors.run("cockroach-2019", str(made_up / "raw"), None)
    data = made_up / "raw" / "data.csv"
    data.write_text(data.read_text().replace("2048", "fast"))
    with pytest.raises(DiskbookError, match=r"data\.csv, row 1, iops is not a number: 'fast'"):
        authors.run("aks-fio-2022", str(made_up / "raw"), None)


def test_sets_whose_files_nobody_reads_say_why() -> None:
    for name, why in (
        ("db-zone-2025", "reports in Markdown"),
        ("scylla-iotune", "a list of figures in YAML"),
    ):
        with pytest.raises(UsageError, match=f"{name} cannot be computed again: .*{why}"):
            authors.run(name, ".", None)
    with pytest.raises(UsageError, match="there is no data set 'azure'"):
        authors.run("azure", ".", None)
