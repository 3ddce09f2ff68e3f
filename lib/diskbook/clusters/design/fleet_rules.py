"""Whether the loads of fleets fit the volumes that they are spread over."""

from __future__ import annotations

from diskbook.design.model import IMPORTED, Arm, Scenario, Workload


def check(scenario: Scenario) -> None:
    """Hold loads on many machines, and arms on several volumes, against each other.

    Not of imported results: no file tells what a fleet of others lay on.

    Raises
    ------
    ValueError
        With one sentence on the first that does not fit.
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
