"""What the core asks about a scenario with clusters, volumes, fleets or losses (`facts.neighbours`). Pure."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, NamedTuple

from diskbook.clusters.design import volume_rules
from diskbook.clusters.design.volume_rules import WORDS as LOST, check as violations
from diskbook.design.consistency import refer
from diskbook.design.model import IMPORTED, Arm, Cluster, Loss, Scenario, Volume, Workload
from diskbook.facts.units import GIB

__all__ = ["LOST", "all_taken_away", "check", "data_sets", "loss_rows", "on_each", "violations"]


def check(scenario: Scenario) -> None:
    """Hold clusters, volumes, fleets and losses against the rest of a scenario.

    Raises ValueError with one sentence on the first that does not fit.
    """
    check_references(scenario)
    check_fleets(scenario)
    check_losses(scenario)


@dataclass(frozen=True)
class TakenAway:
    """Nodes that are switched off, and disks that are detached, by their node."""

    nodes: list[str]
    disks: dict[str, list[str]]


def loss_rows(written: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Make a row of each volume and loss of a file's losses, whose keys may be lists.

    - `written`: rows as a file has them, e.g. ``{"volume": ["a", "b"], "lost": ["drive", "node"]}``. Nothing
      of them has been checked yet.

    Returns rows of one volume and one loss each, named `{volume}-{lost}` where they have no name.
    """
    return [row for each in written for row in _rows(each)]


def _rows(written: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    axes = [_listed(written.get(key)) for key in ("volume", "lost")]
    alone = not any(isinstance(written.get(key), list) for key in ("volume", "lost"))
    for volume, lost in product(*axes):
        made = {"name": f"{volume}-{lost}"} if volume is not None and lost is not None else {}
        named = {"name": f"{written['name']}-{volume}-{lost}"} if "name" in written and not alone else {}
        given = {"volume": volume, "lost": lost}
        yield {
            **made,
            **written,
            **named,
            **{key: value for key, value in given.items() if value is not None},
        }


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def check_losses(scenario: Scenario) -> None:
    """Hold losses against the volumes; raises ValueError with the first that does not fit."""
    seen: dict[tuple[str, str], str] = {}
    for loss in scenario.loss:
        where = f"[[loss]] {loss.name}"
        refer(scenario, where, volume=loss.volume)
        _check_members(scenario, loss, where)
        earlier = seen.setdefault((loss.volume, loss.lost), loss.name)
        if earlier != loss.name:
            raise ValueError(f"{where}: {earlier} is the same loss of {loss.volume}; leave one of them out")


def _check_members(scenario: Scenario, loss: Loss, where: str) -> None:
    volume = scenario.volume_named(loss.volume)
    if volume.cluster is None:
        raise ValueError(
            f"{where}: {volume.name} is one machine's, and nobody is left to ask when that is lost; "
            "name a volume of a cluster"
        )
    nodes, drives = len(scenario.nodes_of(volume)), scenario.disk_named(volume.disk).count
    least = volume_rules.LEAST_NODES.get(loss.lost, 1)
    if nodes < least:
        raise ValueError(
            f"{where}: of {nodes} nodes nothing is left without {volume_rules.WORDS[loss.lost]}; "
            f"take another loss, or a volume on {least} nodes or more"
        )
    if not volume_rules.is_possible(loss.lost, nodes, drives):
        raise ValueError(
            f"{where}: a node has {drives} of {volume.disk}, and one must be left; raise count of the disk"
        )


def played_together(scenario: Scenario) -> dict[tuple[str, str, str], list[Loss]]:
    """Group losses that are one: of volumes of one cluster and disk, the same members.

    Returns cluster, disk and what is lost to its losses, in the order of the scenario.
    """
    groups: dict[tuple[str, str, str], list[Loss]] = {}
    for loss in scenario.loss:
        volume = scenario.volume_named(loss.volume)
        groups.setdefault((str(volume.cluster), volume.disk, loss.lost), []).append(loss)
    return groups


def taken_away(lost: str, disk: str, nodes: Sequence[str]) -> TakenAway:
    """Name the members of a pool that a loss takes away, as `Scenario.made_disks` names them."""
    members = volume_rules.members(lost, len(nodes))
    disks: dict[str, list[str]] = {}
    for number, drive in members.drives:
        disks.setdefault(nodes[number], []).append(f"{disk}-{nodes[number]}-{drive + 1}")
    return TakenAway([nodes[number] for number in members.nodes], disks)


def all_taken_away(scenario: Scenario) -> list[TakenAway]:
    """Return what each loss that is played takes away; losses that are one count once."""
    groups = [(key, losses[0].volume) for key, losses in played_together(scenario).items()]
    return [
        taken_away(lost, disk, scenario.nodes_of(scenario.volume_named(volume)))
        for (_, disk, lost), volume in groups
    ]


def check_references(scenario: Scenario) -> None:
    """Hold the clusters and volumes of a scenario against the rest of it.

    Raises ValueError with one sentence on the first that does not fit.
    """
    for cluster in scenario.cluster:
        _check_nodes(scenario, cluster)
    for volume in scenario.volume:
        _check_place(scenario, volume)
        _check_tiers(volume)
    for arm in scenario.arm:
        _check_arm_reference(scenario, arm)
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


def _check_arm_reference(scenario: Scenario, arm: Arm) -> None:
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


ROTATE_AT = 0.85
"""Fill of a mirror tier from which on data move to parity, by default ("Mirror-accelerated parity",
windowsserverdocs, read 2026-11-22): what is less stays in the mirror."""


class DataSet(NamedTuple):
    """What fleets have on each volume of an entry: so many files, one for each machine, of so many bytes."""

    instances: int
    file_bytes: int

    @property
    def size_bytes(self) -> int:
        """All files of one volume."""
        return self.instances * self.file_bytes


def on_each(scenario: Scenario, arm: Arm, load: Workload) -> int:
    """Count the machines of a fleet on each volume that it uses."""
    return load.instances // len(used(scenario, arm, load))


def used(scenario: Scenario, arm: Arm, load: Workload) -> dict[str, str]:
    """Return the volumes that a fleet uses, each with its owner: all of an arm; one machine the first."""
    owners = scenario.owners_of(arm)
    return owners if load.instances > 1 else dict(list(owners.items())[:1])


def data_sets(scenario: Scenario) -> dict[str, DataSet]:
    """Return what the fleets of a scenario have on each volume, by the entry's name; the most of any load."""
    sets: dict[str, DataSet] = {}
    for arm, load in scenario.cells:
        if load.is_fleet:
            here = on_each(scenario, arm, load), load.working_set_bytes
            sets[arm.volume] = DataSet(*map(max, zip(sets.get(arm.volume, here), here, strict=True)))
    return sets


def stays_in_mirror(scenario: Scenario, volume: Volume) -> bool:
    """Whether all that fleets have on a volume of two tiers has room in its mirror, and is never parity."""
    data = data_sets(scenario).get(volume.name)
    return bool(data and volume.mirror_gib and data.size_bytes <= ROTATE_AT * volume.mirror_gib * GIB)


def check_fleets(scenario: Scenario) -> None:
    """Hold loads on many machines, and arms on several volumes, against each other.

    Not of imported results: no file tells what a fleet of others lay on.

    Raises ValueError with one sentence on the first that does not fit.
    """
    if scenario.scenario.article == IMPORTED:
        return
    for arm in scenario.arm:
        _check_arm(scenario, arm)
    for arm, load in scenario.cells:
        _check_cell(scenario, arm, load)


def _check_arm(scenario: Scenario, arm: Arm) -> None:
    where, several = f"[[arm]] {arm.name}", arm.volume and scenario.volume_named(arm.volume).count > 1
    if several and arm.owner is not None:
        raise ValueError(
            f"{where}: each node owns one of the volumes {arm.volume} in turn; leave owner out, and write "
            "aligned = false for machines on another node"
        )
    if not arm.aligned and not (arm.volume and scenario.volume_named(arm.volume).cluster):
        raise ValueError(
            f"{where}: only a fleet on volumes of a cluster is aligned with their owners; leave aligned out"
        )


def _check_cell(scenario: Scenario, arm: Arm, load: Workload) -> None:
    where = f"[[workload]] {load.name} on {arm.name}"
    volume = scenario.volume_named(arm.volume) if arm.volume else None
    # Of a fleet that others measured nobody says what its volumes were.
    if load.is_fleet and scenario.name != IMPORTED and (volume is None or volume.cluster is None):
        raise ValueError(
            f"{where}: a fleet runs on volumes of a cluster; leave instances out, or set arms to such"
        )
    alone = load.is_fleet and load.instances == 1  # on the first of the volumes
    if volume is not None and load.instances % volume.count and not alone:
        raise ValueError(
            f"{where}: {load.instances} instances cannot be spread evenly over {volume.count} volumes; "
            f"take a multiple of {volume.count}, or a single one of tool vmfleet"
        )
    if not arm.aligned and not load.is_fleet:
        raise ValueError(f"{where}: the arm moves a fleet's machines; set instances, or give it an owner")
