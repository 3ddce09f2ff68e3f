"""Reader of the load that DiskSpd's text output says it was asked for. Reads text, touches no file.

Versions differ: with -F old ones print no number of threads, with -O none of outstanding I/Os, and with -g no
rate; none prints the size of a file that -c makes. The results and the command line, which all of them print,
have these. Up to 2.0.15 a mix is "write/read", of 100, and caches are "software and hardware cache disabled";
the one for Linux names the flags that it opened the file with.
"""

import re
from collections.abc import Sequence
from itertools import pairwise
from typing import Literal, TypeVar

from diskbook.facts.units import GIB, KIB, MIB
from diskbook.tools.diskspd.xml import BLOCK, UNEVEN, USUAL, named
from diskbook.tools.record import CACHED, Load

T = TypeVar("T")

_SWITCHES = {
    **{"B": "BaseFileOffset", "T": "ThreadStride", "f": "MaxFileSize", "i": "BurstSize", "j": "ThinkTime"},
    **{"l": "UseLargePages", "n": "DisableAffinity", "p": "ParallelAsyncIO", "si": "InterlockedSequential"},
    **{"ft": "TemporaryFile", "fs": "SequentialScan", "fr": "RandomAccess", "x": "CompletionRoutines"},
    **{"I": "IOPriority", "rs": "RandomRatio", "r": "Random", "s": "StrideSize", "Sm": "MemoryMappedIo"},
}
"""Switch of the command line to the element that the XML has for it."""
_SWITCH = re.compile(r"\s[-/](si|rs|Sm|[BTfijlnpxIrs])(\d{1,15}[KMGTb]?)?(?=\s|$)")
_HINTS = re.compile(r"\s[-/]f([rst]{1,3})(?=\s|$)")
_BUFFER = re.compile(r"\s[-/]Z(r?)(\d{1,15}[KMGb]?(?:,\S+)?)?(?=\s|$)")
_PATH = re.compile(r"^[ \t>]*path: ['\u2018](.{1,400})['\u2019]\s*$", re.MULTILINE)
_SIZE = {"": 1, "B": 1, "KiB": KIB, "MiB": MIB, "GiB": GIB, "K": KIB, "M": MIB, "G": GIB}
_OUTSTANDING = r"outstanding I/O.{0,40}?: (\d{1,6})"


def load(asked: str, done: str, run: str, flags: list[str]) -> tuple[Load, list[str]]:
    """Join the targets of a time span; what differs between them is left out.

    Its input parameters, its results and all of the run, with the command line, tell of them. Returns the
    load, and the paths of its targets.
    """
    paths = list(_PATH.finditer(asked))
    if not paths:
        flags.append("what was asked for is not in the file")
        return Load(), []
    if len(paths) > 1:
        flags.append(f"{len(paths)} targets were loaded at once and are added up")
    starts = [match.start() for match in paths]
    targets = [asked[start:end] for start, end in pairwise([*starts, len(asked)])]
    command = re.search(r"^[ \t>]*Command Line: (.*)$", run, re.MULTILINE)
    line = command[1] if command else ""
    threads, depth = _concurrency(targets, asked[: starts[0]], done, line)
    block = _same([_block(text) for text in targets])
    write_pct = _same([_write_pct(text) for text in targets])
    pattern = _same([_pattern(text) for text in targets])
    _tell_ways(targets, flags)
    through = all(map(_writes_through, targets))
    return Load(
        pattern=pattern,
        block_size_bytes=block,
        write_pct=write_pct,
        threads=threads,
        queue_depth=depth,
        rate=_rate(targets, line, block, threads),
        sync="dsync" if through and write_pct else None,
        size_bytes=_created(line, len(targets), block),
        ramp_s=_told(asked, r"warm up time: (\d{1,9})s"),
        runtime_s=_told(asked, r"duration: (\d{1,9})s"),
    ), [match[1] for match in paths]


def options(run: str, block: int | None) -> dict[str, str]:
    """Options of a run by the names that the XML has for them; none without a command line."""
    command = re.search(r"^[ \t>]*Command Line: (.*)$", run, re.MULTILINE)
    if command is None:
        return {}
    options = dict(USUAL)
    for match in _SWITCH.finditer(command[1]):
        name, value = _SWITCHES[match[1]], match[2]
        size = _bytes(value, block) if value else None
        if name == "InterlockedSequential":
            options[name], name = "true", "StrideSize"
        is_block = name in ("Random", "StrideSize") and size in (None, block)
        options[name] = BLOCK if is_block else str(size or "true")
    for letters in _HINTS.findall(command[1]):
        options |= {_SWITCHES[f"f{letter}"]: "true" for letter in letters}
    if buffer := _BUFFER.search(command[1]):
        options["Pattern"] = "random" if buffer[1] or buffer[2] else "zero"
    return named(options)


def _bytes(value: str, block: int | None) -> int:
    """Return a number of the command line, in bytes where it has a unit; b is a block."""
    unit = {"K": KIB, "M": MIB, "G": GIB, "T": 1024 * GIB, "b": block or 1}.get(value[-1], 1)
    return int(value.rstrip("KMGTb")) * unit


def _concurrency(targets: list[str], head: str, done: str, line: str) -> tuple[int | None, int | None]:
    """Threads in all, and what each has in flight on all of its targets."""
    outstanding = [_whole(text, _OUTSTANDING) for text in targets]
    a_target = [_whole(text, r"threads per file: (\d{1,6})") for text in targets]
    if all(a_target):
        threads = sum(a_target)
        total = sum(n * depth for n, depth in zip(a_target, outstanding, strict=True))
        if not all(outstanding):
            return threads, None
        return (threads, total // threads) if total % threads == 0 else (1, total)
    pool = (
        _whole(head, r"thread pool with (\d{1,6}) threads")
        or _whole(done, r"thread count:\s*(\d{1,6})")
        or _whole(head, r"total threads: (\d{1,6})")
    )
    a_thread = _whole(head, _OUTSTANDING) or _whole(line, r"\s[-/]O(\d{1,6})")
    return pool or None, a_thread or (sum(outstanding) if all(outstanding) else None)


def _rate(targets: list[str], line: str, block: int | None, threads: int | None) -> float | None:
    """Rate in IOPS of all threads on all targets; versions that print none read -g as bytes a millisecond."""
    limited = [re.search(r"throughput rate-limited to (\d{1,12}) (IOPS|B/ms)", text) for text in targets]
    asked = re.search(r"\s[-/]g(\d{1,12})", line)
    pairs = [(int(match[1]), match[2]) for match in limited if match]
    if not pairs and asked:
        pairs = [(int(asked[1]), "B/ms")] * len(targets)
    if len(pairs) != len(targets) or not block or not threads:
        return None
    a_target = [_whole(text, r"threads per file: (\d{1,6})") or threads for text in targets]
    rates = [rate if unit == "IOPS" else rate * 1000 / block for rate, unit in pairs]
    return float(sum(rate * n for rate, n in zip(rates, a_target, strict=True))) or None


def _tell_ways(targets: list[str], flags: list[str]) -> None:
    """Say what the load's numbers do not."""
    if any(map(_is_cached, targets)):
        flags.append(CACHED)
    mixed = re.search(r"using mixed random/sequential I/O \((\d{1,3})% random\)", targets[0])
    if mixed:
        flags.append(f"{mixed[1]} % of the I/Os were random, the others in a row")
    if any("IO Distribution:" in text for text in targets):
        flags.append(UNEVEN)
    if any(_whole(text, r"think time: (\d{1,9})ms") for text in targets):
        flags.append("pauses (-j) limited the rate")


def _pattern(text: str) -> Literal["random", "sequential"] | None:
    if re.search(r"using (?:mixed )?random", text):
        return "random"
    return "sequential" if re.search(r"using (?:interlocked )?sequential", text) else None


def _is_cached(text: str) -> bool:
    """Whether the system's file cache may answer; of the one for Linux, whether nothing kept it from that."""
    if re.search(r"^[ \t>]*block device:", text, re.MULTILINE):
        return "using O_DIRECT" not in text
    return re.search(r"using (?:hardware and )?software(?: and hardware)?(?: write)? cache", text) is not None


def _writes_through(text: str) -> bool:
    """Whether a write is done when it is on the medium."""
    ways = r"writethrough on|software and hardware caches? disabled|using O_SYNC"
    return re.search(ways, text) is not None


def _created(line: str, n_targets: int, block: int | None) -> int | None:
    """Size of the files that -c made, all of them together, as the XML has it."""
    asked = re.search(r"\s[-/]c(\d{1,15})([KMGTbB]?)(?=\s)", line)
    if asked is None:
        return None
    return _bytes(asked[1] + asked[2].upper().replace("B", "b"), block or 0) * n_targets or None


def _write_pct(text: str) -> int | None:
    if "performing write test" in text:
        return 100
    mix = re.search(r"performing mix test \((read/write|write/read) ratio: (\d{1,3})/(\d{1,3})\)", text)
    if mix:
        return min(int(mix[3] if mix[1] == "read/write" else mix[2]), 100)
    return 0 if "performing read test" in text else None


def _block(text: str) -> int | None:
    size = re.search(r"block size: (\d{1,15})([A-Za-z]*)", text)
    unit = _SIZE.get(size[2]) if size else None
    return int(size[1]) * unit if size and unit and int(size[1]) else None


def _same(values: Sequence[T]) -> T | None:
    return values[0] if len(set(values)) == 1 else None


def _whole(text: str, pattern: str) -> int:
    """Return the first number of this kind; 0 when there is none."""
    number = re.search(pattern, text)
    return int(number[1]) if number else 0


def _told(text: str, pattern: str) -> float | None:
    match = re.search(pattern, text)
    return float(match[1]) if match else None
