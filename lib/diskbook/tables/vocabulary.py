"""The words that tables, gates and reports judge by; each is its own text."""

from __future__ import annotations

from enum import StrEnum


class CreditState(StrEnum):
    """Burst credit at hand in a trial."""

    NONE = "none"
    """Nothing bursts."""
    FULL = "full"
    PARTIAL = "partial"
    """There was credit to the trial's end."""
    EMPTY = "empty"
    """The trial ran at its base limits throughout."""
    DRAINED = "drained"
    """The credit ran out within the trial, whose mean is a mixture."""
    UNKNOWN = "unknown"
