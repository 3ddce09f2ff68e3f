"""What the doctor says of this machine: each line made to fail once, and all of it as it is."""

from __future__ import annotations

import errno
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from diskbook.cli import main
from diskbook.cloud.kinds import State
from diskbook.design import scenario_file
from diskbook.emulated import doctor
from diskbook.facts.errors import UsageError
from diskbook.measure import doctor as check

SCENARIO = scenario_file.load("zone-disks", "quick")


def _raise(error: Exception) -> Callable[..., Any]:
    def fail(*parts: Any, **named: Any) -> Any:
        raise error

    return fail


@pytest.fixture
def healthy(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A machine where all is there; no process is started."""
    monkeypatch.setenv("DISKBOOK_RUNS", str(tmp_path))
    monkeypatch.setattr(doctor.processes, "require", lambda program, package: f"/usr/bin/{program}")
    monkeypatch.setattr(doctor.disk, "build_plugin", lambda folder: folder / "plugin.so")
    monkeypatch.setattr(doctor.machine, "library", lambda: Path("/usr/lib/libnss_wrapper.so"))
    monkeypatch.setattr(doctor.os, "cpu_count", lambda: 4)
    answer = subprocess.CompletedProcess([], 0, "uri: NBD URI", "")
    monkeypatch.setattr(doctor.subprocess, "run", lambda *parts, **named: answer)


def test_a_machine_that_lacks_nothing(healthy: None) -> None:
    rows = doctor.checks(SCENARIO)
    assert check.all_ok(rows), rows
    assert [row.name for row in rows[:5]] == ["fio", "nbdkit", "gcc", "sshd", "setpriv"]
    assert check.text_of("x", rows).splitlines()[-1] == "all is there; nothing was created"


FAILURES: dict[str, tuple[str, Any, str, Any, str]] = {
    "no engine": ("fio's NBD engine", doctor.subprocess, "run",
                  lambda *parts, **named: subprocess.CompletedProcess([], 1, "", ""), "Debian's package fio"),
    "no header": ("plugin of emulated disks", doctor.disk, "build_plugin",
                  _raise(UsageError("nbdkit-plugin.h is missing; install")), "nbdkit-plugin.h is missing"),
    "no user list": ("users of emulated machines", doctor.machine, "library",
                     _raise(UsageError("install the package libnss-wrapper.")), "libnss-wrapper"),
    "no port": ("loopback ports", doctor.machine, "free_port",
                _raise(OSError(errno.EADDRNOTAVAIL, "no address")), "ip link set lo up"),
    "no package": ("Python packages", doctor, "_has", lambda name: name != "fabric", "fabric is missing"),
    "one core": ("cores", doctor.os, "cpu_count", lambda: 1, "give this machine 2"),
    "no access": ("folder of runs", doctor.os, "access", lambda path, mode: False, "DISKBOOK_RUNS"),
}  # fmt: skip


@pytest.mark.parametrize("name", FAILURES)
def test_a_line_that_fails_says_what_to_do(healthy: None, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    line, module, attribute, instead, words = FAILURES[name]
    monkeypatch.setattr(module, attribute, instead)
    failed = [row for row in doctor.checks(SCENARIO) if row.state == State.FAILS]
    assert [row.name for row in failed] == [line] and words in failed[0].text


@pytest.mark.parametrize(("program", "package"), doctor.PROGRAMS)
def test_a_program_that_is_missing_is_named_with_its_package(
    healthy: None, monkeypatch: pytest.MonkeyPatch, program: str, package: str
) -> None:
    def require(name: str, package: str) -> str:
        if name == program:
            raise UsageError(f"install the package {package}.")
        return name

    monkeypatch.setattr(doctor.processes, "require", require)
    failed = {row.name: row.text for row in doctor.checks(SCENARIO) if row.state == State.FAILS}
    assert package in failed[program] and failed.keys() <= {program, "fio's NBD engine"}


def test_a_full_disk_fails_in_both_places(healthy: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda folder: SimpleNamespace(free=5 * 10**8))
    failed = [row for row in doctor.checks(SCENARIO) if row.state == State.FAILS]
    assert [row.name for row in failed] == ["space of emulated disks", "folder of runs"]
    assert "TMPDIR" in failed[0].text and "0.5 GB free" in failed[1].text


def test_another_cloud_is_refused_in_one_sentence(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["diskbook", "doctor", "--cloud", "inventory"])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2 and "doctor looks at azure, or at this machine" in capsys.readouterr().err


@pytest.mark.emulator
def test_this_machine_can_run_the_workbook(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", ["diskbook", "doctor"])
    with pytest.raises(SystemExit) as ended:
        main()
    assert not ended.value.code, capsys.readouterr().out
