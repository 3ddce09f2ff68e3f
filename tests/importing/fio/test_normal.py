"""fio's output for people, of fio 2 and 3: by hand after its source, and compared with fio's own JSON."""

from __future__ import annotations

import html
import math
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from diskbook.importing import formats
from diskbook.importing.fio import json_files, normal, shown_options
from diskbook.tools.record import Measurement, Parsed, UnusableError
from support.fio_texts import FIO_2, FIO_3, JOB_FILE, PROGRESS, REPORT_2, REPORT_3, START_2, START_3

BARE_3 = START_3 + "fio-3.28\nStarting 4 processes\n" + REPORT_3


def one(text: str) -> Measurement:
    (measurement,) = normal.parse(text, "x").measurements
    return measurement


def test_fio_2_counts_kib_and_its_own_units() -> None:
    job = one(FIO_2)
    write = job.directions["write"]
    assert (job.name, job.target, set(job.directions)) == ("writer", "/dev/sdc", {"write"})
    assert (write.ios, write.runtime_ms) == (150087, 30025)
    assert write.iops == pytest.approx(150087 / 30.025)
    assert write.bw_bytes == pytest.approx(39991 * 1024, rel=1e-4)
    assert (write.lat_mean_ms, write.lat_stddev_ms) == pytest.approx((51.21, 5.13))
    assert (write.lat_min_ms, write.lat_max_ms) == (2, 190)
    assert (write.lat_p50_ms, write.lat_p99_ms, write.lat_p999_ms) == (51, 77, 140)
    assert not write.bins
    assert (job.usr_pct, job.sys_pct, job.started_utc) == (4.31, 13.62, "2016-09-20T22:00:07+00:00")
    assert any("in whole msec" in flag for flag in job.flags)
    assert normal.parse(FIO_2, "x").version == "2.1.3"


def test_fio_3_loses_a_carry_in_what_it_prints() -> None:
    """12.99k is printed as 12.0k by early releases: I/Os over time are 12,990."""
    write = one(FIO_3).directions["write"]
    assert write.iops == pytest.approx(389739 / 30.003)
    assert write.bw_bytes == pytest.approx(write.iops * 8192)
    assert (write.lat_mean_ms, write.lat_p99_ms) == pytest.approx((19.6975, 27.919))
    assert write.iops * write.lat_mean_ms / 1000 == pytest.approx(256, rel=0.01)  # 4 x 64 in flight


def quoted(text: str) -> str:
    return "".join(f"> {line}\n" for line in text.splitlines())


def fenced(text: str) -> str:
    return (
        "# Results\n\n1. First:\n\n   ```bash\n"
        + "".join(f"   {line}\n" for line in text.splitlines())
        + "```\n"
    )


def on_a_page(text: str) -> str:
    return f"<html><pre><code>{html.escape(text)}</code></pre></html>"


def with_progress(text: str) -> str:
    lines = "\r".join(PROGRESS.format(share) for share in range(0, 101, 10))
    return text.replace("writer: (groupid", f"{lines}\rwriter: (groupid").replace("\n...", "\n...")


def run_together(text: str) -> str:
    """A paste that lost its carriage returns."""
    return text.replace(
        "writer: (groupid", "".join(PROGRESS.format(k) for k in (3, 50, 100)) + "writer: (groupid"
    )


def coloured(text: str) -> str:
    return text.replace("azureuser@vm1:~$", "\x1b[01;32mazureuser@vm1\x1b[00m:~$").replace("\n", "\x1b[0m\n")


@pytest.mark.parametrize("text", [FIO_2, FIO_3, BARE_3, JOB_FILE + START_2 + REPORT_2])
@pytest.mark.parametrize("kept", [quoted, fenced, on_a_page, with_progress, run_together, coloured])
def test_as_people_keep_it(text: str, kept: Callable[[str], str]) -> None:
    for ends in ("\n", "\r\n"):
        read = formats.parse(kept(text).replace("\n", ends).encode(), "x").measurements
        assert read == normal.parse(text, "x").measurements


def test_two_of_a_load_told_three_ways() -> None:
    """A command line, a job file, or what fio itself repeats."""
    shown, in_a_file, bare = (
        one(text) for text in (FIO_2, JOB_FILE + START_2 + REPORT_2, START_2 + REPORT_2)
    )
    assert shown.load == in_a_file.load
    assert (shown.load.threads, shown.load.queue_depth, shown.load.block_size_bytes) == (4, 64, 8192)
    assert (shown.load.write_pct, shown.load.pattern, shown.load.runtime_s) == (100, "random", 30)
    assert (bare.load.threads, bare.load.queue_depth, bare.load.block_size_bytes) == (4, 64, 8192)
    assert bare.target == "sdc"  # of its statistics of disks
    assert normal.NOT_REPEATED in bare.flags and normal.NOT_REPEATED not in shown.flags


def test_without_start_lines_the_depth_is_what_was_seen() -> None:
    job = one(REPORT_2)
    assert (job.load.queue_depth, job.load.threads, job.load.block_size_bytes) == (64, 4, None)
    assert "4 threads are reported as one: whether they did alike is not told" in job.flags
    assert normal.parse(REPORT_2, "x").version == "unknown"


def test_a_command_of_another_load_is_not_used() -> None:
    job = one(FIO_2.replace("--bs=8k", "--bs=64k"))
    assert (job.load.block_size_bytes, job.target) == (8192, "sdc")
    assert any("of another load" in flag for flag in job.flags)


@pytest.mark.parametrize("end", range(len(FIO_3) - 500, 200, -97))
def test_a_text_that_is_cut_says_so_or_is_refused(end: int) -> None:
    whole = one(FIO_3).directions["write"]
    try:
        (job,) = normal.parse(FIO_3[:end], "x").measurements
    except UnusableError:
        return
    write = job.directions["write"]
    assert write.iops == pytest.approx(whole.iops, rel=0.08)  # as printed, 12.0k, where no I/Os are counted
    assert write.lat_mean_ms == pytest.approx(whole.lat_mean_ms, rel=0.01) or math.isnan(write.lat_mean_ms)
    assert "issued rwts: total=0,389739,0,0 short" in FIO_3[:end] or any("cut" in flag for flag in job.flags)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (FIO_2.replace("err= 0", "err= 5 (Input/output error)"), r"error 5 \(Input/output error\)"),
        (FIO_2.replace("write: io", "mixed: io"), "unified_rw_reporting"),
        (FIO_2.replace("jobs=4)", "jobs=1)"), "the text holds 1 of its 4 clones"),
        (FIO_2[: FIO_2.index("  cpu")].replace("randwrite", "randrw"), "the text is cut after line"),
        (FIO_2.split("writer: (groupid")[0], "ends before the first result"),
        (FIO_2 + FIO_3, "different versions of fio"),
    ],
)
def test_what_cannot_be_used_is_refused_in_one_sentence(text: str, message: str) -> None:
    with pytest.raises(UnusableError, match=message) as error:
        normal.parse(text, "x")
    assert "\n" not in str(error.value)


def clones(names: tuple[str, ...], report: str = REPORT_2) -> str:
    """The report of a job once for each name, with a process of its own."""
    single = report.replace("jobs=4", "jobs=1").split("\nRun status")[0] + "\n"
    return "".join(
        single.replace("writer:", f"{name}:").replace("pid=2311", f"pid={number}")
        for number, name in enumerate(names, 1)
    )


def test_clones_add_up_without_percentiles() -> None:
    job = one(START_2 + "Starting 2 processes\n" + clones(("writer", "writer")))
    write = job.directions["write"]
    assert (write.ios, job.load.threads) == (2 * 150087, 2)
    assert write.lat_mean_ms == pytest.approx(51.21) and math.isnan(write.lat_p99_ms)
    assert any("cannot be joined" in flag for flag in job.flags)


def test_reports_of_a_job_that_goes_on_count_once() -> None:
    job = one(START_2 + REPORT_2 + "\n" + REPORT_2.replace("150087", "300174").replace("30025", "60050"))
    assert (job.directions["write"].ios, job.directions["write"].runtime_ms) == (300174, 60050)
    assert any("status-interval" in flag for flag in job.flags)


def test_several_runs_in_a_file_are_several() -> None:
    parsed = normal.parse(FIO_2 + FIO_2.replace("writer", "again").replace("150087", "1500870"), "x")
    assert [job.name for job in parsed.measurements] == ["writer", "again"]
    assert "the file holds 2 runs" in parsed.flags


READER_2 = "reader: (g=0): rw=randread, bs=4K-4K/4K-4K/4K-4K, ioengine=libaio, iodepth=8\n"
READS_2 = REPORT_2[REPORT_2.index("  write:") : REPORT_2.index("    bw")].replace("write:", "read :")


def grouped(other: str) -> Parsed:
    """Writers and another job, reported as one."""
    report = REPORT_2.replace("  write:", READS_2 + "  write:", 1).replace(
        "r=0/w=150087", "r=150000/w=150087"
    )
    return normal.parse(START_2 + other + report, "x")


def test_readers_and_writers_of_a_group_are_told_apart() -> None:
    parsed = grouped(READER_2)
    loads = {
        job.name: (job.load.write_pct, job.load.block_size_bytes, job.load.queue_depth)
        for job in parsed.measurements
    }
    assert loads == {"writer": (100, 8192, 64), "reader": (0, 4096, 8)}
    assert [set(job.directions) for job in parsed.measurements] == [{"write"}, {"read"}]
    assert all(any("group_reporting" in flag for flag in job.flags) for job in parsed.measurements)


def test_a_mix_of_unlike_jobs_is_refused_and_alike_ones_are_told() -> None:
    with pytest.raises(
        UnusableError, match=r"unlike jobs \(writer: randwrite, 8K, depth 64; reader: randrw, 4K"
    ):
        grouped(READER_2.replace("randread", "randrw"))
    second = START_2.replace("writer", "other").replace("...\n", "")
    job = one(START_2 + second + REPORT_2)
    assert (job.load.threads, job.load.block_size_bytes) == (4, 8192)
    assert "group_reporting: 2 jobs (writer, other) are reported as one" in job.flags


def test_completion_stands_in_for_the_total() -> None:
    text = FIO_2.replace("     lat (msec): min=2, max=190, avg=51.21, stdev= 5.13\n", "")
    job = one(text)
    assert job.directions["write"].lat_mean_ms == pytest.approx(51.20)
    assert any("disable_lat" in flag for flag in job.flags)


def test_a_group_that_did_more_than_its_reports_is_told() -> None:
    job = one(FIO_2.replace("aggrb=39991KB/s", "aggrb=79991KB/s"))
    assert any("some are missing" in flag for flag in job.flags)


@pytest.mark.parametrize(
    ("line", "options"),
    [
        ("$ fio --name=a --rw=read --bs 8k", {"a": {"rw": "read", "bs": "8k"}}),
        ("fio --bs=4k --name=a --rw=read --name=b", {"a": {"bs": "4k", "rw": "read"}, "b": {"bs": "4k"}}),
        ("fio --name=a --bs=$BS --iodepth=2 > x.txt", {"a": {"iodepth": "2"}}),
        (
            r"C:\fio\fio.exe --name=a --group_reporting --readwrite=write",
            {"a": {"group_reporting": "1", "rw": "write"}},
        ),
        ("fio --name='a b --rw=read", {"'a": {"rw": "read"}}),
        ("fio --version", {}),
    ],
)
def test_command_lines(line: str, options: dict[str, dict[str, str]]) -> None:
    assert shown_options.is_command(line)
    assert shown_options.of_command(line) == options


@pytest.mark.emulator
@pytest.mark.parametrize(
    "options",
    [
        "--name=m --rw=randrw --rwmixread=70 --numjobs=2 --group_reporting --iodepth=8 --ioengine=libaio",
        "--name=s --rw=randwrite --fdatasync=1 --ioengine=psync",
        "--name=l --rw=randread --disable_lat=1 --ioengine=libaio --iodepth=4 --lat_percentiles=1",
    ],
)
def test_the_text_and_the_json_of_one_run_agree(tmp_path: Path, options: str) -> None:
    command = ["fio", *options.split(), f"--filename={tmp_path}/f", "--size=2m", "--bs=4k", "--runtime=300ms"]
    more = ["--time_based", "--output-format=normal,json"]
    printed = subprocess.run([*command, *more], check=True, capture_output=True, text=True).stdout
    start, end = printed.index("{\n"), printed.rindex("\n}\n") + 3
    (told,) = json_files.parse(printed[start:end], "x").measurements
    text = one(" ".join(command) + "\n" + printed[:start] + printed[end:])
    assert (text.load, text.target) == (told.load, told.target)
    assert set(text.directions) == set(told.directions)
    for name, part in told.directions.items():
        other = text.directions[name]
        assert (other.ios, other.runtime_ms) == (part.ios, part.runtime_ms)
        assert other.iops == pytest.approx(part.iops, rel=1e-6)
        assert other.bw_bytes == pytest.approx(part.bw_bytes, rel=0.02)
        for key in ("lat_mean_ms", "lat_stddev_ms", "lat_min_ms", "lat_max_ms", "lat_p50_ms", "lat_p99_ms"):
            expected = getattr(part, key)
            step = 1.01 if part.lat_max_ms >= 99.9 else 0.0011  # fio may print whole milliseconds then
            assert getattr(other, key) == pytest.approx(expected, rel=0.01, abs=step, nan_ok=True)


@pytest.mark.parametrize(
    ("printed", "size"),
    [
        ("64.0KiB", 65536), ("128KiB", 131072), ("10.5KiB", 10752), ("1024KiB", 2**20), ("9728B", 9728),
        ("65.5kB", 65536), ("1.50MiB", 3 * 2**19), ("4096B", 4096), ("11B", 11), ("9.77KiB", 10004),
    ],
)  # fmt: skip
def test_block_sizes_with_decimals_are_one_size(printed: str, size: int) -> None:
    """fio 3 prints sizes with up to four digits, so that 64 KiB read "64.0KiB"."""
    start = START_3.replace("8192B", printed)
    job = one(start + "fio-3.28\nStarting 4 processes\n" + REPORT_3)
    assert job.load.block_size_bytes == size
    assert not any("varies" in flag for flag in job.flags)


@pytest.mark.parametrize(
    ("line", "version"),
    [("2.0.8", "2.0.8"), ("fio 1.59", "1.59"), ("fio-2.0.8-9-gfb9f0", "2.0.8-9-gfb9f0"), ("2.0", "2.0")],
)
def test_version_lines_of_old_releases(line: str, version: str) -> None:
    assert normal.parse(START_2 + f"{line}\nStarting 4 processes\n" + REPORT_2, "x").version == version


def test_thousands_of_fio_1_have_commas() -> None:
    text = (
        REPORT_2.replace("io=1172.6MB, bw=39991KB/s, iops=4998", "io=1,172MB, bw=39,991KB/s, iops=4,998")
        .replace("max=190, avg=51.21", "max=1,190, avg=1,051.21")
        .replace("clat (msec)", "clat (usec)")
    )
    write = one(START_2 + "fio 1.57\nStarting 4 processes\n" + text).directions["write"]
    assert write.ios == 150087 and write.bw_bytes == pytest.approx(39991 * 1024, rel=1e-3)
    assert (write.lat_mean_ms, write.lat_max_ms) == pytest.approx((1051.21, 1190))
