"""A notebook is executed with its kernel in reach of this user alone: no TCP port, sockets that go away."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import nbformat
import pytest

import diskbook
from diskbook.facts.errors import DiskbookError
from diskbook.measure.runs import execute_notebook
from diskbook.measure.runs.execute_notebook import USER_ERRORS

# What the kernel, and the process that executes the notebook, listen on.
LISTENING = """import json
import os
import socket

import psutil

family = [psutil.Process(), psutil.Process().parent()]
ports = [
    (process.name(), link.laddr)
    for process in family
    for link in process.net_connections("inet")
    if link.type == socket.SOCK_STREAM and link.status == psutil.CONN_LISTEN
]
sockets = sorted({link.laddr for link in family[0].net_connections("unix") if link.laddr})
facts = {"ports": ports, "sockets": sockets, "mode": os.stat(os.path.dirname(sockets[0])).st_mode & 0o777}
print(json.dumps({**facts, "parameter": run}))"""
STANDARD_INPUT = """import os
import sys

print(sys.executable, repr(sys.stdin.read()), os.environ["MPLBACKEND"])"""


def execute(place: Path, *cells: str, **environment: str) -> tuple[subprocess.CompletedProcess[str], Any]:
    """Execute a notebook of these cells as a stage of a run does; what came of it, and its outputs."""
    notebook = nbformat.v4.new_notebook(
        metadata={"kernelspec": {"name": "python3", "display_name": "Python 3"}}
    )
    notebook.cells = [
        nbformat.v4.new_code_cell(
            '# Papermill sets it.\nrun: str = "default"', metadata={"tags": ["parameters"]}
        ),
        *map(nbformat.v4.new_code_cell, cells),
    ]
    nbformat.write(notebook, place / "source.ipynb")
    command = [sys.executable, "-m", "diskbook.measure.runs.execute_notebook"]
    words = [str(place / "source.ipynb"), str(place / "executed.ipynb"), json.dumps({"run": "given"})]
    own = {"IPYTHONDIR": str(place / "ipython"), **environment}
    done = subprocess.run([*command, *words], env={**os.environ, **own}, capture_output=True, text=True)
    if not (place / "executed.ipynb").exists():
        return done, None
    executed = nbformat.read(place / "executed.ipynb", as_version=4)
    texts = [output.get("text", "") for cell in executed.cells for output in cell.get("outputs", ())]
    return done, "".join(texts)


@pytest.mark.emulator
def test_a_kernel_is_this_python_and_listens_on_sockets_that_are_ours_alone_and_go(tmp_path: Path) -> None:
    """Whatever is installed under its name."""
    kernel = tmp_path / "jupyter" / "kernels" / "python3"
    kernel.mkdir(parents=True)
    strange = {"argv": ["/bin/false", "{connection_file}"], "display_name": "Python 3", "language": "python"}
    (kernel / "kernel.json").write_text(json.dumps(strange))
    folders = {"JUPYTER_RUNTIME_DIR": str(tmp_path / "runtime"), "JUPYTER_PATH": str(tmp_path / "jupyter")}
    done, text = execute(tmp_path, LISTENING, STANDARD_INPUT, **folders)
    assert done.returncode == 0, done.stderr
    listening, program = text.splitlines()
    facts = json.loads(listening)
    assert facts["ports"] == []
    assert len(facts["sockets"]) == 5 and facts["mode"] == 0o700
    assert not any(Path(path).parent.exists() for path in facts["sockets"])
    assert facts["parameter"] == "given"
    assert program.split() == [sys.executable, "''", "module://matplotlib_inline.backend_inline"]


@pytest.mark.emulator
def test_sockets_lie_elsewhere_where_the_temporary_folder_has_a_long_name(tmp_path: Path) -> None:
    long = tmp_path / ("x" * 100)
    long.mkdir()
    done, text = execute(tmp_path, LISTENING, TMPDIR=str(long), XDG_RUNTIME_DIR="")
    assert done.returncode == 0, done.stderr
    facts = json.loads(text)
    assert facts["ports"] == [] and facts["mode"] == 0o700
    assert all(path.startswith(f"/tmp/{execute_notebook.SCRATCH_PREFIX}") for path in facts["sockets"])
    assert not any(Path(path).parent.exists() for path in facts["sockets"])


def test_without_a_short_folder_there_is_one_sentence(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(execute_notebook, "temporary_places", lambda: [tmp_path / ("x" * 90)])
    with (
        pytest.raises(DiskbookError, match="too long for a socket; shorten TMPDIR"),
        execute_notebook.sockets(),
    ):
        pass


def test_a_socket_fits_into_every_folder_that_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    with tempfile.TemporaryDirectory() as place:
        longest = Path(place) / ("x" * 30)
        longest.mkdir()
        monkeypatch.setattr(execute_notebook, "temporary_places", lambda: [longest])
        with execute_notebook.sockets() as folder:
            assert folder.stat().st_mode & 0o777 == 0o700
            assert len(f"{folder / execute_notebook.SOCKET}-5") <= execute_notebook.LONGEST
        assert not folder.exists()


def test_folders_of_killed_processes_are_found_wherever_they_are(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    left = tmp_path / f"{execute_notebook.SCRATCH_PREFIX}4194999-x"  # above any number that Linux gives
    left.mkdir()
    monkeypatch.setattr(execute_notebook, "temporary_places", lambda: [tmp_path])
    execute_notebook.clear_folders()
    assert not left.exists()


def test_every_error_of_ours_is_told_as_a_sentence() -> None:
    """A stage knows errors by their names: one that is missing would be called a defect."""
    package = Path(diskbook.__file__).parent
    text = "\n".join(path.read_text("utf-8") for path in package.rglob("*.py"))
    classes = re.findall(r"^class (\w+)\((\w+)\)", text, re.MULTILINE)
    ours = {"DiskbookError"}
    while more := {name for name, base in classes if base in ours} - ours:
        ours |= more
    assert ours == set(USER_ERRORS)
