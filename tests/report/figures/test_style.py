"""The look of arms: what a volume is called, and what sets kinds of volumes apart."""

from __future__ import annotations

from diskbook.design import arm_words
from diskbook.design.model import Scenario
from diskbook.report.figures import style
from support import s2d


def unlabelled(kind: str = "three-way") -> Scenario:
    made = s2d.scenario()
    arms = tuple(arm.model_copy(update={"label": None}) for arm in made.arm)
    volumes = tuple(
        volume.model_copy(update={"kind": kind}) if volume.cluster else volume for volume in made.volume
    )
    return made.model_copy(update={"arm": arms, "volume": volumes})


def test_an_arm_on_a_volume_is_called_by_kind_nodes_and_disks() -> None:
    labels = {arm.name: arm_words.label(unlabelled(), arm.name) for arm in unlabelled().arm}
    assert labels == {
        "ss-4": "simple, 4 disks",
        "ss-8": "simple, 8 disks",
        "s2d-3": "three-way, 3 x 4 disks",
        "s2d-3-remote": "three-way, 3 x 4 disks, owner away",
    }
    assert arm_words.label(s2d.scenario(), "s2d-3") == "S2D, 3 nodes"


def test_nodes_in_several_zones_are_said() -> None:
    made = unlabelled()
    zones = {"n1": "1", "n2": "2", "n3": "3"}
    rows = [item.model_copy(update={"zone": zones.get(item.name, "1")}) for item in made.machine]
    apart = made.model_copy(update={"machine": tuple(rows)})
    assert arm_words.label(apart, "s2d-3") == "three-way, 3 x 4 disks, 3 zones"
    assert arm_words.label(apart, "ss-4") == "simple, 4 disks"


def test_copies_on_other_nodes_look_as_zone_redundancy_does() -> None:
    looks = style.looks(unlabelled())
    assert {name: look.colour for name, look in looks.items()} == {
        "ss-4": style.BLUE,
        "ss-8": style.BLUE,
        "s2d-3": style.VERMILLION,
        "s2d-3-remote": style.VERMILLION,
    }
    assert len({(look.colour, look.marker, look.filled) for look in looks.values()}) == len(looks)
    nested = {
        kind: style.looks(unlabelled(kind))["s2d-3"].colour for kind in ("nested-mirror", "nested-parity")
    }
    assert nested == {"nested-mirror": style.GREEN, "nested-parity": style.PURPLE_DARK}
