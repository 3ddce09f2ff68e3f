"""Markdown of texts that may be anybody's: their markup is none."""

from __future__ import annotations

import math
import re

import pandas as pd

from diskbook.facts.visible import visible
from diskbook.report.show.html import figure

# An underscore within a word is no markup ("Standard_D4as_v4"), and reads better without a backslash.
_MARKUP = re.compile(r"[\\`*\[\]<>|~]|(?<!\w)_|_(?!\w)")


def escaped(text: object) -> str:
    """Write a text in one line in which no character is markup."""
    words = " ".join(str(text).split())
    return _MARKUP.sub(lambda match: f"\\{match[0]}", visible(words))


def table(frame: pd.DataFrame, caption: str) -> str:
    """Write a small table with its caption above; numbers are right-aligned."""
    rules = ["---:" if _is_number(frame[name]) else "---" for name in frame.columns]
    rows = [[_cell(value) for value in row] for row in frame.itertuples(index=False, name=None)]
    lines = [[escaped(name) for name in frame.columns], rules, *rows]
    drawn = "\n".join(f"| {' | '.join(cells)} |" for cells in lines)
    return f"*{escaped(caption)}*\n\n{drawn}"


def code(*lines: str) -> str:
    """Write command lines as a block of code."""
    return "\n".join(["```sh", *(visible(line) for line in lines), "```"])


def bullets(items: list[str]) -> str:
    """Write sentences as a list."""
    return "\n".join(f"- {item}" for item in items)


def numbered(items: list[str]) -> str:
    """Write sentences as a numbered list."""
    return "\n".join(f"{number}. {item}" for number, item in enumerate(items, 1))


def _is_number(values: pd.Series) -> bool:
    return bool(pd.api.types.is_numeric_dtype(values) and not pd.api.types.is_bool_dtype(values))


def _cell(value: object) -> str:
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return "–"
    if isinstance(value, float):
        return figure(value)
    return escaped(f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else value)
