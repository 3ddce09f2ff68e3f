"""One spending limit for all runs of a batch: reserved before a run starts, settled when it has ended."""

import math
from collections.abc import Mapping


class Purse:
    """What a batch may spend, has spent and has promised to runs that are under way, in USD.

    What is spent is read from the run folders, so it outlives the process; what is reserved ends with it, as
    the runs do.

    - `limit`: for all runs together; None where nothing binds.
    - `spent`: what runs have cost already, by name.
    """

    def __init__(self, limit: float | None, spent: Mapping[str, float]) -> None:
        self.limit = limit
        self._spent = dict(spent)
        self._reserved: dict[str, float] = {}

    @property
    def spent(self) -> float:
        """Cost of all runs so far, those under way as they are expected."""
        return math.fsum(self._spent.values())

    @property
    def reserved(self) -> float:
        """Promised to runs that are under way."""
        return math.fsum(self._reserved.values())

    @property
    def free(self) -> float:
        """What can still be reserved."""
        return math.inf if self.limit is None else self.limit - self.spent - self.reserved

    def has_room(self, usd: float) -> bool:
        """Whether that much can be reserved now."""
        return usd <= self.free + 1e-9

    def could_ever(self, usd: float) -> bool:
        """Whether that much could be reserved if what is reserved now came back whole."""
        return usd <= self.free + self.reserved + 1e-9

    def reserve(self, name: str, usd: float) -> bool:
        """Promise an amount to a run; False, and nothing happens, where that is more than is free."""
        if not self.has_room(usd):
            return False
        self._reserved[name] = usd
        return True

    def settle(self, name: str, usd: float) -> None:
        """Replace what was reserved for a run by what it has cost, all its sessions together."""
        self._reserved.pop(name, None)
        self._spent[name] = usd
