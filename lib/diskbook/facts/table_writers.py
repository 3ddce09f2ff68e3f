"""A table as a value, and its five writers: HTML, text, Markdown, CSV and JSON. It knows no content.

Cells are text, numbers, or None. Units are part of a column's head ("Latency, ms"). A cell that needs an
explanation ends in the number of a note ("[1]"), as `Notes.mark` gives it.

For a terminal, long lines are broken between words: rows keep their columns, numbers their units.

CSV and JSON get as many digits of a number as every build of numpy computes alike.
"""

from __future__ import annotations

import csv
import html as markup
import io
import math
import re
import shutil
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any

from diskbook.facts.errors import LINES, visible

if TYPE_CHECKING:
    import pandas as pd

SHORT = 34
"""Characters up to which a text needs no room of its own in a table."""
_SMALL, _WIDE = 40, 9
"""Characters of a row that fits on a phone, and columns too many for paper."""
_OPEN_NOTES = 4
"""Notes below a table that are not folded."""
NONE = "\N{EN DASH}"
# An underscore within a word is no markup ("Standard_D4as_v4"), and reads better without a backslash.
_MARKUP = re.compile(r"[\\`*\[\]<>|~]|(?<!\w)_|_(?!\w)")


class Notes(dict[str, int]):
    """Notes below a table with their numbers, in the order in which cells refer to them."""

    def mark(self, note: str) -> str:
        """Return the number of a note in brackets; empty for no note."""
        return f"[{self.setdefault(note, len(self) + 1)}]" if note else ""


@dataclass(frozen=True)
class Table:
    """Heads with their units, rows, a caption and notes."""

    heads: tuple[str, ...]
    rows: Sequence[tuple[Any, ...]]
    caption: str = ""
    notes: Notes = field(default_factory=Notes)
    right: tuple[str, ...] = ()
    """Heads of columns of text that is set to the right as numbers are."""

    @classmethod
    def of(
        cls,
        rows: pd.DataFrame | Sequence[Mapping[str, Any]],
        caption: str = "",
        notes: Notes | None = None,
        optional: Sequence[str] = (),
        right: Sequence[str] = (),
    ) -> Table:
        """Make a table of a frame, or of rows that name their cells.

        Columns that are `optional` are left out where all of their cells are empty.
        """
        if isinstance(rows, Sequence):
            heads = list(dict.fromkeys(head for row in rows for head in row))
            columns = [[row.get(head) for row in rows] for head in heads]
        else:
            heads, columns = list(rows.columns), [list(rows[head]) for head in rows.columns]
        kept = [
            (str(head), cells)
            for head, cells in zip(heads, columns, strict=True)
            if head not in optional or any(cell != "" for cell in cells)
        ]
        listed = list(zip(*(cells for _, cells in kept), strict=True))
        return cls(
            tuple(head for head, _ in kept),
            listed,
            caption,
            Notes() if notes is None else notes,
            tuple(right),
        )

    @property
    def columns(self) -> list[list[Any]]:
        """Cells of each column."""
        return [[row[number] for row in self.rows] for number in range(len(self.heads))]

    @property
    def numeric(self) -> list[bool]:
        """Whether a column is set to the right: it holds numbers alone, or is named."""
        pairs = zip(self.heads, self.columns, strict=True)
        return [head in self.right or _is_numeric(cells) for head, cells in pairs]


def _is_numeric(cells: Sequence[Any]) -> bool:
    numbers = [cell for cell in cells if cell is not None]
    return bool(numbers) and all(isinstance(cell, Real) and not isinstance(cell, bool) for cell in numbers)


def figure(value: float) -> str:
    """Write a number with about four digits."""
    size = abs(value)
    return f"{value:,.{0 if size >= 1000 else 1 if size >= 100 else 2 if size >= 10 else 3}f}"


def cell_text(value: Any) -> str:
    """Write a cell for readers: numbers with about four digits, a dash where there is none."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return NONE
    if isinstance(value, bool) or not isinstance(value, Real):
        return str(value)
    return f"{value:,}" if isinstance(value, Integral) else figure(float(value))


def capital(text: str) -> str:
    """Write a text with a capital at its beginning."""
    return text[:1].upper() + text[1:]


# HTML


def escaped(value: object) -> str:
    """Write a text that may be anybody's as HTML: its markup is none, and it steers nothing."""
    return markup.escape(visible(str(value), LINES))


def html(table: Table) -> str:
    """Write as HTML, notes below. Numbers are right-aligned; on a telephone each row is a card.

    Great Tables was tried instead: 13 kB a table for 12 rows, 9 kB of them one style repeated, with fixed
    colours, a title that is not a caption and identifiers that recur in every table; this is 2.5 kB.
    """
    head = f"<caption>{escaped(table.caption)}</caption>" if table.caption else ""
    names = [escaped(name) for name in table.heads]
    kinds = [
        "number" if numeric else _text_class(cells)
        for numeric, cells in zip(table.numeric, table.columns, strict=True)
    ]
    heads = "".join(
        f'<th scope="col" class="{kind}">{name}</th>' for name, kind in zip(names, kinds, strict=True)
    )
    size = _size(table)
    labels = [f' data-label="{name}"' * ("cards" in size) for name in names]  # only cards show them
    starts = [f'<td class="{kind}"{label}>' for label, kind in zip(labels, kinds, strict=True)]
    cells = (
        "".join(f"{start}{_html_cell(value)}</td>" for start, value in zip(starts, row, strict=True))
        for row in table.rows
    )
    rows = "".join(f"<tr>{row}</tr>" for row in cells)
    body = f"<table>{head}<thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table>"
    label = escaped(table.caption or "Table")
    shown = f'<div class="{size}" role="group" aria-label="{label}" tabindex="0">{body}</div>'
    return shown + html_notes(table.notes)


def html_notes(notes: Iterable[str]) -> str:
    """Write notes as a numbered list, many of them folded."""
    lines = [f"<li>{escaped(capital(note))}.</li>" for note in notes]
    whole = f'<ol class="notes">{"".join(lines)}</ol>' if lines else ""
    return html_folded(f"Notes 1 to {len(lines)}", whole) if len(lines) > _OPEN_NOTES else whole


def html_folded(summary: str, content: str) -> str:
    """Fold what few need to see: closed on a screen until it is opened, open on paper."""
    return f"<details><summary>{escaped(summary)}</summary>{content}</details>"


def _text_class(cells: Sequence[Any]) -> str:
    """How a column of text is set: short text on one line, long text wrapped."""
    return "short" if max((len(str(cell)) for cell in cells), default=0) <= SHORT else "long"


def _size(table: Table) -> str:
    """Classes of a table: whether its rows are cards on a phone, and its print is small on paper."""
    columns = zip(table.heads, table.columns, strict=True)
    widths = [max(len(str(value)) for value in (name, *cells)) for name, cells in columns]
    fits = sum(widths) + 2 * len(widths) <= _SMALL
    return f"table{'' if fits else ' cards'}{' wide' if len(widths) >= _WIDE else ''}"


def _html_cell(value: Any) -> str:
    shown = cell_text(value)
    return "&ndash;" if shown == NONE else escaped(shown)


# Text


def text(table: Table, indent: int = 0, first_width: int | None = None) -> str:
    """Write for a terminal: columns in line, numbers to the right, notes below.

    - `indent`: spaces before each line.
    - `first_width`: letters of the first column; longer cells go on in the next line. By default as many as
      they have.
    """
    rows = [[cell_text(value) for value in row] for row in (table.heads, *table.rows)]
    firsts = [_lines(row[0], first_width) for row in rows]
    rows = [[first[0], *row[1:]] for first, row in zip(firsts, rows, strict=True)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    places = list(zip(widths, table.numeric, strict=True))
    lines: list[str] = []
    for row, first in zip(rows, firsts, strict=True):
        cells = zip(row, places, strict=True)
        set_cells = [cell.rjust(width) if right else cell.ljust(width) for cell, (width, right) in cells]
        lines += ["  ".join(set_cells), *first[1:]]
    notes = [f"[{number}] {note}" for number, note in enumerate(table.notes, 1)]
    return "\n".join(f"{' ' * indent}{line}".rstrip() for line in [*lines, *notes])


def _lines(cell: str, width: int | None) -> list[str]:
    if width is None:
        return [cell]
    return textwrap.wrap(cell, width, subsequent_indent="  ", break_long_words=False) or [""]


# Markdown


def markdown_escaped(value: object) -> str:
    """Write a text in one line of Markdown in which no character is markup."""
    return _MARKUP.sub(lambda match: f"\\{match[0]}", visible(" ".join(str(value).split())))


def markdown(table: Table) -> str:
    """Write as Markdown with its caption above and its notes below; empty without rows."""
    if not table.rows:
        return ""
    rules = ["---:" if numeric else "---" for numeric in table.numeric]
    rows = [[markdown_escaped(cell_text(value)) for value in row] for row in table.rows]
    lines = [[markdown_escaped(name) for name in table.heads], rules, *rows]
    caption = f"*{markdown_escaped(table.caption)}*" if table.caption else ""
    notes = "\n".join(f"{number}. {markdown_escaped(note)}" for number, note in enumerate(table.notes, 1))
    drawn = "\n".join(f"| {' | '.join(cells)} |" for cells in lines)
    return "\n\n".join(filter(None, [caption, drawn, notes]))


# For programs


def as_csv(table: Table) -> str:
    """Write as CSV without caption and notes; floats are rounded to `digits.SIGNIFICANT` digits."""
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerows([table.heads, *([_csv_cell(value) for value in row] for row in table.rows)])
    return file.getvalue()


def _csv_cell(value: Any) -> Any:
    if isinstance(value, float):
        return "" if math.isnan(value) else f"{value:.{SIGNIFICANT}g}"
    return value


def as_json(table: Table) -> list[dict[str, Any]]:
    """Return the rows as JSON has them: an object each; what is not there is null."""
    return [
        {
            head: rounded(None if isinstance(value, float) and not math.isfinite(value) else value)
            for head, value in zip(table.heads, row, strict=True)
        }
        for row in table.rows
    ]


WIDTH = 80
"""Columns where nothing says how wide the terminal is, and for what is not a terminal."""
_NARROWEST = 60
_HANG = 2
_FURTHEST = 46
"""Column up to which the text of a row hangs below its own beginning; names may be longer."""
_ROW = re.compile(r"(?P<name> *\S+(?: \S+)* {2,})(?P<text>\S+(?: \S+)*)")
_UNITS = "%|IOPS|MB/s|KiB|GiB|ms|s|min|h|USD|x|I/Os|cells?|trials?|blocks?|replicates?|points?|outstanding"
_TOGETHER = re.compile(
    rf"(?<=\d) (?=(?:{_UNITS})(?![\w/]))|(?<=\d x) (?=\d)|(?<=zone) (?=\d)|(?<=depth) (?=\d)"
)
_COMMAND = re.compile("'diskbook [^']{,50}'")
_KEPT = "\N{NO-BREAK SPACE}"


def terminal_width() -> int:
    """Columns of the terminal (or $COLUMNS), at least some; `WIDTH` where there is none."""
    return max(_NARROWEST, shutil.get_terminal_size((WIDTH, 24)).columns)


def wrapped(text: str, width: int = WIDTH) -> str:
    """Break the lines of a text that are longer than `width` between words.

    What follows stands below the text of a row ("name  text"), else two columns further in than its line. A
    word that is longer than a line stays whole, so that paths and commands can be copied.
    """
    return "\n".join(_line(line, width) for line in text.split("\n"))


def _line(line: str, width: int) -> str:
    if len(line) <= width:
        return line
    row = _ROW.fullmatch(line)
    begin = len(line) - len(line.lstrip())
    hang = len(row["name"]) if row and len(row["name"]) <= _FURTHEST else begin + _HANG
    broken = textwrap.fill(
        _kept_together(row["text"] if row else line.strip()),
        width,
        initial_indent=row["name"] if row else " " * begin,
        subsequent_indent=" " * hang,
        break_long_words=False,
        break_on_hyphens=False,
    )
    return broken.replace(_KEPT, " ")


def _kept_together(text: str) -> str:
    """Bind numbers to their units, and the words of a command that is quoted."""
    bound = _TOGETHER.sub(_KEPT, text)
    return _COMMAND.sub(lambda command: command[0].replace(" ", _KEPT), bound)


SIGNIFICANT = 10
"""Significant digits; builds of numpy differ in the sixteenth."""


def csv_text(table: pd.DataFrame) -> str:
    """Write a table as CSV without its index; floats are rounded to `SIGNIFICANT` digits."""
    return table.to_csv(index=False, lineterminator="\n", float_format=f"%.{SIGNIFICANT}g")


def rounded(content: Any) -> Any:
    """Round every float in the content of a JSON document to `SIGNIFICANT` digits."""
    if isinstance(content, float):
        return float(f"{content:.{SIGNIFICANT}g}")
    if isinstance(content, dict):
        return {key: rounded(value) for key, value in content.items()}
    if isinstance(content, list | tuple):
        return [rounded(value) for value in content]
    return content


def code(*lines: str) -> str:
    """Write command lines as a block of code."""
    return "\n".join(["```sh", *(visible(line) for line in lines), "```"])


def bullets(items: list[str]) -> str:
    """Write sentences as a list."""
    return "\n".join(f"- {item}" for item in items)


def numbered(items: list[str]) -> str:
    """Write sentences as a numbered list."""
    return "\n".join(f"{number}. {item}" for number, item in enumerate(items, 1))
