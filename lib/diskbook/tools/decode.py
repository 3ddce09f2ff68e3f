"""Decoder of a result file's bytes: UTF-8, PowerShell's UTF-16, or an old Windows code page."""

from __future__ import annotations

import codecs
from collections.abc import Mapping

_MARKS = ((codecs.BOM_UTF8, "utf-8-sig"), (codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16"))


def text_of(content: bytes) -> tuple[str, tuple[str, ...]]:
    """Decode a tool's output, with lines that end as everywhere.

    Numbers and keywords of all tools are ASCII, so only file names can suffer from a wrong guess.

    Returns
    -------
    tuple
        The text, and flags that say what had to be assumed.
    """
    text, flags = _text_of(content)
    return text.replace("\r\n", "\n"), flags


def plain_text(files: Mapping[str, bytes], kind: str) -> str:
    """Decode what a tool wrote into a file of its trial, in UTF-8; empty where it left none."""
    return files.get(kind, b"").decode("utf-8", "replace")


def _text_of(content: bytes) -> tuple[str, tuple[str, ...]]:
    for mark, encoding in _MARKS:
        if content.startswith(mark):
            return _decoded(content, encoding)
    if _is_wide(content):
        return _decoded(content, "utf-16-le")
    try:
        return content.decode("utf-8"), ()
    except UnicodeDecodeError:
        # Any byte is a character in this one; Cyrillic is the code page that was met with.
        return content.decode("cp1251", "replace"), (
            "not UTF-8, read as Windows-1251: file names may be wrong",
        )


def _decoded(content: bytes, encoding: str) -> tuple[str, tuple[str, ...]]:
    try:
        return content.decode(encoding), ()
    except UnicodeDecodeError:
        return content.decode(encoding, "replace"), (f"damaged {encoding.upper()}: characters are missing",)


def _is_wide(content: bytes) -> bool:
    """Whether this is ASCII as UTF-16 without a mark: every second byte of the beginning is zero."""
    head = content[:64]
    return len(head) >= 8 and head[1::2].count(0) > 0.9 * len(head[1::2]) and 0 not in head[::2]
