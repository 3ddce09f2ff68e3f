"""Trials as wholes: reads and writes added, and whether their numbers agree with each other (Little's law).

Limits and Little's law hold for both directions of a trial together. Computed once and handed on, since
labels, gates and checks all start from it. Pure: tables in, tables out.

Linux drops flushes, and the FUA bit of a write, on their way to a device whose queue reports no volatile
cache: `write_cache` is then "write through" (Documentation/block/writeback_cache_control.rst,
Documentation/ABI/stable/sysfs-block). The write is then a plain one, however it was asked for. Whether such a
device loses power safely is its maker's word, and nothing that is measured here.
"""

import numpy as np
import pandas as pd

from diskbook.facts.units import MB

LITTLE_TOLERANCE = 0.01
CLIENT_MS = 0.02
"""Time a client may take for itself between two operations; seen with fio: 2 to 10 microseconds."""
MOST_CLIENT = 0.5
"""Share of the time that a client may take at most; more is a latency of a wrong unit."""
RATE_TOLERANCE = 0.005
RATE_HEADROOM = 0.9
"""Share of the depth that a rate-limited trial may have in flight; above it, it was a closed loop."""

CELL = ["arm", "workload"]
TRIAL = ("run", "trial")
"""What tells a trial: its name is unique within its run alone."""
_KINDS = {1: "read", 2: "write", 3: "read+write", 4: "commit"}
_BITS = {"read": 1, "write": 2, "commit": 4}
_TEXT = (
    "replicate",
    "block",
    "position",
    "machine_id",
    "disk_id",
    "physical_zone",
    "credit_state",
    "tool_version",
)
_NUMBERS = (
    "runtime_s",
    "outstanding",
    "block_size_bytes",
    "rate_offered",
    "iops",
    "lat_mean_ms",
    "throughput_mb_s",
    "since_attach_s",
    "attaches_in_block",
)


MIXED = "mixed ("


def of_direction(words: str, direction: str) -> str:
    """Words of one direction of a mixed load, "4K random read (30 % writes)"; others as they are."""
    return words.replace(MIXED, f"{direction} (", 1)


def trial_keys(*tables: pd.DataFrame) -> list[str]:
    """Columns of `TRIAL` that all these tables have; bins and series are of one run and do not name it."""
    return [name for name in TRIAL if all(name in table for table in tables)]


def several_runs(trials: pd.DataFrame) -> str:
    """Say that trials are of several runs, by name; empty where they are of one."""
    names = sorted(map(str, trials["run"].unique())) if "run" in trials else []
    if len(names) < 2:
        return ""
    return (
        f"the table of trials holds {len(names)} runs ({', '.join(names)}), in which the same numbers mean "
        "other machines and disks"
    )


ONE_BY_ONE = "analyse each run by itself, and compare runs with 'diskbook compare'"


def trial_codes(rows: pd.DataFrame) -> np.ndarray:
    """Number the trials of a table from 0, in order of their first row."""
    codes = [pd.factorize(rows[name])[0] for name in trial_keys(rows)]
    together = codes[0] * (codes[-1].max(initial=0) + 1) + codes[-1]
    numbers: np.ndarray = pd.factorize(together)[0]
    return numbers


def measured_rows(trials: pd.DataFrame) -> pd.DataFrame:
    """Keep what the load waited for: rows of finished trials, and of a commit trial the commit row alone.

    A commit is a write and the sync that makes it durable; its write and sync rows are parts of one wait.
    Repeated rows of a trial and direction are dropped, the last attempt kept.
    """
    direction = trials["direction"]
    rows = trials[(trials["status"] == "ok") & direction.isin(list(_BITS))]
    keys = [*trial_keys(rows), "direction"]
    twice = rows.duplicated(keys, keep=False)
    if twice.any():
        if "attempt" in rows:
            rows = rows.sort_values("attempt", kind="stable")
        rows = rows.drop_duplicates(keys, keep="last")
    commit = (rows["direction"] == "commit").to_numpy()
    if not commit.any():
        return rows
    trial = trial_codes(rows)
    return rows[commit | ~np.isin(trial, trial[commit])]


def trial_totals(trials: pd.DataFrame, rows: pd.DataFrame | None = None) -> pd.DataFrame:
    """Add reads and writes of each trial.

    - `rows`: `measured_rows(trials)`, where it is known already.

    Returns one row a finished trial: the columns of `trials` (NaN where one is not there), with `iops`,
    `mb_s`, `in_flight` (IOPS x mean total latency, by Little's law the mean number of I/Os in flight) and
    `lat_mean_ms` (weighted by rate) of both directions together; `kind` ("read", "write", "read+write",
    "commit"), and `operations` that one unit of the rate consists of (2 for a commit).
    """
    rows = measured_rows(trials) if rows is None else rows
    rows = rows.assign(**{name: np.nan for name in (*_NUMBERS, *_TEXT) if name not in rows})
    numbers = {name: rows[name].to_numpy(float, na_value=np.nan) for name in _NUMBERS}
    codes = trial_codes(rows)
    size = int(codes.max(initial=-1)) + 1
    with np.errstate(all="ignore"):
        mb_s = np.where(
            np.isnan(numbers["throughput_mb_s"]),
            numbers["iops"] * numbers["block_size_bytes"] / MB,
            numbers["throughput_mb_s"],
        )
        # A missing number makes the sum missing: without that it would pass as a small one.
        iops, mb_s, in_flight = (
            np.bincount(codes, values, size)
            for values in (numbers["iops"], mb_s, numbers["iops"] * numbers["lat_mean_ms"] / 1000.0)
        )
        latency = 1000.0 * in_flight / np.where(iops > 0, iops, np.nan)
    bits = np.bincount(codes, rows["direction"].map(_BITS).to_numpy(float), size).astype(int)
    first = np.zeros(size, dtype=int)
    first[codes[::-1]] = np.arange(len(codes))[::-1]
    totals = rows.iloc[first].reset_index(drop=True)
    return totals.assign(
        iops=iops,
        mb_s=mb_s,
        in_flight=in_flight,
        lat_mean_ms=latency,
        kind=pd.Series(bits).map(_KINDS).to_numpy(),
        operations=np.where(bits == 4, 2, 1),
    )


def little_error(totals: pd.DataFrame) -> pd.Series:
    """Relative distance of the I/Os in flight from the outstanding ones: (IOPS x latency - N) / N."""
    return totals["in_flight"] / totals["outstanding"] - 1.0


def little_tolerance(totals: pd.DataFrame) -> pd.Series:
    """Tolerated relative distance: 1 % + latency / runtime, since a trial ends with its queue draining.

    Seen at a cap of 5,100 with 256 outstanding: 249 in flight over 1 s, 252.7 over 2 s, 255.4 over 10 s.
    At depth 1 nothing is in flight while the client prepares its next operation, twice in a commit: 20
    microseconds each are allowed for (1.5 % at 1.3 ms, nothing to speak of in a queue).
    """
    drain = totals["lat_mean_ms"] / 1000.0 / totals["runtime_s"].where(totals["runtime_s"] > 0)
    client = (CLIENT_MS * totals["operations"] / totals["lat_mean_ms"]).clip(upper=MOST_CLIENT)
    return LITTLE_TOLERANCE + drain + client


def rate_kept(totals: pd.DataFrame) -> pd.Series:
    """Whether a rate-limited trial reached its rate within 0.5 %, with clearly less in flight than allowed.

    Otherwise it was a closed loop, whatever it was told. False where no rate was offered.
    """
    on_rate = (totals["iops"] / totals["rate_offered"] - 1.0).abs() <= RATE_TOLERANCE
    return on_rate & (totals["in_flight"] < RATE_HEADROOM * totals["outstanding"])


def paced(totals: pd.DataFrame) -> pd.Series:
    """Whether pauses, syncs or a target of latency held a trial back (column `paced`, where anybody says)."""
    return totals["paced"].eq(True) if "paced" in totals else pd.Series(False, index=totals.index)


def little_ok(totals: pd.DataFrame) -> pd.Series:
    """Say for each trial whether it kept its queue full, or kept its rate where a rate was offered."""
    closed = np.abs(little_error(totals).to_numpy()) <= little_tolerance(totals).to_numpy()
    kept = np.where(totals["rate_offered"].isna(), closed, rate_kept(totals))
    return pd.Series(kept, index=totals.index, dtype=bool)


PLAIN = "plain"
NBD, KERNEL = "nbd", ("libaio", "io_uring")
PLAIN_WRITE = "plain write"
_WHY = {
    "fdatasync": "the device reports write-through, so Linux sends no flush",
    "dsync": "the device reports write-through, so Linux sends neither flush nor FUA",
}
_WHY_NBD = "fio's nbd engine sends no FUA"


def durability(sync: str | None, engine: str | None, write_cache: str | None) -> str:
    """Name what made a trial's writes durable (`schema.DURABILITIES`).

    - `sync`: of the workload: fdatasync after each write, dsync with it, or None.
    - `engine`: how the tool reached the device: "nbd", "libaio" or "io_uring"; None where that was not
      recorded.
    - `write_cache`: as the device's queue reports it: "write back" or "write through"; None where nobody
      could read it.
    """
    if sync is None:
        return ""
    if engine == NBD:  # its flush goes to the server as it is; writes carry no FUA
        return "flushed" if sync == "fdatasync" else PLAIN
    if engine not in KERNEL or write_cache not in ("write back", "write through"):
        return "unknown"
    if write_cache == "write through":
        return PLAIN
    # Without FUA of the device's own Linux flushes after the write, which then is written through as well.
    return "flushed" if sync == "fdatasync" else "written-through"


def plain_words(sync: str | None, engine: str | None) -> str:
    """Say that writes were plain ones although durable ones were asked for, and why."""
    return f"{PLAIN_WRITE} ({_WHY_NBD if engine == NBD else _WHY.get(sync or '', _WHY['fdatasync'])})"


def plain_cells(trials: pd.DataFrame, guest: pd.DataFrame) -> dict[tuple[str, str], str | None]:
    """Cells (arm, workload) whose trials were all to be durable and were all plain, each with its engine."""
    if "durability" not in trials:  # nothing that a run has; tables made by hand
        return {}
    asked = trials[(trials["status"] == "ok") & (trials["durability"] != "")]
    engines = dict(zip(guest["trial"], guest["ioengine"], strict=True))
    return {
        (str(arm), str(load)): engines.get(rows["trial"].iloc[0])
        for (arm, load), rows in asked.groupby(["arm", "workload"], sort=False)
        if (rows["durability"] == PLAIN).all()
    }
