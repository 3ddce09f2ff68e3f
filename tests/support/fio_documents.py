"""Results of fio as it writes them, for loads and numbers of a test's choice."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

_NS_PER_MS = 1_000_000


def entry(
    name: str = "j",
    *,
    iops: float = 4000.0,
    mean_ms: float = 8.0,
    options: dict[str, str] | None = None,
    runtime_s: float = 30.0,
    block: int = 4096,
    p50: float = 0.9,
    p99: float = 2.5,
    written: float = 0.0,
) -> dict[str, Any]:
    """One job of fio's JSON; `p50` and `p99` are multiples of the mean, `written` the share of writes."""
    parts = {
        kind: _direction(iops * share, mean_ms, runtime_s, block, p50, p99)
        for kind, share in (("read", 1 - written), ("write", written))
    }
    return {"jobname": name, "groupid": 0, "error": 0, "job options": options or {}, **parts}


def _direction(
    iops: float, mean_ms: float, runtime_s: float, block: int, p50: float, p99: float
) -> dict[str, Any]:
    ios, mean = round(iops * runtime_s), mean_ms * _NS_PER_MS
    latency = {"min": mean / 2, "max": mean * 10, "mean": mean, "stddev": mean / 3, "N": ios}
    percentile = {"50.000000": round(mean * p50), "99.000000": round(mean * p99)}
    return {
        "io_bytes": ios * block,
        "io_kbytes": ios * block // 1024,
        "bw_bytes": round(iops * block),
        "iops": iops,
        "runtime": round(runtime_s * 1000),
        "total_ios": ios,
        "lat_ns": latency,
        "clat_ns": {**latency, "percentile": percentile},
        "bw_min": 0,
        "iops_samples": 0,
    }


def write(path: Path, *jobs: dict[str, Any], stamp: int = 1_700_000_000, **options: str) -> Path:
    """Write a result; `options` go before the usual ones: 4k random reads, 32 in flight, for 30 s."""
    usual = {"ioengine": "libaio", "direct": "1", "bs": "4k", "rw": "randread", "iodepth": "32"}
    usual |= {"runtime": "30", "filename": "/dev/sdc"}
    shown = {"fio version": "fio-3.36", "timestamp": stamp, "global options": usual | options}
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({**shown, "jobs": list(jobs)}))
    return path
