"""Tables and boxes as HTML: what notebooks show and reports keep. Small and quick to import."""

from __future__ import annotations

import html
import math

import pandas as pd

from diskbook.base.visible import LINES, visible
from diskbook.tables.vocabulary import Provenance

EMULATED = "EMULATED. These numbers come from the workbook's own emulator. They say nothing about Azure."
OWN_HARDWARE = "Measured on hosts of the user's own (provenance: inventory). It says nothing about Azure."
SHORT = 34
"""Characters up to which text stays on one line of a table."""


class Html(str):
    """Text that a notebook shows as HTML."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        return str(self)

    def __repr__(self) -> str:
        return f"<{len(self)} characters of HTML>"


def banner(provenance: str) -> Html:
    """Say where the numbers come from; a visible box on anything emulated."""
    if Provenance.INVENTORY in provenance and Provenance.EMULATED not in provenance:
        return Html(f'<p class="own-hardware" role="note"><b>{escaped(OWN_HARDWARE)}</b></p>')
    if Provenance.EMULATED not in provenance:
        return Html(f"<p>Provenance: {escaped(provenance)}.</p>")
    style = "border:2px solid #8A2F66;color:#8A2F66;padding:.5em .8em;font-weight:bold;background:#fff"
    return Html(f'<div class="emulated" role="note" style="{style}">{EMULATED}</div>')


def table(frame: pd.DataFrame, caption: str = "") -> Html:
    """Show a small table. Text is escaped; numbers are right-aligned."""
    head = f"<caption>{escaped(caption)}</caption>" if caption else ""
    classes = [_class(frame[name]) for name in frame.columns]
    names = "".join(f'<th scope="col">{escaped(name)}</th>' for name in frame.columns)
    rows = "".join(
        "<tr>"
        + "".join(f'<td class="{kind}">{_cell(value)}</td>' for kind, value in zip(classes, row, strict=True))
        + "</tr>"
        for row in frame.itertuples(index=False, name=None)
    )
    body = f"<table>{head}<thead><tr>{names}</tr></thead><tbody>{rows}</tbody></table>"
    return Html(f'<div class="table" tabindex="0">{body}</div>')


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
