"""Writing a run's analysis: comparisons.csv, protocol.csv and the exported figures."""

from __future__ import annotations

from pathlib import Path

from diskbook import figures
from diskbook.analysis import protocol
from diskbook.analysis.run import Analysis
from diskbook.base.files import write_atomic
from diskbook.figures import Picture
from diskbook.store.run import HEADLINE_FILE
from diskbook.tables import schema


def results(a: Analysis) -> list[Path]:
    """Write comparisons.csv, protocol.csv and the figures into the run folder; return their paths."""
    path = a.run.folder / "comparisons.csv"
    checked = schema.validate(schema.COMPARISONS, a.comparisons)
    write_atomic(path, checked.to_csv(index=False, float_format="%.10g"))
    say = getattr(a.module, "headline", None)
    if callable(say):
        write_atomic(a.run.folder / HEADLINE_FILE, f"{say(a)}\n")
    return [path, protocol.write(a), *export_figures(a, a.run.folder / "figures")]


def export_figures(a: Analysis, target: Path) -> list[Path]:
    """Write all figures into a folder: SVG, PNG at twice the size, and words; return their paths."""
    return [path for picture in figures_of(a) for path in figures.export(picture, target)]


def figures_of(a: Analysis) -> tuple[Picture, ...]:
    """Draw the figures of a run's analysis, in the order of its notebook.

    They are those that its module draws in `pictures(a)`, where it has one.
    """
    draw = getattr(a.module, "pictures", None)
    if callable(draw):
        pictures: tuple[Picture, ...] = draw(a)
        return pictures
    curve = (a.load_curve,) if a.load_curve else ()
    return (a.ratios, a.all_trials, a.percentile_plot, a.iops_and_caps, *curve)
