"""Formats x versions x {read, refused, why} as one table, for docs/reference/formats.md.

`make format` writes the page; a test tries every row and compares.
"""

import csv
from dataclasses import dataclass
from pathlib import Path

from checks import markdown, page_head
from diskbook.facts import paths

PAGE = paths.ROOT / "docs" / "reference" / "formats.md"
READ, FLAGGED, REFUSED = "read", "read, with a remark", "refused"
TABLE = Path(__file__).with_name("formats.csv")
COLUMNS = ("Format", "Versions", "Case", "What becomes of it", "Why, or with which remark")
_HEAD = page_head("formats")


@dataclass(frozen=True)
class Row:
    """A kind of file, and what becomes of it; `case` names the test's example."""

    format: str
    versions: str
    case: str
    outcome: str
    words: str = ""
    """What the sentence or the remark says, in part; empty where there is none."""


ROWS = tuple(Row(**row) for row in csv.DictReader(TABLE.read_text("utf-8").splitlines()))


def page() -> str:
    return f"{_HEAD}{markdown(COLUMNS, map(_cells, ROWS))}\n"


def _cells(row: Row) -> tuple[str, ...]:
    words = f'"... {row.words} ..."' if row.words else ""
    return row.format, row.versions, row.case, row.outcome, words
