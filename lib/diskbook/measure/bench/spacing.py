"""Wait between the blocks of a replicate, so that they are spread over hours (`design.hours_between_blocks`).

What sets a disk's latency wanders over hours; blocks of one hour share it, and their interval misses the
lasting ratio (`diskbook.design.vocabulary.in_these_hours`).
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from diskbook.cloud.azure import expiry
from diskbook.design.schedule import Block
from diskbook.facts.units import span
from diskbook.measure.bench.rig import Rig

LOOK_AGAIN_S = 30.0
"""A wait is by the clock on the wall, so that it is no longer where this computer slept in between."""


def wait(rig: Rig, block: Block) -> bool:
    """Wait until a block is due; tell whether it may begin, which it may not where the run is to stop.

    It is due so many hours after the replicate's last block of another round began, whichever session that
    was in; on the emulator its time scale shortens them. Without placements each block is a round.

    Raises
    ------
    DiskbookError
        When the machines will have shut down by then.
    """
    due = _due(rig, block)
    if due is None or _left_s(due) <= 0:
        return True
    expiry.check_stands_at(rig.run, rig.replicate["resource_group"], due)
    rig.run.append("notice", text=_words(rig, block, due))
    while (left_s := _left_s(due)) > 0:
        if rig.stop.wait(min(left_s, LOOK_AGAIN_S)):
            return False
    return True


def _due(rig: Rig, block: Block) -> datetime | None:
    hours = rig.scenario.design.hours_between_blocks
    begun = [
        event["time_utc"]
        for event in rig.run.ledger()
        if event["event"] == "block"
        and (event["replicate"], event["status"]) == (rig.number, "begun")
        and event.get("round", event["block"]) != block.round
    ]
    if not hours or not begun:
        return None
    return datetime.fromisoformat(max(begun)) + timedelta(hours=hours) * rig.time_scale


def _left_s(due: datetime) -> float:
    return (due - datetime.now(UTC)).total_seconds()


def _words(rig: Rig, block: Block, due: datetime) -> str:
    hours = rig.scenario.design.hours_between_blocks
    scaled = (
        "" if rig.time_scale == 1 else f", {hours * rig.time_scale * 3600:.0f} s as the emulator plays them"
    )
    return (
        f"replicate {rig.number} waits {span(_left_s(due))}: block {block.block} begins at "
        f"{due:%Y-%m-%d %H:%M:%S} UTC (blocks are {hours:g} h apart{scaled})"
    )
