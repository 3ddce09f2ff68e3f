"""Attach a disk anew before the visits of an arm, as often as planned, and let it settle.

Which visits these are is planned for all disks of a comparison alike (`scenario.attachments`). A disk is
filled before that, so that nothing lies between the attach and the trial of one arm alone. A trial that is
tried again meets its disk as it is, attached since before the first attempt; a block that is repeated whole
has all its cycles again. On Azure an attach belongs to the control plane: it costs time, and no burst credit.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

from diskbook.design import attachments
from diskbook.design.model import Arm
from diskbook.measure.bench.rig import Rig


def place(rig: Rig, places: Sequence[tuple[str, str]]) -> None:
    """Have each disk that moves between placements on the machines of the next block, and on no others.

    `places` are pairs of disk and machine. A shared disk is first detached where it is not wanted, so that no
    attach has to choose which of its machines loses it.
    """
    for disk in sorted(attachments.moved_between(rig.scenario)):
        machines = [machine for name, machine in places if name == disk]
        for machine, _ in rig.attachments.where(disk) if machines else ():
            if machine not in machines:
                rig.attachments.detach(disk, machine)
                rig.forget(disk)
        for machine in machines:
            rig.device(disk, machine)


def begin(rig: Rig, arm: Arm, times: int, *, early: bool = False) -> bool:
    """Attach the arm's disk anew so many times, and let it settle; tell whether its trial may begin.

    Of several cycles only the last one ends with the proof that the disk is ours, before anything is written.
    A trial that is `early` does not wait for the disk to settle. The trial may not begin where the run is to
    stop.
    """
    for _ in range(times):
        rig.renew(arm.disk, arm.machine)
    settle_s = rig.scenario.design.settle_s * rig.time_scale
    if arm.volume or not (times or settle_s):
        return True
    rig.device(arm.disk, arm.machine)
    return early or _settled(rig, arm, settle_s)


def _settled(rig: Rig, arm: Arm, settle_s: float) -> bool:
    """Wait until the last attach is `design.settle_s` ago; on the emulator its time scale shortens that."""
    attached = rig.attached_at(arm.disk, arm.machine)
    left_s = 0.0 if attached is None else attached + settle_s - time.monotonic()
    if left_s <= 0:
        return True
    stopped = rig.stop.wait(left_s)
    rig.run.append(
        "settled",
        replicate=rig.number,
        disk=arm.disk,
        machine=arm.machine,
        settle_s=rig.scenario.design.settle_s,
        real_s=round(left_s, 3),
    )
    return not stopped
