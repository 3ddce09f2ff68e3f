"""Builder of fio's command lines, from a workload and a device. No I/O here.

Also translates a DiskSpd line into options of fio.
"""

from collections.abc import Iterator

from diskbook.design.diskspd_arguments import Arguments, parse
from diskbook.design.model import Workload
from diskbook.facts.errors import UsageError
from diskbook.tools.protocol import COMPRESSIBLE, FILL_BLOCK_BYTES, OVERWRITE_BLOCK_BYTES, Job, Target

# Only how threads are placed and woken, which fio leaves to the system.
_LEFT_OUT = set("aneyvPIlfx")


def rw_suffix(line: Arguments) -> str:
    """What follows fio's `rw`: bytes left out between two sequential I/Os (-s with more than a block)."""
    stride = line.align or line.block_size
    if line.random_pct or stride == line.block_size:
        return ""
    if stride < line.block_size:
        raise UsageError(
            f"DiskSpd line: fio cannot make sequential blocks of {line.block_size} bytes overlap (-s{stride})"
        )
    return f":{stride - line.block_size}"


def line_options(line: Arguments) -> list[str]:
    """Options for alignment, place, content and mixed patterns.

    Raises UsageError for what fio cannot do; names the argument.
    """
    for what, asked in _cannot(line):
        if asked:
            raise UsageError(
                f"DiskSpd line: fio has nothing like {what}; leave it out, or measure on Windows"
            )
    return [*_place(line), *_line_content(line)]


def line_rate(line: Arguments) -> list[str]:
    """-g as fio's bytes a second for each thread, reads and writes apart."""
    if line.rate_iops is None:
        return []
    bytes_s = line.rate_iops * line.block_size / line.threads
    written = line.write_pct / 100
    shares = (round(bytes_s * (1 - written)), round(bytes_s * written))
    return ["--rate=" + ",".join(str(share) if share else "" for share in shares)]


def line_notes(line: Arguments) -> Iterator[str]:
    """What fio leaves out of a line, one sentence each."""
    left_out = sorted({flag[:2] for flag in line.kept if flag[1] in _LEFT_OUT})
    if left_out:
        yield f"{', '.join(left_out)}: left out, fio leaves these to the system"
    if line.cooldown_s:
        yield f"-C{line.cooldown_s}: left out, fio ends when it has measured"
    if line.buffers not in ("zero", "random"):
        yield "fio writes random data, DiskSpd the content that it was told"


def _cannot(line: Arguments) -> Iterator[tuple[str, bool]]:
    yield "-Sm (memory mapping)", line.memory_mapped
    yield "the file cache on a disk without a file system (add -Su or -Sh)", line.cache != "off"
    yield "-rd (a distribution of offsets)", bool(line.distribution)
    yield "-si (one offset for all threads)", line.interlocked and line.threads > 1
    yield "-p, -i and -j", bool({flag[1] for flag in line.kept} & set("pij"))


def _place(line: Arguments) -> Iterator[str]:
    if line.span_bytes is not None:
        yield f"--size={line.span_bytes}"
    if line.base_offset:
        yield f"--offset={line.base_offset}"
    if line.thread_stride:
        yield f"--offset_increment={line.thread_stride}"
    if line.random_pct and line.align and line.align != line.block_size:
        yield f"--blockalign={line.align}"
    if 0 < line.random_pct < 100:
        yield f"--percentage_random={line.random_pct}"


def _line_content(line: Arguments) -> Iterator[str]:
    if line.buffers == "zero":
        yield "--zero_buffers=1"
    elif line.buffers == "random":
        yield "--refill_buffers=1"


JOB_NAME = "trial"
SCRAMBLED = "random data, made once and altered a little before each write (fio's default)"
REFILLED = "random data, made anew for each write (fio's refill_buffers)"
PATTERN = "the bytes 0 to 255 over and over, which compress (fio's buffer_pattern)"
ZEROS = "zeros (fio's zero_buffers)"
# Fewest and most lines that fio makes room for at first.
_LOG_ENTRIES = (1024, 1024**2)
_RW = {
    ("random", "read"): "randread",
    ("random", "write"): "randwrite",
    ("random", "mixed"): "randrw",
    ("sequential", "read"): "read",
    ("sequential", "write"): "write",
    ("sequential", "mixed"): "rw",
}


def command(
    workload: Workload, target: Target, *, seed: int = 1, offset: int = 0, each_io: bool = False
) -> Job:
    """Build the measurement of one trial.

    Percentiles and bins are of total latency (from submission, as an application sees it), not of
    completion alone. Sequential threads each have their own part of the working set, unless a line of
    DiskSpd says otherwise.

    - `seed`: fixes the offsets drawn, so that they differ between trials and can be repeated.
    - `offset`: where on the target the working set begins, in bytes.
    - `each_io`: whether a held rate is offered by as many jobs as I/Os may be outstanding, of one I/O each,
      and the log of latencies has a line for every I/O, about 27 bytes (6 when packed), from which
      `held_rate` tells how late the disk made each; otherwise both logs are averaged over the grain of the
      series.

    Raises UsageError when fio cannot reach the device.
    """
    line = parse(workload.verbatim) if workload.verbatim else None
    if each_io and line is None:
        workload = _of_single_ios(workload)
    argv = [
        *_start(JOB_NAME, target, workload.ioengine),
        *_load(workload, line),
        *_region(workload, offset),
        *_content(workload),
        *_sync(workload, target.engine),
        *(_rate(workload, staggered=each_io) if line is None else line_rate(line)),
        f"--ramp_time={_ms(workload.ramp_s)}ms",
        f"--runtime={_ms(workload.runtime_s)}ms",
        "--time_based",
        "--randrepeat=0",
        f"--randseed={seed}",
        "--group_reporting",
        "--output-format=json+",
        "--lat_percentiles=1",
        "--clat_percentiles=0",
        *(_log_of_each_io(workload) if each_io else _averaged_logs(workload)),
        "--per_job_logs=0",
    ]
    logs = {"lat_log": f"{JOB_NAME}_lat.log"}
    logs |= {} if each_io else {"iops_log": f"{JOB_NAME}_iops.log"}
    return Job(
        tuple(argv),
        logs,
        tuple(_notes(workload, target.engine, line)),
        content=_content_words(workload, line),
    )


def _of_single_ios(workload: Workload) -> Workload:
    """Spread what may be outstanding over jobs of one I/O each."""
    jobs = {"threads": workload.outstanding, "queue_depth": 1, "instances": 1}
    return workload.model_copy(update=jobs)


def prefill_command(working_set_bytes: int, target: Target, *, seed: int = 1) -> Job:
    """Build the writing of the whole working set once, in order, with data that does not compress.

    A disk answers reads of blocks never written without touching its media, so this comes before any trial.
    """
    how = ["--rw=write", f"--bs={FILL_BLOCK_BYTES}", "--iodepth=16"]
    return _written_once("prefill", target, how, working_set_bytes, seed)


def overwrite_command(working_set_bytes: int, target: Target, *, seed: int = 1) -> Job:
    """Build one pass over the working set in random order, each block once, with fresh random data.

    A disk that was only filled in order is in the state of a new file; writes of a run would change that
    state while it is measured.
    """
    how = ["--rw=randwrite", f"--bs={OVERWRITE_BLOCK_BYTES}", "--iodepth=32"]
    return _written_once("overwrite", target, how, working_set_bytes, seed)


def _written_once(name: str, target: Target, how: list[str], size_bytes: int, seed: int) -> Job:
    argv = [
        *_start(name, target),
        *how,
        f"--size={size_bytes}",
        "--refill_buffers=1",
        "--randrepeat=0",
        f"--randseed={seed}",
        "--end_fsync=1",
        "--output-format=json",
    ]
    return Job(tuple(argv), limit_s=_limit_s(size_bytes), content=REFILLED)


def read_command(working_set_bytes: int, target: Target) -> Job:
    """Build the reading of the whole working set once, in order: what warms a host cache."""
    argv = [
        *_start("warm", target),
        "--rw=read",
        f"--bs={FILL_BLOCK_BYTES}",
        "--iodepth=16",
        f"--size={working_set_bytes}",
        "--output-format=json",
    ]
    return Job(tuple(argv), limit_s=_limit_s(working_set_bytes))


def _limit_s(size_bytes: int) -> float:
    """50 MB/s is a slow disk; ten minutes more than that takes is a broken one."""
    return size_bytes / 50e6 + 600


def verify_write_command(target: Target, *, size_bytes: int, offset: int = 0, seed: int = 1) -> Job:
    """Build the writing of a region in blocks that carry their place and a checksum.

    - `target`: the disk as seen from the zone that writes.
    - `size_bytes`, `offset`: the region, in bytes; multiples of 64 KiB.
    - `seed`: of the data written.
    """
    checks = ["--rw=write", "--do_verify=0", "--randrepeat=0", f"--randseed={seed}", "--end_fsync=1"]
    return _verify(target, size_bytes, offset, checks)


def verify_read_command(target: Target, *, size_bytes: int, offset: int = 0) -> Job:
    """Build the check, from another zone, of a region that `verify_write_command` wrote.

    fio ends with an error at the first block whose place or checksum is wrong.
    """
    return _verify(target, size_bytes, offset, ["--rw=read", "--verify_fatal=1"])


def _verify(target: Target, size_bytes: int, offset: int, checks: list[str]) -> Job:
    argv = [
        *_start("verify", target),
        f"--bs={64 * 1024}",
        "--iodepth=8",
        f"--offset={offset}",
        f"--size={size_bytes}",
        "--verify=crc32c",
        "--verify_state_save=0",
        *checks,
        "--output-format=json",
    ]
    return Job(tuple(argv))


def _start(name: str, target: Target, ioengine: str = "libaio") -> list[str]:
    """Program, job name and device, by an engine of the kernel's unless it is an NBD export.

    fio splits file names at colons, so these are escaped. A fixed clock source saves a test of 70 ms.
    """
    start = ["fio", f"--name={name}"]
    if target.engine == "nbd":
        return [*start, "--ioengine=nbd", "--clocksource=clock_gettime", f"--uri={target.target}"]
    if target.engine == "libaio":
        path = target.target.replace(":", r"\:")
        return [*start, f"--ioengine={ioengine}", f"--filename={path}", "--direct=1"]
    raise UsageError(f"fio cannot reach {target.target}: engine '{target.engine}' is neither nbd nor libaio")


def _load(workload: Workload, line: Arguments | None) -> list[str]:
    """Pattern, block size, concurrency and the part of the disk."""
    mix = {0: "read", 100: "write"}.get(workload.write_pct, "mixed")
    mixed = [f"--rwmixwrite={workload.write_pct}"] if mix == "mixed" else []
    return [
        f"--rw={_RW[workload.pattern, mix]}{rw_suffix(line) if line else ''}",
        *mixed,
        f"--bs={workload.block_size_bytes}",
        f"--iodepth={workload.queue_depth}",
        f"--numjobs={workload.threads}",
        *(_extent(workload) if line is None else _extent_of_line(workload, line)),
    ]


def _extent(workload: Workload) -> list[str]:
    if workload.pattern == "random" or workload.threads == 1:
        return [f"--size={workload.working_set_bytes}"]
    block = workload.block_size_bytes
    share = workload.working_set_bytes // workload.threads // block * block
    return [f"--size={share}", f"--offset_increment={share}"]


def _extent_of_line(workload: Workload, line: Arguments) -> list[str]:
    whole = [] if line.span_bytes is not None else [f"--size={workload.working_set_bytes}"]
    return [*whole, *line_options(line)]


def _region(workload: Workload, offset: int) -> list[str]:
    """Where it begins. With its random map fio comes to a block a second time only after all others."""
    place = [f"--offset={offset}"] if offset else []
    return place if workload.first_writes else [*place, "--norandommap"]


def _content(workload: Workload) -> list[str]:
    """What writes hold; fio's own default is left as it is, since making data anew costs CPU."""
    if workload.data == "random" or workload.write_pct == 0:
        return []
    return [f"--buffer_pattern=0x{COMPRESSIBLE.hex()}"]


def _content_words(workload: Workload, line: Arguments | None) -> str:
    if workload.write_pct == 0:
        return ""
    if line is not None:
        return {"zero": ZEROS, "random": REFILLED}.get(line.buffers, SCRAMBLED)
    return SCRAMBLED if workload.data == "random" else PATTERN


def _sync(workload: Workload, engine: str) -> list[str]:
    """Make every write durable. fio's nbd engine knows no fdatasync; its fsync is the same flush command."""
    if workload.sync is None:
        return []
    if workload.sync == "fdatasync":
        return ["--fsync=1" if engine == "nbd" else "--fdatasync=1"]
    return [] if engine == "nbd" else ["--sync=dsync"]


def _notes(workload: Workload, engine: str, line: Arguments | None) -> Iterator[str]:
    """Where the job does not do quite what was asked."""
    if workload.sync == "dsync" and engine == "nbd":
        yield "write-through was asked for; fio's nbd engine sends no FUA, so writes are plain ones"
    if workload.ioengine != "libaio" and engine == "nbd":
        yield f"{workload.ioengine} was asked for; fio has its own engine for NBD, so it is not used"
    if line is not None:
        yield from line_notes(line)


def _rate(workload: Workload, *, staggered: bool) -> list[str]:
    """Limit reads and writes of each thread, in bytes per second: a rate in IOPS would have to be whole."""
    if workload.rate is None:
        return []
    written = workload.write_pct / 100
    bytes_s = workload.rate * workload.block_size_bytes / workload.threads
    rates = [round(bytes_s * part) for part in (1 - written, written)]
    limit = "--rate=" + ",".join(str(rate) if rate else "" for rate in rates)
    return [limit, *_staggered(workload, workload.rate)] if staggered else [limit]


def _staggered(workload: Workload, rate: float) -> list[str]:
    """Let each job begin in a slot of its own of the period in which each sends one I/O.

    fio starts all jobs at once, and its `startdelay` is no finer than 0.1 s. So each job first waits until
    the clock comes to its slot, which its process id tells: those of jobs follow each other. Starting a
    process takes about a millisecond, and that is how even the slots are.
    """
    if workload.threads == 1:
        return []
    jobs = workload.threads
    slot_ns = round(1e9 / rate)
    period_ns = jobs * slot_ns
    left_ns = f"($PPID % {jobs} * {slot_ns} - $(date +%s%N) % {period_ns} + {period_ns}) % {period_ns}"
    return [f"--exec_prerun=exec sleep $(({left_ns}))e-9"]


def _averaged_logs(workload: Workload) -> list[str]:
    log_avg = f"--log_avg_msec={_ms(workload.series_s)}"
    return [f"--write_lat_log={JOB_NAME}", f"--write_iops_log={JOB_NAME}", log_avg]


def _log_of_each_io(workload: Workload) -> list[str]:
    """Have fio make room for the log before it measures, since it stops to make more (its log_entries)."""
    expected = (workload.rate or 0) * workload.runtime_s / workload.threads
    entries = min(max(round(1.2 * expected), _LOG_ENTRIES[0]), _LOG_ENTRIES[1])
    return [f"--write_lat_log={JOB_NAME}", "--log_avg_msec=0", f"--log_entries={entries}"]


def _ms(seconds: float) -> int:
    return round(seconds * 1000)
