"""A burst that ends: the rate of trials second by second, with the limits before and after."""

from collections.abc import Mapping

import matplotlib as mpl
import pandas as pd
from matplotlib.axes import Axes

from diskbook.design.series import diagnose
from diskbook.design.vocabulary import Provenance
from diskbook.facts.quantities import many
from diskbook.report.figures import style
from diskbook.stats import limits


@style.redrawable
def credit(
    trials: pd.DataFrame,
    series: pd.DataFrame,
    looks: Mapping[str, style.ArmLook],
    workload: str,
    scale: float,
    run: str,
) -> style.Picture:
    """Draw the rate within the trials of a workload whose disk bursts on credit.

    - `scale`: share of Azure's burst bucket that was played; 1 is Azure's own.
    """
    totals = limits.trial_totals(trials[trials["workload"] == workload])
    kept = whole_intervals(series[series["trial"].isin(totals["trial"])])
    data = kept.groupby(["trial", "second"])["iops"].sum().reset_index()
    data = data.merge(totals[["trial", "arm"]], on="trial")
    fell = diagnose(kept)
    fell = fell[fell["fell_at_s"].notna()]
    figure, (axes,) = style.new_figure(3.9)
    provenance = "+".join(sorted(set(totals["provenance"])))
    with mpl.rc_context(style.RC):
        for trial, part in data.groupby("trial"):
            look = looks[str(part["arm"].iloc[0])]
            axes.plot(part["second"], part["iops"], color=look.colour, linewidth=1.2, label=str(trial))
        _limits(axes, totals)
        for second in fell["fell_at_s"]:
            axes.axvline(second, color=style.INK, linewidth=1.2)
        _frame(axes, data, totals)
    finding = _finding(fell)
    arms = ", ".join(looks[arm].label for arm in dict.fromkeys(totals["arm"]))
    title = f"{arms}: {finding[0].lower() if finding else 'no trial'}{finding[1:]}"
    note = _note(scale)
    style.decorate(figure, title, note, provenance, run)
    emulated = "Emulated, not measured on Azure. " if Provenance.EMULATED in provenance else ""
    caption = f"{emulated}{arms}: {finding}. {note}"
    number = many(len(totals), "trial")
    alt = f"Line of {'emulated ' if emulated else ''}IOPS over the seconds of {number}: {finding}."
    short = style.brief(provenance, f"{arms}: {finding}.")
    return style.Picture("burst-credit", title, short, alt, figure, data, provenance, run, caption)


def whole_intervals(series: pd.DataFrame) -> pd.DataFrame:
    """Leave out the last interval of each trial: its end cuts it short, which would be drawn as a fall."""
    return series[series["second"] < series.groupby("trial")["second"].transform("max")]


def _frame(axes: Axes, data: pd.DataFrame, totals: pd.DataFrame) -> None:
    """Scale and label the axes: rates from 0, a little above the highest limit or rate."""
    axes.set_xlabel("Seconds since the trial began")
    axes.set_ylabel("IOPS")
    rate = float(data["iops"].quantile(0.98)) if len(data) else 1.0
    axes.set_ylim(0, 1.18 * max(rate, _highest(totals)))
    axes.set_xlim(0, float(data["second"].max()) if len(data) else 1.0)
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    axes.grid(axis="y", color=style.FAINT, linewidth=0.7)


def _limits(axes: Axes, totals: pd.DataFrame) -> None:
    """Draw base and burst of the disk as labelled lines."""
    lines = (("cap_disk_burst_iops", "burst limit", 8), ("cap_disk_iops", "base limit", -9))
    for column, name, above in lines:
        value = totals[column].median() if column in totals else float("nan")
        if value > 0:
            axes.axhline(value, color=style.GREY, linestyle=":", linewidth=1.3)
            axes.annotate(
                f"{name} {value:,.0f}",
                (1.0, value),
                xycoords=("axes fraction", "data"),
                xytext=(-4, above),
                textcoords="offset points",
                ha="right",
                va="center",
                fontsize=10,
                color=style.INK,
                bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.8},
            )


def _highest(totals: pd.DataFrame) -> float:
    known = [totals[name].max() for name in ("cap_disk_burst_iops", "cap_disk_iops") if name in totals]
    return max((float(value) for value in known if pd.notna(value)), default=1.0)


def _finding(fell: pd.DataFrame) -> str:
    if fell.empty:
        return "The credit did not run out in any trial"
    first = fell.sort_values("fell_at_s").iloc[0]
    return (
        f"The credit runs out after {first['fell_at_s']:.1f} s: "
        f"{first['rate_before']:,.0f} IOPS before, {first['rate_after']:,.0f} after"
    )


def _note(scale: float) -> str:
    if scale == 1.0:
        return "Burst bucket as Azure documents it: 30 minutes at the burst rate."
    return (
        f"The emulator's bucket is {scale:g} of Azure's (1 : {1 / scale:,.0f}), so the burst lasts "
        f"{1800 * scale:.1f} s in place of 30 minutes."
    )
