"""Figures as SVG and PNG, in a theme's colours: the same bytes from the same data, with letters as text."""

import colorsys
import io
import re
from collections.abc import Mapping
from typing import Any, Literal, get_args

import matplotlib as mpl
import numpy as np
from matplotlib.backend_bases import GraphicsContextBase
from matplotlib.backends.backend_agg import RendererAgg
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.colors import to_hex, to_rgba
from matplotlib.figure import Figure
from PIL import Image
from PIL.PngImagePlugin import PngInfo

from diskbook.report.figures.style import RC

Theme = Literal["auto", "light", "dark", "print"]
THEMES: tuple[Theme, ...] = get_args(Theme)

# Contrast on the dark ground (#15191e) is 4.5:1 or more for all that lines and letters have.
_DARK = {
    "#ffffff": "#15191e",
    "#222222": "#e8e8e8",
    "#6b6b6b": "#8c8c8c",
    "#d9d9d9": "#3c434b",
    "#0072b2": "#5ab4e8",
    "#d55e00": "#ff9a5c",
    "#009e73": "#3fcda2",
    "#882870": "#ec9fcb",
    "#7a5c00": "#f2dc5a",
    "#fefefe": "#101418",
}
_PRINT = {"#222222": "#000000", "#6b6b6b": "#404040", "#0072b2": "#00305a"}
_GROUND, _PAPER = 0.10, 0.92
"""Lightness that white and black become on a dark page."""


def themed_colour(light: str, theme: Theme) -> str:
    """Turn a colour, as #rrggbb, into that of a theme; one without a partner is turned over in lightness."""
    light = light.lower()
    if theme == "print":
        return _PRINT.get(light, light)
    if theme == "dark":
        return _DARK.get(light) or _turned_over(light)
    return light


def _turned_over(light: str) -> str:
    red, green, blue = (int(light[place : place + 2], 16) / 255 for place in (1, 3, 5))
    hue, lightness, saturation = colorsys.rgb_to_hls(red, green, blue)
    dark = colorsys.hls_to_rgb(hue, _PAPER - lightness * (_PAPER - _GROUND), 0.8 * saturation)
    return "#" + "".join(f"{round(255 * part):02x}" for part in dark)


_FONT, _FONTS = "'DejaVu Sans'", "'DejaVu Sans', Verdana, Arial, sans-serif"
_CLIP = re.compile(r'<clipPath id="([^"]+)"')
_CLIP_USED = re.compile(r'(<clipPath id="|url\(#)([^")]+)')
_STYLE = re.compile(r' style="([^"]*)"')
_PAINT = re.compile(r"(?:^|;) *(fill|stroke): (#[0-9a-f]{6}|none)(?=;|$)")


def render_svg(figure: Figure, metadata: Mapping[str, str | None], width_px: int, theme: Theme) -> bytes:
    """Render as SVG of a width in pixels.

    - `figure`: what to render; its layout is as it stands.
    - `metadata`: title, description and source.
    - `width_px`: width on a page; the figure was drawn for it.
    - `theme`: colours; `auto` has those of both pages in it, as variables, which follow the reader's page.
    """
    buffer = io.BytesIO()
    # Identifiers are hashed from the salt, which `RC` fixes.
    with mpl.rc_context(RC):
        FigureCanvasSVG(figure).print_svg(buffer, metadata={"Date": None, **metadata})
    drawing = _clips_by_number(buffer.getvalue().decode("utf-8")).replace(_FONT, _FONTS)
    return _in_theme(_sized(drawing, width_px), theme).encode()


def _clips_by_number(svg: str) -> str:
    """Name clips by their order: matplotlib hashes unrounded numbers, whose last digits the layout varies."""
    names = {name: f"clip{number}" for number, name in enumerate(_CLIP.findall(svg), 1)}
    return _CLIP_USED.sub(lambda use: f"{use[1]}{names.get(use[2], use[2])}", svg)


def _sized(svg: str, width_px: int) -> str:
    """Give width and height in pixels of a page in place of points."""
    size = re.search(r'width="([\d.]+)pt" height="([\d.]+)pt"', svg)
    if size is None:
        return svg
    height = width_px * float(size[2]) / float(size[1])
    return svg.replace(size[0], f'width="{width_px}" height="{height:.0f}"', 1)


def _in_theme(svg: str, theme: Theme) -> str:
    """Paint in a theme: as attributes, which programs without style sheets know, too."""
    painted = _STYLE.sub(lambda style: _attributes(style[1], theme), svg)
    return painted if theme != "auto" else _with_variables(painted)


def _attributes(style: str, theme: Theme) -> str:
    paints = {
        name: value if value == "none" else themed_colour(value, theme)
        for name, value in _PAINT.findall(style)
    }
    rest = re.sub("([:;]) +", r"\1", _PAINT.sub("", style).strip("; "))
    attributes = "".join(f' {name}="{value}"' for name, value in paints.items())
    return attributes + (f' style="{rest}"' if rest else "")


def _with_variables(svg: str) -> str:
    """Add a style sheet: a variable a colour, which is another one where the reader's page is dark."""
    colours = sorted(set(re.findall(r' (?:fill|stroke)="(#[0-9a-f]{6})"', svg)))
    both = [(f"--c{light[1:]}", light, themed_colour(light, "dark")) for light in colours]
    light = ";".join(f"{name}:{value}" for name, value, _ in both)
    dark = ";".join(f"{name}:{value}" for name, _, value in both)
    rules = "".join(
        f'[{paint}="{value}"]{{{paint}:var({name})}}'
        for name, value, _ in both
        for paint in ("fill", "stroke")
        if f' {paint}="{value}"' in svg
    )
    sheet = f"svg{{{light}}}@media(prefers-color-scheme:dark){{svg{{{dark}}}}}{rules}"
    return svg.replace("</style>", f"{sheet}</style>", 1)


def render_png(figure: Figure, metadata: Mapping[str, str], dpi: int, theme: Theme) -> bytes:
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
    return to_rgba(themed_colour(to_hex(rgba), theme), rgba[3])


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
