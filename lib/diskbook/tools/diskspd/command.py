"""Builder of DiskSpd's command lines, and strict reader of what a call of it left. No I/O here.

As with fio the disk itself is measured ("#1", a physical drive), not a file on it; of a volume a file,
which its prefilling makes. A line given word for word keeps its arguments but for the target: a disk cannot
be rebuilt, so there -c becomes -f of the same size.

Also names the release of DiskSpd that machines get, and how they get it.
"""

import math
import re
from collections.abc import Sequence
from dataclasses import replace

from diskbook.design.diskspd_arguments import Arguments, parse, render
from diskbook.design.model import Workload
from diskbook.facts.errors import UsageError
from diskbook.facts.units import MB, MIB
from diskbook.tools.protocol import FILL_BLOCK_BYTES, OVERWRITE_BLOCK_BYTES, Install, Job, Target
from diskbook.tools.record import Measurement

VERSION = "2.0.21"
"""The release that machines get. It reads -g5i as 5 bytes/ms, and -rs without a word (2.1 knows them)."""
_PREFILL_MB_S = 400
PATTERN = "the bytes 0 to 255 over and over, which compress (DiskSpd's default)"
FRESH = "random data, made anew for each write (DiskSpd's -Zr)"
WITH_REPLACEMENT = (
    "DiskSpd draws each offset anew: as many bytes as the working set has meet about 63 % of its blocks, "
    "some of them more than once"
)
_DRAWN = "DiskSpd draws each offset anew"
_LONGER = 1.3  # than the rate before says: it may fall
_RATE_ROUNDING = 0.001
_PLAIN = re.compile(r"[A-Za-z0-9 #_.,:/\\-]+")
"""An argument as it may get into a command line: with nothing in it that cmd.exe or PowerShell would read."""


def command(workload: Workload, target: Target, *, seed: int = 1, offset: int = 0) -> Job:
    """Build the measurement of one trial.

    - `seed`: fixes the offsets drawn; a line given word for word keeps its own.
    - `offset`: where on the target the working set begins, in bytes.

    Raises UsageError for what DiskSpd, or the release that the machines have, cannot do.
    """
    if workload.verbatim is not None:
        return _verbatim(parse(workload.verbatim), target)
    asked = arguments_of(workload, target.target, seed=seed)
    if offset:
        asked = replace(asked, base_offset=offset, max_offset=offset + workload.working_set_bytes)
    notes = (f"some writes are not the first to their block: {_DRAWN}",) if workload.first_writes else ()
    return _job(asked, notes=notes, content=content_words(asked))


def arguments_of(workload: Workload, target: str, *, seed: int = 1) -> Arguments:
    """Say a workload in DiskSpd's terms; raises UsageError for what it has no words for."""
    if workload.sync == "fdatasync":
        raise UsageError(
            f'workload {workload.name}: DiskSpd cannot flush after each write; use sync = "dsync"'
        )
    return Arguments(
        targets=(target,),
        block_size=workload.block_size_bytes,
        write_pct=workload.write_pct,
        random_pct=100 if workload.pattern == "random" else 0,
        threads_per_target=workload.threads,
        outstanding=workload.queue_depth,
        rate=_rate(workload),
        cache="off",
        write_through=workload.sync == "dsync",
        max_offset=workload.working_set_bytes,
        thread_stride=_stride(workload),
        warmup_s=_whole_seconds(workload, "ramp_s"),
        duration_s=_whole_seconds(workload, "runtime_s"),
        latency=True,
        iops_interval_ms=round(workload.series_s * 1000),
        # Data that do not repeat: the default pattern (0, 1, 2 ...) might be stored for nothing.
        buffers=str(max(MIB, workload.block_size_bytes)) if workload.data == "random" else "pattern",
        seed=seed,
        output="xml",
    )


def prefill_command(size_bytes: int, target: Target, written: Measurement | None = None) -> Job | None:
    """Build the writing of the first part of a disk, in order, with random data.

    DiskSpd writes for a time, not an amount: what it wrote must be held against the size. One thread goes
    through the part from its beginning, so that as many bytes as it holds are all of it.

    - `size_bytes`: of the part.
    - `target`: the disk, or the file on a volume, which is made.
    - `written`: what the job before has written, at a rate that tells how long the next one must take.

    Returns none when all of it is written.
    """
    seconds = _seconds(size_bytes, FILL_BLOCK_BYTES, written)
    if seconds is None:
        return None
    created = None if _is_drive(target) else size_bytes
    asked = replace(_random_data(size_bytes, target, seconds), create_bytes=created)
    return _job(asked, limit_s=seconds + 600, content=FRESH)


def overwrite_command(size_bytes: int, target: Target, written: Measurement | None = None) -> Job | None:
    """Build random writes of as many bytes as the first part of a disk has, with random data.

    DiskSpd keeps no map of the blocks it wrote, so it meets some twice and some not at all: of n blocks in n
    writes 1 - (1 - 1/n)^n, which is 63 % (1 - 1/e).

    - `size_bytes`, `target`, `written`: as for `prefill_command`; a file is there already.

    Returns none when so much is written.
    """
    seconds = _seconds(size_bytes, OVERWRITE_BLOCK_BYTES, written)
    if seconds is None:
        return None
    asked = replace(_random_data(size_bytes, target, seconds), random_pct=100, outstanding=32)
    asked = replace(asked, block_size=OVERWRITE_BLOCK_BYTES)
    return _job(asked, notes=(WITH_REPLACEMENT,), limit_s=seconds + 600, content=FRESH)


def _random_data(size_bytes: int, target: Target, duration_s: int) -> Arguments:
    """Writes to all of a part, in order, whose data do not repeat."""
    return Arguments(
        targets=(target.target,),
        block_size=FILL_BLOCK_BYTES,
        write_pct=100,
        threads_per_target=1,
        outstanding=16,
        cache="off",
        max_offset=size_bytes,
        warmup_s=0,
        duration_s=duration_s,
        buffers="random",
        output="xml",
    )


def _seconds(size_bytes: int, block_bytes: int, written: Measurement | None) -> int | None:
    """How long to write for so many bytes, by what the job before did; None when that was enough."""
    if written is None:
        return max(1, math.ceil(size_bytes / MB / _PREFILL_MB_S))
    done = written.directions["write"]
    done_bytes = done.ios * block_bytes
    if done_bytes >= size_bytes:
        return None
    return math.ceil(done.runtime_ms / 1000 * _LONGER * size_bytes / done_bytes)


def content_words(asked: Arguments) -> str:
    """Say what a line writes; empty where it only reads."""
    if not asked.write_pct:
        return ""
    kinds = {"pattern": PATTERN, "zero": "zeros (DiskSpd's -Z)", "random": FRESH}
    return kinds.get(asked.buffers, f"random data from a buffer made once (DiskSpd's -Z{asked.buffers})")


def _verbatim(line: Arguments, target: Target) -> Job:
    notes = []
    if line.rate_unit == "IOPS" and line.rate is not None:
        exact = line.rate * line.block_size / 1000
        line = replace(line, rate=round(exact), rate_unit="bytes/ms")
        notes.append(f"-g became {line.rate} bytes/ms ({exact:g}), since {VERSION} misreads -g with i")
    if _numbers(line.least_version) > _numbers(VERSION):
        raise UsageError(
            f"DiskSpd line: -rs and -rd need DiskSpd {line.least_version}, the machines have {VERSION}, "
            "which misreads them; write -r"
        )
    there = replace(line, targets=(target.target,) * line.n_targets, output="xml")
    if _is_drive(target):
        ends = [end for end in (line.create_bytes, line.max_offset) if end is not None]
        there = replace(there, create_bytes=None, max_offset=min(ends) if ends else None)
    if there.create_bytes != line.create_bytes:
        notes.append(
            "-c became -f: the disk itself is measured, without the file system of the line's author"
        )
    return _job(there, notes=tuple(notes), content=content_words(there))


def _job(
    asked: Arguments, *, notes: tuple[str, ...] = (), limit_s: float | None = None, content: str = ""
) -> Job:
    """Write arguments as a job; what a file holds is a part of them, so none but plain ones are taken."""
    return Job(("diskspd", *plain(render(asked))), notes=notes, limit_s=limit_s, content=content)


def plain(words: Sequence[str]) -> tuple[str, ...]:
    """Return arguments as they are; raises UsageError for one that a shell would read otherwise."""
    strange = next((word for word in words if not _PLAIN.fullmatch(word)), None)
    if strange is not None:
        raise UsageError(
            f"DiskSpd argument {strange}: it may hold letters, digits, spaces and # _ . , : / \\ - alone"
        )
    return tuple(words)


def _is_drive(target: Target) -> bool:
    """Whether a target is a physical drive, not a file."""
    return target.target.startswith("#")


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("."))


def _whole_seconds(workload: Workload, key: str) -> int:
    seconds: float = getattr(workload, key)
    if seconds % 1:
        raise UsageError(f"workload {workload.name}: {key} = {seconds:g}, but DiskSpd takes whole seconds")
    return int(seconds)


def _rate(workload: Workload) -> int | None:
    """Rate of each thread in bytes a millisecond, which every release reads alike."""
    if workload.rate is None:
        return None
    exact = workload.rate / workload.instances / workload.threads * workload.block_size_bytes / 1000
    if abs(round(exact) / exact - 1) > _RATE_ROUNDING:
        following = workload.rate * math.ceil(exact) / exact
        raise UsageError(
            f"workload {workload.name}: rate = {workload.rate:g} is {exact:.2f} bytes/ms a thread, "
            f"and DiskSpd takes whole ones; the next rate is {following:.9g}, or choose fewer threads"
        )
    return round(exact)


def _stride(workload: Workload) -> int | None:
    """Where each thread starts: at its own part of the working set when it goes in order."""
    if workload.pattern == "random" or workload.threads == 1:
        return None
    block = workload.block_size_bytes
    return workload.working_set_bytes // workload.threads // block * block


RELEASE = "2.0.21a"
INSTALL = Install(
    version=r'(Get-Item "$env:ProgramFiles\DiskSpd\amd64\diskspd.exe").VersionInfo.ProductVersion',
    url=f"https://github.com/microsoft/diskspd/releases/download/v{RELEASE}/DiskSpd.zip",
    # As the public package definition of this release names it.
    sha256="D02F6BE976C518D4134E62AF7F518BAAD6C7C81F924CAAFBEBA65BD0831CE139",
)
