"""Steps, reservation keys and limits of failover tests and of checks of reservations."""

SILENCE_S = 2.0
"""Seconds without a write from which on a machine counts as failed."""
STEPS = {
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

TYPE = 5
"""Type of the persistent reservation: write exclusive, registrants only (SPC-4)."""
TYPE_WORDS = "Write Exclusive, registrants only"
KEYS = (0xD15C0001, 0xD15C0002)
"""Reservation keys of the first and the second machine."""
