"""Reader of fio's job options, as its output repeats them: the load asked for. Compute only, no I/O."""

import math
import re
from collections.abc import Mapping
from typing import Any, Literal

from diskbook.facts.units import GIB, KIB, MIB
from diskbook.tools.record import Load

# Engines that wait for each I/O: whatever `iodepth` says, one is in flight.
SYNCHRONOUS = frozenset(("sync", "psync", "vsync", "pvsync", "pvsync2", "mmap"))
# Engines that go through the system's file cache unless told not to; none of them needs to be named.
_THROUGH_CACHE = SYNCHRONOUS | {"", "libaio", "io_uring", "posixaio", "windowsaio", "solarisaio", "splice"}
_SIZES = {"": 1, "k": KIB, "m": MIB, "g": GIB, "t": 1024**4, "p": 1024**5}
_SECONDS = {"us": 1e-6, "ms": 1e-3, "s": 1.0, "": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_NUMBER = re.compile(r"^(\d{1,15}(?:\.\d{1,9})?)\s*([a-z]*)$")
_GREATEST = 2**60

Options = Mapping[str, Any]


def size_bytes(text: str) -> int | None:
    """Size such as "4k", "4KiB" or "4096" in bytes (powers of 1024, as fio reads them); None if none."""
    parts = _NUMBER.match(text.strip().lower())
    if not parts:
        return None
    unit = parts[2].removesuffix("b").removesuffix("i")
    size = float(parts[1]) * _SIZES.get(unit, math.nan)
    return int(size) if 0 < size <= _GREATEST else None


def seconds(text: str) -> float | None:
    """Time such as "30", "30s", "2m" or "500ms" in seconds; None if it is none."""
    parts = _NUMBER.match(text.strip().lower())
    unit = _SECONDS.get(parts[2]) if parts else None
    return float(parts[1]) * unit if parts and unit else None


def whole(options: Options, name: str, default: int | None = None, greatest: int = 10**6) -> int | None:
    """Return an option as a whole number from 1 on, or the default."""
    text = str(options.get(name, "")).strip()
    if text.isascii() and text.isdigit() and len(text) < 16 and 1 <= int(text) <= greatest:
        return int(text)
    return default


def load(options: Options, jobs: int, alone_pct: float, flags: list[str]) -> Load:
    """Read what a job was asked for.

    - `options`: global and job options together.
    - `jobs`: entries of the output that are clones of this job; with group_reporting one stands for all.
    - `alone_pct`: share of I/Os that fio saw with one in flight (its "1" of iodepth_level), in %; NaN when
      not told.
    - `flags`: sentences are added to it.

    Returns what the options do not tell is None, also where they say that it varies.
    """
    if not options:
        flags.append("the file does not repeat the options: depth, threads and block size are not known")
        return Load(threads=jobs if jobs > 1 else None)
    pattern, write_pct = _access(options, flags)
    if seconds(str(options.get("latency_target", "0"))):
        flags.append("the depth was steered by a target of latency")
    threads = max(jobs, whole(options, "numjobs", 1) or 1)
    block = _block(options, flags)
    return Load(
        pattern=pattern,
        block_size_bytes=block,
        write_pct=write_pct,
        threads=threads,
        queue_depth=_depth(options, alone_pct, flags),
        rate=_rate(options, write_pct, threads, block, flags),
        sync=_sync(options, write_pct, flags),
        size_bytes=size_bytes(str(options.get("size", ""))),
        ramp_s=seconds(str(options.get("ramp_time", "0"))),
        runtime_s=seconds(str(options.get("runtime", ""))) or None,
    )


def cached(options: Options) -> bool:
    """Whether the system's file cache was in between; for all options of a job, not some."""
    if str(options.get("ioengine", "")).strip() not in _THROUGH_CACHE:
        return False
    direct, buffered = (str(options.get(name, "no")).strip().lower() for name in ("direct", "buffered"))
    # An option without a value is on.
    return direct in ("no", "0", "false") and buffered not in ("0", "false")


def target(options: Options) -> str:
    """File, device or directory of a job, as given; empty when the options do not name one."""
    for name in ("filename", "uri", "directory", "rbdname"):
        if options.get(name):
            return str(options[name]).replace(r"\:", ":")[:200]
    return ""


def _access(options: Options, flags: list[str]) -> tuple[Literal["random", "sequential"] | None, int | None]:
    """Pattern and share of writes in %."""
    access = str(options.get("rw", options.get("readwrite", "read"))).split(":")[0].strip().lower()
    if access not in ("read", "write", "rw", "readwrite", "randread", "randwrite", "randrw"):
        flags.append(f"rw = {access[:20]} is not a known pattern")
        return None, None
    pattern: Literal["random", "sequential"] = "random" if access.startswith("rand") else "sequential"
    kind = access.removeprefix("rand")
    if kind in ("read", "write"):
        return pattern, 100 if kind == "write" else 0
    written = options.get("rwmixwrite")
    read = options.get("rwmixread")
    share = whole({"x": read}, "x", 0, 100) if read is not None else None
    if share is not None:
        return pattern, 100 - share
    return pattern, 50 if written is None else whole({"x": written}, "x", 0, 100)


def _block(options: Options, flags: list[str]) -> int | None:
    """Block size; None, and told, where it varies or differs between reads and writes."""
    varied = [name for name in ("bssplit", "bsrange", "blocksize_range") if options.get(name)]
    text = str(options.get("bs", options.get("blocksize", "4096")))
    sizes = {size_bytes(part) for part in text.split(",") if part}
    if varied or len(sizes) != 1 or None in sizes:
        flags.append("the block size varies: bytes per I/O stand for it")
        return None
    return sizes.pop()


def _depth(options: Options, alone_pct: float, flags: list[str]) -> int:
    asked = whole(options, "iodepth", 1) or 1
    engine = str(options.get("ioengine", ""))
    waits = engine in SYNCHRONOUS or (not engine and alone_pct > 99.0)
    if asked > 1 and waits:
        flags.append(
            f"iodepth = {asked} has no effect with engine {engine or 'psync (the default)'}: depth 1"
        )
    return 1 if waits else asked


def _rate(
    options: Options, write_pct: int | None, threads: int, block: int | None, flags: list[str]
) -> float | None:
    """Total rate in IOPS: of each thread and direction "reads,writes", one value for both."""
    parts, paused = _limits(options, block), _paused(options)
    half = parts is not None and 0 in parts and write_pct not in (0, 100)
    if paused or half or (options.get("rate") and parts is None):
        flags.append("the rate was limited in a way that gives no IOPS")
    if parts is None or half or write_pct is None:
        return None
    reads, writes = parts
    return float(((reads if write_pct < 100 else 0) + (writes if write_pct > 0 else 0)) * threads) or None


def rates(options: Options, load: Load) -> dict[str, float]:
    """IOPS that each thread is held at, by direction; empty where no rate is held by constant gaps."""
    parts, written = _limits(options, load.block_size_bytes), load.write_pct
    if load.rate is None or parts is None or written is None or _paused(options):
        return {}
    done = {"read": written < 100, "write": written > 0}
    return {name: rate for (name, is_done), rate in zip(done.items(), parts, strict=True) if is_done}


def _limits(options: Options, block: int | None) -> tuple[float, float] | None:
    """IOPS of each thread that reads and writes are limited to."""
    parts = _pair(str(options.get("rate_iops", "")).replace("k", "000"))
    if parts is None and block and (in_bytes := _pair(str(options.get("rate", "")))):
        parts = (in_bytes[0] / block, in_bytes[1] / block)
    return parts


def _paused(options: Options) -> bool:
    """Whether I/Os do not follow each other by constant gaps."""
    names = ("rate_process", "thinktime", "thinktime_iops")
    return any(options.get(name, "0") not in ("", "0") for name in names)


def _pair(text: str) -> tuple[float, float] | None:
    """Values for reads and writes, of which one may stand for both."""
    if not text.strip():
        return None
    parts = [float(size_bytes(part) or 0) for part in text.split(",")][:2]
    return parts[0], parts[-1]


def _sync(options: Options, write_pct: int | None, flags: list[str]) -> Literal["fdatasync", "dsync"] | None:
    if not write_pct:
        return None
    if str(options.get("sync", "0")) not in ("0", "none"):
        return "dsync"
    every = [value for name in ("fsync", "fdatasync") if (value := whole(options, name))]
    if not every:
        return None
    if every == [1] and write_pct == 100:
        return "fdatasync"
    flags.append(f"it synced after every {every[0]} writes: not a commit of each write")
    return None
