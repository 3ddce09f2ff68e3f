"""Probes: short loads that show that no limit holds the single I/Os that are compared.

A limit below the rate of a single I/O looks like a slow disk, until two I/Os in flight give no higher rate.
"""

from __future__ import annotations

from collections.abc import Iterator

from diskbook.design.model import LONGEST_NAME, Scenario, Workload

SUFFIX = "-probe"


def expand(scenario: Scenario) -> Scenario:
    """Add a load of two I/Os in flight to each load of single I/Os that is compared and has no deeper one.

    It is measured in the first block, for `design.probe_s`, by the compared arms that have no deeper load of
    its kind and block size. Without `design.probe_s` none is added.
    """
    probes = tuple(_probes(scenario)) if scenario.design.probe_s else ()
    return scenario.model_copy(update={"workload": (*scenario.workload, *probes)}) if probes else scenario


def _probes(scenario: Scenario) -> Iterator[Workload]:
    deeper = [load for load in scenario.workload if load.outstanding > 1 and load.rate is None]
    known = {(_kind(load), arm.name) for load in deeper for arm in scenario.arm if load.meets(arm.name)}
    for load in scenario.workload:
        compared = {
            arm
            for item in scenario.comparison
            if item.workload == load.name and item.metric.startswith("lat")
            for arm in (item.arm, item.base_arm)
        }
        arms = tuple(
            arm.name
            for arm in scenario.arm
            if arm.name in compared and load.meets(arm.name) and (_kind(load), arm.name) not in known
        )
        if arms and _can_be_probed(load):
            known |= {(_kind(load), arm) for arm in arms}
            yield _probe(load, arms, scenario.design.probe_s)


def _kind(load: Workload) -> tuple[int, int, bool]:
    """What loads have in common that one limit may hold."""
    return load.block_size, load.write_pct, load.sync == "fdatasync"


def _can_be_probed(load: Workload) -> bool:
    """Whether it is a closed loop of single I/Os that another trial repeats, whatever came before it."""
    again = load.region == "filled" and load.cache_state == "any" and load.verbatim is None
    return again and load.outstanding == 1 and load.rate is None and not load.is_fleet


def _probe(load: Workload, arms: tuple[str, ...], seconds: float) -> Workload:
    """Two I/Os of a load in flight; commits in a thread each, since a sync waits for all of its own."""
    two = {"threads": 2} if load.sync == "fdatasync" else {"queue_depth": 2}
    name = load.name[: LONGEST_NAME - len(SUFFIX)].rstrip("-") + SUFFIX
    return load.model_copy(update={**two, "name": name, "arms": arms, "blocks": 1, "runtime_s": seconds})
