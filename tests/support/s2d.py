"""A made-up run of the arms of `s2d-azure` with known latencies, caps and local share, for tests."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from diskbook.clusters.stats import volume_bound, volume_setups
from diskbook.clusters.stats.volume_bound import Load, Setup
from diskbook.design import arm_words, schema
from diskbook.design.model import Arm, Scenario, Workload
from diskbook.facts import catalog, disk_options
from diskbook.facts.units import KIB, MB
from diskbook.results import plan as plans, tables as store_tables
from diskbook.results.run import Run
from support.manifests import MINIMAL

NODES = ("n1", "n2", "n3")
SERVER = {"name": "server", "size": "Standard_D32s_v3", "zone": "1", "os": "windows"}
P30 = {"sku": "Premium_LRS", "size_gib": 1024, "zone": "1"}
SIMPLE = {"machine": "server"}
MOSTLY = ("ss-4", "s2d-3")
ADAPTER = "Microsoft Hyper-V Network Adapter"
OVER = 1.02
"""Caps are seen that much above nominal."""
CORNER = 12.0
"""How sharply a rate bends from the loop's to the cap's: 6 % lost where they cross, nothing at twice that."""


@dataclass(frozen=True)
class Truth:
    """What is planted: latencies of single I/Os in ms by block in KiB, noise, and where reads are answered.

    `write_factor` is the slowest of three copies over one (lognormal with sigma 0.2), `hop_ms` what a copy
    waits for its network.
    """

    latency_ms: Mapping[int, float] = field(default_factory=lambda: {4: 4.03, 64: 4.6})
    write_factor: float = 1.174
    hop_ms: float = 0.15
    local_share: float = 0.6
    block: float = 0.02
    trial: float = 0.01


def raw(blocks: int = 5, threads: tuple[int, ...] = (1, 4, 8, 12, 18), node: str = "Standard_L16s") -> dict:
    """Tables of the scenario: arms, volumes, loads and comparisons as the issue has them."""
    machines = [SERVER, *({"name": name, "size": node, "zone": "1", "os": "windows"} for name in NODES)]
    return {
        "name": "s2d-azure",
        "preset": "standard",
        "scenario": {"title": "Storage Spaces Direct in Azure", "article": "s2d-azure", "site": "s2d-azure",
                     "question": "What does a cluster cost?", "region": "westeurope"},
        "machine": machines,
        "disk": [{"name": "p30", **P30, "count": 4}, {"name": "p30-8", **P30, "count": 8}],
        "cluster": [{"name": "s2d", "nodes": list(NODES)}],
        "volume": [
            {"name": "four", "kind": "simple", **SIMPLE, "disk": "p30", "columns": 4, "size_gib": 4000},
            {"name": "eight", "kind": "simple", **SIMPLE, "disk": "p30-8", "columns": 8, "size_gib": 8000},
            {"name": "mirror", "kind": "three-way", "cluster": "s2d", "disk": "p30", "columns": 4,
             "size_gib": 1024},
        ],
        "arm": [
            {"name": "ss-4", "volume": "four", "machine": "server", "label": "one server, 4 P30"},
            {"name": "ss-8", "volume": "eight", "machine": "server", "label": "one server, 8 P30"},
            {"name": "s2d-3", "volume": "mirror", "machine": "n1", "label": "S2D, 3 nodes"},
            {"name": "s2d-3-remote", "volume": "mirror", "machine": "n1", "owner": "n2",
             "label": "S2D, owner elsewhere"},
        ],
        "workload": list(_loads(blocks, threads)),
        "design": {"replicates": 1},
        "comparison": list(_comparisons()),
    }  # fmt: skip


def _loads(blocks: int, threads: tuple[int, ...]) -> Any:
    for direction, share in (("read", 0), ("write", 100)):
        common = {"write_pct": share, "blocks": blocks, "runtime_s": 30.0}
        for kib in (4, 64):
            size = {"block_size": f"{kib}K", **common}
            for number in threads:
                few = {} if number in (1, threads[-2]) else {"arms": list(MOSTLY)}
                name = f"{direction}-{kib}k-t{number}"
                yield {"name": name, "threads": number, "queue_depth": 8, **size, **few}
        single = {"block_size": "4K", "queue_depth": 1, **common}
        yield {"name": f"{direction}-4k-qd1", **single, "arms": ["ss-4", "ss-8", "s2d-3", "s2d-3-remote"]}
        held = {"block_size": "4K", "threads": 12, "queue_depth": 8, "rate": 10_000.0, "arms": list(MOSTLY)}
        yield {"name": f"{direction}-4k-half", **common, **held}


def _comparisons() -> Any:
    for load in ("read-4k-qd1", "write-4k-qd1"):
        yield {
            "arm": "s2d-3",
            "base_arm": "ss-4",
            "workload": load,
            "pairing": "replicate",
            "family": "headline",
        }
        yield {"arm": "s2d-3-remote", "base_arm": "s2d-3", "workload": load, "pairing": "same-machine"}
    for load in ("read-4k-t1", "write-4k-t1"):
        yield {
            "arm": "ss-8",
            "base_arm": "ss-4",
            "workload": load,
            "pairing": "same-machine",
            "metric": "iops",
        }
    for metric in ("lat_mean_ms", "iops", "throughput_mb_s"):
        yield {"arm": "s2d-3", "base_arm": "ss-4", "workload": "write-4k-t1", "pairing": "replicate",
               "metric": metric}  # fmt: skip


def scenario(without: tuple[str, ...] = (), **options: Any) -> Scenario:
    """The scenario as a record, without some arms and what only they have."""
    tables = raw(**options)
    tables["arm"] = [arm for arm in tables["arm"] if arm["name"] not in without]
    known = {arm["name"] for arm in tables["arm"]}
    for load in tables["workload"]:
        if "arms" in load:
            load["arms"] = [name for name in load["arms"] if name in known]
    tables["workload"] = [load for load in tables["workload"] if load.get("arms") != []]
    pairs = [(item, {item["arm"], item["base_arm"]}) for item in tables["comparison"]]
    tables["comparison"] = [item for item, arms in pairs if arms <= known]
    return Scenario.model_validate(tables)


def manifest(made: Scenario, sizes: Mapping[str, str] | None = None, replicates: int = 1) -> dict[str, Any]:
    """Manifest with documented limits, and no more of machines and disks than the analysis needs."""
    rows = [_replicate(made, number, sizes or {}) for number in range(1, replicates + 1)]
    dumped = made.model_dump(mode="json")
    return {
        **MINIMAL,
        "run": "made-up",
        "provenance": "emulated",
        "cloud": "emulator",
        "site": made.site,
        "emulator": {"profile": "default", "seed": 1},
        "scenario": copy.deepcopy(dumped),
        "versions": {"python": "3.11"},
        "replicates": rows,
    }


def _replicate(made: Scenario, number: int, sizes: Mapping[str, str]) -> dict[str, Any]:
    machines, disks = {}, {}
    for machine in made.machine:
        size = catalog.vm_size(sizes.get(machine.name, machine.size))
        rates = size.uncached_iops, size.uncached_mb_s, size.uncached_burst_iops, size.uncached_burst_mb_s
        machines[machine.name] = {
            "size": size.name, "logical_zone": "1", "physical_zone": "westeurope-az1",
            "limits": _named(rates),
        }  # fmt: skip
    for spec, _ in made.made_disks():
        own = disk_options.limits(spec)
        disks[spec.name] = {
            "sku": spec.sku, "physical_zone": "westeurope-az1", "read_back": {"sku": spec.sku},
            "limits": _named((own.iops, own.mb_s, own.burst_iops, own.burst_mb_s)),
        }  # fmt: skip
    return {"replicate": number, "machines": machines, "disks": disks}


def _named(rates: tuple[float | None, ...]) -> dict[str, float | None]:
    return dict(zip(("iops", "mb_s", "burst_iops", "burst_mb_s"), rates, strict=True))


@dataclass(frozen=True)
class MadeUp:
    """Tables of a made-up run, with what they were made from."""

    scenario: Scenario
    manifest: dict[str, Any]
    trials: pd.DataFrame
    series: pd.DataFrame
    bins: pd.DataFrame
    counters: pd.DataFrame
    truth: Truth


def run(seed: int = 1, truth: Truth | None = None, replicates: int = 1, **options: Any) -> MadeUp:
    """Make up a run of the scenario."""
    planted, made, rng = truth or Truth(), scenario(**options), np.random.default_rng(seed)
    recorded = manifest(made, replicates=replicates)
    setups = volume_setups.documented(made)
    blocks = max(item.blocks for item in made.workload)
    rows, counted = [], []
    clock = pd.Timestamp("2026-11-20T08:00:00Z")
    for replicate in range(1, replicates + 1):
        for block in range(1, blocks + 1):
            common = rng.normal(0, planted.block)
            for position, place in enumerate(rng.permutation(len(made.arm)).tolist(), 1):
                arm = made.arm[place]
                for load in (item for item in made.workload if item.meets(arm.name)):
                    clock += pd.Timedelta(seconds=load.runtime_s + 1)
                    where = {
                        "replicate": replicate,
                        "block": block,
                        "position": position,
                        "started_utc": clock,
                    }
                    noise = common + rng.normal(0, planted.trial), rng.normal(0, 0.0005)
                    row = trial_row(
                        where, made, arm, load, _rate(setups[arm.name], arm, load, planted, *noise)
                    )
                    rows.append(row)
                    counted += _counters(row, made, arm, load, planted.local_share)
    trials = volume_setups.with_limits(schema.from_rows(schema.TRIALS, rows), recorded)
    series = pd.DataFrame([part for row in rows for part in series_rows(row, rng)])
    bins = pd.DataFrame([part for row in rows for part in bin_rows(row, rng)])
    return MadeUp(made, recorded, trials, series, bins, schema.from_rows(schema.COUNTERS, counted), planted)


def single_ms(arm: Arm, load: Workload, truth: Truth) -> float:
    """Latency of an I/O that does not wait, as planted."""
    latency = truth.latency_ms[load.block_size // KIB]
    if not arm.volume.startswith("mirror"):
        return latency
    latency = latency * truth.write_factor + truth.hop_ms if load.write_pct else latency
    remote = 2 * truth.hop_ms if arm_words.is_remote(arm) else 0.0
    return latency + remote + (0.0 if load.write_pct else (1 - truth.local_share) * truth.hop_ms)


def cap(setup: Setup, load: Workload, truth: Truth) -> float:
    """Most IOPS of a volume as seen: the bound with the planted local share, and a little above it."""
    own = Setup(setup.shape, setup.disk, setup.vm, local_share=truth.local_share, remote=setup.remote)
    return OVER * volume_bound.bound(own, Load(load.block_size, load.write_pct / 100)).iops


def _rate(
    setup: Setup, arm: Arm, load: Workload, truth: Truth, log_latency: float, log_cap: float
) -> tuple[float, float]:
    """Rate and mean latency of a closed loop that bends into its cap, or of a rate that is held."""
    latency = single_ms(arm, load, truth) * float(np.exp(log_latency))
    if load.rate is not None:
        return load.rate, latency
    loop, most = 1000 * load.outstanding / latency, cap(setup, load, truth) * float(np.exp(log_cap))
    return bent(loop, most, load.outstanding)


def bent(loop: float, most: float, outstanding: int) -> tuple[float, float]:
    """Rate and mean latency of a closed loop that bends into its cap."""
    iops = most / (1 + (most / loop) ** CORNER) ** (1 / CORNER)
    return iops, 1000 * outstanding / iops


def trial_row(
    where: dict, made: Scenario, arm: Arm, load: Workload, rate: tuple[float, float]
) -> dict[str, Any]:
    iops, latency = rate
    direction = "write" if load.write_pct else "read"
    percentiles = dict(zip(("lat_p50_ms", "lat_p99_ms", "lat_p999_ms"), (0.97, 1.5, 2.2), strict=True))
    return {
        **where, "run": "made-up", "scenario": "s2d-azure", "provenance": "emulated", "site": "s2d-azure",
        "repeat": 1, "arm": arm.name,
        "trial": f"r{where['replicate']}-b{where['block']}-{arm.name}-{load.name}",
        "workload": load.name, "tool": "diskspd", "tool_version": "2.0.21a", "direction": direction,
        "machine_id": f"{arm.machine}-{where['replicate']}", "disk_id": f"{arm.volume}-{where['replicate']}",
        "vm_size": made.machine_named(arm.machine).size, "lun": None, "logical_zone": "1",
        "physical_zone": "westeurope-az1", "attempt": 1, "status": "ok", "error": None, "ramp_s": 5.0,
        "runtime_s": load.runtime_s, "outstanding": load.outstanding, "block_size_bytes": load.block_size,
        "ios": round(iops * load.runtime_s), "iops": iops, "throughput_mb_s": iops * load.block_size / MB,
        "lat_mean_ms": latency, **{name: factor * latency for name, factor in percentiles.items()},
        "rate_offered": load.rate, "credit_state": "full", "credit_left_share": 1.0, "raw_path": None,
        "raw_sha256": None,
        **dict.fromkeys(("cap_disk_iops", "cap_disk_mb_s", "cap_vm_iops", "cap_vm_mb_s")),
    } | {column.name: column.default for column in schema.TRIALS.columns if column.default is not None} | {
        "volume": arm.volume, "owner": arm.owner or arm.machine
    } | {column.name: None for column in schema.TRIALS.columns if column.name.startswith("cap_")}  # fmt: skip


def series_rows(row: dict, rng: np.random.Generator) -> list[dict]:
    rate = row["iops"] * (1 + rng.normal(0, 0.02, 4))
    return [
        {"trial": row["trial"], "direction": row["direction"], "second": second, "iops": value,
         "lat_mean_ms": 1000 * row["outstanding"] / value}
        for second, value in enumerate(rate.tolist(), 1)
    ]  # fmt: skip


def bin_rows(row: dict, rng: np.random.Generator) -> list[dict]:
    latencies = row["lat_mean_ms"] * np.exp(rng.normal(-0.02, 0.2, 500))
    edges, counts = np.unique((latencies * 1e6).astype(np.int64) >> 18, return_counts=True)
    place = {"trial": row["trial"], "direction": row["direction"]}
    pairs = zip((edges << 18).tolist(), (20 * counts).tolist(), strict=True)
    return [{**place, "lat_ns": lat, "count": count} for lat, count in pairs]


def _counters(row: dict, made: Scenario, arm: Arm, load: Workload, own: float) -> list[dict]:
    """Bytes that cross the network of each node in a trial, ramp and all, with 2 % of headers."""
    volume = made.volume_named(arm.volume)
    nodes = made.nodes_of(volume)
    if len(nodes) == 1:
        return []
    data = row["ios"] * row["block_size_bytes"] * (row["ramp_s"] + row["runtime_s"]) / row["runtime_s"] * 1.02
    owner = arm.owner or arm.machine
    sent = dict.fromkeys(nodes, 0.0)
    received = dict.fromkeys(nodes, 0.0)
    for node in nodes:
        if node != owner:
            way = (owner, node) if load.write_pct else (node, owner)
            part = data if load.write_pct else data * (1 - own) / (len(nodes) - 1)
            sent[way[0]] += part
            received[way[1]] += part
    if owner != arm.machine:
        way = (arm.machine, owner) if load.write_pct else (owner, arm.machine)
        sent[way[0]] += data
        received[way[1]] += data
    return [
        {"run": "made-up", "trial": row["trial"], "machine": node, "instance": ADAPTER,
         "counter": rf"Network Interface\Bytes {name}/sec", "before": 1e9, "after": 1e9 + totals[node]}
        for node in nodes
        for name, totals in (("Sent", sent), ("Received", received))
    ]  # fmt: skip


def run_folder(folder: Path, **options: Any) -> Run:
    """Write a run folder without raw results: manifest, ledger and tables of a made-up run."""
    made_up = run(**options)
    tables = store_tables.Tables(made_up.trials, made_up.bins, made_up.series, counters=made_up.counters)
    return written(folder, made_up.manifest, tables)


def written(folder: Path, recorded: Mapping[str, Any], tables: store_tables.Tables) -> Run:
    """Write manifest, tables and the ledger's blocks of a made-up run."""
    folder.mkdir(parents=True)
    opened = Run(folder)
    opened.write_manifest({**recorded, "run": folder.name})
    for block in plans.blocks_of(opened):
        opened.append("block", replicate=block.replicate, block=block.block, status="complete")
    store_tables.write(tables, folder)
    return opened
