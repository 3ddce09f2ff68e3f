"""The pace of polls stays within Azure Compute's buckets, however long an operation takes."""

from __future__ import annotations

import pytest

from diskbook.cloud.azure.clients import poll_interval_s
from diskbook_emulator.arm.gateway import Buckets, Charge


@pytest.mark.parametrize("asked_s", [0, 2, 10, 50])
def test_no_operation_is_throttled_for_its_polls(asked_s: int) -> None:
    """By the documented bucket of an operation, filled when it begins; the last request is for its result."""
    clock = [0.0]
    buckets, poll = Buckets(1.0, now=lambda: clock[0]), Charge("GetOperation", "operation")
    in_first_minute = 0
    while clock[0] < 2 * 3600:
        header = buckets.take(poll)  # raises when the bucket is empty
        in_first_minute += clock[0] < 60
        clock[0] += poll_interval_s(clock[0], asked_s)
    assert in_first_minute <= 44
    assert int(header.rpartition(";")[2]) > 40  # the slower pace has let it fill again
