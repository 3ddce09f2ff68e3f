"""Volumes of a scenario or a run as set-ups whose bound is known, arm by arm. Pure.

Limits are those of a run's manifest or, before there is one, the documented ones. Which node answers reads
is not known of either: `local_share` is None, and the bound of reads the highest possible one, where a run's
counters do not tell (`stats.wire`). The limits of a machine's network are in no table that is read
here: a cell that one holds is saturated by a limit that is not known.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pandas as pd

from diskbook.clusters.design import rules
from diskbook.clusters.stats import volume_bound
from diskbook.clusters.stats.volume_bound import Rates, Setup, Shape
from diskbook.design import arm_words
from diskbook.design.model import Disk, Scenario, Volume, Workload
from diskbook.facts import catalog, disk_options
from diskbook.stats import credit
from diskbook.stats.credit import Part

_RATES = ("iops", "mb_s", "burst_iops", "burst_mb_s")


def shape(scenario: Scenario, volume: Volume) -> Shape:
    """Shape of a volume: its kind, and the disks and nodes of its pool."""
    nodes, disk = len(scenario.nodes_of(volume)), scenario.disk_named(volume.disk)
    return Shape(volume.kind, disk.count, volume.columns, nodes, volume.interleave_kib)


def documented(scenario: Scenario, sizes: Mapping[str, str] | None = None) -> dict[str, Setup]:
    """Set-ups of the arms that measure a volume, with documented limits.

    - `scenario`: before anything is created.
    - `sizes`: other VM sizes than those of the scenario, by machine; limits of a size that no table knows are
      None.
    """
    chosen = {machine.name: machine.size for machine in scenario.machine} | dict(sizes or {})
    return _setups(scenario, lambda name: size_rates(chosen[name]), disk_rates)


def measured(
    scenario: Scenario, replicate: Mapping[str, Any], local_shares: Mapping[str, float] | None = None
) -> dict[str, Setup]:
    """Set-ups of the arms that measure a volume, with the limits of a replicate's entry in the manifest.

    `local_shares` are shares of reads that the owner answers, by arm, as far as they are known.
    """

    def disk(spec: Disk) -> Rates:
        machines = scenario.pool_machines(spec.name)
        names = [name for machine in machines for name in members(spec, machine)]
        return _least(_rates(replicate["disks"][name]["limits"]) for name in names)

    setups = _setups(scenario, lambda name: _rates(replicate["machines"][name]["limits"]), disk)
    shares = local_shares or {}
    return {arm: replace(setup, local_share=shares.get(arm)) for arm, setup in setups.items()}


def caps_of(setup: Setup, load: Workload) -> dict[str, float]:
    """Limits of a volume under a load of a scenario (`volume_bound.caps`)."""
    return volume_bound.caps(setup, volume_bound.Load(load.block_size_bytes, load.write_pct / 100))


def members(disk: Disk, machine: str) -> list[str]:
    """Names of the disks of a pool on one machine, as `Scenario.made_disks` gives them."""
    return [f"{disk.name}-{machine}-{number}" for number in range(1, disk.count + 1)]


def with_limits(
    trials: pd.DataFrame, manifest: Mapping[str, Any], local_shares: Mapping[str, float] | None = None
) -> pd.DataFrame:
    """Give the trials of a run's volumes their limits (`volume_bound.on_volumes`), replicate by replicate."""
    scenario = _of(manifest)
    if scenario is None or trials.empty:
        return trials
    parts = []
    for replicate in manifest["replicates"]:
        rows = trials[trials["replicate"] == replicate["replicate"]]
        setups = _least_asked(measured(scenario, replicate, local_shares))
        parts.append(volume_bound.on_volumes(rows, setups))
    return pd.concat(parts).sort_index()[list(trials.columns)]


def _least_asked(setups: Mapping[str, Setup]) -> dict[str, Setup]:
    """Ask of volumes with two tiers what their mirror asks, which no rate can be above.

    Writes in place in parity take more, and how many are no limit tells.
    """
    return {
        arm: replace(setup, shape=replace(setup.shape, kind="nested-mirror"))
        if setup.shape.kind == "nested-parity"
        else setup
        for arm, setup in setups.items()
    }


def drawn_on(manifest: Mapping[str, Any]) -> credit.Parts:
    """Say for each event of a run which machines and disks its load draws on, and with what share of it.

    A write draws on every node for its copies; a read on the node that answers, which may be any.
    """
    scenario = _of(manifest)
    if scenario is None:
        return credit.one_disk

    def parts(event: Mapping[str, Any]) -> Sequence[Part]:
        if not event.get("volume"):
            return credit.one_disk(event)
        return _parts(scenario, event)

    return parts


def size_rates(name: str) -> Rates:
    """Documented uncached limits of a VM size; None where no table knows it."""
    size = catalog.find_vm_size(name)
    if size is None:
        return Rates()
    burst = size.uncached_burst_iops, size.uncached_burst_mb_s
    return Rates(size.uncached_iops, size.uncached_mb_s, *burst)


def disk_rates(disk: Disk) -> Rates:
    """Documented limits of a disk with its options."""
    own = disk_options.limits(disk)
    return Rates(own.iops, own.mb_s, own.burst_iops, own.burst_mb_s)


def _setups(
    scenario: Scenario, machine_rates: Callable[[str], Rates], rates_of: Callable[[Disk], Rates]
) -> dict[str, Setup]:
    """Set-up of each arm on a volume; of nodes that differ the least limits, since each keeps copies."""
    setups = {}
    for arm in scenario.arm:
        if arm.volume:
            volume = scenario.volume_named(arm.volume)
            vm = _least(machine_rates(name) for name in scenario.nodes_of(volume))
            disk = rates_of(scenario.disk_named(volume.disk))
            of_arm = _met(scenario, volume)
            remote = arm_words.is_remote(arm)
            setups[arm.name] = Setup(of_arm, disk, vm, remote=remote, volumes=volume.count)
    return setups


def _met(scenario: Scenario, volume: Volume) -> Shape:
    """What I/Os of a volume meet: of two tiers the mirror, where all data have room there."""
    whole = shape(scenario, volume)
    inside = volume.kind == "nested-parity" and rules.stays_in_mirror(scenario, volume)
    return replace(whole, kind="nested-mirror") if inside else whole


def _of(manifest: Mapping[str, Any]) -> Scenario | None:
    """Scenario of a manifest, where it has volumes."""
    raw = manifest["scenario"]
    return Scenario.model_validate(raw) if raw.get("volume") else None


def _rates(limits: Mapping[str, Any]) -> Rates:
    return Rates(*(limits.get(name) for name in _RATES))


def _least(rates: Iterable[Rates]) -> Rates:
    """Least of each limit; None where one is not known."""
    listed = list(rates)
    by_name = {name: [getattr(item, name) for item in listed] for name in _RATES}
    return Rates(**{name: None if None in of else min(of, default=None) for name, of in by_name.items()})


def _parts(scenario: Scenario, event: Mapping[str, Any]) -> list[Part]:
    volume = scenario.volume_named(event["volume"])
    disk, nodes = scenario.disk_named(volume.disk), scenario.nodes_of(volume)
    load = next((item for item in scenario.workload if item.name == event.get("workload")), None)
    written = 1.0 if load is None else load.write_pct / 100  # what is no trial fills the volume
    copies = written * volume_bound.IOS_A_WRITE[volume.kind] / len(nodes)
    low, high = (copies, copies + (1.0 - written)) if len(nodes) > 1 else (1.0, 1.0)
    parts = []
    for node in nodes:
        parts.append(Part("machines", node, low, high))
        parts += [Part("disks", name, low / disk.count, high / disk.count) for name in members(disk, node)]
    return parts
