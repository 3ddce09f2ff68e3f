"""Files next to a scenario's file: the notebook that analyses its runs, and a module for that notebook.

Both are code, and a run folder may be a stranger's. So nothing in a run folder leads to a file that is
executed, neither a path nor a copy: notebook and module are taken from the folder of the scenario file that
the user names on this command line, or else from the workbook itself. The manifest records their names, so
that it can be said what is missing.
"""

import os
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

from diskbook.design.model import Scenario
from diskbook.design.vocabulary import Provenance
from diskbook.facts import paths
from diskbook.facts.errors import DiskbookError, UsageError
from diskbook.facts.neighbours import LazyTable
from diskbook.results.run import Run

ANALYSES: Mapping[str, ModuleType] = LazyTable(
    {
        "disk_options": "diskbook.report.analysis.disk_options",
        "imported": "diskbook.importing.answers.of_run",
        "local_disk": "diskbook.report.analysis.local_disk",
        "nested_resiliency": "diskbook.clusters.analysis.nested_resiliency",
        "s2d_azure": "diskbook.clusters.analysis.s2d_azure",
        "shared_zrs": "diskbook.clusters.analysis.shared_zrs",
    },
    "analysis of scenarios",
)
"""Modules of the scenarios that come with the workbook, by the name of the notebook."""
VARIABLE = "DISKBOOK_SCENARIO_FILE"
"""Environment variable by which a command tells the notebooks that it executes which file the user named."""
REPORT_LATER = "DISKBOOK_REPORT_LATER"
"""Environment variable by which a command tells its notebook that the report is made later."""
RECORD = "beside_scenario"
"""Key of the manifest: names of the notebook and the module that were beside the scenario's file."""


def check_file(run: Run, file: Path) -> Path:
    """Make sure that a file is the scenario of a run, and return it resolved.

    Raises UsageError when it is not there, or is of another scenario.
    """
    if not file.is_file():
        raise UsageError(f"there is no scenario file {file}")
    if file.stem != run.scenario.name:
        raise UsageError(f"{file} is not the scenario of run {run.name}, which is {run.scenario.name}")
    return file.resolve()


def names(scenario: Scenario, file: Path) -> list[str]:
    """List the names of notebook and module beside a scenario's file, of those that are there."""
    return [
        name for name in (_notebook_name(scenario), _module_name(scenario)) if (file.parent / name).is_file()
    ]


def notebook(scenario: Scenario, file: Path | None) -> Path:
    """Find the notebook that analyses a scenario: beside its file if that is named, else the workbook's.

    Raises UsageError when there is none; the sentence says where one was looked for.
    """
    name = _notebook_name(scenario)
    places = [*([file.parent] if file else []), paths.NOTEBOOKS]
    for place in places:
        if (place / name).is_file():
            return place / name
    known = sorted(path.stem.removeprefix("3-analyse-") for path in paths.NOTEBOOKS.glob("3-analyse-*.ipynb"))
    beside = f"beside {file.name} or " if file else ""
    raise UsageError(
        f"scenario {scenario.name}: there is no notebook {name} {beside}in notebooks/ to analyse it; "
        f'name another in [scenario], for example analysis = "{known[-1]}"'
    )


def check_notebook(run: Run, name: str) -> None:
    """Make sure that a notebook of the workbook is the one that analyses a run.

    Scenarios that share a notebook name it (`analysis`), imports as well; `imported` reads any import. A
    scenario of one's own has a notebook that the workbook has not, and may have copied any.

    Raises UsageError when it analyses runs of another scenario; the sentence names the right one.
    """
    scenario, imported = run.scenario, run.manifest["provenance"] == Provenance.IMPORTED
    named = scenario.analysis_notebook
    if named == name or not (paths.NOTEBOOKS / f"{named}.ipynb").is_file():
        return
    if imported and name == "3-analyse-imported":
        return
    again = f", or import it again with --analysis {name.removeprefix('3-analyse-')}" if imported else ""
    raise UsageError(
        f"run {run.name} is of scenario {scenario.name}, which {name}.ipynb does not analyse: open "
        f"notebooks/{named}.ipynb{again}"
    )


def check_recorded(run: Run, file: Path | None) -> None:
    """Make sure that what was beside the scenario's file when a run was begun is there again.

    Raises UsageError when the file is not named; the sentence says how. Raises DiskbookError when it is
    named, and notebook or module are gone.
    """
    for name in (_notebook_name(run.scenario), _module_name(run.scenario)):
        _recorded(run, name, file)


def module(run: Run, file: Path | None = None) -> ModuleType | None:
    """Load the module of a run's analysis: beside the scenario's file, else the workbook's own of that name.

    - `file`: the scenario's file, where the user named it; by default the one named to the command that
      executes this notebook.

    Returns none where the scenario has none.

    Raises UsageError, DiskbookError as `check_recorded`.
    """
    name = _module_name(run.scenario)
    path = _recorded(run, name, file or _named(run.scenario))
    if path is not None:
        return _load(path)
    return ANALYSES.get(Path(name).stem)


def _recorded(run: Run, name: str, file: Path | None) -> Path | None:
    """Path of a file beside the scenario's; None where the run has none of that name there, nor ever had."""
    if file is not None and (file.parent / name).is_file():
        return file.parent / name
    recorded = run.manifest.get(RECORD)
    if not isinstance(recorded, list) or name not in recorded:
        return None
    if file is None:
        own = f"DIR/{run.scenario.name}.toml"
        raise UsageError(
            f"run {run.name} is analysed by {name} beside its scenario's file, which is not named: write "
            f"'diskbook run {own} --resume {run.name}' or 'diskbook figures {run.name} --scenario {own}'"
        )
    raise DiskbookError(f"{file.parent / name} is gone, by which run {run.name} is analysed; put it back")


def _named(scenario: Scenario) -> Path | None:
    """The scenario's file, where the command that executes this notebook was given it."""
    file = Path(os.environ.get(VARIABLE, ""))
    return file if file.stem == scenario.name and file.is_file() else None


def _notebook_name(scenario: Scenario) -> str:
    return f"{scenario.analysis_notebook}.ipynb"


def _module_name(scenario: Scenario) -> str:
    return scenario.analysis_notebook.removeprefix("3-analyse-").replace("-", "_") + ".py"


@cache
def _load(path: Path) -> ModuleType:
    """Import a file as a module, once."""
    spec = spec_from_file_location(f"diskbook_beside_{path.stem}", path)
    assert spec is not None and spec.loader is not None  # a file whose name ends in .py has both
    loaded = module_from_spec(spec)
    sys.modules[spec.name] = loaded  # where dataclasses look for the module of a class
    spec.loader.exec_module(loaded)
    return loaded


@dataclass(frozen=True)
class Section:
    """A section of a report: what it shows, and the loads, arms, or other part that it cannot do without."""

    shows: str
    loads: tuple[str, ...] = ()
    arms: tuple[str, ...] = ()
    part: str = ""
    has_part: Callable[[Scenario], bool] = lambda scenario: True

    def lacking(self, scenario: Scenario) -> Iterator[str]:
        """Name what the scenario lacks of it."""
        loads, arms = ({item.name for item in items} for items in (scenario.workload, scenario.arm))
        yield from (f"workload {name}" for name in self.loads if name not in loads)
        yield from (f"arm {name}" for name in self.arms if name not in arms)
        if not self.has_part(scenario):
            yield self.part


def missing(scenario: Scenario) -> list[str]:
    """Say in a sentence which sections a scenario's report will leave out, and why; nothing where none."""
    name = scenario.analysis_notebook.removeprefix("3-analyse-")
    sections = getattr(ANALYSES.get(name.replace("-", "_")), "SECTIONS", ())
    lacking = {section.shows: tuple(section.lacking(scenario)) for section in sections}
    parts = [f"{shows} (no {' and no '.join(names)})" for shows, names in lacking.items() if names]
    if not parts:
        return []
    return [
        f'The report by analysis = "{name}" will leave out {"; ".join(parts)}. Name them as the scenario '
        f"{name} does, or choose another analysis."
    ]
