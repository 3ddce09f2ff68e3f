"""Whole runs by the command line: real papermill, emulator, SSH and fio; nothing is left of any."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from diskbook.cli import main
from diskbook.measure.runs.pipeline import Outcome
from diskbook.results import run as runs, tables
from diskbook_emulator import lifecycle
from support import SCENARIOS
from support.emulated import soon
from support.secrets import PLANTED, contents, spilt

SMALL, TINY = (str(SCENARIOS / f"{name}.toml") for name in ("small", "tiny"))
LIMIT_S = 300
"""Five times of what a run, or its end, takes beside five other tests: only what hangs takes longer."""

Cli = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def cli(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Cli:
    """Start `diskbook` with runs in a folder of their own."""
    monkeypatch.setenv("DISKBOOK_RUNS", str(tmp_path / "runs"))
    (tmp_path / "runs").mkdir()

    def start(*words: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-c", "from diskbook.cli import main; main()", *words]
        pipe = subprocess.PIPE
        return subprocess.Popen(command, stdout=pipe, stderr=pipe, stdin=subprocess.DEVNULL, text=True)

    return start


def _small(name: str, *more: str) -> list[str]:
    """Nine trials of 0.3 s a block: the chain is under test here, not the numbers."""
    return ["run", SMALL, "--name", name, *more]


def _long(name: str) -> list[str]:
    """A run whose trials last ten minutes, so that whatever ends it comes during the first, or before."""
    return ["run", TINY, "--name", name, "--set", "all_workloads.runtime_s=600"]


def _wait(process: subprocess.Popen[str], ready: Callable[[], bool]) -> None:
    assert soon(lambda: ready() or process.poll() is not None, LIMIT_S)
    assert process.poll() is None, process.communicate()


def _events(name: str, kind: str) -> list[dict[str, object]]:
    path = runs.folder_of(name) / "ledger.jsonl"
    written, _, _ = path.read_text().rpartition("\n") if path.exists() else ("", "", "")  # whole lines only
    return [event for line in written.splitlines() if (event := json.loads(line))["event"] == kind]


def _left(name: str) -> list[str]:
    """Emulators, folders and processes of a run that are still there."""
    manifest = json.loads((runs.folder_of(name) / "manifest.json").read_text())
    emulator = manifest["emulator"]["name"]
    left = [row.name for row in lifecycle.status() if row.name == emulator]
    own = (emulator, str(runs.folder_of(name)), os.path.relpath(runs.folder_of(name)))
    for process in psutil.process_iter(["cmdline"]):
        line = " ".join(process.info["cmdline"] or [])
        if process.pid != os.getpid() and any(word in line for word in own):
            left.append(line)
    return left


def _gone(name: str) -> None:
    assert soon(lambda: not _left(name)), _left(name)


@pytest.mark.whole
def test_a_run_from_nothing_to_the_report(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    """Secrets are all around it, and it keeps none. That it repeats nothing: test_own_scenario.py."""
    for variable, value in PLANTED.items():
        monkeypatch.setenv(variable, value)
    process = cli(*_small("whole"))
    _wait(process, lambda: bool(_events("whole", "trial")))
    secrets = _secrets_of(runs.open_run("whole"))
    out, err = process.communicate(timeout=2 * LIMIT_S)
    assert process.returncode == 0, err
    assert re.search(r"^On the emulator, ", out, re.MULTILINE)
    assert out.count(": as expected: ") == 2  # the checks of the scenario
    trials = len(_events("whole", "trial"))
    assert out.count("  trial ") == trials > 8
    folder = runs.open_run("whole")
    _is_whole(folder)
    _gone("whole")
    kinds = {path.suffix for path, _ in contents(folder.folder)}
    assert kinds >= {".json", ".jsonl", ".gz", ".ipynb", ".html", ".csv", ".parquet"}
    assert not spilt([*contents(folder.folder), ("said", out.encode()), ("said", err.encode())], secrets)


def _is_whole(folder: runs.Run) -> None:
    report = (folder.folder / "report.html").read_text()
    assert "EMULATED" in report and "http://" not in report.replace("http://www.w3.org", "")
    assert (tables.read(folder.folder).trials["status"] == "ok").all()
    executed = sorted(path.name for path in (folder.folder / "notebooks").iterdir())
    assert [name[0] for name in executed] == ["1", "2", "3", "4"]
    assert (folder.folder / "truth.json").exists()
    assert not (folder.folder / "keys").exists()
    assert all(row["deleted_utc"] for row in folder.manifest["resource_groups"])


def _secrets_of(run: runs.Run) -> dict[str, bytes]:
    """What a run whose machines stand must write nowhere: the planted, its emulator's token, its key."""
    key = run.folder / "keys" / "id_ed25519"
    assert key.stat().st_mode & 0o777 == 0o600
    secrets = {name: value.encode() for name, value in PLANTED.items()}
    secrets["the emulator's token"] = lifecycle.connect(run.manifest["emulator"]["name"]).token.encode()
    secrets |= {f"line {n} of the key": line for n, line in enumerate(key.read_bytes().splitlines()[1:-1])}
    assert len(secrets) > 6
    return {**secrets, "a private key": b"PRIVATE KEY"}


@pytest.mark.whole
@pytest.mark.parametrize(("number", "kind"), [(signal.SIGINT, "operation"), (signal.SIGTERM, "block")])
def test_a_signal_leaves_nothing_but_what_is_finished(cli: Cli, number: signal.Signals, kind: str) -> None:
    process = cli(*_long("stopped"))
    _wait(process, lambda: bool(_events("stopped", kind)))
    process.send_signal(number)
    _, err = process.communicate(timeout=LIMIT_S)
    assert process.returncode == 128 + number
    assert "no resources are left; resume with 'diskbook run --resume stopped'" in err
    assert "Traceback" not in err
    _gone("stopped")
    assert _events("stopped", kind) and not _events("stopped", "trial")
    assert all(row["deleted_utc"] for row in runs.open_run("stopped").manifest["resource_groups"])


@pytest.mark.whole
def test_a_killed_parent_takes_everything_with_it(cli: Cli) -> None:
    process = cli(*_long("killed"))
    _wait(process, lambda: bool(_events("killed", "block")))
    process.kill()
    process.communicate()
    _gone("killed")


def _kill_kernels(pid: int) -> int:
    """Kill the kernels below a process; others below it come and go at any moment. Return how many."""
    killed = 0
    for child in psutil.Process(pid).children(recursive=True):
        with contextlib.suppress(psutil.NoSuchProcess):
            if "diskbook.measure.runs.kernel" in " ".join(child.cmdline()):
                child.kill()
                killed += 1
    return killed


@pytest.mark.whole
def test_a_dead_kernel_ends_the_run_cleanly(cli: Cli) -> None:
    process = cli(*_long("kernel"))
    _wait(process, lambda: bool(_events("kernel", "block")))
    assert _kill_kernels(process.pid)
    _, err = process.communicate(timeout=LIMIT_S)
    assert process.returncode == 1
    assert "2-benchmark stopped: its kernel died" in err and "--resume kernel" in err
    assert "Traceback" not in err
    _gone("kernel")


@pytest.mark.whole
def test_azures_refusal_is_one_sentence_and_the_users_emulator_stays(cli: Cli, tmp_path: Path) -> None:
    faults = tmp_path / "faults.json"
    error = {"status": 409, "code": "OperationNotAllowed", "message": "exceeding approved Cores quota."}
    match = {"method": "PUT", "path_regex": "/virtualMachines/"}
    faults.write_text(json.dumps([{"match": match, "times": 9, "action": error}]))
    name = f"mine-{os.getpid()}"
    assert cli("emulator", "start", name, "--faults", str(faults)).wait(timeout=LIMIT_S) == 0
    try:
        process = cli("run", TINY, "--name", "refused", "--emulator", name)
        _, err = process.communicate(timeout=LIMIT_S)
        assert process.returncode == 1
        assert "create machine r1-vm" in err and "exceeding approved Cores quota." in err
        assert "Traceback" not in err
        folder = runs.open_run("refused")
        assert all(row["deleted_utc"] for row in folder.manifest["resource_groups"])
        assert name in [row.name for row in lifecycle.status() if row.state == "running"]
    finally:
        assert cli("emulator", "stop", name).wait(timeout=LIMIT_S) == 0
    _gone("refused")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("run", "zone-disk"), "there is no scenario 'zone-disk'; did you mean 'zone-disks'?"),
        (("run", "zone-disks", "--preset", "quik"), "did you mean 'quick'?"),
        (("run", "zone-disks", "--cloud", "azur"), "did you mean 'azure'?"),
        (("run", "zone-disks", "--emulator-profile", "defalt"), "did you mean 'default'?"),
        (("run", "zone-disks", "--name", "../taken"), "'../taken' cannot be a run's name"),
        (("run", "zone-disks", "--set", "design.sed=1"), "did you mean 'seed'?"),
        (("run", "zone-disks", "--set", "x"), "write KEY=VALUE"),
        (("run", "zone-disks", "--emulator", "nobodys"), "does not run; start it with"),
        (("run", "--resume", "absent"), "there is no run 'absent'"),
        (("run", "--resume", "absent", "--name", "b", "--preset", "full"), "--preset and --name cannot"),
        (("run", "zone-disks", "--subscription", "x"), "--subscription works with --cloud azure only"),
        (
            ("run", "zone-disks", "--cloud", "azure", "--time-scale", "1"),
            "--time-scale works with",
        ),
        (("run", "zone-disks", "--folder", "."), "--folder works with --cloud inventory only"),
        (
            ("run", "zone-disks", "--cloud", "inventory", "--tag", "a=b", "--resource-group", "g"),
            "--tag and --resource-group works with --cloud azure or emulator only",
        ),
        (("run", "zone-disks", "--tag", "costcenter"), "--tag costcenter: write NAME=VALUE"),
        (("run", "zone-disks", "--tag", "a?=b"), "tag 'a?' has '?' in its name"),
        (
            ("run", "zone-disks", "--keep", "--debug-minutes", "5"),
            "--debug-minutes works without --keep only",
        ),
        (("doctor", "--try-ssh", "github.com"), "--try-ssh works with --cloud azure only"),
        (("plan", "zone-disks", "--cloud", "inventory", "--tag", "a=b"), "--tag works with --cloud azure"),
        (("run",), "name a scenario, or a run to --resume"),
        (("rum", "zone-disks"), "there is no command 'rum'; did you mean 'run'?"),
        (("emulator", "stop", "absent"), "there is no emulator 'absent'"),
        (("tables", "absent"), "there is no run 'absent'"),
    ],
)
def test_a_mistake_is_one_sentence_and_makes_nothing(
    words: tuple[str, ...],
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "taken").mkdir()
    (tmp_path / "runs").mkdir()
    monkeypatch.chdir(tmp_path / "runs")
    monkeypatch.setenv("DISKBOOK_RUNS", str(tmp_path / "runs"))
    monkeypatch.setattr(sys, "argv", ["diskbook", *words])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    err = capsys.readouterr().err
    assert said in err
    assert err.startswith("diskbook: ") and err.count("\n") == 1
    assert not list((tmp_path / "runs").iterdir()) and not list((tmp_path / "taken").iterdir())


def test_last_words_are_answer_standing_and_report(tmp_path: Path) -> None:
    run, report = runs.Run(tmp_path), tmp_path / "report.html"
    assert Outcome(run, "answer", report).words == f"\nanswer\n\nreport: {report}"
    words = Outcome(run, "answer", report, "by protocol 1: 1 closed").words
    assert words == f"\nanswer\nby protocol 1: 1 closed\n\nreport: {report}"
