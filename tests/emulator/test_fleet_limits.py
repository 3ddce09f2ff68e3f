"""Fleets that the emulator would not play undistorted are refused before anything is made."""

from __future__ import annotations

from pathlib import Path

import pytest

from diskbook.design.model import Scenario
from diskbook.emulated import cloud
from diskbook.facts.errors import UsageError
from diskbook_emulator.profile import Profile, load_profile
from support import s2d

PLANTED = 'extends = "default"\n[drives.s2d-azure]\niops = 900\nmb_s = 50\n'


def scenario(**load: object) -> Scenario:
    """The cluster of three nodes with four P30 each, and a fleet of 12 machines on it."""
    tables = s2d.raw()
    tables["comparison"] = []
    fleet = {"name": "fleet", "block_size": "4K", "write_pct": 0, "threads": 10, "queue_depth": 8}
    tables["workload"].append({**fleet, "instances": 12, "arms": ["s2d-3"], **load})
    return Scenario.model_validate(tables)


def planted(tmp_path: Path, text: str = PLANTED) -> Profile:
    path = tmp_path / "planted.toml"
    path.write_text(text)
    return load_profile(str(path))


def test_the_documented_limits_of_twelve_drives_are_too_much_and_planted_ones_are_not(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as refused:
        cloud.check(load_profile("default"), scenario())
    assert str(refused.value).startswith(
        "workload fleet: 12 machines on s2d-3 would do up to 61,200 IOPS under the emulator's profile "
        "'default', of which at most 12,000 are played undistorted"
    )
    assert "[drives.s2d-azure]" in str(refused.value)
    cloud.check(planted(tmp_path), scenario())


@pytest.mark.parametrize(
    ("load", "most"),
    [
        ({"rate": 6000.0}, 6000),
        ({"threads": 1, "queue_depth": 1}, 12 / 0.00403),
        ({"block_size": "64K"}, 12 * 200e6 * 1.02 / 65536),
    ],
)
def test_a_rate_a_short_queue_and_large_blocks_bound_it_too(load: dict[str, object], most: float) -> None:
    made = scenario(**load)
    arm = next(arm for arm in made.arm if arm.name == "s2d-3")
    own = next(item for item in made.workload if item.name == "fleet")
    assert cloud.most_iops(load_profile("default"), made, arm, own) == pytest.approx(most, rel=0.001)


def test_the_drives_of_nested_resiliency_serve_what_is_played_at_most() -> None:
    drives = load_profile("default").drives["nested-resiliency"]
    assert 0.99 * cloud.MOST_IOPS < 8 * 1.02 * drives.iops <= cloud.MOST_IOPS
