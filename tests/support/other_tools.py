"""Made-up results in the form in which elbencho and sysbench write theirs."""

from __future__ import annotations

import json
from typing import Any

_PARTS = ("entries/s", "IOPS", "MiB/s")
_DONE = ("entries", "MiB")
_LATENCIES = tuple(f"{of} lat us [{kind}]" for of in ("Ent", "IO") for kind in ("min", "avg", "max"))


def _ends(*names: str) -> list[str]:
    return [f"{name} [{end}]" for name in names for end in ("first", "last")]


ELBENCHO_COLUMNS = (
    *("ISO date", "label", "path type", "paths", "hosts", "threads", "dirs", "files", "file size"),
    *("block size", "direct IO", "random", "random aligned", "IO depth", "shared paths", "truncate"),
    *("operation", *_ends("time ms", *_PARTS, "CPU%", *_DONE), *_LATENCIES),
    *(f"rwmix read {name}" for name in (*_ends(*_PARTS, *_DONE), *_LATENCIES)),
    *("version", "command"),
)


def elbencho_row(**cells: object) -> dict[str, object]:
    """Cells of a write of 1 GiB in 40 s; `cells` by column, "_" for each space and no brackets."""
    row: dict[str, object] = {
        "ISO date": "2026-01-05T10:00:00.125+0100", "path type": "file", "paths": 1, "hosts": 1, "threads": 4,
        "file size": 2**30, "block size": 65536, "direct IO": 1, "random": 0, "IO depth": 2, "truncate": 0,
        "operation": "WRITE", "time ms [first]": 39_500, "time ms [last]": 40_000, "IOPS [first]": 410,
        "IOPS [last]": 409, "MiB/s [last]": 25, "MiB [last]": 1024, "IO lat us [min]": 1500,
        "IO lat us [avg]": 9750, "IO lat us [max]": 30_000, "version": "3.1-1",
        "command": '"elbencho" "-t" "4" "-b" "64k" "--lat" "--direct" "-s" "1g" "-w" "/mnt/a/f.dat" ',
    }  # fmt: skip
    return {**row, **cells}


def elbencho_csv(*rows: dict[str, object]) -> str:
    """Make a file of these rows, with its header."""
    lines = [",".join(str(row.get(name, "")) for name in ELBENCHO_COLUMNS) for row in rows]
    return "\n".join([",".join(ELBENCHO_COLUMNS), *lines]) + "\n"


def elbencho_json(*rows: dict[str, object]) -> str:
    """Make the same phases as elbencho's JSON has them: one document per line, every value a text."""
    return "".join(json.dumps(_phase(row)) + "\n" for row in rows)


def _phase(row: dict[str, object]) -> dict[str, Any]:
    words = {1: "true", 0: "false"}
    done = int(str(row["MiB [last]"])) * 2**20
    latency = {f"{kind}_us": str(row[f"IO lat us [{kind}]"]) for kind in ("min", "avg", "max")}
    return {
        "phase_type": row["operation"],
        "phase_id": "c0ffee",
        "iso_start_date": row["ISO date"],
        "config": {
            **{name: str(row[name.replace("_", " ")]) for name in ("path_type", "paths", "hosts", "threads")},
            **{name: str(row[name.replace("_", " ")]) for name in ("file_size", "block_size")},
            "direct_io": words[int(str(row["direct IO"]))],
            "random_offsets": words[int(str(row["random"]))],
            "io_depth": str(row["IO depth"]),
            "version": row["version"],
            "command": row["command"],
        },
        "first_done": {"elapsed_time_ms": str(row["time ms [first]"])},
        "last_done": {
            "elapsed_time_ms": str(row["time ms [last]"]),
            "iops": str(row["IOPS [last]"]),
            "bytes": str(done),
            "latency": {"IO": latency},
        },
    }


def sysbench_result(
    *,
    threads: int = 4,
    iops: float = 2000.0,
    seconds: float = 10.0,
    test: str = "random read",
    block: int = 16,
    banner: int | None = None,
    every: int = 0,
    flags: str = "directio",
    version: str = "1.0.20",
) -> str:
    """Make the output of a run: `banner` are the threads that stand above it, `every` its fsyncs."""
    events = round(iops * seconds)
    kind = "write" if "write" in test else "read"
    rates = {name: iops if name == kind else 0.0 for name in ("read", "write")}
    mib_s = {name: rate * block / 1024 for name, rate in rates.items()}
    fsyncs = {0: 0.0, 1: iops}.get(every, iops / max(every, 1))
    synced = {0: "", 1: "Calling fsync() after each write operation.\n"}
    more = synced.get(every, f"Periodic FSYNC enabled, calling fsync() each {every} requests.\n")
    counted = events + round(fsyncs * seconds) if every > 1 else events
    mean = 1000 * threads / iops
    return f"""sysbench {version} (using system LuaJIT 2.1.0-beta3)

Running the test with following options:
Number of threads: {banner or threads}
Initializing random number generator from current time


Extra file open flags: {flags}
8 files, 128MiB each
1GiB total file size
Block size {block}KiB
Number of IO requests: 0
Read/Write ratio for combined random IO test: 1.50
{more}Using synchronous I/O mode
Doing {test} test
Initializing worker threads...

Threads started!


File operations:
    reads/s:                      {rates["read"]:.2f}
    writes/s:                     {rates["write"]:.2f}
    fsyncs/s:                     {fsyncs:.2f}

Throughput:
    read, MiB/s:                  {mib_s["read"]:.2f}
    written, MiB/s:               {mib_s["write"]:.2f}

General statistics:
    total time:                          {seconds:.4f}s
    total number of events:              {counted}

Latency (ms):
         min:                                    {mean / 4:.2f}
         avg:                                    {mean:.2f}
         max:                                    {mean * 9:.2f}
         95th percentile:                        {mean * 2:.2f}
         sum:                                    {mean * counted:.2f}

Threads fairness:
    events (avg/stddev):           {counted / threads:.4f}/1.00
    execution time (avg/stddev):   {seconds:.4f}/0.00

"""


def old_sysbench_result(
    *,
    version: str = "0.4.12",
    reads: int = 20_000,
    writes: int = 0,
    test: str = "random read",
    flags: int = 16384,
) -> str:
    """Make the output of a run of 10 s before sysbench 1.0, of 4 threads and blocks of 16 KiB."""
    events, is_new = reads + writes, version != "0.4.12"
    words = ("reads", "writes") if is_new else ("Read", "Write")
    unit, head = ("s", "General statistics:") if is_new else ("", "Test execution summary:")
    sizes = [f"{count / 64:.5g}Mb" if count else "0b" for count in (reads, writes, events)]
    return f"""sysbench {version}:  multi-threaded system evaluation benchmark

Running the test with following options:
Number of threads: 4

Extra file open flags: {flags}
8 files, 128Mb each
1Gb total file size
Block size 16Kb
Read/Write ratio for combined random IO test: 1.50
Periodic FSYNC enabled, calling fsync() each 100 requests.
Using synchronous I/O mode
Doing {test} test
Threads started!
Done.

Operations performed:  {reads} {words[0]}, {writes} {words[1]}, {writes // 100} Other = {events} Total
Read {sizes[0]}  Written {sizes[1]}  Total transferred {sizes[2]}  ({events / 640:.5g}Mb/sec)
 {events / 10:.2f} Requests/sec executed

{head}
    total time:                          10.0000s
    total number of events:              {events}
    total time taken by event execution: 36.0000{unit}
    per-request statistics:
         min:                                  0.45ms
         avg:                                  {36_000 / events:.2f}ms
         max:                                 16.20ms
         approx.  95 percentile:               3.60ms

Threads fairness:
    events (avg/stddev):           {events / 4:.4f}/3.20
    execution time (avg/stddev):   9.0000/0.00
"""
