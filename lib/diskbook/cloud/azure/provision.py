"""Create what a run needs, in parallel wherever one step does not depend on another.

A run has one resource group with one network, and machines and disks for each replicate. Network, security
group, addresses and disks start at once, then the interfaces, then the machines. Each step runs as soon as
the steps that it depends on are done; the module also finds the longest chain.
"""

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from functools import partial
from graphlib import TopologicalSorter
from typing import Any

from diskbook.cloud.azure import keys, offers
from diskbook.cloud.azure.clients import Clients
from diskbook.cloud.azure.create import Maker, Place
from diskbook.cloud.azure.refusals import operation
from diskbook.design.model import Disk, Machine, Scenario
from diskbook.facts.rules import ULTRA
from diskbook.results.run import Run

AT_ONCE = 64  # steps mostly wait for Azure, so this costs little


@dataclass(frozen=True)
class Step:
    """Something to do, given the results of the steps it needs, by name."""

    action: Callable[[Mapping[str, Any]], Any]
    needs: tuple[str, ...] = ()


def run_steps(
    steps: Mapping[str, Step],
    done: Callable[[str, Any], None] = lambda name, result: None,
    at_once: int = AT_ONCE,
) -> dict[str, Any]:
    """Do all steps, in parallel as far as what they need allows; return results by name.

    When one fails, those under way are waited for, none is begun any more, and its exception is raised.
    `done` is called with name and result of each step, in the calling thread, in the order they end.
    Raises graphlib.CycleError when steps need one another in a circle.
    """
    order = TopologicalSorter({name: step.needs for name, step in steps.items()})
    order.prepare()
    results: dict[str, Any] = {}
    running: dict[Future[Any], str] = {}
    failed: BaseException | None = None
    with ThreadPoolExecutor(at_once) as pool:
        while order.is_active():
            for name in () if failed else order.get_ready():
                given = {need: results[need] for need in steps[name].needs}
                running[pool.submit(steps[name].action, given)] = name
            if not running:
                break
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                name = running.pop(future)
                failed = failed or future.exception()
                if future.exception() is None:
                    results[name] = future.result()
                    done(name, results[name])
                    order.done(name)
    if failed:
        raise failed
    return results


def longest_chain(
    needs: Mapping[str, Iterable[str]], duration_s: Mapping[str, float]
) -> tuple[float, list[str]]:
    """Find the chain of steps that takes longest: its seconds and steps. No order of doing them is faster."""
    best: dict[str, tuple[float, list[str]]] = {}
    for name in TopologicalSorter(needs).static_order():
        before = max((best[need] for need in needs.get(name, ())), default=(0.0, []))
        best[name] = (before[0] + duration_s.get(name, 0.0), [*before[1], name])
    return max(best.values(), default=(0.0, []))


Keep = Callable[[dict[str, Any]], None]

LEAST_DEPTH = 32
"""I/Os in flight that an emulated disk takes of a job at least, whatever the scenario has."""


def group_tags(run: str, scenario: Scenario, expires_utc: str) -> dict[str, str]:
    """Tags of everything a run creates; site, credit scale and depth are read by the emulator only."""
    return {
        **scenario.azure.tags,
        "diskbook-run": run,
        "diskbook-owner": os.environ.get("USER", "unknown"),
        "diskbook-scenario": scenario.name,
        "diskbook-site": scenario.site,
        "diskbook-credit-scale": f"{scenario.scenario.emulated_credit_scale:g}",
        "diskbook-depth": str(_depth(scenario)),
        "diskbook-expires": expires_utc,
    }


def _depth(scenario: Scenario) -> int:
    """Most I/Os that one job of a tool has in flight; fio's jobs of a held rate have one each.

    It is `LEAST_DEPTH` or more, for loads that are not part of the scenario.
    """
    return max(
        LEAST_DEPTH,
        *(
            1
            if load.rate and not load.verbatim and scenario.tool_of(arm, load) == "fio"
            else load.queue_depth
            for arm, load in scenario.cells
        ),
    )


def create_group(clients: Clients, run: Run, place: Place) -> None:
    """Create the resource group, tagged, unless it is there."""
    with operation(run, "create resource group", place.group):
        clients.resource.resource_groups.create_or_update(place.group, place.common)


def replicates(
    clients: Clients,
    run: Run,
    scenario: Scenario,
    place: Place,
    zones: Mapping[str, str],
    numbers: Sequence[int],
    keep: Keep,
) -> None:
    """Create machines and disks of replicates, all in parallel; read every setting back.

    `keep` takes each replicate's entry of the manifest as soon as it is complete: for each machine id, size,
    zones, limits, read-back and host; for each disk id, zones, limits and read-back; round-trip times; the
    storage account of a witness, without its key. Raises DiskbookError when Azure refuses something, or a
    setting is not what was asked for. Replicates that were complete by then have been kept.
    """
    keys.run_key(run.folder)  # made here, once: the steps run side by side
    maker = Maker(clients, run, place, zones, scenario.network)
    ends = {f"replicate {number}" for number in numbers}
    run_steps(steps(maker, scenario, numbers), lambda name, entry: keep(entry) if name in ends else None)


def steps(maker: Maker, scenario: Scenario, numbers: Sequence[int]) -> dict[str, Step]:
    """Return what is to be done for some replicates, and what needs what.

    A step is named for what it makes and its name in Azure: "machine r2-vm1"; "replicate 2" ends that
    replicate.
    """
    asked = {machine.size for machine in scenario.machine}
    by_name = {
        "sizes": Step(lambda _: offers.measured_sizes(maker.clients, maker.place.region, asked)),
        "images": Step(partial(_images, maker, scenario), ("sizes",)),
        "security group": Step(lambda _: maker.security_group()),
        "network": Step(lambda _: maker.network()),
    }
    for number in numbers:
        for disk, _ in scenario.made_disks():
            name = f"r{number}-{disk.name}"
            by_name[f"disk {name}"] = _disk(maker, disk, name)
        for machine in scenario.machine:
            by_name |= _machine(maker, scenario, machine, f"r{number}-{machine.name}")
            by_name[f"look r{number}-{machine.name}"] = _inspect(maker, scenario, machine, number)
        needs = tuple(_parts(scenario, number))
        if redundancy := scenario.witness_redundancy:
            by_name[f"witness r{number}"] = _witness(maker, number, redundancy)
            needs = (*needs, f"witness r{number}")
        by_name[f"replicate {number}"] = Step(partial(_entry, maker, scenario, number), needs)
    return by_name


def _images(maker: Maker, scenario: Scenario, has: Mapping[str, Any]) -> dict[str, str]:
    traits = {name: size.traits for name, size in has["sizes"].items()}
    return offers.image_versions(maker.clients, maker.run, scenario, maker.place.region, traits)


def _disk(maker: Maker, spec: Disk, name: str) -> Step:
    return Step(lambda _: maker.disk(name, spec))


def _witness(maker: Maker, number: int, redundancy: str) -> Step:
    return Step(lambda _: maker.witness(number, redundancy))


def _machine(maker: Maker, scenario: Scenario, spec: Machine, name: str) -> dict[str, Step]:
    """Steps of one machine, which is `name` in Azure."""
    os_disk, pooled = scenario.os_disk_of(spec.name), scenario.is_pooled(spec.name)
    ultra = ULTRA in scenario.skus_of(spec.name)
    address, interface, machine = f"address {name}", f"interface {name}", f"machine {name}"

    def connect(has: Mapping[str, Any]) -> Any:
        parts = {"subnet": has["network"], "group": has["security group"]}
        parts |= {"address": has[address]} if is_public else {}
        return maker.interface(name, spec, parts, has["sizes"][spec.size])

    def create(has: Mapping[str, Any]) -> dict[str, Any]:
        size = has["sizes"][spec.size]
        versions = has["images"]
        return maker.machine(
            name, spec, has[interface], size, os_disk, images=versions, pooled=pooled, ultra=ultra
        )

    local, is_public = os_disk is not None, not scenario.network.is_private
    steps = {address: Step(lambda _: maker.address(name, spec.zone))} if is_public else {}
    steps |= {
        interface: Step(connect, ("network", "security group", "sizes", *([address] if is_public else []))),
        machine: Step(create, (interface, "sizes", "images")),
        f"shutdown {name}": Step(lambda has: maker.shutdown(name, has[machine]["id"], local), (machine,)),
    }
    if os_disk is not None:
        step = f"disk {name.partition('-')[0]}-{os_disk.name}"
        steps[step] = Step(lambda has: maker.os_disk(os_disk, has[machine]), (machine,))
    return steps


def _inspect(maker: Maker, scenario: Scenario, spec: Machine, number: int) -> Step:
    """Sign in to a machine, once all of its replicate are there."""
    steps = {item.name: f"machine r{number}-{item.name}" for item in scenario.machine}

    def inspect(has: Mapping[str, Any]) -> dict[str, Any]:
        return maker.inspect(spec, {name: has[step] for name, step in steps.items()})

    return Step(inspect, tuple(steps.values()))


def _parts(scenario: Scenario, number: int) -> dict[str, tuple[str, str]]:
    """Last steps of the parts of a replicate: to section and name of their entry in the manifest."""
    names = [item.name for item, _ in scenario.made_disks()]
    names += [item.name for item in scenario.disk if item.ephemeral]
    parts = {f"disk r{number}-{name}": ("disks", name) for name in names}
    return parts | {f"look r{number}-{item.name}": ("machines", item.name) for item in scenario.machine}


def _entry(maker: Maker, scenario: Scenario, number: int, has: Mapping[str, Any]) -> dict[str, Any]:
    """Put a replicate's entry of the manifest together."""
    entry: dict[str, Any] = {"replicate": number, "resource_group": maker.place.group}
    for step, (section, name) in _parts(scenario, number).items():
        entry.setdefault(section, {})[name] = has[step]
    if f"witness r{number}" in has:
        entry["witness"] = has[f"witness r{number}"]
    entry["round_trips"] = [
        {"from": name, **pair, "provenance": maker.clients.cloud.provenance}
        for name, row in entry["machines"].items()
        for pair in row.pop("round_trips")
    ]
    return entry
