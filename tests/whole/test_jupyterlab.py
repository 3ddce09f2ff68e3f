"""Notebooks in JupyterLab, as a reader opens it: Run All ends without an error, and a picture is kept.

`make docs` runs every notebook; without DISKBOOK_EVERY_NOTEBOOK it is the overview. Pictures go to
$DISKBOOK_PICTURES, where that is set.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from diskbook.facts import paths
from diskbook.importing import run as importing
from support import browser as browsers, campaigns, run_copies, synthetic
from support.browser import Browser, Page

pytestmark = [pytest.mark.whole, pytest.mark.emulator]

EVERY = "DISKBOOK_EVERY_NOTEBOOK" in os.environ
NOTEBOOKS = sorted(path.name for path in paths.NOTEBOOKS.glob("*.ipynb")) if EVERY else ["0-overview.ipynb"]
DEADLINE_S = 300.0
SETTINGS = (
    "--no-browser",
    "--allow-root",
    "--expose-app-in-browser",
    "--ip=127.0.0.1",
    "--ServerApp.port=0",
    "--IdentityProvider.token=",
    "--LabApp.news_url=",
    "--LabApp.check_for_updates_class=jupyterlab.handlers.announcements.NeverCheckForUpdate",
    "--LabApp.extension_manager=readonly",
)
RUN_ALL = """
(async () => {
    const widget = await jupyterapp.commands.execute('docmanager:open', {path: name, factory: 'Notebook'});
    await widget.context.ready; await widget.sessionContext.ready;
    window.widget = widget; window.ended = null;
    jupyterapp.commands.execute('notebook:run-all-cells').then(() => { window.ended = true; },
        error => { window.ended = String(error); });
})()
"""
CELLS = """
ended && widget.sessionContext.session.kernel.status == 'idle' && (
    (widget.content.activeCellIndex = 0), widget.content.scrollToItem(0), widget.content.model.toJSON().cells)
"""
CLOSE = """
(async () => { await widget.sessionContext.shutdown(); await widget.context.save(); widget.close(); })()
"""


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Copies of the notebooks and of the runs that they read; three notebooks are told which."""
    folder = tmp_path_factory.mktemp("lab")
    (runs := folder / "runs").mkdir()
    for sample in paths.RUNS.glob("sample-*"):
        shutil.copytree(sample, runs / sample.name)
    set_parameters = _other_runs(runs) if EVERY else {}
    for name in NOTEBOOKS:
        content = json.loads((paths.NOTEBOOKS / name).read_text("utf-8"))
        tagged = [cell for cell in content["cells"] if "parameters" in cell["metadata"].get("tags", [])]
        for key, value in set_parameters.get(name, {}).items():
            tagged[0]["source"] = [*tagged[0]["source"], f"\n{key} = {value!r}"]
        (folder / name).write_text(json.dumps(content), "utf-8")
    quiet = folder / "jupyterlab_settings_dir/@jupyterlab/apputils-extension/notification.jupyterlab-settings"
    quiet.parent.mkdir(parents=True)
    quiet.write_text('{"fetchNews": "false"}')
    return folder


def _other_runs(runs: Path) -> dict[str, dict[str, Any]]:
    """Make what notebooks read besides the samples; return the parameters that name it, by notebook."""
    again = [str(path) for path in run_copies.copies(runs, 3)]
    small = synthetic.every_block()
    local = small.scenario.model_copy(update={"analysis": "local-disk"})
    synthetic.run_folder(runs / "local-disk", scenario=small.model_copy(update={"scenario": local}))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DISKBOOK_RUNS", str(runs))
        batch, _, _ = campaigns.half_done(runs)
        importing.make([str(Path(__file__).parents[1] / "samples" / "fio")], "imported")
    return {
        "6-compare-runs.ipynb": {"runs": again[:2]},
        "8-campaign.ipynb": {"batch": str(batch)},
        "9-pool.ipynb": {"runs": again},
    }


@pytest.fixture(scope="module")
def lab(place: Path) -> Iterator[str]:
    """Address of a JupyterLab that serves the copies; it and its kernels are gone afterwards."""
    own = {
        name: str(place / name.lower())
        for name in ("IPYTHONDIR", "JUPYTER_RUNTIME_DIR", "JUPYTER_CONFIG_DIR", "JUPYTERLAB_SETTINGS_DIR")
    }
    own |= {"JUPYTERLAB_WORKSPACES_DIR": str(place / "workspaces"), "DISKBOOK_RUNS": str(place / "runs")}
    command = [sys.executable, "-m", "jupyterlab", *SETTINGS, f"--ServerApp.root_dir={place}"]
    with (place / "lab.log").open("wb") as log:
        process = subprocess.Popen(command, env={**os.environ, **own}, stdout=log, stderr=log, cwd=paths.ROOT)
    try:
        yield _address(process, place)
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(60)


def _address(process: subprocess.Popen[bytes], place: Path) -> str:
    """Wait until the server answers."""
    deadline = time.monotonic() + DEADLINE_S
    record = place / "jupyter_runtime_dir" / f"jpserver-{process.pid}.json"
    while time.monotonic() < deadline and process.poll() is None:
        time.sleep(0.2)
        with contextlib.suppress(OSError, ValueError):  # it writes the record before it listens
            url: str = json.loads(record.read_text())["url"]
            with urllib.request.urlopen(f"{url}api/status", timeout=60):
                return url
    raise AssertionError((place / "lab.log").read_text()[-2000:])


@pytest.fixture(scope="module")
def page(lab: str) -> Iterator[Page]:
    """JupyterLab in a browser."""
    program = browsers.program()
    if program is None:
        pytest.skip(browsers.MISSING)
    opened = Browser(program, Path(os.environ["DISKBOOK_TESTS_FOLDER"]))
    with opened.page() as shown:
        shown.go(f"{lab}lab")
        until(shown, "window.jupyterapp && jupyterapp.restored.then(() => true)")
        yield shown
    opened.close()
    assert not opened.strangers


def until(page: Page, expression: str) -> Any:
    """Wait for an expression to be true; its value."""
    deadline = time.monotonic() + DEADLINE_S
    while not (value := page.ask(expression)):
        assert time.monotonic() < deadline, f"not within {DEADLINE_S:g} s: {expression}"
        time.sleep(0.3)
    return value


def run_all(page: Page, name: str) -> list[dict[str, Any]]:
    """Open a notebook and run all of it; its cells."""
    page.ask(RUN_ALL, name=name)
    return list(until(page, CELLS))


def errors(cells: list[dict[str, Any]]) -> list[str]:
    """What went wrong in a notebook: error outputs, and code that was not executed."""
    code = [cell for cell in cells if cell["cell_type"] == "code" and "".join(cell["source"]).strip()]
    shown = [output for cell in code for output in cell["outputs"] if output["output_type"] == "error"]
    left = [f"not executed: {''.join(cell['source'])}" for cell in code if not cell["execution_count"]]
    return [f"{output['ename']}: {output['evalue']}" for output in shown] + left


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_run_all_ends_without_an_error(page: Page, name: str, tmp_path: Path) -> None:
    cells = run_all(page, name)
    folder = Path(os.environ.get("DISKBOOK_PICTURES") or tmp_path)
    page.picture((folder / name).with_suffix(".png"))
    page.ask(CLOSE)
    assert errors(cells) == []


def test_an_error_is_noticed() -> None:
    """In the cells of a notebook as JupyterLab has them once the first has failed."""
    failure = {"output_type": "error", "ename": "ZeroDivisionError", "evalue": "division by zero"}
    cells: list[dict[str, Any]] = [
        {"cell_type": "code", "source": "1 / 0", "execution_count": 1, "outputs": [failure]},
        {"cell_type": "code", "source": ["2"], "execution_count": None, "outputs": []},
    ]
    assert errors(cells) == ["ZeroDivisionError: division by zero", "not executed: 2"]
