"""Whether clusters, volumes and the arms on them name one another rightly."""

from diskbook.design.consistency import refer
from diskbook.design.model import Arm, Cluster, Scenario, Volume


def check(scenario: Scenario) -> None:
    """Hold the clusters and volumes of a scenario against the rest of it.

    Raises ValueError with one sentence on the first that does not fit.
    """
    for cluster in scenario.cluster:
        _check_nodes(scenario, cluster)
    for volume in scenario.volume:
        _check_place(scenario, volume)
        _check_tiers(volume)
    for arm in scenario.arm:
        _check_arm(scenario, arm)
    _check_pools(scenario)


def _check_nodes(scenario: Scenario, cluster: Cluster) -> None:
    where = f"[[cluster]] {cluster.name}"
    for node in cluster.nodes:
        refer(scenario, where, machine=node)
        if cluster.nodes.count(node) > 1:
            raise ValueError(f"{where}: {node} is named twice in nodes; name each machine once")
        others = [item.name for item in scenario.cluster if node in item.nodes and item is not cluster]
        if others:
            raise ValueError(f"{where}: {node} is a node of {others[0]} as well; a machine has one cluster")


def _check_place(scenario: Scenario, volume: Volume) -> None:
    where = f"[[volume]] {volume.name}"
    refer(scenario, where, disk=volume.disk)
    if volume.kind == "simple":
        if volume.machine is None or volume.cluster is not None:
            raise ValueError(f"{where}: a simple volume is one machine's; name machine, and no cluster")
        refer(scenario, where, machine=volume.machine)
    elif volume.cluster is None or volume.machine is not None:
        raise ValueError(f"{where}: a {volume.kind} volume is a cluster's; name cluster, and no machine")
    else:
        refer(scenario, where, cluster=volume.cluster)


def _check_tiers(volume: Volume) -> None:
    tiers = (volume.mirror_gib is not None, volume.parity_gib is not None)
    if volume.kind == "nested-parity" and (volume.size_gib is not None or not all(tiers)):
        raise ValueError(
            f"[[volume]] {volume.name}: a nested-parity volume has two tiers; write mirror_gib and "
            "parity_gib, and no size_gib"
        )
    if volume.kind != "nested-parity" and (volume.size_gib is None or any(tiers)):
        raise ValueError(
            f"[[volume]] {volume.name}: a {volume.kind} volume has no tiers; write size_gib, "
            "and neither mirror_gib nor parity_gib"
        )


def _check_arm(scenario: Scenario, arm: Arm) -> None:
    where = f"[[arm]] {arm.name}"
    if not arm.disk and not arm.volume:
        raise ValueError(
            f"{where}: the key 'disk' is missing; write what the arm measures, a disk or a volume"
        )
    if arm.disk and arm.volume:
        raise ValueError(f"{where}: an arm measures one thing; write disk or volume, not both")
    if not arm.volume:
        if arm.owner is not None:
            raise ValueError(f"{where}: only a volume has an owner; leave owner out, or name a volume")
        return
    refer(scenario, where, volume=arm.volume)
    nodes = scenario.nodes_of(scenario.volume_named(arm.volume))
    for key, machine in (("machine", arm.machine), ("owner", arm.owner or arm.machine)):
        refer(scenario, where, machine=machine)
        if machine not in nodes:
            raise ValueError(
                f"{where}: {key} {machine} is not a node of {arm.volume}; take one of {', '.join(nodes)}"
            )


def _check_pools(scenario: Scenario) -> None:
    """A disk of a pool is the pool's alone."""
    pools = {volume.disk: volume.name for volume in scenario.volume}
    for kind in ("arm", "check", "drill"):
        for item in getattr(scenario, kind):
            if item.disk in pools:
                raise ValueError(
                    f"[[{kind}]] {item.name}: the disk {item.disk} is in the pool of {pools[item.disk]}; "
                    "take another disk"
                )
    for disk in scenario.disk:
        if disk.count > 1 and disk.name not in pools:
            raise ValueError(f"[[disk]] {disk.name}: count is for the disks of a pool; leave it out")
