"""The key of a run: made here, or refused."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from diskbook.cloud.azure import keys
from diskbook.facts.errors import DiskbookError

REFUSED = r"was not made here for run {}, so it is not used; remove the folder"


def test_a_key_is_made_once_for_this_user_alone(tmp_path: Path) -> None:
    path = keys.run_key(tmp_path)
    private = path.read_bytes()
    assert keys.run_key(tmp_path) == path and path.read_bytes() == private
    assert path.stat().st_mode & 0o777 == 0o600 and path.parent.stat().st_mode & 0o777 == 0o700


def _without_signature(path: Path) -> None:
    path.with_suffix(".signature").unlink()


def _another_pair(path: Path) -> None:
    pair = keys.new_pair("diskbook")
    path.write_text(pair.private)
    path.with_suffix(".pub").write_text(pair.public + "\n")


def _another_private_key(path: Path) -> None:
    path.write_text(keys.new_pair("diskbook").private)


def _another_public_key(path: Path) -> None:
    path.with_suffix(".pub").write_text(keys.new_pair("diskbook").public + "\n")


def _no_key(path: Path) -> None:
    path.write_text("no key")


PLANTED = [_without_signature, _another_pair, _another_private_key, _another_public_key, _no_key]


@pytest.mark.parametrize("plant", PLANTED)
def test_a_key_that_somebody_put_there_is_refused(tmp_path: Path, plant: object) -> None:
    path = keys.run_key(tmp_path)
    plant(path)  # type: ignore[operator]
    with pytest.raises(DiskbookError, match=REFUSED.format(tmp_path.name)):
        keys.run_key(tmp_path)


def test_the_key_of_another_run_is_refused(tmp_path: Path) -> None:
    (tmp_path / "first").mkdir()
    keys.run_key(tmp_path / "first")
    shutil.copytree(tmp_path / "first", tmp_path / "second")
    with pytest.raises(DiskbookError, match=REFUSED.format("second")):
        keys.run_key(tmp_path / "second")
