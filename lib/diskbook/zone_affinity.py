"""Does a workload sit in the zone that its zone-redundant disk answers from? For operators to schedule.

A short read at queue depth 1 where the workload runs, held against latencies known for the disk: from the
nearest zone, and from the nearest of the others. They come from a run that read the disk from all zones, or
by hand. The verdict goes by the middle between the two on a log scale, and only where the whole interval of
the reads lies on one side. Only reads are made.
"""

from __future__ import annotations

import json
import math
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from diskbook.analysis import analyse
from diskbook.errors import DiskbookError, UsageError, unknown
from diskbook.run import now_utc, write_atomic
from diskbook.scenario import Workload
from diskbook.stats import intervals
from diskbook.stats.zone_probe import FARTHER, NEAREST, probe
from diskbook.tools import fio

HOME, REMOTE, UNCLEAR = "nearest zone", "remote zone", "not clear"
EXIT = {HOME: 0, REMOTE: 10, UNCLEAR: 11}
"""Exit status by verdict; 1 and 2 are errors, as everywhere."""
READS = 5
"""Short runs of reads, each one value of the interval."""


@dataclass(frozen=True)
class Baseline:
    """Read latencies at queue depth 1 known for the disk, in ms; `source` says from where."""

    near_ms: float
    far_ms: float
    source: str

    @property
    def middle_ms(self) -> float:
        """Geometric mean of the two."""
        return math.sqrt(self.near_ms * self.far_ms)


@dataclass(frozen=True)
class Finding:
    """One look: verdict, latency with its interval, the baseline, and what changed since the last look."""

    verdict: str
    lat_ms: float
    ci_low_ms: float
    ci_high_ms: float
    baseline: Baseline
    device: str
    time_utc: str
    changed: str = ""

    @property
    def exit_code(self) -> int:
        """Status to end with (`EXIT`)."""
        return EXIT[self.verdict]

    @property
    def line(self) -> str:
        """The finding in one line."""
        interval = f"95 % CI {self.ci_low_ms:.2f}..{self.ci_high_ms:.2f}"
        near, far = self.baseline.near_ms, self.baseline.far_ms
        known = f"known: {near:.2f} from the nearest zone, {far:.2f} from the next"
        change = f"; {self.changed}" if self.changed else ""
        return f"{self.verdict}: reads take {self.lat_ms:.2f} ms ({interval}; {known}){change}"

    @property
    def as_json(self) -> str:
        """The finding as one JSON object on one line."""
        return json.dumps({**asdict(self), "exit_code": self.exit_code})


def look(
    device: str,
    state: str | None,
    *,
    baseline: str | None,
    disk: str | None,
    near_ms: float | None,
    far_ms: float | None,
    seconds: float,
    size_gib: float,
) -> Finding:
    """Measure, judge and remember, as the command does.

    Raises
    ------
    UsageError, DiskbookError
        When there is not one baseline, or nothing can be measured.
    """
    numbers = near_ms is not None and far_ms is not None
    if numbers == (baseline is not None) or (near_ms is None) != (far_ms is None):
        raise UsageError("give --baseline RUN, or both --near-ms and --far-ms")
    known = of_run(str(baseline), disk) if baseline else by_hand(float(near_ms or 0), float(far_ms or 0))
    file = Path(state) if state else None
    earlier = last_verdict(file) if file else ""
    found = judge(measure(device, seconds, size_gib), known, device, earlier)
    if file:
        keep(file, found)
    return found


def of_run(name: str, disk: str | None = None) -> Baseline:
    """Take the baseline from a run that read a zone-redundant disk from two zones or more.

    Parameters
    ----------
    name
        Name or folder of the run.
    disk
        Name of the disk in its scenario; needed where it has several such disks.

    Raises
    ------
    UsageError
        When the run has no such disk, or its nearest zone is not clear.
    """
    run = analyse(name)
    disks = run.trials.drop_duplicates("arm").set_index("arm")["disk_id"]
    names = {str(disks[arm.name]): arm.disk for arm in run.scenario.arm if arm.name in disks}
    found = probe(run.trials)
    found = found.assign(disk=found["disk_id"].map(names))
    known = sorted(set(found["disk"].dropna()))
    if not known:
        raise UsageError(f"run {name} read no disk from two zones; measure one from all zones first")
    chosen = disk or known[0]
    if chosen not in known or (disk is None and len(known) > 1):
        named = "name one with --disk"
        raise (
            unknown("disk", chosen, known, f"run {name}")
            if disk
            else UsageError(
                f"run {name} read several disks from more than one zone: {named} ({', '.join(known)})"
            )
        )
    mine = found[(found["disk"] == chosen) & (found["replicate"] == found["replicate"].min())]
    if not (mine["verdict"] == NEAREST).any():
        raise UsageError(f"run {name}: the nearest zone of {chosen} is not clear; measure more blocks")
    near = float(mine.loc[mine["verdict"] == NEAREST, "lat_ms"].iloc[0])
    far = float(mine.loc[mine["verdict"] == FARTHER, "lat_ms"].min())
    return Baseline(near, far, f"run {run.folder.name}, disk {chosen} ({run.provenance})")


def by_hand(near_ms: float, far_ms: float) -> Baseline:
    """Make a baseline of two numbers.

    Raises
    ------
    UsageError
        When they do not lie apart.
    """
    if not 0 < near_ms < far_ms:
        raise UsageError(
            f"--near-ms {near_ms:g} --far-ms {far_ms:g}: the first must be above 0 and below the second"
        )
    return Baseline(near_ms, far_ms, "by hand")


def measure(device: str, seconds: float, size_gib: float = 1.0) -> list[float]:
    """Read the device `READS` times for some seconds, one I/O outstanding; mean total latencies in ms.

    Parameters
    ----------
    device
        Block device, file, or URI of an NBD export, on this machine.
    seconds
        Of each of the reads.
    size_gib
        Part of the device that is read, from its start; it should hold data, since a disk answers reads of
        blocks never written without touching its media.

    Raises
    ------
    UsageError, DiskbookError
        When there is no such device; with fio's own message when it cannot read there.
    """
    engine = "nbd" if device.startswith("nbd") else "libaio"
    if engine == "libaio" and not Path(device).exists():
        raise UsageError(f"there is no device or file {device}; name the one that the workload uses")
    load = Workload(name="probe", block_size=4096, write_pct=0, runtime_s=seconds, working_set_gib=size_gib)
    target = _Target(engine, device if engine == "nbd" else str(Path(device).absolute()))
    jobs = [fio.command(load, target, seed=number + 1) for number in range(READS)]
    return [_mean_latency_ms(job, device, seconds) for job in jobs]


def _mean_latency_ms(job: fio.Job, device: str, seconds: float) -> float:
    with tempfile.TemporaryDirectory(prefix="diskbook-probe-") as folder:  # fio leaves its logs there
        try:
            done = subprocess.run(
                [*job.argv, "--readonly"],
                cwd=folder,
                capture_output=True,
                text=True,
                timeout=seconds + 60,
                check=False,
            )
        except FileNotFoundError:
            raise DiskbookError(
                "fio is not installed on this machine; install it (apt install fio)"
            ) from None
        except subprocess.TimeoutExpired:
            raise DiskbookError(f"{device}: fio did not end; see whether the disk answers") from None
    if done.returncode:
        said = (done.stderr.strip() or done.stdout.strip() or "nothing").splitlines()[0]
        raise DiskbookError(f"{device} cannot be read: fio says '{said}'")
    result = fio.parse(done.stdout, f"fio on {device}", messages=done.stderr, runtime_s=seconds)
    return result.directions["read"].lat_mean_ms


@dataclass(frozen=True)
class _Target:
    engine: str
    target: str


def judge(latencies_ms: Sequence[float], baseline: Baseline, device: str, earlier: str = "") -> Finding:
    """Hold latencies against the baseline. `earlier` is the verdict of the last look, "" for none."""
    found = intervals.t_interval(np.log(np.asarray(latencies_ms, dtype=float)))
    mean, low, high = (math.exp(float(part)) for part in found[:3])
    verdict = HOME if high < baseline.middle_ms else REMOTE if low > baseline.middle_ms else UNCLEAR
    return Finding(verdict, mean, low, high, baseline, device, now_utc(), _change(earlier, verdict))


def last_verdict(state: Path) -> str:
    """Verdict of the last look from a state file; "" where there is none yet.

    Raises
    ------
    DiskbookError
        When the file is not one of ours; it is not overwritten.
    """
    if not state.exists():
        return ""
    try:
        verdict = json.loads(state.read_text("utf-8"))["verdict"]
    except (OSError, ValueError, KeyError, TypeError):
        raise DiskbookError(f"{state} is no state of zone-affinity; name another file with --state") from None
    return str(verdict)


def keep(state: Path, finding: Finding) -> None:
    """Write the finding to the state file, unless it is not clear: the last clear one counts."""
    if finding.verdict != UNCLEAR:
        write_atomic(state, finding.as_json + "\n")


def _change(earlier: str, verdict: str) -> str:
    changes = {(REMOTE, HOME): "it moved back", (HOME, REMOTE): "it moved away"}
    return changes.get((earlier, verdict), "")
