"""Digits of numbers in CSV and JSON, so that every build of numpy writes the same bytes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd

SIGNIFICANT = 10
"""Significant digits; builds of numpy differ in the sixteenth."""


def csv_text(table: pd.DataFrame) -> str:
    """Write a table as CSV without its index; floats are rounded to `SIGNIFICANT` digits."""
    return table.to_csv(index=False, lineterminator="\n", float_format=f"%.{SIGNIFICANT}g")


def rounded(content: Any) -> Any:
    """Round every float in the content of a JSON document to `SIGNIFICANT` digits."""
    if isinstance(content, float):
        return float(f"{content:.{SIGNIFICANT}g}")
    if isinstance(content, dict):
        return {key: rounded(value) for key, value in content.items()}
    if isinstance(content, list | tuple):
        return [rounded(value) for value in content]
    return content
