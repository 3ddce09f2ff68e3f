"""Cards and lines: how the objects of the public interface show themselves in a notebook or a terminal."""

from __future__ import annotations

from collections.abc import Mapping

from diskbook.design.vocabulary import Provenance
from diskbook.report.show.html import escaped

_BOX = "border:1px solid currentColor;border-radius:6px;padding:.6em .9em;max-width:46em;line-height:1.45"
_CELL = "text-align:left;vertical-align:top;padding:.1em 1em .1em 0;white-space:normal;background:none"


def box(title: str, facts: Mapping[str, str], note: str = "") -> str:
    """Write a card: a sentence, facts by name, and a note, with styles of its own (JupyterLab has others)."""
    rows = "".join(
        f'<tr><th scope="row" style="{_CELL};opacity:.75;font-weight:normal">{escaped(name)}</th>'
        f'<td style="{_CELL}">{escaped(text)}</td></tr>'
        for name, text in facts.items()
        if text
    )
    below = f'<div style="margin-top:.4em">{escaped(note)}</div>' if note else ""
    table = f'<table style="border:0;margin:.4em 0 0">{rows}</table>'
    return f'<div style="{_BOX}"><b>{escaped(title)}</b>{table}{below}</div>'


def source(provenance: str) -> str:
    """Say in a few words whose numbers these are."""
    words = {
        Provenance.EMULATED: "on the emulator, not on Azure",
        Provenance.IMPORTED: "measured by others",
        Provenance.AZURE: "measured by us, on Azure",
    }
    return "; ".join(text for kind, text in words.items() if kind in provenance)


def compared(arm: str, base_arm: str, workload: str, direction: str, metric: str) -> str:
    """Name a comparison: "zrs-z1 against lrs-z1, randwrite-qd1, lat_mean_ms"."""
    only = "" if direction in workload else f" ({direction})"
    return f"{arm} against {base_arm}, {workload}{only}, {metric}"


def remarks(*texts: str) -> str:
    """Put remarks into brackets behind a line; nothing where there are none."""
    words = "; ".join(filter(None, texts))
    return f" [{words}]" if words else ""
