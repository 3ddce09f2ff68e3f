"""Examples at the end of a command's help; tests/cli/test_examples.py executes every one of them."""

from __future__ import annotations

HEAD = "Examples:"


def examples(*lines: str) -> str:
    """Put command lines, as they are typed, into the form of an epilog that click does not break."""
    return "\n".join(["\b", HEAD, *(f"  {line}" for line in lines)])
