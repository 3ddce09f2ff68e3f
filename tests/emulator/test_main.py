"""`python -m diskbook_emulator`, and the client that its README shows."""

from __future__ import annotations

import contextlib
import io
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import diskbook_emulator
from diskbook_emulator import lifecycle
from diskbook_emulator.__main__ import main
from support.emulated import own_place

README = Path(diskbook_emulator.__file__).with_name("README.md")
LAST_LINE = "Ctrl-C stops it"


@pytest.fixture
def process() -> Iterator[subprocess.Popen[str]]:
    """A foreground emulator that has printed its instructions."""
    with own_place():
        command = [sys.executable, "-m", "diskbook_emulator", "--profile", "quiet", "--time-scale", "0"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as started:
            try:
                yield started
            finally:
                started.kill()
                started.wait()


@pytest.mark.emulator
def test_the_client_of_the_readme_makes_a_disk_and_ctrl_c_leaves_nothing(
    process: subprocess.Popen[str],
) -> None:
    assert process.stdout is not None
    lines = []
    for line in process.stdout:
        lines.append(line)
        if LAST_LINE in line:
            break
    shown = "".join(lines)
    # What an emulator never needs before a volume is measured, and is slow to import.
    assert "pandas" not in Path(f"/proc/{process.pid}/maps").read_text()
    (snippet,) = re.findall(r"```python\n(.*?)```", README.read_text("utf-8"), re.DOTALL)
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(compile(snippet, str(README), "exec"), {})
    assert printed.getvalue() == "Succeeded 240\n"
    assert all(f"{name} " in shown for name in ("endpoint", "subscription", "certificate", "for the SDK"))
    process.send_signal(signal.SIGINT)
    assert process.wait(60) == 0
    assert lifecycle.status() == []


def test_a_wrong_name_is_refused_in_one_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["No Name"]) == 2
    assert capsys.readouterr().err.startswith("diskbook_emulator: 'No Name' cannot be an emulator's name")


def test_it_leaves_the_handling_of_signals_as_it_was() -> None:
    before = signal.getsignal(signal.SIGTERM), signal.pthread_sigmask(signal.SIG_BLOCK, [])
    assert main(["No Name"]) == 2
    assert (signal.getsignal(signal.SIGTERM), signal.pthread_sigmask(signal.SIG_BLOCK, [])) == before


def test_the_readme_has_one_screen() -> None:
    assert len(README.read_text("utf-8").splitlines()) <= 72
