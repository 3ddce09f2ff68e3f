"""The command line as a whole: every command is there, help is quick, a mistyped name is answered."""

from __future__ import annotations

import errno
import re
import subprocess
import sys
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from diskbook import __version__, cli
from diskbook.cli.groups import SuggestingGroup
from diskbook.facts.errors import DiskbookError, UsageError
from support import synthetic

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


def help_of(monkeypatch: pytest.MonkeyPatch, *words: str) -> str:
    monkeypatch.setenv("COLUMNS", "80")
    return CliRunner().invoke(cli.cli, [*words, "--help"], catch_exceptions=False).output


def test_help_has_the_sections_of_a_newcomer(monkeypatch: pytest.MonkeyPatch) -> None:
    text = help_of(monkeypatch)
    places = [text.index(f"\n{title}:\n") for title in cli.SECTIONS]
    assert places == sorted(places) and list(cli.SECTIONS) == [
        *("Start", "Compare", "Prepare", "Ask", "Store", "Upkeep"),
    ]
    assert list(cli.SECTIONS["Start"]) == ["run", "list", "report", "why"]
    rows = [line.split()[0] for line in text[places[0] :].splitlines() if line[:3].strip() and line[0] == " "]
    assert sorted(rows) == list(cli.COMMANDS)
    assert "..." not in text[places[0] :] and all(len(line) <= 80 for line in text.splitlines())


def test_the_options_of_a_cloud_stand_together(monkeypatch: pytest.MonkeyPatch) -> None:
    parts = re.split(r"\n([\w ]+):\n", help_of(monkeypatch, "run"))
    options = {
        title: re.findall(r"^  (--[\w-]+)", text, re.M)
        for title, text in zip(parts[1::2], parts[2::2], strict=True)
    }
    assert {"--cloud", "--preset", "--name", "--set", "--resume", "--store"} <= set(options["Options"])
    assert options["On the emulator"][0] == "--emulator" and "--time-scale" in options["On the emulator"]
    assert options["On Azure"][:2] == ["--subscription", "--ssh-source"]
    assert options["On hosts of your own"] == ["--hosts", "--folder"]
    with click.Context(cli.cli) as context:
        command = cli.cli.get_command(context, "run")
    assert command is not None
    known = {max(param.opts, key=len) for param in command.params if isinstance(param, click.Option)}
    assert {option for names in options.values() for option in names} >= known


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--name", "../x"], "'../x' cannot be a run's name"),
        (["--time-scale", "0"], "'--time-scale': 0.0 is not in the range 0<x<=100"),
    ],
)
def test_run_refuses_what_it_cannot_do(words: list[str], said: str) -> None:
    done = CliRunner().invoke(cli.cli, ["run", "zone-disks", *words])
    assert said in f"{done.output}{done.exception}" and done.exit_code


@pytest.mark.long
@pytest.mark.parametrize("command", [["figures", "made-up", "--only", "all-trials"], ["site"]])
def test_a_file_in_the_way_ends_in_one_sentence(
    command: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DISKBOOK_RUNS", str(tmp_path / "runs"))
    synthetic.run_folder(tmp_path / "runs" / "made-up", n_blocks=1, draws=50, loads=(synthetic.WRITE,))
    (tmp_path / "file").touch()
    error = CliRunner().invoke(cli.cli, [*command, "--out", str(tmp_path / "file" / "x")]).exception
    assert isinstance(error, DiskbookError)
    assert f"{tmp_path}/file" in str(error) and "move what is in the way" in str(error)


@pytest.mark.parametrize(
    ("error", "advice"),
    [
        (OSError(errno.EROFS, "Read-only file system", "/mnt/x"), "'/mnt/x' cannot be used (Read-only"),
        (OSError(errno.ENOSPC, "No space left on device"), "free some space"),
        (PermissionError(errno.EACCES, "Permission denied", "/x"), "that you may write to"),
    ],
)
def test_a_folder_that_cannot_be_written_ends_in_one_sentence(error: OSError, advice: str) -> None:
    group = SuggestingGroup()

    @group.command()
    def write() -> None:
        raise error

    with pytest.raises(DiskbookError, match=re.escape(advice)):
        group.main(["write"], standalone_mode=False)


def test_a_network_that_fails_is_no_folder() -> None:
    group = SuggestingGroup()

    @group.command()
    def ask() -> None:
        raise ConnectionResetError(errno.ECONNRESET, "reset")

    with pytest.raises(ConnectionResetError):
        group.main(["ask"], standalone_mode=False)
