"""Tables and boxes as HTML: what notebooks show and reports keep. Small and quick to import."""

from __future__ import annotations

import html
import math
from pathlib import Path

import pandas as pd

from diskbook.design.vocabulary import Provenance
from diskbook.facts.visible import LINES, visible

EMULATED = "EMULATED. These numbers come from the workbook's own emulator. They say nothing about Azure."
OWN_HARDWARE = "Measured on hosts of the user's own (provenance: inventory). It says nothing about Azure."
STYLE = (Path(__file__).parent / "style.css").read_text("utf-8")
"""Style of reports and of what notebooks show."""
SHORT = 34
"""Characters up to which a text needs no room of its own in a table."""
_SMALL, _MANY, _WIDE = 40, 12, 9
"""Characters of a row that fits on a telephone, rows too many to be cards, columns too many for paper."""


class Html(str):
    """Text that a notebook shows as HTML."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        return f'<div class="diskbook">{self}</div>'

    def __repr__(self) -> str:
        return f"<{len(self)} characters of HTML>"


def banner(provenance: str) -> Html:
    """Say where the numbers come from, in a box on anything emulated; give a notebook its style."""
    return Html(f"<style>{STYLE}</style>{_source(provenance)}")


def _source(provenance: str) -> str:
    if Provenance.INVENTORY in provenance and Provenance.EMULATED not in provenance:
        return f'<p class="own-hardware" role="note"><b>{escaped(OWN_HARDWARE)}</b></p>'
    if Provenance.EMULATED not in provenance:
        return f"<p>Provenance: {escaped(provenance)}.</p>"
    return f'<div class="emulated" role="note">{escaped(EMULATED)}</div>'


def table(frame: pd.DataFrame, caption: str = "") -> Html:
    """Show a small table. Text is escaped, numbers are right-aligned; on a telephone each row is a card.

    Great Tables was tried instead: 13 kB a table for 12 rows, 9 kB of them one style repeated, with fixed
    colours, a title that is no caption and identifiers that recur in every table; this is 2.5 kB.
    """
    head = f"<caption>{escaped(caption)}</caption>" if caption else ""
    names = [escaped(name) for name in frame.columns]
    kinds = [_class(frame[name]) for name in frame.columns]
    heads = "".join(
        f'<th scope="col" class="{kind}">{name}</th>' for name, kind in zip(names, kinds, strict=True)
    )
    size = _size(frame)
    labels = [f' data-label="{name}"' * ("cards" in size) for name in names]  # only cards show them
    starts = [f'<td class="{kind}"{label}>' for label, kind in zip(labels, kinds, strict=True)]
    rows = "".join(
        "<tr>"
        + "".join(f"{start}{_cell(value)}</td>" for start, value in zip(starts, row, strict=True))
        + "</tr>"
        for row in frame.itertuples(index=False, name=None)
    )
    body = f"<table>{head}<thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table>"
    label = escaped(caption or "Table")
    return Html(f'<div class="{size}" role="group" aria-label="{label}" tabindex="0">{body}</div>')


def folded(summary: str, content: str) -> Html:
    """Fold what few need to see: closed on a screen until it is opened, open on paper."""
    return Html(f"<details><summary>{escaped(summary)}</summary>{content}</details>")


def _size(frame: pd.DataFrame) -> str:
    """Classes of a table: whether its rows are cards on a telephone, and its print is small on paper.

    A table that fits there stays as it is; one of many rows scrolls, as its numbers are compared.
    """
    widths = [max([len(str(name)), *(len(str(value)) for value in frame[name])]) for name in frame.columns]
    fits = sum(widths) + 2 * len(widths) <= _SMALL
    words = max(widths, default=0) > 4 * SHORT
    cards = not fits and (words or len(frame) <= _MANY)
    kind = "" if fits else " cards" if cards else " scrolls"
    return f"table{kind}{' wide' if len(widths) >= _WIDE else ''}"


def recorded(frame: pd.DataFrame, caption: str, provenance: str) -> Html:
    """Show what a run has recorded, index included, with its provenance in the caption."""
    if frame.empty:
        return Html(f"<p>{escaped(caption)} ({escaped(provenance)}): none.</p>")
    return table(frame.reset_index(), f"{caption} ({provenance})")


def _class(values: pd.Series) -> str:
    """How a column is set: numbers to the right, short text on one line, long text wrapped."""
    if pd.api.types.is_numeric_dtype(values) and not pd.api.types.is_bool_dtype(values):
        return "number"
    longest = max((len(str(value)) for value in values), default=0)
    return "short" if longest <= SHORT else "long"


def _cell(value: object) -> str:
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return "&ndash;"
    if isinstance(value, float):
        return figure(value)
    return escaped(f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else value)


def figure(value: float) -> str:
    """Write a number with about four digits."""
    size = abs(value)
    return f"{value:,.{0 if size >= 1000 else 1 if size >= 100 else 2 if size >= 10 else 3}f}"


def escaped(value: object) -> str:
    """Write a text that may be anybody's: its markup is none, and it steers nothing."""
    return html.escape(visible(str(value), LINES))
