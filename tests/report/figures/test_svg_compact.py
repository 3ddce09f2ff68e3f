"""SVG in fewer bytes: the same letters and marks in the same places; clips named whatever their hash."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from xml.etree import ElementTree as tree

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure
from matplotlib.path import Path
from matplotlib.transforms import Affine2D

from diskbook.report.figures.style import RC
from diskbook.report.figures.svg_compact import _clips, compact

NAME, HREF = "{http://www.w3.org/2000/svg}", "{http://www.w3.org/1999/xlink}href"

RECT = '<rect x="1.00" y="2.00"/>'


def drawing(*names: str) -> str:
    used = "".join(f'<path clip-path="url(#{name})"/>' for name in names)
    return f"{used}<defs>" + "".join(f'<clipPath id="{name}">{RECT}</clipPath>' for name in names) + "</defs>"


def test_a_clip_has_one_name_whatever_its_hash() -> None:
    once = f'<path clip-path="url(#clip1)"/><defs><clipPath id="clip1">{RECT}</clipPath></defs>'
    assert _clips(drawing("pd1e3dec5cc")) == _clips(drawing("p71fa404862")) == once


def test_clips_that_are_alike_are_one() -> None:
    assert _clips(drawing("pa", "pb")).count("<clipPath") == 1
    assert _clips(drawing("pa", "pb")).count("url(#clip1)") == 2


def test_what_has_no_clip_stays_as_it_is() -> None:
    assert _clips('<path fill="url(#h1)"/>') == '<path fill="url(#h1)"/>'


@pytest.fixture(scope="module")
def written() -> tuple[str, str]:
    """A figure with letters of three fonts, words that recur, hatches, marks and curves; and shortened."""
    with mpl.rc_context(RC):
        figure = Figure(figsize=(5, 4))
        axes = figure.subplots()
        axes.plot([0.1, 0.2, 0.4], [1, 5, 2], marker="o", label="random read, depth 1")
        axes.scatter([0.3, 0.35], [2, 3], c=["#0072b2", "#d55e00"])
        axes.bar([0.2], [4], 0.05, hatch="//", label="random write, depth 1")
        axes.set_title("random read and random write", fontweight="bold")
        axes.text(0.3, 4, "random, refused", style="italic", rotation=30)
        axes.legend()
        buffer = io.BytesIO()
        FigureCanvasSVG(figure).print_svg(buffer, metadata={"Date": None})
    return buffer.getvalue().decode(), compact(buffer.getvalue().decode())


def outlines(svg: str) -> list[np.ndarray]:
    """Points of all that is drawn, in the drawing's own units, in its order."""
    root = tree.fromstring(svg)
    named = {node.get("id"): node for node in root.iter() if node.get("id")}
    return list(_drawn(root, Affine2D(), named))


def _drawn(
    node: tree.Element, place: Affine2D, named: dict[str | None, tree.Element]
) -> Iterator[np.ndarray]:
    if node.tag == f"{NAME}defs":
        return
    step = Affine2D()
    for kind, numbers in reversed(re.findall(r"(\w+)\(([^)]*)\)", node.get("transform", ""))):
        values = [float(number) for number in re.split("[ ,]+", numbers)]
        getattr(step, "rotate_deg" if kind == "rotate" else kind)(*values)
    if node.tag == f"{NAME}use":
        step.translate(float(node.get("x", 0)), float(node.get("y", 0)))
        yield from _drawn(named[node.attrib[HREF][1:]], step + place, named)
    elif node.tag == f"{NAME}path" and node.get("d"):
        yield (step + place).transform(_points(node.attrib["d"]))
    for child in node:
        yield from _drawn(child, step + place, named)


def _points(data: str) -> np.ndarray:
    """Ends of the steps of a path, absolute or relative, as the standard has it."""
    points: list[tuple[float, float]] = []
    here = start = (0.0, 0.0)
    for letter, numbers in re.findall(r"([a-zA-Z])([^a-zA-Z]*)", data):
        values = [float(number) for number in re.findall(r"-?[\d.]+", numbers)]
        many = {"m": 2, "l": 2, "h": 1, "v": 1, "q": 4, "t": 2, "c": 6, "z": 1}[letter.lower()]
        for at in range(0, len(values), many):
            end = values[at : at + many][-2:]
            end = [end[0], 0.0] if letter == "h" else [0.0, end[0]] if letter == "v" else end
            here = (end[0], end[1]) if letter.isupper() else (here[0] + end[0], here[1] + end[1])
            start = here if letter in "mM" else start
            points.append(here)
        here = start if letter in "zZ" else here
    if points[0] == points[-1]:
        points.pop()
    return np.array(points)


def test_all_that_was_drawn_is_drawn_in_its_place(written: tuple[str, str]) -> None:
    before, after = (outlines(svg) for svg in written)
    before = [points for points in before if len(points)]
    assert len(before) == len(after) > 100
    for one, other in zip(before, after, strict=True):
        low, high = Path(one).get_extents().get_points()
        assert np.allclose([low, high], Path(other).get_extents().get_points(), atol=0.02)


def test_it_takes_less_than_half_of_the_room_and_no_hash_is_left(written: tuple[str, str]) -> None:
    before, after = written
    assert len(after) < len(before) / 2
    assert not re.search(r"#\w*[0-9a-f]{10}", after) and not re.search(
        r"<g>|<g/>|<g id=", after.split("<defs><path")[0]
    )


def test_text_that_stays_text_keeps_its_digits() -> None:
    assert compact("<svg></metadata><text>0.0451 times</text></svg>").count("0.0451 times") == 1
