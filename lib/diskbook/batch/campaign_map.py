"""Map of a campaign: place against hour of start, a panel a comparison; cells without a run stay empty."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib as mpl
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.colors import Colormap, Normalize
from matplotlib.patches import Rectangle

from diskbook.design.vocabulary import Provenance
from diskbook.report.figures import scales, style

HOURS = 3
"""Hours of a column: 24 columns have no room for numbers."""
STARTS = tuple(range(0, 24, HOURS))
ROW_IN, HEAD_IN, PANEL_IN, NAME_IN = 0.62, 2.0, 0.75, 0.2
WIDE, NARROW = (-0.46, 0.46), (-0.29, 0.40)
"""Top and bottom of a cell in its row; on a phone the name of the row stands above."""
LEAST_DOUBLINGS = 0.5
"""Doublings at which colours end at least, so that small ratios look small."""
NOTE = (
    "A cell: the change in percent, half its interval, and n runs; of several runs the median change and the "
    "median interval, whichever zone their disks answer from: nothing is pooled. An empty cell has no run; "
    "no change: those of its runs are refused."
)
_NO_HOUR = " The emulator plays neither regions nor times of day: its cells say when runs were begun here."


@style.redrawable
def campaign_map(
    panels: Mapping[str, pd.DataFrame], title: str, batch: str, provenance: str
) -> style.Picture:
    """Draw the changes in a batch's runs by place and hour.

    - `panels`: by comparison in words: a row a cell with `place`, `hour` (at which its column begins, UTC),
      `n`, `ratio` and `half_pct` (half of the interval in percent), NaN where there is none.
    - `title`, `batch`, `provenance`: its finding, name of the batch, and where its numbers come from.
    """
    places = {name: list(dict.fromkeys(frame["place"])) for name, frame in panels.items()}
    rows = [max(1, len(names)) for names in places.values()]
    row_in = ROW_IN + NAME_IN * style.is_narrow()
    figure, drawn = style.new_figure(
        HEAD_IN + PANEL_IN * len(panels) + row_in * sum(rows), len(panels), height_ratios=rows
    )
    every = pd.concat([frame.assign(comparison=name) for name, frame in panels.items()], ignore_index=True)
    with mpl.rc_context(style.RC):
        colours = mpl.colormaps["PuOr_r"], _scale(every["ratio"])
        for axes, (name, frame) in zip(drawn, panels.items(), strict=True):
            _panel(axes, frame, places[name], *colours)
            axes.set_title(_two_lines(name), loc="left", fontsize=11)
        scales.colour_key(drawn[-1], colours[0], float(colours[1].vmax or LEAST_DOUBLINGS))
        drawn[-1].set_xlabel(f"hour of start, UTC ({HOURS} hours a column)")
    emulated = Provenance.EMULATED in provenance
    note = NOTE + _NO_HOUR * emulated
    style.decorate(
        figure, title, note, provenance, style.RunSource(batch, f"Batch {batch}; diskbook, MIT licence")
    )
    finding = " ".join(_words(name, frame) for name, frame in panels.items())
    made = "emulated " if emulated else ""
    alt = f"Heat map of {made}changes by place and hour of start, showing: {title}."
    short = style.brief(provenance, f"Changes in the runs of batch {batch} by place and hour of start.")
    description = style.brief(provenance, f"{finding} {note}")
    return style.Picture("campaign-map", title, short, alt, figure, every, provenance, batch, description)


def _scale(ratios: pd.Series) -> Normalize:
    """Colours about 1, alike on both sides."""
    doublings = [abs(math.log2(ratio)) for ratio in ratios.dropna() if ratio > 0]
    widest = max([LEAST_DOUBLINGS, *doublings])
    return Normalize(-widest, widest)


def _two_lines(name: str) -> str:
    """A comparison's load above its arms."""
    return name.replace(": ", ":\n", 1)


def _panel(
    axes: Axes, frame: pd.DataFrame, places: Sequence[str], colours: Colormap, scale: Normalize
) -> None:
    cells = {(row["place"], row["hour"]): row for row in frame.to_dict("records")}
    top, bottom = NARROW if style.is_narrow() else WIDE
    for down, place in enumerate(places):
        for across, hour in enumerate(STARTS):
            corner = (across - 0.48, down + top)
            _cell(axes, corner, bottom - top, cells.get((place, hour)), colours, scale)
    axes.set_yticks(range(len(places)), [place.replace(", ", ",\n") for place in places])
    axes.set_xticks(range(len(STARTS)), [f"{hour:02}" for hour in STARTS])
    axes.tick_params(length=0)
    axes.set_xlim(-0.5, len(STARTS) - 0.5)
    axes.set_ylim(max(1, len(places)) - 0.5, -0.5)
    for side in ("left", "bottom"):
        axes.spines[side].set_visible(False)
    if style.is_narrow():
        style.rows_above(axes, 1)


def _cell(
    axes: Axes,
    corner: tuple[float, float],
    height: float,
    row: Mapping[Any, Any] | None,
    colours: Colormap,
    scale: Normalize,
) -> None:
    if row is None:
        axes.add_patch(
            Rectangle(corner, 0.96, height, facecolor=style.GROUND, edgecolor=style.FAINT, linewidth=0.6)
        )
        return
    is_refused = math.isnan(row["ratio"])
    face = style.GROUND if is_refused else colours(scale(math.log2(row["ratio"])))
    axes.add_patch(Rectangle(corner, 0.96, height, facecolor=face, edgecolor=style.GREY, linewidth=0.6))
    middle, words = (corner[0] + 0.48, corner[1] + height / 2), "\n".join(_lines(row))
    axes.text(*middle, words, ha="center", va="center", fontsize=10, color=scales.ink(face), linespacing=1.1)


def _lines(row: Mapping[Any, Any]) -> list[str]:
    """What a cell says: ratio, half of its interval, number of runs."""
    if math.isnan(row["ratio"]):
        return ["refused", f"n {row['n']}"]
    return [scales.in_percent(row["ratio"]), _half(row["half_pct"]), f"n {row['n']}"]


def _half(percent: float) -> str:
    if math.isnan(percent):
        return "no CI"
    return f"±{percent:.1f}" if percent < 9.95 else f"±{percent:.0f}"


def _words(name: str, frame: pd.DataFrame) -> str:
    """All cells of a comparison in words."""
    cells = [
        f"{row['place']} from {row['hour']:02} h {' '.join(_lines(row))}" for row in frame.to_dict("records")
    ]
    empty = len(STARTS) * frame["place"].nunique() - len(frame)
    return f"{name}: {'; '.join(cells)}; {empty} cells are empty."
