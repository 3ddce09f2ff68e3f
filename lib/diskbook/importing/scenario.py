"""Scenario and manifest of an imported run: arms and workloads as its files tell them, the rest unknown."""

import platform
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import metadata
from typing import Any

from diskbook.design.model import IMPORTED
from diskbook.design.vocabulary import Provenance
from diskbook.facts import catalog, paths
from diskbook.facts.errors import UsageError, unknown, visible
from diskbook.importing import loads, named_limits, names as import_names, variants
from diskbook.importing.named_limits import Named
from diskbook.importing.pairing import Entry
from diskbook.results import run as runs
from diskbook.tools import registry
from diskbook.tools.record import CACHED

UNKNOWN = "unknown"
ARTICLE = IMPORTED
NO_LIMITS: dict[str, float | None] = dict.fromkeys(("iops", "mb_s", "burst_iops", "burst_mb_s"))
_MOST_COMPARISONS = 200
_LONGEST_NAME = 36
_MACHINE_OF_SYSTEM = {"linux": "client", "windows": "windows-client"}


@dataclass(frozen=True)
class Settings(Named):
    """What the user says of the files, besides the limits of disk and machine.

    - `arms_by`: what is distinguished as an arm: auto, folder, file or target.
    - `base`: arm that all others are compared to; by default the first.
    - `same_machine`: whether all arms were measured on one machine, which cancels in a ratio then; files
      seldom tell.
    - `analysis`: scenario whose notebook analyses the results, for those that were measured as it does.
    - `layout`: what the parts of a path mean (`importing.layout`); None to guess.
    - `scenario`: scenario onto which arms and loads are mapped (`importing.mapping`), whose notebook and
      claims apply.
    """

    arms_by: str = "auto"
    base: str | None = None
    same_machine: bool = False
    analysis: str = ARTICLE
    layout: str | None = None
    scenario: str | None = None
    columns: str | None = None


def limits(settings: Settings) -> dict[str, dict[str, float | None]]:
    """Documented limits of disk and machine, as a manifest has them; None where not known.

    A machine of a size that no table has (`no_such_size`) is no mistake: its limits are not known.
    Raises UsageError for a setting that names nothing.
    """
    _check_names(settings)
    _check_scenario(settings)
    if (settings.disk_sku is None) != (settings.size_gib is None):
        raise UsageError("--disk-sku and --size-gib go together: the limits of a disk follow from both")
    known = {"disk": dict(NO_LIMITS), "vm": dict(NO_LIMITS)}
    if settings.disk_sku is not None and settings.size_gib is not None:
        if settings.disk_sku not in catalog.sku_names():
            raise unknown("disk SKU", settings.disk_sku, catalog.sku_names())
        if settings.size_gib < 1:
            raise UsageError(f"--size-gib {settings.size_gib}: a disk has 1 GiB or more")
        known["disk"] = of_disk(catalog.disk_limits(settings.disk_sku, settings.size_gib))
    known["vm"] = of_vm(catalog.find_vm_size(settings.vm_size or ""))
    return named_limits.in_force(known, Named.of(settings))


def no_such_size(size: str | None) -> UsageError | None:
    """Error for a VM size that no table has, with the nearest; None where it is known, or not named."""
    if size is None or size.lower() in catalog.vm_sizes():
        return None
    return unknown("VM size", size, [item.name for item in catalog.vm_sizes().values()])


def of_disk(disk: catalog.DiskLimits) -> dict[str, float | None]:
    """Limits of a disk, as a manifest has them."""
    return {name: getattr(disk, name) for name in NO_LIMITS}


def of_vm(size: catalog.VmSize | None) -> dict[str, float | None]:
    """Limits of a VM size, as a manifest has them; None where the size is not known."""
    if size is None:
        return dict(NO_LIMITS)
    return {
        **{name: getattr(size, f"uncached_{name}") for name in NO_LIMITS},
        "cached_iops": size.cached_iops,
        "cached_mb_s": size.cached_mb_s,
    }


def _check_names(settings: Settings) -> None:
    """Hold ways and analyses against those that there are, which are those of the notebooks."""
    if settings.arms_by not in import_names.WAYS:
        raise unknown("way to tell arms apart", settings.arms_by, import_names.WAYS)
    notebooks = sorted(path.stem for path in paths.NOTEBOOKS.glob("3-analyse-*.ipynb"))
    analyses = [stem.removeprefix("3-analyse-") for stem in notebooks]
    if settings.analysis not in analyses:
        raise unknown("analysis", settings.analysis, analyses)


def _check_scenario(settings: Settings) -> None:
    """What a scenario says already is not to be said twice."""
    named = {
        "--base": settings.base,
        "--same-machine": settings.same_machine,
        "--disk-sku": settings.disk_sku,
        "--vm-size": settings.vm_size,
        "--analysis": settings.analysis != ARTICLE,
    }
    if settings.scenario and (twice := [option for option, value in named.items() if value]):
        raise UsageError(
            f"--scenario {settings.scenario} names comparisons, disks and machines: leave {twice[0]} out"
        )


def derive(entries: Sequence[Entry], arms: Mapping[str, str], settings: Settings) -> dict[str, Any]:
    """Make the scenario, as a manifest records it, of entries whose workloads are named.

    Raises UsageError when the arms are said to share a machine, and their files name several.
    """
    workloads = _with_arms(entries)
    tools = {entry.arm: machine_of(entry) for entry in entries}
    labels = import_names.labels({name: visible(words) for name, words in arms.items()})
    known = {"sku": settings.disk_sku or UNKNOWN, "size_gib": settings.size_gib or 1}
    return {
        "name": ARTICLE,
        "preset": "standard",
        "scenario": {
            "title": "Imported results",
            "article": ARTICLE,
            "question": "What do these results say, and what can they not say?",
            "region": UNKNOWN,
            "analysis": settings.analysis,
        },
        "machine": [
            {"name": name, "size": settings.vm_size or UNKNOWN, "os": system}
            for name, system in sorted({(machine_of(entry), _system_of(entry)) for entry in entries})
        ],
        "disk": [{"name": name, **known} for name in arms],
        "arm": [{"name": name, "disk": name, "machine": tools[name], "label": labels[name]} for name in arms],
        "workload": workloads,
        "design": _design(entries),
        "comparison": _comparisons(entries, list(arms), workloads, settings),
        "check": [],
    }


def _design(entries: Sequence[Entry]) -> dict[str, int]:
    repeats = min(max(entry.repeat for entry in entries), 10)
    return {"replicates": max(entry.replicate for entry in entries), "repeats": repeats, "seed": 1}


def machine_of(entry: Entry) -> str:
    """Name of the machine that stands for those with this tool: which it was, is seldom told."""
    return _MACHINE_OF_SYSTEM[_system_of(entry)]


def _system_of(entry: Entry) -> str:
    return registry.TOOLS[entry.tool].system


def blocks(entries: Sequence[Entry]) -> dict[tuple[int, int], list[Entry]]:
    """Return the entries of each replicate and block, ordered by time."""
    groups: dict[tuple[int, int], list[Entry]] = {}
    for entry in sorted(entries, key=lambda entry: (entry.replicate, entry.block, entry.started, entry.arm)):
        groups.setdefault((entry.replicate, entry.block), []).append(entry)
    return groups


def resources(
    scenario: Mapping[str, Any], settings: Settings, known: Mapping[str, dict[str, float | None]]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Machines and disks of the run, for the manifest: which they were, is seldom told."""
    machine = {"id": UNKNOWN, "size": settings.vm_size or UNKNOWN, "limits": known["vm"]}
    disk = {"id": UNKNOWN, "sku": settings.disk_sku or UNKNOWN, "limits": known["disk"]}
    machines, disks = (
        {item["name"]: row for item in scenario[kind]} for kind, row in (("machine", machine), ("disk", disk))
    )
    return machines, disks


def manifest(
    name: str, scenario: dict[str, Any], machines: Mapping[str, Any], disks: Mapping[str, Any]
) -> dict[str, Any]:
    """Make the manifest of the run."""
    return {
        "schema": runs.SCHEMA,
        "run": name,
        "created_utc": runs.now_utc(),
        "provenance": Provenance.IMPORTED,
        "cloud": "none",
        "site": "default",
        "preset": scenario["preset"],
        "overrides": {},
        "scenario": scenario,
        "emulator": None,
        "versions": {"python": platform.python_version(), "diskbook": metadata.version("diskbook")},
        "zone_map": {},
        "resource_groups": [],
        "replicates": [
            {"replicate": number, "machines": machines, "disks": disks}
            for number in range(1, scenario["design"]["replicates"] + 1)
        ],
    }


def name_workloads(entries: Sequence[Entry]) -> None:
    """Name every load by what was asked for; where that is alike, by what differs, last by a number."""
    keys = [_load_key(entry) for entry in entries]
    differing = variants.of_results(entries, keys)
    by_name: dict[str, dict[tuple[object, ...], dict[str, str]]] = {}
    named = []
    for entry, key, options in zip(entries, keys, differing, strict=True):
        load, is_cached = entry.measurement.load, CACHED in entry.measurement.flags
        name = loads.name_of(entry.workload, load, cached=is_cached)
        whole = (*key, *options.items())
        by_name.setdefault(name, {}).setdefault(whole, _told_by(entry, options))
        named.append((name, whole))
    names = {
        (name, key): own
        for name, rows in by_name.items()
        for key, own in zip(rows, _apart(name, list(rows.values())), strict=True)
    }
    for entry, place in zip(entries, named, strict=True):
        entry.workload = {**entry.workload, "name": names[place]}


def _load_key(entry: Entry) -> tuple[object, ...]:
    """All that tells a load from others, but options of its tool."""
    left_out = ("name", "ramp_s", "runtime_s")
    asked = {key: value for key, value in entry.workload.items() if key not in left_out}
    load, is_cached = entry.measurement.load, CACHED in entry.measurement.flags
    key = *sorted((name, str(value)) for name, value in asked.items()), load.queue_depth, is_cached
    return (*key, _odd_block(entry), entry.meaning.load)


def _odd_block(entry: Entry) -> str:
    """Block size that a scenario's number only stands for, since it is not a multiple of a sector."""
    asked = entry.measurement.load.block_size_bytes
    return "" if asked in (None, entry.workload["block_size"]) else f"{asked}b"


def _told_by(entry: Entry, options: Mapping[str, str]) -> dict[str, str]:
    """What may tell a load from others of its name, in words."""
    return {
        "load": entry.meaning.load,
        "block": _odd_block(entry),
        "size": loads.target_size(entry.workload),
        "options": variants.words(options),
        "tool": entry.tool,
    }


def _apart(name: str, rows: Sequence[Mapping[str, str]]) -> list[str]:
    """Names for loads of one name: with what differs between them, and a number where nothing does."""
    differing = [kind for kind in rows[0] if len({row[kind] for row in rows}) > 1]
    seen = Counter[str]()
    names = []
    for row in rows:
        words = "-".join(filter(None, (row[kind] for kind in differing)))
        more = re.sub(r"[^a-z0-9]+", "-", words.lower()).strip("-")[: _LONGEST_NAME // 2].rstrip("-")
        text = f"{name[: _LONGEST_NAME - len(more) - 1]}-{more}" if more else name[:_LONGEST_NAME]
        seen[text] += 1
        names.append(text if seen[text] == 1 else f"{text}-{seen[text]}")
    return names


def _with_arms(entries: Sequence[Entry]) -> list[dict[str, Any]]:
    """A workload for every load, with its arms and number of blocks."""
    by_name: dict[str, dict[str, Any]] = {}
    for entry in entries:
        row = by_name.setdefault(entry.workload["name"], {**entry.workload, "arms": set(), "blocks": 1})
        row["arms"].add(entry.arm)
        row["blocks"] = min(max(row["blocks"], entry.block), 1000)
    return [{**row, "arms": sorted(row["arms"])} for row in by_name.values()]


def _comparisons(
    entries: Sequence[Entry], arms: list[str], workloads: list[dict[str, Any]], settings: Settings
) -> list[dict[str, Any]]:
    """Every arm with the base, of one tool and version: exploratory, since chosen after the fact."""
    made_by = {entry.arm: (entry.tool, entry.version) for entry in entries}
    hosts = _hosts(entries)
    if settings.same_machine and len(set(hosts.values()) - {""}) > 1:
        named = ", ".join(sorted(set(hosts.values()) - {""}))
        raise UsageError(f"--same-machine: the files name several machines ({named}); leave the option out")
    first = settings.base or arms[0]
    items = [
        {
            "arm": arm,
            "base_arm": first,
            "workload": workload["name"],
            "metric": "lat_mean_ms",
            "pairing": _pairing(hosts[arm], hosts[first], settings.same_machine),
            "family": "exploratory",
            "margin": 0.05,
        }
        for workload in workloads
        for arm in workload["arms"]
        if arm != first
        and first in workload["arms"]
        and made_by[arm] == made_by[first]
        and _known(made_by[arm])
    ]
    return items[:_MOST_COMPARISONS]


def _hosts(entries: Sequence[Entry]) -> dict[str, str]:
    """Machine of every arm, "" where its files name none; "localhost" may be any."""
    hosts = {entry.arm: entry.measurement.host for entry in entries}
    return {arm: "" if host in ("localhost", "127.0.0.1", "::1") else host for arm, host in hosts.items()}


def _pairing(host: str, base_host: str, same_machine: bool) -> str:
    """Only a machine that both arms share cancels in their ratio."""
    return "same-machine" if same_machine or (host and host == base_host) else "replicate"


def _known(made_by: tuple[str, str]) -> bool:
    """Versions that are not told may differ."""
    return made_by[1] != UNKNOWN
