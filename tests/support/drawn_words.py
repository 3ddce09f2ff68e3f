"""Words in figures and beside them: where they are drawn, and whether they count as people do."""

from __future__ import annotations

import re
from itertools import pairwise

import pytest
from matplotlib.figure import Figure
from matplotlib.text import Text

from diskbook.report.figures import Picture, style


def near_the_edge(figure: Figure, pixels: int, least_px: float = 4.0) -> list[str]:
    """Texts that have less room than that to an edge of the picture, as they are drawn."""
    texts: list[Text] = []
    draw = Text.draw

    def noted(text: Text, *args: object, **kwargs: object) -> None:
        texts.append(text)
        draw(text, *args, **kwargs)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Text, "draw", noted)
        figure.draw_without_rendering()
    room = least_px * figure.dpi / style.px_per_in(pixels)
    width, height = figure.bbox.size
    return [
        text.get_text()
        for text in texts
        if text.get_visible() and text.get_text().strip()
        for box in [text.get_window_extent()]
        if min(box.x0, box.y0, width - box.x1, height - box.y1) < room
    ]


def colliding(picture: Picture) -> list[str]:
    """Names of rows that reach into the row above."""
    found = []
    for axes in picture.figure.axes:
        boxes = [(label.get_text(), label.get_window_extent()) for label in axes.get_yticklabels()]
        boxes.sort(key=lambda pair: pair[1].y0)
        found += [text for (_, low), (text, high) in pairwise(boxes) if high.y0 < low.y1 - 1]
    return found


THINGS = (
    "article|arm|block|cell|comparison|curve|disk|figure|interval|kind|machine|panel|point|ratio|replicate|run"
    "|trial"
)
UNGRAMMATICAL = re.compile(
    rf"""(?<![\d.,])1\ (?:[a-z]+\ )?(?:{THINGS})s\b  # 1 cells
    | (?<![\d.,])(?!1\ )\d+(?:,\d{3})*\ (?:emulated\ )?(?:{THINGS})\b(?!\ size)  # 2 cell
    | (?<![\d.,])(\d[\d,]*(?:\.\d+)?)\ to\ \1(?![\d.,]*\d)  # 0.37 to 0.37
    | (?<![\d.,])0\ of\ 0\b""",
    re.VERBOSE,
)


def odd(picture: Picture) -> list[str]:
    """What is wrong with the words beside a figure: of grammar, and of the length of its caption."""
    words = (picture.title, picture.caption, picture.alt, picture.description)
    found = [match[0] for text in words for match in UNGRAMMATICAL.finditer(text)]
    if len(picture.caption) > 240 or len(re.findall(r"[.!?](?: |$)", picture.caption)) > 2:
        found.append(picture.caption)
    return [*found, picture.description] if picture.description == picture.caption else found
