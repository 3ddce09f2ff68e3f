"""For those who work on diskbook itself: benchmarks, fuzzing, faults, coverage, as `make` calls them."""

from collections.abc import Iterable, Sequence
from pathlib import Path


def page_head(name: str) -> str:
    """Return the beginning of a generated page, or of a part of it."""
    return (Path(__file__).parent / "page_heads" / f"{name}.md").read_text("utf-8")


def markdown(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a Markdown table."""
    return "\n".join(f"| {' | '.join(row)} |" for row in [heads, ["---"] * len(heads), *rows])
