"""Where copies lie by the rules, and as emulated volumes have them."""

from __future__ import annotations

import pytest

from diskbook.clusters.design import copies
from diskbook.design.model import Volume
from diskbook_emulator.volumes import arrange


def volume(kind: str, columns: int) -> Volume:
    size = {"mirror_gib": 1, "parity_gib": 2} if kind == "nested-parity" else {"size_gib": 1}
    place = {"machine": "m"} if kind == "simple" else {"cluster": "c"}
    return Volume.model_validate(
        {"name": "v", "kind": kind, "disk": "d", "columns": columns, **size, **place}
    )


@pytest.mark.parametrize(
    ("kind", "nodes", "disks", "columns"),
    [
        ("simple", 1, 4, 4),
        ("two-way", 2, 4, 4),
        ("two-way", 3, 4, 3),
        ("three-way", 3, 4, 4),
        ("three-way", 3, 3, 2),
        ("nested-mirror", 2, 4, 2),
        ("nested-mirror", 2, 5, 2),
        ("nested-parity", 2, 4, 2),
        ("nested-parity", 2, 9, 2),
    ],
)
def test_the_rule_is_that_of_the_emulators_layouts(kind: str, nodes: int, disks: int, columns: int) -> None:
    sizes = [0.5, 2.0] if kind == "nested-parity" else [1.0]
    layout = arrange(kind, disks, nodes, sizes, columns)
    tiers = [{"parity": tier.parity, "members": tier.members.tolist()} for tier in layout.tiers]
    told = copies.of_layout({"nodes": list(layout.nodes), "tiers": tiers}, bands=6)
    ruled = copies.by_rule(volume(kind, columns), nodes, disks, bands=6)
    assert (told.nodes, told.tiers) == (ruled.nodes, ruled.tiers)
    assert ruled.by_rule and not told.by_rule
