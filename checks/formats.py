"""Formats x versions x {read, refused, why} as one table, for docs/reference/formats.md.

`make format` writes the page; a test tries every row and compares.
"""

import csv
from dataclasses import dataclass
from pathlib import Path

from diskbook.facts import paths

PAGE = paths.ROOT / "docs" / "reference" / "formats.md"
READ, FLAGGED, REFUSED = "read", "read, with a remark", "refused"
TABLE = Path(__file__).with_name("formats.csv")
COLUMNS = ("Format", "Versions", "Case", "What becomes of it", "Why, or with which remark")
_HEAD = """# What `diskbook import` reads

diskbook recognises a file by its content, never by its name, and unpacks `.gz`. It names each refused file in
one sentence, and imports the rest. Each row is a test (`tests/checks/test_formats.py`). `make format` writes
this page from `checks/formats.csv`.

Any other table of results (CSV, TSV, Parquet, Excel) is read with `--columns`, which names the column of each
field ([Import results](../how-to/import.md) lists them). It is refused without a rate, a block size, or what
tells reads from writes. A row that is not a measurement is left out and named.

"""


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
    cells = [COLUMNS, ("---",) * len(COLUMNS), *map(_cells, ROWS)]
    return _HEAD + "".join(f"| {' | '.join(row)} |\n" for row in cells)


def _cells(row: Row) -> tuple[str, ...]:
    words = f'"... {row.words} ..."' if row.words else ""
    return row.format, row.versions, row.case, row.outcome, words
