"""Files that the emulated disks and Python share: the caps in force, what a disk plays, what it did.

The structs mirror those marked SHARED in played.h; their magic words carry the version. Numbers are
written one 8-byte word at a time, so a disk at work sees the old or the new value, never half of one.
"""

import ctypes
import math
import mmap
import os
import time
from pathlib import Path
from typing import Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from diskbook.facts.errors import DiskbookError, UsageError
from diskbook.facts.files import replacing
from diskbook.facts.units import MB, NS_PER_MS, NS_PER_S, NS_PER_US
from diskbook_emulator.types import ExportModel, Latency, Limits, Session

LIMITS_MAGIC = int.from_bytes(b"DSKLIM02", "little")
MODEL_MAGIC = int.from_bytes(b"DSKMOD03", "little")
MAX_SECONDS = 16384
MAX_TRIALS = 4096
MAX_SESSIONS = 4096
ACTIVITY_SECONDS = 16384  # four and a half hours
MAX_SERVERS = 1024

# Time that may be made up for when a client was late: long enough for the stalls of a busy machine, short
# enough to move the mean of a trial of 3 s by no more than 0.3 %.
CATCH_UP_NS = 10_000_000
# What fio, libnbd and the socket add to a latency at queue depth 1, besides late wake-ups (measured).
OVERHEAD_US = 12.0


class _Bucket(ctypes.Structure):
    _fields_ = [
        ("tat", ctypes.c_int64),
        ("tolerance_ns", ctypes.c_int64),
        ("ns_per_unit", ctypes.c_double),
        ("catch_up_ns", ctypes.c_int64),
        ("reserved", ctypes.c_int64 * 4),
    ]


class _Limits(ctypes.Structure):
    _fields_ = [
        ("magic", ctypes.c_uint64),
        ("reserved", ctypes.c_int64 * 7),
        ("iops_base", _Bucket),
        ("iops_peak", _Bucket),
        ("bytes_base", _Bucket),
        ("bytes_peak", _Bucket),
    ]


class SharedLatency(ctypes.Structure):
    """A latency as the disks read it."""

    _fields_ = [
        ("mean_ns", ctypes.c_double),
        ("sigma", ctypes.c_double),
        ("offset_ns", ctypes.c_double),
        ("parallelism", ctypes.c_int64),
    ]


class _Session(ctypes.Structure):
    _fields_ = [
        ("index", ctypes.c_int64),
        ("started", ctypes.c_int64),
        ("ended", ctypes.c_int64),
        ("trial_log", ctypes.c_double),
        ("count", ctypes.c_int64 * 3),
        ("sum_ns", ctypes.c_int64 * 3),
    ]


class _Activity(ctypes.Structure):
    _fields_ = [("second", ctypes.c_int64), ("count", ctypes.c_int64 * 4)]


class _Model(ctypes.Structure):
    _fields_ = [
        ("magic", ctypes.c_uint64),
        ("read", SharedLatency),
        ("write", SharedLatency),
        ("flush", SharedLatency),
        ("hit", SharedLatency),
        ("cache_bytes", ctypes.c_int64),
        ("cache_writes", ctypes.c_int64),
        ("log_factor", ctypes.c_double),
        ("epoch_ns", ctypes.c_int64),
        ("overhead_ns", ctypes.c_int64),
        ("seconds", ctypes.c_int64),
        ("trials", ctypes.c_int64),
        ("sessions", ctypes.c_int64),
        ("fresh_until_ns", ctypes.c_int64),
        ("fresh_log", ctypes.c_double),
        ("reserved", ctypes.c_int64 * 4),
        ("second_log", ctypes.c_double * MAX_SECONDS),
        ("trial_log", ctypes.c_double * MAX_TRIALS),
        ("session", _Session * MAX_SESSIONS),
        ("activity", _Activity * ACTIVITY_SECONDS),
    ]


_Struct = TypeVar("_Struct", _Limits, _Model)


def _create(path: Path, struct: type[_Struct]) -> None:
    """Make a file of zeros; under its name only when it is whole, so that nobody maps half of one."""
    with replacing(path) as part, part.open("wb") as file:
        file.truncate(ctypes.sizeof(struct))


def _map(path: Path, struct: type[_Struct]) -> _Struct:
    with path.open("r+b") as file:
        if os.fstat(file.fileno()).st_size < ctypes.sizeof(struct):
            raise DiskbookError(
                f"{path} is too short for the emulator's shared numbers; delete it and start again."
            )
        return struct.from_buffer(mmap.mmap(file.fileno(), ctypes.sizeof(struct)))


def _check_magic(path: Path, magic: int, expected: int) -> None:
    if magic != expected:
        raise DiskbookError(f"{path} was made by another version of the emulator; delete it and start again.")


class LimitsFile:
    """The caps of a disk, or of one path of a VM, shared by all the exports that they bind.

    - `path`: a file made by `create`, or by another process.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._limits = _map(path, _Limits)
        _check_magic(path, self._limits.magic, LIMITS_MAGIC)

    @classmethod
    def create(cls, path: Path, limits: Limits) -> Self:
        """Make the file, replacing one that is there, with full credit."""
        _create(path, _Limits)
        fresh = _map(path, _Limits)
        fresh.magic = LIMITS_MAGIC
        new = cls(path)
        new.update(limits)
        return new

    def update(self, limits: Limits) -> None:
        """Put other caps in force at once. Credit that was used up stays used up."""
        shared = self._limits
        _set_pair(shared.iops_base, shared.iops_peak, limits.iops, limits.burst_iops, limits.credit_ios, 1.0)
        _set_pair(shared.bytes_base, shared.bytes_peak, limits.mb_s, limits.burst_mb_s, limits.credit_mb, MB)

    def credit_ios(self) -> float:
        """I/Os of burst credit left; 0 where there is no burst."""
        return _credit(self._limits.iops_base, self._limits.iops_peak)

    def credit_mb(self) -> float:
        """MB of burst credit left; 0 where there is no burst."""
        return _credit(self._limits.bytes_base, self._limits.bytes_peak) / MB


def _set_pair(
    base: _Bucket, peak: _Bucket, rate: float | None, burst: float | None, credit: float, unit: float
) -> None:
    """Set the buckets of one quantity: `rate` and `burst` in units a second, `unit` bytes (or I/Os) each."""
    bursts = rate is not None and burst is not None and burst > rate and credit > 0
    _set(base, rate, credit if bursts else 0.0, unit)
    _set(peak, burst if bursts else None, 0.0, unit)


def _set(bucket: _Bucket, rate: float | None, credit: float, unit: float) -> None:
    if rate is not None and not rate > 0:
        raise ValueError(f"a cap must be above 0, not {rate}")
    now = time.monotonic_ns()
    used = max(0, bucket.tat - now) / bucket.ns_per_unit if bucket.ns_per_unit else 0.0
    ns_per_unit = NS_PER_S / (rate * unit) if rate is not None else 0.0
    bucket.catch_up_ns = CATCH_UP_NS
    bucket.tolerance_ns = CATCH_UP_NS + round(credit * unit * ns_per_unit)
    bucket.tat = now + round(used * ns_per_unit)
    bucket.ns_per_unit = ns_per_unit


def _credit(base: _Bucket, peak: _Bucket) -> float:
    if not (base.ns_per_unit and peak.ns_per_unit):
        return 0.0
    ahead = max(0, base.tat - time.monotonic_ns())
    left = base.tolerance_ns - CATCH_UP_NS - ahead
    return max(0.0, left) / base.ns_per_unit


class ModelFile:
    """What one attached disk plays, and the sessions it has played.

    - `path`: the file; made when there is none. One that exists keeps its sessions.
    - `epoch_s`: `time.monotonic()` of second 0 of `second_log`.
    """

    def __init__(self, path: Path, epoch_s: float) -> None:
        if not path.exists():
            _create(path, _Model)
        self._model = _map(path, _Model)
        self._model.magic = self._model.magic or MODEL_MAGIC
        _check_magic(path, self._model.magic, MODEL_MAGIC)
        self._model.epoch_ns = round(epoch_s * NS_PER_S)
        self._model.overhead_ns = round(OVERHEAD_US * NS_PER_US)

    def update(self, model: ExportModel) -> None:
        """Play other numbers from now on (a host cache's size only from the next start on)."""
        shared = self._model
        for target, latency in (
            (shared.read, model.read),
            (shared.write, model.write),
            (shared.flush, model.flush),
            (shared.hit, model.cache.hit if model.cache else Latency(0.0)),
        ):
            set_latency(target, latency)
        shared.cache_bytes = model.cache.size_bytes if model.cache else 0
        shared.cache_writes = int(model.cache is not None and model.cache.writes)
        shared.log_factor = model.log_factor
        shared.fresh_until_ns, shared.fresh_log = round(model.fresh_until_s * NS_PER_S), model.fresh_log
        shared.seconds = _fill(shared.second_log, model.second_log, "second_log")
        shared.trials = _fill(shared.trial_log, model.trial_log, "trial_log")

    def sessions(self) -> list[Session]:
        """Read the sessions, the oldest first; of more than `MAX_SESSIONS` the newest."""
        total = self._model.sessions
        first = max(0, total - MAX_SESSIONS)
        return [_session(self._model.session[i % MAX_SESSIONS]) for i in range(first, total)]

    def activity(self) -> NDArray[np.int64]:
        """Read what ended second by second, the oldest first; of more than `ACTIVITY_SECONDS` the newest.

        Returns second since the Unix epoch; I/Os and bytes of the disk; I/Os and bytes that its host cache
        answered. Seconds without any are left out.
        """
        rows = np.frombuffer(self._model.activity, dtype=np.int64).reshape(-1, 5)
        rows = rows[rows[:, 0] > 0]  # a copy: the disk may be at work
        return rows[rows[:, 0].argsort()]

    def end_session(self) -> None:
        """End a session that its process left open when it was killed."""
        total = self._model.sessions
        last = self._model.session[(total - 1) % MAX_SESSIONS]
        if total and not last.ended:
            last.ended = time.time_ns()


def set_latency(target: SharedLatency, latency: Latency) -> None:
    """Put a latency into its struct; ValueError for one that cannot be played."""
    if latency.mean_ms < 0 or latency.sigma < 0 or not 0 <= latency.parallelism <= MAX_SERVERS:
        raise ValueError(f"not a latency that can be played: {latency}")
    target.mean_ns = latency.mean_ms * NS_PER_MS
    target.sigma = latency.sigma
    target.offset_ns = latency.offset_ms * NS_PER_MS
    target.parallelism = latency.parallelism


def _fill(table: ctypes.Array[ctypes.c_double], values: tuple[float, ...], name: str) -> int:
    if not 0 < len(values) <= len(table):
        raise UsageError(f"{name} has {len(values)} values; it must have 1 to {len(table)}.")
    table[: len(values)] = list(values)
    return len(values)


def _session(shared: _Session) -> Session:
    means = [
        total / count / NS_PER_MS if count else math.nan
        for count, total in zip(shared.count, shared.sum_ns, strict=True)
    ]
    return Session(
        index=shared.index,
        started=shared.started / NS_PER_S,
        ended=shared.ended / NS_PER_S if shared.ended else None,
        trial_log=shared.trial_log,
        reads=shared.count[0],
        writes=shared.count[1],
        flushes=shared.count[2],
        read_mean_ms=means[0],
        write_mean_ms=means[1],
        flush_mean_ms=means[2],
    )
