"""The password of a run's cluster account: made once, for this user alone, and not taken from others."""

from __future__ import annotations

from pathlib import Path

import pytest

from diskbook.clusters.measure import node_steps
from diskbook.facts.errors import DiskbookError


def test_it_is_made_once_and_readable_by_its_owner_alone(tmp_path: Path) -> None:
    password = node_steps.password(tmp_path)
    assert node_steps.password(tmp_path) == password
    assert len(password) >= 24 and password.isalnum()
    assert {char.islower() for char in password} == {True, False}
    for path in (tmp_path / "keys").iterdir():
        assert path.stat().st_mode & 0o777 == 0o600
        assert path.suffix != ".signature" or password not in path.read_text()
    assert (tmp_path / "keys").stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("spoil", ["other", "unsigned", "cut"])
def test_another_ones_is_not_used(tmp_path: Path, spoil: str) -> None:
    password = node_steps.password(tmp_path)
    path = tmp_path / "keys" / "cluster"
    if spoil == "unsigned":
        path.with_suffix(".signature").unlink()
    else:
        path.write_text("Known1" if spoil == "other" else password[:-1])
    with pytest.raises(DiskbookError, match=r"was not made here for run .*remove it: the nodes") as caught:
        node_steps.password(tmp_path)
    assert password not in str(caught.value)
