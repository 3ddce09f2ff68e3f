"""Damaged results: no parser does anything but read them or refuse them in a sentence."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from checks.fuzz import run as fuzz
from checks.fuzz.targets import Target, targets
from diskbook.facts.errors import DiskbookError

COUNT = 1_500  # `make fuzz` takes a million
SEED = 20_261_120


@pytest.mark.long
def test_no_parser_crashes() -> None:
    known = targets()
    outcome = fuzz.run(0, COUNT, SEED, known)
    assert outcome.crashes == []
    assert sum(tally.inputs for tally in outcome.tallies.values()) == COUNT
    for target in known:
        tally = outcome.tallies[target.name]
        # Inputs that are all refused, or all read, would test little.
        assert tally.read > 0.02 * tally.inputs and tally.refused > 0.02 * tally.inputs, target.name


def test_an_input_is_made_again_by_its_number() -> None:
    known = targets()
    assert [fuzz.make(n, 5, known)[1] for n in range(40)] == [fuzz.make(n, 5, known)[1] for n in range(40)]
    assert fuzz.make(3, 5, known)[1] != fuzz.make(3, 6, known)[1]


def _explode(content: bytes) -> object:
    raise ZeroDivisionError("oops")


def _hang(content: bytes) -> object:
    started = time.process_time()
    while time.process_time() - started < 5:
        pass
    return None


def _refuse(content: bytes) -> object:
    raise DiskbookError("line one\nline two")


@pytest.mark.long
@pytest.mark.parametrize(
    ("parse", "message"),
    [(_explode, "ZeroDivisionError at test_run.py"), (_hang, "_Hang"), (_refuse, "no sentence")],
)
def test_crashes_hangs_and_messages_that_are_no_sentence_are_found(
    parse: object, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fuzz, "_CPU_S", 0.2)
    outcome = fuzz.run(0, 1, 1, [Target("bad", parse, (b"seed",))])
    assert len(outcome.crashes) == 1 and message in outcome.crashes[0][2]


def test_the_command_keeps_what_crashes_and_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    bad = [Target("bad", _explode, (b"seed",))]
    monkeypatch.setattr(fuzz, "targets", lambda: bad)
    outcome = fuzz.run(0, 2, 1, bad)
    asked = fuzz._arguments(["--crashes", str(tmp_path / "kept"), "--seed", "1"])
    fuzz._keep(outcome, asked)
    assert fuzz._report(outcome, 1.0, asked) == 1
    assert (tmp_path / "kept" / "1-0.bin").read_bytes() == fuzz.make(0, 1, bad)[1]
    assert "crashes: 2" in capsys.readouterr().out


@pytest.mark.emulator
def test_the_command_itself(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fuzz.texts, "failures", lambda texts: [] if len(texts) == 1 else ["too many"])
    arguments = ["--count", "120", "--texts", "1", "--processes", "1", "--crashes", str(tmp_path / "kept")]
    assert fuzz.main(arguments) == 0
    out = capsys.readouterr().out
    assert "120 inputs in" in out and "DiskSpd XML" in out and "crashes: 0" in out
    assert "1 names and payloads, imported, drawn and on pages; failures: 0" in out
    assert not (tmp_path / "kept").exists()
