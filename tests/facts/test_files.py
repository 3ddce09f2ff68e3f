"""Files that are whole or not there, and locks between processes."""

from __future__ import annotations

import math
import os
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from diskbook.facts import files

_HOLDER = """
import sys
from pathlib import Path
from diskbook.facts import files
with files.locked(Path(sys.argv[1]), RuntimeError("busy")):
    print("held", flush=True)
    sys.stdin.read()
"""


@contextmanager
def _held_elsewhere(path: Path) -> Iterator[subprocess.Popen[str]]:
    """Another process that holds the lock until its standard input is closed."""
    command = [sys.executable, "-c", _HOLDER, str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None and process.stdin is not None
        assert process.stdout.readline() == "held\n"
        try:
            yield process
        finally:
            process.stdin.close()


def _mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.parametrize("content", ["text, é\n", b"\x00bytes"])
def test_a_file_is_written_and_replaced_as_a_whole(tmp_path: Path, content: str | bytes) -> None:
    path = tmp_path / "file"
    path.write_text("old")
    files.write_atomic(path, content)
    assert path.read_bytes() == (content.encode() if isinstance(content, str) else content)
    assert [entry.name for entry in tmp_path.iterdir()] == ["file"]


def test_permissions_are_as_asked_whatever_the_umask(tmp_path: Path) -> None:
    before = os.umask(0o077)
    try:
        files.write_atomic(tmp_path / "public", "")
        files.write_atomic(tmp_path / "private", "", 0o600)
    finally:
        os.umask(before)
    assert (_mode(tmp_path / "public"), _mode(tmp_path / "private")) == (0o644, 0o600)


def test_until_it_is_whole_a_file_is_private_and_the_old_one_stands(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("old")
    with files.replacing(path) as part:
        part.write_text("new")
        assert (_mode(part), path.read_text()) == (0o600, "old")
    assert path.read_text() == "new"


def test_after_an_error_the_old_file_stands_and_nothing_else_is_left(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("old")
    with pytest.raises(OSError, match="full"), files.replacing(path) as part:
        part.write_text("half")
        raise OSError("the disk is full")
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_an_error_names_the_path_that_was_asked_for(tmp_path: Path) -> None:
    with pytest.raises(OSError) as missing, files.replacing(tmp_path / "no" / "a.svg"):
        pass
    assert missing.value.filename == str(tmp_path / "no" / "a.svg")
    with pytest.raises(OSError) as other, files.named(tmp_path / "site"):
        (tmp_path / "other").read_text()
    assert other.value.filename == str(tmp_path / "other")


def test_a_file_is_written_once(tmp_path: Path) -> None:
    path = tmp_path / "key"
    files.write_once(path, "first")
    with pytest.raises(FileExistsError):
        files.write_once(path, "second")
    assert (path.read_text(), _mode(path)) == ("first", 0o600)


@pytest.mark.emulator
def test_a_lock_is_seen_and_refused_elsewhere_and_free_afterwards(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    assert not files.is_locked(path)
    busy = RuntimeError("busy")
    with _held_elsewhere(path):
        assert files.is_locked(path)
        with pytest.raises(RuntimeError, match="busy"), files.locked(path, busy):
            pytest.fail("the lock was given twice")
    assert not files.is_locked(path)
    with files.locked(path, busy):
        assert files.is_locked(path)


@pytest.mark.emulator
def test_whoever_has_patience_waits_for_the_lock(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    for patience_s in (30.0, math.inf):
        with _held_elsewhere(path) as holder:
            assert holder.stdin is not None
            threading.Timer(0.1, holder.stdin.close).start()
            with files.locked(path, RuntimeError("busy"), patience_s):
                pass


@pytest.mark.emulator
def test_patience_ends(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    with _held_elsewhere(path):
        began = time.monotonic()
        with pytest.raises(RuntimeError, match="busy"), files.locked(path, RuntimeError("busy"), 0.2):
            pytest.fail("the lock was given twice")
        assert time.monotonic() - began >= 0.2


def test_what_a_locked_file_holds_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    path.write_text("17")
    with files.locked(path, RuntimeError("busy")) as file:
        file.write(b"!")
    assert path.read_text() == "17!"
