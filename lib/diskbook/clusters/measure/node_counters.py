"""Performance counters of a cluster's nodes around each trial on one of its volumes: bytes on the wire."""

import json
from functools import partial
from typing import Any

from diskbook.clusters.measure import node_steps
from diskbook.clusters.powershell import steps
from diskbook.design.model import Arm
from diskbook.measure.bench.rig import Rig


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
