"""Each notebook by plain papermill with a YAML file of parameters, as docs/papermill.md says."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import nbformat
import papermill
import pytest
import yaml
from click.testing import CliRunner
from papermill.cli import papermill as command

from diskbook.base import paths
from diskbook.runs.begin import begin

DOCUMENT = (paths.ROOT / "docs" / "papermill.md").read_text("utf-8")
NOTEBOOKS = sorted(path for path in paths.NOTEBOOKS.glob("*.ipynb") if papermill.inspect_notebook(str(path)))
OTHER = {
    "str": "another",
    "dict": {"design.replicates": 3},
    "list": ["a", "b"],
    "int": 7,
    "float": 2.5,
    "bool": True,
}


def documented() -> dict[str, Any]:
    """The YAML file of the document."""
    match = re.search(r"```yaml\n(.*?)```", DOCUMENT, re.S)
    assert match
    content: dict[str, Any] = yaml.safe_load(match[1])
    return content


def injected(path: Path) -> dict[str, Any]:
    """Values of the cell that papermill has put in."""
    cells = nbformat.read(path, as_version=4).cells
    cell = next(cell for cell in cells if "injected-parameters" in cell.metadata.get("tags", []))
    names: dict[str, Any] = {}
    exec(cell.source, {}, names)
    return names


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_every_parameter_of_a_notebook_can_come_from_yaml(path: Path, tmp_path: Path) -> None:
    kinds = {
        name: facts["inferred_type_name"] for name, facts in papermill.inspect_notebook(str(path)).items()
    }
    assert set(kinds.values()) <= set(OTHER), "an annotation tells papermill's users what to write"
    values = {name: OTHER[kind] for name, kind in kinds.items()}
    (tmp_path / "run.yaml").write_text(yaml.safe_dump(values))
    words = [str(path), str(tmp_path / "out.ipynb"), "-f", str(tmp_path / "run.yaml"), "--prepare-only"]
    done = CliRunner().invoke(command, words)
    assert done.exit_code == 0 and "unknown parameter" not in done.output
    assert injected(tmp_path / "out.ipynb") == values


def test_the_file_of_the_document_is_all_of_the_first_notebook_and_what_begin_takes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DISKBOOK_RUNS", str(tmp_path))
    values = documented()
    assert set(values) == set(papermill.inspect_notebook(str(paths.NOTEBOOKS / "1-provision.ipynb")))
    run = begin(values["run"], values["scenario"], values["cloud"], values["preset"], values["overrides"])
    assert run.scenario.design.replicates == 2
    assert all(
        (paths.NOTEBOOKS / name).exists() for name in re.findall(r"papermill notebooks/(\S+)", DOCUMENT)
    )


@pytest.mark.emulator
def test_a_notebook_runs_from_any_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DISKBOOK_RUNS", str(tmp_path / "runs"))
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    shutil.copytree(paths.RUNS / "sample-zone-disks", tmp_path / "runs" / "finished")
    (tmp_path / "run.yaml").write_text(yaml.safe_dump({**documented(), "run": "finished"}))
    words = ["-m", "papermill", str(paths.NOTEBOOKS / "1-provision.ipynb"), "out.ipynb", "-f", "run.yaml"]
    done = subprocess.run([sys.executable, *words], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    executed = nbformat.read(tmp_path / "out.ipynb", as_version=4)
    assert executed.metadata.papermill.exception is None
    assert "sample" not in injected(tmp_path / "out.ipynb")["run"]
