"""What a volume outlives: the rule, and the emulator's layouts, which must say the same."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from diskbook.clusters.design import volume_rules
from diskbook.clusters.design.volume_rules import LOST, is_possible, members, survives
from diskbook.design import scenario_file
from diskbook_emulator.volumes import Layout, arrange, lost_bands, pool_holds
from support import SCENARIOS

# Disks a node, nodes, sizes in GiB, columns.
SHAPES = {
    "two-way": [(4, 2, [1.0], 4), (2, 2, [1.0], 2), (4, 3, [1.0], 4)],
    "three-way": [(4, 3, [1.0], 4), (3, 3, [1.0], 3), (2, 3, [1.0], 2)],
    "nested-mirror": [(4, 2, [1.0], 2), (5, 2, [1.0], 2)],
    "nested-parity": [(4, 2, [0.25, 1.0], 2), (6, 2, [0.25, 1.0], 3)],
    "simple": [(4, 1, [1.0], 4)],
}
CASES = [(kind, *shape) for kind, shapes in SHAPES.items() for shape in shapes]


def plays(layout: Layout, lost: str, *, witness: bool = True) -> bool:
    """What the emulator makes of a loss: by slabs that can be read, and by the pool."""
    nodes = len(set(layout.nodes))
    drives, gone = len(layout.nodes) // nodes, members(lost, nodes)
    disks = {node * drives + number for node, number in gone.drives}
    left = set(range(nodes)) - set(gone.nodes)
    away = disks | {member for member, node in enumerate(layout.nodes) if node not in left}
    clean = [~np.isin(tier.members, list(away)) for tier in layout.tiers]
    bands = sum(lost_bands(tier, there) for tier, there in zip(layout.tiers, clean, strict=True))
    return pool_holds(layout.nodes, set(range(len(layout.nodes))) - disks, left, witness) and not bands


@pytest.mark.parametrize(("kind", "disks", "nodes", "sizes", "columns"), CASES)
def test_rule_and_layout_say_the_same_of_every_loss(
    kind: str, disks: int, nodes: int, sizes: list[float], columns: int
) -> None:
    layout = arrange(kind, disks, nodes, sizes, columns)
    for lost in LOST:
        if is_possible(lost, nodes, disks):
            assert plays(layout, lost) is survives(kind, nodes, disks, lost), lost


def test_the_matrix_of_the_documentation() -> None:
    told = {
        "two-way": "yes yes no yes no",
        "nested-mirror": "yes yes yes yes yes",
        "nested-parity": "yes yes yes yes yes",
    }
    for kind, cells in told.items():
        online = [survives(kind, 2, 4, lost) for lost in LOST[:5]]
        assert online == [cell == "yes" for cell in cells.split()], kind
    assert [survives("three-way", 3, 4, lost) for lost in LOST] == [True] * 5 + [False]
    assert [survives("single-parity", 3, 4, lost) for lost in LOST] == [True, True, False, True, False, False]
    assert [survives("dual-parity", 4, 4, lost) for lost in LOST] == [True] * 6


def test_without_a_witness_two_nodes_stand_no_loss_of_one() -> None:
    assert survives("nested-mirror", 2, 4, "drive-each", witness=False)
    assert not survives("nested-mirror", 2, 4, "node", witness=False)
    assert not survives("dual-parity", 4, 4, "two-nodes", witness=False)


def test_half_of_the_drives_of_three_nodes_is_no_majority() -> None:
    assert not survives("three-way", 3, 2, "node-and-drive") and survives("three-way", 3, 3, "node-and-drive")


# Of a band that has something at `there` (row, column, member): one place of it, moved to another member.
MOVED = [
    ("two-way", 0, (1, 0, 6), (0, 0, 7), {"node"}),  # both copies on the second node
    ("three-way", 0, (0, 0, 0), (2, 0, 7), {"node-and-drive"}),  # two of three copies on the second
    ("nested-mirror", 0, (0, 0, 0), (1, 0, 0), {"node-and-drive"}),  # both copies of a node on one disk
    ("nested-parity", 1, (0, 0, 0), (0, 1, 0), {"node-and-drive"}),  # two columns of a row on one disk
]


@pytest.mark.parametrize(("kind", "number", "there", "to", "turned"), MOVED)
def test_one_copy_moved_turns_a_cell(
    kind: str, number: int, there: tuple[int, int, int], to: tuple[int, int, int], turned: set[str]
) -> None:
    layout = arrange(kind, *SHAPES[kind][0])
    tier, (row, column, member) = layout.tiers[number], there
    band = int(np.flatnonzero(tier.members[:, row, column] == member)[0])
    places = tier.members.copy()
    places[band, to[0], to[1]] = to[2]
    tiers = tuple(replace(each, members=places) if each is tier else each for each in layout.tiers)
    moved = replace(layout, tiers=tiers)
    nodes = len(set(layout.nodes))
    cells = [lost for lost in LOST if is_possible(lost, nodes, 4)]
    assert {lost for lost in cells if plays(moved, lost) != plays(layout, lost)} == turned
    assert not any(plays(moved, lost) for lost in turned)


@pytest.mark.parametrize("lost", LOST)
def test_the_first_node_is_never_lost_and_a_drive_is_left_everywhere(lost: str) -> None:
    gone = members(lost, 3)
    assert 0 not in gone.nodes and is_possible(lost, 3, 3)
    assert gone.hit and not (set(gone.nodes) & {node for node, _ in gone.drives})
    assert not is_possible(lost, 1, 4) or lost in ("drive", "two-drives")


def test_one_server_outlives_nothing() -> None:
    assert members("two-drives", 1).drives == ((0, 0), (0, 1))
    assert not survives("simple", 1, 4, "drive")


def test_the_volumes_of_a_scenario_are_judged_with_their_own_witness() -> None:
    scenario = scenario_file.load(str(SCENARIOS / "losses.toml"), "quick")
    judged = {loss.name: volume_rules.of_volume(scenario, scenario.volume_named(loss.volume), loss.lost)
              for loss in scenario.loss}  # fmt: skip
    assert judged == {
        "mirror-drive-each": False,
        "mirror-node": True,
        "nested-drive-each": True,
        "nested-node": True,
        "majority": False,
    }
