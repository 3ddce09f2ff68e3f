"""Steps around the trials of a replicate: those of disks. A scenario on volumes brings its own.

What a scenario has beyond machines and disks is made before its checks, and played after its blocks. Such a
scenario overrides these steps (`facts.neighbours`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from diskbook.cloud.azure.clients import Clients
from diskbook.design.model import Arm, Scenario, Workload
from diskbook.design.schedule import Block
from diskbook.facts import neighbours
from diskbook.hosts.device import Device
from diskbook.measure.bench import precondition
from diskbook.measure.bench.rig import START_S, Rig, run_job
from diskbook.results.run import Run
from diskbook.tools.protocol import Job


class Steps:
    """Steps of a scenario on disks.

    Attributes
    ----------
    raw
        Files of a trial beyond those of its tool: their name to their kind in the ledger and ending.
    """

    raw: ClassVar[Mapping[str, tuple[str, str]]] = {}

    def make(self, rig: Rig, clients: Clients) -> None:
        """Make what a replicate has beyond machines and disks."""

    def is_left(self, run: Run, scenario: Scenario, origin: int) -> bool:
        """Tell whether a planned replicate has something left to play."""
        return False

    def play(self, rig: Rig, clients: Clients) -> None:
        """Play what comes after the blocks."""

    def prepare(self, rig: Rig, block: Block) -> None:
        """Wait for what a block needs, once its disks are attached and filled."""

    def check(self, rig: Rig, block: Block) -> None:
        """Make sure that a block was measured on what is still whole; raises DiskbookError otherwise."""

    def device(self, rig: Rig, arm: Arm, load: Workload) -> Device:
        """Return what an arm measures, as its machine sees it, filled."""
        precondition.prefill(rig, arm.disk, arm.machine)
        return rig.device(arm.disk, arm.machine)

    def place(self, rig: Rig, arm: Arm) -> dict[str, str]:
        """How the ledger names what an arm measures."""
        return precondition.ledger_place(rig, arm.disk)

    # The trial is recorded as failed where one of these three raises JobLost or StepFailed.

    def before(self, rig: Rig, arm: Arm) -> Any:
        """Have what an arm measures at rest; return what `after` needs."""

    def run(
        self, rig: Rig, arm: Arm, load: Workload, name: str, device: Device, job: Job
    ) -> dict[str, bytes]:
        """Run the tool of a trial; return its files."""
        return run_job(rig, arm.machine, name, device, job, load.ramp_s + load.runtime_s + START_S)

    def after(self, rig: Rig, arm: Arm, begun: Any) -> dict[str, bytes]:
        """Return the files of a trial beyond those of its tool (`raw`)."""
        return {}

    def settle(self, rig: Rig, arm: Arm, load: Workload) -> None:
        """Note what a trial may have left behind, also one that failed."""

    def forget(self, rig: Rig, arm: Arm) -> None:
        """Look again where what an arm measures is, before it is used next."""
        rig.forget(arm.disk)


DISKS = Steps()


def of(scenario: Scenario) -> Steps:
    """Return the steps of a scenario."""
    steps: Any = neighbours.volume_steps if scenario.volume else DISKS
    return steps
