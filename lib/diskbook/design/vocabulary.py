"""The words that tables, gates and reports judge by; each is its own text.

Also the steps, reservation keys and limits of failover tests and of checks of reservations.
"""

from enum import StrEnum
from typing import Self


class Provenance(StrEnum):
    """Where numbers come from; tables of several runs join theirs by "+"."""

    AZURE = "azure"
    EMULATED = "emulated"
    """By the workbook's own emulator; they say nothing about Azure."""
    INVENTORY = "inventory"
    """On hosts of the user's own."""
    IMPORTED = "imported"
    """From files whose making nobody here watched."""
    PUBLISHED = "published"
    """From an article."""


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


class Label(StrEnum):
    """What is known of a cell and its limits."""

    BELOW_CAP = "below cap"
    NEAR_A_CAP = "near a cap"
    """The rate reaches a limit and nothing corroborates that the limit binds."""
    CAPPED = "capped"
    SATURATED = "saturated, limit not known"
    """A queue makes half of its latency or more, and no limit of any table explains that."""
    UNASSESSED = "saturation not assessable"
    """Nothing shows whether its latency is the disk's or a queue's."""
    LIMIT_NOT_KNOWN = "limit not known"
    """Below the limits of its disk; what its machine lets through is in no table, nor does Azure say it."""
    NO_LIMIT_KNOWN = "no limit known"
    """Of published figures alone."""
    STATED = "stated"
    """Of published figures alone: a number without a measurement."""


class GateStatus(StrEnum):
    """How a gate came out."""

    PASSED = "passed"
    FAILED = "failed"
    NOT_ASSESSABLE = "not assessable"


class Scope(StrEnum):
    """Which disks an estimate speaks of: its value in tables; `words` and `these` word it for readers."""

    THESE = "these disks"
    """The very disks measured, in the hours in which they were."""
    LIKE_THESE = "disks like these"
    """Disks of the kind; where it is known, of those only that answer from the same zone."""

    def words(self, nearest_zone: str = "") -> str:
        """Word the scope, the general one with the nearest zone of its disks (`stats.strata`), if known."""
        if self is Scope.THESE:
            return in_these_hours(self)
        if not nearest_zone:
            return str(self)
        zones = nearest_zone.split("+")
        return f"{self} whose nearest zone{'s are' if len(zones) > 1 else ' is'} {' and '.join(zones)}"


def in_these_hours(disks: str) -> str:
    """Word that an estimate speaks of disks in the hours measured.

    A disk has a memory: where its latency wanders, an interval over blocks near to each other holds the ratio
    of those hours, and often misses the lasting one (docs/explanation/coverage.md has both).
    """
    return f"{disks} in these hours"


class Verdict(StrEnum):
    """What a comparison supports.

    Tables and reports have it with its margin, "equivalent within 5 %": `worded` writes that, `of` reads it.
    """

    DIFFERENCE = "difference"
    EQUIVALENT = "equivalent"
    """The ratio lies within the comparison's margin."""
    INCONCLUSIVE = "inconclusive"
    INTERIM = "interim"
    """Not all is measured that was planned: the interval is shown, and nothing is judged by it."""
    CAPPED = "capped"
    """A cell sits on a limit, so that its latency says nothing about the disk."""
    SATURATED = "saturated"
    """A cell waits in a queue, whose limit no table names: its latency says as little."""
    SINCE_ATTACH = "depends on the time since the attach"
    """Right after an attach the ratio is another one than after settling; its warnings have both."""
    INVALID = "invalid"

    def worded(self, margin: float) -> str:
        """Word the verdict; equivalence with its margin, e.g. "equivalent within 5 %"."""
        return f"{self} within {100 * margin:g} %" if self is Verdict.EQUIVALENT else str(self)

    @classmethod
    def of(cls, words: str) -> Self:
        """Kind of a verdict in words."""
        return cls(words.partition(" within ")[0])


WITHHELD = (Verdict.CAPPED, Verdict.SATURATED, Verdict.SINCE_ATTACH, Verdict.INVALID)
"""Verdicts whose latency ratio is neither drawn nor pooled with others."""


SILENCE_S = 2.0
"""Seconds without a write from which on a machine counts as failed."""
TAKE_OVER_STEPS = {
    "noticed": "failure noticed",
    "off": "machine off",
    "detached": "disk detached",
    "started": "other machine started",
    "attached": "disk attached",
    "seen": "disk seen as ours",
    "preempted": "reservation taken over",
    "verified": "blocks verified",
    "written": "first write",
}
"""Steps of a take-over in words, in their order."""

RESERVATION_TYPE = 5
"""Type of the persistent reservation: write exclusive, registrants only (SPC-4)."""
RESERVATION_TYPE_WORDS = "Write Exclusive, registrants only"
RESERVATION_KEYS = (0xD15C0001, 0xD15C0002)
"""Reservation keys of the first and the second machine."""
