"""Where the runs of a batch run: what the loop asks of such a place. `local` is this machine."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from diskbook.batch.item import Item


@dataclass(frozen=True)
class Ending:
    """How a run's process ended: its exit status, negative where a signal killed it, and its last words.

    Statuses are those of `diskbook run`: 0; 1 and 2 with a sentence; 128 and the signal's number where it was
    asked to end, and has torn down.
    """

    status: int
    words: str = ""


class Task(Protocol):
    """A run that was started."""

    @property
    def item(self) -> Item:
        """What it is."""

    def ending(self) -> Ending | None:
        """How it ended; None while it goes on. Never waits."""

    def stop(self) -> None:
        """Ask it to tear down and end; it takes its time. Safe to call more than once."""


class Engine(Protocol):
    """A place where runs run, several at once."""

    @property
    def lanes(self) -> int:
        """How many it runs at most at once."""

    def has_room(self, item: Item) -> bool:
        """Whether it would start that run at once."""

    def start(self, item: Item, limit_usd: float | None) -> Task:
        """Start a run, or go on with it; `limit_usd` is what it may cost, all its sessions together."""
