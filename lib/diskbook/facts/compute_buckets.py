"""Azure Compute's token buckets: how often a client may ask about a machine, an operation, a subscription.

Capacities and refills are those of Microsoft's page "Compute throttling limits" (May 2024). Names of the
buckets, and that a bucket is refilled in one step a minute, were read in traffic that azure-cli recorded in
February 2026, as were these: a write of a whole machine counts as PutVM also where the machine exists;
attach and detach have buckets of their own (of 12 and 1,500; that they are refilled like UpdateVM's is
inferred); each operation of a machine has its own bucket for polls (the first poll of an operation leaves
44, that of the next one 44 again). Disks have no such buckets: their answers count windows of 3 and of 30
minutes (August 2025).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

MINUTE_S = 60.0


@dataclass(frozen=True)
class Rate:
    """A bucket's size, and how many tokens are added a minute."""

    capacity: int
    refill: int

    def share(self, part: float) -> Rate:
        """A part of it, one at least."""
        return Rate(max(1, int(self.capacity * part)), max(1, int(self.refill * part)))


@dataclass(frozen=True)
class Policy:
    """Buckets that a kind of request takes a token from: one of its resource, one of the subscription."""

    resource: Rate | None
    subscription: Rate


POLICIES: Mapping[str, Policy] = {
    "PutVM": Policy(Rate(12, 4), Rate(1500, 500)),
    "UpdateVM": Policy(Rate(12, 4), Rate(1500, 500)),
    "AttachDetachVMDisks": Policy(Rate(12, 4), Rate(1500, 500)),
    "DeleteVM": Policy(Rate(12, 4), Rate(1500, 500)),
    "LowCostGet": Policy(Rate(36, 12), Rate(24000, 8000)),
    "HighCostGet": Policy(None, Rate(900, 300)),
    "GetOperation": Policy(Rate(45, 15), Rate(15000, 5000)),
}
