"""Text fitted into the room that there is: measured as it is drawn, broken at blanks."""

from __future__ import annotations

import functools
import textwrap

from matplotlib.font_manager import FontProperties
from matplotlib.textpath import text_to_path

FAMILY = "DejaVu Sans"


@functools.lru_cache(maxsize=4096)
def width_pt(line: str, size: float = 10.0, weight: str | int = "normal") -> float:
    """Measure a line of text, in points."""
    font = FontProperties(family=FAMILY, size=size, weight=weight)
    return float(text_to_path.get_text_width_height_descent(line, font, ismath=False)[0])


def fitted(text: str, room_pt: float, size: float = 10.0, weight: str | int = "normal") -> str:
    """Break lines that are wider than the room, at blanks, and words that are wider by themselves."""
    return "\n".join(part for line in text.split("\n") for part in _parts(line, room_pt, size, weight))


def _parts(line: str, room_pt: float, size: float, weight: str | int) -> list[str]:
    wide = width_pt(line, size, weight)
    if wide <= room_pt:
        return [line]
    # Lines of so many letters on average; more of them where these are narrow ones.
    for characters in range(int(1.3 * len(line) * room_pt / wide) + 1, 0, -1):
        parts = textwrap.wrap(line, characters) or [""]
        if all(width_pt(part, size, weight) <= room_pt for part in parts):
            return parts
    return [line]


def cut(line: str, room_pt: float, size: float = 10.0, weight: str | int = "normal") -> str:
    """Cut a line that must stay one where the room ends; an ellipsis says so."""
    if width_pt(line, size, weight) <= room_pt:
        return line
    shorter = (f"{line[:length].rstrip()}…" for length in range(len(line) - 1, 0, -1))
    return next((text for text in shorter if width_pt(text, size, weight) <= room_pt), "…")
