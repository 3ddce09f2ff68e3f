"""Settings of the environment: read, bounded, and refused in one sentence."""

from __future__ import annotations

import re

import pytest

from diskbook.facts import paths
from diskbook.facts.errors import UsageError
from support.standing import diskbook

NAME = "DISKBOOK_LEASE_S"


@pytest.mark.parametrize(
    ("text", "seconds"),
    [(None, 60.0), ("", 60.0), ("2.5", 2.5), (" 7 ", 7.0), ("1e999", 600.0), ("601", 600.0)],
)
def test_seconds(monkeypatch: pytest.MonkeyPatch, text: str | None, seconds: float) -> None:
    monkeypatch.delenv(NAME, raising=False)
    if text is not None:
        monkeypatch.setenv(NAME, text)
    assert paths.seconds_from_environment(NAME, usual=60.0, most=600.0) == seconds


@pytest.mark.parametrize("text", ["a minute", "0", "-3", "nan", "60s"])
def test_what_is_no_time(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setenv(NAME, text)
    with pytest.raises(UsageError, match=re.escape(f"{NAME} is '{text}', and must be a number of seconds")):
        paths.seconds_from_environment(NAME, usual=60.0, most=600.0)


@pytest.mark.emulator
@pytest.mark.parametrize(
    ("variable", "words"),
    [
        ("DISKBOOK_LEASE_S", ["verify", "file:///none"]),
        ("DISKBOOK_RECONNECT_S", ["sweep", "--cloud", "emulator"]),
    ],
)
def test_commands_say_it_in_one_sentence(variable: str, words: list[str]) -> None:
    process = diskbook(*words, **{variable: "soon"})
    said = process.communicate(timeout=60)[0]
    assert process.returncode == 2
    assert said.strip().startswith(f"diskbook: environment: {variable} is 'soon'")
    assert len(said.strip().splitlines()) == 1
