"""Markdown of texts that may be anybody's: their markup is none."""

from __future__ import annotations

from diskbook.facts.errors import visible


def code(*lines: str) -> str:
    """Write command lines as a block of code."""
    return "\n".join(["```sh", *(visible(line) for line in lines), "```"])


def bullets(items: list[str]) -> str:
    """Write sentences as a list."""
    return "\n".join(f"- {item}" for item in items)


def numbered(items: list[str]) -> str:
    """Write sentences as a numbered list."""
    return "\n".join(f"{number}. {item}" for number, item in enumerate(items, 1))
