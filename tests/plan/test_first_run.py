"""The scenario of the first real run stays small and cheap, and its run book names what there is."""

from __future__ import annotations

import re
import shlex
import sys

import click
import pytest

from diskbook import load
from diskbook.base import paths
from diskbook.cli import cli, main

BOOK = paths.ROOT / "docs" / "first-azure-run.md"


@pytest.mark.parametrize("preset", ["quick", "standard", "full"])
def test_it_is_one_machine_with_one_disk_and_priced_below_its_limit(
    preset: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    scenario = load.load("first-run", preset)
    assert len(scenario.machine) == len(scenario.disk) == scenario.design.replicates == 1
    monkeypatch.setattr(
        sys, "argv", ["diskbook", "plan", "first-run", "--preset", preset, "--max-cost-usd", "0.2"]
    )
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 0
    total = re.search(r"in all, USD +([0-9.]+)", capsys.readouterr().out)
    assert total and 0 < float(total[1]) < 0.13  # a half more is held against the limit


def test_the_first_run_is_no_sample() -> None:
    assert "first-run" not in load.sampled()


def test_the_run_book_names_commands_and_options_that_there_are() -> None:
    text = BOOK.read_text("utf-8").replace("\\\n", " ")
    lines = re.findall(r"^\.venv/bin/diskbook (.+)$", text, re.MULTILINE)
    lines += re.findall(r"`diskbook ([^`]+)`", text)
    assert len(lines) >= 5
    for line in lines:
        name, *words = shlex.split(line, comments=True)
        command = cli.get_command(click.Context(cli), name)
        assert command is not None, line
        known = {option for parameter in command.params for option in parameter.opts}
        assert {word for word in words if word.startswith("--")} <= known, line
