"""The beginning of a run: what it may be called."""

from __future__ import annotations

from pathlib import Path

import pytest

from diskbook.facts.errors import UsageError
from diskbook.measure.runs.begin import begin
from support import SCENARIOS

TINY = str(SCENARIOS / "tiny.toml")


@pytest.mark.parametrize("name", ["a b", "-a", ".a", "a\x1b[2J", "é", "a" * 65, "a'b", "a\n"])
def test_a_name_that_no_resource_group_could_have_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setenv("DISKBOOK_RUNS", str(tmp_path))
    with pytest.raises(UsageError, match="cannot be a run's name: use up to 64 letters, digits"):
        begin(name, TINY)
    assert list(tmp_path.iterdir()) == []


def test_a_name_of_the_longest_kind_is_taken_and_planned(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DISKBOOK_RUNS", str(tmp_path))
    run = begin("A_b-1." + "x" * 58, TINY)
    assert run.is_signed and (run.folder / "plan.json").exists()
