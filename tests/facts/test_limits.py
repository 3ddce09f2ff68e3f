"""The data set of documented limits: its rows, what is unknown in it, and the files made from it."""

from __future__ import annotations

import csv
import json
from collections import Counter

import pyarrow.parquet as pq
from click.testing import CliRunner

from checks import limits_data
from diskbook import cli
from diskbook.facts import catalog
from diskbook.facts.limits import CACHED, FLEXIBLE, PREMIUM, all_limits, limits_of


def figures(name: str) -> dict[tuple[str, str], tuple[float | None, ...]]:
    return {
        (row.attachment, row.disk_kind): (row.iops, row.mb_s, row.burst_iops, row.burst_mb_s)
        for row in limits_of(catalog.vm_size(name))
    }


def test_a_size_with_both_controllers_has_the_limits_of_each() -> None:
    nothing = (None, None, None, None)
    assert figures("Standard_E4bs_v5") == {
        ("SCSI", PREMIUM): (12100, 350, 20000, 1200),
        ("SCSI", CACHED): nothing,
        ("SCSI", FLEXIBLE): (16200, 350, 30000, 1200),
        ("NVMe", PREMIUM): (16000, 460, 20000, 1200),
        ("NVMe", CACHED): nothing,
        ("NVMe", FLEXIBLE): (21400, 600, 30000, 1200),
    }


def test_limits_of_nvme_alone_cached_ones_and_none() -> None:
    assert figures("Standard_D4s_v6")["NVMe", FLEXIBLE] == (8333, 248, 52083, 1463)
    assert figures("Standard_DS2_v2") == {
        ("SCSI", PREMIUM): (6400, 96, None, None),
        ("SCSI", CACHED): (8000, 64, None, None),
        ("SCSI", FLEXIBLE): (None, None, None, None),
    }
    assert ("SCSI", CACHED) not in figures("Standard_L16s")


def test_every_figure_in_a_note_has_become_a_row() -> None:
    """Nothing that speaks of Premium SSD v2 and Ultra is left in a note, and none was lost."""
    noted = sum(size.note.count("Premium SSD v2 and Ultra") for size in catalog.vm_sizes().values())
    known = [row for row in all_limits() if row.disk_kind == FLEXIBLE and row.iops is not None]
    assert len(known) == noted > 300
    assert not [row for row in all_limits() if "Premium SSD v2 and Ultra" in row.note]


def test_rows_are_unique_have_a_source_and_are_never_zero() -> None:
    rows = all_limits()
    assert max(Counter((row.size, row.attachment, row.disk_kind) for row in rows).values()) == 1
    assert {row.size for row in rows} == {size.name for size in catalog.vm_sizes().values()}
    assert all(row.source and row.licence and row.read_on >= "2026" for row in rows)
    assert not [row for row in rows if 0 in (row.iops, row.mb_s, row.burst_iops, row.burst_mb_s)]
    low = [row for row in rows if row.burst_iops is not None and row.burst_iops < (row.iops or 0)]
    assert len(low) == 2 and all("below their base: doubtful" in row.note for row in low)


def test_a_source_without_a_licence_is_named_so() -> None:
    licences = {source.key: source.licence for source in catalog.size_sources().values()}
    assert (licences["dsv2"], licences["skus-copy"], licences["skus-csi"]) == (
        "CC-BY-4.0",
        "none",
        "Apache-2.0",
    )
    cached = next(row for row in limits_of(catalog.vm_size("Standard_DS2_v2")) if row.disk_kind == CACHED)
    assert cached.source.endswith("dv2-dsv2-series.md 04454a64")


def test_the_files_have_the_same_rows() -> None:
    assert limits_data.CSV.read_text("utf-8") == limits_data.csv_text(), "run make format"
    assert limits_data.SEEN.read_text("utf-8") == limits_data.seen_text(), "run make format"
    table = limits_data.table()
    assert pq.read_table(limits_data.PARQUET).equals(table, check_metadata=True), "run make format"
    with limits_data.CSV.open(encoding="utf-8", newline="") as file:
        read = [row["iops"] for row in csv.DictReader(file)]
    assert [int(iops) if iops else None for iops in read] == table["iops"].to_pylist()
    page = (limits_data.FOLDER.parent.parent / "docs" / "reference" / "limits.md").read_text("utf-8")
    assert f"{len(catalog.vm_sizes())} sizes, {table.num_rows:,} rows" in page


def test_the_command_prints_rows_with_sources_and_knows_near_names() -> None:
    run = CliRunner()
    text = run.invoke(cli.cli, ["limits", "standard_e4bs_v5"], catch_exceptions=False).output
    assert "NVMe, Premium SSD v2 and Ultra: 21,400 IOPS, 600 MB/s, burst 30,000 IOPS" in text
    assert "SCSI, Premium SSD, host cache: unknown" in text and "licence CC-BY-4.0; read 2026-11-21" in text
    printed = json.loads(run.invoke(cli.cli, ["limits", "Standard_D4s_v6", "--json"]).output)
    assert printed["schema"] == "diskbook/limits/1"
    assert [row["iops"] for row in printed["rows"]] == [6400, None, 8333]
    wrong = run.invoke(cli.cli, ["limits", "D4s_v6"])
    assert str(wrong.exception) == "there is no VM size 'D4s_v6'; did you mean 'Standard_D4s_v6'?"
