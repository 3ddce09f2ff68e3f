"""A scenario that a user wrote: TOML, notebook, and a module if it has one. A whole run: test_pipeline.py."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from diskbook.design import scenario_file
from diskbook.facts.errors import DiskbookError, UsageError
from diskbook.measure.runs import begin
from diskbook.report.analysis import companion_files, write
from diskbook.results.run import Run
from support import own_scenario
from support.own_scenario import MODULE, TOML


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with toy.toml and its notebook; runs lie beside it."""
    monkeypatch.setenv("DISKBOOK_RUNS", str(tmp_path / "runs"))
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    (tmp_path / "runs").mkdir()
    return own_scenario.made(tmp_path / "own").parent


def begun(place: Path, name: str = "toy") -> Run:
    """A run that was begun and no more."""
    return begin.begin(name, str(place / "toy.toml"))


def test_what_lies_in_a_run_folder_is_never_executed(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run folder from a stranger, with a notebook, a module and a manifest that names paths to them."""
    (place / "toy.py").write_text("raise SystemExit('executed')", "utf-8")
    run = begun(place)
    for name in ("toy.py", "3-analyse-toy.ipynb"):
        shutil.copy(place / name, run.folder)
        (run.folder / "notebooks").mkdir(exist_ok=True)
        shutil.copy(place / name, run.folder / "notebooks")
    for strange in (None, 7, "toy.py", [], [str(place / "toy.py")], {"module": str(place / "toy.py")}):
        run.update_manifest(**{companion_files.RECORD: strange})
        monkeypatch.chdir(run.folder)
        companion_files.check_recorded(run, None)
        assert companion_files.module(run) is None
        with pytest.raises(UsageError, match=r"there is no notebook 3-analyse-toy\.ipynb in notebooks/"):
            companion_files.notebook(run.scenario, None)


def test_a_file_that_is_not_named_or_gone_is_one_sentence(place: Path) -> None:
    (place / "toy.py").write_text(MODULE, "utf-8")
    run = begun(place)
    with pytest.raises(UsageError, match=r"analysed by 3-analyse-toy\.ipynb beside its scenario's file"):
        companion_files.check_recorded(run, None)
    with pytest.raises(UsageError, match=r"toy\.py beside its scenario's file, which is not named"):
        companion_files.module(run)
    module = companion_files.module(run, place / "toy.toml")
    assert module is not None and module.__doc__ == "Figures and sentences of the toy."
    (place / "toy.py").unlink()
    with pytest.raises(DiskbookError, match=r"own/toy\.py is gone, by which run toy is analysed; put"):
        companion_files.check_recorded(run, place / "toy.toml")
    (place / "other.toml").write_text(TOML, "utf-8")
    with pytest.raises(UsageError, match=r"other\.toml is not the scenario of run toy, which is toy"):
        companion_files.check_file(run, place / "other.toml")
    with pytest.raises(UsageError, match="there is no scenario file"):
        companion_files.check_file(run, place / "toy2.toml")


def test_a_command_names_the_file_to_the_notebooks_that_it_executes(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (place / "toy.py").write_text(MODULE, "utf-8")
    run = begun(place)
    monkeypatch.setenv(companion_files.VARIABLE, str(place / "toy.toml"))
    module = companion_files.module(run)
    assert module is not None and module.Fastest("x").arm == "x"
    shutil.copy(place / "toy.toml", place / "other.toml")
    monkeypatch.setenv(companion_files.VARIABLE, str(place / "other.toml"))
    with pytest.raises(UsageError, match="which is not named"):
        companion_files.module(run)


def test_a_scenario_without_a_notebook_makes_nothing(place: Path) -> None:
    (place / "3-analyse-toy.ipynb").unlink()
    with pytest.raises(UsageError, match=r"3-analyse-toy\.ipynb beside toy\.toml or in notebooks/ to"):
        begun(place)
    assert not list((place.parent / "runs").iterdir())


def test_the_workbooks_own_notebook_is_taken_where_there_is_none_beside(place: Path) -> None:
    (place / "zone-disks.toml").write_text(TOML, "utf-8")
    run = begin.begin("plain", str(place / "zone-disks.toml"))
    assert companion_files.RECORD not in run.manifest
    assert companion_files.module(run) is None
    assert companion_files.notebook(run.scenario, place / "zone-disks.toml").parent.name == "notebooks"


@pytest.mark.long
@pytest.mark.parametrize("name", scenario_file.names())
def test_modules_of_the_workbooks_own_scenarios_are_found_by_name(name: str, place: Path) -> None:
    run = begin.begin("own", name)
    module = companion_files.module(run)
    stem = run.scenario.analysis_notebook.removeprefix("3-analyse-").replace("-", "_")
    assert (module is not None) == (stem in companion_files.ANALYSES)
    assert module is None or callable(module.pictures)


def test_no_other_module_of_the_analysis_passes_for_one_of_a_scenario() -> None:
    stems = {name.replace("-", "_") for name in scenario_file.names()}
    for path in Path(write.__file__).parent.glob("*.py"):
        assert path.stem in stems or "def pictures(" not in path.read_text("utf-8")
