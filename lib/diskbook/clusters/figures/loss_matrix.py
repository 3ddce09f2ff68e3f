"""The drill matrix: kinds of volumes against what is lost, online or not, and what came back."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from typing import Any

import matplotlib as mpl
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle

from diskbook.design.vocabulary import Provenance
from diskbook.facts.quantities import many
from diskbook.report.figures.style import (
    BLUE,
    FAINT,
    GREY,
    INK,
    ON_COLOUR,
    PURPLE_DARK,
    RC,
    VERMILLION,
    Picture,
    brief,
    decorate,
    is_narrow,
    new_figure,
    redrawable,
    rows_above,
)

COLUMNS = (
    "kind",
    "lost",
    "expected",
    "online",
    "blocks_written",
    "blocks_verified",
    "failed",
)
NOTE = (
    "Numbers: acknowledged blocks that were read back whole (of an offline volume: later, with all members "
    "back). Hatched: not played, told by copies and pool quorum "
    "alone. Framed twice: what was played contradicts that."
)
ABOVE = 0.24
"""Part of a row that its name takes on a phone, above the cells."""
_LOOKS = {"yes": (BLUE, "online"), "no": (VERMILLION, "offline")}
_ONLINE = {"yes": "online", "no": "offline"}


@redrawable
def loss_matrix(
    cells: pd.DataFrame, lost: Mapping[str, str], title: str, run: str, provenance: str
) -> Picture:
    """Draw whether volumes of each kind are online after each loss.

    Parameters
    ----------
    cells
        A row a kind and loss: `kind` (in words), `lost`, `expected` by the rule and `online` as played
        ("yes", "no" or empty), `blocks_written`, `blocks_verified`, and `failed`, whether it was
        tried and has no outcome. What cannot be lost has no row.
    lost
        Losses in words, in the order of the columns.
    title, run, provenance
        Its finding, name of the run, and where what was played comes from.
    """
    kinds = list(dict.fromkeys(cells["kind"]))
    figure, (axes,) = new_figure(2.5 + (1.0 if is_narrow() else 0.72) * max(1, len(kinds)))
    with mpl.rc_context(RC):
        for row in cells.to_dict("records"):
            _cell(axes, (list(lost).index(row["lost"]), kinds.index(row["kind"])), row)
        _frame(axes, kinds, list(lost.values()))
    decorate(figure, title, NOTE, provenance)
    emulated = Provenance.EMULATED in provenance
    finding = _finding(cells)
    caption = brief(provenance, f"{finding} {NOTE}")
    alt = f"Grid of {'emulated ' if emulated else ''}volumes by what they lost, showing: {finding}"
    data = cells[list(COLUMNS)].reset_index(drop=True)
    short = brief(provenance, _outcome(cells))
    return Picture("loss-matrix", title, short, alt, figure, data, provenance, run, caption)


def _blocks(verified: int, written: int) -> str:
    """Blocks that were read back whole; one that is missing stands in a line of its own."""
    return f"all {written:,}" if verified == written else f"{verified:,}\nof {written:,}"


def _frame(axes: Axes, kinds: list[str], lost: list[str]) -> None:
    wrapped = [textwrap.fill(words, 9 if is_narrow() else 12) for words in lost]
    axes.set_xticks(range(len(lost)), wrapped)
    axes.set_yticks(range(len(kinds)), [kind.replace(", ", ",\n") for kind in kinds])
    axes.tick_params(length=0)
    axes.set_xlim(-0.5, max(1, len(lost)) - 0.5)
    axes.set_ylim(max(1, len(kinds)) - 0.45, -0.55)
    for side in ("left", "bottom"):
        axes.spines[side].set_visible(False)
    if is_narrow():
        rows_above(axes, 1)


def _cell(axes: Axes, place: tuple[int, int], row: Mapping[Any, Any]) -> None:
    across, down = place[0], place[1] + ABOVE / 2 * is_narrow()
    half = 0.45 - ABOVE / 2 * is_narrow()
    corner, size = (across - 0.47, down - half), (0.94, 2 * half)
    shown = row["online"] or row["expected"]
    colour, words = _LOOKS.get(shown, (FAINT, "?"))
    if not row["online"]:
        _by_rule(axes, (across, down), corner, size, colour, "failed" if row["failed"] else words)
        return
    axes.add_patch(Rectangle(corner, *size, facecolor=colour, edgecolor=INK, linewidth=0.6))
    if row["expected"] and row["online"] != row["expected"]:
        inner, narrow = (across - 0.42, down - half + 0.05), (0.84, 2 * half - 0.1)
        axes.add_patch(Rectangle(corner, *size, fill=False, edgecolor=PURPLE_DARK, linewidth=2.5))
        axes.add_patch(Rectangle(inner, *narrow, fill=False, edgecolor="white", linewidth=1.5))
    text = f"{words}\n{_blocks(int(row['blocks_verified']), int(row['blocks_written']))}"
    axes.text(across, down, text, ha="center", va="center", fontsize=10, color=ON_COLOUR, linespacing=1.15)


def _by_rule(
    axes: Axes,
    place: tuple[float, float],
    corner: tuple[float, float],
    size: tuple[float, float],
    colour: str,
    words: str,
) -> None:
    """A cell that was not played, or not to its end: in outline, hatched in its colour."""
    axes.add_patch(Rectangle(corner, *size, facecolor="white", edgecolor=GREY, linewidth=0.6))
    axes.add_patch(Rectangle(corner, *size, fill=False, hatch="////", edgecolor=colour, linewidth=0))
    behind = {"facecolor": "white", "edgecolor": "none", "pad": 2.0}
    axes.text(*place, words, ha="center", va="center", fontsize=10, color=INK, bbox=behind)


def _outcome(cells: pd.DataFrame) -> str:
    """Say in one sentence how many were played, and what became of acknowledged blocks."""
    return _finding(cells).rpartition(". ")[2]


def _finding(cells: pd.DataFrame) -> str:
    """Say what was played, what is online, and where the rule says otherwise."""
    played = cells[cells["online"] != ""]
    if played.empty:
        return "No loss was played to its end; all cells are by rule."
    parts = []
    for kind, rows in played.groupby("kind", sort=False):
        words = [
            f"{row['lost'].replace('-', ' ')} {_ONLINE[row['online']]}" for row in rows.to_dict("records")
        ]
        parts.append(f"{kind}: {', '.join(words)}")
    wrong = played[(played["expected"] != "") & (played["online"] != played["expected"])]
    lost = int((played["blocks_written"] - played["blocks_verified"]).sum())
    blocks = (
        "no acknowledged block was lost"
        if not lost
        else f"{many(lost, 'acknowledged block')} {'was' if lost == 1 else 'were'} lost"
    )
    rule = (
        "the rule says the same of all"
        if wrong.empty
        else f"{many(len(wrong), 'cell')} contradict{'s' * (len(wrong) == 1)} the rule"
    )
    return f"{'. '.join(parts)}. Of {many(len(played), 'cell')} played, {blocks}; {rule}."
