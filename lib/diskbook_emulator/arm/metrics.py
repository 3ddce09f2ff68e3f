"""Azure Monitor's metrics of machines and their data disks, many machines in one request.

From the REST specification (metrics:getBatch 2024-02-01, "Migrate to the getBatch API") and from Microsoft's
list of metrics; not seen on the wire. Azure serves it at a regional host of its own, the emulator at its one
address. What only the emulator does, and only where its profile says `metrics_grain_s`: grains of so many
seconds, for trials that are short.
"""

import re
import time
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

from diskbook.facts import catalog, metrics
from diskbook.facts.metrics import LUN, Metric
from diskbook.facts.units import MB, epoch
from diskbook_emulator.arm.errors import ArmError, bad_request
from diskbook_emulator.arm.plane import Call, ControlPlane, Reply
from diskbook_emulator.arm.state import Resource
from diskbook_emulator.types import Activity, DiskSpec, Json, Limits, VmSpec

Values = NDArray[np.float64]
# Columns of the counts: I/Os and bytes of the disk, then those that the host cache answered.
_MISSES, _HITS = {"iops": 1, "mb_s": 2}, {"iops": 3, "mb_s": 4}
_UNIT = {"iops": 1.0, "mb_s": MB}


@dataclass(frozen=True)
class Windows:
    """Windows of equal length, in whole seconds since the Unix epoch, the first beginning at `start`."""

    start: int
    grain_s: int
    count: int

    @property
    def end(self) -> int:
        return self.start + self.count * self.grain_s

    @property
    def starts(self) -> NDArray[np.int64]:
        return self.start + self.grain_s * np.arange(self.count)


def of_machine(metric: Metric, vm: VmSpec, activities: Iterable[Activity], windows: Windows) -> Values | None:
    """Percentages of a machine's metric, a value a window; None where the machine has no such limit."""
    own = [item for item in activities if item.vm.id == vm.id]
    column = (_HITS if metric.path == "cached" else _MISSES)[metric.counts]
    if not metric.credit:
        limit = _machine_limit(metric, vm)
        return None if limit is None else _consumed(own, column, limit * _UNIT[metric.counts], windows)
    if metric.path == "cached" or not own:  # cached limits that burst are not played
        return None
    return _used(own, metric.counts, own[-1].vm_uncached, windows)


def of_disk(
    metric: Metric, disk: DiskSpec, activities: Iterable[Activity], windows: Windows
) -> Values | None:
    """Percentages of a disk's metric, on whatever machines it is, a value a window; None as above."""
    own = [item for item in activities if item.disk.id == disk.id]
    if metric.credit:
        return _used(own, metric.counts, own[-1].disk_limits, windows)
    limit = {"iops": disk.iops, "mb_s": disk.mb_s}[metric.counts]
    return _consumed(own, _MISSES[metric.counts], limit * _UNIT[metric.counts], windows)


def _machine_limit(metric: Metric, vm: VmSpec) -> float | None:
    size = catalog.vm_size(vm.size)
    cached = metric.path == "cached"
    if metric.counts == "iops":
        return size.cached_iops if cached else size.uncached_iops
    return size.cached_mb_s if cached else size.uncached_mb_s


def _consumed(activities: list[Activity], column: int, limit: float, windows: Windows) -> Values:
    """Rate in a window as a percentage of a limit a second."""
    per_second = _by_second(activities, column, windows.start, windows.end)
    return 100.0 * per_second.reshape(windows.count, windows.grain_s).mean(axis=1) / limit


def _used(activities: list[Activity], counts: str, limits: Limits, windows: Windows) -> Values | None:
    """Share of the burst credit that is used at the end of each window, in percent; None without credit."""
    base, credit = {
        "iops": (limits.iops, limits.credit_ios),
        "mb_s": (limits.mb_s, limits.credit_mb),
    }[counts]
    if base is None or credit <= 0:
        return None
    first = min((int(item.counts[0, 0]) for item in activities if len(item.counts)), default=windows.start)
    start = min(first, windows.start)
    demand = _by_second(activities, _MISSES[counts], start, windows.end) / _UNIT[counts]
    used, level = np.empty(len(demand)), 0.0
    for second, amount in enumerate(demand.tolist()):
        level = min(max(level + amount - base, 0.0), credit)
        used[second] = level
    return 100.0 * used[windows.start - start :][windows.grain_s - 1 :: windows.grain_s] / credit


def _by_second(activities: Iterable[Activity], column: int, start: int, end: int) -> Values:
    """Amounts by second from start to end, added over attachments."""
    total = np.zeros(end - start)
    for item in activities:
        place = item.counts[:, 0] - start
        inside = (place >= 0) & (place < end - start)
        np.add.at(total, place[inside], item.counts[inside, column])
    return total


MOST_WINDOWS = 20_000
_LUNS = re.compile(rf"\b{LUN}\s+eq\s+'([^']*)'", re.IGNORECASE)


def get_batch(plane: ControlPlane, call: Call) -> Reply:
    metrics = _metrics(call)
    luns = _luns(call, metrics)
    windows = _windows(call, plane.settings.metrics_grain_s)
    machines = [_machine(plane, resource_id) for resource_id in _resource_ids(call)]
    arrived = time.time() - plane.settings.delay_s("metrics") * plane.settings.time_scale
    activities = plane.backend.activity()
    values = [
        _of_machine(machine, metrics, luns, windows, activities, arrived, int(call.query.get("top", "10")))
        for machine in machines
    ]
    return Reply(200, {"values": values})


def _metrics(call: Call) -> list[Metric]:
    """Metrics asked for; each must be one that machines have."""
    if call.query.get("metricnamespace", "").lower() != metrics.NAMESPACE.lower():
        raise bad_request(f"The metric namespace must be {metrics.NAMESPACE}.")
    names = [name for name in call.query.get("metricnames", "").split(",") if name]
    if not 1 <= len(names) <= metrics.NAMES_A_CALL:
        raise bad_request(f"Between 1 and {metrics.NAMES_A_CALL} metric names must be given.")
    for name in names:
        if name.lower() not in metrics.BY_NAME:
            # wording from our knowledge, not read
            known = ",".join(metric.name for metric in metrics.METRICS)
            raise bad_request(
                f"Failed to find metric configuration for metric: {name}, Valid metrics: {known}"
            )
    return [metrics.BY_NAME[name.lower()] for name in names]


def _luns(call: Call, metrics: Iterable[Metric]) -> set[str] | None:
    """LUNs that the filter names, "*" for each by itself; None without a filter: all of them together."""
    luns = set(_LUNS.findall(call.query.get("filter", "")))
    if luns and any(metric.path != "disk" for metric in metrics):
        # wording from our knowledge, not read
        raise bad_request(f"Metric does not support requested dimension combination: {LUN}")
    return luns or None


def _windows(call: Call, least_s: int) -> Windows:
    grain_s = _grain_s(call.query.get("interval", "PT1M"), least_s)
    try:
        start, end = (epoch(call.query[name]) for name in ("starttime", "endtime"))
    except (KeyError, ValueError):
        raise bad_request("starttime and endtime must be given, as ISO 8601.") from None
    first = int(start // grain_s) * grain_s
    count = int(-(-(end - first) // grain_s))
    if not 0 < count <= MOST_WINDOWS:
        raise bad_request("The time span has no window, or too many; ask for less at a time.")
    return Windows(first, grain_s, count)


def _grain_s(interval: str, least_s: int) -> int:
    """Read a grain; one that Azure does not serve is refused, unless the profile has it."""
    try:
        grain_s = metrics.grain_s(interval)
    except ValueError:
        raise bad_request(f"Interval '{interval}' is not supported.") from None
    if grain_s not in (*metrics.GRAINS_S, least_s):
        served = ",".join(_span(grain) for grain in metrics.GRAINS_S)
        raise bad_request(f"Invalid time grain duration: {interval}, supported ones are: {served}")
    return grain_s


def _span(seconds: int) -> str:
    """Write seconds as .NET does: "00:05:00", a day "1.00:00:00"."""
    days, rest = divmod(seconds, 86400)
    clock = f"{rest // 3600:02}:{rest // 60 % 60:02}:{rest % 60:02}"
    return f"{days}.{clock}" if days else clock


def _resource_ids(call: Call) -> list[str]:
    resource_ids = call.body.get("resourceids")
    if not isinstance(resource_ids, list) or not 1 <= len(resource_ids) <= metrics.RESOURCES_A_CALL:
        raise bad_request(f"resourceids must name 1 to {metrics.RESOURCES_A_CALL} resources.")
    return [str(item) for item in resource_ids]


def _machine(plane: ControlPlane, resource_id: str) -> Resource:
    machine = plane.store.get(resource_id)
    if machine is None or machine.type.lower() != metrics.NAMESPACE.lower():
        raise ArmError(404, "ResourceNotFound", f"The resource '{resource_id}' was not found.")
    return machine


def _of_machine(
    machine: Resource,
    asked: list[Metric],
    luns: set[str] | None,
    windows: Windows,
    activities: list[Activity],
    arrived: float,
    top: int,
) -> Json:
    own = [item for item in activities if item.vm.id == machine.key]
    created = epoch(machine.properties["timeCreated"]) if "timeCreated" in machine.properties else 0.0
    known = (windows.starts >= created // windows.grain_s * windows.grain_s) & (
        windows.starts + windows.grain_s <= arrived
    )
    rows = []
    for metric in asked:
        series: list[Json] = []
        if metric.path != "disk":
            values = of_machine(metric, own[-1].vm, activities, windows) if own else None
            series = [] if values is None else [_series(values, known, windows)]
        elif luns is None:
            both = [values for _, values in _by_lun(metric, own, activities, windows)]
            series = [_series(np.nanmean(both, axis=0), known, windows)] if both else []
        else:
            series = [
                _series(values, known, windows, lun)
                for lun, values in _by_lun(metric, own, activities, windows)
                if "*" in luns or lun in luns
            ][:top]
        rows.append(_row(machine, metric, series))
    return {
        "starttime": _iso(windows.start),
        "endtime": _iso(windows.end),
        "interval": metrics.interval(windows.grain_s),
        "namespace": metrics.NAMESPACE.lower(),
        "resourceregion": machine.body.get("location", ""),
        "resourceid": machine.id,
        "value": rows,
    }


def _by_lun(
    metric: Metric, own: list[Activity], activities: list[Activity], windows: Windows
) -> Iterable[tuple[str, Values]]:
    """Values by LUN, NaN where no disk was there; disks that took turns at a LUN follow each other."""
    for lun in sorted({item.lun for item in own}):
        total = np.full(windows.count, np.nan)
        for item in own:
            values = of_disk(metric, item.disk, activities, windows) if item.lun == lun else None
            if values is None:
                continue
            until = np.inf if item.detached is None else item.detached
            there = (windows.starts + windows.grain_s > item.attached) & (windows.starts < until)
            total[there] = values[there]
        if not np.isnan(total).all():
            yield str(lun), total


def _series(values: Values, known: Any, windows: Windows, lun: str | None = None) -> Json:
    """One series; as in Azure a window without a value has its time alone. Each window is one sample."""
    data: list[Json] = [{"timeStamp": _iso(start)} for start in windows.starts.tolist()]
    for place in np.flatnonzero(known & ~np.isnan(values)).tolist():
        value = round(float(values[place]), 3)
        data[place] |= {"average": value, "maximum": value}
    labels = [] if lun is None else [{"name": {"value": LUN, "localizedValue": LUN}, "value": lun}]
    return {"metadatavalues": labels, "data": data}


def _row(machine: Resource, metric: Metric, series: list[Json]) -> Json:
    return {
        "id": f"{machine.id}/providers/Microsoft.Insights/metrics/{metric.name}",
        "type": "Microsoft.Insights/metrics",
        "name": {"value": metric.name, "localizedValue": metric.name},
        "displayDescription": "emulated",
        "unit": "Percent",
        "timeseries": series,
        "errorCode": "Success",
    }


def _iso(epoch_s: float) -> str:
    return datetime.fromtimestamp(epoch_s, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
