"""How a notebook's process ended, in one sentence; its own kernel is met by the tests of whole runs."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import psutil
import pytest

from diskbook.facts.errors import DiskbookError
from diskbook.measure.runs import notebook_process
from support import orphans

pytestmark = pytest.mark.emulator  # it starts processes

SOURCE = Path("notebooks/8-campaign.ipynb")
children: list[subprocess.Popen[bytes]] = []


def played(script: str) -> Any:
    def spawn(
        source: Path, target: Path, parameters: Mapping[str, Any], place: Path, output: Any
    ) -> subprocess.Popen[bytes]:
        command = ["sh", "-c", script.replace("TARGET", str(target))]
        children.append(subprocess.Popen(command, stdout=output, stderr=output, start_new_session=True))
        return children[-1]

    return spawn


@pytest.mark.parametrize(
    ("script", "words"),
    [
        ("echo a line; echo name a batch; exit 3", "^8-campaign stopped: name a batch$"),
        ("echo KeyError; exit 1", "^8-campaign failed: KeyError$"),
        ("exit 1", "^8-campaign failed: without a word$"),
        ("kill -KILL $$", "^8-campaign was killed by SIGKILL$"),
        ("sleep 60 & sleep 60", "^8-campaign was ended after 0.2 s$"),
    ],
)
def test_a_failure_is_one_sentence_and_leaves_nothing(
    script: str, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(notebook_process, "spawn", played(script))
    with pytest.raises(DiskbookError, match=words):
        notebook_process.execute(SOURCE, tmp_path / "made.ipynb", {}, 0.2 if "sleep" in script else 20.0)
    assert list(tmp_path.iterdir()) == [] and not psutil.pid_exists(children[-1].pid)


def test_what_was_executed_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(notebook_process, "spawn", played("echo executed > TARGET"))
    notebook_process.execute(SOURCE, tmp_path / "made.ipynb", {}, 20.0)
    assert (tmp_path / "made.ipynb").read_text() == "executed\n"


def test_a_notebook_ends_when_the_process_of_its_run_is_killed(tmp_path: Path) -> None:
    starting = (
        "from pathlib import Path\n"
        "from diskbook.measure.runs import notebook_process\n"
        "sys.executable = program\n"
        "notebook_process.spawn(Path('a.ipynb'), Path('b.ipynb'), {}, Path('.'), sys.stdout)"
    )
    assert orphans.ends_with_its_parent(starting, tmp_path)
