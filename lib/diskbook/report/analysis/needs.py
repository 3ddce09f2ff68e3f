"""What the sections of a report rest on, so that it is said before the first trial what will be left out."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from diskbook.clusters.analysis import s2d_azure
from diskbook.clusters.analysis.nested import arms as nested_arms
from diskbook.design.model import Scenario
from diskbook.report.analysis import disk_options

Look = Callable[[Scenario], bool]


@dataclass(frozen=True)
class Section:
    """A section of a report: what it shows, and the loads, arms, or other part that it cannot do without."""

    shows: str
    loads: tuple[str, ...] = ()
    arms: tuple[str, ...] = ()
    part: str = ""
    has_part: Look = lambda scenario: True

    def lacking(self, scenario: Scenario) -> Iterator[str]:
        """Name what the scenario lacks of it."""
        loads, arms = ({item.name for item in items} for items in (scenario.workload, scenario.arm))
        yield from (f"workload {name}" for name in self.loads if name not in loads)
        yield from (f"arm {name}" for name in self.arms if name not in arms)
        if not self.has_part(scenario):
            yield self.part


def _has_closed_loops(scenario: Scenario) -> bool:
    return any(load.rate is None and load.sync is None for load in scenario.workload)


def _has_two_way(scenario: Scenario) -> bool:
    return any(nested_arms.kind(scenario, arm.name) == nested_arms.BASE for arm in scenario.arm)


def _has_volumes(scenario: Scenario) -> bool:
    return any(arm.volume for arm in scenario.arm)


_SINGLE, _RATE = disk_options.SINGLE, disk_options.WRITES
SECTIONS: Mapping[str, tuple[Section, ...]] = {
    "disk-options": (
        Section("what each option buys", loads=(_RATE, _SINGLE)),
        Section("access times", loads=(_SINGLE,)),
        *(Section(f"the rates of {name}", loads=(name,)) for name in disk_options.PANELS),
        Section("the end of a burst", loads=(disk_options.BURST,)),
    ),
    "local-disk": (Section("curves and knees", part="closed loop", has_part=_has_closed_loops),),
    "nested-resiliency": (
        Section("ratios to the two-way mirror", part="arm on a two-way mirror", has_part=_has_two_way),
        Section("losses and resync", part="[[loss]]", has_part=lambda scenario: bool(scenario.loss)),
    ),
    "s2d-azure": (
        Section("the map of ratios", arms=(s2d_azure.CLUSTER, s2d_azure.SERVER)),
        Section("more disks", arms=(s2d_azure.MORE_DISKS, s2d_azure.SERVER)),
        Section("the load away from its owner", arms=(s2d_azure.REMOTE, s2d_azure.CLUSTER)),
        Section("what volumes may do", part="arm on a volume", has_part=_has_volumes),
    ),
    "shared-zrs": (
        Section("reservations", part="[[check]]", has_part=lambda scenario: bool(scenario.check)),
        Section("zone drills", part="[[drill]]", has_part=lambda scenario: bool(scenario.drill)),
    ),
}
"""By the analysis that a scenario names. Those that are not here show whatever there is."""


def missing(scenario: Scenario) -> list[str]:
    """Say in a sentence which sections a scenario's report will leave out, and why; nothing where none."""
    name = scenario.analysis_notebook.removeprefix("3-analyse-")
    lacking = {section.shows: tuple(section.lacking(scenario)) for section in SECTIONS.get(name, ())}
    parts = [f"{shows} (no {' and no '.join(names)})" for shows, names in lacking.items() if names]
    if not parts:
        return []
    return [
        f'The report by analysis = "{name}" will leave out {"; ".join(parts)}. Name them as the scenario '
        f"{name} does, or choose another analysis."
    ]
