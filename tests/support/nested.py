"""A made-up run of the arms of `nested-resiliency` with known copies, caps, tiers and machines, for tests."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from diskbook.clusters.stats import fleet, volume_setups
from diskbook.clusters.stats.volume_bound import IOS_A_WRITE
from diskbook.design import schema
from diskbook.design.model import Arm, Scenario, Workload
from diskbook.results import tables as store_tables
from diskbook.results.run import Run
from support import s2d

NODES = ("n1", "n2")
DISKS = 4
IOPS = 1470.0
"""Limit of each drive, so that a fleet saturates at what two cores play."""
COPIES = {"two-way": 2, "nested-mirror": 4, "nested-parity": 4}
ARMS = {
    "two-way": "two-way",
    "two-way-b": "two-way-b",
    "two-way-moved": "two-way",
    "nested-mirror": "nested-mirror",
    "nested-parity": "nested-parity",
    "nested-parity-inside": "nested-parity-inside",
}
"""Arms with their volumes."""


@dataclass(frozen=True)
class Truth:
    """What is planted.

    `ios_a_write` are disk I/Os a write takes by kind; `read_factor` what a kind's reads do of a mirror's
    rate; `machine` the spread of machines within a trial; `offline` losses after which a volume is offline.
    """

    latency_ms: float = 4.0
    sigma: float = 0.2
    ios_a_write: Mapping[str, int] = field(default_factory=lambda: dict(IOS_A_WRITE))
    read_factor: Mapping[str, float] = field(default_factory=dict)
    hop_ms: float = 0.15
    machine: float = 0.03
    block: float = 0.02
    trial: float = 0.003
    offline: tuple[tuple[str, str], ...] = (
        ("two-way", "drive-each"), ("two-way", "node-and-drive"), ("three-way", "two-nodes"),
    )  # fmt: skip


def raw(blocks: int = 3, instances: int = 4, kibs: tuple[int, ...] = (4, 64)) -> dict:
    """Tables of the scenario."""
    machine = {"size": "Standard_D32s_v5", "zone": "1", "os": "windows"}
    on = {"cluster": "duo", "disk": "p30", "columns": 2, "count": 2}
    tiers = {"mirror_gib": 100, "parity_gib": 500}
    return {
        "name": "nested-resiliency",
        "preset": "standard",
        "scenario": {"title": "Nested resiliency", "article": "nested-resiliency", "region": "westeurope",
                     "site": "nested-resiliency", "question": "What does nested resiliency cost?"},
        "machine": [{"name": name, **machine} for name in NODES],
        "disk": [{"name": "p30", "sku": "Premium_LRS", "size_gib": 1024, "zone": "1", "count": DISKS}],
        "cluster": [{"name": "duo", "nodes": list(NODES), "witness": "cloud"}],
        "volume": [
            {"name": "two-way", "kind": "two-way", **on, "size_gib": 600},
            {"name": "two-way-b", "kind": "two-way", **on, "size_gib": 600},
            {"name": "nested-mirror", "kind": "nested-mirror", **on, "size_gib": 600},
            {"name": "nested-parity", "kind": "nested-parity", **on, **tiers},
            {"name": "nested-parity-inside", "kind": "nested-parity", **on, "mirror_gib": 500,
             "parity_gib": 100},
        ],
        "arm": [
            {"name": name, "volume": volume, "machine": "n1", "aligned": "moved" not in name,
             "label": name.replace("nested-parity", "MAP").replace("-", " ")}
            for name, volume in ARMS.items()
        ],
        "workload": list(_loads(blocks, instances, kibs)),
        "design": {"replicates": 1},
        "comparison": list(_comparisons(kibs)),
    }  # fmt: skip


def _loads(blocks: int, instances: int, kibs: tuple[int, ...]) -> Iterator[dict]:
    common = {"instances": instances, "blocks": blocks, "runtime_s": 30.0, "working_set_gib": 180.0}
    for kib in kibs:
        size = {"block_size": f"{kib}K", **common}
        for share in (0, 30, 100):
            yield {"name": f"w{share}-{kib}k", "write_pct": share, "threads": 10, "queue_depth": 8, **size}
    for direction, share in (("read", 0), ("write", 100)):
        size = {"block_size": "4K", "write_pct": share, **common}
        yield {"name": f"{direction}-1x1", "tool": "vmfleet", "queue_depth": 1, **size, "instances": 1}
        yield {
            "name": f"{direction}-held",
            "threads": 10,
            "queue_depth": 8,
            "rate": 400.0 * instances / 4,
            **size,
        }


def _comparisons(kibs: tuple[int, ...]) -> Iterator[dict]:
    for arm in ("nested-mirror", "nested-parity", "nested-parity-inside", "two-way-b", "two-way-moved"):
        pairing = "same-disk" if arm == "two-way-moved" else "same-machine"
        family = {"nested-mirror": "headline", "two-way-b": "control"}.get(arm, "exploratory")
        for load in ("write-1x1", "read-1x1", "write-held", "read-held"):
            yield {"arm": arm, "base_arm": "two-way", "workload": load, "pairing": pairing, "family": family}
        yield {"arm": arm, "base_arm": "two-way", "workload": f"w100-{kibs[0]}k", "pairing": pairing,
               "metric": "iops"}  # fmt: skip


def scenario(without: tuple[str, ...] = (), kinds: tuple[str, ...] | None = None, **options: Any) -> Scenario:
    """The scenario as a record, without some arms, or with those named alone."""
    tables = raw(**options)
    kept = [name for name in ARMS if name not in without and (kinds is None or name in kinds)]
    tables["arm"] = [arm for arm in tables["arm"] if arm["name"] in kept]
    tables["comparison"] = [
        item for item in tables["comparison"] if {item["arm"], item["base_arm"]} <= set(kept)
    ]
    return Scenario.model_validate(tables)


def manifest(made: Scenario, replicates: int = 1, **more: Any) -> dict[str, Any]:
    """Manifest with the limits of planted drives, and the footprints that nodes read back."""
    recorded = s2d.manifest(made, replicates=replicates)
    for row in recorded["replicates"]:
        for disk in row["disks"].values():
            disk["limits"] = {"iops": IOPS, "mb_s": 200.0, "burst_iops": None, "burst_mb_s": None}
        row["volumes"] = {
            name: {"size_bytes": 100, "footprint_bytes": round(100 / _efficiency(volume.kind))}
            for volume in made.volume
            for name in made.members_of(volume)
        }
    return {**recorded, **more}


def _efficiency(kind: str) -> float:
    return {"two-way": 0.5, "nested-mirror": 0.25, "nested-parity": 0.346}[kind]


@dataclass(frozen=True)
class MadeUp:
    """Tables of a made-up run, with what they were made from."""

    scenario: Scenario
    manifest: dict[str, Any]
    tables: store_tables.Tables
    truth: Truth


def run(
    seed: int = 1,
    truth: Truth | None = None,
    replicates: int = 1,
    provenance: str = "emulated",
    **options: Any,
) -> MadeUp:
    """Make up a run of the scenario."""
    planted, made, rng = truth or Truth(), scenario(**options), np.random.default_rng(seed)
    recorded = manifest(made, replicates, provenance=provenance)
    rows: list[dict] = []
    machines: list[dict] = []
    counters: list[dict] = []
    clock = pd.Timestamp("2026-11-20T08:00:00Z")
    blocks = max(item.blocks for item in made.workload)
    for replicate, block in ((r, b) for r in range(1, replicates + 1) for b in range(1, blocks + 1)):
        common = rng.normal(0, planted.block)
        for position, place in enumerate(rng.permutation(len(made.arm)).tolist(), 1):
            arm = made.arm[place]
            for load in made.workload:
                clock += pd.Timedelta(seconds=load.runtime_s + 1)
                where = {"replicate": replicate, "block": block, "position": position, "started_utc": clock}
                noise = common + rng.normal(0, planted.trial), rng.normal(0, planted.trial)
                parts = _trial(where, made, arm, load, planted, noise)
                rows += [{**row, "provenance": provenance} for row in parts]
                machines += _machines(parts, load, planted, rng)
                counters += _counters(parts, arm, load)
    trials = volume_setups.with_limits(schema.from_rows(schema.TRIALS, rows), recorded)
    series = pd.DataFrame([part for row in rows for part in s2d.series_rows(row, rng)])
    bins = pd.DataFrame([part for row in rows if row["outstanding"] < 50 for part in s2d.bin_rows(row, rng)])
    tables = store_tables.Tables(
        trials, bins, series, counters=schema.from_rows(schema.COUNTERS, counters),
        fleet=schema.from_rows(schema.FLEET, machines), losses=_losses(replicates, planted),
    )  # fmt: skip
    return MadeUp(made, recorded, tables, planted)


def cap(arm: Arm, load: Workload, truth: Truth) -> float:
    """Most IOPS of all drives together: their limit over the disk I/Os that one of the volume takes."""
    kind = _kind(arm)
    share = load.write_pct / 100
    asked = share * truth.ios_a_write[kind] + (1 - share) / truth.read_factor.get(kind, 1.0)
    return s2d.OVER * len(NODES) * DISKS * IOPS / asked


def _kind(arm: Arm) -> str:
    """Kind by what writes do: data inside the mirror tier are written as to a nested mirror."""
    if arm.name.endswith("-inside"):
        return "nested-mirror"
    return next(kind for kind in COPIES if arm.volume.startswith(kind))


def single_ms(arm: Arm, load: Workload, truth: Truth) -> float:
    """Latency of an I/O that does not wait: of a write the slowest of its copies, in place twice."""
    writes = fleet.of_copies(COPIES[_kind(arm)], truth.sigma) * (2 if _kind(arm) == "nested-parity" else 1)
    share = load.write_pct / 100
    away = 0.0 if arm.aligned else 2 * truth.hop_ms
    return truth.latency_ms * (share * writes + 1 - share) + away


def _trial(
    where: dict, made: Scenario, arm: Arm, load: Workload, truth: Truth, noise: tuple[float, float]
) -> list[dict]:
    """Rows of a trial: one a direction."""
    latency, most = single_ms(arm, load, truth) * float(np.exp(noise[0])), cap(arm, load, truth)
    if load.rate is not None:
        rate = load.rate, latency
    else:
        rate = s2d.bent(1000 * load.outstanding / latency, most * float(np.exp(noise[1])), load.outstanding)
    row = s2d.trial_row(where, made, arm, load, rate)
    row |= {"scenario": made.name, "site": made.site, "tool": "vmfleet", "owner": ""}
    share = load.write_pct / 100
    parts = {"read": 1 - share, "write": share}
    return [
        row
        | {name: row[name] * part for name in ("ios", "iops", "throughput_mb_s")}
        | {"direction": direction}
        for direction, part in parts.items()
        if part
    ]


def _machines(rows: list[dict], load: Workload, truth: Truth, rng: np.random.Generator) -> Iterator[dict]:
    shares = np.exp(rng.normal(0, truth.machine, load.instances))
    shares /= shares.sum()
    starts = rng.uniform(0, 0.4, load.instances)
    starts -= starts.min()
    for row in rows:
        for number, (share, start) in enumerate(zip(shares.tolist(), starts.tolist(), strict=True)):
            node = NODES[number % 2]
            yield {
                "run": row["run"], "trial": row["trial"], "vm": f"vm-{number:03d}", "node": node,
                "volume": f"{row['volume']}-{1 + number % 2}", "direction": row["direction"],
                "started_s": start, "runtime_s": load.runtime_s, "ios": row["ios"] * share,
                "iops": row["iops"] * share, "throughput_mb_s": row["throughput_mb_s"] * share,
                "lat_mean_ms": row["lat_mean_ms"], "lat_p50_ms": row["lat_p50_ms"],
                "lat_p99_ms": row["lat_p99_ms"] * (1 - 0.1 * number / load.instances),
            }  # fmt: skip


def _counters(rows: list[dict], arm: Arm, load: Workload) -> Iterator[dict]:
    """Clusters allocated on the slow tier, and fill of the mirror tier, of volumes with tiers."""
    if not arm.volume.startswith("nested-parity"):
        return
    outside = not arm.volume.endswith("-inside")
    clusters = sum(row["ios"] for row in rows if row["direction"] == "write") * outside
    for name, before, after in (
        (r"ReFS\Allocation of Data Clusters on Slow Tier/sec", 1e6, 1e6 + clusters),
        (r"ReFS\Fast Tier Data Fill Ratio", 8600.0, 9000.0 if outside else 6200.0),
    ):
        yield {"run": "made-up", "trial": rows[0]["trial"], "machine": "n1", "counter": name,
               "instance": "c:", "before": before, "after": after}  # fmt: skip


LOST = ("drive", "two-drives", "drive-each", "node", "node-and-drive")


def _losses(replicates: int, truth: Truth) -> pd.DataFrame:
    kinds = {"two-way": LOST, "nested-mirror": LOST, "nested-parity": LOST, "three-way": (*LOST, "two-nodes")}
    rows = [
        {
            "run": "made-up", "replicate": replicate, "loss": f"{kind}-{lost}", "volume": kind,
            "kind": kind, "lost": lost, "started_utc": pd.Timestamp("2026-11-20T12:00:00Z"),
            "online": "no" if (kind, lost) in truth.offline else "yes",
            "expected_online": "no" if (kind, lost) in truth.offline else "yes",
            "blocks_written": 1000, "blocks_verified": 1000, "noticed_s": 0.5, "resync_s": 4.0,
            "resync_bytes": 64e6, "iops_before": 1000.0, "iops_during": 900.0, "iops_resync": 700.0,
            "error": None,
        }
        for replicate in range(1, replicates + 1)
        for kind, ways in kinds.items()
        for lost in ways
    ]  # fmt: skip
    return schema.from_rows(schema.LOSSES, rows)


def run_folder(folder: Path, **options: Any) -> Run:
    """Write a run folder without raw results."""
    made_up = run(**options)
    return s2d.written(folder, made_up.manifest, made_up.tables)
