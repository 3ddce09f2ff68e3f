"""Percentile plot: latency of all I/Os against the part that is faster, drawn as far as data reach."""

from collections.abc import Mapping, Sequence

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from diskbook.design import grid, held_rate
from diskbook.design.totals import measured_rows
from diskbook.design.vocabulary import Provenance
from diskbook.facts.quantities import many, reach
from diskbook.report.figures import style
from diskbook.stats import percentiles

TICKS = {0.5: "50 %", 0.9: "90 %", 0.99: "99 %", 0.999: "99.9 %", 0.9999: "99.99 %", 0.99999: "99.999 %"}
POINTS = 160
NEXT = 0.35
"""Part of a nine by which an axis reaches beyond the data, where there is a tick."""


@style.redrawable
def tail(
    bins: pd.DataFrame,
    trials: pd.DataFrame,
    looks: Mapping[str, style.ArmLook],
    words: Mapping[str, str],
    workloads: Sequence[str],
    run: str,
) -> style.Picture:
    """Draw latency percentiles of all I/Os of a cell from p50 on, a panel a workload, a line an arm.

    A line stops where fewer than 10 I/Os lie beyond. Latency is total latency (fio's lat) per I/O. In a
    closed loop waits that a stall causes for I/Os not yet sent are not in it; the panel of a held rate says
    whether they are (`held_rate.Start`).
    """
    starts = held_rate.starts(measured_rows(trials))
    data = curves(percentiles.merge(bins, trials), workloads)
    figure, panels = style.new_figure(
        1.2 + (3.4 if style.is_narrow() else 2.75) * len(workloads), len(workloads)
    )
    with mpl.rc_context(style.RC):
        for axes, workload in zip(panels, workloads, strict=True):
            _panel(axes, data[data["workload"] == workload], looks, data)
            start = f" ({starts[workload]})" if workload in starts else ""
            axes.set_title(words.get(workload, workload) + start, loc="left", fontsize=11)
    note = "All I/Os of all finished trials, not a typical trial; a line ends where fewer than 10 lie beyond."
    provenance = "+".join(sorted(set(trials["provenance"])))
    title = _title(data, words, workloads)
    style.decorate(figure, title, note, provenance, run)
    emulated = "Emulated, not measured on Azure. " if Provenance.EMULATED in provenance else ""
    named = {name: f"{words.get(name, name)} ({start})" for name, start in starts.items()}
    finding = _finding(data, looks, {**words, **named}, workloads)
    kind = f"Percentiles of {'emulated ' if emulated else ''}latency as lines, one per arm"
    alt = f"{kind}. {title}."
    arms = data["arm"].nunique()
    short = style.brief(
        provenance, f"Total latency of all I/Os, {many(arms, 'arm')}; a line ends where 10 I/Os lie beyond."
    )
    description = f"{emulated}{finding} {note}"
    return style.Picture("percentiles", title, short, alt, figure, data, provenance, run, description)


def _title(data: pd.DataFrame, words: Mapping[str, str], workloads: Sequence[str]) -> str:
    """Say what the slowest of so many I/Os take, by the furthest of three percentiles that all arms reach."""
    for workload in workloads:
        rows = data[data["workload"] == workload]
        reached = rows.groupby("arm")["quantile"].max().min()
        for quantile, number in ((0.999, "1,000"), (0.99, "100"), (0.9, "10")):
            if reached >= quantile:
                beyond = rows[rows["quantile"] >= quantile].groupby("arm")["lat_ms"].first()
                ends = reach(beyond.min(), beyond.max(), ".3g")
                return (
                    f"{words.get(workload, workload)}: 1 of {number} I/Os takes longer than {ends} ms, by arm"
                )
    return "What the slowest I/Os take"


def curves(merged: pd.DataFrame, workloads: Sequence[str]) -> pd.DataFrame:
    """Points of each line: `workload, arm, quantile, lat_ms, n_ios`."""
    parts = []
    for workload in workloads:
        rows = merged[merged["workload"] == workload]
        for arm, group in rows.groupby("arm", sort=False):
            parts.append(_curve(str(workload), str(arm), group))
    columns = ["workload", "arm", "quantile", "lat_ms", "n_ios"]
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=columns)


def _curve(workload: str, arm: str, group: pd.DataFrame) -> pd.DataFrame:
    by_latency = group.groupby("lat_ms")["count"].sum()  # of reads and writes together, where it has both
    lat_ms, count = by_latency.index.to_numpy(float), by_latency.to_numpy()
    total = int(count.sum())
    nines = np.linspace(np.log10(2), np.log10(max(total / grid.BEYOND, 2.0)), POINTS)
    quantiles = 1 - 10.0**-nines
    reached = np.searchsorted(np.cumsum(count), np.ceil(np.round(quantiles * total, 6)))
    return pd.DataFrame(
        {
            "workload": workload,
            "arm": arm,
            "quantile": quantiles,
            "lat_ms": lat_ms[np.minimum(reached, len(lat_ms) - 1)],
            "n_ios": total,
        }
    )


def _panel(axes: Axes, data: pd.DataFrame, looks: Mapping[str, style.ArmLook], every: pd.DataFrame) -> None:
    """Draw a panel; its axes are those of all panels, which are compared."""
    axes.set_yscale("log")
    ends: list[tuple[float, float, str]] = []
    for arm in (arm for arm in looks if arm in set(data["arm"])):
        rows, look = data[data["arm"] == arm], looks[arm]
        x = -np.log10(1 - rows["quantile"].to_numpy(float))
        y = rows["lat_ms"].to_numpy(float)
        marks = {**look.marks(5), "linestyle": look.line, "color": look.colour, "linewidth": 1.8}
        axes.plot(x, y, **marks, markevery=(0, POINTS // 4), label=look.label)
        ends.append((float(x[-1]), float(y[-1]), arm))
    furthest = float(-np.log10(1 - every["quantile"].max())) if len(every) else 3.0
    shown = [quantile for quantile in TICKS if -np.log10(1 - quantile) <= furthest + NEXT]
    furthest = max([furthest, *(-np.log10(1 - quantile) for quantile in shown)])
    axes.set_xticks([-np.log10(1 - quantile) for quantile in shown], [TICKS[quantile] for quantile in shown])
    axes.set_xlim(np.log10(2) - 0.03, furthest + 0.03)
    _latency_ticks(axes, every["lat_ms"])
    axes.grid(color=style.FAINT, linewidth=0.7)
    axes.set_axisbelow(True)
    axes.set_xlabel("Part of the I/Os that are faster")
    axes.set_ylabel("Total latency, ms")
    _labels(axes, ends, looks)


def _latency_ticks(axes: Axes, lat_ms: pd.Series) -> None:
    """Plain numbers within the data: 1, 2, 5 of each power of ten, more where the range is small."""
    low, high = (float(lat_ms.min()) / 1.15, float(lat_ms.max()) * 1.15) if len(lat_ms) else (1.0, 10.0)
    steps = (1, 2, 5) if high / low > 12 else (1, 1.5, 2, 3, 4, 5, 6, 8)
    ticks = [step * 10.0**power for power in range(-3, 5) for step in steps]
    ticks = [tick for tick in ticks if low <= tick <= high]
    axes.set_ylim(low, high)
    axes.set_yticks(ticks, [f"{tick:g}" for tick in ticks])
    axes.set_yticks([], minor=True)


def _labels(axes: Axes, ends: list[tuple[float, float, str]], looks: Mapping[str, style.ArmLook]) -> None:
    """Name each line right of the plot, at its end, moved apart where ends are close; on a phone below."""
    if style.is_narrow():
        style.legend_below(axes, axes.get_lines(), [looks[arm].label for _, _, arm in ends])
        return
    low, high = (float(np.log(value)) for value in axes.get_ylim())
    order = sorted(ends, key=lambda end: end[1])
    heights = apart([(float(np.log(y)) - low) / (high - low) for _, y, _ in order], 0.1)
    for (_, _, arm), height in zip(order, heights, strict=True):
        look = looks[arm]
        sample = {**look.marks(5), "linestyle": look.line, "color": look.colour, "linewidth": 1.8}
        axes.plot(
            [1.01, 1.05, 1.09], [height] * 3, transform=axes.transAxes, clip_on=False, markevery=[1], **sample
        )
        axes.text(
            1.11, height, look.label, transform=axes.transAxes, va="center", fontsize=10, color=style.INK
        )


def apart(heights: Sequence[float], gap: float) -> list[float]:
    """Move ascending heights at least `gap` apart, groups that touch staying around their middle."""
    groups: list[list[float]] = []
    for height in heights:
        groups.append([height])
        while len(groups) > 1 and _bottom(groups[-1], gap) - _top(groups[-2], gap) < gap:
            groups[-2:] = [groups[-2] + groups[-1]]
    return [_bottom(group, gap) + gap * place for group in groups for place in range(len(group))]


def _bottom(group: list[float], gap: float) -> float:
    return sum(group) / len(group) - gap * (len(group) - 1) / 2


def _top(group: list[float], gap: float) -> float:
    return _bottom(group, gap) + gap * (len(group) - 1)


def _finding(
    data: pd.DataFrame, looks: Mapping[str, style.ArmLook], words: Mapping[str, str], workloads: Sequence[str]
) -> str:
    parts = []
    for workload in workloads:
        arms = []
        for arm, look in looks.items():
            rows = data[(data["workload"] == workload) & (data["arm"] == arm)]
            if len(rows):
                median, last = rows.iloc[0], rows.iloc[-1]
                last_of = f"p{100 * last['quantile']:.4g}"
                arms.append(
                    f"{look.label} {median['lat_ms']:.2f} ms at p50, {last['lat_ms']:.2f} ms at {last_of}"
                )
        parts.append(f"{words.get(workload, workload)}: {'; '.join(arms)}.")
    return " ".join(parts)
