"""Where things lie on a data disk: working sets first, numbered blocks behind them, our mark last."""

from __future__ import annotations

from diskbook.base.units import MIB
from diskbook.scenario.model import Scenario

MARK_ROOM = MIB
"""Bytes at the end of a disk that trials leave alone: the mark by which the disk is known."""
REGION_BYTES = 256 * MIB
"""Room for the numbered blocks of failover tests and of checks of reservations."""


def region_offset(scenario: Scenario) -> int:
    """Return where the numbered blocks begin, in bytes: behind everything else that is written."""
    used = max(workload.working_set_bytes for workload in scenario.workload)
    checked = max((check.size_mib for check in scenario.check if check.kind == "data-intact"), default=0)
    return used + checked * MIB
