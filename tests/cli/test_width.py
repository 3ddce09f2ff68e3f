"""What `plan` and `why` print on a terminal of 80 columns: no line over it, no table torn."""

from __future__ import annotations

import re

import pytest
from click.testing import CliRunner

from diskbook import cli


def printed(monkeypatch: pytest.MonkeyPatch, *words: str) -> list[str]:
    monkeypatch.setenv("COLUMNS", "80")
    return CliRunner().invoke(cli.cli, words, catch_exceptions=False).output.splitlines()


@pytest.mark.long
@pytest.mark.parametrize("scenario", ["disk-options", "s2d-azure"])
def test_a_plan(scenario: str, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = printed(monkeypatch, "plan", scenario, "--preset", "full", "--half-width", "2%", "--effect", "5%")
    assert max(map(len, lines)) <= 80
    rows = lines[next(n for n, line in enumerate(lines) if "USD each" in line) + 1 :]
    table = rows[: next(n for n, line in enumerate(rows) if "in all, USD" in line) + 1]
    whole = [line for line in table if re.search(r"\d\.\d\d$", line)]
    assert len(whole) > 3 and len({line.rindex(".") for line in whole}) == 1  # the last column is aligned
    assert all(line.startswith("    ") for line in table if line not in whole)  # names that go on


@pytest.mark.long
@pytest.mark.parametrize("words", [(), ("--protocol",)])
def test_a_diagnosis(words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    lines = printed(monkeypatch, "why", "sample-zone-disks", *words)
    assert len(lines) > 20 and max(map(len, lines)) <= 80
