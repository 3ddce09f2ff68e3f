"""Shell commands of jobs: names stand in them as they are, everything else is quoted."""

from __future__ import annotations

import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from diskbook.facts.errors import DiskbookError
from diskbook.hosts import jobs
from diskbook.hosts.ssh import untar

PROGRAMS = ("cat", "flock", "grep", "ls", "mkdir", "mv", "nohup", "rm", "setsid", "sh", "tar", "timeout")


@pytest.mark.parametrize("name", ["a; rm -rf ~", "$(calc)", "../x", "a b", "", "A", "-rf", "a\nb", "é"])
def test_a_name_that_a_shell_would_read_is_refused(name: str) -> None:
    commands = (
        lambda: jobs.start(name, ["true"]),
        lambda: jobs.finish(name, [], limit_s=1),
        lambda: jobs.times(name),
    )
    for command in commands:
        with pytest.raises(DiskbookError, match="a job cannot be called"):
            command()


def test_arguments_and_files_reach_the_job_as_they_are() -> None:
    hostile = "--filename=x; $(calc) `calc` 'calc' \"calc\"\n&calc"
    script = shlex.split(jobs.start("r1-b01-p001-lrs-read-a1", ["fio", hostile]))
    assert any(hostile in shlex.split(word) for word in script if "fio" in word)
    assert shlex.quote(hostile) in jobs.finish("job", [hostile], limit_s=1)


@pytest.mark.emulator
@pytest.mark.parametrize("has_flock", [True, False])
def test_who_waits_is_woken_and_looks_only_where_there_is_no_lock(tmp_path: Path, has_flock: bool) -> None:
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in PROGRAMS:
        if name != "flock" or has_flock:
            (programs / name).symlink_to(str(shutil.which(name)))
    looks = programs / "sleep"
    looks.write_text(f"#!/bin/sh\necho look >>{tmp_path}/looks\nexec {shutil.which('sleep')} $1\n")
    looks.chmod(0o755)

    def run(command: str) -> bytes:
        environment = {"PATH": str(programs)}
        done = subprocess.run(
            ["sh", "-c", command], cwd=tmp_path, env=environment, capture_output=True, check=True
        )
        return done.stdout

    run(jobs.start("one", [str(shutil.which("sleep")), "0.5" if has_flock else "3"]))  # or nobody looks
    (tmp_path / "looks").write_text("")  # the start may have waited for the shell's number
    files = untar(run(jobs.finish("one", [], limit_s=20)))
    assert files["status"] == b"0\n"
    assert ((tmp_path / "looks").read_text() == "") == has_flock
