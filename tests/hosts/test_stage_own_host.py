"""Hosts that nobody made for a run: this machine without SSH, commands in a folder of the run's own."""

from __future__ import annotations

from pathlib import Path

import pytest

from diskbook.facts.errors import DiskbookError
from diskbook.hosts.jobs import JobLost
from diskbook.hosts.stage import LocalConnection, in_folder
from support.emulated import soon

pytestmark = pytest.mark.emulator


def test_jobs_run_in_the_folder_alone_and_survive_the_connection(tmp_path: Path) -> None:
    folder = tmp_path / "it's ours"
    folder.mkdir()
    with LocalConnection("here", str(folder)) as here:
        here.start_job("one", ["sh", "-c", "pwd; echo err >&2; echo more >extra; exit 3"])
    with LocalConnection("here", str(folder)) as again:
        files = again.finish_job("one", ["extra"], limit_s=10)
        said = f"{folder}/jobs/one\n".encode()
        cores = {name: files.pop(name) for name in ("cpu_before", "cpu_after")}
        assert all(text.startswith(b"cpu ") for text in cores.values())
        assert files == {"status": b"3\n", "stdout": said, "stderr": b"err\n", "extra": b"more\n"}
        assert again.job_names() == ["one"] and len(again.job_times("one")) == 2
        again.start_job("long", ["sleep", "616"])
        again.end_jobs()
        assert soon(lambda: again.run("pgrep -f '^sleep 616$' >/dev/null").status != 0)
    assert [path.name for path in tmp_path.iterdir()] == [folder.name] and list(folder.iterdir()) == []


def test_a_job_that_hangs_is_ended(tmp_path: Path) -> None:
    with LocalConnection("here", str(tmp_path)) as here:
        here.start_job("hung", ["sleep", "615"])
        with pytest.raises(JobLost, match="took more than 1 s"):
            here.finish_job("hung", [], limit_s=1)


def test_what_a_command_says_is_bytes_in_plain_words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LC_ALL", "de_DE.UTF-8")
    monkeypatch.setenv("AZURE_CLIENT_SECRET", "not to be seen there")
    with LocalConnection("here", str(tmp_path)) as here:
        output = here.run("cat; echo $LC_ALL; env >&2; exit 4", stdin=b"\x00\xff")
        assert (output.status, output.stdout) == (4, b"\x00\xffC\n") and b"SECRET" not in output.stderr
        assert list(here.follow("echo a; echo b")) == ["a", "b"]
        with pytest.raises(DiskbookError, match="machine here: 'sleep 9' took more than 0 s"):
            here.run("sleep 9", timeout_s=0.1)
        with pytest.raises(DiskbookError, match="machine here: 'false' ended with 1"):
            here.check("false")


def test_a_folder_that_is_gone_is_told() -> None:
    with LocalConnection("here", "/no/such") as here, pytest.raises(DiskbookError, match="/no/such"):
        here.check("true")
    assert in_folder("true", "/a b").startswith("exec sh -c ")
