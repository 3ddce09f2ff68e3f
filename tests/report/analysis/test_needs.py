"""A report whose scenario lacks a part leaves out that section, and plan says so before the first trial."""

from __future__ import annotations

import copy
import json
import re
from pathlib import Path
from typing import Any

import pytest

from diskbook.design import scenario_file
from diskbook.design.model import Scenario
from diskbook.facts import paths
from diskbook.measure.plan.sample_size import Target
from diskbook.measure.plan.terminal import Sources, plan_text
from diskbook.report import show
from diskbook.report.analysis import companion_files
from diskbook.report.analysis.run import Analysis, analyse
from diskbook.report.show import first_screen
from support import synthetic
from support.synthetic import Load

OWN = ["disk-options", "local-disk", "nested-resiliency", "s2d-azure", "shared-zrs", "zone-disks"]
OPTIONS = {
    "access-time": (Load("access-time", "read"), "randread-qd1"),
    "max-write-iops": (Load("max-write-iops", "write", 256), "randwrite-qd256"),
    "max-read-iops": (Load("max-read-iops", "read", 256), "randread-qd256"),
}
"""Loads of `disk-options` by name, each with the load of the small scenario that it is made from."""


def scenario_of(name: str, loads: tuple[str, ...] = ()) -> Scenario:
    """The small scenario with another analysis, with its own loads or with those named of `OPTIONS`."""
    scenario = synthetic.every_block()
    changes = {"scenario": scenario.scenario.model_copy(update={"analysis": name})}
    if loads:
        made_from = {new: scenario.workload_named(OPTIONS[new][1]) for new in loads}
        changes["workload"] = tuple(item.model_copy(update={"name": new}) for new, item in made_from.items())
        changes["comparison"] = ()
    return scenario.model_copy(update=changes)


def run_of(folder: Path, loads: tuple[str, ...]) -> Analysis:
    scenario = scenario_of("disk-options", loads)
    of_trials = tuple(OPTIONS[new][0] for new in loads)
    return analyse(
        synthetic.run_folder(folder / "run", scenario=scenario, loads=of_trials, n_blocks=2, draws=100)
    )


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Analysis:
    """The small scenario, with what all analyses ask of a run computed."""
    a = analyse(synthetic.run_folder(tmp_path_factory.mktemp("plain") / "run", n_blocks=2, draws=100))
    assert len(a.comparisons) and len(a.cells)
    return a


def sections(name: str, *, figures: bool) -> list[str]:
    """Cells of an analysis' notebook that call its own module; without figures, only what is of the run."""
    notebook = json.loads((paths.NOTEBOOKS / f"3-analyse-{name}.ipynb").read_text("utf-8"))
    cells = ["".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == "code"]
    calls = [cell for cell in cells if f"{name.replace('-', '_')}." in cell and "import" not in cell]
    return [cell for cell in calls if figures or not re.search("figure|claims", cell)]


def module_of(name: str) -> Any:
    stem = name.replace("-", "_")
    return companion_files.ANALYSES.get(stem)


def show_all(a: Analysis, name: str, *, figures: bool) -> None:
    module = module_of(name)
    for cell in sections(name, figures=figures):
        exec(cell, {"a": a, "show": show, name.replace("-", "_"): module})


@pytest.mark.long
@pytest.mark.parametrize("name", OWN)
def test_every_analysis_bears_a_scenario_that_has_none_of_its_parts(
    plain: Analysis, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(first_screen.figures, "html", lambda picture: picture.caption)
    a = copy.copy(plain)
    a.__dict__["scenario"] = scenario_of(name)
    show_all(a, name, figures=True)
    assert a.headline
    if name != "zone-disks":
        module_of(name).pictures(a)


@pytest.mark.long
@pytest.mark.parametrize("lacking", OPTIONS)
def test_a_load_that_is_missing_leaves_out_its_section_alone(tmp_path: Path, lacking: str) -> None:
    from diskbook.report.analysis import disk_options

    a = run_of(tmp_path, tuple(name for name in OPTIONS if name != lacking))
    show_all(a, "disk-options", figures=False)
    times, rates = disk_options.access_times(a), disk_options.drives(a)
    assert times.empty is (lacking == "access-time")
    assert len(rates["Load"].unique()) == (2 if lacking == "access-time" else 1)
    assert disk_options.bought(a).empty is (lacking != "max-read-iops")


@pytest.mark.long
def test_with_all_its_loads_nothing_is_left_out(tmp_path: Path) -> None:
    from diskbook.report.analysis import disk_options

    a = run_of(tmp_path, tuple(OPTIONS))
    assert len(disk_options.access_times(a)) == len(a.scenario.arm)
    assert len(disk_options.bought(a)) == 3  # of one machine


def test_what_is_missing_is_said_in_a_sentence() -> None:
    (sentence,) = companion_files.missing(scenario_of("disk-options"))
    assert 'analysis = "disk-options" will leave out what each option buys (no workload' in sentence
    assert "access times (no workload access-time)" in sentence and sentence.count("\n") == 0
    (volumes,) = companion_files.missing(scenario_of("s2d-azure"))
    assert "what volumes may do (no an arm" not in volumes and "no arm s2d-3" in volumes
    assert sentence in plan_text(scenario_of("disk-options"), Target(), Sources(), "diskbook run x")


@pytest.mark.parametrize("name", sorted(file.stem for file in paths.SCENARIOS.glob("*.toml")))
def test_scenarios_of_the_workbook_have_all_parts(name: str) -> None:
    assert companion_files.missing(scenario_file.load(name)) == []
