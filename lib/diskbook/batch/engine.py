"""Where the runs of a batch run: what the loop asks of such a place.

`local` is this machine, `dask_engine` a cluster.
"""

from dataclasses import dataclass
from typing import Protocol

from diskbook.batch.batch_run import Item
from diskbook.facts.errors import DiskbookError

JOBS = 4
"""Runs at once on this machine, where the file of the batch names no number."""


class EngineLostError(DiskbookError):
    """The place where runs run is gone, and with it what is known of them."""


@dataclass(frozen=True)
class Ending:
    """How a run's process ended: its exit status, negative where a signal killed it, and its last words.

    Statuses are those of `diskbook run`: 0; 1 and 2 with a sentence; 128 and the signal's number where it was
    asked to end, and has torn down. Besides these there are `process.HELD` and `process.LOST`.
    """

    status: int
    words: str = ""


class Task(Protocol):
    """A run that was started."""

    @property
    def item(self) -> Item:
        """What it is."""

    def ending(self) -> Ending | None:
        """How it ended; None while it goes on. Never waits for it."""

    def stop(self) -> None:
        """Ask it to tear down and end; it takes its time. Safe to call more than once."""


class Engine(Protocol):
    """A place where runs run, several at once.

    What it raises is `EngineLostError`, when it is gone.
    """

    @property
    def lanes(self) -> int:
        """How many it runs at most at once."""

    @property
    def most_kills(self) -> int:
        """How often a run may be killed by somebody else before it has failed."""

    @property
    def waits(self) -> bool:
        """Whether there may be room later though nothing runs, as where workers come and go."""

    def has_room(self, item: Item) -> bool:
        """Whether it would start that run at once."""

    def start(self, item: Item, limit_usd: float | None) -> Task:
        """Start a run, or resume it; `limit_usd` is what it may cost, all its sessions together."""
