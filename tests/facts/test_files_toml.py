"""TOML files of users: what is too large, endless or no TOML is said in one sentence."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from diskbook.facts import files
from diskbook.facts.errors import UsageError


def test_a_file_is_read(tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_text('name = "ä"\n[b]\nc = [1]\n')
    assert files.read_toml(tmp_path / "a.toml", "") == {"name": "ä", "b": {"c": [1]}}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"[a", r"^a\.toml: this is not valid TOML: "),
        (b'a = "\xff"', r"^a\.toml: this is not valid TOML: "),
        (b"a = " + b"[" * 100_000, "its tables or lists are too deep$"),
        (b'a = "' + b"x" * files.MOST_TOML_BYTES + b'"', r"^a\.toml: more than 1 MiB"),
    ],
)
def test_what_cannot_be_meant_is_refused(content: bytes, message: str, tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_bytes(content)
    with pytest.raises(UsageError, match=message) as refused:
        files.read_toml(tmp_path / "a.toml", "")
    assert "\n" not in str(refused.value)


def test_a_folder_and_a_pipe_are_no_files(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.toml")
    for path in (tmp_path, tmp_path / "pipe.toml"):
        with pytest.raises(UsageError, match=r": this cannot be read: "):
            files.read_toml(path, "")
    with pytest.raises(UsageError, match="there is none"):
        files.read_toml(tmp_path / "none.toml", "there is none")
