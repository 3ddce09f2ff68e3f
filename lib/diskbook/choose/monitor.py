"""Reading exports of Azure Monitor: the JSON of `az monitor metrics list`, and tables of the portal as CSV.

Rates come as means of a minute or more. Names of metrics are Microsoft's ("Supported metrics for
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
from diskbook.facts.errors import DiskbookError
from diskbook.facts.metrics import grain_s

_RATE = re.compile(
    r"(?P<whose>Data Disk|OS Disk|Temp Disk|Composite Disk|Disk) "
    r"(?P<what>Read|Write) (?P<unit>Operations/sec|Bytes/sec|Bytes)\b",
    re.IGNORECASE,
)
_QUEUE = re.compile(r"(?P<whose>Data Disk|OS Disk|Temp Disk|Disk) Queue Depth", re.IGNORECASE)
_SAMPLE_S = 60.0
"""Azure Monitor adds the metrics without "/sec" up over a minute."""
Series = dict[str, dict[str, dict[str, float]]]
"""Values by device, kind ("reads", "writes", "read_bytes", "write_bytes", "outstanding") and time."""


def read(text: str, where: str, device: str | None = None, interval_s: float | None = None) -> Trace:
    """Read an export of Azure Monitor, JSON or CSV; parameters and errors are those of `iostat.read`."""
    start = text.lstrip("\ufeff \t\r\n")
    series = _of_json(start, where) if start.startswith(("{", "[")) else _of_csv(start, where)
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
    if (
        device is None and len({name.split()[0] for name in series}) > 1
    ):  # the machine's own contain its disks'
        series = {name: kinds for name, kinds in series.items() if name.startswith("Data")} or series
    times = dict.fromkeys(time for kinds in series.values() for values in kinds.values() for time in values)
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


def _put(series: Series, metric: str, device: str, time: str, value: float, seconds: float) -> None:
    """Keep a value of a metric, where it is one of those that count."""
    rate, queue = _RATE.search(metric), _QUEUE.search(metric)
    match = rate or queue
    if match is None:
        return
    name = f"{match['whose'].title().replace('Os', 'OS')}{f' LUN {device}' if device else ''}"
    kind = "outstanding"
    if rate is not None:
        ios = rate["unit"].lower().startswith("operations")
        kind = f"{rate['what'].lower()}s" if ios else f"{rate['what'].lower()}_bytes"
        value = value / seconds if rate["unit"].lower() == "bytes" else value
    series.setdefault(name, {}).setdefault(kind, {})[time] = value


def _of_json(text: str, where: str) -> Series:
    series: Series = {}
    try:
        document = json.loads(text)
        for part in document if isinstance(document, list) else [document]:
            grain_s = _grain_s(part.get("interval"))
            for metric in part["value"]:
                for line in metric["timeseries"]:
                    names = {
                        str(pair["name"]["value"]).lower(): str(pair["value"])
                        for pair in line.get("metadatavalues") or ()
                    }
                    device = " ".join(names.get("lun", "").split())[:9]
                    for point in line["data"]:
                        _point(series, str(metric["name"]["value"]), device, point, grain_s)
    except json.JSONDecodeError as error:
        raise DiskbookError(
            f"{where}, line {error.lineno}: its JSON is cut short or broken; export it again"
        ) from None
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError, RecursionError):
        raise DiskbookError(
            f"{where}: it is no answer of Azure Monitor; save what 'az monitor metrics list -o json' prints"
        ) from None
    return series


def _grain_s(text: Any) -> float:
    return float(grain_s(text)) if isinstance(text, str) else _SAMPLE_S


def _point(series: Series, metric: str, device: str, point: Mapping[str, Any], grain_s: float) -> None:
    """Keep a point: its average, or a total spread over the grain."""
    for key, seconds in (("average", _SAMPLE_S), ("total", grain_s)):
        value = point.get(key)
        if value is not None:
            _put(series, metric, device, str(point["timeStamp"]), float(value), seconds)
            return


def _of_csv(text: str, where: str) -> Series:
    """A table with a column of times, and columns named after metrics; lines above it are passed over."""
    first = next((line for line in text.splitlines() if _RATE.search(line)), "")
    separator = max(",;\t", key=first.count)
    try:
        rows = list(csv.reader(io.StringIO(text), delimiter=separator))
    except csv.Error as error:
        raise DiskbookError(f"{where}: it is no CSV ({error}); save the chart's table again") from None
    start = next(
        (place for place, row in enumerate(rows) if len(row) > 1 and _RATE.search(" ".join(row[1:]))), None
    )
    if start is None:
        return {}
    head, series = rows[start], Series()
    for line, row in enumerate(rows[start + 1 :], start + 2):
        for name, cell in zip(head[1:], row[1:], strict=False):
            if cell.strip() in ("", "-", "--", "null"):
                continue
            try:
                value = trace.number(cell)
            except ValueError:
                raise DiskbookError(
                    f"{where}, line {line}: '{' '.join(cell.split())[:40]}' is no number; save the "
                    "table with plain numbers"
                ) from None
            lun = re.search(r"\bLUN\b\W*(\d{1,4})", name, re.IGNORECASE)
            seconds = _SAMPLE_S
            _put(series, name, lun[1] if lun else "", row[0], value, seconds)
    return series
