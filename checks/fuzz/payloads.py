"""Texts that somebody might put where a name is expected: markup and scripts for pages, names for files.

Each vector is put in every place that it may have to leave.
"""

import tomllib
from pathlib import Path

_TEXTS = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))

HTML: tuple[str, ...] = tuple(
    leaving + vector for vector in _TEXTS["vectors"] for leaving in _TEXTS["leaving"]
)
"""Two hundred texts that a page must show and not obey."""


def of(kind: str) -> tuple[bytes, ...]:
    """Return the bytes of a list in the file, in which each character stands for one byte."""
    return tuple(text.encode("latin-1") for text in _TEXTS[kind])


NAMES = of("names")
"""Names that a file can have: any bytes but a slash and a zero."""
