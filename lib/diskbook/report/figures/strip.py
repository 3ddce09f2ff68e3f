"""Dot strip: every trial by arm, so that a reader sees the data behind each ratio."""

from collections.abc import Mapping, Sequence

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from diskbook.design.schema import EARLY
from diskbook.design.vocabulary import Label, Provenance
from diskbook.facts.quantities import many
from diskbook.report.figures import scales, style
from diskbook.stats import limits

SPREAD = 0.72
"""Height that the replicates of an arm take, of the distance between arms."""
HEAD_IN, PANEL_IN, LANE_IN, NAME_IN = 1.1, 0.75, 0.13, 0.2
"""Heights of title and note, of what a panel has besides its rows, of a replicate, and between arms."""


@style.redrawable
def strip(
    trials: pd.DataFrame,
    looks: Mapping[str, style.ArmLook],
    words: Mapping[str, str],
    workloads: Sequence[str],
    title: str,
    run: str,
) -> style.Picture:
    """Draw the mean total latency of every finished trial, a panel a workload, a line a replicate."""
    totals = limits.trial_totals(trials)
    data = totals[totals["workload"].isin(workloads)]
    data = data[["workload", "arm", "replicate", "block", "trial", "lat_mean_ms"]].reset_index(drop=True)
    arms = [arm for arm in looks if arm in set(data["arm"])]
    figure, panels = _strips(data, workloads)
    with mpl.rc_context(style.RC):
        for axes, workload in zip(panels, workloads, strict=True):
            _panel(axes, data[data["workload"] == workload], arms, looks)
            axes.set_xlabel("Mean latency of a trial, ms")
            axes.set_title(words.get(workload, workload), loc="left", fontsize=11)
        scales.equal_x(panels)
    note = _note(data, trials)
    provenance = "+".join(sorted(set(trials["provenance"])))
    style.decorate(figure, title, note, provenance, run)
    emulated = "Emulated, not measured on Azure. " if Provenance.EMULATED in provenance else ""
    caption = f"{emulated}{_medians(data, looks, words, workloads)} {note}"
    number = many(len(workloads), "panel")
    made = "emulated " if Provenance.EMULATED in provenance else ""
    alt = f"Mean latency of {many(len(data), f'{made}trial')} as dots by arm, in {number}. {title}."
    trials_of = many(len(data), "trial")
    words_of = f"Mean total latency of {trials_of} by arm, in {number}; black lines are medians."
    return style.Picture(
        "all-trials", title, style.brief(provenance, words_of), alt, figure, data, provenance, run, caption
    )


def _strips(data: pd.DataFrame, workloads: Sequence[str]) -> tuple[Figure, list[Axes]]:
    """Make a figure, a panel a workload, each as high as its arms and their replicates need."""
    lanes = max(1, data["replicate"].nunique())
    row_in = max(LANE_IN * lanes, LANE_IN + 0.1 * style.is_narrow()) + NAME_IN
    arms = data.groupby("workload")["arm"].nunique()
    heights = [PANEL_IN + row_in * max(1, int(arms.get(name, 1))) for name in workloads] or [PANEL_IN]
    return style.new_figure(HEAD_IN + sum(heights), len(heights), height_ratios=heights)


def _note(data: pd.DataFrame, trials: pd.DataFrame) -> str:
    """Say what a mark is, and how many trials have none."""
    n_blocks = data[["replicate", "block"]].drop_duplicates().shape[0]
    lines = "each grey line a replicate, " * (data["replicate"].nunique() > 1)
    absent = trials.loc[~trials["status"].isin(["ok", EARLY]), "trial"].nunique()
    note = f"Each mark is one trial, {lines}{many(n_blocks, 'block')} in all; black: median."
    if not absent:
        return note
    return f"{note} Not drawn: {many(absent, 'trial')} that failed or whose block was not finished."


def _panel(axes: Axes, data: pd.DataFrame, arms: list[str], looks: Mapping[str, style.ArmLook]) -> None:
    """Draw the latency of each trial by arm, fastest first, a line a replicate, with the arm's median."""
    medians = data.groupby("arm")["lat_mean_ms"].median().sort_values()
    arms = [str(arm) for arm in medians.index] or arms
    replicates = sorted(set(data["replicate"]))
    lanes = np.linspace(-SPREAD / 2, SPREAD / 2, 2 * len(replicates) + 1)[1::2]
    for place, arm in enumerate(arms):
        rows = data[data["arm"] == arm]
        for lane, replicate in zip(place + lanes, replicates, strict=True):
            trials = rows.loc[rows["replicate"] == replicate, "lat_mean_ms"]
            if len(trials):
                axes.plot(
                    [trials.min(), trials.max()], [lane, lane], color=style.GREY, linewidth=0.9, zorder=1
                )
            axes.plot(trials, [lane] * len(trials), **looks[arm].marks(4.5))
        if len(rows):
            scales.upright(axes, [medians[arm]], [place - 0.42], [place + 0.42])
    axes.set_yticks(range(len(arms)), [looks[arm].label for arm in arms])
    axes.tick_params(axis="y", length=0)
    axes.set_ylim(len(arms) - 0.4, -0.6)
    axes.set_xlim(0, 1.06 * (data["lat_mean_ms"].max() if len(data) else 1.0))
    axes.grid(axis="x", color=style.FAINT, linewidth=0.7)
    axes.set_axisbelow(True)
    axes.spines["left"].set_visible(False)


def _medians(
    data: pd.DataFrame, looks: Mapping[str, style.ArmLook], words: Mapping[str, str], workloads: Sequence[str]
) -> str:
    parts = []
    for workload in workloads:
        medians = data[data["workload"] == workload].groupby("arm")["lat_mean_ms"].median()
        arms = ", ".join(f"{looks[arm].label} {medians[arm]:.2f} ms" for arm in looks if arm in medians)
        parts.append(f"{words.get(workload, workload)}: median {arms}.")
    return " ".join(parts)


UNITS = {"iops": ("iops", "predicted_iops", "IOPS"), "mb_s": ("mb_s", "predicted_mb_s", "MB/s (10^6 bytes)")}


@style.redrawable
def drives(
    trials: pd.DataFrame,
    predictions: pd.DataFrame,
    looks: Mapping[str, style.ArmLook],
    load: tuple[str, str, str, str],
    run: str,
) -> style.Picture:
    """Draw every trial's rate of a workload by arm, and a bar where the lowest limit lies.

    - `predictions`: from `expected.predicted`.
    - `load`: name of the figure, workload, "iops" or "mb_s", and the workload in words.
    """
    slug, workload, kind, words = load
    totals = limits.trial_totals(trials)
    data = totals.loc[totals["workload"] == workload, ["workload", "arm", "trial", "iops", "mb_s"]]
    data = data.merge(predictions[["arm", "workload", "predicted_iops", "predicted_mb_s", "by"]])
    arms = [arm for arm in looks if arm in set(data["arm"])]
    figure, (axes,) = style.new_figure(2.0 + (0.36 if style.is_narrow() else 0.27) * len(arms))
    with mpl.rc_context(style.RC):
        _drives_panel(axes, data, arms, looks, kind)
    note = "Each mark is one trial; black bars: the lowest of all limits in force, or outstanding / latency."
    provenance = "+".join(sorted(set(trials["provenance"])))
    title, finding = _drives_title(data, kind, words), _drives_finding(data, kind, words, looks)
    style.decorate(figure, title, note, provenance, run)
    made = "emulated " * (Provenance.EMULATED in provenance)
    alt = f"Measured {made}rates as dots by arm, and predicted limits as bars. {title}."
    short = style.brief(
        provenance, f"Rates of {many(len(data), 'trial')}, {words}; bars are limits in force."
    )
    description = style.brief(provenance, f"{finding} {note}")
    return style.Picture(
        slug, title, short, alt, figure, data.reset_index(drop=True), provenance, run, description
    )


def _drives_panel(
    axes: Axes, data: pd.DataFrame, arms: list[str], looks: Mapping[str, style.ArmLook], kind: str
) -> None:
    measured, predicted, unit = UNITS[kind]
    for place, arm in enumerate(arms):
        rows = data[data["arm"] == arm]
        jitter = np.linspace(-0.2, 0.2, len(rows)) if len(rows) > 1 else np.zeros(len(rows))
        axes.plot(rows[measured], place + jitter, **looks[arm].marks(4.5))
        limit = rows[predicted].median() if len(rows) else np.nan
        if np.isfinite(limit):
            scales.upright(axes, [limit], [place - 0.42], [place + 0.42])
    axes.set_yticks(range(len(arms)), [looks[arm].label for arm in arms])
    axes.tick_params(axis="y", length=0)
    axes.set_ylim(len(arms) - 0.4, -0.6)
    reach = np.nanmax([*data[measured], *data[predicted], 1.0]) if len(data) else 1.0
    axes.set_xlim(0, 1.06 * float(reach))
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    axes.grid(axis="x", color=style.FAINT, linewidth=0.7)
    axes.set_axisbelow(True)
    axes.spines["left"].set_visible(False)
    axes.set_xlabel(unit)


def _within(data: pd.DataFrame, kind: str) -> tuple[int, int]:
    """How many arms have the rate that was predicted, within 5 %, and of how many one was."""
    measured, predicted, _ = UNITS[kind]
    known = data.groupby("arm")[[measured, predicted]].median().dropna()
    return int(((known[measured] / known[predicted] - 1).abs() <= 0.05).sum()), len(known)


def _drives_title(data: pd.DataFrame, kind: str, words: str) -> str:
    within, known = _within(data, kind)
    return f"{words}: the lowest limit in force sets the rate of {within} of {many(known, 'drive')}"


def _drives_finding(data: pd.DataFrame, kind: str, words: str, looks: Mapping[str, style.ArmLook]) -> str:
    (within, known), medians = _within(data, kind), data.groupby("arm")[UNITS[kind][0]].median()
    if not known:
        return f"{words}: nothing was predicted."
    return (
        f"{words}: most by {looks[str(medians.idxmax())].label} ({medians.max():,.0f}); {within} of "
        f"{many(known, 'arm')} within 5 % of what was predicted."
    )


CAPPED = style.ArmLook("on a limit", style.VERMILLION, "s", "none")
BELOW = style.ArmLook("below every limit", style.BLUE, "o", "none", filled=False)
SOURCE = style.RunSource(
    "", "Figures that the articles print; their sources: docs/reference/articles.md of diskbook"
)
ARTICLE_SPREAD = 0.56
"""Height that the figures of an article take, of the distance between articles."""


@style.redrawable
def shares(assessed: pd.DataFrame) -> style.Picture:
    """Draw each published figure at its share of the limit it sits on, or of the nearest one.

    - `assessed`: from `diskbook.report.analysis.published.assess`; figures without a known share are
      left out, and counted in the note.
    """
    measured = assessed[(assessed["label"] != Label.STATED) & (assessed["tool"] != "quoted")]
    data = measured.loc[measured["share"].notna(), ["article", "metric", "base", "unit", "share", "on_cap"]]
    data = data.reset_index(drop=True)
    articles = list(dict.fromkeys(data["article"]))
    figure, (axes,) = style.new_figure(1.6 + 0.62 * len(articles))
    with mpl.rc_context(style.RC):
        for place, article in enumerate(articles):
            _article(axes, data[data["article"] == article], place)
        _shares_frame(axes, articles, float(data["share"].max()) if len(data) else 1.0)
    on, left = int(data["on_cap"].sum()), len(measured) - len(data)
    title = f"{on} of {len(data)} published figures sit on a limit"
    note = "Each mark is one published figure: rate, or latency by its rate. Limits are nominal."
    if left:
        note += f" Not drawn: {left} whose limit in force is not known."
    style.decorate(figure, title, note, Provenance.PUBLISHED, SOURCE)
    by_article = data.groupby("article", sort=False)["on_cap"].agg(["sum", "size"])
    counts = ", ".join(f"{name} {row['sum']} of {row['size']}" for name, row in by_article.iterrows())
    kind = f"Dot plot of {many(len(data), 'published figure')} as shares of a limit"
    alt = f"{kind}, showing how many sit on it: {counts}"
    shown = f"{many(len(data), 'published figure')} of {many(len(articles), 'article')}"
    caption = style.brief(
        Provenance.PUBLISHED, f"{shown}, each at its share of the limit that it runs against."
    )
    words = f"{title}: {counts}. {note}"
    return style.Picture(
        "published-shares", title, caption, alt, figure, data, Provenance.PUBLISHED, SOURCE, words
    )


def _article(axes: Axes, rows: pd.DataFrame, place: int) -> None:
    """Marks of one article, spread over its height in the order printed."""
    heights = (
        place + np.linspace(-ARTICLE_SPREAD / 2, ARTICLE_SPREAD / 2, len(rows))
        if len(rows) > 1
        else np.array([place])
    )
    for look, chosen in ((CAPPED, rows["on_cap"]), (BELOW, ~rows["on_cap"])):
        keep = chosen.to_numpy(bool)
        axes.plot(rows["share"].to_numpy()[keep], heights[keep], **look.marks(5))


def _shares_frame(axes: Axes, articles: list[str], highest: float) -> None:
    axes.axvspan(
        limits.ON_LIMIT, max(1.0, highest) * 1.03, color=style.FAINT, alpha=0.5, linewidth=0, zorder=0
    )
    axes.axvline(1.0, color=style.INK, linestyle=":", linewidth=1.3, zorder=0)
    axes.annotate(
        "limit", (1.0, 1.0), xycoords=("data", "axes fraction"), ha="center", va="bottom", fontsize=10
    )
    for look, x in ((BELOW, 0.02), (CAPPED, 0.62 if style.is_narrow() else 0.34)):
        axes.plot(x, 1.07, transform=axes.transAxes, clip_on=False, **look.marks(5))
        axes.text(x + 0.02, 1.07, look.label, transform=axes.transAxes, va="center", fontsize=10)
    axes.set_xlim(0, max(1.0, highest) * 1.03)
    axes.set_ylim(len(articles) - 0.5, -0.5)
    axes.set_yticks(range(len(articles)), articles)
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)
    axes.xaxis.set_major_formatter(lambda value, _: f"{100 * value:.0f} %")
    axes.set_xlabel("Share of the limit it sits on, or of the nearest")
