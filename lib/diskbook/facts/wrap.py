"""Long lines broken between words, for a terminal: rows keep their columns, numbers their units."""

from __future__ import annotations

import re
import shutil
import textwrap

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
