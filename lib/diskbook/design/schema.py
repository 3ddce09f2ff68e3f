"""The tables of a run: their columns, and the check that a table is what it should be. No I/O here."""

import functools
import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import pandas as pd

from diskbook.design.held_rate import Start
from diskbook.design.vocabulary import CreditState, GateStatus, Provenance, Scope
from diskbook.facts.errors import DiskbookError

pd.options.mode.string_storage = "python"  # Arrow's arrays are slow where tables are small and many

Dtype = Literal["str", "int64", "float64", "datetime64[us, UTC]"]
_WORDS = {
    "str": "text",
    "int64": "a whole number",
    "float64": "a number",
    "datetime64[us, UTC]": "a time in UTC",
}


@dataclass(frozen=True)
class Column:
    """One column: its type, whether it may be empty, its unit, and the values or the least value allowed.

    `default` fills it where a table was written before the column came to be.
    """

    name: str
    dtype: Dtype = "float64"
    nullable: bool = False
    unit: str = ""
    values: tuple[str, ...] = ()
    least: float | None = None
    default: str | float | None = None


@dataclass(frozen=True)
class Table:
    """A table's columns, in order, and those that together name a row."""

    name: str
    columns: tuple[Column, ...]
    key: tuple[str, ...]
    remedy: str

    @property
    def names(self) -> list[str]:
        """Names of its columns, in order."""
        return [column.name for column in self.columns]


def _text(*names: str, nullable: bool = False, values: tuple[str, ...] = ()) -> list[Column]:
    return [Column(name, "str", nullable, "", values) for name in names]


def _whole(*names: str, unit: str = "", least: float = 0) -> list[Column]:
    return [Column(name, "int64", False, unit, (), least) for name in names]


def _number(*names: str, unit: str = "", nullable: bool = True, least: float | None = 0.0) -> list[Column]:
    return [Column(name, "float64", nullable, unit, (), least) for name in names]


def _since(*columns: Column) -> list[Column]:
    """Columns that tables of older runs lack: their texts are empty there, their numbers missing."""
    return [replace(column, default="" if column.dtype == "str" else math.nan) for column in columns]


EARLY = "early"
"""Status of a trial right after an attach (`Trial.early`)."""
STATUSES = ("ok", "failed", "incomplete_block", EARLY)
LAT_BOUNDS = ("", "lower")
"""Of a held rate: "lower" where percentiles count from when an I/O was sent, not from when it was due."""
DURABILITIES = ("", "flushed", "written-through", "plain", "unknown")
"""Of a workload with `sync`: what made its writes durable; "plain" where nothing reached the device."""
DIRECTIONS = ("read", "write", "sync", "commit")
_REBUILD = "rebuild the tables from the raw results"
_ANALYSE = "run the analysis again"

TRIALS = Table(
    "trials",
    (
        *_text("run", "scenario"),
        *_text("provenance", values=tuple(Provenance)),
        *_text("site"),
        *_whole("replicate", "block", "repeat", "position", least=1),
        *_text("trial", "arm", "workload", "tool"),
        *_text("tool_version", nullable=True),
        *_text("direction", values=(*DIRECTIONS, "none")),
        *_text("machine_id", "disk_id", "vm_size"),
        *_since(*_text("volume", "owner")),
        *_text("lun", nullable=True),
        *_text("logical_zone", "physical_zone", nullable=True),
        *_whole("attempt", least=1),
        *_text("status", values=STATUSES),
        *_text("error", nullable=True),
        Column("started_utc", "datetime64[us, UTC]"),
        *_number("ramp_s", unit="s", nullable=False),
        *_number("runtime_s", unit="s"),
        *_whole("outstanding", unit="I/Os", least=1),
        *_whole("block_size_bytes", unit="bytes", least=1),
        *_number("ios", unit="I/Os"),
        *_number("iops", unit="1/s"),
        *_number("throughput_mb_s", unit="10^6 bytes/s"),
        *_number("lat_mean_ms", "lat_p50_ms", "lat_p99_ms", "lat_p999_ms", unit="ms"),
        *_since(
            *_number("lat_mean_intended_ms", "lat_p50_intended_ms", unit="ms"),
            *_number("lat_p99_intended_ms", "lat_p999_intended_ms", unit="ms"),
            *_number("lat_mean_least_ms", "lat_p99_least_ms", unit="ms"),
            *_number("lat_p99_rise"),
            *_text("lat_bound", values=LAT_BOUNDS),
        ),
        *_number("rate_offered", unit="1/s"),
        *_since(
            *_number("rate_window_worst", "rate_windows_low_share"),
            *_number("since_attach_s", "since_create_s", unit="s"),
            *_number("attaches_in_block"),
            *_text("durability", values=DURABILITIES),
        ),
        *_number("cap_disk_iops", unit="1/s"),
        *_number("cap_disk_mb_s", unit="10^6 bytes/s"),
        *_number("cap_disk_burst_iops", unit="1/s"),
        *_number("cap_disk_burst_mb_s", unit="10^6 bytes/s"),
        *_number("cap_vm_iops", unit="1/s"),
        *_number("cap_vm_mb_s", unit="10^6 bytes/s"),
        *_number("cap_vm_burst_iops", unit="1/s"),
        *_number("cap_vm_burst_mb_s", unit="10^6 bytes/s"),
        *_number("cap_vm_cached_iops", unit="1/s"),
        *_number("cap_vm_cached_mb_s", unit="10^6 bytes/s"),
        *_text("credit_state", values=tuple(CreditState)),
        *_number("credit_left_share"),
        *_text("raw_path", "raw_sha256", nullable=True),
    ),
    key=("run", "trial", "direction"),
    remedy=_REBUILD,
)

EVIDENCE = replace(TRIALS, name="evidence")
"""Trials made for metrics of the platform alone (`Design.evidence_s`), with the columns of `TRIALS`.

A table of their own, so that nothing compares, draws or counts them by mistake."""

BINS = Table(
    "bins",
    (
        *_text("trial"),
        *_text("direction", values=DIRECTIONS),
        *_whole("lat_ns", unit="ns"),
        *_whole("count", unit="I/Os", least=1),
    ),
    key=("trial", "direction", "lat_ns"),
    remedy=_REBUILD,
)

SERIES = Table(
    "series",
    (
        *_text("trial"),
        *_text("direction", values=DIRECTIONS),
        *_number("second", unit="s", nullable=False),
        *_number("iops", unit="1/s", nullable=False),
        *_number("lat_mean_ms", unit="ms"),
    ),
    key=("trial", "direction", "second"),
    remedy=_REBUILD,
)

METRICS = Table(
    "metrics",
    (
        *_text("machine_id"),
        *_text("lun", nullable=True),
        *_text("metric"),
        Column("minute_utc", "datetime64[us, UTC]"),
        *_whole("grain_s", unit="s", least=1),
        *_number("average", "maximum", unit="%"),
        *_text("provenance", values=tuple(Provenance)),
    ),
    key=("machine_id", "lun", "metric", "minute_utc"),
    remedy=_REBUILD,
)

COUNTERS = Table(
    "counters",
    (
        *_text("run", "trial", "machine", "counter", "instance"),
        *_number("before", "after"),
    ),
    key=("run", "trial", "machine", "counter", "instance"),
    remedy=_REBUILD,
)

FLEET = Table(
    "fleet",
    (
        *_text("run", "trial", "vm", "volume", "node"),
        *_text("direction", values=("read", "write")),
        *_number("started_s", unit="s"),
        *_number("runtime_s", unit="s"),
        *_number("ios", unit="I/Os"),
        *_number("iops", unit="1/s"),
        *_number("throughput_mb_s", unit="10^6 bytes/s"),
        *_number("lat_mean_ms", "lat_p50_ms", "lat_p99_ms", unit="ms"),
    ),
    key=("run", "trial", "vm", "direction"),
    remedy=_REBUILD,
)
"""What each machine of a fleet did in a trial: `started_s` after the first of them began to measure. The
trial is the unit of all ratios; its machines share everything, and are no replicates."""

LOSSES = Table(
    "losses",
    (
        *_text("run"),
        *_whole("replicate", least=1),
        *_text("loss", "volume", "kind", "lost"),
        Column("started_utc", "datetime64[us, UTC]"),
        *_text("online", nullable=True, values=("yes", "no")),
        *_text("expected_online", values=("yes", "no")),
        *_whole("blocks_written", "blocks_verified", unit="blocks"),
        *_number("noticed_s", "resync_s", unit="s"),
        *_number("resync_bytes", unit="bytes"),
        *_number("iops_before", "iops_during", "iops_resync", unit="1/s"),
        *_text("error", nullable=True),
    ),
    key=("run", "replicate", "loss", "volume"),
    remedy=_REBUILD,
)
"""What volumes outlive: members taken away under a load that is verified, and what came back, and when.

A loss that failed has its sentence in `error`, and nothing in `online`."""

GUEST = Table(
    "guest",
    (
        *_text("run", "trial", "machine"),
        *_text("kernel", "image", "cpu_model", "driver", nullable=True),
        *_text("ioengine", "scheduler", "write_cache", "power_plan", nullable=True),
        *_number("fua", "rotational"),
        *_number("nr_requests", "hardware_queues"),
        *_number("wbt_lat_usec", unit="us"),
        *_number("logical_block_size_bytes", unit="bytes"),
        *_number("usr_pct", "sys_pct", "steal_pct", "busiest_core_pct", unit="%"),
    ),
    key=("run", "trial"),
    remedy=_REBUILD,
)
"""What of a machine can decide a trial, read before it and over it; a fact that nobody can tell is empty.

`usr_pct` and `sys_pct` are the tool's own; `steal_pct` and `busiest_core_pct` are the machine's, over the
trial."""

COMPARISONS = Table(
    "comparisons",
    (
        *_text("arm", "base_arm", "workload"),
        *_text("direction", values=DIRECTIONS),
        *_text("metric"),
        *_text("scope", values=tuple(Scope)),
        *_number("ratio", "ci_low", "ci_high"),
        *_number("level"),
        *_text("method", "pairing"),
        *_whole("n_replicates", "n_blocks"),
        *_text("family", values=("headline", "control", "exploratory")),
        *_number("p_adjusted"),
        *_text("verdict"),
        *_text("warnings", nullable=True),
        *_text("provenance", values=tuple(Provenance)),
        *_number("diff_ms", "diff_low_ms", "diff_high_ms", unit="ms", least=None),
        *_text("nearest_zone"),
        *_since(*_text("lat_start", values=("", *Start)), *_number("df")),
    ),
    key=("arm", "base_arm", "workload", "direction", "metric", "scope"),
    remedy=_ANALYSE,
)

GATES = Table(
    "gates",
    (
        *_text("arm", "base_arm", "workload", "metric", "gate"),
        *_text("status", values=tuple(GateStatus)),
        *_text("cause", "remedy"),
    ),
    key=("arm", "base_arm", "workload", "metric", "gate", "cause"),
    remedy=_ANALYSE,
)

STRATA = Table(
    "strata",
    (
        *_text("arm", "base_arm", "workload"),
        *_text("direction", values=DIRECTIONS),
        *_text("metric", "stratum"),
        *_whole("n_replicates", "n_blocks"),
        *_number("ratio", "ci_low", "ci_high"),
        *_text("reason"),
    ),
    key=("arm", "base_arm", "workload", "direction", "metric", "stratum"),
    remedy=_ANALYSE,
)

PROTOCOL = Table(
    "protocol",
    (
        *_text("arm", "base_arm", "workload", "metric", "family"),
        *_text("provenance", values=tuple(Provenance)),
        *_whole("protocol", "number", least=1),
        *_text("point"),
        *_text("status", values=("met", "missing", "does not apply")),
        *_text("why", "remedy"),
    ),
    key=("arm", "base_arm", "workload", "metric", "number"),
    remedy=_ANALYSE,
)
"""What each comparison meets of the protocol (docs/reference/protocol.md), a row a point."""


def validate(table: Table, frame: pd.DataFrame, source: str = "") -> pd.DataFrame:
    """Check a table, and return it with the columns in order and of their types.

    - `table`: what it should be.
    - `frame`: what it is; not changed.
    - `source`: file it came from, for messages.

    Raises DiskbookError: names table, column, row (from 0) and remedy.
    """
    where = f"{source}: table {table.name}" if source else f"table {table.name}"
    since = {column.name: column.default for column in table.columns if column.default is not None}
    frame = frame.assign(**{name: value for name, value in since.items() if name not in frame.columns})
    _check_names(table, frame, where)
    if frame.empty:
        return empty(table)
    checked = pd.DataFrame(
        {column.name: _conform(table, column, frame[column.name], where) for column in table.columns}
    )
    twice = checked.duplicated(list(table.key))
    if twice.any():
        row = int(np.flatnonzero(twice)[0])
        what = ", ".join(f"{name} {checked[name].iloc[row]}" for name in table.key)
        raise DiskbookError(f"{where}, row {row}: {what} is there twice; {table.remedy}")
    return checked


def empty(table: Table) -> pd.DataFrame:
    """Return the table without rows."""
    return _without_rows(table).copy()


@functools.cache
def _without_rows(table: Table) -> pd.DataFrame:
    return pd.DataFrame({column.name: pd.Series(dtype=column.dtype) for column in table.columns})


def from_rows(table: Table, rows: Iterable[dict[str, Any]]) -> pd.DataFrame:
    """Make a checked table of records; what a record lacks has the column's default."""
    defaults = {column.name: column.default for column in table.columns if column.default is not None}
    listed = [{**defaults, **row} for row in rows]
    return validate(table, pd.DataFrame(listed, columns=table.names)) if listed else empty(table)


def _check_names(table: Table, frame: pd.DataFrame, where: str) -> None:
    for name in table.names:
        if name not in frame.columns:
            raise DiskbookError(f"{where}: column '{name}' is missing; {table.remedy}")
    for name in frame.columns:
        if name not in table.names:
            raise DiskbookError(f"{where}: there is a column '{name}' that does not belong; {table.remedy}")


def _conform(table: Table, column: Column, values: pd.Series, where: str) -> pd.Series:
    if values.dtype == "float64" == column.dtype and _allowed(column, values.to_numpy()):
        return values.reset_index(drop=True)
    values = values.reset_index(drop=True)

    def refuse(bad: pd.Series, why: str) -> None:
        if bad.any():
            row = int(np.flatnonzero(bad)[0])
            value = values.iloc[row]
            shown = repr(value.item() if isinstance(value, np.generic) else value)
            raise DiskbookError(f"{where}, column '{column.name}', row {row}: {shown} {why}; {table.remedy}")

    missing = values.isna()
    if not column.nullable:
        refuse(missing, "is empty, but a value is needed")
    converted = values
    if values.dtype != column.dtype:
        converted = _convert(column.dtype, values, missing)
        refuse(converted.isna() & ~missing, f"is not {_WORDS[column.dtype]}")
    if column.values:
        refuse(~converted.isin(column.values) & ~missing, f"is none of {', '.join(column.values)}")
    if column.dtype == "float64":
        refuse(pd.Series(np.isinf(converted)), "is not a finite number")
    if column.least is not None:
        refuse(converted < column.least, f"is less than {column.least:g}")
    return converted if converted.dtype == column.dtype else converted.astype(column.dtype)


def _allowed(column: Column, numbers: np.ndarray) -> bool:
    """Whether a column may hold all these numbers: one look, since nearly always it may."""
    least = -math.inf if column.least is None else column.least
    right = np.isfinite(numbers) & (numbers >= least)
    return bool((right | np.isnan(numbers) if column.nullable else right).all())


def _convert(dtype: Dtype, values: pd.Series, missing: pd.Series) -> pd.Series:
    """Values of that type; missing where they are not."""
    if dtype == "str":
        return values if missing.all() else values.where(values.map(lambda value: isinstance(value, str)))
    if dtype.startswith("datetime"):
        return _times(values)
    numbers = pd.to_numeric(values, errors="coerce").astype("float64")
    return numbers.where(numbers % 1 == 0) if dtype == "int64" else numbers


def _times(values: pd.Series) -> pd.Series:
    if isinstance(values.dtype, pd.DatetimeTZDtype):
        in_utc: pd.Series = values.dt.tz_convert("UTC")
        return in_utc
    return pd.to_datetime(values, errors="coerce", utc=True, format="ISO8601")
