"""Published figures as shares of the limit they run against: what sits on a limit, and what is below."""

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from diskbook.design.vocabulary import Label, Provenance
from diskbook.facts.quantities import many
from diskbook.report.figures import style
from diskbook.stats import limits

CAPPED = style.ArmLook("on a limit", style.VERMILLION, "s", "none")
BELOW = style.ArmLook("below every limit", style.BLUE, "o", "none", filled=False)
SOURCE = style.RunSource(
    "", "Figures that the articles print; their sources: docs/reference/articles.md of diskbook"
)
SPREAD = 0.56
"""Height that the figures of an article take, of the distance between articles."""


@style.redrawable
def shares(assessed: pd.DataFrame) -> style.Picture:
    """Draw each published figure at its share of the limit it sits on, or of the nearest one.

    - `assessed`: from `diskbook.report.analysis.published.figures.assess`; figures without a known share are
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
        _frame(axes, articles, float(data["share"].max()) if len(data) else 1.0)
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
    heights = place + np.linspace(-SPREAD / 2, SPREAD / 2, len(rows)) if len(rows) > 1 else np.array([place])
    for look, chosen in ((CAPPED, rows["on_cap"]), (BELOW, ~rows["on_cap"])):
        keep = chosen.to_numpy(bool)
        axes.plot(rows["share"].to_numpy()[keep], heights[keep], **look.marks(5))


def _frame(axes: Axes, articles: list[str], highest: float) -> None:
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
