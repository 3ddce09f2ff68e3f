"""What clusters, volumes and losses take and cost, for plan and estimate (`facts.neighbours`). Pure."""

import math

from diskbook.clusters.design import rules
from diskbook.clusters.stats import volume_bound, volume_setups
from diskbook.clusters.stats.volume_bound import Bound, Load, Setup
from diskbook.design import arm_words
from diskbook.design.model import Arm, Scenario, Workload
from diskbook.facts import catalog
from diskbook.facts.arm import DELAYS_S
from diskbook.facts.units import MB, MIB

# Roughly, none of it seen: features and a restart, validation, cluster, pool; then each volume, each move.
CLUSTER_S = 900.0
VOLUME_S = 60.0
PLACE_S = 10.0
LOSS_S = 600.0  # disks or nodes taken away, noticed, brought back and copied back; volumes of a pool together


def around_s(scenario: Scenario) -> float:
    """Time of one replicate to make, fill and move volumes and play losses, in seconds."""
    clusters = [cluster for cluster, _, _ in rules.played_together(scenario)]  # side by side
    losses = max((clusters.count(cluster) for cluster in clusters), default=0) * LOSS_S
    return _volumes_s(scenario) + losses


def _volumes_s(scenario: Scenario) -> float:
    """Time to attach the disks of pools one by one, make clusters and volumes, and move these."""
    pooled = sum(machine is not None for _, machine in scenario.made_disks())
    made = len(scenario.cluster) * CLUSTER_S + sum(item.count for item in scenario.volume) * VOLUME_S
    by_volume = {arm.volume: arm for arm in scenario.arm if arm.volume}
    blocks = max(load.blocks for load in scenario.workload)
    moved = sum(arm.owner is not None for arm in scenario.arm) * blocks
    sets = rules.data_sets(scenario)  # written again before each block
    filled = 0.0
    for name, data in sets.items():
        rate = written_mb_s(scenario, by_volume[name], MIB)
        filled += blocks * scenario.volume_named(name).count * data.size_bytes / MB / rate
    return pooled * DELAYS_S["disk-attach"] + made + filled + 2 * moved * PLACE_S


def written_mb_s(scenario: Scenario, arm: Arm, block_bytes: int) -> float:
    """MB/s at which an arm's volume is written in blocks of a size: by its limits, without bursts."""
    setup = volume_setups.documented(scenario)[arm.name]
    return volume_bound.bound(setup, Load(block_bytes, 1.0)).iops * block_bytes / MB


def most_of_a_pool(scenario: Scenario, arm: Arm, load: Workload, least_latency_s: float) -> tuple[float, int]:
    """I/Os of each disk of a volume's pool, with all copies and stripes, and how many disks there are."""
    setup, writes = volume_setups.documented(scenario)[arm.name], load.write_pct / 100
    offered = Load(load.block_size_bytes, writes, load.outstanding)
    rate = min(
        volume_bound.bound(setup, offered, latency_ms=1000 * least_latency_s).iops, load.rate or math.inf
    )
    ios = writes * volume_bound.IOS_A_WRITE[setup.shape.kind] + 1.0 - writes
    disks = setup.shape.nodes * setup.shape.disks
    return rate * ios * setup.shape.pieces(load.block_size_bytes) / disks, disks


def created(scenario: Scenario) -> list[str]:
    """Lines of a plan on clusters with their witnesses, volumes, and local disks of their nodes."""
    redundancy = scenario.witness_redundancy
    clusters = [
        f"  cluster: {item.name} of {', '.join(item.nodes)}"
        + (f"; its witness is a storage account (StorageV2, {redundancy})" if item.witness == "cloud" else "")
        for item in scenario.cluster
    ]
    volumes = [f"  volume: {arm_words.made(scenario, volume)}" for volume in scenario.volume]
    return [*clusters, *volumes, *_local_nvme(scenario)]


def _local_nvme(scenario: Scenario) -> list[str]:
    """Say which nodes of pools have local NVMe disks, and what becomes of those."""
    machines = [machine for machine in scenario.machine if scenario.is_pooled(machine.name)]
    local = {machine.name: catalog.vm_size(machine.size).nvme_local for machine in machines}
    nodes = ", ".join(f"{name} ({disks})" for name, disks in local.items() if disks)
    return [
        f"  local NVMe disks of pool nodes: {nodes}; the run keeps them out of the pool, since they are "
        "empty after each deallocation. Storage Spaces Direct left to itself takes them as a cache, so "
        "such a cluster measures another storage than this one"
    ] * bool(nodes)


def lowest(scenario: Scenario, arm: Arm) -> str:
    """The lowest limit of an arm's volume by block size, all copies counted, for each direction that differs.

    The bound is that of `volume_bound`.
    """
    setup = volume_setups.documented(scenario)[arm.name]
    texts = []
    for block in sorted({load.block_size_bytes for meets, load in scenario.cells if meets is arm}):
        rates = {name: _text(setup, Load(block, share)) for name, share in (("reads", 0.0), ("writes", 1.0))}
        if rates["reads"] == rates["writes"]:
            rates = {"": rates["reads"]}
        texts += [
            f"{block // 1024 or block / 1024:g} KiB{f' {name}'.rstrip()}: {rates[name]}" for name in rates
        ]
    return "; ".join(texts)


def _text(setup: Setup, load: Load) -> str:
    base, burst = (volume_bound.bound(setup, load, spent=spent) for spent in (True, False))
    more = f", bursting {_limit(burst)}" if burst.iops != base.iops else ""
    return f"{_limit(base)}{more}"


def _limit(bound: Bound) -> str:
    holders = [limit for limit in (*bound.others, bound.limit) if limit is not None]
    names = " and ".join("disks" if "disk" in limit.column else "VM" for limit in holders)
    rate = f", {bound.value:,.0f} MB/s" if bound.limit is not None and bound.limit.counts == "mb_s" else ""
    return f"{bound.iops:,.0f} IOPS ({names or 'not known'}{rate})"
