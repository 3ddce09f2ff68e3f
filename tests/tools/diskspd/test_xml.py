"""DiskSpd's XML and text: real output of several versions, cut, damaged, and in odd encodings."""

from __future__ import annotations

import math
import re

import pytest

from diskbook.facts import files
from diskbook.importing import formats
from diskbook.importing.diskspd import text_output as diskspd_text
from diskbook.tools import record
from diskbook.tools.diskspd import xml as diskspd_xml
from diskbook.tools.record import Parsed, UnusableError, percentile_ns
from support import SAMPLES

FOLDER = SAMPLES / "diskspd"


def text_of(name: str) -> str:
    return files.text_of((FOLDER / name).read_bytes())[0]


def parsed(name: str) -> Parsed:
    return diskspd_xml.parse(text_of(name), name)


def told(text: str, tag: str) -> list[float]:
    """Values of an element, wherever it is: read without the parser."""
    return [float(value) for value in re.findall(rf"<{tag}>([\d.]+)</{tag}>", text)]


# --- XML


@pytest.mark.parametrize(
    ("name", "version"),
    [
        ("v2.0.17-rand-w30-L-D.xml", "2.0.17a"),
        ("v2.1-rand-w30-L-D.xml", "2.1.0-dev"),
        ("v2.2-rand-w30-L-D.xml", "2.2.0"),
    ],
)
def test_totals_latencies_and_series_of_each_version(name: str, version: str) -> None:
    text, found = text_of(name), parsed(name)
    assert (found.tool, found.version) == ("diskspd", version)
    (one,) = found.measurements
    read, write = one.directions["read"], one.directions["write"]
    assert read.ios == sum(told(text, "ReadCount"))
    assert write.ios == sum(told(text, "WriteCount"))
    assert read.iops == pytest.approx(read.ios / 5.0, rel=0.002)
    assert read.bw_bytes == pytest.approx(read.iops * 4096)
    assert [read.lat_mean_ms] == told(text, "AverageReadMilliseconds")
    assert [write.lat_mean_ms] == told(text, "AverageWriteMilliseconds")
    assert read.lat_min_ms <= read.lat_p50_ms <= read.lat_p99_ms <= read.lat_p999_ms <= read.lat_max_ms
    series = one.series["read"]
    assert series.second.tolist() == [1, 2, 3, 4, 5]
    assert series.iops.sum() == pytest.approx(read.ios, rel=0.02)
    assert (one.load.pattern, one.load.block_size_bytes, one.load.write_pct) == ("random", 4096, 30)
    assert (one.load.threads, one.load.queue_depth, one.load.ramp_s) == (2, 4, 1.0)
    assert one.target == r"C:\t.dat"
    assert one.started_utc is not None and one.started_utc.startswith("2026-11-20T08:5")


def test_bins_give_back_the_percentiles_and_count_every_io() -> None:
    (one,) = parsed("v2.2-rand-w30-L-D.xml").measurements
    read = one.directions["read"]
    assert sum(read.bins.values()) == read.ios
    wanted = [read.percentiles_ms[p] * 1e6 for p in (50.0, 90.0, 99.0, 99.9)]
    assert percentile_ns(read.bins, 0.5, 0.9, 0.99, 0.999) == pytest.approx(wanted)


def test_several_targets_are_one_measurement_and_idle_ones_are_told() -> None:
    (one,) = parsed("v2.2-3targets-F-Sh.xml").measurements
    assert one.target == r"C:\a.dat + C:\b.dat + C:\c.dat"
    # -F4 -o2 on three targets: every thread has two outstanding at each of them.
    assert (one.load.threads, one.load.queue_depth, one.load.sync) == (4, 6, "dsync")
    assert r"no I/O went to C:\b.dat + C:\c.dat" in one.flags
    assert one.directions["read"].ios == sum(told(text_of("v2.2-3targets-F-Sh.xml"), "ReadCount"))
    assert one.series["read"].second[:2].tolist() == [0.5, 1.0]
    assert not any(math.isnan(value) for value in one.series["read"].lat_mean_ms)


def test_without_latencies_they_are_missing_not_zero() -> None:
    (one,) = parsed("v2.2-readonly-noL.xml").measurements
    read = one.directions["read"]
    assert set(one.directions) == {"read"} and read.ios == 329266
    assert math.isnan(read.lat_mean_ms) and math.isnan(read.lat_p99_ms) and read.bins == {}
    assert diskspd_xml.NO_LATENCY in one.flags


def test_what_is_not_well_formed_is_mended_and_said() -> None:
    found = parsed("v2.2-xml-special-path.xml")
    assert found.measurements[0].target == r"C:\a&b.dat"
    assert any("not well-formed" in flag for flag in found.flags)


def test_an_error_is_told_in_diskspds_words() -> None:
    with pytest.raises(
        UnusableError, match=r"^v2\.2-missing-file\.xml, line 66: .*The test was interrupted before the"
    ):
        parsed("v2.2-missing-file.xml")


def test_two_time_spans_are_two_measurements_with_what_was_asked_of_each() -> None:
    text = text_of("v2.1-rand-w30-L-D.xml")
    start = text.index("<TimeSpan>")
    profile = text[start : text.index("</TimeSpan>", start) + len("</TimeSpan>")]
    asked = profile.replace("<RequestCount>4</RequestCount>", "<RequestCount>32</RequestCount>")
    results = text[text.index("</Profile>") + len("</Profile>") : text.index("</Results>")]
    twice = text.replace(profile, profile + asked).replace("</Results>", results + "</Results>")
    found = diskspd_xml.parse(twice, "x").measurements
    assert [one.load.queue_depth for one in found] == [4, 32]
    assert found[0].directions == found[1].directions


def test_two_runs_in_one_file_with_text_before_them() -> None:
    text = text_of("v2.1-rand-w30-L-D.xml")
    later = text.replace("08:58:", "09:58:")
    found = diskspd_xml.parse(f"PS C:\\> .\\diskspd.exe\n{text}\nPS C:\\> again\n{later}", "x")
    assert len(found.measurements) == 2
    assert "the file holds 2 runs" in found.flags


def test_one_run_twice_in_a_file_counts_once() -> None:
    text = text_of("v2.1-rand-w30-L-D.xml")
    found = diskspd_xml.parse(f"{text}\nPS C:\\> type out.xml\n{text}", "x")
    assert len(found.measurements) == 1
    assert found.flags == ("the same document is there twice and counts once",)


def test_runs_of_different_versions_are_not_pooled() -> None:
    text = text_of("v2.1-rand-w30-L-D.xml") + text_of("v2.2-rand-w30-L-D.xml")
    with pytest.raises(UnusableError, match=r"different versions \(2\.1\.0-dev, 2\.2\.0\)"):
        diskspd_xml.parse(text, "x")


def test_cut_after_all_counts_it_is_used_and_flagged() -> None:
    text = text_of("v2.1-rand-w30-L-D.xml")
    cut = text[: text.rindex("</Thread>") + len("</Thread>")]
    found = diskspd_xml.parse(cut, "x")
    assert found.measurements[0].directions == parsed("v2.1-rand-w30-L-D.xml").measurements[0].directions
    assert any(flag.startswith("cut or damaged at line") for flag in found.flags)


def test_cut_among_the_counts_it_is_refused() -> None:
    """The counts of some threads would pass for a slower disk."""
    text = text_of("v2.1-rand-w30-L-D.xml")
    with pytest.raises(UnusableError, match=r"^x, line \d+: .*counts of 2 threads are wanted"):
        diskspd_xml.parse(text[: text.rindex("<Thread>") + 60], "x")


@pytest.mark.parametrize(
    "declaration",
    [
        '<!DOCTYPE Results [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;">]>',
        '<!DOCTYPE Results SYSTEM "file:///etc/passwd">',
    ],
)
def test_entities_and_document_types_are_refused(declaration: str) -> None:
    inside = text_of("v2.1-rand-w30-L-D.xml").replace("<Results>", f"<Results>{declaration}", 1)
    with pytest.raises(UnusableError):
        diskspd_xml.parse(inside, "x")
    # Before the results it is not part of them; it is not expanded either.
    found = diskspd_xml.parse(declaration + text_of("v2.1-rand-w30-L-D.xml"), "x")
    assert len(found.measurements) == 1


def test_rates_are_totals_whatever_their_unit() -> None:
    text = text_of("v2.1-rand-w30-L-D.xml")
    as_iops = text.replace("<Throughput>0<", '<Throughput unit="IOPS">500<')
    as_bytes = text.replace("<Throughput>0<", "<Throughput>2048<")  # bytes a millisecond
    assert diskspd_xml.parse(as_iops, "x").measurements[0].load.rate == 1000  # of two threads
    assert diskspd_xml.parse(as_bytes, "x").measurements[0].load.rate == 1000


def test_what_a_load_in_numbers_does_not_say() -> None:
    text = text_of("v2.1-rand-w30-L-D.xml")
    assert record.CACHED in diskspd_xml.parse(text, "x").measurements[0].flags
    direct = text.replace("<WriteRatio>", "<DisableOSCache>true</DisableOSCache><WriteRatio>")
    mixed = direct.replace("</Random>", "</Random><RandomRatio>40</RandomRatio><ThinkTime>5</ThinkTime>")
    flags = diskspd_xml.parse(mixed, "x").measurements[0].flags
    assert record.CACHED not in flags
    assert {"40 % of the I/Os were random, the others in a row", "pauses (-j) limited the rate"} <= set(flags)


# --- text


def test_text_tells_what_the_tables_say() -> None:
    found = diskspd_text.parse(text_of("v2.1-rand-w30-L-D.txt"), "x")
    (one,) = found.measurements
    read, write = one.directions["read"], one.directions["write"]
    assert (read.ios, write.ios) == (139534, 59250)
    # 5.00 s is rounded; the IOPS printed beside are not.
    assert (read.iops, read.bw_bytes) == (27900.10, pytest.approx(571531264 / 139534 * 27900.10))
    # The column "MiB/s" of the same line: mebibytes.
    assert read.bw_bytes / 2**20 == pytest.approx(108.98, abs=0.05)
    assert (read.lat_mean_ms, read.lat_p50_ms, read.lat_p99_ms, read.lat_p999_ms) == (
        0.149,
        0.049,
        2.86,
        8.317,
    )
    assert (write.lat_min_ms, write.lat_max_ms) == (0.038, 14.624)
    assert (one.load.threads, one.load.queue_depth, one.load.write_pct) == (2, 4, 30)
    assert (one.load.block_size_bytes, one.load.pattern, one.target) == (4096, "random", r"C:\t.dat")
    assert found.version == "unknown"


def test_megabytes_in_old_text_are_mebibytes() -> None:
    old = text_of("v2.1-rand-w30-L-D.txt").replace("MiB/s", "MB/s ").replace("KiB", "K").replace("MiB", "MB")
    new = diskspd_text.parse(text_of("v2.1-rand-w30-L-D.txt"), "x").measurements[0]
    assert diskspd_text.parse(old, "x").measurements[0].directions == new.directions


def test_text_without_latencies() -> None:
    lines = text_of("v2.1-rand-w30-L-D.txt").split("total:\n")[0]
    bare = re.sub(r"\|  AvgLat  \|", "|", re.sub(r"\| LatStdDev \|", "|", lines))
    bare = re.sub(r"(total:.*?\|.*?\|.*?\|[^|]*)\|.*", r"\1", bare)
    (one,) = diskspd_text.parse(bare, "x").measurements
    assert one.directions["read"].ios == 139534
    assert math.isnan(one.directions["read"].lat_mean_ms)
    assert diskspd_xml.NO_LATENCY in one.flags


def pool_text(*, depth: str = "number of outstanding I/O operations per thread: 5") -> str:
    """The sample as a line with -F writes it: nothing read, a thread pool, no threads a file."""
    text = text_of("v2.1-rand-w30-L-D.txt").replace("mix test (read/write ratio: 70/30)", "write test")
    text = re.sub(r"number of outstanding I/O operations per thread: 4", depth, text)
    text = re.sub(r"\n\t\tthreads per file: 2", "", text)
    text = text.replace("software cache", "software cache disabled").replace("using software", "software")
    text = text.replace(
        "using hardware write cache, writethrough off", "hardware write cache disabled, writethrough on"
    )
    start, end = text.index("Read IO"), text.index("Write IO")
    nothing = "total:   0 |   0 |   0.00 |   0.00 |    0.000 |   0.00 |       N/A\n\n"
    reads = re.sub(r"^total:.*\n", nothing, text[start:end], flags=re.MULTILINE)
    return text[:start] + reads + text[end:]


def test_text_of_writes_alone_has_no_reads_spread() -> None:
    (one,) = diskspd_text.parse(pool_text(), "x").measurements
    assert set(one.directions) == {"write"}
    assert (one.load.write_pct, one.load.sync) == (100, "dsync")
    assert record.CACHED not in one.flags


@pytest.mark.parametrize(
    ("depth", "line", "threads", "outstanding"),
    [
        # 2.1 and later: thread pool named, and no outstanding of its own.
        ("number of outstanding I/O operations per thread: 5", "", 8, 5),
        # -O: the thread pool's own number counts.
        ("relative IO weight in thread pool: 1", "", 8, 7),
        # 2.0.2x names neither; the results and the command line do.
        ("number of outstanding I/O operations: 5", "old", 2, 5),
        ("IO priority: normal", "old -F2 -O6", 2, 6),
    ],
)
def test_text_of_a_thread_pool(depth: str, line: str, threads: int, outstanding: int) -> None:
    text = pool_text(depth=depth)
    if line:
        text = text.replace("-t2 -o4", line)
    else:
        own = 7 if "weight" in depth else 0
        pool = f"thread pool with 8 threads\n\tnumber of outstanding I/O operations per thread: {own}\n\tpath"
        text = text.replace("\tpath", f"\t{pool}", 1)
    (one,) = diskspd_text.parse(text, "x").measurements
    assert (one.load.threads, one.load.queue_depth) == (threads, outstanding)


def test_text_tells_rates_pauses_and_the_cache() -> None:
    text = text_of("v2.1-rand-w30-L-D.txt")
    limited = text.replace(
        "IO priority: normal", "IO priority: normal\n\t\tthroughput rate-limited to 500 IOPS"
    )
    assert diskspd_text.parse(limited, "x").measurements[0].load.rate == 1000  # of two threads
    in_bytes = limited.replace("500 IOPS", "2048 B/ms")
    assert diskspd_text.parse(in_bytes, "x").measurements[0].load.rate == 1000
    of_old = text.replace("-t2 -o4", "-t2 -o4 -g2048")
    assert diskspd_text.parse(of_old, "x").measurements[0].load.rate == 1000
    told = diskspd_text.parse(text.replace("think time: 0ms", "think time: 10ms"), "x").measurements[0].flags
    assert "pauses (-j) limited the rate" in told
    assert record.CACHED in told


def test_text_of_a_mixed_pattern() -> None:
    mixed = text_of("v2.1-rand-w30-L-D.txt").replace(
        "using random I/O (alignment", "using mixed random/sequential I/O (40% random) (alignment/stride"
    )
    (one,) = diskspd_text.parse(mixed, "x").measurements
    assert one.load.pattern == "random"
    assert "40 % of the I/Os were random, the others in a row" in one.flags


def test_text_of_two_runs_and_a_third_that_was_cut() -> None:
    text = text_of("v2.1-rand-w30-L-D.txt")
    found = diskspd_text.parse(text + text + text[: text.index("Write IO")], "x")
    assert len(found.measurements) == 2
    assert any("the table of writes is not there or cut off" in flag for flag in found.flags)
    assert "the file holds 3 runs" in found.flags


@pytest.mark.parametrize(
    ("encoding", "name"), [("utf-16", "C:\\тест.dat"), ("cp1251", "C:\\тест.dat"), ("utf-8-sig", "C:\\t.dat")]
)
def test_odd_encodings(encoding: str, name: str) -> None:
    text = text_of("v2.1-rand-w30-L-D.txt").replace(r"C:\t.dat", name).replace("\n", "\r\n")
    found = formats.parse(text.encode(encoding), "x")
    assert found.measurements[0].target == name
    assert found.measurements[0].directions["write"].ios == 59250
    assert any("Windows-1251" in flag for flag in found.flags) == (encoding == "cp1251")
