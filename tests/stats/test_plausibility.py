"""Numbers that cannot be true together, or are not of what was asked for; and those that only look odd."""

from __future__ import annotations

import math

import pandas as pd
import pytest

from diskbook.facts import paths
from diskbook.report.analysis import protocol
from diskbook.results import tables
from diskbook.results.run import Run
from diskbook.stats import limits, plausibility
from diskbook.stats.plausibility import Asked, Doubt, Kind

DEEP = Asked(outstanding=32, block_size=4096, write_pct=0, runtime_s=30)
MIXED = Asked(outstanding=32, block_size=4096, write_pct=30, runtime_s=30)
PACED = Asked(outstanding=32, block_size=4096, write_pct=0, runtime_s=30, paced=True)
SYNCHRONOUS = Asked(outstanding=4, block_size=4096, write_pct=0, runtime_s=30)


def row(direction: str = "read", **changed: object) -> dict[str, object]:
    """One direction of a trial at 4,000 IOPS with 32 in flight, as a table of trials has it."""
    told: dict[str, object] = {
        "trial": "t", "arm": "a", "workload": "w", "direction": direction, "status": "ok", "replicate": 1,
        "block": 1, "position": 1, "repeat": 1, "outstanding": 32, "block_size_bytes": 4096,
        "runtime_s": 30.0,
        "iops": 4000.0, "lat_mean_ms": 8.0, "lat_p50_ms": 7.0, "lat_p99_ms": 20.0, "rate_offered": math.nan,
        "credit_state": "none",
    } | changed  # fmt: skip
    told.setdefault("ios", told["iops"] * told["runtime_s"])  # type: ignore[operator]
    return told


def found(rows: list[dict[str, object]], asked: Asked = DEEP) -> list[Doubt]:
    return plausibility.doubts(pd.DataFrame(rows), {"t": asked})


def kinds(rows: list[dict[str, object]], asked: Asked = DEEP) -> list[Kind]:
    return [doubt.kind for doubt in found(rows, asked)]


# Each case: what is wrong, its kind, and the nearest that is not wrong.
CASES = {
    "microseconds taken for milliseconds": (
        Kind.IN_FLIGHT,
        [row(lat_mean_ms=8000.0, lat_p50_ms=7000.0, lat_p99_ms=2e4)],
        [row(lat_mean_ms=8.2)],
        DEEP,
    ),
    "nanoseconds taken for microseconds": (
        Kind.IN_FLIGHT,
        [row(lat_mean_ms=0.008, lat_p50_ms=0.007, lat_p99_ms=0.02)],
        [row(lat_mean_ms=7.8)],
        DEEP,
    ),
    "an idle queue": (Kind.IN_FLIGHT, [row(iops=1950.0)], [row(iops=2050.0)], DEEP),
    "more in flight than there are jobs": (
        Kind.IN_FLIGHT,
        [row(iops=4000.0, lat_mean_ms=1.32, lat_p50_ms=1.0)],
        [row(iops=4000.0, lat_mean_ms=1.28, lat_p50_ms=1.0)],
        SYNCHRONOUS,
    ),
    "a rate with more in flight than may be": (
        Kind.IN_FLIGHT,
        [row(iops=4000.0, rate_offered=4000.0, lat_mean_ms=11.0)],
        [row(iops=4000.0, rate_offered=4000.0, lat_mean_ms=0.4, lat_p50_ms=0.3)],
        DEEP,
    ),
    "pauses with more in flight than may be": (
        Kind.IN_FLIGHT,
        [row(lat_mean_ms=11.0)],
        [row(lat_mean_ms=0.4, lat_p50_ms=0.3)],
        PACED,
    ),
    "a rate that was not kept": (Kind.RATE, [row(rate_offered=5000.0)], [row(rate_offered=4010.0)], DEEP),
    "reads that nobody asked for": (
        Kind.WRITES,
        [row(iops=2800.0), row("write", iops=1200.0)],
        [row(iops=2800.0), row("write", iops=1200.0)],
        DEEP,
    ),
    "half the writes asked for": (
        Kind.WRITES,
        [row(iops=3400.0), row("write", iops=600.0)],
        [row(iops=2900.0), row("write", iops=1100.0)],
        MIXED,
    ),
    "a third of the time": (Kind.TIME, [row(runtime_s=10.0)], [row(runtime_s=27.5)], DEEP),
    "twice the time": (Kind.TIME, [row(runtime_s=60.0)], [row(runtime_s=31.0)], DEEP),
    "p99 below the mean": (
        Kind.TAIL,
        [row(lat_p99_ms=7.0, lat_p50_ms=6.0)],
        [row(lat_p99_ms=8.0, lat_p50_ms=8.0)],
        DEEP,
    ),
    "p50 of a thousand times the mean": (
        Kind.MEDIAN,
        [row(lat_p50_ms=7000.0, lat_p99_ms=9000.0)],
        [row(lat_p50_ms=13.0)],
        DEEP,
    ),
}


@pytest.mark.long
@pytest.mark.parametrize(("kind", "wrong", "right", "asked"), CASES.values(), ids=CASES)
def test_what_cannot_be_is_flagged_and_its_plausible_neighbour_is_not(kind, wrong, right, asked) -> None:
    if kind is Kind.WRITES and asked is DEEP:
        assert kinds(right, MIXED) == []
    else:
        assert kinds(right, asked) == []
    assert kinds(wrong, asked) == [kind]


def test_what_is_not_told_is_held_against_nothing() -> None:
    wrong = [row(lat_mean_ms=8e3, lat_p50_ms=7e3, lat_p99_ms=2e4, runtime_s=1.0)]
    assert kinds(wrong, Asked()) == []
    assert plausibility.doubts(pd.DataFrame(wrong), {}) == []
    assert kinds([row(lat_mean_ms=math.nan, lat_p50_ms=math.nan, lat_p99_ms=math.nan)]) == []


def test_a_few_ios_may_be_of_another_mix_by_chance() -> None:
    rows = [row(iops=0.6, ios=18.0), row("write", iops=0.4, ios=12.0)]
    assert kinds(rows, Asked(write_pct=30)) == []
    assert kinds([row(iops=600.0), row("write", iops=400.0)], Asked(write_pct=30)) == [Kind.WRITES]


def test_what_was_in_flight_as_a_ramp_ended_is_among_the_bytes() -> None:
    asked = Asked(outstanding=32, block_size=4096, bytes_an_io=1.4 * 4096)
    assert kinds([row(iops=500.0, lat_mean_ms=60.0, lat_p99_ms=90.0, ios=150.0)], asked) == []
    assert kinds([row(iops=500.0, lat_mean_ms=60.0, lat_p99_ms=90.0, ios=15000.0)], asked) == [Kind.BYTES]


def test_a_queue_that_drains_at_the_end_is_no_doubt() -> None:
    long = row(iops=40.0, lat_mean_ms=1100.0, lat_p50_ms=900.0, lat_p99_ms=2000.0, runtime_s=1.0, ios=40.0)
    assert kinds([long], Asked(outstanding=32)) == []
    assert kinds([long | {"runtime_s": 100.0}], Asked(outstanding=32)) == [Kind.IN_FLIGHT]


def test_blocks_of_another_size() -> None:
    assert kinds([row()], Asked(block_size=4096, bytes_an_io=8192.0)) == [Kind.BYTES]
    assert kinds([row()], Asked(block_size=4096, bytes_an_io=4500.0)) == []


def test_failed_trials_and_remarks() -> None:
    assert kinds([row(status="failed", lat_mean_ms=8000.0)]) == []
    (doubt,) = found([row()], Asked(doubts=("some clones are missing: 3 of 4 are in the file",)))
    assert doubt.kind is Kind.REMARK and "3 of 4" in doubt.words and not doubt.grave


def test_words_tell_numbers_and_what_it_may_be() -> None:
    (doubt,) = found([row(lat_mean_ms=0.008, lat_p50_ms=0.007, lat_p99_ms=0.02)])
    assert doubt.words.startswith("IOPS x mean latency is 0.001 times the 32 outstanding: ")
    assert doubt.words.endswith("latencies have a wrong unit, or the queue was idle")
    assert doubt.grave and doubt.trial == "t" and "unit" in doubt.kind.remedy


# --- equal rates over depths


def sweep(*rates: float, depths: tuple[int, ...] = (1, 8, 128), **caps: float) -> pd.DataFrame:
    rows = [
        row(trial=f"t{depth}", workload=f"qd{depth}", outstanding=depth, iops=rate)
        | {"lat_mean_ms": 1000 * depth / rate, **caps}
        for depth, rate in zip(depths, rates, strict=False)
    ]
    return limits.label_cells(pd.DataFrame(rows))


def test_equal_rates_over_depths_are_called_a_likely_cap() -> None:
    cells = sweep(5000.0, 5010.0, 5005.0)
    items = plausibility.one_rate(cells)
    assert {item.workload for item in items} == {"qd1", "qd8", "qd128"}
    assert all("likely a cap that nobody named" in item.words for item in items)
    assert cells["binds"].str.contains("own concurrency").sum() == 0
    assert cells.set_index("workload").loc["qd1", "binds"] == "not known, likely a cap that nobody named"


def test_rates_that_grow_are_no_cap_and_neither_is_one_that_is_named() -> None:
    assert plausibility.one_rate(sweep(700.0, 5000.0, 9000.0)) == []
    assert plausibility.one_rate(sweep(5000.0, 5010.0, 5005.0, cap_disk_iops=5000.0)) == []


def test_the_cause_of_a_rate_is_named_where_something_shows_it() -> None:
    grown = sweep(700.0, 5000.0, 5000.0 * 1.5).set_index("workload")["binds"]
    assert grown["qd1"].startswith("the tool's own concurrency")
    alone = sweep(700.0, depths=(1,))["binds"].iloc[0]
    assert alone == "not known: the tool's own concurrency, or a limit that no table names"
    of_disk = sweep(700.0, depths=(1,), cap_disk_iops=5000.0)["binds"].iloc[0]
    assert of_disk == alone  # the machine's limit is in no table
    named = sweep(700.0, depths=(1,), cap_disk_iops=5000.0, cap_vm_iops=6400.0)["binds"].iloc[0]
    assert named == alone  # what the tables name may not be the lowest limit


def test_equal_rates_of_loads_that_pause_are_their_pauses() -> None:
    rows = [row(trial=f"t{n}", workload=f"qd{n}", outstanding=n, lat_mean_ms=0.2) for n in (1, 32)]
    from_pauses = limits.label_cells(
        pd.DataFrame(rows), totals=limits.trial_totals(pd.DataFrame(rows)).assign(paced=True)
    )
    assert (from_pauses["one_rate"] == "").all()
    assert set(from_pauses["binds"]) == {"the tool's own pauses, syncs or target of latency"}


def test_the_share_of_writes_is_unknown_where_a_direction_has_no_rate() -> None:
    reads, writes = row(iops=math.nan, ios=84_000.0), row("write", iops=1200.0)
    assert Kind.WRITES not in kinds([reads, writes], MIXED)
    assert Kind.WRITES in kinds([reads | {"iops": 10.0}, writes], MIXED)


def test_reads_at_memory_speed_are_no_disks() -> None:
    """Two ways to see it: 5 us per read, or 28 GiB/s where the limits are known; a fast disk is neither."""
    alone = Asked(outstanding=1, block_size=4096, write_pct=0, runtime_s=30)
    fast = {"outstanding": 1, "lat_p50_ms": 0.004, "lat_p99_ms": 0.006}
    assert kinds([row(iops=200_000.0, lat_mean_ms=0.005, **fast)], alone) == [Kind.CACHE]
    assert (
        kinds([row(iops=14_000.0, lat_mean_ms=0.07, outstanding=1, lat_p50_ms=0.07, lat_p99_ms=0.1)], alone)
        == []
    )
    deep = Asked(outstanding=64, block_size=32768, write_pct=0, runtime_s=30)
    threads = {"outstanding": 64, "block_size_bytes": 32768, "lat_p50_ms": 0.06, "lat_p99_ms": 0.2}
    limits_known = {"cap_disk_mb_s": 256.0, "cap_vm_cached_mb_s": 256.0}
    buffered = row(iops=917_504.0, lat_mean_ms=64 / 917.504, **threads, **limits_known)
    assert kinds([buffered], deep) == [Kind.CACHE] and found([buffered], deep)[0].grave
    on_a_cap = {"iops": 8100.0, "lat_mean_ms": 64 / 8.1, "lat_p50_ms": 7.9, "lat_p99_ms": 9.0}
    assert kinds([row(**(threads | limits_known | on_a_cap))], deep) == []


@pytest.mark.parametrize(
    ("changed", "is_hint"),
    [
        ({"lat_p50_ms": 94.0, "lat_p99_ms": 198.0}, True),
        ({"lat_p50_ms": 94.0, "lat_p99_ms": 102.0}, False),  # one multiple alone
        ({"lat_p50_ms": 60.0, "lat_p99_ms": 198.0}, False),
        ({"lat_p50_ms": 94.0, "lat_p99_ms": 198.0, "cap_disk_mb_s": 20.0}, False),  # 16 of 20 MB/s: busy
        ({"lat_p50_ms": 94.0, "lat_p99_ms": 198.0, "cap_disk_mb_s": 200.0}, True),
    ],
)
def test_percentiles_at_multiples_of_100_ms_hint_at_a_quota(changed: dict[str, float], is_hint: bool) -> None:
    hints = plausibility.quota_hints(pd.DataFrame([row(**changed)]))
    assert bool(hints) == is_hint and all("CPU quota" in hint for hint in hints)


@pytest.mark.long
def test_no_sample_has_reads_from_memory_or_a_quota() -> None:
    for name in ("zone-disks", "shared-zrs", "s2d-azure", "disk-options", "nested-resiliency"):
        run = Run(paths.RUNS / f"sample-{name}")
        trials = tables.read(run.folder).trials
        assert not plausibility.quota_hints(trials)
        asked = protocol.by_trial(trials, run.scenario, run.ledger())
        assert asked and Kind.CACHE not in {doubt.kind for doubt in plausibility.doubts(trials, asked)}
