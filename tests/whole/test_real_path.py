"""The workbook's jobs on the kernel's real I/O path: O_DIRECT, block layer, flushes; planted delays found.

On the emulator fio talks NBD and meets none of these. What is here of loop devices, FUSE and io_uring is
found at run time; the end of `make test` says what was met and what was not.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from diskbook.design import scenario_file
from diskbook.design.model import Workload
from diskbook.hosts.device import Device
from diskbook.measure.runs import stages
from diskbook.results import tables
from diskbook.results.run import Run
from diskbook.tools import fio
from diskbook.tools.record import Measurement
from support import SCENARIOS, fio_jobs
from support.disturbance import load_sensitive
from support.own_hosts import begun, disk_folder, written
from support.real_path import Counts, Disk, SlowDisk, disk, is_mounted, met, refusal_of_io_uring, slow_disk

SCENARIO = str(SCENARIOS / "real-path.toml")
JOBS = {
    item.name: item.model_copy(update={"runtime_s": 0.3, "series_s": 0.05})
    for item in scenario_file.load(SCENARIO, "full").workload
    if item.ioengine == "libaio"
}
ENGINES = ("libaio", "io_uring")
READ_MS, WRITE_MS, FLUSH_MS = 4.0, 7.0, 5.0
STANDSTILL_MS = 40.0  # how long a virtual machine may stand still meanwhile


def measured(workload: Workload, device: Device, folder: Path) -> Measurement:
    """What the workbook reads of a job that it has fio do."""
    folder.mkdir()
    job = fio.command(workload, device)
    assert fio_jobs.run(job, folder) == 0, (folder / "stderr").read_text()
    return read(workload, folder)


def read(workload: Workload, folder: Path) -> Measurement:
    files = {
        kind: (folder / name).read_bytes()
        for name, (kind, _) in fio.TOOL.raw.items()
        if (folder / name).exists()
    }
    limits = {"runtime_s": workload.runtime_s, "series_s": workload.series_s}
    return fio.TOOL.read(files, workload.name, **limits)


# --- the same jobs by every engine


@dataclass(frozen=True)
class Done:
    """What an engine did of each job, and what reached the block device meanwhile; no job where `refusal`."""

    disk: Disk
    results: dict[str, Measurement]
    reached: dict[str, Counts]
    refusal: str = ""


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    with disk_folder() as made:
        yield made


def by_nbd(folder: Path) -> dict[str, Measurement]:
    """The jobs as they run on the emulator."""
    nbd = Device("nbd", "@uri@", "@uri@", 0)
    places = {name: folder / f"nbd-{name}" for name in JOBS}
    for place in places.values():
        place.mkdir(parents=True)
    jobs = [(fio.command(item, nbd), places[name]) for name, item in JOBS.items()]
    assert fio_jobs.run_on_memory(jobs, delay_ms=0) == [0] * len(jobs)
    return {name: read(item, places[name]) for name, item in JOBS.items()}


def by_kernel(engine: str, folder: Path) -> Done:
    """The jobs by an engine of the kernel's, on a disk of their own."""
    folder.mkdir()
    results, reached = {}, {}
    with disk(folder, size_mib=16) as plain:
        refusal = refusal_of_io_uring() if engine == "io_uring" else ""
        for name, item in JOBS.items() if not refusal else ():
            before = plain.counts
            results[name] = measured(
                item.model_copy(update={"ioengine": engine}), plain.device, folder / name
            )
            after = plain.counts
            if before and after:
                reached[name] = after.since(before)
        return Done(plain, results, reached, refusal)


@pytest.fixture(scope="module")
def done(folder: Path) -> dict[str, Any]:
    """The same jobs by each engine, all engines at once: nothing that a load could move is judged."""
    with ThreadPoolExecutor(1 + len(ENGINES)) as pool:
        nbd = pool.submit(by_nbd, folder)
        others = {engine: pool.submit(by_kernel, engine, folder / engine) for engine in ENGINES}
        return {"nbd": nbd.result(), **{engine: other.result() for engine, other in others.items()}}


@pytest.mark.emulator
@pytest.mark.parametrize("engine", ENGINES)
def test_the_same_jobs_meet_o_direct_and_the_block_layer(
    engine: str, done: dict[str, Any], request: pytest.FixtureRequest
) -> None:
    by_engine: Done = done[engine]
    if by_engine.refusal:
        pytest.skip(f"fio cannot use io_uring here: {by_engine.refusal}")
    for name, result in by_engine.results.items():
        assert result.directions.keys() == done["nbd"][name].directions.keys(), name
        assert result.series.keys() == done["nbd"][name].series.keys(), name
        assert all(part.ios > 0 and part.lat_mean_ms > 0 for part in result.directions.values()), name
    for name, reached in by_engine.reached.items():
        check_reached(JOBS[name], by_engine.results[name], reached, by_engine.disk)
    flushes = [
        f"{name} {by_engine.results[name].directions['write'].ios:.0f} writes, {reached.flushes} flushes"
        for name, reached in by_engine.reached.items()
        if JOBS[name].sync
    ]
    counted = "; ".join(flushes) or "no flushes counted"
    met(request, f"{engine} on {by_engine.disk}: {len(by_engine.results)} kinds of jobs; {counted}")


def expected_flushes(workload: Workload, result: Measurement, plain: Disk) -> float:
    """Flushes that a job causes: one a commit, one a durable write where the device has no FUA."""
    if workload.sync is None or plain.cache != "write back":
        return 0
    return result.directions["sync" if workload.sync == "fdatasync" else "write"].ios


def check_reached(workload: Workload, result: Measurement, reached: Counts, plain: Disk) -> None:
    """Every I/O reached the block device, around the page cache, and a flush for each that was asked for."""
    done = {name: part.ios for name, part in result.directions.items()}
    assert reached.reads >= done.get("read", 0), workload.name
    assert reached.writes >= done.get("write", 0), workload.name
    assert abs(reached.flushes - expected_flushes(workload, result, plain)) <= 2, workload.name


# --- planted delays, from end to end


@pytest.fixture(scope="module")
def slow(folder: Path) -> Iterator[SlowDisk]:
    """A disk whose reads, writes and flushes take so long."""
    (folder / "slow-disk").mkdir()
    with slow_disk(folder / "slow-disk", 16, READ_MS, WRITE_MS, FLUSH_MS) as made:
        yield made


@pytest.fixture(scope="module")
def run(folder: Path, slow: SlowDisk) -> Iterator[Run]:
    """A run on that disk, as a user has it: begun, measured, torn down."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DISKBOOK_RUNS", str(folder / "runs"))
        work = folder / "work"
        work.mkdir()
        host = {"name": "here", "folder": str(work), "devices": [{"path": slow.path}]}
        preset = "standard" if refusal_of_io_uring() else "quick"
        made = begun("slow", preset, SCENARIO, hosts=written(folder, host))
        stages.provision(made)
        stages.benchmark(made)
        stages.teardown(made)
        assert list(work.iterdir()) == []
        yield made


PLANTED = {
    # What an I/O of each workload waits for.
    ("read", "read"): (READ_MS,),
    ("read-io-uring", "read"): (READ_MS,),
    ("write", "write"): (WRITE_MS,),
    ("commit", "write"): (WRITE_MS,),
    ("commit", "sync"): (FLUSH_MS,),
    ("commit", "commit"): (WRITE_MS, FLUSH_MS),
    ("commit-io-uring", "sync"): (FLUSH_MS,),
    ("commit-io-uring", "commit"): (WRITE_MS, FLUSH_MS),
    ("durable", "write"): (WRITE_MS, FLUSH_MS),
}


@pytest.mark.measures
def test_planted_delays_are_recovered_from_end_to_end(
    run: Run, slow: SlowDisk, request: pytest.FixtureRequest
) -> None:
    table = tables.build(run).trials
    assert set(table["status"]) == {"ok"} and set(table["provenance"]) == {"inventory"}
    trials = table.set_index(["workload", "direction"])
    for cell, waits_ms in planted(trials).items():
        # A sync by libaio is a difference of means. The last write has no sync: its standstill lowers it.
        less_ms = STANDSTILL_MS / trials["ios"][cell] if cell == ("commit", "sync") else 0
        assert trials["lat_mean_ms"][cell] >= sum(waits_ms) - less_ms, cell
    # The file counts an fsync for each flush; besides the trials only fills and marks cause any.
    asked = trials["ios"][[cell for cell in trials.index if cell[1] == "sync"]].sum()
    asked += trials["ios"]["durable", "write"]
    assert asked - 2 <= slow.counts.flushes < asked + 60
    with load_sensitive():
        for cell, waits_ms in planted(trials).items():
            # Each wait adds a round trip. Cells without a median are judged by the mean, less one standstill.
            mean_ms = trials["lat_mean_ms"][cell] - STANDSTILL_MS / trials["ios"][cell]
            seen_ms = trials["lat_p50_ms"].fillna(mean_ms)[cell]
            assert seen_ms < sum(wait_ms + 2 for wait_ms in waits_ms), cell
    met(
        request,
        f"FUSE under a loop device, {in_words(trials)}; {asked:.0f} syncs, {slow.counts.flushes} fsyncs",
    )


def planted(trials: pd.DataFrame) -> dict[tuple[str, str], tuple[float, ...]]:
    """The cells that were measured: without io_uring where nobody may use it."""
    return {cell: value for cell, value in PLANTED.items() if cell in trials.index or "uring" not in cell[0]}


def in_words(trials: pd.DataFrame) -> str:
    """Say what was planted and what the run's tables have."""
    means = trials["lat_mean_ms"]
    said = (
        f"{cell[0]} ({cell[1]}) {sum(waits_ms):g} -> {means[cell]:.2f}"
        for cell, waits_ms in planted(trials).items()
    )
    return f"planted -> recovered, ms: {'; '.join(said)}"


# --- and nothing is left


@pytest.mark.emulator
def test_a_slow_disk_is_gone_even_after_a_failure(folder: Path) -> None:
    place = folder / "failing"
    place.mkdir()
    with pytest.raises(ZeroDivisionError), slow_disk(place, 1, 0, 0, 0) as made:
        file, server = place / "slow", made.server
        assert Path("/sys/block", Path(made.path).name, "loop/backing_file").exists()
        raise ZeroDivisionError
    assert server.returncode is not None and not is_mounted(file) and file.stat().st_size == 0
    losetup = shutil.which("losetup", path="/usr/sbin:/sbin:/usr/bin")
    left = subprocess.run([str(losetup), "-a"], capture_output=True, text=True, check=True).stdout
    assert str(folder / "failing") not in left
