"""How figures look, decided once: sizes, colours, the look of an arm, and the finisher `decorate`.

Colours are of the Okabe-Ito set and have at least 3:1 contrast on white. Blue and vermillion are only 1.3:1
apart in greyscale, so marker and line style carry the distinction too.
"""

import functools
import textwrap
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ParamSpec

import matplotlib as mpl
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.textpath import text_to_path
from matplotlib.transforms import ScaledTranslation, blended_transform_factory

from diskbook.design.arm_words import label
from diskbook.design.model import Arm, Scenario
from diskbook.design.vocabulary import Provenance
from diskbook.facts.catalog import EPHEMERAL
from diskbook.facts.errors import visible

FAMILY = "DejaVu Sans"


@functools.lru_cache(maxsize=4096)
def width_pt(line: str, size: float = 10.0, weight: str | int = "normal") -> float:
    """Measure a line of text, in points."""
    font = FontProperties(family=FAMILY, size=size, weight=weight)
    return float(text_to_path.get_text_width_height_descent(line, font, ismath=False)[0])


def fitted(text: str, room_pt: float, size: float = 10.0, weight: str | int = "normal") -> str:
    """Break lines that are wider than the room, at blanks, and words that are wider by themselves."""
    return "\n".join(part for line in text.split("\n") for part in _parts(line, room_pt, size, weight))


def _parts(line: str, room_pt: float, size: float, weight: str | int) -> list[str]:
    wide = width_pt(line, size, weight)
    if wide <= room_pt:
        return [line]
    # Lines of so many letters on average; more of them where these are narrow ones.
    for characters in range(int(1.3 * len(line) * room_pt / wide) + 1, 0, -1):
        parts = textwrap.wrap(line, characters) or [""]
        if all(width_pt(part, size, weight) <= room_pt for part in parts):
            return parts
    return [line]


def cut(line: str, room_pt: float, size: float = 10.0, weight: str | int = "normal") -> str:
    """Cut a line that must stay one where the room ends; an ellipsis says so."""
    if width_pt(line, size, weight) <= room_pt:
        return line
    shorter = (f"{line[:length].rstrip()}…" for length in range(len(line) - 1, 0, -1))
    return next((text for text in shorter if width_pt(text, size, weight) <= room_pt), "…")


WIDTH_PX = 720
"""Width of a figure on a page, unless it is drawn for another."""
NARROW_PX = 390
"""Width of a phone, for which figures are drawn again."""
_NARROW_BELOW_PX = 520
_PX_PER_IN, _PX_PER_IN_NARROW = 100, 84
"""Pixels to the inch: letters of 10 points are 13.9 px high, and 11.7 px on a phone, where room is scarce."""
P = ParamSpec("P")
_WIDTH_PX: ContextVar[int] = ContextVar("width_px", default=WIDTH_PX)
_MARKS = {
    Provenance.EMULATED: "EMULATED, not Azure",
    Provenance.INVENTORY: "OWN DISK, not Azure",
    Provenance.IMPORTED: "MEASURED BY OTHERS",
    Provenance.AZURE: "MEASURED BY US, on Azure",
}
_STARTS = {
    Provenance.EMULATED: "Emulated, not measured on Azure.",
    Provenance.IMPORTED: "Measured by others.",
    Provenance.AZURE: "Measured by us, on Azure.",
}
_OWN = "Own hardware, not Azure."
BLUE, VERMILLION, GREEN = "#0072B2", "#D55E00", "#009E73"
PURPLE_DARK = "#882870"
"""Dark enough for text on white (7:1)."""
DIFFERENCE = "#7A5C00"
"""Colour of a ratio whose verdict is "difference"; no arm has it."""
GREY, INK, FAINT, GROUND = "#6B6B6B", "#222222", "#D9D9D9", "#FFFFFF"
ON_COLOUR = "#FEFEFE"
"""Letters and hatches on a filled cell; on a dark page, where cells are pale, they are dark (`themes`)."""
ROWS_SHARE, ROWS_SHARE_NARROW = 0.55, 0.42
"""Part of the width that the names of rows may take, and of a phone's."""
AXIS_SHARE = 0.45
"""Part of a phone's width that the name of an axis may take."""
_HINTED = 0.95
"""Letters painted in pixels are up to so much wider than those of an SVG."""
_BESIDE_PT, _NUMBERS_PT = 12.0, 48.0
"""Room between the names of rows and a panel, and that of an axis of numbers with its name."""
EDGE_IN = 0.08
"""Room between what is drawn and the edge of the picture, on all sides: 8 px, and 7 on a phone."""
_BELOW_IN = 0.72
"""Room for the numbers and the name of an axis, above a key."""
_MORE_IN, _MORE_PER_PANEL_IN = 0.4, 0.3
"""Height that a title on more lines, and a panel's, need on a phone."""
_LINE_IN = 0.17
"""Height of a line of text."""
_SOURCE_PT, _ENDS_IN = 8.0, 0.35
"""Size of the line on the source, and height of that line and of the mark of provenance."""

RC: Any = {
    "font.family": FAMILY,
    "font.size": 11,
    "axes.labelsize": 11,
    "axes.titlesize": 11,
    "xtick.labelsize": 10,
    "ytick.labelsize": 10,
    "axes.edgecolor": GREY,
    "axes.labelcolor": INK,
    "text.color": INK,
    "xtick.color": GREY,
    "ytick.color": GREY,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "figure.facecolor": GROUND,
    "axes.facecolor": GROUND,
    "svg.fonttype": "none",
    "svg.hashsalt": "diskbook",
    "path.simplify": False,
    # A name from a file is drawn as it is, whatever dollars are in it.
    "text.parse_math": False,
}


class RunSource(str):
    """Name of a run, with the line on its source that each figure carries, and its folder."""

    line: str
    folder: Path | None

    def __new__(cls, name: str, line: str, folder: Path | None = None) -> "RunSource":
        """Name a run; the line says when, where and on what it was measured, by whom, and the licence."""
        made = super().__new__(cls, visible(name))
        made.line, made.folder = visible(line), folder
        return made


@dataclass(frozen=True)
class ArmLook:
    """Name in words, colour, marker and line style of an arm."""

    label: str
    colour: str
    marker: str
    line: Any
    filled: bool = True

    def marks(self, size: float = 6) -> dict[str, Any]:
        """Keyword arguments for `Axes.plot`, markers only."""
        face = self.colour if self.filled else GROUND
        return {
            "linestyle": "none",
            "marker": self.marker,
            "markersize": size,
            "markerfacecolor": face,
            "markeredgecolor": self.colour,
            "markeredgewidth": 1.3,
        }


def verdict_look(is_difference: bool) -> tuple[str, dict[str, Any]]:
    """Return the colour of an interval and the keywords of its mark, by the verdict alone.

    A difference is filled and has a colour; everything else is open and grey.
    """
    if is_difference:
        return DIFFERENCE, {"marker": "D", "color": DIFFERENCE}
    return GREY, {"marker": "D", "markerfacecolor": GROUND, "markeredgecolor": GREY}


@dataclass(frozen=True)
class Picture:
    """A finished figure with what a reader needs beside it.

    `data` holds the numbers drawn; all words are written from them. `caption` has one or two sentences,
    `alt` says in one what is seen, `description` has all numbers in words. `again` draws it once more, for
    a width in pixels.
    """

    slug: str
    title: str
    caption: str
    alt: str
    figure: Figure
    data: pd.DataFrame
    provenance: str
    run: str
    description: str = ""
    again: "Callable[[int], Figure] | None" = field(default=None, repr=False, compare=False)

    def at(self, pixels: int) -> "Picture":
        """Draw it again for a width in pixels, with the same words and numbers.

        A figure that knows no way to be drawn again (one of somebody's own module) stays as it is.
        """
        if self.again is None or pixels == self.width_px:
            return self
        return replace(self, figure=self.again(pixels))

    @property
    def width_px(self) -> int:
        """Width in pixels that it was drawn for."""
        inches = float(self.figure.get_size_inches()[0])
        narrow = round(inches * _PX_PER_IN_NARROW)
        return narrow if narrow < _NARROW_BELOW_PX else round(inches * _PX_PER_IN)

    def __post_init__(self) -> None:
        # SVG and JSON cannot hold control characters, nor what is not UTF-8.
        if Provenance.INVENTORY in self.provenance and not self.caption.startswith(_OWN):
            object.__setattr__(self, "caption", f"{_OWN} {self.caption}")
        if not self.description:
            object.__setattr__(self, "description", self.caption)
        for name in ("title", "caption", "alt", "description"):
            object.__setattr__(self, name, visible(getattr(self, name)))
        if not isinstance(self.run, RunSource):
            object.__setattr__(self, "run", visible(self.run))


def redrawable(draw: Callable[P, Picture]) -> Callable[P, Picture]:
    """Let what a function draws be drawn again, once for each other width."""

    @functools.wraps(draw)
    def drawn(*args: P.args, **kwargs: P.kwargs) -> Picture:
        @functools.cache
        def again(pixels: int) -> Figure:
            with drawn_at(pixels):
                return draw(*args, **kwargs).figure

        return replace(draw(*args, **kwargs), again=again)

    return drawn


def brief(provenance: str, sentence: str) -> str:
    """Write a caption: one sentence on what is shown, after the one that says who measured it."""
    starts = (words for kind, words in _STARTS.items() if kind in provenance)
    return " ".join((*starts, sentence))


# Marker, line and fill of the first, second, third ... arm of a kind. The first is fixed everywhere.
_LRS = (("o", "-", True), ("^", (0, (1, 1.2)), False), ("v", (0, (1, 2.5)), True), ("P", "-", False))
_ZRS = (
    ("s", (0, (5, 2)), True),
    ("s", (0, (7, 2, 1, 2)), False),
    ("X", (0, (3, 1.5)), True),
    ("p", "--", False),
)


_LOCAL = (("D", "-", True), ("D", (0, (3, 1.5)), False))
_KINDS = {"ZRS": (_ZRS, VERMILLION), EPHEMERAL: (_LOCAL, GREEN)}
# Volumes: copies on other nodes are to one server what ZRS is to LRS.
_KINDS |= {"two-way": (_ZRS, VERMILLION), "three-way": (_ZRS, VERMILLION)}
_KINDS |= {"nested-mirror": (_LOCAL, GREEN), "nested-parity": (_ZRS[::-1], PURPLE_DARK)}


def looks(scenario: Scenario) -> dict[str, ArmLook]:
    """Look of every arm: LRS blue with a solid line and circles, ZRS vermillion, dashed, squares.

    Ephemeral OS disks are green diamonds. Simple volumes look as LRS does, mirrors over nodes as ZRS, nested
    mirrors as ephemeral disks, and nested parity is purple.

    Further arms of a kind keep its colour and take other markers and lines.
    """
    seen: dict[str, int] = {}
    chosen: dict[str, ArmLook] = {}
    for arm in scenario.arm:
        redundancy = _redundancy(scenario, arm)
        styles, colour = _KINDS.get(redundancy, (_LRS, BLUE))
        marker, line, filled = styles[seen.get(redundancy, 0) % len(styles)]
        seen[redundancy] = seen.get(redundancy, 0) + 1
        chosen[arm.name] = ArmLook(label(scenario, arm.name), colour, marker, line, filled)
    return chosen


def _redundancy(scenario: Scenario, arm: Arm) -> str:
    if arm.volume:
        return scenario.volume_named(arm.volume).kind
    return scenario.disk_named(arm.disk).sku.rpartition("_")[2]


@contextmanager
def drawn_at(width_px: int) -> Iterator[None]:
    """Draw figures for a width in pixels while this is entered: `width_in()` and `is_narrow()` follow it."""
    token = _WIDTH_PX.set(width_px)
    try:
        yield
    finally:
        _WIDTH_PX.reset(token)


def width_px() -> int:
    """Width in pixels that figures are drawn for now."""
    return _WIDTH_PX.get()


def is_narrow() -> bool:
    """Whether figures are drawn for a phone now: labels above rows, legends below, one column of panels."""
    return width_px() < _NARROW_BELOW_PX


def px_per_in(pixels: int) -> int:
    """Pixels to the inch of a figure drawn for a width."""
    return _PX_PER_IN_NARROW if pixels < _NARROW_BELOW_PX else _PX_PER_IN


def width_in() -> float:
    """Width in inches of a figure drawn now; use it instead of a number of inches."""
    return width_px() / px_per_in(width_px())


def new_figure(height_in: float, panels: int = 1, **options: Any) -> tuple[Figure, list[Axes]]:
    """Make a figure of the width asked for, with panels below each other."""
    height_in += _ENDS_IN + (_MORE_IN + _MORE_PER_PANEL_IN * panels) * is_narrow()
    with mpl.rc_context(RC):
        figure = Figure(figsize=(width_in(), height_in), layout=layout())
        axes = figure.subplots(panels, 1, squeeze=False, **options)
    return figure, [row[0] for row in axes]


def layout() -> ConstrainedLayoutEngine:
    """Lay panels out side by side with their labels, which are measured, and room at the edges."""
    return ConstrainedLayoutEngine(w_pad=EDGE_IN, h_pad=EDGE_IN)


def left_edge() -> float:
    """Where titles, notes and keys begin, as a share of the width."""
    return EDGE_IN / width_in()


def decorate(figure: Figure, title: str, note: str, provenance: str, run: str) -> None:
    """Finish a figure: title that states the finding, note on n and interval, and where the data came from.

    A figure made from emulated data says so once, above its title, and one of hosts of the user's own; there
    is no way to leave it out.
    """
    with mpl.rc_context(RC):
        room = _room_pt()
        marks = [(kind, words) for kind, words in _MARKS.items() if kind in provenance]
        heading = "\n" * len(marks) + fitted(title, room, 12, "bold")
        figure.suptitle(heading, x=left_edge(), ha="left", fontsize=12, fontweight="bold")
        source = fitted(_source_line(run), room, _SOURCE_PT)
        below = fitted(note, room)
        more = sum(max(0, text.count("\n") - 1) for text in (heading, below, source))
        figure.set_figheight(figure.get_figheight() + _LINE_IN * more)
        for line, (kind, words) in enumerate(marks):
            top = 1 - (EDGE_IN + 0.2 * line) / figure.get_figheight()
            figure.text(left_edge(), top, words, va="top", fontsize=10, fontweight="bold",
                        color=PURPLE_DARK, gid=kind)  # fmt: skip
        # Blank lines below the note keep the room of the source, whose letters are smaller.
        below = f"{below}\n" + source.count("\n") * "\n"
        figure.supxlabel(below, x=left_edge(), ha="left", fontsize=10, color=GREY)
        bottom = EDGE_IN / figure.get_figheight()
        figure.text(left_edge(), bottom, source, va="bottom", fontsize=_SOURCE_PT, color=GREY, gid="source")
        for axes in figure.axes:
            _fit_rows(axes)
        beside = max((_rows_pt(axes) for axes in figure.axes), default=0.0)
        for axes in figure.axes:
            _fit_names(axes, room - beside)


def _source_line(run: str) -> str:
    """Write the line on the source; of a run that is known by name alone, its name."""
    return run.line if isinstance(run, RunSource) else f"Run {visible(run)}"


def _room_pt() -> float:
    """Width that text has between the edges of a picture, in points."""
    return _HINTED * 72 * (width_in() - 2 * EDGE_IN)


def _fit_rows(axes: Axes) -> None:
    """Break names of rows that would leave their marks too little room."""
    if isinstance(axes.yaxis.get_major_locator(), mpl.ticker.FixedLocator):
        labels = [fit_row(label.get_text()) for label in axes.get_yticklabels()]
        weights = [label.get_fontweight() for label in axes.get_yticklabels()]
        for label, weight in zip(axes.set_yticks(axes.get_yticks(), labels), weights, strict=True):
            label.label1.set_fontweight(weight)


def fit_row(name: str) -> str:
    """Break the name of a row as `decorate` does, for who has to know its lines before."""
    return fitted(name, (ROWS_SHARE_NARROW if is_narrow() else ROWS_SHARE) * _room_pt())


def _rows_pt(axes: Axes) -> float:
    """Room that the names of rows take at the left of a panel, with what belongs to it."""
    if not isinstance(axes.yaxis.get_major_locator(), mpl.ticker.FixedLocator):
        return _NUMBERS_PT
    lines = [line for label in axes.get_yticklabels() for line in label.get_text().split("\n")]
    return _BESIDE_PT + max((width_pt(line) for line in lines), default=0.0)


def _fit_names(axes: Axes, room_pt: float) -> None:
    """Break the title of a panel and its axis' name on a phone."""
    title = axes.get_title(loc="left").strip()
    if title and is_narrow():
        axes.set_title(fitted(title, room_pt, 11), loc="left", fontsize=11)
    if is_narrow():
        # It stands in the middle of its panel, beside which there may be numbers.
        axes.set_xlabel(fitted(axes.get_xlabel(), AXIS_SHARE * _room_pt(), 11))


def rows_above(axes: Axes, lines: int = 2) -> None:
    """Write the name of each row above it, on so many lines, in place of beside it."""
    for place, tick in zip(axes.get_yticks(), axes.yaxis.get_major_ticks(), strict=True):
        name = tick.label1.get_text().replace("/\n", "/ ")
        name = name if lines > 1 else name.replace(",\n", ", ").replace("\n", ", ")
        weight = tick.label1.get_fontweight()
        name = "\n".join(cut(line, _room_pt() - _BESIDE_PT, weight=weight) for line in name.split("\n"))
        text = axes.text(
            0, place - 0.36 - 0.15 * lines, name, va="top", fontsize=10, transform=axes.get_yaxis_transform()
        )
        text.set_fontweight(weight)
        text.set_in_layout(False)  # it may be wider than the panel
    axes.set_yticks([])


def legend_below(
    axes: Axes, handles: Sequence[Any], labels: Sequence[str], columns: int = 2, lines: int = 1
) -> None:
    """Place the key below a panel and its axis label, from the left edge, where a phone has room.

    `lines` is the height of the tick labels in lines of text.
    """
    figure = axes.get_figure(root=True)
    assert figure is not None
    below = ScaledTranslation(0, -_BELOW_IN - _LINE_IN * (lines - 1), figure.dpi_scale_trans)
    axes.legend(
        handles,
        labels,
        loc="upper left",
        bbox_to_anchor=(left_edge(), 0),
        bbox_transform=blended_transform_factory(figure.transFigure, axes.transAxes) + below,
        ncols=columns,
        frameon=False,
        fontsize=10,
        handlelength=3,
        columnspacing=1.2,
        borderpad=0,
        borderaxespad=0,
    )
