"""Figures as SVG: the same bytes from the same data, in a theme's colours, with letters as text."""

from __future__ import annotations

import io
import re
from collections.abc import Mapping

import matplotlib as mpl
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure

from diskbook.report.figures import themes
from diskbook.report.figures.style import RC
from diskbook.report.figures.themes import Theme

_FONT, _FONTS = "'DejaVu Sans'", "'DejaVu Sans', Verdana, Arial, sans-serif"
_CLIP = re.compile(r'<clipPath id="([^"]+)"')
_CLIP_USED = re.compile(r'(<clipPath id="|url\(#)([^")]+)')
_STYLE = re.compile(r' style="([^"]*)"')
_PAINT = re.compile(r"(?:^|;) *(fill|stroke): (#[0-9a-f]{6}|none)(?=;|$)")


def render(figure: Figure, metadata: Mapping[str, str | None], width_px: int, theme: Theme) -> bytes:
    """Render as SVG of a width in pixels.

    Parameters
    ----------
    figure
        What to render; its layout is as it stands.
    metadata
        Title, description and source.
    width_px
        Width on a page; the figure was drawn for it.
    theme
        Colours; `auto` has those of both pages in it, as variables, which follow the reader's page.
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
        name: value if value == "none" else themes.colour(value, theme)
        for name, value in _PAINT.findall(style)
    }
    rest = re.sub("([:;]) +", r"\1", _PAINT.sub("", style).strip("; "))
    attributes = "".join(f' {name}="{value}"' for name, value in paints.items())
    return attributes + (f' style="{rest}"' if rest else "")


def _with_variables(svg: str) -> str:
    """Add a style sheet: a variable a colour, which is another one where the reader's page is dark."""
    colours = sorted(set(re.findall(r' (?:fill|stroke)="(#[0-9a-f]{6})"', svg)))
    both = [(f"--c{light[1:]}", light, themes.colour(light, "dark")) for light in colours]
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
