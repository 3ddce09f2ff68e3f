"""Texts that somebody else wrote, with what would steer a terminal, or no text can hold, made visible."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable
from typing import TextIO

# Control characters (also C1), format characters (the direction of writing among them), halves of a character
# (bytes of a file name that are not UTF-8), and separators of lines and paragraphs; Unicode Standard, 4.5.
_STEERING = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
_BYTES = range(0xDC80, 0xDD00)  # how Python writes bytes that are not UTF-8 (PEP 383)
LINES = "\n\t"
"""What a text of several lines may hold besides."""


def visible(text: str, keep: str = "") -> str:
    """Write steering characters as <U+001B>, and bytes that are not UTF-8 as <FF>; leave all others.

    Parameters
    ----------
    text
        From a file, a file's name, or a tool.
    keep
        Steering characters that it may hold, e.g. `LINES`.
    """
    if text.isprintable():  # nearly all
        return text
    return "".join(letter if letter in keep else _shown(letter) for letter in text)


def is_visible(text: str, keep: str = "") -> bool:
    """Whether a text steers nothing; see `visible`."""
    return text.isprintable() or visible(text, keep) == text


def guard(stream: TextIO) -> None:
    """Have a stream write only what is visible, and lines, whoever writes to it from now on."""
    write: Callable[[str], int] = stream.write
    # An attribute, so that whoever holds the stream already writes through it as well.
    vars(stream)["write"] = lambda text: write(visible(text, LINES))


def _shown(letter: str) -> str:
    if unicodedata.category(letter) not in _STEERING:
        return letter
    code = ord(letter)
    return f"<{code - 0xDC00:02X}>" if code in _BYTES else f"<U+{code:04X}>"
