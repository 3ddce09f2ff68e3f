"""What the sections of a report rest on, so that it is said before the first trial what will be left out."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from diskbook.design.model import Scenario
from diskbook.report.analysis import companion_files, disk_options

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


_SINGLE, _RATE = disk_options.SINGLE, disk_options.WRITES
SECTIONS: Mapping[str, tuple[Section, ...]] = {
    "disk-options": (
        Section("what each option buys", loads=(_RATE, _SINGLE)),
        Section("access times", loads=(_SINGLE,)),
        *(Section(f"the rates of {name}", loads=(name,)) for name in disk_options.PANELS),
        Section("the end of a burst", loads=(disk_options.BURST,)),
    ),
    "local-disk": (Section("curves and knees", part="closed loop", has_part=_has_closed_loops),),
    "shared-zrs": (
        Section("reservations", part="[[check]]", has_part=lambda scenario: bool(scenario.check)),
        Section("zone drills", part="[[drill]]", has_part=lambda scenario: bool(scenario.drill)),
    ),
}
"""By the analysis that a scenario names. A neighbour's has its own; others show whatever there is."""


def missing(scenario: Scenario) -> list[str]:
    """Say in a sentence which sections a scenario's report will leave out, and why; nothing where none."""
    name = scenario.analysis_notebook.removeprefix("3-analyse-")
    own = getattr(companion_files.ANALYSES.get(name.replace("-", "_")), "SECTIONS", None)
    sections = own or SECTIONS.get(name, ())
    lacking = {section.shows: tuple(section.lacking(scenario)) for section in sections}
    parts = [f"{shows} (no {' and no '.join(names)})" for shows, names in lacking.items() if names]
    if not parts:
        return []
    return [
        f'The report by analysis = "{name}" will leave out {"; ".join(parts)}. Name them as the scenario '
        f"{name} does, or choose another analysis."
    ]
