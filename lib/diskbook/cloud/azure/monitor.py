"""Fetch Azure Monitor's metrics of a run's machines, and keep the answers unchanged.

Metrics arrive a few minutes late. So they are fetched after the last trial has ended, and the fetch waits,
for a limited time, for the last minute that a trial needs. Metrics are additional evidence: an error here is
recorded in one sentence, and the run continues without them.
"""

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from azure.core.exceptions import AzureError

from diskbook.cloud.azure import refusals
from diskbook.cloud.azure.clients import Clients
from diskbook.design.vocabulary import Provenance
from diskbook.facts.errors import DiskbookError
from diskbook.facts.metrics import (
    DISK_METRICS,
    LUN,
    MACHINE_METRICS,
    NAMESPACE,
    RESOURCES_A_CALL,
    Metric,
)
from diskbook.facts.units import epoch, utc_text
from diskbook.results.run import Run

GRAIN_S = 60
"""Azure's metrics come at this grain, and the emulator's unless its profile says `metrics_grain_s`."""
NOTHING_NEEDED = "no metrics of the platform: no trial holds a whole minute, and Azure gives one a minute"
WAIT_S = 300.0
AGAIN_S = 20.0
WINDOWS_A_CALL = 1440
MOST_LUNS = 64


@dataclass(frozen=True)
class MetricsRequest:
    """Metrics that are to be fetched: machines by ARM id, the time their trials took, in s since 1970.

    `needed` is, by machine, the beginning of the last window that lies wholly within a trial.
    """

    machines: tuple[str, ...]
    start: float
    end: float
    grain_s: int
    needed: dict[str, float]
    cached: bool


def keep(run: Run, clients: Clients) -> None:
    """Fetch the metrics of all trials since the last time, and record what came of it.

    The answers are kept untouched as raw/metrics-<n>.json.gz; the ledger's line "metrics" names them, and its
    status is "ok", "incomplete" (the last minutes had not arrived), "none" (nothing was asked for, since no
    trial is long enough) or "failed", with the reason.
    """
    request = unfetched(run.manifest, run.ledger())
    if request is None:
        return
    about = {"grain_s": request.grain_s, "machines": list(request.machines)}
    about |= {"from_utc": utc_text(request.start), "to_utc": utc_text(request.end)}
    if not request.needed:
        run.append("metrics", status="none", error=NOTHING_NEEDED, files=[], **about)
        return
    try:
        monitor = _Monitor(clients, run.manifest["scenario"]["scenario"]["region"])
        missing = _wait(monitor, request)
        answers = list(_answers(monitor, request))
    except (AzureError, DiskbookError, ValueError, KeyError, TypeError) as error:
        reason = refusals.message(error) if isinstance(error, AzureError) else str(error)
        run.append(
            "metrics", status="failed", error=f"the platform's metrics were not fetched: {reason}", **about
        )
        return
    first = 1 + len(list((run.folder / "raw").glob("metrics-*.json.gz")))
    files = [run.write_raw(f"metrics-{number}.json", answer) for number, answer in enumerate(answers, first)]
    lacks = f"the last minute of {len(missing)} machines had not arrived" if missing else None
    run.append("metrics", status="incomplete" if missing else "ok", error=lacks, files=files, **about)


def unfetched(manifest: dict[str, Any], ledger: Sequence[dict[str, Any]]) -> MetricsRequest | None:
    """Find the trials whose metrics were not fetched yet; None when there are none.

    Those on replaced machines are left out: one machine that is gone would spoil the answer.
    """
    fetched = [
        number
        for number, event in enumerate(ledger)
        if event["event"] == "metrics" and event["status"] != "failed"
    ]
    current = _current_machines(manifest)
    trials = [
        event
        for event in ledger[max(fetched, default=-1) + 1 :]
        if event["event"] == "trial" and event["machine_id"] in current
    ]
    if not trials:
        return None
    scenario = manifest["scenario"]
    grain_s = int((manifest.get("emulator") or {}).get("metrics_grain_s", GRAIN_S))
    return MetricsRequest(
        machines=tuple(dict.fromkeys(event["machine_id"] for event in trials)),
        start=min(epoch(event["started_utc"]) for event in trials) // grain_s * grain_s,
        end=max(epoch(event["ended_utc"]) for event in trials),
        grain_s=grain_s,
        needed=_needed(scenario, trials, grain_s),
        cached=any(item.get("cache", "None") != "None" for item in scenario["disk"]),
    )


def _needed(
    scenario: Mapping[str, Any], trials: Iterable[Mapping[str, Any]], grain_s: int
) -> dict[str, float]:
    """Begin of the last whole grain within a trial that succeeded, by machine."""
    loads = {item["name"]: item for item in scenario["workload"]}
    needed: dict[str, float] = {}
    for event in trials:
        begin = epoch(event["started_utc"]) + loads[event["workload"]].get("ramp_s", 0.0)
        runtime_s = event.get("evidence_s") or loads[event["workload"]]["runtime_s"]
        last = (begin + runtime_s) // grain_s * grain_s - grain_s
        if event["status"] == "ok" and last >= begin:
            needed[event["machine_id"]] = max(last, needed.get(event["machine_id"], 0.0))
    return needed


def _current_machines(manifest: dict[str, Any]) -> set[str]:
    """Ids of the machines of the latest set of each planned replicate."""
    latest = {row["origin"]: row for row in manifest["replicates"]}
    return {machine["id"] for row in latest.values() for machine in row["machines"].values()}


def host_of(region: str) -> str:
    """Address of the metrics of a region's machines, in Azure's own cloud."""
    return f"https://{region}.metrics.monitor.azure.com"


class _Monitor:
    """The SDK's client of one region, which also hands out its answers as they came."""

    def __init__(self, clients: Clients, region: str) -> None:
        from azure.monitor.querymetrics import MetricsClient

        cloud = clients.cloud
        if cloud.endpoint is not None and cloud.provenance != Provenance.EMULATED:
            raise DiskbookError(f"no host of metrics is known for the cloud at {cloud.endpoint}")
        endpoint = cloud.endpoint or host_of(region)
        self.time_scale = cloud.time_scale
        self.tell = clients.tell
        self._client = MetricsClient(endpoint, cloud.credential, **clients.options())

    def query(
        self, machines: Sequence[str], metrics: Sequence[Metric], start: float, end: float, grain_s: int
    ) -> tuple[bytes, list[Any]]:
        """Ask once; return the answer as it came, and as the SDK reads it."""
        bodies: list[bytes] = []
        by_lun: dict[str, Any] = {"filter": f"{LUN} eq '*'", "max_results": MOST_LUNS}
        results = self._client.query_resources(
            resource_ids=list(machines),
            metric_namespace=NAMESPACE,
            metric_names=[metric.name for metric in metrics],
            timespan=(datetime.fromtimestamp(start, UTC), datetime.fromtimestamp(end, UTC)),
            granularity=timedelta(seconds=grain_s),
            aggregations=["average", "maximum"],
            raw_response_hook=lambda response: bodies.append(response.http_response.content),
            **(by_lun if metrics[0].path == "disk" else {}),
        )
        return bodies[-1], results


def _wait(monitor: _Monitor, request: MetricsRequest) -> set[str]:
    """Wait until the last window that each machine's trials need has arrived; return those that lack it."""
    missing = set(request.needed)
    deadline = time.monotonic() + WAIT_S * monitor.time_scale
    announced = False
    while missing:
        missing -= _arrived(monitor, request, sorted(missing))
        if not missing or time.monotonic() >= deadline:
            break
        if not announced and WAIT_S * monitor.time_scale > 60:
            monitor.tell(
                f"waiting up to {WAIT_S / 60:.0f} minutes for the platform's metrics of the last trial"
            )
            announced = True
        time.sleep(AGAIN_S * monitor.time_scale)
    return missing


def _arrived(monitor: _Monitor, request: MetricsRequest, machines: Sequence[str]) -> set[str]:
    """Machines whose last needed window has a value."""
    arrived = set()
    for batch in _batches(machines):
        times = [request.needed[machine] for machine in batch]
        _, results = monitor.query(
            batch, MACHINE_METRICS[:1], min(times), max(times) + request.grain_s, request.grain_s
        )
        for machine, result in zip(batch, results, strict=True):
            values = [value for metric in result.metrics for part in metric.timeseries for value in part.data]
            there = {value.timestamp.timestamp() for value in values if value.average is not None}
            if request.needed[machine] in there:
                arrived.add(machine)
    return arrived


def _answers(monitor: _Monitor, request: MetricsRequest) -> Iterator[bytes]:
    """Every answer, by stretch of time, kind of metric and batch of machines."""
    machine = [metric for metric in MACHINE_METRICS if request.cached or metric.path != "cached"]
    step = WINDOWS_A_CALL * request.grain_s
    start = request.start
    while start < request.end:
        for metrics in (DISK_METRICS, machine):
            for batch in _batches(request.machines):
                yield monitor.query(batch, metrics, start, min(start + step, request.end), request.grain_s)[0]
        start += step


def _batches(machines: Sequence[str]) -> Iterator[Sequence[str]]:
    for first in range(0, len(machines), RESOURCES_A_CALL):
        yield machines[first : first + RESOURCES_A_CALL]
