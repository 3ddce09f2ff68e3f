"""Decide when a machine that does not answer is looked after, and when its connection is given up."""

from __future__ import annotations

import time

from diskbook.facts import environment

CONNECT_S = 10.0
# A connection may be away for a minute; a job on the machine goes on meanwhile.
RECONNECT_S = environment.seconds("DISKBOOK_RECONNECT_S", usual=90.0, most=3600.0)
LOOK_S = 3.0  # a machine that does not answer for so long is looked after, again and again
LOOK_EVERY_S = 10.0
CUTS = 20  # so often may one command be cut off after a while; a machine that only hangs is given up some day


class Reconnect:
    """For how long a machine has not answered, in time that this process was awake."""

    def __init__(self) -> None:
        self._started = time.monotonic()
        self._cuts = 0
        self.begin_anew()

    def begin_anew(self) -> None:
        """Count from now on."""
        self.away_s = 0.0
        self._counted: float | None = None
        self._look_at_s = LOOK_S

    def trying(self) -> None:
        """Note the start of an attempt."""
        self._started = time.monotonic()

    def failed(self, answered: bool = False) -> None:
        """Note the end of an attempt that failed; `answered`: the machine had taken the command."""
        now = time.monotonic()
        cut = answered and now - self._started > 2 * CONNECT_S and self._cuts < CUTS
        self._cuts += cut
        if self._counted is None or cut:
            self.begin_anew()  # a command that ran for a while had a connection: the outage begins now
        else:
            # The lid of the laptop may have been closed meanwhile; nobody tried then.
            self.away_s += min(now - self._counted, 2 * CONNECT_S)
        self._counted = now

    @property
    def is_hopeless(self) -> bool:
        """Whether the machine has been away for too long."""
        return self.away_s > RECONNECT_S

    def look_is_due(self) -> bool:
        """Whether it is time to look after the machine (again)."""
        if self.away_s < self._look_at_s:
            return False
        self._look_at_s = self.away_s + LOOK_EVERY_S
        return True
