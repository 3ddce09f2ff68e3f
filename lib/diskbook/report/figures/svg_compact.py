"""Matplotlib's SVG in a third of its bytes: what nobody sees goes, what recurs is written once."""

from __future__ import annotations

import re
import string
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache

_NUMBER = re.compile(r"(?<![\w.#])\d+\.\d+(?![\w%])")
_GROUP = re.compile(r"<g((?: [^>]*?)?)(/?)>|</g>")
_GROUP_NUMBER = re.compile(r' id="[\w.]+_\d+"')
_HASHED = re.compile(r'(?<= id=")(?:m|h|C\d+_\w+?_)[0-9a-f]{10}(?=")')
_CLIP = re.compile(r'<clipPath id="([^"]+)">(.*?)</clipPath>')
_PATH = re.compile(r' d="([^"]*)"')
_OUTLINE = re.compile(r'<path id="([^"]+)" d="([^"]*)" transform="scale\(0\.015625\)"/>')
_TEXT_SCALE = re.compile(r"scale\(([\d.]+) -[\d.]+\)")
_MARK = re.compile(r'(<use xlink:href="#m[0-9a-f]{10}"[^>]*?) style="([^"]*)"')
_STROKE = re.compile(r"stroke[^;]*(?:; *|$)")
_LETTER = re.compile(r'<use xlink:href="#([^"]+)"(?: transform="translate\(([-\d.]+) 0\)")?/>')
_LINE = re.compile(r'(?:<use xlink:href="#[^"]+"(?: transform="translate\([-\d.]+ 0\)")?/>)+')
_STEP = re.compile(r"([MLQCz])([^MLQCz]*)")

UNITS = 1000
"""Units of a letter's size, as in fonts; Matplotlib has 6400 for outlines and 100 for places."""

Point = tuple[int, int]
Word = tuple[tuple[str, int], ...]
"""Letters of a word with their distances from the first, in units of their size."""


def compact(svg: str) -> str:
    """Take out what nobody sees, and write shortly what is seen. The metadata stay as they are.

    Places are kept to 0.01 points, those of letters and on their outlines to 1/1000 of their size.
    """
    head, end, drawing = re.sub(r"\s*\n\s*", " ", svg).partition("</metadata>")
    drawing = re.sub(r"> +<", "><", re.sub(r"<!--.*?-->", "", drawing))
    drawing = _MARK.sub(_unstroked, _ungrouped(drawing))
    outlines = dict(_OUTLINE.findall(drawing))
    drawing = _OUTLINE.sub("", drawing).replace("<defs></defs>", "")
    drawing = _PATH.sub(lambda path: f' d="{_relative(path[1], 100, _hundredths)}"', drawing)
    # Only within tags: what is a reader's text stays as it is.
    drawing = re.sub(r"<[^>]*>", lambda tag: _NUMBER.sub(_rounded, tag[0]), drawing)
    return head + end + _lettered(_renamed(_clips(drawing)), outlines)


def _rounded(number: re.Match[str]) -> str:
    return f"{float(number[0]):.2f}".rstrip("0").rstrip(".")


def _ungrouped(svg: str) -> str:
    """Take the numbers of groups away, and groups that have nothing besides."""
    kept: list[bool] = []

    def write(tag: re.Match[str]) -> str:
        if tag[0] == "</g>":
            return tag[0] * kept.pop()
        more = _GROUP_NUMBER.sub("", tag[1])
        if tag[2]:
            return f"<g{more}/>" if more else ""
        kept.append(bool(more))
        return f"<g{more}>" if more else ""

    return _GROUP.sub(write, svg)


def _unstroked(mark: re.Match[str]) -> str:
    """Leave to the mark how it is stroked, which Matplotlib writes there and with every use."""
    style = _STROKE.sub("", mark[2]).strip("; ")
    return mark[1] + (f' style="{style}"' if style else "")


def _lettered(svg: str, outlines: Mapping[str, str]) -> str:
    """Write letters in one size, under short names, and words that recur once; a space has no outline."""
    if not outlines:
        return svg
    drawn = [name for name, path in outlines.items() if path]
    short = [*string.ascii_letters, *(f"g{number}" for number in range(len(drawn)))]
    names = dict(zip(drawn, short, strict=False))
    letters = "".join(f'<path id="{name}" d="{_outline(outlines[long])}"/>' for long, name in names.items())
    svg = svg.replace("</svg>", f"<defs>{letters}</defs></svg>")
    return _words(_TEXT_SCALE.sub(_in_units, svg), names)


def _in_units(scale: re.Match[str]) -> str:
    size = f"{float(scale[1]) * 100 / UNITS:.4g}".lstrip("0")
    return f"scale({size} -{size})"


def _words(svg: str, letters: Mapping[str, str]) -> str:
    """Write words that recur once, and others letter by letter."""
    seen = Counter(word for line in _LINE.findall(svg) for _, word in _words_of(line, letters))
    often = [word for word, times in seen.items() if (times - 1) * (len(word) - 1) > 2]
    names = {word: f"w{number}" for number, word in enumerate(often, 1)}

    def write(line: re.Match[str]) -> str:
        return "".join(
            f'<use xlink:href="#{names[word]}"{_at(place)}/>' if word in names else _letters(place, word)
            for place, word in _words_of(line[0], letters)
        )

    written = _LINE.sub(write, svg)
    defined = "".join(f'<g id="{name}">{_letters(0, word)}</g>' for word, name in names.items())
    return written.replace("</defs></svg>", f"{defined}</defs></svg>")


def _words_of(line: str, letters: Mapping[str, str]) -> list[tuple[int, Word]]:
    """Words of a line of letters, each with its place."""
    words: list[list[tuple[str, float]]] = [[]]
    for name, place in _LETTER.findall(line):
        if name in letters:
            words[-1].append((letters[name], float(place or 0) * UNITS / 100))
        else:
            words.append([])
    return [
        (round(word[0][1]), tuple((name, round(place - word[0][1])) for name, place in word))
        for word in words
        if word
    ]


def _letters(start: int, word: Word) -> str:
    return "".join(f'<use xlink:href="#{name}"{_at(start + place)}/>' for name, place in word)


def _at(place: int) -> str:
    return f' x="{place}"' if place else ""


@lru_cache(maxsize=1024)
def _outline(data: str) -> str:
    """Outline of a letter; all figures have the same few."""
    return _relative(data, UNITS / 6400, str)


def _relative(data: str, scale: float, write: Callable[[int], str]) -> str:
    """Write a path in steps from point to point, as "M24,17h32v111z"; steps of rounded places add up."""
    parts: list[tuple[str, list[int]]] = []
    here = start = (0, 0)
    control: Point | None = None
    for command, numbers in _STEP.findall(data):
        values = [round(scale * float(number)) for number in numbers.split()]
        points = list(zip(values[::2], values[1::2], strict=True))
        if command == "z":
            if here == start and parts[-1][0] in "hvl":
                parts.pop()  # the z draws it
            parts.append(("z", []))
            here = start
        elif command == "M":
            parts.append(("M", values))
            here = start = points[-1]
        else:
            mirrored = control and (2 * here[0] - control[0], 2 * here[1] - control[1])
            parts.append(_step(command, points, here, mirrored))
            control = mirrored if parts[-1][0] == "t" else points[0]
            here = points[-1]
        control = control if command == "Q" else None
    return _joined(parts, write)


def _step(
    command: str, points: Sequence[Point], here: Point, mirrored: Point | None
) -> tuple[str, list[int]]:
    """Step of a path; a curve that goes on as the one before need not say how, but for a unit."""
    if command == "Q" and mirrored and all(abs(a - b) <= 1 for a, b in zip(points[0], mirrored, strict=True)):
        command, points = "T", points[1:]
    steps = [place for x, y in points for place in (x - here[0], y - here[1])]
    if command == "L" and not steps[1]:
        return "h", steps[:1]
    if command == "L" and not steps[0]:
        return "v", steps[1:]
    return command.lower(), steps


def _joined(parts: Sequence[tuple[str, list[int]]], write: Callable[[int], str]) -> str:
    """Write steps; a letter stands for all of its kind that follow, a comma where no sign divides numbers."""
    text, last = "", ""
    for letter, values in parts:
        head = "," if letter == last and letter not in "Mz" else letter
        text += head + ",".join(write(value) for value in values)
        last = letter
    return text.replace(",-", "-")


def _hundredths(value: int) -> str:
    text = f"{value / 100:.2f}".rstrip("0").rstrip(".")
    return text.replace("0.", ".", 1) if abs(value) < 100 else text


def _clips(svg: str) -> str:
    """Name clips by their order: Matplotlib hashes unrounded numbers, whose last digits the layout varies."""
    shapes = dict(_CLIP.findall(svg))
    names = {shape: f"clip{number}" for number, shape in enumerate(dict.fromkeys(shapes.values()), 1)}
    defined = "".join(f'<clipPath id="{name}">{shape}</clipPath>' for shape, name in names.items())
    once = iter((defined,))
    svg = _CLIP.sub(lambda _: next(once, ""), svg)
    return re.sub(r"url\(#([^)]+)\)", lambda use: f"url(#{names.get(shapes.get(use[1], ''), use[1])})", svg)


def _renamed(svg: str) -> str:
    """Name marks and hatches by their order, too."""
    names = {name: f"m{number}" for number, name in enumerate(dict.fromkeys(_HASHED.findall(svg)), 1)}
    svg = re.sub(r'(?<= id=")[\w]+(?=")', lambda use: names.get(use[0], use[0]), svg)
    return re.sub(r"(?<=#)\w+(?=[\")])", lambda use: names.get(use[0], use[0]), svg)
