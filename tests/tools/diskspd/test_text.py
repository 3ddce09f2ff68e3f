"""DiskSpd's text of every version, of the one for Linux, and as people paste it."""

from __future__ import annotations

import pytest

from diskbook.scenario.diskspd_line.arguments import parse as parse_line
from diskbook.scenario.diskspd_line.workload import check_runnable
from diskbook.tools import formats
from diskbook.tools.record import CACHED, Load, Measurement, Parsed, UnusableError
from support import SAMPLES

SECONDS, READS, WRITES = 30.02, 105_000, 45_000
TARGET = "C:\\t.dat"
OF_VERSION = {
    "2.0.12": (
        ("software and hardware cache disabled", "performing mix test (write/read ratio: 30/100)"),
        (
            "block size: 8192",
            "using random I/O (alignment: 8192)",
            "number of outstanding I/O operations: 32",
        ),
    ),
    "2.0.21": (
        ("software cache disabled", "hardware write cache disabled, writethrough on"),
        ("performing mix test (read/write ratio: 70/30)", "block size: 8192"),
        ("using random I/O (alignment: 8192)", "number of outstanding I/O operations: 32"),
    ),
    "2.2": (
        ("software cache disabled", "hardware write cache disabled, writethrough on"),
        ("performing mix test (read/write ratio: 70/30)", "block size: 8KiB"),
        ("using random I/O (alignment: 8KiB)", "number of outstanding I/O operations per thread: 32"),
    ),
}
FOR_LINUX = (
    ("size: 53687091200B", "using O_DIRECT", "using O_SYNC"),
    ("performing mix test (read/write ratio: 70/30)", "block size: 8192"),
    ("using random I/O (alignment: 8192)", "number of outstanding I/O operations: 32)"),
    ("block device: sdc", "device scheduler: none"),
)
LOAD = Load("random", 8192, 30, 4, 32, None, "dsync", 50 * 2**30, 30.0, 30.0)


def table(name: str, ios: int, lat_ms: float, linux: bool) -> str:
    """One table of totals, in the columns of a version."""
    seconds = 30 if linux else SECONDS
    latency = "AvgLat(ms) | LatStdDev  |" if linux else "AvgLat  | LatStdDev |"
    row = f"{ios * 8192:15d} | {ios:12d} | {ios / 128 / seconds:10.2f} | {ios / seconds:10.2f}"
    return (
        f"{name} IO\nthread |   bytes |  I/Os |  MB/s |  I/O per s | {latency} file\n---\n"
        f"     0 | {row} | {lat_ms:8.3f} | 3.000 | {TARGET} (50GiB)\n---\n"
        f"total: {row} | {lat_ms:8.3f} | 3.000\n\n"
    )


def text_of(version: str, *, command: str = "-c50G -w30 -b8K -t4 -r -o32 -W30 -d30 -Sh -L") -> str:
    """What this version, or the one for Linux, prints of one run."""
    linux = version == "linux"
    span = "job" if linux else "timespan"
    ways = [word for words in (FOR_LINUX if linux else OF_VERSION[version]) for word in words]
    took = "test time:         30s" if linux else f"actual test time:\t{SECONDS}s\nthread count:\t\t4"
    tables = (("Total", READS + WRITES, 25.6), ("Read", READS, 25.0), ("Write", WRITES, 27.0))
    return (
        f"\nCommand Line: diskspd {command} {TARGET}\n\nInput parameters:\n\n\t{span}:   1\n\t------\n"
        f"\tduration: 30s\n\twarm up time: 30s\n\tmeasuring latency\n\tpath: '{TARGET}'\n"
        + "".join(f"\t\t{way}\n" for way in ways)
        + f"\t\tthreads per file: 4\n\nResults for {span} 1:\n******\n\n{took}\n\n"
        + "".join(table(*item, linux) for item in tables)
        + "  %-ile |  Read (ms) | Write (ms) | Total (ms)\n---\n    min | 2.000 | 3.000 | 2.000\n"
        + "   50th | 25.000 | 26.000 | 25.000\n   99th | 60.000 | 61.000 | 60.000\n"
        + "    max | 99.000 | 99.100 | 99.100\n"
    )


def only(text: str) -> tuple[Parsed, Measurement]:
    parsed = formats.parse(text.encode(), "x.txt")
    (measurement,) = parsed.measurements
    return parsed, measurement


@pytest.mark.parametrize("version", [*OF_VERSION, "linux"])
def test_every_version_tells_the_same_load_and_numbers(version: str) -> None:
    parsed, measurement = only(text_of(version))
    assert measurement.load == LOAD
    assert CACHED not in measurement.flags
    write = measurement.directions["write"]
    assert (write.ios, write.lat_mean_ms, write.lat_p99_ms, write.lat_max_ms) == (WRITES, 27.0, 61.0, 99.1)
    assert parsed.version == ("for Linux" if version == "linux" else "unknown")
    assert any("time that was asked for" in flag for flag in measurement.flags) == (version == "linux")


def test_iops_are_those_that_are_printed() -> None:
    # 5 s to two decimals are 0.2 % too long or too short; the counts and IOPS printed beside are exact.
    text = text_of("2.2").replace(f"{SECONDS}s", "30.00s")
    read = only(text)[1].directions["read"]
    assert read.iops == pytest.approx(READS / SECONDS, abs=0.005)
    assert read.bw_bytes == pytest.approx(8192 * READS / SECONDS, rel=1e-5)


def test_a_column_of_iops_that_belongs_to_nothing_is_not_taken() -> None:
    text = text_of("2.2").replace(f"{READS / SECONDS:10.2f}", "   9999.00")
    assert only(text)[1].directions["read"].iops == pytest.approx(READS / SECONDS)


@pytest.mark.parametrize("margin", ["    ", "> ", "\t"])
def test_a_paste_reads_as_the_file(margin: str) -> None:
    text = text_of("2.0.21")
    pasted = "\r\n".join(f"{margin}{line}" for line in text.splitlines())
    assert only(f"PS C:\\> diskspd ...\r\n{pasted}")[1] == only(text)[1]


@pytest.mark.parametrize(
    ("old", "new", "cached", "sync"),
    [
        ("software and hardware cache disabled", "using software and hardware cache", True, None),
        ("software and hardware cache disabled", "software cache disabled", False, None),
    ],
)
def test_caches_of_old_versions(old: str, new: str, cached: bool, sync: str | None) -> None:
    _, measurement = only(text_of("2.0.12").replace(old, new))
    assert (CACHED in measurement.flags) == cached
    assert measurement.load.sync == sync


def test_linux_without_o_direct_may_measure_memory() -> None:
    assert CACHED in only(text_of("linux").replace("using O_DIRECT", ""))[1].flags


def test_the_reason_of_a_refusal_is_the_true_one() -> None:
    head, _, _ = text_of("2.2").partition("actual test time")
    words = "The test was interrupted before the measurements began. No results are displayed.\n"
    with pytest.raises(UnusableError, match="was interrupted before it measured anything"):
        only(head + words)
    with pytest.raises(UnusableError, match="for how long it measured"):
        only(head)


def test_text_and_xml_of_one_job_are_one_load() -> None:
    loads = [
        formats.parse((SAMPLES / "diskspd" / f"v2.1-rand-w30-L-D.{kind}").read_bytes(), kind)
        for kind in ("txt", "xml")
    ]
    assert loads[0].measurements[0].load == loads[1].measurements[0].load


def test_a_seed_from_the_clock_is_read_but_not_run() -> None:
    asked = parse_line("diskspd -z -r -b8K -c1G a.dat")
    assert asked.clock_seed
    with pytest.raises(Exception, match=r"-z without a number.*-z1"):
        check_runnable(asked)
    check_runnable(parse_line("diskspd -z7 -r -b8K -c1G a.dat"))
