"""From what a file tells of a load to a workload of a scenario: what is missing is filled in, and said."""

import math
from collections.abc import Mapping
from typing import Any

from diskbook.facts.units import GIB, KIB, MIB
from diskbook.tools import record
from diskbook.tools.record import Direction, Load, Measurement

_SECTOR = 512
_MOST_BLOCK = 64 * MIB
_MOST_THREADS, _MOST_DEPTH = 64, 1024
_DAY_S = 86400.0


def workload(measurement: Measurement, tool: str) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Describe the load of a measurement as a workload of a scenario, without a name.

    Returns the workload's keys, and flags that say what had to be assumed.
    Raises ValueError when the load cannot be expressed in a scenario's terms; says why.
    """
    load, flags = measurement.load, list[str]()
    threads, depth = _concurrency(load, flags)
    if load.pattern is None:
        flags.append("the pattern is not told; random is assumed")
    keys = {
        "tool": tool,
        "pattern": load.pattern or "random",
        "block_size": _block(measurement, flags),
        "write_pct": _write_pct(measurement),
        "threads": threads,
        "queue_depth": depth,
        "instances": load.instances,
        "rate": load.rate if load.rate and load.rate <= 1e7 else None,
        "sync": load.sync,
        "working_set_gib": min(max((load.size_bytes or GIB) / GIB, 1e-6), 65536.0),
        "ramp_s": min(load.ramp_s or 0.0, _DAY_S),
        "runtime_s": _runtime_s(measurement),
    }
    return {key: value for key, value in keys.items() if value is not None}, tuple(flags)


def asked(measurement: Measurement) -> dict[str, float | None]:
    """What a file tells of what was asked for, and of bytes done an I/O; None where it does not."""
    load = measurement.load
    size = _bytes_counted(list(measurement.directions.values()))
    about = any(remark.startswith(record.ABOUT_DEPTH) for remark in measurement.flags)
    unknown = load.queue_depth is None or load.threads is None or about
    each = None if unknown else (load.threads or 1) * (load.queue_depth or 1)
    return {
        "outstanding": None if each is None else each * (load.instances or 1),
        "block_size": load.block_size_bytes,
        "write_pct": load.write_pct,
        "runtime_s": load.runtime_s,
        "bytes_an_io": size if math.isfinite(size) else None,
    }


def name_of(keys: Mapping[str, Any], load: Load, *, cached: bool = False) -> str:
    """Name a workload by what it does, e.g. "randwrite-8k-t8-qd5"; `cached` is one through a file cache."""
    start = "rand" if keys["pattern"] == "random" else ""
    mix = {0: "read", 100: "write"}.get(keys["write_pct"], f"rw{keys['write_pct']}")
    size = keys["block_size"]
    units = ((MIB, "m"), (KIB, "k"), (1, "b"))
    block = next(f"{size // unit}{name}" for unit, name in units if size % unit == 0)
    parts = [start + mix, block]
    if keys.get("instances", 1) > 1:
        parts.append(f"vms{keys['instances']}")
    if keys["threads"] > 1:
        parts.append(f"t{keys['threads']}")
    parts.append(f"qd{keys['queue_depth']}" if load.queue_depth else "qd-unknown")
    if keys.get("rate"):
        parts.append(f"r{keys['rate']:.0f}")
    if keys.get("sync"):
        parts.append(keys["sync"])
    if cached:
        parts.append("cached")
    return "-".join(parts)


def target_size(keys: Mapping[str, Any]) -> str:
    """Name the size of a target, e.g. "100g", "512m"."""
    gib = float(keys["working_set_gib"])
    return f"{gib:.4g}g".replace(".", "-") if gib >= 1 else f"{max(round(gib * 1024), 1)}m"


def _concurrency(load: Load, flags: list[str]) -> tuple[int, int]:
    """Threads and depth within a scenario's bounds, with the same product."""
    if load.queue_depth is None:
        flags.append("the queue depth is not told; 1 is assumed")
    threads, depth = load.threads or 1, load.queue_depth or 1
    if threads <= _MOST_THREADS and depth <= _MOST_DEPTH:
        return threads, depth
    total = threads * depth
    for fewer in range(min(_MOST_THREADS, total), 0, -1):
        if total % fewer == 0 and total // fewer <= _MOST_DEPTH:
            flags.append(f"{threads} threads x depth {depth} are given as {fewer} x {total // fewer}")
            return fewer, total // fewer
    raise ValueError(f"{total:,} outstanding I/Os are more than a scenario can tell")


def _block(measurement: Measurement, flags: list[str]) -> int:
    block_size = measurement.load.block_size_bytes
    size = float(block_size) if block_size else _bytes_per_io(list(measurement.directions.values()))
    if not size > 0:
        raise ValueError("the block size cannot be determined")
    if block_size is None:
        flags.append(f"block size from bytes per I/O ({size:,.0f})")
    whole = max(_SECTOR, round(size / _SECTOR) * _SECTOR)
    if whole > _MOST_BLOCK:
        raise ValueError(f"blocks of {size:,.0f} bytes are more than a scenario can tell")
    if abs(whole - size) >= 1 and block_size is not None:
        flags.append(f"a block size of {size:,.0f} is not a multiple of {_SECTOR}; {whole} stands for it")
    return whole


def _bytes_per_io(parts: list[Direction]) -> float:
    known = [part for part in parts if part.iops > 0 and part.bw_bytes > 0]
    total = sum(part.iops for part in known)
    return sum(part.bw_bytes for part in known) / total if total else math.nan


def _bytes_counted(parts: list[Direction]) -> float:
    """Bytes an I/O by the tool's own counts; by its rates where it counts none."""
    counted = [part for part in parts if part.bw_bytes > 0 and part.ios > 0 and part.runtime_ms > 0]
    if not counted:
        return _bytes_per_io(parts)
    total = sum(part.bw_bytes * part.runtime_ms / 1000 for part in counted)
    return total / sum(part.ios for part in counted)


def _write_pct(measurement: Measurement) -> int:
    """Share of writes asked for, or done where that is not told."""
    done = measurement.directions
    if measurement.load.write_pct is not None:
        return measurement.load.write_pct
    written = done["write"].iops if "write" in done else 0.0
    read = done["read"].iops if "read" in done else 0.0
    if not written + read > 0:
        raise ValueError("no IOPS are told")
    return likely_mix(100 * written / (written + read))


def likely_mix(done_pct: float) -> int:
    """Share of writes in % that was probably asked for: 50 where 47 % were done, 25 where 24 % were."""
    for step, near in ((10, 3.0), (5, 1.5)):
        nearest = step * round(done_pct / step)
        if abs(done_pct - nearest) <= near and 0 < nearest < 100:
            return nearest
    return round(done_pct)


def _runtime_s(measurement: Measurement) -> float:
    done = max((part.runtime_ms / 1000 for part in measurement.directions.values()), default=math.nan)
    asked_s = measurement.load.runtime_s or done
    return min(max(asked_s, 0.001), _DAY_S) if asked_s > 0 else 1.0
