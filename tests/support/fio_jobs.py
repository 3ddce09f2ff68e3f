"""Run fio's jobs as a machine does: in a folder of their own, with both streams kept in files."""

from __future__ import annotations

import shlex
import subprocess
from collections.abc import Sequence
from pathlib import Path

from diskbook.tools import fio
from diskbook.tools.record import Measurement
from support.disturbance import load_sensitive


def assert_keeps_its_queue(result: Measurement, outstanding: int) -> None:
    """Assert that so many I/Os were in flight, by Little's law: rate times latency.

    A tool may wait for the processor outside of all latencies. After a ramp it counts all of the latency of
    the I/Os that were then in flight, at most the longest one.
    """
    parts = result.directions.values()
    in_flight = sum(part.iops * part.lat_mean_ms / 1000 for part in parts)
    most = 1.02 * outstanding * (1 + max(part.lat_max_ms for part in parts) / result.runtime_ms)
    with load_sensitive():
        assert 0.95 * outstanding < in_flight < most, f"{in_flight:.1f} I/Os in flight, not {outstanding}"


def shell(job: fio.Job, folder: Path) -> str:
    """Command line that runs a job in a folder; its streams go to `stdout` and `stderr` there."""
    return f"cd {shlex.quote(str(folder))} && exec {shlex.join(job.argv)} >stdout 2>stderr"


def run(job: fio.Job, folder: Path) -> int:
    """Run a job in a folder; its exit status."""
    return subprocess.run(["sh", "-c", shell(job, folder)]).returncode


def run_on_memory(
    jobs: Sequence[tuple[fio.Job, Path]], *, size_mib: int = 32, delay_ms: int = 1
) -> list[int]:
    """Run jobs, one after another, on one memory disk that answers after `delay_ms`; their exit statuses.

    The disk's URI stands as `@uri@` in the jobs.
    """
    script = "\n".join(f"( {shell(job, folder)} ); echo $?" for job, folder in jobs)
    delay = ["--filter=delay", f"rdelay={delay_ms}ms", f"wdelay={delay_ms}ms"] if delay_ms else []
    command = [
        "nbdkit",
        "-U",
        "-",
        "memory",
        f"{size_mib}M",
        *delay,
        "--run",
        script.replace("@uri@", '"$uri"'),
    ]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.stderr == ""
    return [int(code) for code in done.stdout.split()]
