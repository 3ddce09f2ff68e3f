"""The command line as a whole: every command is there, help is quick, a mistyped name is answered."""

from __future__ import annotations

import subprocess
import sys

import click
import pytest
from click.testing import CliRunner

from diskbook import __version__, cli
from diskbook.facts.errors import UsageError

HEAVY = {"azure", "cryptography", "fabric", "matplotlib", "numpy", "pandas", "papermill", "pydantic", "scipy"}


@pytest.mark.parametrize("name", cli.COMMANDS)
def test_every_command_stands_where_the_list_says(name: str) -> None:
    with click.Context(cli.cli) as context:
        command = cli.cli.get_command(context, name)
    assert command is not None and command.name == name and command.help


@pytest.mark.emulator
def test_help_imports_nothing_heavy() -> None:
    code = (
        "import sys; from click.testing import CliRunner; from diskbook import cli\n"
        "for words in ([], *([name] for name in cli.COMMANDS)):\n"
        "    assert CliRunner().invoke(cli.cli, [*words, '--help']).exit_code == 0\n"
        "print(*{name.partition('.')[0] for name in sys.modules})"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not HEAVY & set(done.stdout.split())


@pytest.mark.emulator
def test_the_notebook_of_a_report_need_not_wait_for_tables_and_statistics() -> None:
    code = "import sys; from diskbook.measure.runs import stage; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "psutil" in done.stdout
    assert not {"matplotlib", "pandas", "papermill", "pyarrow", "scipy"} & set(done.stdout.split())


@pytest.mark.emulator
def test_a_command_leaves_the_others_alone() -> None:
    code = (
        "import sys; from click.testing import CliRunner; from diskbook import cli\n"
        "CliRunner().invoke(cli.cli, ['plan', '--help'])\n"
        "print(*sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    modules = set(done.stdout.split())
    assert "diskbook.cli.plan" in modules
    assert not modules & {"diskbook.cli.results", "diskbook.cli.cleanup", "diskbook.emulated.command"}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["rum"], "there is no command 'rum'; did you mean 'run'?"),
        (["emulator", "stats"], "there is no command 'stats'; did you mean 'status'?"),
        (["xyzzy"], f"there is no command 'xyzzy'; known: {', '.join(cli.COMMANDS)}."),
    ],
)
def test_a_mistyped_command_names_the_nearest(words: list[str], message: str) -> None:
    error = CliRunner().invoke(cli.cli, words).exception
    assert isinstance(error, UsageError) and str(error) == message


@pytest.mark.emulator
def test_python_dash_m_is_the_program() -> None:
    def call(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([sys.executable, "-m", "diskbook", *words], capture_output=True, text=True)

    assert call("--version").stdout == f"diskbook, version {__version__}\n"
    done = call("rum")
    assert done.returncode == 2
    assert done.stderr == "diskbook: there is no command 'rum'; did you mean 'run'?\n"
