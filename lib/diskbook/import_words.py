"""What `diskbook import` says: what was made of which files, what must be known, and what was left out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from diskbook import importing
from diskbook import run as runs
from diskbook.import_scenario import Settings

_MOST_LINES = 40


def run(paths: Sequence[str], name: str | None, options: Mapping[str, Any]) -> str:
    """Import, and say what came of it.

    Raises
    ------
    UsageError, DiskbookError
        See `importing.make`.
    """
    made = importing.make(paths, name or runs.new_name("imported"), Settings(**options))
    return text(made)


def text(made: importing.Imported) -> str:
    """Say what was imported."""
    arms = ", ".join(f"{name} ({count})" for name, count in made.arms.items())
    lines = [
        f"run {made.run.name} (imported), folder {made.run.folder}",
        f"{made.n_trials} measurements of {len(made.arms)} arms: {arms}",
        *_listed("know of them", made.flags),
        *_listed("not used", made.refused),
        f"next: 'diskbook why {made.run.name}', or notebooks/3-analyse-imported.ipynb",
    ]
    return "\n".join(lines)


def _listed(head: str, sentences: Sequence[str]) -> list[str]:
    if not sentences:
        return []
    more = [f"  and {len(sentences) - _MOST_LINES} more"] if len(sentences) > _MOST_LINES else []
    return [f"{head}:", *(f"  {sentence}" for sentence in sentences[:_MOST_LINES]), *more]
