"""A small made-up run with known ratios, for tests: tables as `diskbook.results.tables` has them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from diskbook.design import scenario_file as scenarios, schema
from diskbook.design.model import Comparison, Scenario, Workload
from diskbook.results import plan as plans, tables as store_tables
from diskbook.results.run import Run
from support.manifests import MINIMAL

CAP_IOPS = 5000.0
OBSERVED_CAP = 5100.0
VM = "Standard_D4as_v4"


@dataclass(frozen=True)
class Load:
    """What is offered: direction as the tables name it, I/Os outstanding, seconds."""

    name: str
    direction: str
    outstanding: int = 1
    runtime_s: float = 30.0
    block_size_bytes: int = 4096


READ = Load("randread-qd1", "read")
WRITE = Load("randwrite-qd1", "write")
COMMIT = Load("commit-qd1", "commit")
DEEP_READ = Load("randread-qd256", "read", 256)
DEEP_WRITE = Load("randwrite-qd256", "write", 256)
LOADS = (READ, WRITE, COMMIT, DEEP_READ, DEEP_WRITE)


ONE_LRS = {
    "lrs-z1": {"read": 2.2, "write": 1.3, "commit": 1.9},
    "lrs-b-z1": {"read": 2.21, "write": 1.31, "commit": 1.91},
    "zrs-z1": {"read": 4.3, "write": 3.2, "commit": 4.4},
    "zrs-z2": {"read": 2.2, "write": 3.2, "commit": 4.4},
    "zrs-z3": {"read": 3.2, "write": 4.8, "commit": 6.1},
}
"""Mean latencies in ms, as older runs of `zone-disks` have their arms (`every_block`)."""
BY_ZONE = {**ONE_LRS, "lrs-z2": ONE_LRS["lrs-z1"], "lrs-z3": ONE_LRS["lrs-z1"]}
"""The same with an LRS disk in each zone."""


@dataclass(frozen=True)
class Truth:
    """Mean latencies in ms by arm and direction, and noise (standard deviations of logs)."""

    latency_ms: dict[str, dict[str, float]] = field(default_factory=lambda: ONE_LRS)
    block: float = 0.02
    trial: float = 0.01
    disk: float = 0.0


def tables(
    seed: int = 1,
    truth: Truth | None = None,
    n_replicates: int = 1,
    n_blocks: int = 4,
    repeats: int = 1,
    loads: tuple[Load, ...] = LOADS,
    samples: int = 30,
    draws: int = 2000,
    provenance: str = "emulated",
) -> tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame]:
    """Trials, bins and series of a run in blocks of random arm order."""
    truth, rng = truth or Truth(), np.random.default_rng(seed)
    rows: list[dict] = []
    bins: list[dict] = []
    series: list[dict] = []
    clock = pd.Timestamp("2026-11-20T08:00:00Z")
    for replicate in range(1, n_replicates + 1):
        disk = {arm: rng.normal(0, truth.disk) for arm in truth.latency_ms}
        for block in range(1, n_blocks + 1):
            common = rng.normal(0, truth.block)
            order = list(rng.permutation(list(truth.latency_ms)))
            order = order if repeats == 1 else order + order[::-1]
            for position, arm in enumerate(order, 1):
                for load in loads:
                    clock += pd.Timedelta(seconds=load.runtime_s + 1)
                    factor = np.exp(common + disk[arm] + rng.normal(0, truth.trial))
                    base = _common(replicate, block, order[:position].count(arm), position, arm, load, clock)
                    made = _measured(
                        base, load, truth.latency_ms[arm][load.direction] * factor, rng, provenance
                    )
                    rows += made
                    bins.append(_bins(base["trial"], load, made[-1], draws, rng))
                    series.append(_series(base["trial"], load, made[-1], samples, rng))
    return pd.DataFrame(rows), _joined(bins), _joined(series)


def _joined(parts: list[dict]) -> pd.DataFrame:
    """One table of the trials' parts; a table for each part would take ten times as long."""
    lengths = [max(np.size(column) for column in part.values()) for part in parts]
    columns = {name: [part[name] for part in parts] for name in parts[0]}
    return pd.DataFrame(
        {
            name: np.repeat(values, lengths) if np.ndim(values[0]) == 0 else np.concatenate(values)
            for name, values in columns.items()
        }
    )


def comparisons() -> list[Comparison]:
    """The comparisons of the scenario, in short."""
    rows = [
        ("zrs-z1", "lrs-z1", "randwrite-qd1", "same-machine", "headline"),
        ("zrs-z1", "lrs-z1", "randread-qd1", "same-machine", "headline"),
        ("zrs-z1", "lrs-z1", "commit-qd1", "same-machine", "headline"),
        ("lrs-b-z1", "lrs-z1", "randwrite-qd1", "same-machine", "control"),
        ("lrs-b-z1", "lrs-z1", "randread-qd1", "same-machine", "control"),
        ("zrs-z2", "zrs-z1", "randwrite-qd1", "same-disk", "exploratory"),
        ("zrs-z3", "zrs-z1", "randwrite-qd1", "same-disk", "exploratory"),
        ("zrs-z2", "zrs-z1", "randread-qd1", "same-disk", "exploratory"),
        ("zrs-z3", "zrs-z1", "randread-qd1", "same-disk", "exploratory"),
        ("zrs-z1", "lrs-z1", "randwrite-qd256", "same-machine", "exploratory"),
        ("zrs-z1", "lrs-z1", "randread-qd256", "same-machine", "exploratory"),
    ]
    names = ("arm", "base_arm", "workload", "pairing", "family")
    return [Comparison(**dict(zip(names, row, strict=True))) for row in rows]


def _common(replicate, block, repeat, position, arm, load, clock) -> dict:
    zone = arm[-1]
    disk = arm.rsplit("-", 1)[0]
    return {
        "run": "synthetic",
        "scenario": "zone-disks",
        "site": "zone-disks",
        "replicate": replicate,
        "block": block,
        "repeat": repeat,
        "position": position,
        "trial": f"r{replicate}-b{block}-{repeat}-{arm}-{load.name}",
        "arm": arm,
        "workload": load.name,
        "tool": "fio",
        "tool_version": "fio-3.33",
        "machine_id": f"vm{zone}-{replicate}",
        "disk_id": f"{disk}-{replicate}",
        "volume": "",
        "owner": "",
        "vm_size": VM,
        "lun": "0",
        "logical_zone": zone,
        "physical_zone": f"westeurope-az{zone}",
        "attempt": 1,
        "status": "ok",
        "error": None,
        "started_utc": clock,
    }


def _measured(base: dict, load: Load, latency_ms: float, rng, provenance: str) -> list[dict]:
    free = 1000 * load.outstanding / latency_ms
    capped = free > OBSERVED_CAP
    iops = OBSERVED_CAP * (1 + rng.normal(0, 0.0005)) if capped else free
    latency_ms = 1000 * load.outstanding / iops
    shared = {
        **base,
        "provenance": provenance,
        "ramp_s": 5.0,
        "runtime_s": load.runtime_s,
        "outstanding": load.outstanding,
        "block_size_bytes": load.block_size_bytes,
        "ios": round(iops * load.runtime_s),
        "iops": iops,
        "throughput_mb_s": iops * load.block_size_bytes / 1e6,
        "rate_offered": np.nan,
        "cap_disk_iops": CAP_IOPS,
        "cap_disk_mb_s": 200.0,
        "cap_disk_burst_iops": np.nan,
        "cap_disk_burst_mb_s": np.nan,
        "cap_vm_iops": 6400.0,
        "cap_vm_mb_s": 96.0,
        "cap_vm_burst_iops": 8000.0,
        "cap_vm_burst_mb_s": 200.0,
        "cap_vm_cached_iops": np.nan,
        "cap_vm_cached_mb_s": np.nan,
        "credit_state": "unknown",
        "credit_left_share": np.nan,
        "raw_path": "raw/x.json.gz",
        "raw_sha256": "0" * 64,
    }
    part = {"write": 0.7, "sync": 0.3} if load.direction == "commit" else {load.direction: 1.0}
    rows = [_row(shared, name, latency_ms * share) for name, share in part.items()]
    if load.direction == "commit":
        rows.append(_row(shared, "commit", latency_ms) | dict.fromkeys(PERCENTILES, np.nan))
    return rows


PERCENTILES = ("lat_p50_ms", "lat_p99_ms", "lat_p999_ms")


def _row(shared: dict, direction: str, latency_ms: float) -> dict:
    tail = dict(zip(PERCENTILES, (0.97 * latency_ms, 1.5 * latency_ms, 2.2 * latency_ms), strict=True))
    return {**shared, "direction": direction, "lat_mean_ms": latency_ms, **tail}


def _bins(trial: str, load: Load, row: dict, draws: int, rng) -> dict:
    latencies = row["lat_mean_ms"] * np.exp(rng.normal(-0.02, 0.2, min(int(row["ios"]), draws)))
    edges, counts = np.unique((latencies * 1e6).astype(np.int64) >> 15, return_counts=True)
    direction = "write" if load.direction == "commit" else load.direction
    return {"trial": trial, "direction": direction, "lat_ns": edges << 15, "count": counts}


def _series(trial: str, load: Load, row: dict, samples: int, rng) -> dict:
    cv = 0.001 if row["iops"] > 0.95 * CAP_IOPS else 0.02
    rate = row["iops"] * (1 + rng.normal(0, cv, samples))
    direction = "write" if load.direction == "commit" else load.direction
    return {
        "trial": trial,
        "direction": direction,
        "second": np.arange(1.0, samples + 1),
        "iops": rate,
        "lat_mean_ms": 1000 * load.outstanding / rate,
    }


def checked(trials: pd.DataFrame) -> pd.DataFrame:
    """Hold made-up trials against the schema of real ones."""
    return schema.validate(schema.TRIALS, trials[[name for name in schema.TRIALS.names if name in trials]])


def every_block(preset: str = "quick", changes: Mapping[str, Any] | None = None) -> Scenario:
    """`zone-disks` as older runs have it: LRS in zone 1 alone, and the ZRS disk moves in every block."""
    scenario = scenarios.load("zone-disks", preset, dict(changes or {}))
    arms = [arm for arm in scenario.arm if arm.name in ONE_LRS]
    disks = {arm.disk for arm in arms}
    return scenario.model_copy(
        update={
            "arm": tuple(arm.model_copy(update={"placement": None}) for arm in arms),
            "disk": tuple(disk for disk in scenario.disk if disk.name in disks),
            "workload": tuple(_for_all(load) for load in scenario.workload),
            "comparison": tuple(comparisons()),
        }
    )


def _for_all(load: Workload) -> Workload:
    """The load for all arms if it is one of `LOADS`; others have no arms in zones 2 and 3."""
    names = {item.name for item in LOADS}
    arms = () if load.name in names else tuple(name for name in load.arms if name in ONE_LRS)
    return load.model_copy(update={"arms": arms})


def run_folder(
    folder: Path, provenance: str = "emulated", scenario: Scenario | None = None, **options: Any
) -> Run:
    """Write a run folder without raw results: manifest, ledger and tables of a made-up run.

    Its scenario is `every_block` by default.
    """
    scenario = scenario or every_block()
    trials, bins, series = tables(provenance=provenance, **options)
    folder.mkdir(parents=True)
    run = Run(folder)
    disk = {"sku": "Premium_LRS", "physical_zone": "westeurope-az1", "read_back": {"sku": "Premium_LRS"}}
    machine = {"size": VM, "logical_zone": "1", "physical_zone": "westeurope-az1"}
    run.write_manifest(
        {
            **MINIMAL,
            "run": folder.name,
            "provenance": provenance,
            "cloud": "emulator",
            "site": "zone-disks",
            "emulator": {"profile": "default", "seed": 1},
            "scenario": scenario.model_dump(mode="json"),
            "versions": {"python": "3.11"},
            "replicates": [{"replicate": 1, "disks": {"lrs": disk}, "machines": {"vm1": machine}}],
        }
    )
    refused = {"expected": "BadRequest", "observed": "BadRequest", "text": "zone 1 is not zone 2"}
    run.append("finding", name="lrs-attach-other-zone", replicate=1, ok=True, **refused)
    run.append("operation", name="attach", target="zrs", real_s=0.1, unscaled_s=10.0)
    for block in plans.blocks_of(run):
        run.append("block", replicate=block.replicate, block=block.block, status="complete")
    store_tables.write(store_tables.Tables(checked(trials), bins, series), folder)
    return run
