"""fio's logs: real ones against the JSON of the same run, made-up ones against what was put into them."""

from __future__ import annotations

import io
import json
import math
from pathlib import Path

import numpy as np
import pytest

from checks import bench_import
from diskbook.facts.errors import DiskbookError
from diskbook.importing.fio import json_files, log_histogram, logs_of_a_job as job_logs
from diskbook.importing.fio.logs_of_a_job import LogFile
from diskbook.tools.fio import held_rate, log as fio_log
from diskbook.tools.fio.latency import index_value
from diskbook.tools.record import Measurement, UnusableError
from support import SAMPLES

FOLDER = SAMPLES / "fio-logs"


def measured(name: str) -> Measurement:
    return json_files.parse((FOLDER / f"{name}.json").read_text(), name).measurements[0]


def log(name: str) -> LogFile:
    return LogFile(name, lambda: (FOLDER / name).open("rb"))


def text_log(text: str, name: str = "x.log") -> LogFile:
    return LogFile(name, lambda: io.BytesIO(text.encode()))


def summary(text: str, unit_ns: int = 1) -> held_rate.LatencyLog:
    return held_rate.summarise(io.BytesIO(text.encode()), "x.log", unit_ns)


# --- single I/Os


def test_logs_of_every_io_give_the_totals_of_the_run() -> None:
    told = measured("each").directions
    found = job_logs.read(
        {"lat": [log("each_lat.1.log"), log("each_lat.2.log")]}, old=False, interval_s=None, block_size=None
    )
    for name in ("read", "write"):
        mine = found.directions[name]
        assert mine.ios == told[name].ios
        assert mine.lat_mean_ms == pytest.approx(told[name].lat_mean_ms, rel=1e-6)
        assert mine.lat_max_ms == pytest.approx(told[name].lat_max_ms)
        assert mine.iops == pytest.approx(told[name].iops, rel=0.02)
        assert mine.bins == told[name].bins
        assert found.series[name].second.tolist() == [1, 2]
        assert found.series[name].iops.mean() == pytest.approx(told[name].iops, rel=0.05)
    assert found.block_size_bytes == 4096


def since_the_epoch(name: str) -> LogFile:
    """A log as log_unix_epoch writes it: the same times, counted from 1970."""
    lines = (FOLDER / name).read_text().splitlines()
    pairs = (line.split(",", 1) for line in lines)
    return text_log("".join(f"{1_795_194_062_000 + int(time)},{rest}\n" for time, rest in pairs), name)


@pytest.mark.parametrize(
    ("kinds", "interval_s", "block_size"),
    [
        ({"lat": "each_lat"}, None, None),
        ({"lat": "mean_lat", "iops": "mean_iops"}, 0.5, None),
        ({"lat": "mean_lat", "iops": "mean_iops"}, None, None),
        ({"bw": "mean_bw"}, 0.5, 4096),
        ({"clat_hist": "fine_clat_hist"}, None, None),
    ],
)
def test_times_since_the_epoch_count_from_the_logs_begin(
    kinds: dict[str, str], interval_s: float | None, block_size: int | None
) -> None:
    names = {kind: sorted(path.name for path in FOLDER.glob(f"{of}.*.log")) for kind, of in kinds.items()}
    asked = {"old": False, "interval_s": interval_s, "block_size": block_size}
    plain = job_logs.read({kind: [log(name) for name in some] for kind, some in names.items()}, **asked)
    epoch = {kind: [since_the_epoch(name) for name in some] for kind, some in names.items()}
    found = job_logs.read(epoch, **asked)
    assert found.series.keys() == plain.series.keys()
    for name, series in found.series.items():
        assert series.second == pytest.approx(plain.series[name].second, abs=0.02)
        assert series.iops.sum() == pytest.approx(plain.series[name].iops.sum(), rel=0.02)


def test_times_since_the_epoch_and_since_the_start_are_not_mixed() -> None:
    with pytest.raises(UnusableError, match="line 2: this is not a line of a log"):
        summary("5, 1500, 0, 4096\n1795194062000, 500, 0, 4096\n")
    with pytest.raises(UnusableError, match="s apart"):
        summary("1795194062000, 1500, 0, 4096\n2795194062000, 500, 0, 4096\n")


def test_the_interval_is_that_of_one_direction() -> None:
    """Reads and writes of an interval may be logged a ms apart."""
    lines = "".join(f"{500 * k}, 100, 0, 0\n{500 * k + 1}, 50, 1, 0\n" for k in range(1, 6))
    found = job_logs.read({"iops": [text_log(lines)]}, old=False, interval_s=None, block_size=None)
    assert found.series["write"].second.tolist() == [0.5, 1.0, 1.5, 2.0, 2.5]
    assert found.block_size_bytes is None


def test_one_line_without_an_end_is_too_little() -> None:
    for kinds in ({"iops": [text_log("500, 100, 0, 0")]}, {"bw": [text_log("500, 100, 0, 0")]}):
        with pytest.raises(DiskbookError):
            job_logs.read(kinds, old=False, interval_s=0.5, block_size=4096)


def test_bandwidth_and_iops_together_tell_the_block_size() -> None:
    names = {kind: [log(f"mean_{kind}.{clone}.log") for clone in (1, 2)] for kind in ("iops", "bw")}
    found = job_logs.read(names, old=False, interval_s=None, block_size=None)
    assert found.block_size_bytes == 4096


def test_bins_are_those_of_fio() -> None:
    values = np.array([0, 1, 63, 64, 127, 128, 129, 1000, 12345678, 2**40 + 7])
    index = held_rate.bin_index(values)
    centres = np.array([index_value(int(one)) for one in index])
    assert centres[:5].tolist() == values[:5].tolist()
    assert (np.abs(centres - values) <= np.maximum(values / 128, 0)).all()
    assert (np.diff(index) >= 0).all()


def test_microseconds_of_fio_2() -> None:
    assert summary("5, 1500, 0, 4096\n9, 500, 0, 4096\n", 1000).directions["read"].lat_mean_ms == 1.0


@pytest.mark.parametrize("more", ["", ", 0", ", 1048576, 0", ", 1048576, 0, 7"])
def test_further_columns_are_not_latencies(more: str) -> None:
    """The fifth is an offset in old versions and a priority in new ones."""
    text = "".join(f"{1000 * k}, {1_000_000 * k}, 1, 4096{more}\n" for k in range(1, 5))
    assert summary(text).directions["write"].lat_mean_ms == 2.5


def test_trims_are_no_reads_or_writes() -> None:
    found = summary("1, 1000, 0, 4096\n2, 9000, 2, 4096\n")
    assert set(found.directions) == {"read"} and found.directions["read"].ios == 1


def test_a_last_line_that_was_cut_is_left_out_and_told() -> None:
    found = summary("1, 1000, 0, 4096, 0\n2, 3000, 0, 4096, 0\n3, 9000")
    assert found.directions["read"].ios == 2
    assert found.flags == ("the last line is cut short and left out",)


def test_the_line_that_is_none_is_named_across_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = [f"{k}, 1000, 0, 4096, 0" for k in range(5000)]
    lines[3210] = "3210, oops, 0, 4096, 0"
    stream = io.BytesIO("\n".join(lines).encode())
    monkeypatch.setattr(fio_log, "BLOCK_BYTES", 4096)
    with pytest.raises(UnusableError, match=r"^x\.log, line 3211: .*'3210, oops, 0, 4096, 0'"):
        [len(rows.value) for rows, _ in fio_log.parsed(stream, "x.log")]


def test_blocks_do_not_change_what_is_read() -> None:
    content = (FOLDER / "each_lat.1.log").read_bytes()
    whole, _ = fio_log.read_rows(content, "x")
    parts = [fio_log.parse_block(block, "x") for block in fio_log.blocks_of(io.BytesIO(content), "x", 777)]
    assert len(parts) > 5
    assert np.array_equal(np.concatenate([part.value for part in parts]), whole.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1, 2\n", "line 1: this is not a line of a log"),
        ("1, 5, 0, 4096\n2, -5, 0, 4096\n", "line 2: .*-5"),
        ("1, 5, 9, 4096\n", "line 1: "),
        ("99999999999999, 5, 0, 4096\n", "line 1: "),
        ("1, 5, 0, 4096\n1, 99999999999999999999, 0, 4096\n", "line 2: "),
        ("500, 5, 0, 0\n1000, 5, 0, 0\n", "averages over intervals"),
    ],
)
def test_damaged_logs_are_refused(text: str, message: str) -> None:
    with pytest.raises(UnusableError, match=message):
        summary(text)


# --- averages


def test_averaged_logs_give_the_series_of_all_clones() -> None:
    told = measured("mean")
    assert told.log_interval_s == 0.5
    logs = {kind: [log(f"mean_{kind}.{k}.log") for k in (1, 2)] for kind in ("lat", "iops", "bw")}
    found = job_logs.read(logs, old=False, interval_s=0.5, block_size=4096)
    for name in ("read", "write"):
        series, part = found.series[name], told.directions[name]
        assert np.allclose(np.diff(series.second), 0.5)
        assert series.iops.mean() == pytest.approx(part.iops, rel=0.05)
        assert np.average(series.lat_mean_ms, weights=series.iops) == pytest.approx(
            part.lat_mean_ms, rel=0.15
        )
    assert found.directions == {}


def averaged(jobs: list[list[int]]) -> fio_log.Rows:
    """Read the log of jobs that had 100 IOPS in intervals that end at these times, in ms."""
    lines = [f"{time}, 100, 0, 0, 0\n" for job in jobs for time in job]
    return fio_log.read_rows("".join(lines).encode(), "iops.log")[0]


def test_jobs_that_begin_half_an_interval_late_leave_no_gaps() -> None:
    """The lines of two jobs, some of them a little before and some after the middle of an interval."""
    late = [149, 251, 349, 451, 549, 651, 751, 849, 951]
    later = [time + 12 for time in late]
    series = fio_log.series_of(fio_log.no_rows(), averaged([late, later]), 0.1)["read"]
    assert np.allclose(series.second, np.arange(1, 10) / 10) and set(series.iops) == {200.0}


@pytest.mark.parametrize(
    ("jobs", "rates"),
    [
        ([[100, 200, 300], [100, 201]], [200, 200]),
        ([[100, 200], [100, 201, 300]], [200, 200]),
        ([[100, 200, 300, 400], [100, 201]], [200, 200, 100, 100]),
        ([[100, 200, 300], [101, 200, 300]], [200, 200, 200]),
        ([[100, 200], [100]], []),
    ],
    ids=["the first only", "the second only", "one that ended before", "both", "one is left"],
)
def test_a_last_interval_that_fio_logged_of_some_jobs_is_no_dip(
    jobs: list[list[int]], rates: list[int]
) -> None:
    series = fio_log.series_of(fio_log.no_rows(), averaged(jobs), 0.1)
    assert [rate for part in series.values() for rate in part.iops] == rates


def test_bandwidth_stands_in_for_iops() -> None:
    files = [log("mean_bw.1.log"), log("mean_bw.2.log")]
    found = job_logs.read({"bw": files}, old=False, interval_s=0.5, block_size=4096)
    assert found.series["read"].iops.mean() == pytest.approx(
        measured("mean").directions["read"].iops, rel=0.05
    )
    assert np.isnan(found.series["read"].lat_mean_ms).all()
    with pytest.raises(UnusableError, match="alone it tells no IOPS"):
        job_logs.read({"bw": files}, old=False, interval_s=0.5, block_size=None)


def test_averages_alone_make_a_measurement_without_percentiles() -> None:
    logs = {kind: [log(f"mean_{kind}.{k}.log") for k in (1, 2)] for kind in ("lat", "iops")}
    found = job_logs.read(logs, old=False, interval_s=None, block_size=None)
    one = job_logs.standalone(found, "mean", 2)
    told = measured("mean").directions["read"]
    assert one.directions["read"].iops == pytest.approx(told.iops, rel=0.05)
    assert one.directions["read"].lat_mean_ms == pytest.approx(told.lat_mean_ms, rel=0.15)
    assert math.isnan(one.directions["read"].lat_p99_ms)


# --- histograms


@pytest.mark.parametrize(("name", "direction"), [("fine", "read"), ("hist", "write")])
def test_histogram_logs_against_the_run(name: str, direction: str) -> None:
    found = log_histogram.summarise((FOLDER / f"{name}_clat_hist.1.log").read_bytes(), name)
    told = json.loads((FOLDER / f"{name}.json").read_text())["jobs"][0][direction]
    part = found.directions[direction]
    # fio logs whole intervals: the rest at the end is not in it.
    assert 0.6 * told["total_ios"] < part.ios <= told["total_ios"]
    assert part.iops == pytest.approx(told["iops"], rel=0.05)
    assert part.lat_max_ms <= told["clat_ns"]["max"] / 1e6 * 1.1
    assert found.series[direction].iops.mean() == pytest.approx(told["iops"], rel=0.1)
    assert found.block_size_bytes == 4096


def hist_line(time_ms: int, direction: int, counts: dict[int, int], bins: int = 1856) -> str:
    fields = [0] * bins
    for index, count in counts.items():
        fields[index] = count
    return ", ".join(map(str, (time_ms, direction, 4096, *fields))) + "\n"


def test_counts_go_into_their_bins_and_intervals() -> None:
    text = hist_line(1000, 0, {700: 3, 1855: 1}) + hist_line(1000, 1, {0: 5}) + hist_line(2000, 0, {700: 12})
    found = log_histogram.summarise(text.encode(), "x")
    read = found.directions["read"]
    assert read.bins == {index_value(700): 15, round(index_value(1855)): 1}
    assert found.series["read"].iops.tolist() == [4, 12]
    assert found.series["read"].lat_mean_ms[1] == pytest.approx(index_value(700) / 1e6)
    assert found.directions["write"].ios == 5


def test_histograms_of_fio_2_are_microseconds_and_coarse_ones_have_wider_bins() -> None:
    old = log_histogram.summarise(hist_line(1000, 0, {100: 1}, 1216).encode(), "x")
    assert list(old.directions["read"].bins) == [100_000]
    coarse = log_histogram.summarise(hist_line(1000, 0, {100: 1}, 232).encode(), "x")
    (value,) = coarse.directions["read"].bins
    assert index_value(800) <= value <= index_value(807)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1, 0, 4096, 5\n", "line 1: .* no histogram of fio"),
        (
            hist_line(1, 0, {5: 1}) + hist_line(2, 0, {5: 1})[:-6] + "\n" + hist_line(3, 0, {}),
            "line 2: .* fields",
        ),
        (hist_line(1, 0, {5: 1}).replace("0, 0, 0", "0, x, 0", 1), "line 1: .*signs"),
        (hist_line(1, 0, {5: 10**16}), "line 1: a number has more than 15 digits"),
        (hist_line(1, 0, {5: 1}) + hist_line(2, 7, {5: 1}), "line 2: its time or direction"),
        (hist_line(1, 0, {}), "no read or write"),
    ],
)
def test_damaged_histograms_are_refused(text: str, message: str) -> None:
    with pytest.raises(UnusableError, match=message):
        log_histogram.summarise(text.encode(), "x")


def test_the_benchmarks_own_inputs_are_read_right(tmp_path: Path) -> None:
    bench_import.latency_log(tmp_path / "l.log", 20_000)
    with (tmp_path / "l.log").open("rb") as stream:
        found = held_rate.summarise(stream, "l.log")
    assert sum(part.ios for part in found.directions.values()) == 20_000
    assert found.directions["read"].lat_p50_ms == pytest.approx(math.exp(13.8) / 1e6, rel=0.05)
