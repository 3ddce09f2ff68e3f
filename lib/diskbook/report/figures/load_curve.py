"""Latency against load: p50 and p99 of trials whose rate was held at shares of the cap, and the cap."""

from collections.abc import Mapping
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from diskbook.design import grid
from diskbook.design.vocabulary import Provenance
from diskbook.facts.quantities import many, reach
from diskbook.report.figures import style

MOST_PANELS = 8
REACH = 1.06
"""Where the axis ends, as a share of the cap."""
ABOVE = 0.2
"""Room above the highest mark, as a share of the axis: the cap's name stands there."""
_RISE = 1.1
"""Multiple of the latency at the lowest rate from which on a rise is spoken of; few trials tell no less."""
LEAST_TRIALS = 3
"""Trials of a rate from which on its p99 is drawn: one slow moment makes that of a single trial."""
ALONE = "too few trials"
TICK_PT, OF_WIDTH = 36.0, 0.86
"""Room that a tick's label needs, and the part of a figure's width that its axes have."""
QUANTILES: Mapping[str, tuple[str, Any, bool]] = {
    "lat_p50_ms": ("p50", "-", True),
    "lat_p99_ms": ("p99", (0, (4, 2)), False),
}
NOTE = "Each mark is one trial, lines join medians; dotted: the cap. All panels have one axis of latency."
FROM_DUE = "Latencies count from when each I/O was due."
FROM_SENT = "Where latencies count from when an I/O was sent, they are lower bounds."
NOT_KEPT = "Crosses: the rate was not held."
LACKS = {
    grid.FEW: f"fewer than {grid.tail_needs(0.99):,} I/Os",
    grid.START: "no ramp that leaves its first second out",
    ALONE: f"fewer than {LEAST_TRIALS} at the same rate",
}
"""Why a trial shows no p99, after how many there are that have ..."""


@style.redrawable
def load_curve(
    points: pd.DataFrame, looks: Mapping[str, style.ArmLook], run: str, provenance: str
) -> style.Picture:
    """Draw latency against the rate that was held, a panel a load and arm.

    - `points`: from `evidence.load_curve_points`: three rates or more of each curve.
    - `run`, `provenance`: name of the run, and where its numbers come from.
    """
    points = _masked(points)
    every = [(kind, arm) for kind in dict.fromkeys(points["kind"]) for arm in looks
             if len(_of(points, kind, arm))]  # fmt: skip
    curves = every[:MOST_PANELS]
    figure, panels = style.new_figure(1.4 + 2.35 * len(curves), len(curves))
    with mpl.rc_context(style.RC):
        for axes, (kind, arm) in zip(panels, curves, strict=True):
            _panel(axes, _of(points, kind, arm), looks[arm])
            axes.set_title(f"{looks[arm].label}: {kind}", loc="left", fontsize=11)
        _one_latency_axis(panels, points)
    named = [(f"{looks[arm].label}, {kind}", _of(points, kind, arm)) for kind, arm in curves]
    finding = " ".join(_finding(rows, name) for name, rows in named)
    note, title = _note(points, len(every) - len(curves)), _title(points)
    style.decorate(figure, title, note, provenance, run)
    emulated = Provenance.EMULATED in provenance
    caption = style.brief(provenance, _caption(points, len(curves)))
    description = style.brief(provenance, f"{finding} {note}")
    alt = f"Lines of {'emulated ' if emulated else ''}latency over the rate held. {title}."
    return style.Picture("load-curve", title, caption, alt, figure, points, provenance, run, description)


def _masked(points: pd.DataFrame) -> pd.DataFrame:
    """Leave out the p99 of rates with too few trials."""
    counts = points.groupby(["kind", "arm", "rate_offered"])["lat_p99_ms"].transform("count")
    alone = points["lat_p99_ms"].notna() & (counts < LEAST_TRIALS)
    return points.assign(
        lat_p99_ms=points["lat_p99_ms"].mask(alone), p99_lacks=points["p99_lacks"].mask(alone, ALONE)
    )


def _caption(points: pd.DataFrame, curves: int) -> str:
    """What is drawn, and how many trials are too few or too short for a p99."""
    without = int((points["p99_lacks"] != "").sum())
    if without == len(points):
        return (
            f"Median latency against the rate held, {many(curves, 'curve')}; no trial has enough for a p99."
        )
    drawn = f"Median and 99th percentile of latency against the rate held, {many(curves, 'curve')}"
    return (
        f"{drawn}; {without} of {len(points)} trials have too little for a p99." if without else f"{drawn}."
    )


def _of(points: pd.DataFrame, kind: str, arm: str) -> pd.DataFrame:
    return points[(points["kind"] == kind) & (points["arm"] == arm)]


def _note(points: pd.DataFrame, left_out: int) -> str:
    notes = [NOTE, FROM_DUE if points["from_due"].all() else FROM_SENT]
    notes += [NOT_KEPT] * (not points["kept"].all())
    lacking = [(int((points["p99_lacks"] == why).sum()), words) for why, words in LACKS.items()]
    notes += [f"No p99 of {many(number, 'trial')} with {words}." for number, words in lacking if number]
    return " ".join(notes + [f"Not drawn: {many(left_out, 'more curve')}."] * (left_out > 0))


def _panel(axes: Axes, rows: pd.DataFrame, look: style.ArmLook) -> None:
    for column in QUANTILES:
        _quantile(axes, rows[rows[column].notna()], column, look)
    _rates(axes, rows, float(rows["cap_iops"].median()))
    axes.grid(color=style.FAINT, linewidth=0.7)
    axes.set_axisbelow(True)
    axes.set_ylabel("Latency, ms")


def _quantile(axes: Axes, rows: pd.DataFrame, column: str, look: style.ArmLook) -> None:
    """Draw trials that have a percentile, with a line through their medians."""
    if rows.empty:
        return
    name, line, filled = QUANTILES[column]
    medians = rows.groupby("rate_offered")[["iops", column]].median()
    axes.plot(medians["iops"], medians[column], color=look.colour, linestyle=line, linewidth=1.8)
    for kept, marker in ((True, "o"), (False, "x")):
        some = rows[rows["kept"] == kept]
        face = look.colour if filled or not kept else style.GROUND
        axes.plot(some["iops"], some[column], linestyle="none", marker=marker, markersize=4.5,
                  markerfacecolor=face, markeredgecolor=look.colour, markeredgewidth=1.1)  # fmt: skip
    end = medians.iloc[-1]
    axes.annotate(name, (end["iops"], end[column]), (9, 0), textcoords="offset points", va="center",
                  fontsize=10, color=style.INK)  # fmt: skip


def _rates(axes: Axes, rows: pd.DataFrame, cap: float) -> None:
    """The axis of rates: as shares of the cap where it is known, which is drawn."""
    rates = sorted(rows["rate_offered"].unique())
    if np.isnan(cap):
        axes.set_xlim(0, REACH * max(rates[-1], float(rows["iops"].max())))
        axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
        axes.set_xlabel("IOPS held; no cap is known")
        return
    axes.set_xlim(0, max(REACH * cap, 1.02 * float(rows["iops"].max())))
    axes.axvline(cap, color=style.INK, linestyle=":", linewidth=1.4)
    axes.annotate(rows["cap_words"].iloc[0], (cap, 1.0), (-5, -8), xycoords=("data", "axes fraction"),
                  textcoords="offset points", ha="right", va="center", fontsize=10, color=style.INK,
                  bbox={"facecolor": style.GROUND, "edgecolor": "none", "pad": 1.0})  # fmt: skip
    places = _with_room(axes, [*(rate for rate in rates if rate < cap), cap])
    axes.set_xticks(places, [f"{100 * rate / cap:.0f} %\n{rate:,.0f}" for rate in places])
    axes.set_xlabel("Rate held, of the cap and in IOPS")


def _with_room(axes: Axes, places: list[float]) -> list[float]:
    """Ticks whose labels do not meet, chosen from the cap downwards."""
    figure = axes.get_figure(root=True)
    assert figure is not None
    room = TICK_PT / (OF_WIDTH * 72 * figure.get_size_inches()[0]) * axes.get_xlim()[1]
    kept = places[-1:]
    for place in reversed(places[:-1]):
        if kept[0] - place >= room:
            kept.insert(0, place)
    return kept


def _one_latency_axis(panels: list[Axes], points: pd.DataFrame) -> None:
    """Latency from one end to the other of all panels, so that these can be compared."""
    highest = points[["lat_p50_ms", "lat_p99_ms"]].max().max()
    low, high = float(points["lat_p50_ms"].min()) / 1.3, float(highest) * 1.1
    ticks = [step * 10.0**power for power in range(-3, 5) for step in (1, 2, 5)]
    ticks = [tick for tick in ticks if low <= tick <= high]
    for axes in panels:
        axes.set_yscale("log")
        axes.set_ylim(low, high * (high / low) ** ABOVE)
        axes.set_yticks(ticks, [f"{tick:g}" for tick in ticks])
        axes.set_yticks([], minor=True)


def _ends(rows: pd.DataFrame) -> tuple[pd.Series, pd.Series]:
    medians = rows.groupby("rate_offered")[["lat_p50_ms", "lat_p99_ms"]].median().reset_index()
    return medians.iloc[0], medians.iloc[-1]


def _finding(rows: pd.DataFrame, name: str) -> str:
    first, last = _ends(rows)
    cap = float(rows["cap_iops"].median())
    low, high = (f"{end['rate_offered']:,.0f} IOPS" for end in (first, last))
    if not np.isnan(cap):
        low = f"{100 * first['rate_offered'] / cap:.0f} % of the {rows['cap_words'].iloc[0]}"
        high = f"{100 * last['rate_offered'] / cap:.0f} %"
    return f"{name}: {_latencies(first, 'p50 ', 'p99 ')} ms at {low}, {_latencies(last)} ms at {high}."


def _latencies(end: pd.Series, p50: str = "", p99: str = "") -> str:
    """Median and 99th percentile of a rate; the median alone where there is no other."""
    tail = "" if np.isnan(end["lat_p99_ms"]) else f" and {p99}{end['lat_p99_ms']:.2f}"
    return f"{p50}{end['lat_p50_ms']:.2f}{tail}"


def _title(points: pd.DataFrame) -> str:
    """The rise of p99 from end to end, or of p50 where the p99 of an end is of few trials, or of none."""
    ends = [_ends(rows) for _, rows in points.groupby(["kind", "arm"])]
    names = {"lat_p99_ms": "the 99th percentile", "lat_p50_ms": "the median"}
    whole = [column for column in names if all(end[column] > 0 for pair in ends for end in pair)]
    if not whole:
        return "Latency at the rates held"
    column, name = whole[0], names[whole[0]]
    rises = [last[column] / first[column] for first, last in ends]
    if max(rises) < _RISE:
        return f"{name} of latency does not rise up to the highest rate held below the cap".capitalize()
    longer = f"{reach(100 * min(rises) - 100, 100 * max(rises) - 100, ',.0f')} % longer"
    times = f"{reach(min(rises), max(rises), '.1f')} times as long" if min(rises) >= 2 else longer
    return f"From the lowest to the highest rate held, {name} of latency becomes {times}"
