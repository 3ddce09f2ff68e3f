"""Reading exports of Azure Monitor: answers of its API, records of diagnostic settings, and tables as CSV.

Diagnostic settings write a JSON record a line; Log Analytics exports the same records as CSV. A chart's table
has a column a metric. Names of metrics are Microsoft's ("Supported metrics for
Microsoft.Compute/virtualMachines" and ".../disks"): per disk by LUN, of the machine, or of a disk by itself.
"""

import csv
import io
import json
import math
import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from diskbook.choose import trace
from diskbook.choose.trace import Trace
from diskbook.facts.errors import DiskbookError, visible
from diskbook.facts.metrics import grain_s

_RATE = re.compile(
    r"(?P<whose>Data Disk|OS Disk|Temp Disk|Composite Disk|Disk) "
    r"(?P<what>Read|Write) (?P<unit>Operations/sec|Bytes/sec|Bytes)\b",
    re.IGNORECASE,
)
_QUEUE = re.compile(r"(?P<whose>Data Disk|OS Disk|Temp Disk|Disk) Queue Depth", re.IGNORECASE)
# Charts name the aggregation behind the metric: "Disk Read Bytes (Sum)".
_NO_MEAN, _SUM = (
    re.compile(r"\((?:max|min|count)", re.IGNORECASE),
    re.compile(r"\((?:sum|total)", re.IGNORECASE),
)
_ISO = re.compile(r"\d{4}-\d\d-\d\dT")
_SAMPLE_S = 60.0
"""Azure Monitor adds the metrics without "/sec" up over a minute."""
Series = dict[str, dict[str, dict[str, float]]]
"""Values by device, kind ("reads", "writes", "read_bytes", "write_bytes", "outstanding") and time."""


def read(text: str, where: str, device: str | None = None, interval_s: float | None = None) -> Trace:
    """Read an export of Azure Monitor, JSON or CSV; parameters and errors are those of `iostat.read`."""
    start = text.lstrip("\ufeff \t\r\n")
    if start.startswith("PK\x03\x04"):
        raise DiskbookError(f"{where}: it is an Excel workbook; save its sheet as CSV")
    is_json = start.startswith(("{", "["))
    series = _of_json(start, where) if is_json else _of_csv(start, where, interval_s)
    if not series:
        raise DiskbookError(
            f"{where}: it has no metric of reads or writes; export 'Data Disk Read Operations/Sec', 'Data "
            "Disk Write Operations/Sec' and both of 'Bytes/sec'"
        )
    for name, kinds in series.items():
        lacking = [kind for kind in ("reads", "writes", "read_bytes", "write_bytes") if kind not in kinds]
        if lacking and device in (None, name):
            raise DiskbookError(
                f"{where}: {name} lacks {lacking[0].replace('_', ' ')}; export operations and bytes of reads "
                "and of writes"
            )
    if device is None and len({name.split()[0] for name in series}) > 1:  # the machine's contain its disks'
        series = {name: kinds for name, kinds in series.items() if name.startswith("Data")} or series
    seen = dict.fromkeys(time for kinds in series.values() for values in kinds.values() for time in values)
    times = sorted(seen) if all(map(_ISO.match, seen)) else list(seen)
    whole = [time for time in times if all(_all_known(kinds, time) for kinds in series.values())]
    notes = [f"{len(times) - len(whole)} times lack a value and are left out"] * (len(whole) < len(times))
    rows = {name: _columns(kinds, whole) for name, kinds in series.items()}
    return trace.made(list(whole), rows, device, interval_s, where, notes)


def _all_known(kinds: Mapping[str, Mapping[str, float]], time: str) -> bool:
    return all(time in values for kind, values in kinds.items() if kind != "outstanding")


def _columns(kinds: Mapping[str, Mapping[str, float]], times: list[str]) -> dict[str, np.ndarray]:
    column = {
        kind: np.array([kinds.get(kind, {}).get(time, math.nan) for time in times])
        for kind in ("reads", "writes", "read_bytes", "write_bytes", "outstanding")
    }
    both = column["read_bytes"] + column["write_bytes"]
    return {**{key: column[key] for key in ("reads", "writes", "outstanding")}, "bytes": both}


def _put(series: Series, metric: str, device: str, time: str, value: float) -> None:
    """Keep the mean of a metric's samples, where it is one of those that count."""
    rate, queue = _RATE.search(metric), _QUEUE.search(metric)
    match = rate or queue
    if match is None:
        return
    name = f"{match['whose'].title().replace('Os', 'OS')} {device}".strip()
    kind = "outstanding"
    if rate is not None:
        ios = rate["unit"].lower().startswith("operations")
        kind = f"{rate['what'].lower()}s" if ios else f"{rate['what'].lower()}_bytes"
        value = value / _SAMPLE_S if rate["unit"].lower() == "bytes" else value
    series.setdefault(name, {}).setdefault(kind, {})[time] = value


def _of_json(text: str, where: str) -> Series:
    series: Series = {}
    try:
        is_lines = '"metricName"' in text.partition("\n")[0]
        document = json.loads(f"[{','.join(text.strip().splitlines(True))}]" if is_lines else text)
        for part in document if isinstance(document, list) else [document]:
            records = part.get("records") or [part] * ("metricName" in part)
            for record in records:
                _record(series, record)
            for metric in () if records else part["value"]:
                for line in metric["timeseries"]:
                    names = {
                        str(pair["name"]["value"]).lower(): str(pair["value"])
                        for pair in line.get("metadatavalues") or ()
                    }
                    lun = " ".join(names.get("lun", "").split())[:9]
                    for point in line["data"]:
                        metric_name, device = str(metric["name"]["value"]), f"LUN {lun}" if lun else ""
                        _point(series, metric_name, device, point["timeStamp"], point, part.get("interval"))
    except json.JSONDecodeError as error:
        raise DiskbookError(
            f"{where}, line {error.lineno}: its JSON is cut short or broken; export it again"
        ) from None
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError, RecursionError):
        raise DiskbookError(
            f"{where}: it is not an answer of Azure Monitor; save what 'az monitor metrics list -o json' says"
        ) from None
    return series


def _record(series: Series, record: Mapping[str, Any]) -> None:
    """Keep a record of diagnostic settings or of Log Analytics: a metric of a machine or disk at a time."""
    cells = {str(key).lower().partition(" ")[0]: value for key, value in record.items()}
    time = cells["time"] if "time" in cells else cells["timegenerated"]
    resource = visible(str(cells.get("resourceid", "")).rpartition("/")[2])[:80]
    _point(series, str(cells["metricname"]), resource, time, cells, cells.get("timegrain"))


def _point(series: Series, metric: str, device: str, time: Any, point: Mapping[str, Any], grain: Any) -> None:
    """Keep a point: its average, or its total over the samples of the grain."""
    samples = grain_s(grain) / _SAMPLE_S if isinstance(grain, str) else 1.0
    for key, number in (("average", 1.0), ("total", samples)):
        if point.get(key) not in (None, ""):
            _put(series, metric, device, str(time), float(point[key]) / number)
            return


def _of_csv(text: str, where: str, interval_s: float | None) -> Series:
    """A table with a row a time and a column a metric, or a row a record; lines above it are passed over."""
    rows, separator = _table(text, where)
    if not rows:
        return {}
    head, table, series = rows[0], [row for row in rows[1:] if len(row) > 1], Series()
    if "MetricName" in head:
        try:
            for row in table:
                _record(series, dict(zip(head, row, strict=False)))
        except (KeyError, ValueError):
            raise DiskbookError(
                f"{where}: its records lack TimeGenerated, or a number; export again"
            ) from None
        return series
    columns = _columns_of(head, where)
    sums = [place for place in columns.values() if _SUM.search(head[place])]
    grain = float(np.median(trace.lengths([row[0] for row in table], interval_s, where)[0])) if sums else 0.0
    for row in table:
        for (metric, device), place in columns.items():
            cell = row[place].strip() if place < len(row) else ""
            if cell not in ("", "-", "--", "null"):
                value = _number(cell, separator, where)
                value *= _SAMPLE_S / grain if place in sums else 1.0
                _put(series, metric, device, row[0], value)
    return series


def _columns_of(head: list[str], where: str) -> dict[tuple[str, str], int]:
    """Columns that count, by metric and disk."""
    columns: dict[tuple[str, str], int] = {}
    for place, name in enumerate(head[1:], 1):
        lun = re.search(r"\bLUN\b\W*(\d{1,4})", name, re.IGNORECASE)
        metric = _RATE.search(name) or _QUEUE.search(name)
        if metric is None or _NO_MEAN.search(name):
            continue
        key = metric[0], f"LUN {lun[1]}" if lun else ""
        if key in columns:
            raise DiskbookError(
                f"{where}: two columns have the metric {key[0]}; export one machine at a time"
            )
        columns[key] = place
    return columns


def _table(text: str, where: str) -> tuple[list[list[str]], str]:
    """Rows of a CSV from its header on, none where it has none; and its separator."""

    def is_head(line: str) -> bool:
        return bool(_RATE.search(line)) or "MetricName" in line

    separator = max(",;\t", key=next(filter(is_head, text.splitlines()), "").count)
    try:
        rows = list(csv.reader(io.StringIO(text), delimiter=separator))
    except csv.Error as error:
        raise DiskbookError(f"{where}: it is not CSV ({error}); save the chart's table again") from None
    start = (place for place, row in enumerate(rows) if len(row) > 1 and is_head(" ".join(row)))
    return rows[next(start, len(rows)) :], separator


def _number(cell: str, separator: str, where: str) -> float:
    """Read a cell; a comma in a CSV with commas parts thousands, and is refused."""
    try:
        return trace.number("" if separator in cell else cell)
    except ValueError:
        raise DiskbookError(
            f"{where}: '{' '.join(cell.split())[:40]}' is not a number; save the table with plain numbers"
        ) from None
