"""Capacity against performance: what of the drives can be used, and what a kind does of a mirror's rate."""

import matplotlib as mpl
import pandas as pd
from matplotlib.axes import Axes

from diskbook.design.vocabulary import Provenance
from diskbook.facts.quantities import many
from diskbook.report.figures import scales, style

NOTE = (
    "Rates with full queues, of the smallest blocks; bars: 95 % intervals. Short lines: what disk I/Os and "
    "limits alone predict. Arrows: capacity with seven drives a node or more."
)
_LOOKS = (("o", style.BLUE), ("s", style.GREEN), ("D", style.VERMILLION), ("^", style.PURPLE_DARK))
APART = 0.5
"""Points of capacity that marks of one kind stand apart."""


@style.redrawable
def capacity(points: pd.DataFrame, title: str, run: str, provenance: str) -> style.Picture:
    """Draw rates in percent of the two-way mirror's over usable capacity, a mark a share of writes.

    - `points`: `arm, label, capacity_pct, most_pct, write_pct, ratio, low, high, bound`.
    - `title`, `run`, `provenance`: finding, name of the run, and where its numbers come from.
    """
    figure, (axes,) = style.new_figure(4.9)
    scaled = points.assign(**{name: 100 * points[name] for name in ("ratio", "low", "high", "bound")})
    shares = sorted(set(points["write_pct"]))
    with mpl.rc_context(style.RC):
        for place, share in enumerate(shares):
            shift = APART * (place - (len(shares) - 1) / 2)
            _marks(axes, scaled[scaled["write_pct"] == share], shift, place, share)
        _names(axes, scaled)
        _frame(axes, scaled)
    style.decorate(figure, title, NOTE, provenance, run)
    emulated = Provenance.EMULATED in provenance
    finding = _finding(points)
    caption = style.brief(provenance, f"{finding} {NOTE}")
    made = "emulated " if emulated else ""
    alt = f"Dots of {made}rates over usable capacity by kind of volume. {title}."
    kinds = many(points["arm"].nunique(), "kind")
    short = style.brief(provenance, f"IOPS of {kinds} of volume over what of their drives can be used.")
    return style.Picture(
        "capacity", title, short, alt, figure, points.reset_index(drop=True), provenance, run, caption
    )


def _marks(axes: Axes, rows: pd.DataFrame, shift: float, place: int, share: float) -> None:
    marker, colour = _LOOKS[place % len(_LOOKS)]
    places = rows["capacity_pct"] + shift
    for at, bound in zip(places, rows["bound"], strict=True):
        axes.plot([at - 0.4, at + 0.4], [bound, bound], color=style.INK, linewidth=1.4, zorder=1)
    scales.upright(axes, places, rows["low"].astype(float), rows["high"].astype(float))
    words = {0: "reads", 100: "writes"}.get(int(share), f"{share:g} % writes")
    axes.plot(
        places,
        rows["ratio"],
        linestyle="none",
        marker=marker,
        color=colour,
        markersize=7,
        label=words,
        zorder=3,
    )


def _names(axes: Axes, points: pd.DataFrame) -> None:
    """Name each kind above its marks, kinds of nearly one capacity at different heights."""
    kinds = points.drop_duplicates("arm").sort_values("capacity_pct")
    above, last = 0, -100.0
    for row in kinds.to_dict("records"):
        above = (above + 1) % 3 if row["capacity_pct"] - last < 12 else 0
        last = row["capacity_pct"]
        height = 116 + 9 * above
        box = {"facecolor": "white", "edgecolor": "none", "pad": 1.0}
        axes.text(
            last, height, row["label"], ha="center", va="bottom", fontsize=10, color=style.INK, bbox=box
        )
        axes.plot([last, last], [0, height], color=style.FAINT, linewidth=0.8, zorder=0)
        if row["most_pct"] - last > 0.5:
            arrow = {"arrowstyle": "->", "color": style.GREY}
            axes.annotate("", (row["most_pct"], height - 1), (last, height - 1), arrowprops=arrow)


def _frame(axes: Axes, points: pd.DataFrame) -> None:
    low, high = (points["capacity_pct"].min(), points["capacity_pct"].max()) if len(points) else (25, 50)
    axes.set_xlim(low - 6, high + 8)
    most = max([145.0, *(1.1 * points["ratio"])])
    axes.set_ylim(0, most)
    axes.set_yticks([0, 25, 50, 75, 100])
    axes.grid(axis="y", color=style.FAINT, linewidth=0.7)
    axes.set_axisbelow(True)
    axes.set_xlabel("Usable share of the drives, %")
    axes.set_ylabel("IOPS, % of the two-way mirror's")
    if len(points) and style.is_narrow():
        style.legend_below(axes, *axes.get_legend_handles_labels(), columns=3, lines=2)
    elif len(points):
        axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.14), ncols=4, frameon=False, fontsize=10)


def _finding(points: pd.DataFrame) -> str:
    parts = []
    for _, rows in points.groupby("arm", sort=False):
        first = rows.iloc[0]
        done = ", ".join(
            f"{100 * row['ratio']:.0f} % of the IOPS with {row['write_pct']:g} % writes"
            for row in rows.to_dict("records")
        )
        parts.append(f"{first['label']} has {first['capacity_pct']:.1f} % of its drives to use, and {done}")
    return f"{'; '.join(parts) or 'Nothing was measured'}."
