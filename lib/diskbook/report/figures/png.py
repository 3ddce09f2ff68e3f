"""Figures as PNG, in a theme's colours."""

from __future__ import annotations

import io
from collections.abc import Mapping
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.backend_bases import GraphicsContextBase
from matplotlib.backends.backend_agg import RendererAgg
from matplotlib.colors import to_hex, to_rgba
from matplotlib.figure import Figure
from PIL import Image
from PIL.PngImagePlugin import PngInfo

from diskbook.report.figures import themes
from diskbook.report.figures.style import RC
from diskbook.report.figures.themes import Theme


def render(figure: Figure, metadata: Mapping[str, str], dpi: int, theme: Theme) -> bytes:
    """Render as PNG with so many pixels to the inch; metadata are written as text."""
    before = figure.dpi
    with mpl.rc_context(RC):
        figure.dpi = dpi
        try:
            width, height = (round(dpi * float(size)) for size in figure.get_size_inches())
            renderer = _Renderer(width, height, dpi, theme)
            figure.draw(renderer)
        finally:
            figure.dpi = before
    words = PngInfo()
    for name, value in metadata.items():
        words.add_text(name, value)
    buffer = io.BytesIO()
    # The ground is opaque everywhere.
    image = Image.fromarray(np.asarray(renderer.buffer_rgba())).convert("RGB")
    image.save(buffer, "png", dpi=(dpi, dpi), pnginfo=words)
    return buffer.getvalue()


def _painted(colour: Any, theme: Theme) -> tuple[float, float, float, float]:
    """A colour of a light page in a theme; what is drawn with transparency keeps it."""
    rgba = to_rgba(colour)
    return to_rgba(themes.colour(to_hex(rgba), theme), rgba[3])


class _Context(GraphicsContextBase):
    """What lines, letters and hatches are painted with, turned into a theme."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme

    def set_foreground(self, fg: Any, isRGBA: bool = False) -> None:
        # Setting an alpha sets the same colour again, which is in its theme by then.
        super().set_foreground(fg if fg is self.get_rgb() else _painted(fg, self._theme), isRGBA=True)

    def set_hatch_color(self, hatch_color: Any) -> None:
        super().set_hatch_color(_painted(hatch_color, self._theme))


class _Renderer(RendererAgg):
    """Matplotlib's own, with every colour turned into a theme on its way."""

    def __init__(self, width: int, height: int, dpi: int, theme: Theme) -> None:
        super().__init__(width, height, dpi)
        self._theme = theme
        # The parent has these as attributes of the instance, which would hide the methods below.
        for name in ("draw_markers", "draw_path_collection"):
            vars(self).pop(name, None)

    def new_gc(self) -> GraphicsContextBase:
        return _Context(self._theme)

    def draw_path(self, gc: Any, path: Any, transform: Any, rgbFace: Any = None) -> None:
        super().draw_path(gc, path, transform, self._face(rgbFace))

    def draw_markers(self, gc: Any, *places: Any, rgbFace: Any = None) -> None:
        # Marker and its transform, places and theirs; then the face, by place or by name.
        face = places[4] if len(places) > 4 else rgbFace
        self._renderer.draw_markers(gc, *places[:4], self._face(face))

    def draw_path_collection(self, gc: Any, *what: Any, **options: Any) -> None:
        # Faces and edges are the sixth and seventh.
        faces, edges = (self._faces(colours) for colours in what[5:7])
        self._renderer.draw_path_collection(gc, *what[:5], faces, edges, *what[7:], **options)

    def _face(self, colour: Any) -> Any:
        return None if colour is None else _painted(colour, self._theme)

    def _faces(self, colours: Any) -> Any:
        return np.array([_painted(colour, self._theme) for colour in colours]).reshape(-1, 4)
