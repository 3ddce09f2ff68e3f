"""Short reads at queue depth 1 of a device that a workload uses, with fio; nothing is written.

They run next to the workload and are few: `RATE` a second, which the smallest premium disk can spare.
"""

import math
import shlex
import subprocess
from dataclasses import dataclass
from pathlib import Path

from diskbook.design.model import Workload
from diskbook.facts.errors import DiskbookError, UsageError
from diskbook.tools import fio

READS = 5
"""Short runs of reads, each one value of the interval."""
RATE = 100
"""Reads a second at most."""
_LOGS = ("--write_", "--log_avg", "--per_job_logs")  # files that nobody would read, nor remove


@dataclass(frozen=True)
class Probe:
    """What is read, and from where.

    - `device`: block device, file, or URI of an NBD export, on the machine that reads.
    - `seconds`: of each of the reads.
    - `size_gib`: part of the device that is read, from its start; it should hold data, since a disk answers
      reads of blocks never written without touching its media.
    - `via`: command that runs fio, e.g. "sudo" or "ssh node2 sudo"; empty for this machine and user.
    """

    device: str
    seconds: float = 2.0
    size_gib: float = 1.0
    via: str = ""

    @property
    def engine(self) -> str:
        """The engine of fio."""
        return "nbd" if self.emulated else "libaio"

    @property
    def target(self) -> str:
        """The device as fio is told it."""
        return self.device if self.emulated or self.via else str(Path(self.device).absolute())

    @property
    def emulated(self) -> bool:
        """Whether it is an export of the emulator."""
        return self.device.startswith("nbd")


def measure(probe: Probe) -> list[float]:
    """Read the device `READS` times for some seconds, one I/O outstanding; mean total latencies in ms.

    Raises UsageError, DiskbookError when there is no such device; with the command's own message when it
    cannot be read.
    """
    sizes = (probe.seconds, probe.size_gib)
    if not all(math.isfinite(size) and size > 0 for size in sizes):
        raise UsageError(f"--seconds {sizes[0]:g} --size-gib {sizes[1]:g}: both must be numbers above 0")
    if probe.engine == "libaio" and not probe.via and not Path(probe.device).exists():
        raise UsageError(f"there is no device or file {probe.device}; name the one that the workload uses")
    load = Workload(
        name="probe",
        block_size=4096,
        write_pct=0,
        rate=RATE,
        runtime_s=probe.seconds,
        working_set_gib=probe.size_gib,
    )
    jobs = [fio.command(load, probe, seed=number + 1) for number in range(READS)]
    return [_mean_latency_ms(_argv(job, probe.via), probe) for job in jobs]


def _argv(job: fio.Job, via: str) -> list[str]:
    """Command line of fio, without its logs; quoted where ssh gives it to a shell."""
    argv = [word for word in job.argv if not word.startswith(_LOGS)] + ["--readonly"]
    try:
        elsewhere = shlex.split(via)
    except ValueError as error:
        raise UsageError(f"--via '{via}' is not a command: {error}") from None
    quoted = any(Path(word).name == "ssh" for word in elsewhere)
    return [*elsewhere, *([shlex.join(argv)] if quoted else argv)]


def _mean_latency_ms(argv: list[str], probe: Probe) -> float:
    device, seconds = probe.device, probe.seconds
    try:
        done = subprocess.run(
            argv, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=seconds + 60, check=False
        )
    except OSError as error:
        how = "install it (apt install fio)" if argv[0] == "fio" else "see --via"
        raise DiskbookError(f"{argv[0]} cannot be run ({error.strerror}); {how}") from None
    except subprocess.TimeoutExpired:
        raise DiskbookError(f"{device}: fio did not end; see whether the disk answers") from None
    if done.returncode:
        raise DiskbookError(f"{device} cannot be read: {_said(done)}")
    result = fio.parse_output(done.stdout, f"fio on {device}", messages=done.stderr, runtime_s=seconds)
    reads = result.directions.get("read")
    if reads is None or not reads.lat_mean_ms > 0:
        raise DiskbookError(f"{device}: no read came back within {seconds:g} s; see whether the disk answers")
    return reads.lat_mean_ms


def _said(done: subprocess.CompletedProcess[str]) -> str:
    """First line of what a command said, a greeting of ssh aside."""
    lines = [line.strip() for line in (done.stderr + "\n" + done.stdout).splitlines()]
    messages = [line for line in lines if line and not line.startswith("Warning:")]
    return f"{messages[0]} (exit status {done.returncode})" if messages else f"exit status {done.returncode}"
