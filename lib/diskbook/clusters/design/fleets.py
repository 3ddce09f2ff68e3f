"""What fleets measure: machines on each volume, what they fill there, and whether both fit. Pure."""

from typing import NamedTuple

from diskbook.design.model import IMPORTED, Arm, Scenario, Volume, Workload
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


def check(scenario: Scenario) -> None:
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
