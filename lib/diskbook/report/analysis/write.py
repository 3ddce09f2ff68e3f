"""Writing a run's analysis: comparisons.csv, protocol.csv and the exported figures."""

from collections.abc import Sequence
from pathlib import Path

from diskbook.design import schema
from diskbook.facts import paths
from diskbook.facts.errors import unknown
from diskbook.facts.files import write_atomic
from diskbook.facts.table_writers import csv_text
from diskbook.report import figures
from diskbook.report.analysis import protocol
from diskbook.report.analysis.run import Analysis
from diskbook.report.figures import USUAL, Look, Picture
from diskbook.results.run import HEADLINE_FILE, Run


def results(a: Analysis) -> list[Path]:
    """Write comparisons.csv, protocol.csv and the figures into the run folder; return their paths."""
    return [*answers(a), *export_figures(a, a.run.folder / "figures")]


def answers(a: Analysis) -> list[Path]:
    """Write comparisons.csv, protocol.csv and the headline into the run folder; return their paths."""
    path = a.run.folder / "comparisons.csv"
    checked = schema.validate(schema.COMPARISONS, a.comparisons)
    write_atomic(path, csv_text(checked))
    write_atomic(a.run.folder / HEADLINE_FILE, f"{a.headline}\n")
    return [path, protocol.write(a)]


def export_figures(
    a: Analysis, target: Path, look: Look = USUAL, only: Sequence[str] = (), *, force: bool = True
) -> list[Path]:
    """Write figures into a folder, with words, numbers and snippets (`figures.export`); return their paths.

    - `target`: the folder; it is made.
    - `look`: width and theme.
    - `only`: names of the figures wanted; all by default.
    - `force`: write over figures of another run.

    Raises UsageError when there is no figure of such a name, or figures of another run are there and are to
    stay.
    """
    drawn = {picture.slug: picture for picture in figures_of(a)}
    for name in only:
        if name not in drawn:
            raise unknown("figure", name, drawn)
    chosen = [picture for name, picture in drawn.items() if not only or name in only]
    if not force:
        figures.refuse_others(chosen, target, look)
    return figures.export_all(chosen, target, look)


def folder_of_figures(run: Run) -> Path:
    """Name the folder of a run's figures: figures/<run>, of a committed sample figures/<scenario>."""
    scenario = run.scenario.name
    return paths.FIGURES / (scenario if run.name == f"sample-{scenario}" else run.name)


def figures_of(a: Analysis) -> tuple[Picture, ...]:
    """Draw the figures of a run's analysis, in the order of its notebook.

    They are those that its module draws in `pictures(a)`, where it has any.
    """
    draw = getattr(a.module, "pictures", None)
    pictures: tuple[Picture, ...] = draw(a) if callable(draw) else ()
    if pictures:
        return pictures
    curve = (a.load_curve,) if a.load_curve else ()
    return (a.ratios, a.all_trials, a.percentile_plot, *curve)
