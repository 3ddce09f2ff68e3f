"""Latency of a held rate from the intended start: from made-up logs, and from real stalls."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest

from diskbook.design.model import Workload
from diskbook.tools.fio import TOOL, held_rate
from diskbook.tools.fio.log import Rows
from diskbook.tools.protocol import Target
from diskbook.tools.record import Direction, Load, Measurement
from support.disturbance import load_sensitive

RATE = 500
JOBS = 40


@dataclass(frozen=True)
class Device:
    engine: str
    target: str


def truth(stall_s: float, runtime_s: float, quantile: float, rate: float = RATE) -> float:
    """Percentile of the waits alone, in ms: arrivals of a stall wait from all of it down to nothing."""
    waits = 1000 * (stall_s - np.arange(0, stall_s, 1 / rate))
    every = np.sort(np.append(waits, np.zeros(round(rate * runtime_s) - len(waits))))
    return float(every[int(np.ceil(quantile * len(every))) - 1])


def played(
    runtime_s: float, stall: tuple[float, float], rate: float = RATE, own_ms: float = 1.2, ramp: int = 0
) -> list[np.ndarray]:
    """Lines that fio logs of each job (time, latency) over a disk that stands still once."""
    start, end = 1000 * stall[0], 1000 * (stall[0] + stall[1])
    jobs = []
    for job in range(JOBS):
        gap, done, lines = 1000 * JOBS / rate, -1.0, [(own_ms - 0.4, own_ms)] * ramp
        for due in np.arange(0, 1000 * runtime_s, gap):
            sent = max(due, done)
            slot = sent + 1000 * job / rate  # the clock that the jobs share
            stands = max(0.0, end - max(slot, start)) if slot + own_ms > start else 0.0
            done = sent + own_ms + stands
            lines.append((done, own_ms + stands))
        whole = np.array(lines)
        jobs.append(np.column_stack([np.floor(whole[:, 0]), np.rint(whole[:, 1] * 1e6)]).astype(np.int64))
    return jobs


def log(*jobs: np.ndarray, code: int = 0) -> Rows:
    lines = np.concatenate(jobs)
    return Rows(lines[:, 0], lines[:, 1], np.full(len(lines), code), np.full(len(lines), 4096))


def measured(runtime_s: float, threads: int = JOBS, depth: int = 1, **rates: float) -> Measurement:
    parts = {name: Direction(1.0, 1.0, float("nan"), 1000 * runtime_s) for name in rates}
    each = {name: rate / threads for name, rate in rates.items()}
    return Measurement("trial", "", Load(threads=threads, queue_depth=depth), parts, rates=each)


# --- logs whose truth is known


@pytest.mark.parametrize("ramp", [0, 1, 3])
def test_a_stall_of_a_second_is_found_as_it_was(ramp: int) -> None:
    rows = log(*played(30, (12.05, 1), ramp=ramp))
    found = held_rate.with_schedule(measured(30, read=RATE), rows, 0.1)
    read = found.directions["read"].intended
    assert sum(read.bins.values()) == 15_000
    assert read.lat_p50_ms == pytest.approx(1.2, abs=0.001)
    assert read.p99_least_ms == pytest.approx(truth(1, 30, 0.99) + 1.2, abs=2.5)
    assert read.mean_least_ms == pytest.approx(1.2 + 500 * 501 / 15_000, rel=0.01)
    # In each job what waited is sent one by one, so that it is later by 1.2 of each 80 ms.
    assert 1 < read.lat_mean_ms / read.mean_least_ms < 1.2 / 80 + 1.001
    assert found.rate_window_worst == pytest.approx(0, abs=0.03)
    assert found.rate_windows_low_share == pytest.approx(1 / 30, rel=0.11)
    assert np.isnan(found.directions["read"].lat_mean_ms)  # fio's own stays as it was
    assert found.directions["read"].iops == pytest.approx(RATE, rel=1e-4)


def test_without_a_stall_it_is_the_tools_own_latency() -> None:
    found = held_rate.with_schedule(measured(4, read=RATE), log(*played(4, (9, 0))), 0.1)
    read = found.directions["read"].intended
    assert (read.lat_p50_ms, read.lat_p999_ms) == pytest.approx((1.2, 1.2), abs=0.001)
    assert (read.mean_least_ms, read.p99_least_ms) == (read.lat_mean_ms, read.lat_p99_ms)
    assert found.rate_window_worst > 0.9 and found.rate_windows_low_share == 0
    assert found.series["read"].lat_mean_ms[np.isfinite(found.series["read"].lat_mean_ms)] == pytest.approx(
        1.2
    )


def test_no_lateness_is_forgiven_to_the_slower_disk() -> None:
    fast, slow = (
        held_rate.with_schedule(measured(30, read=RATE), log(*played(30, (12.05, 0.2), own_ms=own)), 0.1)
        for own in (1.2, 30.0)
    )
    waits = [
        part.directions["read"].intended.mean_least_ms - own for part, own in ((fast, 1.2), (slow, 30.0))
    ]
    # What was in flight when it began waits for all of it, what came later for the rest.
    assert waits == pytest.approx([1000 * (0.2**2 / 2 + own * 0.2) / 30 for own in (0.0012, 0.03)], rel=0.05)


def test_what_was_never_sent_has_waited_to_the_end() -> None:
    whole, cut = (
        held_rate.with_schedule(measured(4, read=RATE), log(*jobs), 0.1).directions["read"]
        for jobs in (played(4, (3.5, 0.4)), [job[job[:, 0] < 3_903] for job in played(4, (3.5, 0.4))])
    )
    assert whole.intended.lat_p999_ms == pytest.approx(400, abs=4)
    assert cut.intended.lat_p999_ms == pytest.approx(400, abs=4)
    assert cut.iops < 0.98 * RATE


def test_lateness_is_not_told_where_fio_itself_may_be_late() -> None:
    jobs = played(6, (2, 0.5))
    deep = held_rate.with_schedule(measured(6, depth=20, read=RATE), log(*jobs), 0.1)
    mixed = held_rate.with_schedule(measured(6, read=RATE, write=RATE), log(*jobs), 0.1)
    # Jobs whose lines are mixed cannot be distinguished.
    joined = held_rate.with_schedule(measured(6, read=RATE), log(np.sort(np.concatenate(jobs), axis=0)), 0.1)
    for found in (deep, mixed, joined):
        assert np.isnan(found.directions["read"].intended.lat_mean_ms) and found.series["read"].iops.any()


# --- real stalls


def workload(**changes: object) -> Workload:
    made = {"name": "w", "block_size": "4K", "write_pct": 0, "working_set_gib": 1 / 32, "rate": RATE}
    return Workload.model_validate(
        {**made, "queue_depth": JOBS, "runtime_s": 4.0, "series_s": 0.1, **changes}
    )


Stood = tuple[float, float]
"""Shortest and longest time in seconds that a disk can have stood still; stopping it takes time too."""


def hold_still(stop: Callable[[], object], go_on: Callable[[], object]) -> Stood:
    """Hold a disk still for half a second, and return for how long at least and at most."""
    began = time.monotonic()
    stop()
    stopped = time.monotonic()
    time.sleep(0.5)
    going = time.monotonic()
    go_on()
    return going - stopped, time.monotonic() - began


def stalled(
    load: Workload, device: Target, folder: Path, freeze: Callable[[], Stood]
) -> tuple[Measurement, Stood]:
    """Run fio against a disk that stands still for half a second; the result, and how long it stood."""
    job = TOOL.command(load, device, seed=1)
    with (folder / "stdout").open("wb") as output:
        fio = subprocess.Popen(job.argv, cwd=folder, stdout=output)
        time.sleep(2.0)
        stood_s = freeze()
        assert fio.wait(30) == 0
    files = {"json": (folder / "stdout").read_bytes(), "lat_log": (folder / "trial_lat.log").read_bytes()}
    return TOOL.read(files, "trial", runtime_s=load.runtime_s, series_s=load.series_s), stood_s


def assert_told(found: Measurement, stood_s: Stood, direction: str) -> None:
    part = found.directions[direction]
    least_ms, most_ms = (truth(seconds, 4.0, 0.999) + part.lat_p50_ms for seconds in stood_s)
    # Waits of an open loop, on average over all.
    least_mean_ms, most_mean_ms = (part.lat_p50_ms + 1000 * seconds**2 / 2 / 4.0 for seconds in stood_s)
    with load_sensitive():
        assert 0.95 * least_ms < part.intended.lat_p999_ms < 1.05 * most_ms
        assert 0.9 * least_mean_ms < part.intended.mean_least_ms < 1.1 * most_mean_ms
        assert part.intended.lat_mean_ms < 1.1 * part.intended.mean_least_ms
        assert part.lat_mean_ms < 0.5 * part.intended.lat_mean_ms  # what fio says of itself hides it
        # 40 I/Os go out in 80 ms before all of them wait: of 40 windows of 0.1 s, three at least are empty.
        assert found.rate_windows_low_share > 0.07
        assert part.ios == pytest.approx(2000, rel=0.03)  # and its rate is as asked for


@pytest.mark.measures
def test_a_server_that_stands_still_is_told_over_nbd(tmp_path: Path) -> None:
    socket = tmp_path / "s"
    server = subprocess.Popen(
        ["nbdkit", "-f", "-U", str(socket), "memory", "32M", "--filter=delay", "rdelay=1ms"]
    )

    def freeze() -> Stood:
        return hold_still(
            lambda: os.kill(server.pid, signal.SIGSTOP), lambda: os.kill(server.pid, signal.SIGCONT)
        )

    try:
        deadline = time.monotonic() + 10
        while not socket.exists() and time.monotonic() < deadline:
            time.sleep(0.01)
        assert_told(
            *stalled(workload(), Device("nbd", f"nbd+unix:///?socket={socket}"), tmp_path, freeze), "read"
        )
    finally:
        server.terminate()
        server.wait(10)


@contextlib.contextmanager
def frozen_block_device(folder: Path) -> Iterator[tuple[str, Callable[[], Stood]]]:
    """A loop device on a file whose file system can be frozen; skips, and says why, where there is none."""
    needed = ("losetup", "mkfs.ext4", "mount", "umount", "fsfreeze")
    if os.geteuid() or not all(map(shutil.which, needed)) or not Path("/dev/loop-control").exists():
        pytest.skip(f"libaio was not stalled: that takes root, loop devices and {', '.join(needed)}")
    outer, place = folder / "outer.img", folder / "mounted"
    outer.touch()
    os.truncate(outer, 96 * 1024**2)
    place.mkdir()

    def run(*words: object) -> str:
        done = subprocess.run([str(word) for word in words], capture_output=True, text=True, check=True)
        return done.stdout.strip()

    with contextlib.ExitStack() as undo:
        try:
            run("mkfs.ext4", "-q", "-F", outer)
            run("mount", "-o", "loop", outer, place)
            undo.callback(run, "umount", place)
            (place / "disk").write_bytes(bytes(32 * 1024**2))
            device = run("losetup", "-f", "--show", "--direct-io=on", place / "disk")
            undo.callback(run, "losetup", "-d", device)
        except subprocess.CalledProcessError as error:
            pytest.skip(f"libaio was not stalled: {' '.join(error.cmd)}: {error.stderr.strip()}")

        def freeze() -> Stood:
            return hold_still(lambda: run("fsfreeze", "-f", place), lambda: run("fsfreeze", "-u", place))

        yield device, freeze


@pytest.mark.measures
def test_a_block_device_that_stands_still_is_told_over_libaio(tmp_path: Path) -> None:
    with frozen_block_device(tmp_path) as (device, freeze):
        load = workload(write_pct=100)
        assert_told(*stalled(load, Device("libaio", device), tmp_path, freeze), "write")


def test_only_held_rates_are_logged_by_the_io() -> None:
    device = Device("nbd", "nbd://127.0.0.1/x")
    held, free = (TOOL.command(load, device, seed=1) for load in (workload(), workload(rate=None)))
    assert (
        "--log_avg_msec=0" in held.argv
        and "--log_entries=1024" in held.argv
        and set(held.logs) == {"lat_log"}
    )
    assert "--log_avg_msec=100" in free.argv and set(free.logs) == {"lat_log", "iops_log"}


def test_arrivals_by_chance_have_no_schedule() -> None:
    from_options = replace(measured(1, read=RATE), rates={})
    assert (
        held_rate.with_schedule(from_options, log(*played(1, (9, 0))), 0.1).directions
        == from_options.directions
    )
