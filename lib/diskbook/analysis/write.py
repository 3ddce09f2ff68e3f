"""Writing a run's analysis: comparisons.csv and the exported figures."""

from __future__ import annotations

import importlib
from pathlib import Path

from diskbook import figures
from diskbook.analysis.run import Analysis
from diskbook.base.files import write_atomic
from diskbook.figures import Picture
from diskbook.tables import schema

MODULES = {
    "3-analyse-disk-options": "diskbook.analysis.disk_options",
    "3-analyse-shared-zrs": "diskbook.analysis.shared_zrs",
}
"""Modules of analyses with figures of their own, by notebook."""


def results(a: Analysis) -> list[Path]:
    """Write comparisons.csv and the exported figures into the run folder; return their paths."""
    path = a.run.folder / "comparisons.csv"
    checked = schema.validate(schema.COMPARISONS, a.comparisons)
    write_atomic(path, checked.to_csv(index=False, float_format="%.10g"))
    return [path, *export_figures(a, a.run.folder / "figures")]


def export_figures(a: Analysis, target: Path) -> list[Path]:
    """Write all figures into a folder: SVG, PNG at twice the size, and words; return their paths."""
    return [path for picture in pictures(a) for path in figures.export(picture, target)]


def pictures(a: Analysis) -> tuple[Picture, ...]:
    """Draw the figures of a run's analysis, in the order of its notebook."""
    module = MODULES.get(a.scenario.analysis_notebook)
    if module is not None:
        own: tuple[Picture, ...] = importlib.import_module(module).pictures(a)
        return own
    return (a.ratios, a.all_trials, a.percentile_plot, a.iops_and_caps)
