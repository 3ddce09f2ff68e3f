"""A campaign of six small emulated runs, two scenarios by three profiles, each of which is played once.

Begun by the engine of this machine, which is killed in the middle, and gone on with from the store by a Dask
cluster, of which a worker is killed: nothing is repeated or left.
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

from diskbook.emulator import lifecycle
from diskbook.remote import address, lease, push, verify
from diskbook.remote.objects import open_objects
from diskbook.store import run as runs
from support.batches import TINY
from support.dask_cluster import programs
from support.emulated import soon
from support.standing import a_place, diskbook

LIMIT_S = 800
"""Five times of what the batch takes beside other tests: only what hangs takes longer."""
MATRIX = f"""
max_cost_usd = 30

[matrix]
scenario = ["{TINY}", "blocks.toml"]
emulator_profile = ["quiet", "null", "default"]
"""
LEASE_S = 3.0
STORE = "store"


@contextlib.contextmanager
def batch(place: Path, *words: str) -> Iterator[subprocess.Popen[str]]:
    """Start the batch; at the latest at the end of the block its process is gone."""
    words = ("--store", f"file://{place / STORE}", *words)
    process = diskbook("batch", str(place / "six.toml"), *words, DISKBOOK_LEASE_S=str(LEASE_S))
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def written(place: Path) -> None:
    """Write the matrix, and a scenario of two blocks, so that one can be complete when a worker is killed."""
    (place / "six.toml").write_text(MATRIX)
    text = Path(TINY).read_text().replace("runtime_s = 0.2", "runtime_s = 1.0\nblocks = 2", 1)
    (place / "blocks.toml").write_text(text)


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


def complete(events: list[dict[str, Any]]) -> list[int]:
    """Blocks that are complete, in the order in which they became so."""
    return [
        event["block"] for event in events if (event["event"], event.get("status")) == ("block", "complete")
    ]


def begun(place: Path) -> list[str]:
    """Runs of which something is measured, but not all of it stored."""
    kinds = {name: {event["event"] for event in stored(place, name)[1]} for name in names(place)}
    return [name for name, events in kinds.items() if "trial" in events]


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


def a_block_is_complete(place: Path) -> str:
    """A run of two blocks of which the first is stored, and the second is not."""
    runs_of = [name for name in names(place) if name.startswith("blocks-")]
    return next((name for name in runs_of if complete(stored(place, name)[1]) == [1]), "")


def owner_of(run: str) -> psutil.Process:
    """The process that works on a run."""
    rows = (
        row
        for row in psutil.process_iter(["cmdline"])
        if "diskbook.batch.work" in (row.info["cmdline"] or [])
    )
    return next(row for row in rows if run in row.info["cmdline"][-1])


def wait_for(process: subprocess.Popen[str], found: Callable[[], object]) -> None:
    assert soon(lambda: found() or process.poll() is not None, LIMIT_S)
    assert process.poll() is None, process.communicate()


@pytest.mark.whole
@pytest.mark.timeout(2 * LIMIT_S)
def test_six_runs_by_both_engines_each_of_which_is_killed_in_the_middle() -> None:
    with a_place() as place:
        written(place)
        with batch(place) as process:
            wait_for(process, lambda: len(begun(place)) == 2)
        assert soon(lambda: not processes(place), LIMIT_S), processes(place)
        first, _ = sorted(begun(place), key=lambda name: stored(place, name)[0]["created_utc"])
        ledger = stored(place, first)[1]

        out = by_a_cluster_that_loses_a_worker(place)
        assert processes(place) == []
        assert sorted(re.findall(r"^\S+  (goes on|starts|killed) ", out, re.M)) == [
            *["goes on"] * 2, "killed", *["starts"] * 4,
        ]  # fmt: skip
        data = json.loads(out[out.index("{\n") :])
        assert (data["finished"], data["failed"], data["left"]) == (6, 0, 0)
        assert 0 < data["spent_usd"] < data["limit_usd"]
        assert stored(place, first)[1] == ledger
        nothing_is_repeated_and_all_is_summed_up(place)


def by_a_cluster_that_loses_a_worker(place: Path) -> str:
    """Go on with the campaign; in the middle of a run its machine is gone, as by a power cut."""
    with programs(place / "dask") as cluster:
        workers = {name: cluster.worker(name, "--nthreads", "1", "--resources", "cores=2") for name in "ab"}
        words = ("--engine", "dask", "--scheduler", cluster.address, "--json")
        with batch(place, *words) as process:
            wait_for(process, lambda: a_block_is_complete(place))
            owner = owner_of(a_block_is_complete(place))
            for one in (psutil.Process(owner.ppid()), owner):
                one.kill()
            out, _ = process.communicate(timeout=LIMIT_S)
        assert process.returncode == 0, out
        assert sorted(worker.poll() is None for worker in workers.values()) == [False, True]
    return out


def nothing_is_repeated_and_all_is_summed_up(place: Path) -> None:
    assert len(names(place)) == 6
    for name in names(place):
        manifest, events = stored(place, name)
        assert complete(events) == ([1, 2] if name.startswith("blocks-") else [1])
        assert manifest["resource_groups"] and all(row["deleted_utc"] for row in manifest["resource_groups"])
    assert not any(run.faults for run in verify.verify(address.parse(f"file://{place / STORE}")))
    page = runs.runs_root() / "batch-six" / "index.html"
    reports = re.findall(r'href="(runs/[^"]+/report\.html)"', page.read_text())
    assert len(reports) == 6 and all((page.parent / report).is_file() for report in reports)
