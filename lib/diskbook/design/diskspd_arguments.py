"""DiskSpd's arguments: a command line to a record of what it asks for, and back. No I/O here.

Meanings from DiskSpd's wiki ("Command line and parameters", "Threading and concurrency") and the checks of
its own parser. ``diskspd -w100 -b8K -F8 -r -o5 -W30 -d10 -Sh -L testfile.dat`` is eight threads in all,
each with five random writes of 8 KiB outstanding.

The record is written as DiskSpd takes it. No I/O here.

A workload may be given as a DiskSpd line; it is translated into the workbook's terms.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from diskbook.design.diskspd_flags import DEFAULT_BLOCK, UNITS, read_flag, wrong
from diskbook.facts.errors import UsageError
from diskbook.facts.units import GIB

# Where the output goes, up to the end of the line: the shell's part, none of DiskSpd's targets.
_REDIRECTED = re.compile(r"\s(?:[12*]?>{1,2}|\|).*$", re.DOTALL)
_TOKEN = re.compile(r'(?:[^\s"]|"[^"]*")+')


@dataclass(frozen=True)
class Arguments:
    """What one call of DiskSpd is asked for; defaults are DiskSpd's own.

    - `random_pct`: 100 for -r, 0 for sequential, between for -rs.
    - `align`: bytes between possible offsets (-r, -s); None stands for the block size.
    - `rate`, `rate_unit`: of each thread on each target: bytes a millisecond, or I/Os a second.
    - `cache`: the system's file cache: "on" (-Sb), "off" (-Su) or "remote" (-Sr).
    - `buffers`: content of writes: "pattern" (0, 1, 2 ...), "zero" (-Z), "random" (-Zr), or what follows -Z.
    - `iops_interval_ms`: grain of -D; None without it.
    - `seed`, `clock_seed`: the number of -z, or whether it comes from the clock (-z alone); without -z
      DiskSpd takes 0.
    - `kept`: other flags, as they stand.
    """

    targets: tuple[str, ...] = ()
    block_size: int = DEFAULT_BLOCK
    write_pct: int = 0
    random_pct: int = 0
    align: int | None = None
    interlocked: bool = False
    distribution: str = ""
    threads_per_target: int | None = None
    total_threads: int | None = None
    outstanding: int = 2
    outstanding_per_thread: int | None = None
    rate: int | None = None
    rate_unit: Literal["bytes/ms", "IOPS"] = "bytes/ms"
    cache: Literal["on", "off", "remote"] = "on"
    write_through: bool = False
    memory_mapped: bool = False
    create_bytes: int | None = None
    max_offset: int | None = None
    base_offset: int = 0
    thread_stride: int | None = None
    warmup_s: int = 5
    duration_s: int = 10
    cooldown_s: int = 0
    latency: bool = False
    iops_interval_ms: int | None = None
    buffers: str = "pattern"
    seed: int | None = None
    clock_seed: bool = False
    output: Literal["text", "xml"] = "text"
    kept: tuple[str, ...] = ()

    @property
    def n_targets(self) -> int:
        """Targets; a line that names none means the disk under test."""
        return max(1, len(self.targets))

    @property
    def threads(self) -> int:
        """Threads in all: -F, or -t for each target."""
        if self.total_threads is not None:
            return self.total_threads
        return (self.threads_per_target or 1) * self.n_targets

    @property
    def depth(self) -> int:
        """I/Os that one thread keeps in flight, over all the targets that it uses."""
        if self.outstanding_per_thread is not None:
            return self.outstanding_per_thread
        return self.outstanding * (self.n_targets if self.total_threads is not None else 1)

    @property
    def rate_iops(self) -> float | None:
        """Rate of all threads on all targets, in I/Os a second; None without -g."""
        if self.rate is None:
            return None
        each = self.rate if self.rate_unit == "IOPS" else self.rate * 1000 / self.block_size
        pairs = self.threads * (self.n_targets if self.total_threads is not None else 1)
        return float(each * pairs)

    @property
    def span_bytes(self) -> int | None:
        """Bytes of the target that are used, where the line says so."""
        ends = [end for end in (self.create_bytes, self.max_offset) if end is not None]
        return min(ends) - self.base_offset if ends else None

    @property
    def least_version(self) -> str:
        """The first release of DiskSpd that knows all of this; older ones misread it without a word."""
        if (self.rate and self.rate_unit == "IOPS") or self.distribution or 0 < self.random_pct < 100:
            return "2.1"
        return "2.0.21" if self.memory_mapped else "2.0.20" if self.outstanding_per_thread else "2.0"


def parse(line: str) -> Arguments:
    """Read a command line.

    - `line`: as written in a command prompt; the program's name and the targets may be left out.

    Raises UsageError for a flag that DiskSpd does not have (it is named), a value it cannot take, or flags
    that exclude each other.
    """
    if line.count('"') % 2:
        raise UsageError(f"DiskSpd line '{line}': a quotation mark is not closed")
    words = [match.group().replace('"', "") for match in _TOKEN.finditer(_REDIRECTED.sub("", line))]
    if words[:1] == ["&"]:  # how PowerShell starts a program
        words = words[1:]
    if words and not _is_flag(words[0]) and _is_program(words[0]):
        words = words[1:]
    return parse_words(words)


def parse_words(words: list[str]) -> Arguments:
    """Read the arguments of a call, without the program; see `parse`."""
    first_target = next((n for n, word in enumerate(words) if not _is_flag(word)), len(words))
    flags, targets = words[:first_target], words[first_target:]
    late = next((word for word in targets if _is_flag(word)), None)
    if late is not None:
        raise wrong(late, f"comes after the target '{targets[0]}', where it is not read; put it before")
    # Sizes may be given in blocks, so the block size comes first, wherever it stands.
    fields: dict[str, Any] = {"targets": tuple(targets)}
    for flag in sorted(flags, key=lambda word: word[1:2] != "b"):
        read_flag(flag, fields)
    arguments = Arguments(**fields)
    _check(arguments)
    return arguments


def with_target(arguments: Arguments, target: str) -> Arguments:
    """The same load on another target."""
    return replace(arguments, targets=(target,))


def _is_flag(word: str) -> bool:
    return word[:1] == "-" or (word[:1] == "/" and word[1:2].isalpha() and "/" not in word[1:])


def _is_program(word: str) -> bool:
    return re.split(r"[\\/]", word)[-1].lower() in ("diskspd", "diskspd.exe")


def _check(arguments: Arguments) -> None:
    """Refuse what DiskSpd refuses, and what it would ignore without a word."""
    kept = {flag[1] for flag in arguments.kept}
    random = arguments.random_pct > 0
    conflicts = (
        ("-F and -t", arguments.total_threads and (arguments.threads_per_target or 1) > 1),
        ("-O without -F", arguments.outstanding_per_thread and not arguments.total_threads),
        ("-g and -O", arguments.rate and arguments.outstanding_per_thread),
        ("-g and -x", arguments.rate and "x" in kept),
        ("-j and -O", "j" in kept and arguments.outstanding_per_thread),
        ("-p and -O", "p" in kept and arguments.outstanding_per_thread),
        ("-i without -j, or -j without -i,", len(kept & {"i", "j"}) == 1),
        ("-n and -a", {"n", "a"} <= kept),
        ("-r and -T", random and arguments.thread_stride),
        ("-r and -p", random and "p" in kept),
        ("-si and -T", arguments.interlocked and arguments.thread_stride),
        ("-si and -p", arguments.interlocked and "p" in kept),
        ("-rd without -r", arguments.distribution and not random),
        ("-Sm and -Su or -Sh", arguments.memory_mapped and arguments.cache == "off"),
        ("-Sm and -x", arguments.memory_mapped and "x" in kept),
        ("-N without -Sm", "N" in kept and not arguments.memory_mapped),
    )
    for pair, clash in conflicts:
        if clash:
            raise UsageError(f"DiskSpd arguments: {pair} do not go together; leave one out")
    span = arguments.span_bytes
    if span is not None and span < arguments.block_size:
        raise UsageError(f"DiskSpd arguments: {span} bytes of the target are less than one block")


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


def expand_workload(raw: Any) -> Any:
    """Put what a line says into the keys of a workload; tables without `verbatim` pass unchanged.

    Raises ValueError when the line cannot be read, or another key says something else; one sentence.
    """
    if not isinstance(raw, Mapping) or not isinstance(raw.get("verbatim"), str):
        return raw
    try:
        fields = fields_of(parse(raw["verbatim"]))
    except UsageError as error:
        raise ValueError(str(error)) from None
    for key, value in fields.items():
        # A manifest holds what the line meant; the wording of remarks may be of another version.
        if key in raw and raw[key] != value and key != "remarks":
            raise ValueError(
                f"verbatim says the whole load, so '{key}' cannot be set beside it (it means {value!r}); "
                "change the line"
            )
    if "working_set_gib" not in fields and "working_set_gib" not in raw:
        raise ValueError("the line of verbatim gives its target no size (-c or -f); set working_set_gib")
    return {**fields, **raw}


def fields_of(line: Arguments) -> dict[str, Any]:
    """Keys of a workload that mean the same as a line of DiskSpd.

    Threads and outstanding I/Os are totals over the targets that the line names, all of which are on the
    one disk under test.
    """
    fields = {
        "pattern": "random" if line.random_pct else "sequential",
        "block_size": line.block_size,
        "write_pct": line.write_pct,
        "threads": line.threads,
        "queue_depth": line.depth,
        "rate": line.rate_iops,
        "sync": "dsync" if line.write_through and line.write_pct else None,
        "ramp_s": float(line.warmup_s),
        "runtime_s": float(line.duration_s),
        "remarks": tuple(workload_remarks(line)),
    }
    if line.span_bytes is not None:
        fields["working_set_gib"] = line.span_bytes / GIB
    if line.iops_interval_ms is not None:
        fields["series_s"] = line.iops_interval_ms / 1000
    return fields


def workload_remarks(line: Arguments) -> Iterator[str]:
    """What a reader of the line's results must know, one sentence each, without a full stop."""
    if line.create_bytes is not None:
        yield _unwritten(line)
    if not line.latency:
        yield "no -L: DiskSpd measures no latencies"
    if line.cache != "off":
        yield "neither -Su nor -Sh: the file cache answers, so this may measure memory and not the disk"
    if len(line.targets) > 1:
        yield f"its {len(line.targets)} targets are on the one disk under test"
    if line.cooldown_s:
        yield f"-C{line.cooldown_s}: only DiskSpd goes on after measuring; fio ends at once"
    if 0 < line.random_pct < 100:
        yield f"-rs{line.random_pct}: {line.random_pct} % of the I/Os are random, the others in a row"
    if line.clock_seed:
        yield "-z without a number: the seed is from the clock, so the same offsets cannot be drawn again"
    if line.buffers == "zero":
        yield "-Z: only zeros are written, which a disk may store for nothing"


def check_runnable(line: Arguments) -> None:
    """Refuse a line whose offsets nobody could draw again; VMFleet's own is left as it is.

    Raises UsageError for -z without a number.
    """
    if line.clock_seed:
        raise UsageError(
            "DiskSpd line: -z without a number seeds from the clock, so no other arm gets the same offsets; "
            "give it a number, e.g. -z1"
        )


def _unwritten(line: Arguments) -> str:
    if line.write_pct == 100:
        return "-c re-creates the file: writes may be the first to their blocks; nothing is prefilled"
    return "-c re-creates the file: reads may hit unwritten blocks, which need no disk; nothing is prefilled"
