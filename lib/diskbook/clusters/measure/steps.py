"""Steps around the trials of a scenario on volumes: made, waited for, placed, counted, and lost."""

import json
from collections.abc import Mapping
from functools import partial
from typing import Any, ClassVar

from diskbook.cloud.azure.clients import Clients
from diskbook.clusters.design import counters
from diskbook.clusters.measure import fleets, losses, node_steps, volumes
from diskbook.clusters.measure.failover import DrillSteps
from diskbook.clusters.powershell import steps
from diskbook.design.model import Arm, Scenario, Workload
from diskbook.design.schedule import Block
from diskbook.hosts.device import Device
from diskbook.measure.bench.rig import START_S, Rig
from diskbook.results.run import Run
from diskbook.tools.protocol import Job


class VolumeSteps(DrillSteps):
    """Steps of a scenario on volumes; its arms on disks are measured as others are."""

    raw: ClassVar[Mapping[str, tuple[str, str]]] = {counters.KIND: (counters.KIND, ".counters.json")}

    def make(self, rig: Rig, clients: Clients) -> None:
        """Bring back what a killed run has left away; make clusters, pools and volumes."""
        losses.mend(rig, clients)
        volumes.make(rig, clients)

    def is_left(self, run: Run, scenario: Scenario, origin: int) -> bool:
        return super().is_left(run, scenario, origin) or bool(losses.remaining(run, scenario, origin))

    def play(self, rig: Rig, clients: Clients) -> None:
        super().play(rig, clients)
        losses.play(rig, clients)

    def prepare(self, rig: Rig, block: Block) -> None:
        """Have volumes idle, and all that fleets read on them written again.

        Of blocks for evidence only the first one of a session has the files of fleets written.
        """
        volumes.idle(rig)
        if not (block.evidence and rig.warm) and fleets.warm_up(rig):
            volumes.idle(rig)
        rig.warm = True

    def check(self, rig: Rig, block: Block) -> None:
        volumes.check_block(rig, block.block)

    def device(self, rig: Rig, arm: Arm, load: Workload) -> Device:
        """Return the file that an arm measures, filled; fleets fill their files before each block."""
        if load.is_fleet:
            return fleets.device(rig, arm)
        if not arm.volume:
            return super().device(rig, arm, load)
        volumes.prefill(rig, arm)
        return volumes.device(rig, arm)

    def place(self, rig: Rig, arm: Arm) -> dict[str, str]:
        """How the ledger names the volume of an arm, and the node that is to own it."""
        if not arm.volume:
            return super().place(rig, arm)
        return volumes.ledger_place(rig, arm.volume) | {"owner": volumes.owner_for(rig, arm)}

    def before(self, rig: Rig, arm: Arm) -> dict[str, Any] | None:
        """Have volumes at rest and owned as the arm wants; return what nodes have counted so far."""
        volumes.await_settled(rig)
        if arm.volume:
            volumes.place(rig, arm)
        return before(rig, arm)

    def run(
        self, rig: Rig, arm: Arm, load: Workload, name: str, device: Device, job: Job
    ) -> dict[str, bytes]:
        """Run the tool of a trial, of a fleet on all its machines."""
        if not load.is_fleet:
            return super().run(rig, arm, load, name, device, job)
        return fleets.run(rig, arm, load, name, job, limit_s=load.ramp_s + load.runtime_s + START_S)

    def after(self, rig: Rig, arm: Arm, begun: dict[str, Any] | None) -> dict[str, bytes]:
        """Return the raw file of what the nodes counted before and after a trial, where they did."""
        document = after(rig, arm, begun)
        return {} if document is None else {counters.KIND: document}

    def settle(self, rig: Rig, arm: Arm, load: Workload) -> None:
        volumes.settle(rig, arm, load.write_pct)

    def forget(self, rig: Rig, arm: Arm) -> None:
        """Look again who owns a volume, or where a disk is."""
        if arm.volume:
            volumes.forget(rig, arm.volume)
        else:
            super().forget(rig, arm)


STEPS = VolumeSteps()


def before(rig: Rig, arm: Arm) -> dict[str, Any] | None:
    """Return the running totals of all nodes before a trial; None for an arm without a cluster.

    Those after the last trial serve where nothing has happened since.

    Raises StepFailed with the node's own sentence.
    """
    cluster = _cluster(rig, arm)
    if cluster is None:
        return None
    return rig.counted.pop(cluster, None) or _count(rig, cluster)


def after(rig: Rig, arm: Arm, first: dict[str, Any] | None) -> bytes | None:
    """Return the document of the totals before and after a trial; None where there were none before."""
    cluster = _cluster(rig, arm)
    if cluster is None or first is None:
        return None
    rig.counted[cluster] = _count(rig, cluster)
    return json.dumps({"before": first, "after": rig.counted[cluster]}, separators=(",", ":")).encode()


def _cluster(rig: Rig, arm: Arm) -> str | None:
    return rig.scenario.volume_named(arm.volume).cluster if arm.volume else None


def _count(rig: Rig, cluster: str) -> dict[str, Any]:
    """Ask all nodes at once."""
    nodes = next(item.nodes for item in rig.scenario.cluster if item.name == cluster)
    request = steps.Counters()
    answers = node_steps.side_by_side(
        (node, partial(node_steps.run, rig, node, "counters", request)) for node in nodes
    )
    return {node: answer.state for node, answer in zip(nodes, answers, strict=True)}
