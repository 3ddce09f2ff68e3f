"""What fleets measure: how many of a load's machines are on each volume, and what they fill there. Pure."""

from __future__ import annotations

from typing import NamedTuple

from diskbook.design.model import Arm, Scenario, Volume, Workload
from diskbook.facts.units import GIB

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
