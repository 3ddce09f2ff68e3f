"""Which comparisons of a scenario will get no verdict on latency, since no single I/O tells a queue."""

from __future__ import annotations

from diskbook.design.model import Scenario, Workload


def missing(scenario: Scenario) -> list[str]:
    """Say which comparisons of latency lack the same load at queue depth 1 in one of their arms.

    Without it nothing tells whether a limit that no table names makes the latency (`throttling.saturation`).
    """
    notes = []
    for item in scenario.comparison:
        load = scenario.workload_named(item.workload)
        if not item.metric.startswith("lat") or load.outstanding == 1:
            continue
        singles = [other for other in scenario.workload if other.outstanding == 1 and _alike(other, load)]
        lacking = [
            arm for arm in (item.arm, item.base_arm) if not any(single.meets(arm) for single in singles)
        ]
        if lacking:
            notes.append(
                f"{item.arm} / {item.base_arm}, {load.name}: without the same load at queue depth 1 on "
                f"{' and '.join(lacking)} nothing tells a queue from the disk, so no verdict on latency."
            )
    return notes


def _alike(load: Workload, other: Workload) -> bool:
    """Whether two loads are of one kind and block size, so that one may be judged by the other."""
    return (_kind(load), load.block_size) == (_kind(other), other.block_size)


def _kind(load: Workload) -> str:
    if load.sync == "fdatasync":
        return "commit"
    return {0: "read", 100: "write"}.get(load.write_pct, "read+write")
