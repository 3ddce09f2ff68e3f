"""Translator of a DiskSpd line into options of fio, beyond what a workload says. No I/O here."""

from __future__ import annotations

from collections.abc import Iterator

from diskbook.design.diskspd_line.arguments import Arguments
from diskbook.facts.errors import UsageError

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


def options(line: Arguments) -> list[str]:
    """Options for alignment, place, content and mixed patterns.

    Raises
    ------
    UsageError
        For what fio cannot do; names the argument.
    """
    for what, asked in _cannot(line):
        if asked:
            raise UsageError(
                f"DiskSpd line: fio has nothing like {what}; leave it out, or measure on Windows"
            )
    return [*_place(line), *_content(line)]


def rate(line: Arguments) -> list[str]:
    """-g as fio's bytes a second for each thread, reads and writes apart."""
    if line.rate_iops is None:
        return []
    bytes_s = line.rate_iops * line.block_size / line.threads
    written = line.write_pct / 100
    shares = (round(bytes_s * (1 - written)), round(bytes_s * written))
    return ["--rate=" + ",".join(str(share) if share else "" for share in shares)]


def notes(line: Arguments) -> Iterator[str]:
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


def _content(line: Arguments) -> Iterator[str]:
    if line.buffers == "zero":
        yield "--zero_buffers=1"
    elif line.buffers == "random":
        yield "--refill_buffers=1"
