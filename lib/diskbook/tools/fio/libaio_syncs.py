"""Latency of a sync as fio's libaio engine reports it: the time of the write before is in it. Compute only.

The engine calls fdatasync itself and does not note when (`fio_libaio_queue` in fio's engines/libaio.c), so a
sync counts from the write that used the same I/O unit before: at depth 1 from the submission of the write it
makes durable. Seen with fio 3.33 on a disk with planted delays of 7 ms for a write and 11 ms for a flush:
19.99 ms for a sync by libaio, 11.48 ms by io_uring.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from diskbook.facts.units import NS_PER_MS
from diskbook.tools.fio import latency
from diskbook.tools.record import Direction, Load, pooled

ENGINE = "libaio"
FLAG = (
    "fio's libaio engine counts the time of a write into the sync after it: the mean is without it, and "
    "percentiles of syncs are left out"
)


def taken_alone(
    directions: Mapping[str, Direction],
    writes: Sequence[Mapping[str, Any]],
    load: Load,
    engine: str,
    flags: list[str],
) -> dict[str, Direction]:
    """Return the directions of a job with the writes' time taken out of its syncs, where it is in them.

    A release that times its syncs well needs no list: at depth 1 writes and syncs follow each other, so they
    cannot have taken longer than the job did (Little's law), and where they seem to, writes count twice.
    Where a write completes in less than fio itself needs between two commits (some 15 us) it cannot be told.

    Parameters
    ----------
    directions
        Of the job, all its threads together.
    writes
        What fio's JSON has of the writes of each of its entries.
    load
        What was asked for.
    engine
        fio's ioengine.
    flags
        Gets a sentence where syncs are changed.
    """
    write, sync = directions.get("write"), directions.get("sync")
    if engine != ENGINE or load.queue_depth != 1 or write is None or sync is None:
        return dict(directions)
    completion_ms = _completion_ms(writes)
    apart_ms = write.ios * write.lat_mean_ms + sync.ios * sync.lat_mean_ms
    # One commit of each thread may have begun before what was measured.
    had_ms = (load.threads or 1) * (write.runtime_ms + write.lat_mean_ms + sync.lat_mean_ms)
    if not (apart_ms > had_ms and completion_ms < sync.lat_mean_ms):
        return dict(directions)
    flags.append(FLAG)
    lat_mean_ms = sync.lat_mean_ms - completion_ms
    alone = Direction(sync.ios, sync.iops, sync.bw_bytes, sync.runtime_ms, lat_mean_ms)
    return {**directions, "sync": alone}


def _completion_ms(writes: Sequence[Mapping[str, Any]]) -> float:
    """Mean time of a write from its submission on, which a sync's holds too; NaN where none was recorded."""
    parts = [
        (samples, mean) for samples, mean in (latency.mean_ns(part, "clat") for part in writes) if samples
    ]
    mean_ns, _ = pooled([mean for _, mean in parts], [0.0] * len(parts), [samples for samples, _ in parts])
    return mean_ns / NS_PER_MS
