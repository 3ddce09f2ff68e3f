"""Azure Monitor's metrics of machines and their data disks, many machines in one request.

From the REST specification (metrics:getBatch 2024-02-01, "Migrate to the getBatch API") and from Microsoft's
list of metrics; not seen on the wire. Azure serves it at a regional host of its own, the emulator at its one
address. What only the emulator does, and only where its profile says `metrics_grain_s`: grains of so many
seconds, for trials that are short.
"""

import re
import time
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

import numpy as np

from diskbook.facts import metrics
from diskbook.facts.metrics import LUN, Metric
from diskbook.facts.units import epoch
from diskbook_emulator import load
from diskbook_emulator.arm.errors import ArmError, bad_request
from diskbook_emulator.arm.plane import Call, ControlPlane, Reply
from diskbook_emulator.arm.state import Resource
from diskbook_emulator.types import Activity, Json

MOST_WINDOWS = 20_000
_LUNS = re.compile(rf"\b{LUN}\s+eq\s+'([^']*)'", re.IGNORECASE)


def get_batch(plane: ControlPlane, call: Call) -> Reply:
    """Answer the metrics of several machines."""
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


def _windows(call: Call, least_s: int) -> load.Windows:
    grain_s = _grain_s(call.query.get("interval", "PT1M"), least_s)
    try:
        start, end = (epoch(call.query[name]) for name in ("starttime", "endtime"))
    except (KeyError, ValueError):
        raise bad_request("starttime and endtime must be given, as ISO 8601.") from None
    first = int(start // grain_s) * grain_s
    count = int(-(-(end - first) // grain_s))
    if not 0 < count <= MOST_WINDOWS:
        raise bad_request("The time span has no window, or too many; ask for less at a time.")
    return load.Windows(first, grain_s, count)


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
    windows: load.Windows,
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
            values = load.of_machine(metric, own[-1].vm, activities, windows) if own else None
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
    metric: Metric, own: list[Activity], activities: list[Activity], windows: load.Windows
) -> Iterable[tuple[str, load.Values]]:
    """Values by LUN, NaN where no disk was there; disks that took turns at a LUN follow each other."""
    for lun in sorted({item.lun for item in own}):
        total = np.full(windows.count, np.nan)
        for item in own:
            values = load.of_disk(metric, item.disk, activities, windows) if item.lun == lun else None
            if values is None:
                continue
            until = np.inf if item.detached is None else item.detached
            there = (windows.starts + windows.grain_s > item.attached) & (windows.starts < until)
            total[there] = values[there]
        if not np.isnan(total).all():
            yield str(lun), total


def _series(values: load.Values, known: Any, windows: load.Windows, lun: str | None = None) -> Json:
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
