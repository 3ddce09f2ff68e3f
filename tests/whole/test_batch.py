"""Four small emulated runs as a batch, killed in the middle, started again: nothing is repeated or left."""

from __future__ import annotations

import contextlib
import json
import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from diskbook.emulator import lifecycle
from diskbook.store import run as runs
from support.batches import TINY
from support.emulated import soon
from support.standing import a_place, diskbook

LIMIT_S = 800
"""Five times of what the batch takes beside other tests: only what hangs takes longer."""
MATRIX = f"""
max_cost_usd = 20

[matrix]
scenario = ["{TINY}"]
emulator_profile = ["quiet", "null"]
"design.seed" = [1, 2]
"""


@contextlib.contextmanager
def batch(place: Path, *words: str) -> Iterator[subprocess.Popen[str]]:
    """Start the batch; at the latest at the end of the block its process is gone."""
    process = diskbook("batch", str(place / "four.toml"), *words)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def folders() -> list[Path]:
    """Folders of the runs, in the order in which they were begun."""
    return sorted(
        (path.parent for path in runs.runs_root().glob("tiny-*/manifest.json")),
        key=lambda folder: json.loads((folder / "manifest.json").read_text())["created_utc"],
    )


def events(folder: Path, kind: str) -> list[dict[str, Any]]:
    lines = (folder / "ledger.jsonl").read_text().splitlines()
    return [event for line in lines if (event := json.loads(line))["event"] == kind]


def is_measuring(number: int) -> bool:
    """Whether the n-th run of the batch has finished a trial."""
    made = folders()
    return len(made) >= number and any(event["status"] == "ok" for event in events(made[number - 1], "trial"))


def wait_for(process: subprocess.Popen[str], number: int) -> None:
    assert soon(lambda: is_measuring(number) or process.poll() is not None, LIMIT_S)
    assert process.poll() is None, process.communicate()


def processes(place: Path) -> list[str]:
    """Emulators and processes that have to do with the runs."""
    left = [row.name for row in lifecycle.status()]
    for process in psutil.process_iter(["cmdline"]):
        line = " ".join(process.info["cmdline"] or [])
        if process.pid != os.getpid() and any(word in line for word in (str(place), "tiny-quick-")):
            left.append(line)
    return left


def is_torn_down(folder: Path) -> bool:
    groups = json.loads((folder / "manifest.json").read_text())["resource_groups"]
    return bool(groups) and all(row["deleted_utc"] for row in groups) and not (folder / "keys").exists()


@pytest.mark.whole
@pytest.mark.timeout(2 * LIMIT_S)
def test_four_runs_of_which_the_second_is_cut_short_by_a_kill() -> None:
    with a_place() as place:
        (place / "four.toml").write_text(MATRIX)
        with batch(place) as process:
            wait_for(process, 2)
        assert soon(lambda: not processes(place), LIMIT_S), processes(place)
        first, second = folders()
        assert is_torn_down(first) and is_torn_down(second)
        ledger = (first / "ledger.jsonl").read_bytes()

        with batch(place, "--json") as process:
            out, _ = process.communicate(timeout=LIMIT_S)
        assert process.returncode == 0, out
        assert processes(place) == []
        assert re.findall(r"^\S+  (goes on|starts) ", out, re.M) == ["goes on", "starts", "starts"]
        data = json.loads(out[out.index("{\n") :])
        assert (data["finished"], data["failed"], data["left"]) == (4, 0, 0)
        assert 0 < data["spent_usd"] < data["limit_usd"]
        nothing_is_repeated_and_all_is_summed_up(first, ledger)


def nothing_is_repeated_and_all_is_summed_up(first: Path, ledger: bytes) -> None:
    assert (first / "ledger.jsonl").read_bytes() == ledger
    for folder in folders():
        complete = [event for event in events(folder, "block") if event["status"] == "complete"]
        assert [event["block"] for event in complete] == [1] and is_torn_down(folder)
    page = runs.runs_root() / "batch-four" / "index.html"
    reports = re.findall(r'href="(\.\./[^"]+/report\.html)"', page.read_text())
    assert len(reports) == 4 and all((page.parent / report).is_file() for report in reports)
