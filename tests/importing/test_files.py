"""Files below a path: everything that is left out is named, and nothing is walked for ever."""

from __future__ import annotations

import json
import os
import socket
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest

from diskbook.importing import run as importer
from support.results import Result, later, write


def refused(base: Path) -> tuple[str, ...]:
    planned = importer.plan([str(base)], f"{base}-run")
    assert len({entry.source.path.resolve() for entry in planned.entries}) == len(planned.entries)
    return planned.refused


@pytest.fixture
def base(tmp_path: Path) -> Path:
    """A folder with one result in it."""
    write(tmp_path / "in" / "disk" / "x", "fio-json", "3.36", Result())
    return tmp_path / "in"


def link_to_itself(base: Path) -> None:
    (base / "odd").symlink_to(base / "odd")


def link_to_parent(base: Path) -> None:
    (base / "disk" / "odd").symlink_to(base)


def link_to_sibling(base: Path) -> None:
    (base / "odd").symlink_to(base / "disk")


def link_to_result(base: Path) -> None:
    (base / "odd").symlink_to(next((base / "disk").iterdir()))


def dead_link(base: Path) -> None:
    (base / "odd").symlink_to(base / "nothing")


def pipe(base: Path) -> None:
    os.mkfifo(base / "odd")


def hidden_folder(base: Path) -> None:
    write(base / ".odd" / "y", "fio-json", "3.36", Result(iops=4000))


def hidden_file(base: Path) -> None:
    (base / ".odd").write_text("x")


def empty_files(base: Path) -> None:
    for name in ("odd1.json", "odd2.json"):
        (base / name).write_text("")


@pytest.mark.parametrize(
    ("fill", "sentences"),
    [
        (link_to_itself, ["odd: a link to nothing, or to itself, and no file"]),
        (link_to_parent, ["disk/odd: a link to a folder that is read without it"]),
        (link_to_result, ["odd: the same file as disk/x.json: it counts once"]),
        (link_to_sibling, ["odd: a link to a folder that is read without it"]),
        (dead_link, ["odd: a link to nothing, or to itself, and no file"]),
        (pipe, ["odd: a pipe, socket or device, and no file"]),
        (hidden_folder, [".odd: hidden files and folders are left out"]),
        (hidden_file, [".odd: hidden files and folders are left out"]),
        (empty_files, ["odd1.json: the file is empty", "odd2.json: the file is empty"]),
    ],
)
def test_what_is_left_out_is_named(base: Path, fill: Callable[[Path], None], sentences: list[str]) -> None:
    fill(base)
    assert list(refused(base)) == sentences


def test_a_link_to_a_folder_elsewhere_is_followed_once(base: Path, tmp_path: Path) -> None:
    write(tmp_path / "other" / "y", "fio-json", "3.36", Result(iops=4000, began=later(minutes=1)))
    (tmp_path / "other" / "back").symlink_to(tmp_path / "other")
    for name in ("one", "two"):
        (base / name).symlink_to(tmp_path / "other")
    assert len(importer.plan([str(base)], f"{base}-run").entries) == 2
    assert sorted(refused(base)) == [
        "one/back: a link to a folder that is read without it",
        "two: a link to a folder that is read without it",
    ]


def test_a_socket_is_named() -> None:
    with tempfile.TemporaryDirectory(dir="/tmp") as short, socket.socket(socket.AF_UNIX) as server:
        write(Path(short) / "in" / "x", "fio-json", "3.36", Result())
        server.bind(f"{short}/in/odd")
        assert refused(Path(short) / "in") == ("odd: a pipe, socket or device, and no file",)


def test_a_folder_that_cannot_be_read_is_named(base: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (base / "odd").mkdir()
    real = os.scandir

    def scandir(path: str) -> object:
        if str(path).endswith("odd"):
            raise PermissionError(13, "Permission denied", str(path))
        return real(path)

    monkeypatch.setattr(os, "scandir", scandir)
    assert refused(base) == ("odd: the folder cannot be read (Permission denied)",)


def test_a_job_that_only_trims_is_named(base: Path) -> None:
    job = {"jobname": "t", "job options": {"rw": "trim"}, "trim": {"total_ios": 9, "iops": 1}}
    (base / "odd.json").write_text(json.dumps({"fio version": "fio-3.36", "jobs": [job]}))
    assert refused(base) == ("odd.json, line 1: job 't' cannot be used: it only trims, which is not read",)
