"""fio's JSON of versions 2 and 3, and its terse output: real files, and the traps met with in the wild."""

from __future__ import annotations

import gzip
import json
import math
import subprocess
from pathlib import Path
from typing import Any

import pytest

from diskbook.importing.fio import json_files, terse as fio_terse
from diskbook.tools import fio
from diskbook.tools.fio import options as fio_options
from diskbook.tools.record import Direction, Measurement, Parsed, UnusableError, merge_bins, pooled
from support import SAMPLES


def content(name: str) -> str:
    path = SAMPLES / name
    data = gzip.decompress(path.read_bytes()) if name.endswith(".gz") else path.read_bytes()
    return data.decode()


def parsed(name: str) -> Parsed:
    return json_files.parse(content(name), name)


def jobs_of(name: str) -> list[dict[str, Any]]:
    """Jobs of the last document, read without the parser."""
    text = content(name)
    document = json.loads(text[text.index("{") :])
    return document.get("jobs") or document["client_stats"]


# --- JSON


def test_live_runs_and_imports_read_the_same() -> None:
    """Of every sample that a live run may read, jobs together there, each by itself here."""
    compared = []
    for path in sorted(path for path in SAMPLES.glob("fio*/*") if path.is_file()):
        text = content(str(path.relative_to(SAMPLES)))
        try:
            live = fio.parse_output(text, path.name)
        except UnusableError:
            continue
        jobs = json_files.parse(text, path.name).measurements
        for name, part in live.directions.items():
            parts = [job.directions[name] for job in jobs if name in job.directions]
            assert part.ios == sum(other.ios for other in parts)
            assert part.iops == pytest.approx(sum(other.iops for other in parts))
            assert part.runtime_ms == max(other.runtime_ms for other in parts)
            assert part.bins == merge_bins([other.bins for other in parts])
            counts = [other.ios for other in parts]
            spread = pooled([x.lat_mean_ms for x in parts], [x.lat_stddev_ms for x in parts], counts)
            assert (part.lat_mean_ms, part.lat_stddev_ms) == pytest.approx(spread, nan_ok=True)
            if len(parts) == 1:
                _same_numbers(part, parts[0])
            compared.append((path.name, name))
    assert len(compared) >= 10
    assert {name for _, name in compared} == {"read", "write"}


def _same_numbers(live: Direction, imported: Direction) -> None:
    for key in (
        "lat_min_ms",
        "lat_max_ms",
        *(("lat_p50_ms", "lat_p99_ms", "lat_p999_ms") if live.bins else ()),
    ):
        assert getattr(live, key) == pytest.approx(getattr(imported, key), nan_ok=True)


def test_jobs_are_measurements_and_clones_are_one() -> None:
    found = {one.name: one for one in parsed("fio-2.16/json.json").measurements}
    assert list(found) == ["rr", "rw", "wr"]
    clones = [job for job in jobs_of("fio-2.16/json.json") if job["jobname"] == "rr"]
    assert len(clones) == 2
    rr = found["rr"].directions["read"]
    assert rr.ios == sum(job["read"]["total_ios"] for job in clones)
    assert rr.iops == pytest.approx(sum(job["read"]["iops"] for job in clones))
    assert (found["rr"].load.threads, found["rr"].load.queue_depth) == (2, 4)
    assert (found["rw"].load.write_pct, found["wr"].load.block_size_bytes) == (30, 65536)
    assert math.isnan(rr.lat_p99_ms)  # percentiles of two jobs cannot be joined
    assert found["rw"].directions["read"].lat_p99_ms > 0


def test_fio_2_counts_microseconds_and_kib() -> None:
    (one,) = [item for item in parsed("fio-2.16/json.json").measurements if item.name == "wr"]
    job = next(job for job in jobs_of("fio-2.16/json.json") if job["jobname"] == "wr")["write"]
    write = one.directions["write"]
    assert write.lat_mean_ms == pytest.approx(job["lat"]["mean"] / 1000)
    assert write.lat_p99_ms == pytest.approx(job["clat"]["percentile"]["99.000000"] / 1000)
    # Bytes a second are IOPS x 64 KiB: io_bytes of this version are KiB.
    assert write.bw_bytes == pytest.approx(write.iops * 65536, rel=0.01)
    assert parsed("fio-2.16/json.json").version == "2.16"


def test_bins_of_fio_2_are_indices() -> None:
    found = {one.name: one for one in parsed("fio-2.16/jsonplus.json.gz").measurements}
    job = next(job for job in jobs_of("fio-2.16/jsonplus.json.gz") if job["jobname"] == "rw")["read"]
    read = found["rw"].directions["read"]
    told = {float(key): value / 1000 for key, value in job["clat"]["percentile"].items()}
    assert read.lat_p50_ms == pytest.approx(told[50.0], rel=0.02)
    assert read.lat_p999_ms == pytest.approx(told[99.9], rel=0.02)
    assert max(read.bins) / 1e6 == pytest.approx(job["clat"]["max"] / 1000, rel=0.02)
    assert sum(read.bins.values()) == pytest.approx(read.ios, rel=0.02)  # I/Os of before and after, too


@pytest.mark.parametrize("name", ["fio/json-status-interval.json", "fio-2.16/status.json"])
def test_of_cumulative_documents_the_last_counts(name: str) -> None:
    found = parsed(name)
    (one,) = found.measurements
    last = content(name).rindex('"fio version"')
    job = json.loads("{" + content(name)[last:])["jobs"][0]
    assert one.directions["read"].ios == job["read"]["total_ios"]
    assert any("status-interval" in flag for flag in found.flags)


def test_of_cumulative_documents_a_cut_last_one_is_left_out() -> None:
    text = content("fio/json-status-interval.json")
    last = text.rindex('{\n  "fio version"')
    complete = json_files.parse(text[:last], "x").measurements[0].directions
    found = json_files.parse(text[: last + 900], "x")
    assert found.measurements[0].directions == complete


def test_one_document_twice_counts_once_and_two_runs_are_two() -> None:
    text = content("fio/json-gtod_reduce.json")
    twice = json_files.parse(text + text, "x")
    assert len(twice.measurements) == 1
    assert any("twice" in flag for flag in twice.flags)
    document = json.loads(text)
    document["timestamp"] += 60
    document["timestamp_ms"] += 60_000
    later = json_files.parse(text + json.dumps(document).replace('{"fio', '{\n"fio', 1), "x")
    assert len(later.measurements) == 2
    assert "the file holds 2 runs" in later.flags


def test_client_mode_leaves_the_sum_of_all_clients_out() -> None:
    found = parsed("fio/client-json.txt").measurements
    assert [one.name for one in found] == ["rr", "rw", "wr"]
    clones = [job for job in jobs_of("fio/client-json.txt") if job["jobname"] == "rr"]
    assert found[0].directions["read"].ios == sum(job["read"]["total_ios"] for job in clones)
    assert found[0].host == "127.0.0.1"


def test_cut_by_a_full_disk_what_came_before_is_used() -> None:
    found = parsed("fio/output-disk-full-truncated.json")
    (one,) = found.measurements
    assert set(one.directions) == {"read"}
    assert one.directions["read"].ios == 27990
    assert "writes are cut off and left out" in one.flags
    assert any("cut or damaged at line 311" in flag for flag in found.flags)


def test_a_job_with_an_error_is_left_out_and_the_others_are_used() -> None:
    found = parsed("fio/jsonplus-3jobs.json")
    assert [one.name for one in found.measurements] == ["j3"]
    assert "job 'j1' cannot be used: fio ended it with error 22 (Invalid argument)" in found.flags


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("fio/diskfull.json", r"line 2: job 'df' .* error 28 \(No space left on device\)"),
        ("fio/missing-file-nocreate.json", r"job 'nofile' cannot be used: fio did no I/O"),
        ("fio/diskfull.json.stderr", r"there is no JSON of fio"),
    ],
)
def test_what_cannot_be_used_is_refused_in_one_sentence(name: str, message: str) -> None:
    with pytest.raises(UnusableError, match=message) as found:
        parsed(name)
    assert "\n" not in str(found.value)


def test_an_interrupted_run_is_used_and_flagged() -> None:
    found = parsed("fio/sigint.json")
    assert "fio was interrupted by a signal" in found.flags
    assert "measured for 2.602 s of 10 s" in found.measurements[0].flags


def test_missing_latencies_are_not_zero() -> None:
    read = parsed("fio/json-gtod_reduce.json").measurements[0].directions["read"]
    assert read.ios == 27518
    assert math.isnan(read.lat_mean_ms) and math.isnan(read.lat_p50_ms)


def changed(name: str, **changes: Any) -> Parsed:
    """Parse a sample whose first job's read section has other values."""
    document = json.loads(content(name))
    document["jobs"][0]["read"].update(changes)
    return json_files.parse(json.dumps(document, indent=1).replace('{\n "fio', '{"fio', 1), "x")


def test_values_that_are_no_numbers_are_left_out() -> None:
    text = content("fio/json-gtod_reduce.json").replace('"bw_dev" : 0.000000', '"bw_dev" : -nan')
    found = json_files.parse(text, "x")
    assert found.measurements[0].directions["read"].ios == 27518
    assert "values that are not numbers (nan, inf) are left out" in found.flags
    with pytest.raises(UnusableError, match="iops is out of range"):
        changed("fio/json-gtod_reduce.json", iops=-5)
    with pytest.raises(UnusableError, match="total_ios is not a number"):
        changed("fio/json-gtod_reduce.json", total_ios="many")


def test_keys_that_are_there_twice_are_told() -> None:
    text = content("fio/json-gtod_reduce.json").replace(
        '"rw" : "randread"', '"rw" : "write", "rw" : "randread"'
    )
    found = json_files.parse(text, "x")
    assert any("'rw'; the last counts" in flag for flag in found.flags)
    assert found.measurements[0].load.write_pct == 0


def test_percentiles_at_the_end_of_the_histogram_are_told() -> None:
    job = json.loads(content("fio/json-group_reporting.json"))["jobs"][0]["read"]
    found = changed("fio/json-group_reporting.json", lat_ns={**job["lat_ns"], "max": 25_000_000_000})
    assert any("17.11 s" in flag for flag in found.measurements[0].flags)
    above = {"99.000000": 99_000_000_000}
    found = changed("fio/json-group_reporting.json", clat_ns={**job["clat_ns"], "percentile": above})
    assert any("above the largest latency" in flag for flag in found.measurements[0].flags)


def test_json_in_another_order_of_keys_is_found() -> None:
    document = json.loads(content("fio/json-gtod_reduce.json"))
    ordered = json.dumps(dict(sorted(document.items(), reverse=True)))
    assert json_files.parse(f"[{ordered}]", "x").measurements[0].directions["read"].ios == 27518


# --- options


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (
            {"rw": "randwrite", "bs": "8k", "iodepth": "5", "numjobs": "8", "ioengine": "libaio"},
            (100, 8192, 8, 5),
        ),
        (
            {"rw": "randrw", "rwmixread": "70", "bs": "64KiB", "iodepth": "4", "ioengine": "io_uring"},
            (30, 65536, 1, 4),
        ),
        ({"rw": "write", "iodepth": "32", "ioengine": "psync"}, (100, 4096, 1, 1)),
        ({"rw": "randrw", "bs": "4k,8k", "iodepth": "2", "ioengine": "libaio"}, (50, None, 1, 2)),
        ({"readwrite": "randread", "blocksize": "1m"}, (0, 1024**2, 1, 1)),
    ],
)
def test_options_become_a_load(options: dict[str, str], expected: tuple[Any, ...]) -> None:
    load = fio_options.load(options, 1, math.nan, [])
    assert (load.write_pct, load.block_size_bytes, load.threads, load.queue_depth) == expected


def test_rates_are_totals_of_threads_and_directions() -> None:
    options = {"rw": "randrw", "rate_iops": "140,60", "numjobs": "2"}
    assert fio_options.load(options, 1, math.nan, []).rate == 400
    assert fio_options.load({**options, "rw": "randread"}, 1, math.nan, []).rate == 280


def test_rates_in_bytes_are_iops_where_the_block_size_is_one() -> None:
    options = {"rw": "randrw", "rate": "800k,400k", "bs": "8k", "numjobs": "2"}
    flags: list[str] = []
    assert fio_options.load(options, 1, math.nan, flags).rate == 300
    assert fio_options.load({**options, "rate": "1m", "thinktime": "0"}, 1, math.nan, flags).rate == 512
    assert not flags
    # Blocks of several sizes, or writes without a limit, have no rate in IOPS.
    assert fio_options.load({**options, "bs": "4k,8k"}, 1, math.nan, flags).rate is None
    assert fio_options.load({**options, "rate": "800k,"}, 1, math.nan, flags).rate is None
    assert flags.count("the rate was limited in a way that gives no IOPS") == 2


@pytest.mark.parametrize(
    ("options", "sync"),
    [
        ({"rw": "write", "fdatasync": "1"}, "fdatasync"),
        ({"rw": "write", "fsync": "32"}, None),
        ({"rw": "write", "sync": "dsync"}, "dsync"),
        ({"rw": "read", "sync": "1"}, None),
    ],
)
def test_only_a_sync_of_every_write_is_a_commit(options: dict[str, str], sync: str | None) -> None:
    assert fio_options.load(options, 1, math.nan, []).sync == sync


def test_reads_and_writes_as_one_are_refused_with_that_reason() -> None:
    told = json.loads(content("fio/json-group_reporting.json"))
    for job in told["jobs"]:
        job["mixed"] = job.pop("read")
        del job["write"]
    with pytest.raises(UnusableError, match="reported as one"):
        json_files.parse(json.dumps(told), "x")


def test_logs_of_maxima_are_told() -> None:
    told = json.loads(content("fio/json-group_reporting.json"))
    told["global options"]["log_max_value"] = "1"
    found = json_files.parse(json.dumps(told), "x")
    assert any("log_max_value" in flag for flag in found.measurements[0].flags)


@pytest.mark.emulator
def test_some_clones_of_a_cut_file_are_no_total(tmp_path: Path) -> None:
    options = ["--name=c", "--ioengine=null", "--size=8m", "--rw=randread", "--bs=4k", "--numjobs=2"]
    command = ["fio", *options, "--output-format=json"]
    text = subprocess.run(command, check=True, capture_output=True, text=True, cwd=tmp_path).stdout
    whole = json_files.parse(text, "x").measurements[0].directions["read"].ios
    assert whole == 2 * 2048
    second = text.rindex('"jobname"')
    for end in range(second - 10, len(text) - 200, 97):
        try:
            found = json_files.parse(text[:end], "x").measurements[0].directions["read"].ios
        except UnusableError:
            continue
        assert found == whole
    with pytest.raises(UnusableError, match="holds 1 of its 2 clones"):
        json_files.parse(text[:second], "x")


# --- terse


@pytest.mark.parametrize("version", [2, 3, 4, 5])
def test_every_version_of_terse_output(version: int) -> None:
    found = fio_terse.parse(content(f"fio-terse/v{version}.txt"), "x")
    (one,) = found.measurements
    assert found.version == ("unknown" if version == 2 else "3.33")
    assert one.name == f"randrw-{version}"
    assert one.directions["read"].iops == pytest.approx(2000, rel=0.05)
    assert one.directions["write"].iops == pytest.approx(1000, rel=0.2)
    assert one.directions["read"].bw_bytes == pytest.approx(one.directions["read"].iops * 4096, rel=0.01)
    assert one.load.queue_depth == 1  # with its rate limited, one I/O was in flight


@pytest.mark.emulator
def test_terse_and_json_of_one_run_agree(tmp_path: Path) -> None:
    options = ["--name=t", "--ioengine=null", "--size=8m", "--rw=randread", "--bs=4k", "--rate_iops=4000"]
    command = ["fio", *options, "--output-format=json,terse", "--terse-version=3"]
    text = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True).stdout
    here, there = fio_terse.parse(text, "x").measurements[0], json_files.parse(text, "x").measurements[0]
    terse, full = here.directions["read"], there.directions["read"]
    assert terse.ios == pytest.approx(full.ios, rel=0.01)
    assert terse.lat_mean_ms == pytest.approx(full.lat_mean_ms, rel=0.01)
    assert terse.bw_bytes == pytest.approx(full.bw_bytes, rel=0.01)


@pytest.mark.emulator
@pytest.mark.parametrize("clones", [1, 2])
def test_terse_output_of_a_job_that_goes_on_counts_once(tmp_path: Path, clones: int) -> None:
    options = ["--name=a", f"--filename={tmp_path}/x", "--size=1m", "--rw=randread", f"--numjobs={clones}"]
    pace = ["--time_based", "--runtime=2500ms", "--thinktime=2000", "--status-interval=1"]
    command = ["fio", *options, *pace, "--output-format=terse"]
    text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    lines = [line.split(";") for line in text.splitlines() if line.count(";") > 80]
    assert len(lines) > clones
    (one,) = fio_terse.parse(text, "x").measurements
    assert one.directions["read"].iops == sum(float(line[7]) for line in lines[-clones:])
    assert one.load.threads == clones
    assert any("status-interval" in flag for flag in one.flags)


@pytest.mark.parametrize(
    "clones",
    [
        pytest.param(["450@900 449@1900 450@2500", "440@900 209@1900 102@3900"], id="one stands still"),
        pytest.param(["400@900 367@2900 367@2900", "0@0 420@1200 426@2500"], id="one does nothing at first"),
        pytest.param(["450@900 450@1000 450@1000", "440@900 445@1900 441@2900"], id="one has ended"),
        pytest.param(["0@0 450@1900 450@2500", "0@0 440@1900 441@2500"], id="none does anything at first"),
    ],
)
def test_terse_output_counts_once_where_a_clone_stands_still(clones: list[str]) -> None:
    """As fio printed it when one of its processes was stopped."""
    one = terse_of(*(line for at_a_time in zip(*map(str.split, clones), strict=True) for line in at_a_time))
    assert one.directions["read"].iops == sum(int(clone.split()[-1].split("@")[0]) for clone in clones)
    assert one.load.threads == 2


@pytest.mark.parametrize("lines", ["0@0 450@2500 451@2501", "450@2500 0@0 451@2501", "450@2500 451@2501 0@0"])
def test_clones_beside_one_that_does_nothing_add_up(lines: str) -> None:
    one = terse_of(*lines.split())
    assert (one.directions["read"].iops, one.load.threads) == (901, 2)
    assert not any("status-interval" in flag for flag in one.flags)


def terse_of(*lines: str) -> Measurement:
    """Read terse output of one job, whose lines are given as IOPS@ms."""
    made = []
    for iops, ms in (text.split("@") for text in lines):
        made.append(terse_line(str(int(iops) * int(ms) * 4 // 1000), iops, ms))
    (one,) = fio_terse.parse("\n".join(made), "x").measurements
    return one


def terse_line(kib: str, iops: str, ms: str, latencies: list[str] | None = None) -> str:
    """Return a line of reads; latencies are least, most, mean and spread."""
    line = content("fio-terse/v3-2jobs.txt").splitlines()[0].split(";")
    kinds = line[13:17], line[37:41]
    clat, lat = (latencies, latencies) if latencies else kinds
    return ";".join([*line[:5], kib, "1", iops, ms, *line[9:13], *clat, *line[17:37], *lat, *line[41:]])


def terse_text(rows: list[str]) -> str:
    """Return lines that are given as KiB@ms least-most mean, with a bar between clones."""
    made = []
    for line in (line for row in rows for line in row.split("|")):
        done, extremes, mean = line.split()
        kib, ms = done.split("@")
        iops = int(kib) * 250 // int(ms) if int(ms) else 0
        made.append(terse_line(kib, str(iops), ms, [*extremes.split("-"), mean, "1.0"]))
    return "\n".join(made)


@pytest.mark.parametrize(
    ("rows", "iops"),
    [
        pytest.param(
            [
                "1244@889 3-17454 317.594968 | 1268@889 3-7310 281.582353",
                "3060@1888 3-17454 199.362907 | 3084@1888 3-7310 191.121650",
                "4192@2501 2-17454 175.913134 | 4216@2503 3-7310 171.067446",
            ],
            419 + 421,
            id="clones are printed at the same time",
        ),
        pytest.param(
            [
                "6144@768 1-21319 169.302217 | 6144@770 1-21583 205.690969 | 6144@769 1-21391 155.085493",
                "6144@768 1-21319 169.302217 | 6144@770 1-21583 205.690969 | 6144@769 1-21391 155.085493",
            ],
            2000 + 1994 + 1997,
            id="all have ended, and are printed twice",
        ),
        pytest.param(
            [
                "9588@1203 1-6849 93.420757 | 9568@1203 1-10857 93.538872",
                "9588@1203 1-6849 93.420757 | 9572@1212 1-10857 93.538872",
            ],
            1992 + 1974,
            id="one ends while it is printed",
        ),
        pytest.param(
            [
                "7392@1819 1-1921 812.5 | 16452@1751 2-1400 422.25",
                "46484@6689 1-2016 575.125 | 44300@6621 2-1575 597.5",
                "46488@6690 1-2016 575.15 | 44308@6622 2-1575 597.55",
                "54316@7664 1-2027 561.75 | 63108@7597 2-1575 480.5",
            ],
            1771 + 2076,
            id="fio was held up, and prints twice at once",
        ),
        pytest.param(
            [
                "1604@890 0-0 0.0 | 1604@889 0-0 0.0",
                "3404@1890 0-0 0.0 | 3404@1890 0-0 0.0",
                "1800@1000 2-343 74.706166 | 1800@999 2-348 68.986095",
                "3600@2000 2-1645 89.692531 | 3600@1999 2-1734 78.610542",
                "8100@4501 1-5088 107.489741 | 8100@4501 2-4765 99.407850",
            ],
            449 + 449,
            id="it ramps up first",
        ),
        pytest.param(
            ["1600@889 0-0 0.0 | 1600@889 0-0 0.0", "3400@1889 0-0 0.0 | 3404@1889 0-0 0.0"],
            449 + 450,
            id="no latencies are recorded",
        ),
        pytest.param(
            [
                "18000@9890 3-2658 941.5 | 18200@9890 2-1179 910.25",
                "18220@10001 3-2658 943.5 | 18420@10002 2-1179 911.0",
            ],
            455 + 460,
            id="it ends soon after it was printed",
        ),
        pytest.param(
            ["22892@5988 3-2658 941.5 | 19964@5935 2-1179 1010.25 | 22628@6120 2-1144 970.125"],
            955 + 840 + 924,
            id="clones of a run that is printed once",
        ),
    ],
)
def test_terse_output_counts_once_whatever_holds_fio_up(rows: list[str], iops: int) -> None:
    (one,) = fio_terse.parse(terse_text(rows), "x").measurements
    assert one.directions["read"].iops == iops
    assert one.load.threads == rows[0].count("|") + 1


def test_terse_lines_of_several_runs_of_one_name_are_refused() -> None:
    rows = ["9000@5000 3-900 150.0", "3000@2000 5-700 160.0", "20000@9000 4-800 155.0"]
    with pytest.raises(UnusableError, match="job 'a' are neither its clones nor"):
        fio_terse.parse(terse_text(rows).replace(content("fio-terse/v3-2jobs.txt").split(";")[2], "a"), "x")


def test_clones_in_terse_output_add_up_and_a_cut_line_is_told() -> None:
    text = content("fio-terse/v3-2jobs.txt")
    (one,) = fio_terse.parse(text, "x").measurements
    assert one.load.threads == 2
    assert one.directions["read"].iops == pytest.approx(1000, rel=0.05)
    cut = fio_terse.parse(text[: len(text) - 900], "x")
    assert cut.measurements[0].load.threads == 1
    assert cut.flags[0].startswith("line 2: it has")
    with pytest.raises(UnusableError, match="x, line 1: it has"):
        fio_terse.parse(text[:300], "x")


# --- syncs by libaio: the time of the write before is in them


def commits(engine: str, sync_ms: float, clones: int = 1, write_ms: tuple[float, float] = (4.0, 4.1)) -> str:
    """A second of commits in each clone, by fio: 100 writes of 4 ms (completion, total), and 100 syncs."""

    def latency(ms: float) -> dict[str, float]:
        return {"min": ms * 1e6, "max": ms * 1e6, "mean": ms * 1e6, "stddev": 0.0, "N": 100}

    write = {"total_ios": 100, "io_bytes": 409600, "io_kbytes": 400, "iops": 100.0, "runtime": 1000}
    write |= {"clat_ns": latency(write_ms[0]), "lat_ns": latency(write_ms[1]), "bw_min": 0}
    sync = {
        "total_ios": 0,
        "lat_ns": {**latency(sync_ms), "bins": {str(int(sync_ms * 1e6)): 100}},
        "bw_min": 0,
    }
    job = {"jobname": "trial", "groupid": 0, "error": 0, "write": write, "sync": sync}
    job["job options"] = {"name": "trial", "ioengine": engine, "rw": "randwrite", "fdatasync": "1"}
    job["job options"] |= {"numjobs": str(clones), "direct": "1"}
    return json.dumps({"fio version": "fio-3.33", "jobs": [job] * clones})


@pytest.mark.parametrize("clones", [1, 2])
def test_a_sync_by_libaio_is_freed_of_the_write_before(clones: int) -> None:
    (job,) = json_files.parse(commits("libaio", 9.8, clones), "x.json").measurements
    write, sync = job.directions["write"], job.directions["sync"]
    assert (sync.lat_mean_ms, sync.ios) == (pytest.approx(5.8), 100 * clones)
    assert write.lat_mean_ms + sync.lat_mean_ms == pytest.approx(9.9)  # what a commit took, of 10 ms
    assert not sync.bins and math.isnan(sync.lat_p99_ms) and math.isnan(sync.lat_max_ms)
    assert "fio's libaio engine counts the time of a write into the sync after it" in " ".join(job.flags)


def test_a_write_that_took_as_long_to_submit_is_taken_out_too() -> None:
    (job,) = json_files.parse(commits("libaio", 7.6, write_ms=(2.0, 4.0)), "x.json").measurements
    assert job.directions["sync"].lat_mean_ms == pytest.approx(5.6)


@pytest.mark.parametrize(("engine", "sync_ms"), [("libaio", 5.8), ("io_uring", 9.8), ("nbd", 5.8)])
def test_a_sync_that_is_timed_well_stays_as_it_is(engine: str, sync_ms: float) -> None:
    (job,) = json_files.parse(commits(engine, sync_ms), "x.json").measurements
    sync = job.directions["sync"]
    assert sync.lat_mean_ms == sync_ms and sync.bins and job.flags == ()


# --- old releases, and what is summed up


def document(version: str, options: dict[str, str] | None, **parts: Any) -> str:
    """JSON of one job; its parts are written as that version does."""
    job: dict[str, Any] = {"jobname": "trial", "groupid": 0, "error": 0, **parts}
    if options is not None:
        job["job options"] = {"name": "trial", **options}
    return json.dumps({"fio version": f"fio-{version}", "jobs": [job]})


def of_fio_2(**changes: Any) -> dict[str, Any]:
    """Reads of fio 2.1: KiB, microseconds, and no number of I/Os."""
    latency = {"min": 150, "max": 9000, "mean": 2000.0, "stddev": 100.0}
    clat = {**latency, "mean": 1990.0, "percentile": {"50.000000": 1992, "99.000000": 2224, "0.00": 0}}
    part = {"io_bytes": 400_000, "bw": 20_000, "iops": 5000, "runtime": 20_000, "lat": latency, "clat": clat}
    return part | {"slat": {"min": 0, "max": 0, "mean": 0.0, "stddev": 0.0}, "bw_min": 1} | changes


def test_before_fio_2_2_ios_follow_from_iops_and_time() -> None:
    found = json_files.parse(document("2.1.3", None, read=of_fio_2(), write=of_fio_2(iops=0, runtime=0)), "x")
    (job,) = found.measurements
    read = job.directions["read"]
    assert (read.ios, read.iops, set(job.directions)) == (100_000, 5000, {"read"})
    assert (read.lat_mean_ms, read.lat_p99_ms) == (2.0, 2.224)
    assert "the number of I/Os is IOPS x time: this fio does not tell it" in job.flags


def of_fio_3(ios: int, latency_us: float, size: int = 4096, **changes: Any) -> dict[str, Any]:
    """A second of reads or writes."""
    latency = {"min": 1000, "max": 10**9, "mean": latency_us * 1000, "stddev": 1.0, "N": ios}
    totals = {"total_ios": ios, "iops": float(ios), "runtime": 1000, "io_bytes": ios * size, "io_kbytes": 1}
    return totals | {"lat_ns": latency, "clat_ns": latency, "bw_min": 1} | changes


def test_completion_stands_in_where_the_total_was_disabled() -> None:
    none = {"min": 0, "max": 0, "mean": 0.0, "stddev": 0.0, "N": 0}
    options = {"rw": "randread", "disable_lat": "1", "bs": "4k", "ioengine": "libaio", "direct": "1"}
    text = document("3.33", options, read=of_fio_3(1000, 990.0, lat_ns=none))
    (job,) = json_files.parse(text, "x").measurements
    assert job.directions["read"].lat_mean_ms == pytest.approx(0.99)
    assert any("disable_lat" in flag for flag in job.flags)
    nothing = document("3.33", options, read=of_fio_3(1000, 0.0, lat_ns=none, clat_ns=none))
    (job,) = json_files.parse(nothing, "x").measurements
    assert math.isnan(job.directions["read"].lat_mean_ms) and "no latencies were recorded" in job.flags


READS = {"rw": "randread", "bs": "4k", "iodepth": "4", "ioengine": "libaio", "direct": "1"}


@pytest.mark.parametrize(
    "verify", [{}, {"verify": "0"}, {"verify": "none"}, {"verify": "md5", "do_verify": "0"}]
)
@pytest.mark.parametrize(
    ("parts", "message"),
    [
        (
            {"write": of_fio_3(500, 1000.0)},
            "ask for reads and 500 writes are counted: other jobs were summed",
        ),
        ({"read": of_fio_3(1000, 4000.0, size=6144)}, r"4,096 bytes were asked for, 6,144 done: other jobs"),
    ],
)
def test_a_sum_of_unlike_jobs_is_refused(parts: dict[str, Any], message: str, verify: dict[str, str]) -> None:
    with pytest.raises(UnusableError, match=message):
        json_files.parse(
            document("3.33", {**READS, **verify}, **{"read": of_fio_3(1000, 4000.0), **parts}), "x"
        )


def test_reads_of_a_verification_are_no_other_job() -> None:
    options = {**READS, "rw": "randwrite", "verify": "crc32c"}
    text = document("3.33", options, write=of_fio_3(1000, 4000.0), read=of_fio_3(1000, 100.0))
    assert set(json_files.parse(text, "x").measurements[0].directions) == {"read", "write"}


@pytest.mark.parametrize(
    ("latency_us", "threads", "flag"),
    [
        (4000, 1, None),
        (12_100, 3, "12 I/Os were in flight (IOPS x latency) where its options make 4: 3 threads are taken"),
        (6000, 1, "6 I/Os were in flight (IOPS x latency) where its options make 4: other jobs may be"),
    ],
)
def test_alike_jobs_that_are_summed_are_counted(latency_us: float, threads: int, flag: str | None) -> None:
    text = document("3.33", READS, read=of_fio_3(1000, latency_us))
    (job,) = json_files.parse(text, "x").measurements
    assert job.load.threads == threads
    assert any("group_reporting" in item for item in job.flags) == (flag is not None)
    assert flag is None or any(item.startswith(flag) for item in job.flags)


@pytest.mark.parametrize(("extra", "read"), [(14, True), (40, False)])
def test_bytes_in_flight_at_the_end_of_a_ramp_are_no_other_job(extra: int, read: bool) -> None:
    """fio counts them among the bytes, not among the I/Os: a fill of 31 I/Os at depth 16 has 45 blocks."""
    ios, block, seconds = 31, 2**20, 0.5
    size = (ios + extra) * block
    part = {
        "total_ios": ios, "io_bytes": size, "io_kbytes": size // 1024, "iops": ios / seconds,
        "runtime": 1000 * seconds, "bw_min": 1,
        "lat_ns": {"min": 1, "max": 9e8, "mean": 2.5e8, "stddev": 1, "N": ios},
    }  # fmt: skip
    options = {"rw": "write", "bs": "1m", "iodepth": "16", "ramp_time": "1s"}
    job = {"jobname": "fill", "groupid": 0, "error": 0, "job options": options, "read": {}, "write": part}
    text = json.dumps({"fio version": "fio-3.33", "jobs": [job]})
    if read:
        assert json_files.parse(text, "x").measurements[0].directions["write"].ios == ios
    else:
        with pytest.raises(UnusableError, match="other jobs were summed with it"):
            json_files.parse(text, "x")


@pytest.mark.parametrize("left", [{}, {"N": 1000}, {"percentile": {}}])
@pytest.mark.parametrize("envelope", ["{}", '{{"a": [{}]}}', "[{}]"])
def test_programs_that_write_fios_json_anew_leave_zeros_out(left: dict[str, Any], envelope: str) -> None:
    """Go's encoding: sorted keys, no zeros, empty sections; rates are told, latencies were not recorded."""
    part = {"bw": 400, "io_bytes": 4096000, "io_kbytes": 4000, "iops": 100.0, "runtime": 10000}
    job = {
        "job options": READS,
        "jobname": "job",
        "read": {**part, "clat_ns": left, "lat_ns": {}},
        "write": {},
    }
    text = envelope.format(json.dumps({"disk_util": [], "fio version": "fio-3.20", "jobs": [job]}))
    (measured,) = json_files.parse(text, "x").measurements
    read = measured.directions["read"]
    assert (read.iops, read.ios) == (100.0, 1000) and math.isnan(read.lat_mean_ms)
    assert "no latencies were recorded" in measured.flags
