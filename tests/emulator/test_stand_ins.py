"""Stand-ins kept warm: a fork answers with its caller's streams and words, and ends with its caller."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from diskbook.hosts.powershell import encoded, script
from diskbook_emulator import processes, stand_in_call, stand_ins
from support.emulated import soon

pytestmark = pytest.mark.emulator
POWERSHELL, DISKSPD = stand_ins.MODULES


@pytest.fixture(scope="module")
def warm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("warm")
    process = stand_ins.start(folder)
    assert soon((folder / stand_in_call.SOCKET).exists)
    yield folder
    process.kill()
    process.wait()


def call(folder: Path, module: str, *words: str, home: Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-I", "-S", stand_in_call.__file__, str(folder), module, *words]
    environment = {"HOME": str(home), "PATH": "/usr/bin:/bin", "DISKBOOK_MACHINE_FOLDER": f"{home}/"}
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen(command, cwd=home, env=environment, text=True, **pipes)


def test_a_call_is_answered_alike_warm_and_cold(warm: Path, tmp_path: Path) -> None:
    (tmp_path / "disks.json").write_text("{}")
    for folder in (warm, tmp_path):
        running = call(folder, DISKSPD, "-b8K", "-Rxml", "#1", home=tmp_path)
        output, errors = running.communicate()
        assert running.returncode == 1 and output == ""
        assert errors == "ERROR: Error opening file: #1 [2]; disks of this emulated machine: none\n"


def test_a_call_ends_with_its_caller_and_a_job_outlives_it(
    warm: Path, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    jobs = tmp_path / "jobs"
    started = script("start", name="one", command="sleep 613")
    words = encoded(started).split()[1:]
    assert call(warm, POWERSHELL, *words, home=tmp_path).wait() == 0
    number = int((jobs / "one" / "pid").read_text())
    request.addfinalizer(lambda: processes.kill(processes.tree(number)))
    shell = Path("/proc") / str(number)
    assert shell.exists()
    waiting = encoded(script("finish", name="one", files=[], patience_ms=600_000)).split()[1:]
    caller = call(warm, POWERSHELL, *waiting, home=tmp_path)
    forks = lambda: [path for path in Path("/proc").glob("[0-9]*") if _works_in(path, tmp_path)]  # noqa: E731
    assert soon(lambda: len(forks()) == 1)  # the caller goes to the socket's folder; its fork is here
    caller.kill()
    caller.wait()
    assert soon(lambda: len(forks()) == 0) and shell.exists()
    ended = encoded(script("end")).split()[1:]
    assert call(warm, POWERSHELL, *ended, home=tmp_path).wait() == 0
    assert soon(lambda: not shell.exists()) and not jobs.exists()


def _works_in(process: Path, folder: Path) -> bool:
    try:
        return (process / "cwd").samefile(folder)
    except OSError:
        return False
