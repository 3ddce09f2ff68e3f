"""A scenario of one's own, from a folder of its own: TOML, notebook, and a module if it has one."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import nbformat
import pytest

from diskbook.batch.catalogue import read
from diskbook.cli import main
from diskbook.design import scenario_file
from diskbook.facts.errors import DiskbookError, UsageError
from diskbook.measure.runs import begin
from diskbook.report.analysis import companion_files, write
from diskbook.report.analysis.run import analyse
from diskbook.results.run import Run
from diskbook_emulator import lifecycle
from support import SCENARIOS

TOML = (SCENARIOS / "tiny.toml").read_text("utf-8").replace('analysis = "zone-disks"\n', "")
PARAMETERS = '# Papermill sets it.\nrun: str = "toy"'
SETUP = """from diskbook.report import show
from diskbook.report.analysis import write
from diskbook.report.analysis.run import analyse

a = analyse(run)"""
MODULE = '''"""Figures and sentences of the toy."""

from dataclasses import dataclass

from diskbook.report.figures import strip


@dataclass
class Fastest:
    arm: str


def fastest(a):
    return Fastest(a.cells.sort_values("lat_mean_ms")["arm"].iloc[0])


def pictures(a):
    names = [item.name for item in a.scenario.workload]
    return (strip(a.trials, a.looks, a.words, names, "A picture of the toy", a.run.name),)
'''


def notebook(*cells: str) -> nbformat.NotebookNode:
    made = nbformat.v4.new_notebook(metadata={"kernelspec": {"name": "python3", "display_name": "Python 3"}})
    made.cells = [
        nbformat.v4.new_markdown_cell("# Toy\n\nThis notebook reads a run and writes `comparisons.csv`."),
        nbformat.v4.new_code_cell(
            '# Papermill sets it.\nrun: str = "toy"', metadata={"tags": ["parameters"]}
        ),
        *(nbformat.v4.new_code_cell(text) for text in (SETUP, *cells, "write.results(a)")),
    ]
    return made


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with toy.toml and its notebook; runs lie beside it."""
    monkeypatch.setenv("DISKBOOK_RUNS", str(tmp_path / "runs"))
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    (tmp_path / "runs").mkdir()
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "toy.toml").write_text(TOML, "utf-8")
    nbformat.write(notebook("show.cells(a)"), tmp_path / "own" / "3-analyse-toy.ipynb")
    return tmp_path / "own"


def cli(*words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", "from diskbook.cli import main; main()", *words]
    return subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=600)


def trials_of(run: Run) -> list[dict[str, Any]]:
    return [event for event in run.ledger() if event["event"] == "trial"]


def here(monkeypatch: pytest.MonkeyPatch, *words: str) -> int:
    """Call the command line in this process."""
    monkeypatch.setattr(sys, "argv", ["diskbook", *words])
    with pytest.raises(SystemExit) as ended:
        main()
    return int(str(ended.value.code or 0))


def begun(place: Path, name: str = "toy") -> Run:
    """A run that was begun and no more."""
    return begin.begin(name, str(place / "toy.toml"))


@pytest.mark.whole
def test_a_module_beside_it_draws_its_own_picture_and_is_named_again_to_go_on(
    place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (place / "toy.py").write_text(MODULE, "utf-8")
    nbformat.write(
        notebook("show.bullets([a.module.fastest(a).arm])", "show.figure(*a.module.pictures(a))"),
        place / "3-analyse-toy.ipynb",
    )
    run = kept_and_torn_down(place)
    assert run.manifest[companion_files.RECORD] == ["3-analyse-toy.ipynb", "toy.py"]
    report = (run.folder / "report.html").read_text()
    assert "<li>Lrs-z1</li>" in report and 'id="all-trials"' in report  # pages leave titles of pictures out
    drawn = sorted((run.folder / "figures").glob("*.svg"))
    assert [path.name for path in drawn] == ["all-trials-390px.svg", "all-trials.svg"]
    assert all("<title>A picture of the toy</title>" in path.read_text() for path in drawn)

    assert here(monkeypatch, "run", "--resume", "toy") == 2
    said = capsys.readouterr().err
    assert "'diskbook run DIR/toy.toml --resume toy'" in said and "Traceback" not in said
    measured, comparisons = trials_of(run), (run.folder / "comparisons.csv").read_bytes()
    assert here(monkeypatch, "run", str(place / "toy.toml"), "--resume", "toy") == 0
    assert trials_of(run) == measured and len(measured) == 2  # a finished run repeats nothing
    assert (run.folder / "comparisons.csv").read_bytes() == comparisons
    assert run.manifest["emulator"]["name"] not in [row.name for row in lifecycle.status()]
    file = companion_files.check_file(run, place / "toy.toml")
    exported = write.export_figures(analyse(run, file), place.parent / "exported")
    assert {path.name for path in exported} >= {"all-trials.svg", "all-trials@2x.png", "all-trials.json"}
    with pytest.raises(UsageError, match=r"'diskbook figures toy --scenario DIR/toy\.toml'"):
        write.export_figures(analyse(run), place.parent / "exported")
    toml_and_notebook_are_enough(run, place)


def kept_and_torn_down(place: Path) -> Run:
    """Run the scenario with --keep; the catalogue has the run as it is once its machines are gone, too."""
    run = Run(place.parent / "runs" / "toy")
    done = cli("run", str(place / "toy.toml"), "--name", "toy", "--time-scale", "0.001", "--keep")
    try:
        assert done.returncode == 0, done.stderr
        assert f"beside {place}/toy.toml, and run as code: 3-analyse-toy.ipynb, toy.py\n" in done.stdout
        assert not all(row["deleted_utc"] for row in run.manifest["resource_groups"])
    finally:
        ended = cli("teardown", "toy")
    assert ended.returncode == 0, ended.stderr
    assert all(row["deleted_utc"] for row in run.manifest["resource_groups"])
    assert not (run.folder / "keys").exists()
    assert read.view(run.folder.parent).others == []
    return run


def toml_and_notebook_are_enough(run: Run, place: Path) -> None:
    """Analyse the same results as those of a scenario that has no module."""
    (place / "toy.py").unlink()
    shutil.rmtree(place / "__pycache__", ignore_errors=True)  # what this process has compiled of it
    nbformat.write(notebook("show.cells(a)"), place / "3-analyse-toy.ipynb")
    run.update_manifest(**{companion_files.RECORD: begun(place, "alone").manifest[companion_files.RECORD]})
    shutil.rmtree(run.folder / "figures")
    done = cli("report", "toy", "--scenario", str(place / "toy.toml"))
    assert done.returncode == 0, done.stderr
    assert f"beside {place}/toy.toml, and run as code: 3-analyse-toy.ipynb\n" in done.stdout
    report = (run.folder / "report.html").read_text()
    assert "EMULATED" in report and "Cells: medians over trials" in report
    assert (run.folder / "comparisons.csv").exists()
    assert (run.folder / "figures" / "ratios.svg").exists()  # those that every scenario has
    assert str(place) not in (run.folder / "manifest.json").read_text()
    assert sorted(path.name for path in place.iterdir()) == ["3-analyse-toy.ipynb", "toy.toml"]


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
