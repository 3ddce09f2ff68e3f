"""What an article's own figures say of one of its claims, and the figure that says it."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from typing import Any

import pandas as pd


class ClaimVerdict(StrEnum):
    """What an article's own figures say of one of its claims."""

    SUPPORTED = "supported"
    """As far as one set-up goes."""
    NOT_SUPPORTED = "not supported"
    CAPPED = "capped"
    """The figures sit on a limit, so they cannot say."""
    NOT_MEASURED = "not measured"
    """No figure bears on it."""


Finding = tuple[ClaimVerdict, str]
"""Verdict and why."""
Judge = Callable[[pd.DataFrame], Finding]


def one_figure(figures: pd.DataFrame, **values: str) -> dict[Any, Any]:
    """First figure with these values; `drive` is the letter that the disk-options article gives a disk."""
    rows = of_drive(figures, values.pop("drive", ""))
    for name, value in values.items():
        rows = rows[rows[name] == value]
    return rows.iloc[0].to_dict()


def of_drive(figures: pd.DataFrame, letter: str) -> pd.DataFrame:
    """Figures of the drive of that letter; all of them without one."""
    return figures[figures["note"].str.match(rf"drive {letter}\b")] if letter else figures
