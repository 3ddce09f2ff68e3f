"""`import --scenario`: arms and loads of results mapped onto a scenario, so that its notebook applies."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from diskbook.design.model import Arm, Disk, Scenario, Workload
from diskbook.facts import catalog, disk_options
from diskbook.facts.errors import DiskbookError
from diskbook.importing import layout
from diskbook.importing.pairing import Entry
from diskbook.importing.scenario import NO_LIMITS, UNKNOWN, of_disk, of_vm

_STATES: Mapping[str, str] = {
    "region": "filled",
    "data": "random",
    "cache_state": "any",
    "ioengine": "libaio",
}
_RATE_SHARE = 0.01


def onto(
    scenario: Scenario, entries: list[Entry], arms: Mapping[str, str], refused: list[str]
) -> tuple[dict[str, str], tuple[str, ...]]:
    """Give entries the arms and workloads of a scenario; those that map onto none are taken out, and named.

    Returns words of the arms of the scenario that are there, and sentences that say what became what.
    Raises DiskbookError when no result maps.
    """
    by_arm = _arms(scenario, arms)
    kept: list[Entry] = []
    loads: dict[str, str] = {}
    for entry in entries:
        load = _load(scenario, entry, by_arm[entry.arm]) if by_arm[entry.arm] else None
        if load:
            loads[entry.workload["name"]] = load.name
            entry.workload = {**entry.workload, "name": load.name}
            kept.append(entry)
    refused += _not_mapped(scenario, entries, by_arm, kept)
    if not kept:
        raise DiskbookError(f"nothing maps onto {scenario.name}: {refused[0] if refused else 'no results'}")
    words = {by_arm[entry.arm]: arms[entry.arm] for entry in kept}
    pairs = {entry.arm: by_arm[entry.arm] for entry in kept}
    for entry in kept:
        entry.arm = by_arm[entry.arm]
    entries[:] = kept
    return words, _mapped(scenario, pairs, loads, kept)


def _mapped(
    scenario: Scenario, pairs: Mapping[str, str], loads: Mapping[str, str], kept: Sequence[Entry]
) -> tuple[str, ...]:
    there = {(entry.arm, entry.workload["name"]) for entry in kept}
    lacking = [
        f"{arm.name} with {load.name}" for arm, load in scenario.cells if (arm.name, load.name) not in there
    ]
    arms_words, loads_words = (
        ", ".join(f"{name} as {onto}" for name, onto in sorted(part.items())) for part in (pairs, loads)
    )
    sentences = (
        f"mapped onto {scenario.name}: arms {arms_words}; loads {loads_words}",
        f"disks and machines, and so limits in force, are those of {scenario.name}: files do not tell them",
    )
    few = ", ".join(lacking[:3]) + (f" and {len(lacking) - 3} more" if len(lacking) > 3 else "")
    return (*sentences, *([f"cells of {scenario.name} that no file has: {few}"] if lacking else []))


def _not_mapped(
    scenario: Scenario, entries: Sequence[Entry], by_arm: Mapping[str, str], kept: Sequence[Entry]
) -> list[str]:
    """Arms and loads that map onto none of the scenario, a sentence each."""
    arms, loads = (", ".join(item.name for item in items) for items in (scenario.arm, scenario.workload))
    sentences = [
        f"arm {name} maps onto no arm of {scenario.name} ({arms}), or onto several; name it by --layout"
        for name, onto in by_arm.items()
        if not onto
    ]
    left = {id(entry) for entry in kept}
    unlike = dict.fromkeys(
        entry.workload["name"] for entry in entries if id(entry) not in left and by_arm[entry.arm]
    )
    return sentences + [f"load {name} is none of {scenario.name} ({loads})" for name in unlike]


def _arms(scenario: Scenario, arms: Mapping[str, str]) -> dict[str, str]:
    """Arm of the scenario for each of the files'; "" where none fits, or several do."""
    known = {item.name: _names_of(scenario, item) for item in scenario.arm}
    by_arm = {name: _best(_tokens(f"{name} {words}"), known) for name, words in arms.items()}
    twice = {onto for onto in by_arm.values() if list(by_arm.values()).count(onto) > 1}
    return {name: "" if onto in twice else onto for name, onto in by_arm.items()}


def _names_of(scenario: Scenario, arm: Arm) -> list[frozenset[str]]:
    """What may name an arm: its name, its label, its disk or volume, and the disk's SKU and size."""
    texts = [arm.name, arm.label or "", arm.disk, arm.volume]
    if arm.disk:
        disk = scenario.disk_of(arm)
        texts += [disk.sku, f"{disk.sku} {disk.size_gib}", f"{disk.sku} {disk.size_gib}gib"]
    return [_tokens(text) for text in texts if text]


def _best(tokens: frozenset[str], known: Mapping[str, Sequence[frozenset[str]]]) -> str:
    """Arm whose name has most words in common with what is looked for, all of its own; "" where two have."""
    scores = {
        name: max((len(text) for text in texts if text <= tokens), default=0) for name, texts in known.items()
    }
    best = max(scores.values(), default=0)
    names = [name for name, score in scores.items() if score == best]
    return names[0] if best and len(names) == 1 else ""


def _tokens(text: str) -> frozenset[str]:
    return frozenset(re.findall(r"[a-z0-9]+", text.lower()))


def _load(scenario: Scenario, entry: Entry, arm: str) -> Workload | None:
    """Workload of the scenario that is the same load; of several the one so named, else the plainest."""
    alike = [item for item in scenario.workload if item.meets(arm) and _is_same(item, entry)]
    words = {entry.meaning.load, entry.measurement.name, layout.without_tokens(entry.source.name)}
    named = [item for item in alike if item.name in words]
    return min(named or alike, key=lambda item: _distance(item, entry), default=None)


def _is_same(item: Workload, entry: Entry) -> bool:
    """Whether a load is the one asked for: access, block size, mix, outstanding I/Os, machines, rate."""
    asked = entry.workload
    outstanding = asked["threads"] * asked["queue_depth"] * asked.get("instances", 1)
    rate = asked.get("rate")
    same_rate = rate is item.rate or bool(rate and item.rate and abs(rate / item.rate - 1) < _RATE_SHARE)
    return same_rate and (
        asked["pattern"],
        asked["block_size"],
        asked["write_pct"],
        outstanding,
        asked.get("instances", 1),
        asked.get("sync"),
    ) == (item.pattern, item.block_size, item.write_pct, item.outstanding, item.instances, item.sync)


def _distance(item: Workload, entry: Entry) -> tuple[int, float]:
    """How far a workload is from plain, and its working set from that of the files."""
    odd = sum(getattr(item, name) != plain for name, plain in _STATES.items())
    return odd, abs(item.working_set_gib - entry.workload["working_set_gib"])


def document(scenario: Scenario, entries: Iterable[Entry]) -> dict[str, Any]:
    """Make the scenario of the manifest: as it is, with as many replicates and blocks as were measured."""
    raw = scenario.model_dump(mode="json")
    blocks: dict[str, int] = {}
    replicates = 1
    for entry in entries:
        name = entry.workload["name"]
        blocks[name] = max(blocks.get(name, 1), entry.block)
        replicates = max(replicates, entry.replicate)
    raw["workload"] = [{**row, "blocks": min(blocks.get(row["name"], 1), 1000)} for row in raw["workload"]]
    raw["design"] = {**raw["design"], "replicates": replicates, "looks": []}
    raw["scenario"] = {**raw["scenario"], "analysis": scenario.scenario.analysis or scenario.name}
    return raw


def resources(scenario: Scenario) -> tuple[dict[str, Any], dict[str, Any]]:
    """Machines and disks of the scenario with their documented limits, for the manifest."""
    sizes = catalog.vm_sizes()
    machines = {}
    for item in scenario.machine:
        size = sizes.get(item.size.lower()) or sizes.get((item.substitute or "").lower())
        row = {"id": UNKNOWN, "size": item.size, "limits": of_vm(size)}
        machines[item.name] = {**row, "logical_zone": item.zone}
    disks = {item.name: {"id": UNKNOWN, "sku": item.sku, "limits": _limits(item)} for item in scenario.disk}
    return machines, disks


def _limits(disk: Disk) -> dict[str, float | None]:
    """Documented limits; an ephemeral disk has its machine's."""
    return dict(NO_LIMITS) if disk.ephemeral else of_disk(disk_options.limits(disk))
