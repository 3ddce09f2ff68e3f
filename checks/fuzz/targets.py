"""The parsers under test, the real results they are fed with, and what must hold of all they return."""

import gzip
import io
import json
import math
import re
import zipfile
from collections.abc import Callable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.csv  # noqa: F401 (loaded before the memory of a process is bounded)

from diskbook.choose import ask
from diskbook.clusters.vmfleet import archive as vmfleet_archive, table as vmfleet_table
from diskbook.facts import archives, files as files_read, paths
from diskbook.facts.errors import is_visible
from diskbook.importing import elbencho, formats, kubestr, loads, perfkit, sysbench, table
from diskbook.importing.diskspd import text_output as diskspd_text
from diskbook.importing.fio import json_files, log_histogram, logs_of_a_job as job_logs, normal, terse
from diskbook.tools import fio
from diskbook.tools.diskspd import xml as diskspd_xml
from diskbook.tools.fio import held_rate, log as fio_log
from diskbook.tools.record import Direction, Measurement, Parsed, Series

SAMPLES = paths.ROOT / "tests" / "samples"
_MOST_SEED_BYTES = 12 * 1024
_BUCKET = re.compile(r"\s*<Bucket>.*?</Bucket>", re.DOTALL)
_KEPT_BINS = 6
_MOST_WHOLE = 10**19
_EPOCH_MS = 1_795_194_062_000
_COLUMNS = table.columns_of(
    "arm=disk,operation=op,block_size=bs,queue_depth=iodepth,iops=IOPS,lat_ms=lat_us/1000,started=when"
)

Parser = Callable[[bytes], object]


class BrokenPromise(Exception):
    """A parser returned what it must not: an infinite or negative number, a histogram of nothing."""


@dataclass(frozen=True)
class Target:
    """A parser and the files it is fed with."""

    name: str
    parse: Parser
    seeds: tuple[bytes, ...]


def targets() -> list[Target]:
    """All parsers with their seeds, read from the tests' samples."""
    rows = [
        ("fio JSON", _text(json_files.parse), "fio/*.json fio/*.txt fio-2.16/*"),
        ("fio JSON, live runs", _live, "fio/*.json fio/*.txt"),
        ("fio terse", _text(terse.parse), "fio-terse/*"),
        ("fio latency log", _latency_log, "fio-logs/*_lat.*"),
        ("fio logs, averaged", _rows, "fio-logs/*"),
        ("fio logs, imported", _imported_logs, "fio-logs/mean_*.log"),
        ("fio logs, live runs", _live_logs, "fio-logs/*"),
        (
            "fio histogram log",
            lambda content: _check(log_histogram.summarise(content, "f")),
            "fio-logs/*_hist.*",
        ),
        ("fio text", _text(normal.parse), "fio/json-and-normal.txt fio-2.16/json-normal.txt fio-text/*"),
        ("DiskSpd XML", _text(diskspd_xml.parse), "diskspd/*.xml"),
        ("DiskSpd text", _text(diskspd_text.parse), "diskspd/*.txt"),
        ("PerfKitBenchmarker", _text(perfkit.parse), "pkb/*"),
        ("elbencho", _text(elbencho.parse), "elbencho/*"),
        ("sysbench", _text(sysbench.parse), "sysbench/*"),
        ("kubestr", _text(kubestr.parse), "kubestr/*"),
        ("table", lambda content: _check(table.parse(content, "f", _COLUMNS)), "tables/*"),
        ("VMFleet", _text(vmfleet_table.parse_table), "vmfleet/*.tsv"),
        ("VMFleet archive", _archive, "vmfleet/*.zip"),
        ("VMFleet machine in an archive", _machine_of_archive, "diskspd/*.xml"),
        ("VMFleet list of machines", _list_of_archive, "vmfleet/fleet.json"),
        ("iostat", _load, "choose/iostat*"),
        ("Azure Monitor", _load, "choose/monitor*"),
        ("any format", lambda content: _check(formats.parse(content, "f")), "*/*"),
    ]
    return [Target(name, parse, seeds(pattern)) for name, parse, pattern in rows]


def seeds(pattern: str) -> tuple[bytes, ...]:
    """Real results that match one of the patterns, with fewer bins, so that an input takes little time."""
    files = [path for part in pattern.split() for path in sorted(SAMPLES.glob(part)) if path.is_file()]
    contents = [_small(path) for path in files]
    contents += [
        _since_the_epoch(content)
        for path, content in zip(files, contents, strict=True)
        if path.suffix == ".log"
    ]
    return tuple(dict.fromkeys(contents))


def _since_the_epoch(log: bytes) -> bytes:
    """The same log as log_unix_epoch writes it."""
    return re.sub(rb"^(\d+)", lambda stamp: b"%d" % (_EPOCH_MS + int(stamp[1])), log, flags=re.MULTILINE)


def _small(path: Path) -> bytes:
    content = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    if path.suffix == ".zip":
        return content
    if b"<Bucket>" in content:
        text = content.decode("utf-8", "replace")
        buckets = _BUCKET.findall(text)
        dropped = set(buckets) - set(buckets[:: max(1, len(buckets) // 12)])
        content = _BUCKET.sub(
            lambda bucket: "" if bucket.group() in dropped else bucket.group(), text
        ).encode()
    elif b'"bins"' in content and len(content) > _MOST_SEED_BYTES:
        content = _with_few_bins(content)
    return content


def _with_few_bins(content: bytes) -> bytes:
    """Leave a few bins of each histogram, when the file is JSON as a whole."""
    try:
        document = json.loads(content)
    except ValueError:
        return content[:_MOST_SEED_BYTES]
    _thin(document)
    return json.dumps(document, indent=1).encode()


def _thin(node: Any) -> None:
    if isinstance(node, dict):
        for key, value in node.items():
            if key == "bins" and isinstance(value, dict):
                kept = [*list(value)[:_KEPT_BINS], *list(value)[-3:]]
                node[key] = {name: value[name] for name in kept}
            else:
                _thin(value)
    elif isinstance(node, list):
        for item in node:
            _thin(item)


def _text(parse: Callable[[str, str], Parsed]) -> Parser:
    return lambda content: _check(parse(files_read.text_of(content)[0], "f"))


def _load(content: bytes) -> object:
    """Read a recorded load, and the need that it makes."""
    trace = ask.read_text(content.decode("utf-8", "replace"), "f")
    rates = np.concatenate([trace.seconds, trace.iops, trace.mb_s, trace.quantiles(trace.iops)])
    if not (np.isfinite(rates).all() and (rates >= 0).all() and (trace.seconds > 0).all()):
        raise BrokenPromise("a rate or a length is negative or infinite")
    if not all(map(is_visible, trace.words())):
        raise BrokenPromise("a device or a note holds characters that steer")
    return trace.need(100)


def _archive(content: bytes) -> object:
    return _check(vmfleet_archive.parse(content, "f"))


def _machine_of_archive(content: bytes) -> object:
    """An archive, two of whose machines left the same, so that nothing refuses it before it is joined."""
    files = {f"result-b4t2o4w30pr-x-vm-v-n-00{number}.xml": content for number in (1, 2)}
    return _archive(archives.pack(files))


def _list_of_archive(content: bytes) -> object:
    """The archive of the samples with another list of its machines."""
    with zipfile.ZipFile(SAMPLES / "vmfleet" / "fleet.zip") as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
    return _archive(archives.pack({**files, vmfleet_archive.MACHINES: content}))


def _live(content: bytes) -> object:
    result = fio.parse_output(content.decode("utf-8", "replace"), "f")
    for part in result.directions.values():
        _check_direction(part)
    return result


def _live_logs(content: bytes) -> object:
    text = content.decode("utf-8", "replace")
    return fio.parse_logs(text, text, 0.5, "f")


def _imported_logs(content: bytes) -> object:
    file = job_logs.LogFile("f", lambda: io.BytesIO(content))
    as_rates = {"iops": [file], "lat": [file], "bw": [file]}
    as_bytes = {"bw": [file]}
    for kinds, interval_s in ((as_rates, 0.5), (as_bytes, None)):
        measurement = job_logs.read(
            kinds, old=False, interval_s=interval_s, block_size=None if interval_s else 4096
        )
        _check(measurement)
    return measurement


def _rows(content: bytes) -> object:
    return fio_log.read_rows(content, "f")


def _latency_log(content: bytes) -> object:
    return _check(held_rate.summarise(io.BytesIO(content), "f"))


def _check(parsed: Any) -> object:
    """Hold a result against what every parser promises."""
    if isinstance(parsed, Parsed):
        if not parsed.measurements:
            raise BrokenPromise("no measurement, and no error")
        for measurement in parsed.measurements:
            _check_measurement(measurement, parsed.tool)
        return parsed
    for part in parsed.directions.values():
        _check_direction(part)
    for series in parsed.series.values():
        _check_series(series)
    return parsed


def _check_measurement(measurement: Measurement, tool: str) -> None:
    if not measurement.directions:
        raise BrokenPromise("a measurement without a direction")
    texts = (measurement.name, measurement.target, measurement.host, *measurement.flags)
    if not all(map(is_visible, texts)):
        raise BrokenPromise("a name or a flag holds characters that steer")
    for part in measurement.directions.values():
        _check_direction(part)
    for series in measurement.series.values():
        _check_series(series)
    try:
        loads.workload(measurement, tool)
    except ValueError:
        return  # its documented way to say that a scenario cannot tell the load


def _check_direction(part: Direction) -> None:
    for item in fields(part):
        value = getattr(part, item.name)
        most = math.inf if isinstance(value, float) else _MOST_WHOLE
        if isinstance(value, int | float) and not (
            0 <= value < most or (most == math.inf and math.isnan(value))
        ):
            raise BrokenPromise(f"{item.name} is {str(value)[:40]}")
    if any(count <= 0 or value < 0 for value, count in part.bins.items()):
        raise BrokenPromise("a bin has no I/O in it, or a negative latency")
    if any(not 0 <= value < math.inf for value in part.percentiles_ms.values()):
        raise BrokenPromise("a percentile is negative or infinite")


def _check_series(series: Series) -> None:
    if not len(series.second) == len(series.iops) == len(series.lat_mean_ms):
        raise BrokenPromise("the columns of a series differ in length")
    if not ((series.iops >= 0) & (series.iops < math.inf) & (series.second >= 0)).all():
        raise BrokenPromise("a series has a rate or time that is none")
