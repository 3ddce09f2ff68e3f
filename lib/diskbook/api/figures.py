"""Figures of a run by name, as a notebook shows, draws and saves them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from diskbook.facts.errors import UsageError, unknown
from diskbook.facts.files import write_atomic
from diskbook.report import figures
from diskbook.report.analysis import write
from diskbook.report.analysis.run import Analysis
from diskbook.report.figures import Picture

if TYPE_CHECKING:
    from matplotlib.axes import Axes

WIDTH_PX = 720


class FigureView:
    """One figure of a run: it shows itself in a notebook."""

    def __init__(self, picture: Picture) -> None:
        self._picture = picture

    @property
    def title(self) -> str:
        """What it shows, as a sentence."""
        return self._picture.title

    @property
    def caption(self) -> str:
        """One or two sentences to stand below it."""
        return self._picture.caption

    def draw(self, ax: Axes | None = None) -> Axes:
        """Draw it, as a picture, into axes of another figure; by default into new ones."""
        import io

        import matplotlib.image as images
        import matplotlib.pyplot as plt

        axes: Axes = plt.subplots(figsize=(9, 6), layout="constrained")[1] if ax is None else ax
        axes.imshow(images.imread(io.BytesIO(figures.as_png(self._picture))))
        axes.set_axis_off()
        return axes

    def save(self, path: str | Path, width: int = WIDTH_PX) -> Path:
        """Write it as .svg or .png, for a width in pixels.

        Raises
        ------
        UsageError
            When the name ends otherwise.
        """
        target, picture = Path(path), self._picture.at(width)
        if target.suffix not in (".svg", ".png"):
            raise UsageError(f"{target}: a figure is saved as .svg or .png; name it so")
        write_atomic(target, figures.as_svg(picture) if target.suffix == ".svg" else figures.as_png(picture))
        return target

    def __repr__(self) -> str:
        return f"<figure {self._picture.slug}: {self.title}>"

    def _repr_html_(self) -> str:
        return figures.html(self._picture)


class RunFigures(Mapping[str, FigureView]):
    """The figures of a run by name, drawn when one is first asked for."""

    def __init__(self, a: Analysis, left_out: str) -> None:
        self._a, self._left_out = a, left_out

    @cached_property
    def _views(self) -> dict[str, FigureView]:
        views = {}
        for picture in write.figures_of(self._a):
            caption = picture.caption
            if self._left_out:
                caption = f"{caption} Exploratory, {self._left_out}."
            views[picture.slug] = FigureView(replace(picture, caption=caption))
        return views

    def __getitem__(self, name: str) -> FigureView:
        if name not in self._views:
            raise unknown("figure", name, self._views, f"run {self._a.run.name}")
        return self._views[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._views)

    def __len__(self) -> int:
        return len(self._views)

    def __repr__(self) -> str:
        return f"<figures of run {self._a.run.name}: {', '.join(self._views)}>"
