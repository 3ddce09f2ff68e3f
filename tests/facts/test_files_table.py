"""Tables of data/reference: each cell is checked by the type of its field."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from datetime import date
from pathlib import Path

import pytest

from diskbook.facts import catalog
from diskbook.facts.errors import DiskbookError
from diskbook.facts.files import read_table as read


@dataclass(frozen=True)
class Row:
    name: str
    size_gib: int
    rate: float | None
    zones: tuple[str, ...]
    flag: bool
    read_on: date
    note: str


HEAD = "name,size_gib,rate,zones,flag,read_on,note\n"


def rows(tmp_path: Path, *lines: str, head: str = HEAD) -> list[tuple[int, Row]]:
    path = tmp_path / "table.csv"
    path.write_text(head + "".join(f"{line}\n" for line in lines))
    return list(read(Row, path))


def test_cells_are_read_by_their_types(tmp_path: Path) -> None:
    first, second = rows(tmp_path, 'P1,4,0.25,1|2,yes,2026-11-20,"a, b"', "P2,8,,,no,2026-11-21,")
    assert first == (2, Row("P1", 4, 0.25, ("1", "2"), True, date(2026, 11, 20), "a, b"))
    assert second == (3, Row("P2", 8, None, (), False, date(2026, 11, 21), ""))


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("P1,,0.25,1,yes,2026-11-20,", "line 3: size_gib: input should be a valid integer"),
        ("P1,four,0.25,1,yes,2026-11-20,", "line 3: size_gib: "),
        ("P1,4.5,0.25,1,yes,2026-11-20,", "line 3: size_gib: "),
        ("P1,4,fast,1,yes,2026-11-20,", "line 3: rate: input should be a valid number"),
        ("P1,4,0.25,1,perhaps,2026-11-20,", "line 3: flag: input should be a valid boolean"),
        ("P1,4,0.25,1,yes,yesterday,", "line 3: read_on: input should be a valid date"),
        ("P1,4,0.25,1,yes,2026-11-20", "line 3: note: input should be a valid string"),
        ("P1,4,0.25,1,yes,2026-11-20,,more", "line 3: columns missing or too many"),
    ],
)
def test_a_wrong_row_is_told_with_its_line_and_column(tmp_path: Path, line: str, message: str) -> None:
    with pytest.raises(DiskbookError, match=rf"^table\.csv, {message}"):
        rows(tmp_path, "P0,1,1,1,no,2026-11-20,", line)


def test_a_missing_or_unknown_column_is_told(tmp_path: Path) -> None:
    head = HEAD.replace("note", "remark")
    with pytest.raises(DiskbookError, match="columns missing or too many: note, remark"):
        rows(tmp_path, "P1,4,0.25,1,yes,2026-11-20,", head=head)


def test_every_table_of_the_catalogue_is_read() -> None:
    assert len(catalog.disk_tiers()) > 30
    assert {tier.skus for tier in catalog.disk_tiers() if tier.tier == "P30"} == {
        ("Premium_LRS", "Premium_ZRS")
    }
    assert catalog.vm_size("standard_ds3_v2").accelerated_networking is True
    assert catalog.region("westeurope").zones == ("1", "2", "3")
    ultra = catalog.flexible_skus()["UltraSSD_LRS"]
    assert (ultra.default_iops, ultra.mb_s_per_iops) == (None, 0.25)


@pytest.mark.emulator
def test_whoever_imports_the_catalogue_only_for_its_names_does_not_wait_for_pydantic() -> None:
    code = "import sys, diskbook.facts.catalog; sys.exit('pydantic' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0
