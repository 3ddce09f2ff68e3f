"""Themes of figures: what each colour becomes on a dark page, and on paper.

Figures are drawn in the colours of a light page. `light` keeps them, `dark` turns them over, `print` is for
journals: black letters on white, and colours whose greys differ by more than 3:1 where two arms are compared,
since paper is often printed or copied without colour. `auto` is light, and dark where a reader's page is.
"""

from __future__ import annotations

import colorsys
from typing import Literal, get_args

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


def colour(light: str, theme: Theme) -> str:
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
