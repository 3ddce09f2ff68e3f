"""fio's command lines, run for real on a memory disk, and its output, read back."""

from __future__ import annotations

import json
import zlib
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest

from diskbook.design.model import Workload
from diskbook.facts.errors import UsageError
from diskbook.facts.units import KIB
from diskbook.tools import fio
from diskbook.tools.record import Measurement, UnusableError
from support import SAMPLES
from support.disturbance import load_sensitive
from support.fio_jobs import assert_keeps_its_queue, run, run_on_memory

FOLDER = SAMPLES / "fio"
MIB = 1024**2


@dataclass(frozen=True)
class Nbd:
    """A device reached over NBD; the URI is put in by nbdkit's shell."""

    engine: str = "nbd"
    target: str = "@uri@"


@dataclass(frozen=True)
class File:
    target: str
    engine: str = "libaio"


def workload(**changes: object) -> Workload:
    """Return a short workload of one direction."""
    small = {"name": "w", "block_size": "4K", "write_pct": 0, "working_set_gib": 1 / 64, "runtime_s": 0.6}
    return Workload.model_validate({**small, "series_s": 0.1, **changes})


def result_of(folder: Path, **options: float) -> Measurement:
    messages = (folder / "stderr").read_text()
    return fio.parse_output((folder / "stdout").read_text(), "trial.json", messages=messages, **options)


def series_of(job: fio.Job, folder: Path, interval_s: float = 0.1) -> dict[str, fio.Series]:
    lat, iops = ((folder / job.logs[kind]).read_text() for kind in ("lat_log", "iops_log"))
    return fio.parse_logs(lat, iops, interval_s, "trial")


# --- round trips: command -> fio -> parse


@pytest.mark.measures
def test_mixed_load_round_trip(tmp_path: Path) -> None:
    load = workload(write_pct=30, threads=2, queue_depth=4, ramp_s=0.2, runtime_s=0.8)
    job = fio.command(load, Nbd(), seed=7)
    assert run_on_memory([(job, tmp_path)]) == [0]
    result = result_of(tmp_path, runtime_s=0.8)

    assert set(result.directions) == {"read", "write"}
    assert result.runtime_ms >= 780
    for part in result.directions.values():
        # I/Os in flight when the ramp ends count as bytes and latencies, but not as I/Os.
        assert 0 <= sum(part.bins.values()) - part.ios <= load.outstanding
        assert part.iops == pytest.approx(part.ios / part.runtime_ms * 1000, rel=0.02)
        assert 1.0 <= part.lat_min_ms <= part.lat_p50_ms <= part.lat_p99_ms <= part.lat_p999_ms
        assert part.lat_min_ms <= part.lat_mean_ms <= part.lat_max_ms
    assert_keeps_its_queue(result, 8)
    with load_sensitive():  # the fewer I/Os, the more the share is left to chance, and the ramp's weigh
        assert result.directions["write"].ios / result.ios == pytest.approx(0.3, abs=0.04)
        for part in result.directions.values():
            assert part.bw_bytes == pytest.approx(part.iops * 4096, rel=0.02)
        assert result.runtime_ms < 920


@pytest.mark.emulator
def test_percentiles_are_those_of_fio(tmp_path: Path) -> None:
    job = fio.command(workload(queue_depth=2), Nbd())
    run_on_memory([(job, tmp_path)])
    text = (tmp_path / "stdout").read_text()
    theirs = json.loads(text[text.index("{") :])["jobs"][0]["read"]["lat_ns"]["percentile"]
    ours = fio.parse_output(text, "fio.json").directions["read"]
    assert ours.lat_p50_ms * 1e6 == pytest.approx(theirs["50.000000"])
    assert ours.lat_p99_ms * 1e6 == pytest.approx(theirs["99.000000"])
    assert ours.lat_p999_ms * 1e6 == pytest.approx(theirs["99.900000"])


@pytest.mark.measures
def test_series_agree_with_the_totals(tmp_path: Path) -> None:
    job = fio.command(workload(threads=2, queue_depth=2, runtime_s=1.0), Nbd())
    run_on_memory([(job, tmp_path)])
    total, series = result_of(tmp_path).directions["read"], series_of(job, tmp_path)["read"]
    steps = np.diff(series.second) / 0.1
    assert np.allclose(steps, np.round(steps)) and steps.min() > 0.5
    with load_sensitive():  # on a busy machine fio leaves out intervals, and its last one is longer
        assert len(series.second) >= 9
        assert series.iops.mean() == pytest.approx(total.iops, rel=0.1)
        mean_ms = np.average(series.lat_mean_ms, weights=series.iops)
        assert mean_ms == pytest.approx(total.lat_mean_ms, rel=0.1)


@pytest.mark.measures
def test_commit_workload_syncs_after_every_write(tmp_path: Path) -> None:
    job = fio.command(workload(write_pct=100, sync="fdatasync"), Nbd())
    assert run_on_memory([(job, tmp_path)]) == [0]
    directions = result_of(tmp_path).directions
    write, sync = directions["write"], directions["sync"]
    assert abs(write.ios - sync.ios) <= 1
    assert sum(sync.bins.values()) == sync.ios
    with load_sensitive():  # one after the other, all the time
        assert 0.9 < write.iops * (write.lat_mean_ms + sync.lat_mean_ms) / 1000 < 1.02


@pytest.mark.emulator
def test_commit_workload_on_a_path(tmp_path: Path) -> None:
    target = File(str(tmp_path / "a:b disk"))
    job = fio.command(workload(write_pct=100, sync="fdatasync", runtime_s=0.3), target)
    assert "--fdatasync=1" in job.argv and "--direct=1" in job.argv
    assert run(job, tmp_path) == 0, (tmp_path / "stderr").read_text()
    directions = result_of(tmp_path).directions
    assert abs(directions["write"].ios - directions["sync"].ios) <= 1
    assert directions["sync"].iops > 0
    assert (tmp_path / "a:b disk").stat().st_size == 16 * MIB


@pytest.mark.measures
def test_rate_is_the_total_of_all_threads_and_directions(tmp_path: Path) -> None:
    load = workload(write_pct=30, threads=2, queue_depth=4, rate=400, runtime_s=1.0)
    job = fio.command(load, Nbd())
    assert "--rate=573440,245760" in job.argv
    run_on_memory([(job, tmp_path)])
    rates = {name: part.iops for name, part in result_of(tmp_path).directions.items()}
    assert rates["read"] < 280 * 1.05 and rates["write"] < 120 * 1.05
    with load_sensitive():
        assert rates["read"] > 280 * 0.88 and rates["write"] > 120 * 0.88


def test_sequential_threads_share_the_working_set_out(tmp_path: Path) -> None:
    load = workload(pattern="sequential", write_pct=100, threads=3, block_size="1M")
    argv = fio.command(load, Nbd()).argv
    assert {"--rw=write", f"--size={5 * MIB}", f"--offset_increment={5 * MIB}"} <= set(argv)


@pytest.mark.emulator
def test_prefill_writes_the_whole_working_set_with_data_that_does_not_compress(tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    job = fio.prefill_command(4 * MIB, File(str(disk)))
    assert run(job, tmp_path) == 0
    content = disk.read_bytes()
    assert len(content) == 4 * MIB
    assert len(zlib.compress(content, 1)) > 0.9 * len(content)


@pytest.mark.emulator
def test_an_overwrite_writes_each_block_once_in_random_order(tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.write_bytes(bytes(5 * MIB))
    job = fio.overwrite_command(4 * MIB, File(str(disk)))
    logged = replace(job, argv=(*job.argv, "--write_bw_log=o", "--log_offset=1"))
    assert run(logged, tmp_path) == 0
    rows = [line.split(",") for line in (tmp_path / "o_bw.1.log").read_text("utf-8").splitlines()]
    offsets = [int(row[4]) for row in rows]
    assert sorted(offsets) == list(range(0, 4 * MIB, 64 * KIB)) and offsets != sorted(offsets)
    content = disk.read_bytes()
    assert len(zlib.compress(content[: 4 * MIB], 1)) > 0.9 * 4 * MIB and not any(content[4 * MIB :])


@pytest.mark.emulator
def test_data_that_compress_are_those_that_diskspd_writes(tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    load = workload(pattern="sequential", write_pct=100, data="compressible", runtime_s=0.2, ramp_s=0)
    job = fio.command(load.model_copy(update={"working_set_gib": 1 / 1024}), File(str(disk)))
    assert run(job, tmp_path) == 0
    content, expected = disk.read_bytes(), bytes(range(256)) * (4 * KIB // 256)
    blocks = {content[at : at + len(expected)] for at in range(0, MIB, len(expected))}
    assert blocks - {bytes(len(expected))} == {expected}  # on a busy machine some are not written in the time
    assert "compress" in job.content


def test_what_is_written_is_said_and_reads_write_nothing() -> None:
    assert "altered a little" in fio.command(workload(write_pct=100), Nbd()).content
    assert fio.command(workload(), Nbd()).content == ""
    assert "anew for each write" in fio.prefill_command(MIB, Nbd()).content


def test_first_writes_begin_where_they_are_told_and_come_to_no_block_twice() -> None:
    load = workload(write_pct=100, region="unwritten")
    argv = fio.command(load, Nbd(), offset=3 * MIB).argv
    assert f"--offset={3 * MIB}" in argv and "--norandommap" not in argv
    assert "--norandommap" in fio.command(workload(write_pct=0, region="unwritten"), Nbd()).argv


@pytest.mark.emulator
def test_verify_finds_data_intact_and_damage(tmp_path: Path) -> None:
    folders = [tmp_path / name for name in ("write", "read", "again")]
    for folder in folders:
        folder.mkdir()
    region = {"size_bytes": 2 * MIB, "offset": 4 * MIB}
    write = fio.verify_write_command(Nbd(), **region)
    read = fio.verify_read_command(Nbd(), **region)
    damaged = fio.verify_read_command(Nbd(), size_bytes=2 * MIB, offset=4 * MIB + 65536)
    assert run_on_memory(list(zip((write, read, damaged), folders, strict=True)), delay_ms=0) == [0, 0, 1]
    assert result_of(folders[1]).directions["read"].ios == 32
    with pytest.raises(UnusableError, match=r'trial\.json: fio failed with "verify: bad magic header'):
        result_of(folders[2])


@pytest.mark.emulator
def test_a_refused_connection_is_told_in_fios_words(tmp_path: Path) -> None:
    job = fio.command(workload(), Nbd(target="nbd://127.0.0.1:9/x"))
    assert run(job, tmp_path) != 0
    with pytest.raises(UnusableError, match=r'trial\.json: fio failed with ".*Connection refused'):
        result_of(tmp_path)


@pytest.mark.emulator
def test_an_interrupted_trial_is_refused(tmp_path: Path) -> None:
    job = fio.command(workload(runtime_s=0.3), Nbd())
    run_on_memory([(job, tmp_path)])
    with pytest.raises(UnusableError, match=r"of 2 s; it was interrupted"):
        result_of(tmp_path, runtime_s=2.0)


# --- the command alone


def test_the_target_is_one_argument() -> None:
    job = fio.command(workload(), Nbd(target="nbd+unix:///d?socket=/a b;rm"))
    assert "--uri=nbd+unix:///d?socket=/a b;rm" in job.argv


def test_the_seed_is_in_force() -> None:
    argv = fio.command(workload(), Nbd(), seed=42).argv
    assert {"--randrepeat=0", "--randseed=42", "--norandommap"} <= set(argv)


def test_the_engine_of_the_workload_is_the_kernels_and_nbd_keeps_its_own() -> None:
    load, device = workload(ioengine="io_uring"), fio.TOOL.example
    assert "--ioengine=io_uring" in fio.command(load, device).argv
    assert "--ioengine=libaio" in fio.command(workload(), device).argv
    on_nbd = fio.command(load, Nbd())
    assert "--ioengine=nbd" in on_nbd.argv
    assert on_nbd.notes == ("io_uring was asked for; fio has its own engine for NBD, so it is not used",)


@pytest.mark.parametrize(
    ("line", "why"),
    [  # as fio 3.33 wrote them with kernel.io_uring_disabled=2, and without the engine
        (
            "fio: pid=15096, err=1/file:engines/io_uring.c:998, func=io_queue_init, "
            "error=Operation not permitted",
            "Operation not permitted",
        ),
        ("fio: engine io_uring not loadable", "this fio was built without it"),
    ],
)
def test_a_machine_that_allows_no_io_uring_is_told_in_one_sentence(line: str, why: str) -> None:
    with pytest.raises(UnusableError) as refused:
        fio.parse_output(line, "trial.json")
    told = f"the machine does not let fio use io_uring ({why}): set ioengine = "
    assert told in str(refused.value)


def test_an_unknown_engine_is_refused() -> None:
    with pytest.raises(UsageError, match="engine 'rbd' is neither nbd nor libaio"):
        fio.command(workload(), Nbd(engine="rbd"))


# --- real output of fio


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("diskfull.json", r'diskfull\.json: fio failed with ".*No space left on device'),
        ("missing-file-nocreate.json", r"fio did no I/O"),
        ("output-disk-full-truncated.json", r"cut or damaged at line \d+"),
        ("jsonplus-3jobs.json", r"fio ended with error 22"),
        ("client-json.txt", r"lists no jobs"),
        ("sigint.json", r"written by fio-2\.16"),
    ],
)
def test_bad_output_is_named(name: str, message: str) -> None:
    with pytest.raises(UnusableError, match=message):
        fio.parse_output((FOLDER / name).read_text(), name)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", 'x: fio failed with "oops"'),
        ("Segmentation fault\n", 'x: fio failed with "oops"'),
        ('{"a": 1}', 'x: fio failed with "oops"\nthis is JSON'),
        (
            '{"fio version": "fio-3.33", "jobs": [{"error": 0, "read": {"total_ios": 1}}]}',
            "no usable 'lat_ns'",
        ),
        (
            '{"fio version": "fio-3.33", "jobs": [{"read": {"total_ios": 1, "iops": 1, "lat_ns": {}}}]}',
            "no usable 'runtime'",
        ),
        (
            '{"fio version": "fio-3.33", "jobs": []}\n{ "fio version" : "fio-3.33", "jobs" : [',
            'fio failed with "oops"',
        ),
        ('{"fio version": "fio-3.33", "jobs": [{"read": {"iops": nan}}]}', "cut or damaged at line 1"),
    ],
)
def test_no_usable_output(text: str, message: str) -> None:
    with pytest.raises(UnusableError, match=message):
        fio.parse_output(text, "x", messages="fio: oops\n")


def test_several_jobs_are_added_up() -> None:
    text = (FOLDER / "json-group_reporting.json").read_text()
    jobs = json.loads(text)["jobs"]
    read = fio.parse_output(text, "sample").directions["read"]
    assert read.ios == sum(job["read"]["total_ios"] for job in jobs)
    weighted = sum(job["read"]["lat_ns"]["mean"] * job["read"]["lat_ns"]["N"] for job in jobs)
    assert read.lat_mean_ms == pytest.approx(weighted / read.ios / 1e6)
    assert read.lat_max_ms == max(job["read"]["lat_ns"]["max"] for job in jobs) / 1e6


def test_of_cumulative_documents_the_last_counts() -> None:
    text = (FOLDER / "json-status-interval.json").read_text()
    assert fio.parse_output(text, "sample").runtime_ms == 4001


def test_text_around_the_json_is_passed_over() -> None:
    assert (
        fio.parse_output((FOLDER / "json-and-normal.txt").read_text(), "sample").directions["read"].ios
        == 12300
    )


def test_missing_latencies_are_not_zero() -> None:
    read = fio.parse_output((FOLDER / "json-gtod_reduce.json").read_text(), "sample").directions["read"]
    assert read.ios == 27518
    assert np.isnan([read.lat_mean_ms, read.lat_p50_ms, read.lat_max_ms]).all()


# --- bins and logs


def test_percentile_is_the_smallest_bin_that_holds_enough() -> None:
    bins = {30: 1, 10: 98, 20: 1}
    assert fio.percentile_ns(bins, 0.5, 0.98, 0.99, 0.999) == [10, 10, 20, 30]
    assert np.isnan(fio.percentile_ns({}, 0.5, 0.9)).tolist() == [True, True]


def test_bins_merge_exactly() -> None:
    assert fio.merge_bins([{1: 2, 3: 4}, {3: 1, 2: 5}]) == {1: 2, 2: 5, 3: 5}


def test_logs_of_several_jobs_are_joined_by_interval() -> None:
    iops = "100, 10, 0, 0, 0\n201, 30, 0, 0, 0\n99, 20, 0, 0, 0\n200, 10, 0, 0, 0\n"
    lat = "101, 1000000, 0, 0, 0\n202, 2000000, 0, 0, 0\n202, 9000000, 0, 0, 0\n100, 4000000, 0, 0, 0\n"
    series = fio.parse_logs(lat, iops, 0.1, "t")
    assert set(series) == {"read"}
    assert series["read"].second == pytest.approx([0.1, 0.2])
    assert series["read"].iops == pytest.approx([30, 40])
    assert series["read"].lat_mean_ms == pytest.approx([(10 * 1 + 20 * 4) / 30, 2.0])


@pytest.mark.parametrize("text", ["100, 1\n", "100, x, 0, 0\n"])
def test_a_broken_log_is_named(text: str) -> None:
    with pytest.raises(UnusableError, match="trial 9: IOPS log has a line that is not"):
        fio.parse_logs("", text, 0.1, "trial 9")


def test_no_log_no_series() -> None:
    assert fio.parse_logs("", "", 0.1, "t") == {}
