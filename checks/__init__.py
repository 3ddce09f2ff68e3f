"""For those who work on diskbook itself: benchmarks, fuzzing, faults, coverage, as `make` calls them."""

from pathlib import Path


def page_head(name: str) -> str:
    """Return the beginning of a generated page, or of a part of it."""
    return (Path(__file__).parent / "page_heads" / f"{name}.md").read_text("utf-8")
