"""Frames as tables of Markdown."""

from __future__ import annotations

import pandas as pd

from diskbook.facts.visible import visible


def markdown_table(frame: pd.DataFrame) -> str:
    """A frame as a table of Markdown; nothing of one without rows."""
    if frame.empty:
        return ""
    rows = [
        tuple(frame.columns),
        tuple("---" for _ in frame.columns),
        *frame.itertuples(index=False, name=None),
    ]
    return "\n".join(f"| {' | '.join(_markdown_cell(value) for value in row)} |" for row in rows)


def _markdown_cell(value: object) -> str:
    return visible(str(value)).replace("|", "\\|").replace("<", "&lt;")
