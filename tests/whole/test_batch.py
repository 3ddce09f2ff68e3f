"""A campaign of two emulated runs that is killed on this machine, and again on a Dask cluster, and goes on.

Nothing is repeated, and nothing is left. One run has no notebooks (`support.thin_runs`): it waits
in its second block to be killed here, and in its third to lose its worker.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from diskbook.batch.stores import address, lease, push, verify
from diskbook.batch.stores.objects import open_objects
from diskbook.results import run as runs
from diskbook_emulator import lifecycle
from support import thin_runs
from support.batches import TINY
from support.dask_cluster import programs
from support.emulated import soon
from support.standing import a_place, started

LIMIT_S = 800
"""Ten times of what the batch takes beside other tests: only what hangs takes longer."""
MATRIX = f"""
max_cost_usd = 30
jobs = {{jobs}}

[matrix]
scenario = ["blocks.toml", "{TINY}"]
emulator_profile = ["quiet"]
"""
STORE = "store"


@contextlib.contextmanager
def batch(place: Path, *words: str, jobs: int = 2) -> Iterator[subprocess.Popen[str]]:
    """Start the batch; at the latest at the end of the block its process is gone."""
    (place / "two.toml").write_text(MATRIX.format(jobs=jobs))
    words = ("batch", str(place / "two.toml"), "--store", f"file://{place / STORE}", "--json", *words)
    # A lease that even a busy machine renews in time, and that is soon over when its owner was killed.
    process = started("-m", "support.thin_runs", *words, DISKBOOK_LEASE_S="10")
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def stored(place: Path, run: str) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Manifest and ledger of a run in the store, as far as they are there."""
    objects = open_objects(address.parse(f"file://{place / STORE}/{run}"))
    state = lease.read(objects).state
    if "manifest.json" not in state.files:
        return {}, []
    manifest = json.loads(push.read(objects, "manifest.json", state.files["manifest.json"]))
    return manifest, [json.loads(line) for line in push.ledger_of(state, objects).splitlines()]


def names(place: Path) -> list[str]:
    """Runs that are in the store."""
    return sorted(path.name for path in (place / STORE).glob("[!.]*"))


def ledger(place: Path, scenario: str) -> list[dict[str, Any]]:
    """Ledger of the run of a scenario, as it is in the store; empty where none is."""
    found = [name for name in names(place) if name.startswith(f"{scenario}-")]
    return stored(place, found[0])[1] if found else []


def complete(events: list[dict[str, Any]]) -> list[int]:
    """Blocks that are complete, in the order in which they became so."""
    return [
        event["block"] for event in events if (event["event"], event.get("status")) == ("block", "complete")
    ]


def processes(place: Path) -> list[str]:
    """Emulators and processes that have to do with the runs."""
    left = [row.name for row in lifecycle.status()]
    for process in psutil.process_iter(["cmdline"]):
        line = " ".join(process.info["cmdline"] or [])
        if process.pid != os.getpid() and any(
            word in line for word in (str(place), "tiny-quick-", "blocks-quick-")
        ):
            left.append(line)
    return left


def until_held(place: Path, block: int, process: subprocess.Popen[str]) -> None:
    """Wait until a block waits to be measured, and those before it are in the store."""
    wait_for(process, thin_runs.held(place, block).exists)
    wait_for(process, lambda: set(complete(ledger(place, "blocks"))) == set(range(1, block)))


def wait_for(process: subprocess.Popen[str], found: Callable[[], object]) -> None:
    assert soon(lambda: found() or process.poll() is not None, LIMIT_S)
    assert process.poll() is None, process.communicate()


def owner() -> psutil.Process:
    """The process that works on the run which is held."""
    rows = (
        process
        for process in psutil.process_iter(["cmdline"])
        if "support.thin_runs" in (process.info["cmdline"] or [])
    )
    return next(row for row in rows if '"name": "blocks-' in row.info["cmdline"][-1])


@pytest.mark.whole
@pytest.mark.faults
@pytest.mark.timeout(3 * LIMIT_S)
def test_a_campaign_killed_here_and_on_a_cluster_repeats_and_leaves_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[1]), prepend=os.pathsep)  # for thin_runs
    with a_place() as place:
        thin_runs.write(place, TINY)
        with batch(place, jobs=1) as process:
            until_held(place, 2, process)
        assert soon(lambda: not processes(place), LIMIT_S), processes(place)
        first = ledger(place, "blocks")
        thin_runs.gate(place, 2).unlink()

        on_a_cluster_that_loses_a_worker(place)
        assert processes(place) == []
        ledgers = {name: stored(place, name)[1] for name in names(place)}
        assert ledger(place, "blocks")[: len(first)] == first
        nothing_is_repeated_and_all_is_summed_up(place)

        with batch(place) as process:
            is_finished(process)
        assert {name: stored(place, name)[1] for name in names(place)} == ledgers
        assert processes(place) == []


def on_a_cluster_that_loses_a_worker(place: Path) -> None:
    """Go on with the campaign; in the middle of a run its machine is gone, as by a power cut."""
    with programs(place / "dask") as cluster:
        workers = {name: cluster.worker(name, "--nthreads", "1", "--resources", "cores=2") for name in "ab"}
        with batch(place, "--engine", "dask", "--scheduler", cluster.address) as process:
            until_held(place, 3, process)
            working = owner()
            for one in (psutil.Process(working.ppid()), working):
                one.kill()
            thin_runs.gate(place, 3).unlink()
            is_finished(process)
        assert sorted(worker.poll() is None for worker in workers.values()) == [False, True]


def is_finished(process: subprocess.Popen[str]) -> None:
    """Wait for the end of a batch, which says that all of it is done, and what it has cost."""
    out, _ = process.communicate(timeout=LIMIT_S)
    assert process.returncode == 0, out
    data = json.loads(out[out.index("{\n") :])
    assert (data["finished"], data["failed"], data["left"]) == (2, 0, 0)
    assert 0 < data["spent_usd"] < data["limit_usd"]


def nothing_is_repeated_and_all_is_summed_up(place: Path) -> None:
    assert [name.split("-")[0] for name in names(place)] == ["blocks", "tiny"]
    for name, blocks in zip(names(place), ([1, 2, 3], [1]), strict=True):
        manifest, events = stored(place, name)
        assert complete(events) == blocks
        assert manifest["resource_groups"] and all(row["deleted_utc"] for row in manifest["resource_groups"])
    assert not any(run.faults for run in verify.verify(address.parse(f"file://{place / STORE}")))
    page = runs.runs_root() / "batch-two" / "index.html"
    reports = re.findall(r'href="(runs/[^"]+/report\.html)"', page.read_text())
    assert len(reports) == 2 and all((page.parent / report).is_file() for report in reports)
