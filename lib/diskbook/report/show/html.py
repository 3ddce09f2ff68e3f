"""Tables and boxes as HTML: what notebooks show and reports keep. Small and quick to import."""

import html as markup
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from diskbook.design.vocabulary import Provenance
from diskbook.facts import table_writers
from diskbook.facts.table_writers import Notes, Table, escaped

EMULATED = "EMULATED. These numbers come from the workbook's own emulator. They say nothing about Azure."
OWN_HARDWARE = "Measured on hosts of the user's own (provenance: inventory). It says nothing about Azure."
BY_OTHERS = "MEASURED BY OTHERS. We did not watch it: settings in force and other load are not known."
BY_US = "MEASURED BY US, on Azure."
STYLE = (Path(__file__).parent / "style.css").read_text("utf-8")
"""Style of reports and of what notebooks show."""


_STYLE = re.compile(r"<style>.*?</style>", re.DOTALL)
_CELL_END = re.compile(r"</t[dh]>")
_LINE_END = re.compile(r"</(?:tr|p|li|div|caption|summary|h\d|figcaption|section)>|<br>")
_TAG = re.compile(r"<[^>]*>")
_UNIT = r"(?:%|IOPS|MB/s|KiB|GiB|ms|s|min|h|USD)(?![\w/])"
_NUMBER = r"[-+±]?\d[\d.,]*"
_WHOLE = re.compile(
    r"<(?P<tag>head|pre|svg|script|style|option)\b.*?</(?P=tag)>|<[^>]*>"
    rf"|(?P<whole>\d[\d.]* % CI {_NUMBER} to {_NUMBER} %|{_NUMBER} {_UNIT})",
    re.DOTALL,
)


class Html(str):
    """Text that a notebook shows as HTML."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        return f'<div class="diskbook">{self}</div>'

    def __repr__(self) -> str:
        """Write it as text: a table row per line, its cells apart by tabs."""
        text = _STYLE.sub("", self)
        for pattern, instead in ((_CELL_END, "\t"), (_LINE_END, "\n"), (_TAG, "")):
            text = pattern.sub(instead, text)
        lines = (line.rstrip() for line in markup.unescape(text).splitlines())
        return "\n".join(filter(None, lines))


def unbroken(page: str) -> str:
    """Keep each number of a page on one line with its sign and unit, and each interval with its ends."""
    return _WHOLE.sub(
        lambda part: f'<span class="whole">{part[0]}</span>' if part["whole"] else part[0], page
    )


def banner(provenance: str) -> Html:
    """Say where the numbers come from, in a box on anything emulated; give a notebook its style."""
    return Html(f"<style>{STYLE}</style>{_source(provenance)}")


def _source(provenance: str) -> str:
    if Provenance.EMULATED in provenance:
        return f'<div class="emulated" role="note">{escaped(EMULATED)}</div>'
    known = {
        Provenance.INVENTORY: OWN_HARDWARE,
        Provenance.IMPORTED: BY_OTHERS,
        Provenance.AZURE: BY_US,
    }
    words = [f"<b>{escaped(text)}</b>" for kind, text in known.items() if kind in provenance]
    if words:
        return f'<p class="own-hardware" role="note">{"<br>".join(words)}</p>'
    return f"<p>Provenance: {escaped(provenance)}.</p>"


def table(
    rows: pd.DataFrame | Sequence[Mapping[str, Any]],
    caption: str = "",
    notes: Notes | None = None,
    optional: Sequence[str] = (),
) -> Html:
    """Show a small table with its notes; `optional` columns are left out where they are empty."""
    return Html(table_writers.html(Table.of(rows, caption, notes, optional)))


def folded(summary: str, content: str) -> Html:
    """Fold what few need to see: closed on a screen until it is opened, open on paper."""
    return Html(table_writers.html_folded(summary, content))


def recorded(frame: pd.DataFrame, caption: str, provenance: str) -> Html:
    """Show what a run has recorded, index included, with its provenance in the caption."""
    if frame.empty:
        return Html(f"<p>{escaped(caption)} ({escaped(provenance)}): none.</p>")
    return table(frame.reset_index(), f"{caption} ({provenance})")
