"""Where the copies of a volume lie, and what it outlives."""

from __future__ import annotations

import numpy as np
import pytest

from diskbook_emulator.volumes import (
    SLAB_BYTES,
    Layout,
    arrange,
    expected_write_ms,
    lost_bands,
    pool_holds,
    slabs_taken,
)

KINDS = {
    "simple": (4, 1, [4.0], 4),
    "two-way": (4, 2, [4.0], 4),
    "three-way": (4, 3, [4.0], 4),
    "nested-mirror": (4, 2, [4.0], 2),
    "nested-parity": (4, 2, [1.0, 5.0], 2),
}


def made(kind: str) -> Layout:
    disks, nodes, sizes, columns = KINDS[kind]
    return arrange(kind, disks, nodes, sizes, columns)


@pytest.mark.parametrize("kind", KINDS)
def test_no_two_places_share_a_slab_and_all_disks_are_used_alike(kind: str) -> None:
    layout = made(kind)
    pairs = np.concatenate(
        [np.stack([tier.members, tier.slabs], axis=-1).reshape(-1, 2) for tier in layout.tiers]
    )
    assert len(np.unique(pairs, axis=0)) == len(pairs)
    taken = slabs_taken(layout)
    assert np.ptp(taken) <= 2 * len(layout.tiers)
    assert taken.sum() * SLAB_BYTES == layout.footprint_bytes


@pytest.mark.parametrize("kind", KINDS)
def test_the_places_of_a_band_are_on_different_disks(kind: str) -> None:
    for tier in made(kind).tiers:
        flat = tier.members.reshape(len(tier.members), -1)
        assert all(len(set(band)) == band.size for band in flat.tolist() for band in [np.array(band)])


@pytest.mark.parametrize(
    ("kind", "share"), [("simple", 1), ("two-way", 1 / 2), ("three-way", 1 / 3), ("nested-mirror", 1 / 4)]
)
def test_efficiency_is_that_of_the_copies(kind: str, share: float) -> None:
    layout = made(kind)
    assert layout.size_bytes / layout.footprint_bytes == pytest.approx(share)


@pytest.mark.parametrize(("disks", "percent"), [(4, 34.6), (5, 36.4), (6, 37.5), (7, 38.3), (9, 38.3)])
def test_efficiency_of_100_and_500_gb_of_nested_parity_is_the_documented_one(
    disks: int, percent: float
) -> None:
    layout = arrange("nested-parity", disks, 2, [100, 500], 2)
    assert 100 * layout.size_bytes / layout.footprint_bytes == pytest.approx(percent, abs=0.1)


def test_each_node_has_one_copy_of_a_mirror_and_two_of_a_nested_one() -> None:
    for kind, each in (("two-way", 1), ("three-way", 1), ("nested-mirror", 2)):
        layout = made(kind)
        nodes = np.array(layout.nodes)[layout.tiers[0].members]
        for node in set(layout.nodes):
            assert ((nodes == node).all(axis=2).sum(axis=1) == each).all()


def test_two_copies_over_three_nodes_take_all_pairs_of_nodes() -> None:
    layout = arrange("two-way", 4, 3, [1], 4)
    nodes = np.array(layout.nodes)[layout.tiers[0].members[:, :, 0]]
    assert {tuple(sorted(pair)) for pair in nodes.tolist()} == {(0, 1), (0, 2), (1, 2)}


def test_parity_is_on_another_disk_in_each_band() -> None:
    parity = made("nested-parity").tiers[1]
    assert parity.data_columns == 3
    assert set(parity.members[:4, 0, -1].tolist()) == {0, 1, 2, 3}
    assert set(parity.members[:4, 1, -1].tolist()) == {4, 5, 6, 7}


def test_a_second_volume_lies_behind_the_first() -> None:
    first = made("two-way")
    second = arrange("two-way", 4, 2, [1.0], 4, taken=slabs_taken(first))
    assert (second.tiers[0].slabs.min(), first.tiers[0].slabs.max()) == (256, 255)


@pytest.mark.parametrize(
    ("kind", "disks", "nodes", "columns"),
    [("three-way", 4, 2, 4), ("nested-mirror", 4, 3, 2), ("nested-mirror", 4, 2, 3), ("two-way", 4, 2, 5)],
)
def test_what_does_not_fit_on_the_disks_is_refused(kind: str, disks: int, nodes: int, columns: int) -> None:
    with pytest.raises(ValueError, match=rf"a {kind} volume of {columns} columns does not fit on"):
        arrange(kind, disks, nodes, [1.0], columns)


def survives(kind: str, lost: set[int], lost_nodes: set[int] | None = None) -> bool:
    """Whether a volume is there without these disks and nodes, by its pool and its bands."""
    layout, gone = made(kind), lost_nodes or set()
    away = lost | {member for member, node in enumerate(layout.nodes) if node in gone}
    up = set(range(len(layout.nodes))) - lost
    bands = sum(lost_bands(tier, ~np.isin(tier.members, list(away))) for tier in layout.tiers)
    return pool_holds(layout.nodes, up, set(layout.nodes) - gone, witness=True) and bands == 0


@pytest.mark.parametrize(
    ("kind", "lost", "nodes", "there"),
    [  # "survives" of the documentation, disk 0 to 3 on node 0, 4 to 7 on node 1, 8 to 11 on node 2
        ("simple", {0}, set(), False),
        ("two-way", {0}, set(), True),
        ("two-way", {0, 1, 2}, set(), True),
        ("two-way", set(), {0}, True),
        ("two-way", {0, 5}, set(), False),
        ("two-way", {4}, {0}, False),
        ("three-way", {0, 5}, set(), True),
        ("three-way", {5}, {0}, True),
        ("three-way", set(), {0, 1}, False),
        ("nested-mirror", {0, 5}, set(), True),
        ("nested-mirror", {0, 1}, set(), True),
        ("nested-mirror", {4}, {0}, True),
        ("nested-mirror", set(), {0, 1}, False),
        ("nested-parity", {0, 5}, set(), True),
        ("nested-parity", {0, 1}, set(), True),
        ("nested-parity", {4}, {0}, True),
    ],
)
def test_what_the_documentation_says_a_volume_survives(
    kind: str, lost: set[int], nodes: set[int], there: bool
) -> None:
    assert survives(kind, lost, nodes) is there


def test_two_nodes_without_a_witness_stop_with_either() -> None:
    nodes = (0, 0, 1, 1)
    assert pool_holds(nodes, range(4), {0, 1}, witness=False)
    assert not pool_holds(nodes, range(4), {0}, witness=False)


@pytest.mark.parametrize(("sigma", "expected"), [(0.1, (1.056, 1.086, 1.106)), (0.2, (1.112, 1.174, 1.216))])
def test_the_slowest_of_two_three_and_four_copies(sigma: float, expected: tuple[float, ...]) -> None:
    means = [expected_write_ms([1.0] * copies, sigma) for copies in (2, 3, 4)]
    assert means == pytest.approx(expected, rel=0.002)


def test_a_far_copy_is_the_slowest() -> None:
    assert expected_write_ms([1.0, 1.0], 0.0, [0.0, 0.3]) == pytest.approx(1.3)
