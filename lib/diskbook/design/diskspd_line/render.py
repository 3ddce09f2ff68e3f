"""A record of DiskSpd's arguments, written as DiskSpd takes them. No I/O here."""

from __future__ import annotations

from collections.abc import Iterator

from diskbook.design.diskspd_line.arguments import Arguments
from diskbook.design.diskspd_line.flags import UNITS


def render(arguments: Arguments) -> list[str]:
    """Write arguments as DiskSpd takes them, without the program; `parse_words` reads them back equal."""
    return [*_sizes(arguments), *_load(arguments), *_times(arguments), *arguments.kept, *arguments.targets]


def size_text(number: int) -> str:
    """The shortest way to write a size that keeps it."""
    for unit in ("T", "G", "M", "K"):
        if number and number % UNITS[unit] == 0:
            return f"{number // UNITS[unit]}{unit}"
    return str(number)


def _flag(letter: str, value: int | None) -> Iterator[str]:
    if value is not None:
        yield f"-{letter}{value}"


def _sized(letter: str, value: int | None) -> Iterator[str]:
    if value is not None:
        yield f"-{letter}{size_text(value)}"


def _sizes(arguments: Arguments) -> Iterator[str]:
    yield from _sized("b", arguments.block_size)
    yield from _sized("c", arguments.create_bytes)
    yield from _sized("f", arguments.max_offset)
    yield from _sized("B", arguments.base_offset or None)
    yield from _sized("T", arguments.thread_stride)


def _load(arguments: Arguments) -> Iterator[str]:
    yield from _flag("t", arguments.threads_per_target)
    yield from _flag("F", arguments.total_threads)
    yield from _flag("o", arguments.outstanding)
    yield from _flag("O", arguments.outstanding_per_thread)
    yield from _pattern(arguments)
    yield from _flag("w", arguments.write_pct)
    if arguments.rate is not None:
        yield f"-g{arguments.rate}{'i' if arguments.rate_unit == 'IOPS' else ''}"
    yield from _caches(arguments)
    if arguments.buffers != "pattern":
        yield "-Z" + {"zero": "", "random": "r"}.get(arguments.buffers, arguments.buffers)
    yield from ("-z",) if arguments.clock_seed else _flag("z", arguments.seed)


def _pattern(arguments: Arguments) -> Iterator[str]:
    align = "" if arguments.align is None else size_text(arguments.align)
    if not arguments.random_pct:
        yield f"-s{'i' if arguments.interlocked else ''}{align}"
        return
    if arguments.random_pct < 100:
        yield f"-rs{arguments.random_pct}"
    yield f"-r{align}"
    if arguments.distribution:
        yield f"-rd{arguments.distribution}"


def _caches(arguments: Arguments) -> Iterator[str]:
    letters = {"on": "", "off": "u", "remote": "r"}[arguments.cache]
    letters += "m" if arguments.memory_mapped else ""
    letters += "w" if arguments.write_through else ""
    if letters:
        yield "-Sh" if letters == "uw" else f"-S{letters}"


def _times(arguments: Arguments) -> Iterator[str]:
    yield from _flag("W", arguments.warmup_s)
    yield from _flag("d", arguments.duration_s)
    yield from _flag("C", arguments.cooldown_s or None)
    if arguments.latency:
        yield "-L"
    yield from _flag("D", arguments.iops_interval_ms)
    if arguments.output == "xml":
        yield "-Rxml"
