"""How long a reader waits: help, reports, figures, comparisons, a site: `make bench-reader`.

Each row is a command as a user gives it, in a process of its own and on copies of the committed samples; of
what takes a moment the best of three. Overhead of a trial is read from the samples: what passed between its
start and its end besides the time that the tool measured, which is the ramp and its own run time; the I/Os
that were outstanding when that ended are the disk's to answer, not ours. Ends with 1 when a row is above its
limit. Limits are for a quiet machine.
"""

import itertools
import json
import shutil
import statistics
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from checks import many_runs
from diskbook.batch.catalogue import rebuild
from diskbook.results import tables
from diskbook.results.run import Run

RUNS_COMPARED, RUNS_OF_SITE = 20, 200
_ROUNDS = 3
_LONG_TRIAL_S = 30.0


@dataclass(frozen=True)
class Row:
    """A task with its seconds and its limit."""

    task: str
    seconds: float
    most_s: float

    @property
    def text(self) -> str:
        missed = "" if self.seconds <= self.most_s else "   missed"
        return f"{self.task:<44}{self.seconds:>8.2f}{self.most_s:>9.2f}{missed}"


def main() -> int:
    """Measure and print; 1 where a row is above its limit."""
    print(f"{'task':<44}{'s':>8}{'at most':>9}")
    rows = []
    with tempfile.TemporaryDirectory(prefix="diskbook-bench-") as scratch:
        for row in itertools.chain(commands(Path(scratch)), overheads()):
            print(row.text, flush=True)
            rows.append(row)
    return int(any(row.seconds > row.most_s for row in rows))


def commands(scratch: Path) -> Iterator[Row]:
    """Time the commands, one after the other."""
    runs = scratch / "runs"
    yield Row("--help", _best(["--help"], runs), 0.35)
    samples = [_copied(sample, runs / sample.name) for sample in many_runs.SAMPLES]
    yield Row("list, five runs", _best(["list"], runs), 2.0)
    for sample in samples:
        yield Row(f"report {sample.name}", _seconds(["report", sample.name], runs), 20.0)
    for sample in samples:
        asked = ["figures", sample.name, "--out", str(scratch / "figures" / sample.name)]
        yield Row(f"figures {sample.name}", _seconds(asked, runs), 12.0)
    alike = many_runs.SAMPLES[-1]
    names = [_copied(alike, runs / f"alike-{number}").name for number in range(RUNS_COMPARED)]
    yield Row(f"compare, {RUNS_COMPARED} runs", _seconds(["compare", *names], runs), 5.0)
    folder = many_runs.many(scratch / "many", RUNS_OF_SITE)
    rebuild.rebuild(folder)
    yield Row(f"list, {RUNS_OF_SITE} runs", _best(["list"], folder), 2.0)
    asked = ["site", "--runs", str(folder), "--out", str(scratch / "site")]
    yield Row(f"site, {RUNS_OF_SITE} runs", _seconds(asked, runs), 20.0)


def overheads() -> Iterator[Row]:
    """Seconds of a trial in which the tool did not measure, by sample; and what they add to one of 30 s."""
    for sample in many_runs.SAMPLES:
        beyond = _beyond(Run(sample))
        yield Row(f"a trial's overhead, {sample.name}", beyond, 0.35)
    yield Row(f"trial of 30 s, times the tool's ({sample.name})", 1 + beyond / _LONG_TRIAL_S, 1.05)


def _beyond(run: Run) -> float:
    """Median of what trials took beyond their ramp and the run time that the tool tells."""
    ramps_s = {item.name: item.ramp_s for item in run.scenario.workload}
    measured_s = tables.read(run.folder).trials.groupby("trial")["runtime_s"].max()
    trials = [event for event in run.ledger() if event["event"] == "trial" and event["status"] == "ok"]
    return statistics.median(
        (_time(trial["ended_utc"]) - _time(trial["started_utc"])).total_seconds()
        - ramps_s[trial["workload"]]
        - measured_s[trial["trial"]]
        for trial in trials
        if trial["trial"] in measured_s
    )


def _time(text: str) -> datetime:
    return datetime.fromisoformat(text)


def _copied(sample: Path, folder: Path) -> Path:
    """Copy a sample as a run of another name."""
    shutil.copytree(sample, folder)
    manifest = json.loads((folder / "manifest.json").read_text())
    (folder / "manifest.json").write_text(json.dumps({**manifest, "run": folder.name}))
    return folder


def _best(words: Sequence[str], runs: Path) -> float:
    return min(_seconds(words, runs) for _ in range(_ROUNDS))


def _seconds(words: Sequence[str], runs: Path) -> float:
    return many_runs.seconds_and_gib(words, runs)[0]


if __name__ == "__main__":
    sys.exit(main())
