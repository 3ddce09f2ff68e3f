"""What the readers' remarks on a measurement mean for its numbers: which speak of a load that was held back.

Remarks (flags) are sentences for people. Two kinds of them decide how a measurement is judged, and are told
here by how they begin, or by a phrase of theirs; a test holds every one against the readers' sources.
"""

from __future__ import annotations

from collections.abc import Iterable

from diskbook.tools.record import CACHED

PACED = (
    "the rate was limited",
    "pauses (-j) limited the rate",
    "the depth was steered by a target of latency",
    "it synced after every",
)
"""Fewer I/Os than asked for may have been in flight: pauses, a rate, syncs, or a target of latency."""
ABOUT_DEPTH = "the depth is between"
"""The depth is known within a factor of two."""
DOUBTFUL = (
    CACHED,
    "the file contradicts itself",
    "no I/O went to",
    "some are missing",
    "some clones are missing",
    "other jobs may be summed with it",
    "the text is cut after",
    "the latencies are cut off",
    "s are cut off and left out",
    "it breaks off within this time span",
    "a percentile lies above the largest latency",
)
"""The numbers may not be those of what they name."""


def is_paced(remarks: Iterable[str]) -> bool:
    """Whether something besides the depth held a load back, so that fewer I/Os are in flight than asked."""
    return any(remark.startswith(PACED) for remark in remarks)


def doubtful(remarks: Iterable[str]) -> tuple[str, ...]:
    """Remarks that say that a number may not be that of what it names."""
    return tuple(remark for remark in remarks if any(phrase in remark for phrase in DOUBTFUL))
