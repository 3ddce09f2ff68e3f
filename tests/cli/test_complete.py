"""Completion: scenarios, runs and figures by click's protocol, in a real bash, without pandas."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import click
import pytest
from click.shell_completion import ShellComplete, get_completion_class

from diskbook import cli
from diskbook.facts import paths

PROGRAM = Path(sys.executable).with_name("diskbook")


def completed(*words: str) -> list[str]:
    """What is offered for the last of these words."""
    complete = ShellComplete(cli.cli, {}, "diskbook", "_DISKBOOK_COMPLETE")
    return [item.value for item in complete.get_completions(list(words[:-1]), words[-1])]


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        (("plan", "zone"), ["zone-disks"]),
        (("run", "s"), ["s2d-azure", "shared-zrs"]),
        (("why", "sample-z"), ["sample-zone-disks"]),
        (("run", "--resume", "sample-s"), ["sample-s2d-azure", "sample-shared-zrs"]),
        (("plan", "zone-disks", "--preset", "f"), ["full"]),
        (("sample", "zone-disks", "n"), ["nested-resiliency"]),
        (("emulator", "start", "--profile", "n"), ["null"]),
        (("import", "x", "--scenario", "z"), ["zone-disks"]),
        (("tab",), ["tables"]),
        (("why", "--js"), ["--json"]),
        (("plan", "./o"), ["./o"]),
    ],
)
def test_names(words: tuple[str, ...], offered: list[str]) -> None:
    assert completed(*words) == offered


def test_figures_are_those_of_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from diskbook.cli import complete

    monkeypatch.setenv("DISKBOOK_RUNS", str(tmp_path))
    for run, name in (("a", "ratios"), ("b", "rates"), ("b", "noise")):
        (tmp_path / run / "figures").mkdir(parents=True, exist_ok=True)
        (tmp_path / run / "figures" / f"{name}.svg").touch()

    def offered(run: str | None) -> list[str]:
        context = click.Context(cli.cli)
        context.params = {"name": run}
        return [item.value for item in complete.figures(context, click.Option(["--only"]), "r")]

    assert offered(None) == ["rates", "ratios"]
    assert offered("b") == ["rates"] and offered(f"{tmp_path}/a") == ["ratios"]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_script_for_each_shell(shell: str) -> None:
    kind = get_completion_class(shell)
    assert kind is not None
    source = kind(cli.cli, {}, "diskbook", "_DISKBOOK_COMPLETE").source_vars()
    assert "diskbook" in kind.source_template % source


@pytest.mark.emulator
@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_the_protocol_of_shells_that_are_not_there(shell: str) -> None:
    line = {"COMP_WORDS": "diskbook plan zone", "COMP_CWORD": "zone" if shell == "fish" else "2"}
    done = subprocess.run(
        [PROGRAM], env={**os.environ, **line, "_DISKBOOK_COMPLETE": f"{shell}_complete"},
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert "zone-disks" in done.stdout


@pytest.mark.emulator
def test_a_real_bash_offers_them() -> None:
    script = (
        'eval "$(_DISKBOOK_COMPLETE=bash_source diskbook)"\n'
        "COMP_WORDS=(diskbook why sample-z); COMP_CWORD=2\n"
        "_diskbook_completion diskbook; echo ${COMPREPLY[@]}\n"
        "complete -p diskbook"
    )
    path = f"{PROGRAM.parent}:{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "--norc", "-c", script], env={**os.environ, "PATH": path}, capture_output=True, text=True
    )
    first, second = done.stdout.splitlines()
    assert first == "sample-zone-disks" and "_diskbook_completion" in second and not done.stderr


@pytest.mark.emulator
def test_it_imports_nothing_heavy() -> None:
    code = (
        "import sys; from click.shell_completion import ShellComplete; from diskbook import cli\n"
        "complete = ShellComplete(cli.cli, {}, 'diskbook', 'X')\n"
        "assert complete.get_completions(['why'], 'sample-z') and complete.get_completions(['plan'], 'z')\n"
        "print(*{name.partition('.')[0] for name in sys.modules})"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not {"pandas", "numpy", "pydantic", "azure", "matplotlib"} & set(done.stdout.split())


def test_the_folder_of_runs_is_one(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("DISKBOOK_RUNS", str(tmp_path))
    assert paths.runs_root() == tmp_path
