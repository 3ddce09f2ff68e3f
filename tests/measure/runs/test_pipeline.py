"""Whole runs by the command line: real papermill, emulator, SSH and fio; nothing is left of any."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import nbformat
import psutil
import pytest

from diskbook.batch.catalogue import read
from diskbook.cli import main
from diskbook.facts.errors import UsageError
from diskbook.measure.runs import begin, outcome, pipeline, stage, stages
from diskbook.measure.runs.pipeline import Outcome
from diskbook.report.analysis import companion_files, write
from diskbook.report.analysis.run import analyse
from diskbook.results import run as runs, tables
from diskbook_emulator import lifecycle
from support import SCENARIOS, own_scenario
from support.emulated import soon
from support.measuring import meanwhile
from support.secrets import PLANTED, contents, spilt

TINY = str(SCENARIOS / "tiny.toml")
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


def _here(*words: str) -> int:
    """Call the command line in this process."""
    with pytest.MonkeyPatch.context() as patch, pytest.raises(SystemExit) as ended:
        patch.setattr(sys, "argv", ["diskbook", *words])
        main()
    return int(str(ended.value.code or 0))


@pytest.mark.whole
def test_a_stopped_run_of_ones_own_scenario_goes_on_to_the_report(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Secrets are all around it, and it keeps none. Its module draws, and is named again to go on."""
    for variable, value in {**PLANTED, "PYTHONDONTWRITEBYTECODE": "1"}.items():
        monkeypatch.setenv(variable, value)
    own = own_scenario.made(tmp_path / "own")
    own.with_suffix(".py").write_text(own_scenario.MODULE, "utf-8")
    cells = ("show.bullets([a.module.fastest(a).arm])", "show.figure(*a.module.pictures(a))")
    nbformat.write(own_scenario.notebook(*cells), own.with_name("3-analyse-toy.ipynb"))
    process = cli("run", str(own), "--name", "whole", "--time-scale", "0.001")
    _stopped(process, "whole", signal.SIGINT, "operation", f"{own} --resume whole")
    assert _here("run", "--resume", "whole") == 2
    assert "'diskbook run DIR/toy.toml --resume whole'" in capsys.readouterr().err

    process = cli("run", str(own), "--resume", "whole")
    _wait(process, lambda: bool(_events("whole", "trial")))
    folder = runs.open_run("whole")
    secrets = _secrets_of(folder)
    out, err = process.communicate(timeout=2 * LIMIT_S)
    assert process.returncode == 0, err
    assert re.search(r"^On the emulator, ", out, re.MULTILINE)
    assert f"beside {own}, and run as code: 3-analyse-toy.ipynb, toy.py\n" in out
    assert out.count("  trial ") == len(_events("whole", "trial")) == 2
    _is_whole(folder)
    _gone("whole")
    kinds = {path.suffix for path, _ in contents(folder.folder)}
    assert kinds >= {".json", ".jsonl", ".gz", ".ipynb", ".html", ".csv", ".parquet"}
    assert not spilt([*contents(folder.folder), ("said", out.encode()), ("said", err.encode())], secrets)
    _is_drawn_by_its_module(folder, own, tmp_path / "exported")
    _toml_and_notebook_are_enough(folder, own)


def _is_whole(folder: runs.Run) -> None:
    report = (folder.folder / "report.html").read_text()
    assert "EMULATED" in report and "http://" not in report.replace("http://www.w3.org", "")
    assert (tables.read(folder.folder).trials["status"] == "ok").all()
    executed = sorted(path.name for path in (folder.folder / "notebooks").iterdir())
    assert [name[0] for name in executed] == ["1", "2", "3", "4"]
    assert (folder.folder / "truth.json").exists()
    assert not (folder.folder / "keys").exists()
    assert all(row["deleted_utc"] for row in folder.manifest["resource_groups"])


def _is_drawn_by_its_module(run: runs.Run, own: Path, exported: Path) -> None:
    assert run.manifest[companion_files.RECORD] == ["3-analyse-toy.ipynb", "toy.py"]
    report = (run.folder / "report.html").read_text()
    assert "<li>Lrs-z1</li>" in report and 'id="all-trials"' in report  # pages leave titles of pictures out
    drawn = sorted((run.folder / "figures").glob("*.svg"))
    assert [path.name for path in drawn] == ["all-trials-390px.svg", "all-trials.svg"]
    assert all("<title>A picture of the toy</title>" in path.read_text() for path in drawn)
    written = write.export_figures(analyse(run, companion_files.check_file(run, own)), exported)
    assert {path.name for path in written} >= {"all-trials.svg", "all-trials@2x.png", "all-trials.json"}
    with pytest.raises(UsageError, match=r"'diskbook figures whole --scenario DIR/toy\.toml'"):
        write.export_figures(analyse(run), exported)


def _toml_and_notebook_are_enough(run: runs.Run, own: Path) -> None:
    """Analyse the same results as those of a scenario that has no module."""
    shutil.rmtree(own.parent)
    own_scenario.made(own.parent)
    alone = begin.begin("alone", str(own)).manifest[companion_files.RECORD]
    run.update_manifest(**{companion_files.RECORD: alone})
    shutil.rmtree(run.folder / "figures")
    assert _here("report", "whole", "--scenario", str(own)) == 0
    report = (run.folder / "report.html").read_text()
    assert "EMULATED" in report and "Cells: medians over trials" in report
    assert (run.folder / "comparisons.csv").exists()
    assert (run.folder / "figures" / "ratios.svg").exists()  # those that every scenario has
    assert str(own.parent) not in (run.folder / "manifest.json").read_text()
    assert sorted(path.name for path in own.parent.iterdir()) == ["3-analyse-toy.ipynb", "toy.toml"]


@pytest.mark.emulator
def test_what_is_kept_stands_until_it_is_torn_down(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    """The notebooks aside; the catalogue has the run as it is once its machines are gone, too."""
    run = stages.begin("kept", TINY, "emulator", emulator={"profile": "quiet", "time_scale": 0.0})
    work = [stages.provision, stages.benchmark, lambda run: write.results(analyse(run))]
    monkeypatch.setattr(stage, "execute", lambda run, *_: work.pop(0)(run))
    monkeypatch.setattr(outcome, "of", outcome.join_catalogue)
    try:
        pipeline.execute(run, keep=True)
        assert not work and not any(row["deleted_utc"] for row in run.manifest["resource_groups"])
        assert run.manifest["emulator"]["name"] in [row.name for row in lifecycle.status()]
    finally:
        assert _here("teardown", "kept") == 0
    assert all(row["deleted_utc"] for row in run.manifest["resource_groups"])
    assert not (run.folder / "keys").exists()
    assert read.view(run.folder.parent).others == []
    _gone("kept")


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
def test_a_signal_during_a_trial_leaves_nothing_but_what_is_finished(cli: Cli) -> None:
    process = cli(*_long("stopped"))
    _stopped(process, "stopped", signal.SIGTERM, "block", "--resume stopped")


def _stopped(
    process: subprocess.Popen[str], name: str, number: signal.Signals, kind: str, resume: str
) -> None:
    """Send a signal to a run once an event of a kind is in its ledger."""
    _wait(process, lambda: bool(_events(name, kind)))
    process.send_signal(number)
    _, err = process.communicate(timeout=LIMIT_S)
    assert process.returncode == 128 + number
    assert f"no resources are left; resume with 'diskbook run {resume}'" in err
    assert "Traceback" not in err
    _gone(name)
    assert _events(name, kind) and not _events(name, "trial")
    assert all(row["deleted_utc"] for row in runs.open_run(name).manifest["resource_groups"])


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
def test_a_dead_kernel_ends_the_run_cleanly(cli: Cli, capsys: pytest.CaptureFixture[str]) -> None:
    def kill() -> None:
        assert soon(lambda: bool(_events("kernel", "operation")), LIMIT_S)
        assert _kill_kernels(os.getpid())

    with meanwhile(kill):
        assert _here(*_long("kernel")) == 1
    err = capsys.readouterr().err
    assert "1-provision stopped: its kernel died" in err and "--resume kernel" in err
    assert "Traceback" not in err
    _gone("kernel")


@pytest.mark.whole
def test_azures_refusal_is_one_sentence_and_the_users_emulator_stays(
    cli: Cli, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    faults = tmp_path / "faults.json"
    error = {"status": 409, "code": "OperationNotAllowed", "message": "exceeding approved Cores quota."}
    match = {"method": "PUT", "path_regex": "/virtualMachines/"}
    faults.write_text(json.dumps([{"match": match, "times": 9, "action": error}]))
    name = f"mine-{os.getpid()}"
    assert _here("emulator", "start", name, "--faults", str(faults)) == 0
    try:
        assert _here("run", TINY, "--name", "refused", "--emulator", name) == 1
        err = capsys.readouterr().err
        assert "create machine r1-vm" in err and "exceeding approved Cores quota." in err
        assert "Traceback" not in err
        folder = runs.open_run("refused")
        assert all(row["deleted_utc"] for row in folder.manifest["resource_groups"])
        assert name in [row.name for row in lifecycle.status() if row.state == "running"]
    finally:
        assert _here("emulator", "stop", name) == 0
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
    assert _here(*words) == 2
    err = capsys.readouterr().err
    assert said in err
    assert err.startswith("diskbook: ") and err.count("\n") == 1
    assert not list((tmp_path / "runs").iterdir()) and not list((tmp_path / "taken").iterdir())


def test_last_words_are_answer_standing_and_report(tmp_path: Path) -> None:
    run, report = runs.Run(tmp_path), tmp_path / "report.html"
    assert Outcome(run, "answer", report).words == f"\nanswer\n\nreport: {report}"
    words = Outcome(run, "answer", report, "by protocol 1: 1 closed").words
    assert words == f"\nanswer\nby protocol 1: 1 closed\n\nreport: {report}"
