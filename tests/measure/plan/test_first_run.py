"""The scenario of the first real run stays small and cheap, and its run book names what there is."""

from __future__ import annotations

import re
import shlex
import sys

import click
import pytest

from diskbook.cli import cli, main
from diskbook.design import scenario_file
from diskbook.facts import paths

BOOK = paths.ROOT / "docs" / "tutorials" / "first-azure-run.md"


def price(name: str, preset: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> str:
    """Expected price in USD by `diskbook plan`, which must be within the run book's limit of 0.20."""
    monkeypatch.setattr(sys, "argv", ["diskbook", "plan", name, "--preset", preset, "--max-cost-usd", "0.2"])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 0
    total = re.search(r"in all, USD +([0-9.]+)", capsys.readouterr().out)
    assert total
    return total[1]


@pytest.mark.parametrize("preset", ["quick", "standard", "full"])
@pytest.mark.parametrize("name", ["first-run", "first-windows"])
def test_it_is_one_machine_with_one_disk_and_priced_below_its_limit(
    name: str, preset: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    scenario = scenario_file.load(name, preset)
    assert len(scenario.machine) == len(scenario.disk) == scenario.design.replicates == 1
    # a half more is compared with the limit
    assert 0 < float(price(name, preset, monkeypatch, capsys)) < 0.13


def test_the_first_windows_run_is_diskspd_on_a_d2s_and_says_that_it_never_ran() -> None:
    scenario = scenario_file.load("first-windows", "quick")
    assert [(machine.os, machine.size) for machine in scenario.machine] == [("windows", "Standard_D2s_v5")]
    assert "never run on Windows" in scenario.scenario.title


def test_the_run_book_has_the_prices_of_the_plan(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    quick, standard = (
        price("first-windows", preset, monkeypatch, capsys) for preset in ("quick", "standard")
    )
    book = " ".join(BOOK.read_text("utf-8").split())
    assert f"{quick} USD expected with `--preset quick` and {standard} USD with `--preset standard`" in book


def test_first_runs_are_no_samples() -> None:
    assert not {"first-run", "first-windows"} & set(scenario_file.sampled())


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
