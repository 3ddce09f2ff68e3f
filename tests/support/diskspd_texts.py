"""What DiskSpd of every version, and the one for Linux, prints of one run, by hand after its source."""

from __future__ import annotations

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


def interrupted() -> str:
    """What it prints when it is stopped before it measures."""
    head = text_of("2.2").partition("actual test time")[0]
    return f"{head}The test was interrupted before the measurements began. No results are displayed.\n"
