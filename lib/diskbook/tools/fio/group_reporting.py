"""Jobs that fio's JSON sums up as one (group_reporting): it has name and options of one of them alone.

The option itself is often not repeated (fio 3.33 leaves out options without a value), so what was done is
held against what was asked for. Compute only, no I/O.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from diskbook.tools.record import Direction, Load

_STRAY = 0.01
"""Part of all I/Os that another direction must have."""
_OTHER_SIZE = 0.25
"""By how much bytes an I/O must differ from the block size; after a ramp they may by a tenth."""
_MORE = 1.3
_WHOLE = 0.1
_MOST_THREADS = 64
"""More are no sum of jobs but a latency of another unit."""
_NOT_TOLD = "other jobs were summed with it (group_reporting), and what each of them did is not told"


def check(options: Mapping[str, Any], load: Load, directions: Mapping[str, Direction]) -> None:
    """Refuse a sum of unlike jobs.

    Parameters
    ----------
    options
        Of the job that is named.
    load
        What they ask for.
    directions
        What was done.

    Raises
    ------
    ValueError
        When something else was done; says what.
    """
    if not options:
        return
    reads_back = _reads_back(options)
    parts = {name: part for name, part in directions.items() if name in ("read", "write")}
    total = sum(part.ios for part in parts.values())
    asked = {0: "read", 100: "write"}.get(-1 if load.write_pct is None else load.write_pct)
    for name, part in parts.items():
        of_a_check = reads_back and name == "read" and load.write_pct == 100
        if asked and name != asked and part.ios > _STRAY * total and not of_a_check:
            raise ValueError(
                f"its options ask for {asked}s and {part.ios:,} {name}s are counted: {_NOT_TOLD}"
            )
        size = part.bw_bytes * part.runtime_ms / 1000 / part.ios if part.ios else math.nan
        block = load.block_size_bytes
        if block and abs(size / block - 1) > _OTHER_SIZE and not _in_flight(load, size / block, part.ios):
            raise ValueError(f"{name}s of {block:,} bytes were asked for, {size:,.0f} done: {_NOT_TOLD}")


def _reads_back(options: Mapping[str, Any]) -> bool:
    """Whether fio reads back what it wrote: by the value of `verify`, which may be 0, none or empty."""
    kind, done = (
        str(options.get(name, other)).strip() for name, other in (("verify", "0"), ("do_verify", "1"))
    )
    return kind.lower() not in ("", "0", "none") and done != "0"


def _in_flight(load: Load, size: float, ios: float) -> bool:
    """Whether more bytes than I/Os are explained by those in flight at the end of a ramp.

    fio counts them among the bytes, not among the I/Os (see `record.Direction`); `size` is in blocks.
    """
    return 0 < (size - 1) * ios <= 1.05 * (load.threads or 1) * (load.queue_depth or 1)


def with_others(load: Load, directions: Mapping[str, Direction], flags: list[str]) -> Load:
    """Count the threads of jobs that are summed with the one that is named, where all are busy.

    By Little's law no more can be in flight than the threads make room for.
    """
    in_flight = sum(
        part.iops * part.lat_mean_ms / 1000 for name, part in directions.items() if name != "sync"
    )
    depth = load.queue_depth
    asked = (load.threads or 1) * (depth or 1)
    if depth is None or not in_flight > _MORE * asked:
        return load
    more = f"{in_flight:,.0f} I/Os were in flight (IOPS x latency) where its options make {asked:,}"
    threads = round(in_flight / depth)
    if abs(in_flight / depth / threads - 1) > _WHOLE or threads > _MOST_THREADS:
        flags.append(f"{more}: other jobs may be summed with it (group_reporting)")
        return load
    flags.append(f"{more}: {threads} threads are taken for summed as one (group_reporting)")
    return replace(load, threads=threads)


def lacking(entries: int, options: Mapping[str, Any], load: Load, directions: Mapping[str, Direction]) -> str:
    """Say that clones of a job are missing; empty where all are there, or nothing shows that one is not.

    Parameters
    ----------
    entries
        Entries of the file that are clones of this job.
    options, load, directions
        What they ask for, and what was done.
    """
    clones, depth = load.threads or 1, load.queue_depth
    if entries > 1:
        few = "group_reporting" not in options and entries < clones
        return f"some clones are missing: {entries} of {clones} are in the file" if few else ""
    if clones < _MORE or not depth or load.rate is not None:
        return ""
    in_flight = sum(
        part.iops * part.lat_mean_ms / 1000 for name, part in directions.items() if name != "sync"
    )
    if abs(in_flight / depth - 1) > _WHOLE:
        return ""
    return f"some clones are missing: as many I/Os were in flight as 1 of {clones} clones has"
