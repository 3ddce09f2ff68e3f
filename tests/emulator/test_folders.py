"""State folders of emulators, while other processes make and remove theirs."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from diskbook_emulator import folders, lifecycle


@pytest.fixture
def home(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="diskbook-test-", dir="/tmp") as name:
        monkeypatch.setenv("TMPDIR", name)
        yield folders.home()


@pytest.mark.parametrize("elsewhere", [False, True])
def test_who_removes_the_last_emulator_is_in_nobodys_way(
    home: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, elsewhere: bool
) -> None:
    """It removes the folder of all emulators just after another process has made it."""
    mkdir, removed = Path.mkdir, list[Path]()

    def made(path: Path, *args: Any, **options: Any) -> None:
        mkdir(path, *args, **options)
        if path == home and not removed:
            removed.append(path)
            home.rmdir()

    monkeypatch.setattr(Path, "mkdir", made)
    state = folders.make("one", tmp_path / "state" if elsewhere else None)
    assert removed and state.is_dir() and (home / "one").resolve() == state
    assert home.stat().st_mode & 0o077 == 0


def test_an_emulator_that_goes_meanwhile_is_not_listed(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("gone", "here"):
        folders.make(name, None)
    exists = Path.exists

    def vanishing(path: Path) -> bool:
        if path.name == "gone" and exists(path):
            path.rmdir()
        return exists(path)

    monkeypatch.setattr(Path, "exists", vanishing)
    assert [one.name for one in lifecycle.status()] == ["here"]
    monkeypatch.setattr(folders, "home", lambda: home / "none")
    assert folders.names() == []
