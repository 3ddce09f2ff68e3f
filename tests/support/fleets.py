"""Made-up archives of fleet trials: any number of machines, their rates, spread in time, and histograms."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np

from diskbook.clusters import vmfleet
from diskbook.clusters.vmfleet import archive, fleet as fleet_of_tool, line as names
from diskbook.design.diskspd_arguments import Arguments, parse, with_target
from diskbook.facts import archives
from diskbook.facts.units import NS_PER_MS
from diskbook.results import tables as store_tables
from diskbook.results.run import Run
from diskbook.results.tables import Tables
from diskbook.tools.diskspd import xml
from diskbook.tools.record import Direction, Load, Measurement, Series, percentile_ns
from diskbook_emulator import windows_xml
from support.manifests import MINIMAL

LINE = "-Z20M -z -h -t2 -o4 -b4k -r4k -w30 -W1 -C1 -d10 -D -L -Rxml"
BEGAN = datetime(2026, 11, 22, 10, tzinfo=UTC)


@dataclass(frozen=True)
class Vm:
    """A machine: what it did, in I/Os a second by direction, and when.

    `latency_ms` are the latencies of its I/Os, as often one as the other; `rates` tells IOPS by second where
    they are not the same all the time.
    """

    name: str
    volume: str = "two-way-1"
    node: str = "node1"
    started_s: float = 0.0
    runtime_s: float = 10.0
    iops: Mapping[str, float] = field(default_factory=lambda: {"read": 280.0, "write": 120.0})
    latency_ms: Sequence[float] = (18.0, 20.0, 22.0)
    rates: Mapping[str, Sequence[float]] = field(default_factory=dict)


def fleet(
    count: int = 4, *, volumes: int = 2, spread_s: float = 1.0, cv: float = 0.0, **of_all: Any
) -> list[Vm]:
    """Machines on volumes and nodes in turn, that begin within `spread_s`, at rates that differ by `cv`."""
    shifts = np.linspace(-1, 1, count) if count > 1 else np.zeros(1)
    factors = 1 + cv * (shifts / shifts.std(ddof=1) if count > 1 else shifts)
    iops = of_all.pop("iops", {"read": 280.0, "write": 120.0})
    machines = []
    for number in range(count):
        member = number % volumes + 1
        volume, node = f"two-way-{member}", f"node{member}"
        machines.append(
            Vm(
                names.machine(volume, node, number // volumes + 1),
                volume,
                node,
                started_s=spread_s * number / max(count - 1, 1),
                iops={key: rate * factors[number] for key, rate in iops.items()},
                **of_all,
            )
        )
    return machines


def archive_of(
    machines: Sequence[Vm], *, spec: str = "trial", line: str = LINE, listed: bool = True
) -> bytes:
    """Pack the results of machines as a trial's archive, with fleet.json where they are listed."""
    return archives.pack(files_of(machines, spec=spec, line=line, listed=listed))


def files_of(
    machines: Sequence[Vm], *, spec: str = "trial", line: str = LINE, listed: bool = True
) -> dict[str, bytes]:
    """Files of such an archive by name: they are also a folder of VMFleet's."""
    asked = with_target(parse(line), r"C:\run\testfile1.dat")
    files = {names.result_file(asked, spec, vm.name): xml_of(vm, asked) for vm in machines}
    if listed:
        files[archive.MACHINES] = json.dumps({"vms": {vm.name: _place(vm) for vm in machines}}).encode()
    return files


def machine_of(vm: Vm, *, line: str = LINE, listed: bool = True) -> fleet_of_tool.Machine:
    """A machine as the reader of an archive makes it; its beginning to the millisecond where it is listed."""
    asked = with_target(parse(line), r"C:\run\testfile1.dat")
    read = fleet_of_tool.machine(vm.name, xml.parse(xml_of(vm, asked).decode(), vm.name), vm.name)
    return replace(read, volume=vm.volume, node=vm.node, started=_at(vm.started_s) if listed else None)


def xml_of(vm: Vm, asked: Arguments, cores: Sequence[tuple[float, float]] = ()) -> bytes:
    """DiskSpd's XML of a machine, and how busy its cores were."""
    directions = {name: _direction(vm, name, rate, asked) for name, rate in vm.iops.items() if rate}
    total = Measurement("vm", "", Load(), directions, version="fio-3.33")
    threads = [_share(total, number, asked.threads) for number in range(asked.threads)]
    measured = windows_xml.Measured(total, tuple(threads), _series(vm), cores)
    return windows_xml.document(asked, 10 * 2**30, measured, _at(vm.started_s)).encode()


def _place(vm: Vm) -> dict[str, str]:
    times = {"started_utc": _at(vm.started_s), "ended_utc": _at(vm.started_s + vm.runtime_s)}
    stamps = {key: time.isoformat(timespec="milliseconds") for key, time in times.items()}
    return {"volume": vm.volume, "node": vm.node, **stamps}


def _at(second: float) -> datetime:
    return BEGAN + timedelta(seconds=second)


def _direction(vm: Vm, name: str, rate: float, asked: Arguments) -> Direction:
    rates = vm.rates.get(name)
    ios = round(sum(rates) if rates is not None else rate * vm.runtime_s)
    spread = np.array_split(np.arange(ios), len(vm.latency_ms))
    counts = {
        round(ms * NS_PER_MS): len(part) for ms, part in zip(sorted(vm.latency_ms), spread, strict=True)
    }
    bins = {ns: count for ns, count in counts.items() if count}
    mean = sum(ns * count for ns, count in bins.items()) / ios / NS_PER_MS
    p50, p99 = (value / NS_PER_MS for value in percentile_ns(bins, 0.5, 0.99))
    return Direction(
        ios=ios,
        iops=ios / vm.runtime_s,
        bw_bytes=ios / vm.runtime_s * asked.block_size,
        runtime_ms=1000 * vm.runtime_s,
        lat_mean_ms=mean,
        lat_stddev_ms=0.0,
        lat_min_ms=min(bins) / NS_PER_MS,
        lat_max_ms=max(bins) / NS_PER_MS,
        lat_p50_ms=p50,
        lat_p99_ms=p99,
        bins=bins,
    )


def _share(total: Measurement, number: int, threads: int) -> Measurement:
    """What one thread did: an even part, the first ones what is left."""
    parts = {}
    for name, part in total.directions.items():
        ios = int(part.ios // threads + (number < part.ios % threads))
        parts[name] = Direction(ios, 0.0, 0.0, 0.0, part.lat_mean_ms, part.lat_stddev_ms)
    return Measurement("thread", "", Load(), parts)


def _series(vm: Vm) -> dict[str, Series]:
    ends = np.arange(1.0, int(vm.runtime_s) + 1)
    series = {}
    for name, rate in vm.iops.items():
        rates = np.asarray(vm.rates.get(name, [rate] * len(ends)), float)[: len(ends)]
        series[name] = Series(ends, rates, np.full(len(ends), float(np.mean(vm.latency_ms))))
    return series


def write_run(run: Run, trials: Mapping[str, Sequence[Vm]]) -> None:
    """Write a run of one cell, whose trials are these fleets, one a block."""
    first = next(iter(trials.values()))
    run.write_manifest(_manifest(len(first), max(vm.runtime_s for vm in first)))
    for block, (trial, machines) in enumerate(trials.items(), 1):
        files = {"fleet": run.write_raw(f"{trial}.zip", archive_of(machines, spec=trial))}
        run.append("trial", **_event(trial, block), files=files)
        run.append("block", replicate=1, block=block, status="complete")


def tables_of(trials: Mapping[str, Sequence[Vm]]) -> Tables:
    """Tables of such a run, without its files."""
    first = next(iter(trials.values()))
    results = {trial: vmfleet.TOOL.read({"fleet": archive_of(vms)}, trial) for trial, vms in trials.items()}
    ledger: list[dict[str, Any]] = []
    for block, trial in enumerate(trials, 1):
        ledger.append({"event": "trial", **_event(trial, block)})
        ledger.append({"event": "block", "replicate": 1, "block": block, "status": "complete"})
    manifest = _manifest(len(first), max(vm.runtime_s for vm in first))
    return store_tables.tables_of(manifest, ledger, lambda event, _: results[event["trial"]])


def _manifest(instances: int, runtime_s: float) -> dict[str, Any]:
    none = dict.fromkeys(("iops", "mb_s", "burst_iops", "burst_mb_s"))
    load = {"name": "mixed", "block_size": 4096, "write_pct": 30, "threads": 2, "queue_depth": 4}
    asked = {"instances": instances, "tool": "vmfleet", "runtime_s": runtime_s, "ramp_s": 1.0}
    return {
        **MINIMAL,
        "run": "small",
        "provenance": "emulated",
        "site": "default",
        "scenario": {"name": "tiny", "workload": [{**load, **asked}]},
        "replicates": [
            {
                "replicate": 1,
                "machines": {"n1": {"id": "/n1", "size": "Standard_D32s_v5", "limits": none}},
                "disks": {"p30": {"id": "/p30", "limits": none}},
            }
        ],
    }


def _event(trial: str, block: int) -> dict[str, Any]:
    place = {"replicate": 1, "block": block, "repeat": 1, "position": 1, "arm": "two-way", "attempt": 1}
    where = {"machine": "n1", "machine_id": "/n1", "disk": "p30", "disk_id": "/p30", "workload": "mixed"}
    times = dict.fromkeys(("started_utc", "ended_utc"), BEGAN.isoformat(timespec="microseconds"))
    return {"trial": trial, **place, **where, **times, "status": "ok", "error": None, "tool": "vmfleet"}
