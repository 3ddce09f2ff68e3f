"""Losses of a scenario: grids of them in its file, and whether they fit its volumes. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

from diskbook.clusters.design import survival
from diskbook.design.consistency import refer
from diskbook.design.model import Loss, Scenario


@dataclass(frozen=True)
class TakenAway:
    """Nodes that are switched off, and disks that are detached, by their node."""

    nodes: list[str]
    disks: dict[str, list[str]]


def rows(written: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
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


def check(scenario: Scenario) -> None:
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
    least = survival.LEAST_NODES.get(loss.lost, 1)
    if nodes < least:
        raise ValueError(
            f"{where}: of {nodes} nodes nothing is left without {survival.WORDS[loss.lost]}; "
            f"take another loss, or a volume on {least} nodes or more"
        )
    if not survival.is_possible(loss.lost, nodes, drives):
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
    members = survival.members(lost, len(nodes))
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
