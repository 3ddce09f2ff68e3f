"""The tests' own remedy against a disturbance: a disturbed measurement is repeated, a wrong one fails."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from checks.bench_emulator import BUSY_CORES
from diskbook.facts import paths
from support.disturbance import STANDSTILL_MS, Lateness, OtherLoad
from support.emulated import soon
from support.measure_again import SECOND_TRY, WANTED

pytestmark = pytest.mark.emulator

CONFTEST = """
import os
from checks import bench_emulator
from support import disturbance
from support.measure_again import MeasureAgain

bench_emulator.BUSY_CORES = {busy_cores}
disturbance.STANDSTILL_MS = disturbance.LATE_MS = float("{late_ms}")

def pytest_configure(config):
    config.pluginmanager.register(MeasureAgain(config, lambda item: True, "a-marker-of-this-test"))
"""
TEST = """
import time
from pathlib import Path
import pytest
from support.disturbance import load_sensitive

@pytest.fixture(scope="module")
def attempt():
    with Path("made").open("a") as file:
        file.write("x")
    time.sleep(1)
    return Path("made").stat().st_size

def test_load_sensitive(attempt):
    with load_sensitive():
        assert attempt == {passes}

def test_fixtures_are_those_of_the_last_attempt(attempt):
    assert attempt == Path("made").stat().st_size

def test_wrong(attempt):
    assert attempt == 9
"""


@contextlib.contextmanager
def another_program(folder: Path | None = None) -> Iterator[psutil.Process]:
    """Keep a core busy with an orphan, a child of init, whose working directory is `folder`."""
    loop = "import time; end = time.monotonic() + 60\nwhile time.monotonic() < end: pass"
    start = f"{sys.executable} -c '{loop}' >/dev/null 2>&1 & echo $!"
    command = ["env", "-i", "sh", "-c", start]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)
    process = psutil.Process(int(done.stdout))
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def judged(
    folder: Path, passes: int, busy_cores: float = BUSY_CORES, late_ms: str = "inf", second_try: str = ""
) -> str:
    """Run the tests above, of which the first passes in one attempt only; return what pytest prints.

    Others disturb it where they use more than `busy_cores`, and the machine where it is later than `late_ms`.
    """
    text = CONFTEST.replace("{busy_cores}", str(busy_cores)).replace("{late_ms}", late_ms)
    (folder / "conftest.py").write_text(text)
    (folder / "test_it.py").write_text(TEST.replace("{passes}", str(passes)))
    options = ("-rfs", "-p", "no:cacheprovider", "-c", os.devnull, "--rootdir=.")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), WANTED: second_try}
    environment["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"  # a second try has them, for -n
    command = [sys.executable, "-m", "pytest", *options, "test_it.py"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, env=environment)
    return done.stdout


def may_come_first() -> None:
    """Skip where a program may not come before all others, so that the machine's lateness is not known."""
    code = "import os; os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))"
    if subprocess.run([sys.executable, "-c", code], stderr=subprocess.DEVNULL).returncode:
        pytest.skip("SCHED_FIFO is not allowed here")


@pytest.mark.parametrize(
    ("passes", "summary", "made"),
    [(2, "1 failed, 2 passed", 2), (9, "1 failed, 1 passed, 1 skipped", 3)],
)
def test_what_others_disturbed_is_measured_again(
    tmp_path: Path, passes: int, summary: str, made: int
) -> None:
    with another_program():
        out = judged(tmp_path, passes)
    assert summary in out and "FAILED test_it.py::test_wrong" in out, out
    assert (tmp_path / "made").stat().st_size >= made
    assert ("not judged: disturbed in 3 attempts, in the last since others used" in out) == (passes == 9)
    listed = re.findall(r"^test_it\.py::test_load_sensitive, (\d): others used \d+\.\d cores$", out, re.M)
    assert listed == ["1", "2", "3"][: made if passes == 9 else 1]


def test_what_a_late_machine_disturbed_is_measured_again(tmp_path: Path) -> None:
    may_come_first()
    out = judged(tmp_path, 2, busy_cores=1000, late_ms="0")
    assert "1 failed, 2 passed" in out and "test_load_sensitive, 1: the machine stood still for" in out, out


def test_a_machine_that_stands_still_is_noticed() -> None:
    may_come_first()
    lateness = Lateness()
    try:
        time.sleep(0.5)
        begun = time.monotonic()
        lateness.program.send_signal(signal.SIGSTOP)
        time.sleep(10 * STANDSTILL_MS / 1000)
        lateness.program.send_signal(signal.SIGCONT)
        assert soon(lambda: lateness.said(begun).startswith("the machine stood still for"))
        assert float(lateness.said(begun).split()[-2]) > 5 * STANDSTILL_MS
        assert lateness.said(time.monotonic()) == ""
    finally:
        lateness.program.kill()
        lateness.program.wait()


def test_a_wrong_result_on_a_quiet_machine_fails_at_once(tmp_path: Path) -> None:
    out = judged(tmp_path, 2, busy_cores=1000)  # more than others can use: quiet, whatever they do
    assert "2 failed, 1 passed" in out and (tmp_path / "made").read_text() == "x", out
    assert "measured again" not in out


def test_continuous_integration_tries_a_failed_test_again_and_lists_it(tmp_path: Path) -> None:
    out = judged(tmp_path, 2, busy_cores=1000, second_try="1")
    assert "1 failed, 2 passed" in out and "FAILED test_it.py::test_wrong" in out, out
    listed = out.partition(SECOND_TRY)[2]
    assert "test_it.py::test_load_sensitive" in listed and "assert 1 == 2" in listed, out


def test_a_test_that_may_start_no_process_is_tried_again_too(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(
        "from pathlib import Path\n\ndef test_it(tmp_path):\n    made = Path(__file__).with_name('made')\n"
        "    again = made.exists()\n    made.touch()\n    assert again\n"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), WANTED: "1"}
    options = ("-p", "conftest", "-c", str(paths.ROOT / "pyproject.toml"), "--rootdir=.")
    command = [sys.executable, "-m", "pytest", "-n0", *options, "test_it.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, env=environment)
    assert "1 passed" in done.stdout and SECOND_TRY in done.stdout, done.stdout + done.stderr


@pytest.mark.parametrize(
    ("used_s", "cores"),
    [
        ((0, 0, 0, 0.5, 1, 1, 1), 1.0),
        # One look counts a process twice, since its parent has just waited for it.
        ((0, 0, 0, -2, 0, 0, 0), 0.0),
        ((0, 0, 2, 0, 0, 0, 0), 0.0),
        ((-2, 0, 0, 0, 0, 0, 0), 0.0),  # also just before a test began
        ((0, 0, 0, 0, 0, 0, 2), 0.0),
        ((0,), 0.0),
    ],
)
def test_a_wrong_look_is_no_load_of_others(used_s: tuple[float, ...], cores: float) -> None:
    other = OtherLoad.__new__(OtherLoad)  # it looks at nothing
    other._looks = [(0.5 * number, used) for number, used in enumerate(used_s)]
    assert other.most_cores(0.1) == cores


def test_our_own_load_is_not_that_of_others(tmp_path: Path) -> None:
    other = OtherLoad("none")
    before_s = other._own_s()
    with subprocess.Popen([sys.executable, "-c", "while True: pass"]) as loop:
        time.sleep(1)
        used_s = sum(psutil.Process(loop.pid).cpu_times()[:2])
        running_s = other._own_s()
        loop.kill()
    assert min(running_s, other._own_s()) >= before_s + used_s - 0.1

    for folder, is_ours in ((None, False), (tmp_path, True)):  # machines' jobs work in a folder of the tests
        with another_program(folder) as process:
            other._own_s()
            assert (process.pid in other._ours) == is_ours
            assert process.pid not in other._foreign  # it has just begun, and may go to another folder
