"""Results as strangers keep them, made up: a tool, version and format, a target, and numbers that fit."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from diskbook.design.diskspd_arguments import parse, with_target
from support import fleets
from support.fleets import Vm

BEGAN = datetime(2025, 3, 1, 10, tzinfo=UTC)


@dataclass(frozen=True)
class Result:
    """One measurement, of random reads or writes; latency follows from rate and depth, by Little's law."""

    target: str = "/dev/sdc"
    iops: float = 5000.0
    is_write: bool = False
    depth: int = 4
    host: str = ""
    began: datetime = BEGAN
    runtime_s: int = 30

    @property
    def lat_ms(self) -> float:
        """Mean latency."""
        return 1000 * self.depth / self.iops

    @property
    def ios(self) -> int:
        """I/Os of the whole time."""
        return round(self.iops * self.runtime_s)

    @property
    def access(self) -> str:
        """As fio calls it."""
        return "randwrite" if self.is_write else "randread"


def later(days: float = 0, minutes: float = 0) -> datetime:
    """So long after the first measurement."""
    return BEGAN + timedelta(days=days, minutes=minutes)


def fio_json(version: str, result: Result) -> str:
    """fio's JSON: latencies in microseconds up to fio 2, in nanoseconds since."""
    entry: dict[str, Any] = {
        "jobname": "job",
        "groupid": 0,
        "error": 0,
        "job options": {
            "rw": result.access,
            "bs": "4k",
            "iodepth": str(result.depth),
            "ioengine": "libaio",
            "direct": "1",
            "size": "10g",
            "runtime": str(result.runtime_s),
            "filename": result.target,
        },
        "read": _direction(version, None if result.is_write else result),
        "write": _direction(version, result if result.is_write else None),
        "usr_cpu": 1.0,
        "sys_cpu": 2.0,
        "iodepth_level": {"1": 0.1},
    }
    if result.host:
        entry["hostname"] = result.host
    head = {"fio version": f"fio-{version}", "timestamp": int(result.began.timestamp()) + result.runtime_s}
    return json.dumps({**head, "jobs": [entry]}, indent=2)


def _direction(version: str, result: Result | None) -> dict[str, Any]:
    is_2 = version.startswith("2")
    unit, name = (1e3, "lat") if is_2 else (1e6, "lat_ns")
    ios, mean = (result.ios, result.lat_ms * unit) if result else (0, 0.0)
    iops, runtime_ms = (result.iops, 1000 * result.runtime_s) if result else (0.0, 0)
    latency = {"min": mean / 2, "max": mean * 3, "mean": mean, "stddev": mean / 10, "N": ios}
    percentiles = {"50.000000": int(mean), "99.000000": int(mean * 2), "99.900000": int(mean * 2.5)}
    return {
        **(
            {"io_bytes": ios * 4}
            if is_2
            else {"io_bytes": ios * 4096, "io_kbytes": ios * 4, "bw_bytes": iops * 4096}
        ),
        "bw": iops * 4,
        "iops": iops,
        "runtime": runtime_ms,
        "total_ios": ios,
        name: latency,
        name.replace("lat", "clat"): {**latency, "percentile": percentiles} if ios else latency,
        "bw_min": 0,
    }


def fio_text(version: str, result: Result) -> str:
    """fio's output for people, after the command that made it."""
    is_2 = version.startswith("2")
    block = "bs=4K-4K/4K-4K/4K-4K" if is_2 else "bs=(R) 4096B-4096B, (W) 4096B-4096B, (T) 4096B-4096B"
    word, pad = ("write", "write") if result.is_write else ("read ", "read")
    usec = 1000 * result.lat_ms
    kib, ms = result.iops * 4, 1000 * result.runtime_s
    total = (
        f"io={kib * result.runtime_s / 1024:.1f}MB, bw={kib:.0f}KB/s, iops={result.iops:.0f}, runt= {ms}msec"
    )
    if not is_2:
        amount = f"{kib * result.runtime_s / 1024:.0f}MiB/{ms}msec"
        total = f"IOPS={result.iops:.0f}, BW={kib:.0f}KiB/s ({kib * 1.024:.0f}kB/s)({amount})"
    sums = (0, result.ios) if result.is_write else (result.ios, 0)
    issued = (
        f"     issued    : total=r={sums[0]}/w={sums[1]}/d=0, short=r=0/w=0/d=0, drop=r=0/w=0/d=0"
        if is_2
        else f"     issued rwts: total={sums[0]},{sums[1]},0,0 short=0,0,0,0 dropped=0,0,0,0"
    )
    ended = result.began + timedelta(seconds=result.runtime_s)
    spread = f"min={usec / 2:.0f}, max={usec * 3:.0f}, avg={usec:.2f}, stdev={usec / 10:.2f}"
    lines = [
        f"$ fio --name=job --filename={result.target} --rw={result.access} --bs=4k --direct=1 "
        f"--ioengine=libaio --iodepth={result.depth} --size=10g --runtime={result.runtime_s}",
        f"job: (g=0): rw={result.access}, {block}, ioengine=libaio, iodepth={result.depth}",
        f"fio-{version}",
        "Starting 1 process",
        f"job: (groupid=0, jobs=1): err= 0: pid=2311: {ended:%a %b %e %H:%M:%S %Y}",
        f"  {word if is_2 else pad}: {total}",
        f"    clat (usec): {spread}",
        f"     lat (usec): {spread}",
        "    clat percentiles (usec):",
        f"     |  1.00th=[{usec / 2:5.0f}], 50.00th=[{usec:5.0f}], 99.00th=[{usec * 2:5.0f}]",
        "  cpu          : usr=4.31%, sys=13.62%, ctx=262146, majf=0, minf=34",
        "  IO depths    : 1=0.1%, 2=0.1%, 4=100.0%, 8=0.0%, 16=0.0%, 32=0.0%, >=64=0.0%",
        issued,
        "",
    ]
    return "\n".join(lines)


def diskspd_xml(version: str, result: Result) -> str:
    """DiskSpd's XML."""
    asked = with_target(parse(_line(result)), result.target)
    name = "write" if result.is_write else "read"
    vm = Vm("vm", iops={name: result.iops}, latency_ms=(result.lat_ms,), runtime_s=float(result.runtime_s))
    text = fleets.xml_of(vm, asked).decode()
    stamp = f"<RunTime>{result.began:%Y/%m/%d %H:%M:%S} UTC</RunTime>"
    text = re.sub("<RunTime>[^<]*</RunTime>", stamp, text)
    text = re.sub("<Version>[^<]*</Version>", f"<Version>{version}</Version>", text)
    return re.sub("<ComputerName>[^<]*<", f"<ComputerName>{result.host or 'vm'}<", text)


def diskspd_text(_: str, result: Result) -> str:
    """DiskSpd's text of 2.1 and 2.2, which tells no version."""
    share, mix = (100, "write") if result.is_write else (0, "read")
    nothing = "\ntotal:              0 |            0 |       0.00 |       0.00 |    0.000"
    counted = (
        f"\ntotal:  {result.ios * 4096} | {result.ios} | {result.iops / 256:.2f} | {result.iops:.2f} "
        f"| {result.lat_ms:.3f}"
    )
    head = "thread |       bytes     |     I/Os     |    MiB/s   |  I/O per s |  AvgLat  |  file"
    tables = "".join(
        f"\n{name} IO\n{head}\n{'-' * 60}{counted if name.lower() in ('total', mix) else nothing}\n"
        for name in ("Total", "Read", "Write")
    )
    return f"""
Command Line: {_line(result)} {result.target}

Input parameters:

\ttimespan:   1
\t-------------
\tduration: {result.runtime_s}s
\twarm up time: 1s
\tcool down time: 0s
\tmeasuring latency
\trandom seed: 0
\tpath: '{result.target}'
\t\tthink time: 0ms
\t\tburst size: 0
\t\tsoftware cache disabled
\t\thardware write cache disabled, writethrough on
\t\tperforming {"write" if share else "read"} test
\t\tblock size: 4KiB
\t\tusing random I/O (alignment: 4KiB)
\t\tnumber of outstanding I/O operations per thread: {result.depth}
\t\tthreads per file: 1
\t\tusing I/O Completion Ports
\t\tIO priority: normal

System information:

\tcomputer name: {result.host or "vm"}
\tstart time: {result.began:%Y/%m/%d %H:%M:%S} UTC

Results for timespan 1:
*******************************************************************************

actual test time:\t{result.runtime_s}.00s
thread count:\t\t1
proc count:\t\t2
{tables}
"""


def _line(result: Result) -> str:
    share = 100 if result.is_write else 0
    return f"diskspd.exe -c10G -d{result.runtime_s} -W1 -C0 -b4K -r4K -w{share} -t1 -o{result.depth} -L -Sh"


FORMATS: Mapping[str, Callable[[str, Result], str]] = {
    "fio-json": fio_json,
    "fio-text": fio_text,
    "diskspd-xml": diskspd_xml,
    "diskspd-text": diskspd_text,
}
ENDINGS = {"fio-json": "json", "fio-text": "txt", "diskspd-xml": "xml", "diskspd-text": "txt"}


def write(path: Path, kind: str, version: str, result: Result) -> Path:
    """Write one as a file; a path without an ending gets that of its format."""
    target = path if path.suffix else path.with_name(f"{path.name}.{ENDINGS[kind]}")
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(FORMATS[kind](version, result))
    return target
