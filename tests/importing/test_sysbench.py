"""sysbench fileio: what a result tells of itself goes before the banner above it."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from diskbook.importing import formats, run as importer
from diskbook.importing.scenario import Settings
from diskbook.tools.record import CACHED, Measurement, UnusableError
from support.other_tools import old_sysbench_result, sysbench_result


def read(text: str) -> tuple[Measurement, ...]:
    return formats.parse(text.encode(), "io.log").measurements


def test_result_is_read_with_a_p95_at_most() -> None:
    (measurement,) = read(sysbench_result())
    done, load = measurement.directions["read"], measurement.load
    assert (done.ios, done.iops, done.bw_bytes, done.runtime_ms) == (20_000, 2000, 31.25 * 2**20, 10_000)
    assert (done.lat_mean_ms, done.lat_min_ms, done.lat_max_ms) == (2.0, 0.5, 18.0)
    assert done.percentiles_ms == {95.0: 4.0} and math.isnan(done.lat_p99_ms)
    assert (load.pattern, load.block_size_bytes, load.write_pct) == ("random", 16384, 0)
    assert (load.threads, load.queue_depth, load.size_bytes) == (4, 1, 2**30)
    assert measurement.started_utc is None and measurement.target == "" and measurement.flags == ()


@pytest.mark.parametrize(("version", "flags"), [("0.4.12", 16384), ("0.5", 3)])
def test_counts_of_old_releases_become_rates(version: str, flags: int) -> None:
    (measurement,) = read(old_sysbench_result(version=version, flags=flags))
    done, load = measurement.directions["read"], measurement.load
    assert (done.ios, done.iops, done.runtime_ms) == (20_000, 2000, 10_000)
    assert done.bw_bytes == pytest.approx(2000 * 16384, rel=1e-4)
    assert (done.lat_mean_ms, done.lat_min_ms, done.lat_max_ms) == (1.8, 0.45, 16.2)
    assert done.percentiles_ms == {95.0: 3.6} and measurement.flags == ()
    assert (load.pattern, load.block_size_bytes, load.write_pct) == ("random", 16384, 0)
    assert (load.threads, load.queue_depth, load.size_bytes) == (4, 1, 2**30)


def test_mixed_load_of_an_old_release_has_no_latency_of_its_own() -> None:
    (measurement,) = read(old_sysbench_result(reads=12_000, writes=8_000, test="random r/w", flags=0))
    assert {name: part.iops for name, part in measurement.directions.items()} == {"read": 1200, "write": 800}
    assert math.isnan(measurement.directions["write"].lat_mean_ms) and measurement.load.write_pct == 40
    assert CACHED in measurement.flags


def test_threads_are_those_of_the_events_and_not_of_the_banner() -> None:
    """Two processes append to one file: the banner of the second stands above the first's result."""
    one, other = sysbench_result(threads=16, banner=1), sysbench_result(threads=1, banner=1)
    first, second = read(one + other)
    assert (first.load.threads, second.load.threads) == (16, 1)
    assert "says 1 thread(s), its own events per thread 16" in first.flags[0] and second.flags == ()


def test_latency_is_not_measured_where_fsyncs_are_counted_with_the_writes() -> None:
    (measurement,) = read(sysbench_result(test="random write", every=100))
    written = measurement.directions["write"]
    assert (written.iops, written.ios) == (2000, 20_000)
    assert math.isnan(written.lat_mean_ms) and written.percentiles_ms == {}
    assert any("of all its operations together" in flag for flag in measurement.flags)


def test_write_with_an_fsync_each_is_durable() -> None:
    (measurement,) = read(sysbench_result(test="random write", every=1, flags="(none)"))
    assert measurement.load.sync == "fdatasync" and CACHED not in measurement.flags
    assert measurement.directions["write"].lat_mean_ms == 2.0


def test_reads_through_the_cache_are_flagged() -> None:
    assert CACHED in read(sysbench_result(flags="(none)"))[0].flags


def test_tests_without_a_result_are_counted() -> None:
    cut = sysbench_result().partition("File operations:")[0]
    parsed = formats.parse((sysbench_result() + cut + cut).encode(), "io.log")
    assert len(parsed.measurements) == 1
    assert parsed.flags == ("2 of 3 tests have no result: they were ended, or the file is cut",)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (sysbench_result() + sysbench_result(version="1.0.17"), "several versions"),
        (sysbench_result().partition("File operations:")[0], "ended before it printed a result"),
        (sysbench_result().partition("Threads fairness")[0], "it is cut"),
        (old_sysbench_result().partition("Threads fairness")[0], "it is cut"),
        (old_sysbench_result().replace("Block size 16Kb", "Block size 4Kb"), "reads are of 16,384 bytes"),
        ("sysbench 1.0.20\n\nCPU speed:\n", "no result of 'sysbench fileio run'"),
        ("sysbench 1.0.20\n\n99 bytes written in 1 seconds\n", "made its files here"),
        (sysbench_result().replace("Block size 16KiB", "Block size 4KiB"), "reads are of 16,384 bytes"),
        (sysbench_result().replace("random read", "random write"), "another result's"),
    ],
)
def test_what_cannot_be_used_is_refused_in_a_sentence(text: str, words: str) -> None:
    with pytest.raises(UnusableError, match=words):
        read(text)


def test_thread_counts_of_one_file_are_loads(tmp_path: Path) -> None:
    for disk in ("a", "b"):
        (tmp_path / disk).mkdir()
        text = "".join(sysbench_result(threads=n, iops=500.0 * n + ord(disk)) for n in (1, 4, 16))
        (tmp_path / disk / "io.log").write_text(text)
    planned = importer.plan([str(tmp_path)], str(tmp_path / "run"), Settings())
    assert set(planned.arms) == {"a", "b"}
    assert sorted({entry.workload["name"] for entry in planned.entries}) == [
        "randread-16k-qd1",
        "randread-16k-t16-qd1",
        "randread-16k-t4-qd1",
    ]
