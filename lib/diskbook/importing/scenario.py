"""Scenario and manifest of an imported run: arms and workloads as its files tell them, the rest unknown."""

from __future__ import annotations

import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import metadata
from itertools import groupby
from typing import Any, Protocol

from diskbook.analysis import named_limits
from diskbook.analysis.named_limits import Named
from diskbook.base import paths
from diskbook.base.errors import UsageError, unknown
from diskbook.base.visible import visible
from diskbook.importing import loads, names as import_names
from diskbook.reference import catalog
from diskbook.scenario.model import IMPORTED
from diskbook.store import run as runs
from diskbook.tables.vocabulary import Provenance
from diskbook.tools import registry
from diskbook.tools.record import Measurement

UNKNOWN = "unknown"
ARTICLE = IMPORTED
_NO_LIMITS: dict[str, float | None] = dict.fromkeys(("iops", "mb_s", "burst_iops", "burst_mb_s"))
_MOST_COMPARISONS = 200
_MACHINE_OF_SYSTEM = {"linux": "client", "windows": "windows-client"}


@dataclass(frozen=True)
class Settings:
    """What the user says of the files.

    Attributes
    ----------
    arms_by
        What is told apart as an arm: auto, folder, file or target.
    base
        Arm that all others are compared to; by default the first.
    same_machine
        Whether all arms were measured on one machine, which cancels in a ratio then; files seldom tell.
    disk_sku, size_gib, vm_size
        Disk and machine that were measured, whose documented limits are then in force; None where unknown.
    analysis
        Scenario whose notebook analyses the results, for those that were measured as it does.
    vm_iops, vm_mb_s, disk_iops, disk_mb_s
        Limits that no table has, or that go before those of a table.
    """

    arms_by: str = "auto"
    base: str | None = None
    same_machine: bool = False
    disk_sku: str | None = None
    size_gib: int | None = None
    vm_size: str | None = None
    analysis: str = ARTICLE
    vm_iops: float | None = None
    vm_mb_s: float | None = None
    disk_iops: float | None = None
    disk_mb_s: float | None = None


class Described(Protocol):
    """What is needed of an entry."""

    measurement: Measurement
    tool: str
    version: str
    arm: str
    workload: dict[str, Any]

    @property
    def started(self) -> str:
        """When it was measured."""


def limits(settings: Settings) -> dict[str, dict[str, float | None]]:
    """Documented limits of disk and machine, as a manifest has them; None where not known.

    Raises
    ------
    UsageError
        For a setting that names nothing.
    """
    _check_names(settings)
    if (settings.disk_sku is None) != (settings.size_gib is None):
        raise UsageError("--disk-sku and --size-gib go together: the limits of a disk follow from both")
    known = {"disk": dict(_NO_LIMITS), "vm": dict(_NO_LIMITS)}
    if settings.disk_sku is not None and settings.size_gib is not None:
        if settings.disk_sku not in catalog.sku_names():
            raise unknown("disk SKU", settings.disk_sku, catalog.sku_names())
        if settings.size_gib < 1:
            raise UsageError(f"--size-gib {settings.size_gib}: a disk has 1 GiB or more")
        disk = catalog.disk_limits(settings.disk_sku, settings.size_gib)
        known["disk"] = {
            "iops": disk.iops,
            "mb_s": disk.mb_s,
            "burst_iops": disk.burst_iops,
            "burst_mb_s": disk.burst_mb_s,
        }
    if settings.vm_size is not None:
        size = catalog.vm_sizes().get(settings.vm_size.lower())
        if size is None:
            raise unknown("VM size", settings.vm_size, [item.name for item in catalog.vm_sizes().values()])
        known["vm"] = {
            "iops": size.uncached_iops,
            "mb_s": size.uncached_mb_s,
            "burst_iops": size.uncached_burst_iops,
            "burst_mb_s": size.uncached_burst_mb_s,
            "cached_iops": size.cached_iops,
            "cached_mb_s": size.cached_mb_s,
        }
    return named_limits.in_force(known, Named.of(settings))


def _check_names(settings: Settings) -> None:
    """Hold ways and analyses against those that there are, which are those of the notebooks."""
    if settings.arms_by not in import_names.WAYS:
        raise unknown("way to tell arms apart", settings.arms_by, import_names.WAYS)
    notebooks = sorted(path.stem for path in paths.NOTEBOOKS.glob("3-analyse-*.ipynb"))
    analyses = [stem.removeprefix("3-analyse-") for stem in notebooks]
    if settings.analysis not in analyses:
        raise unknown("analysis", settings.analysis, analyses)


def derive(entries: Sequence[Described], arms: Mapping[str, str], settings: Settings) -> dict[str, Any]:
    """Make the scenario, as a manifest records it; entries get the names of their workloads.

    Raises
    ------
    UsageError
        When the arms are said to share a machine, and their files name several.
    """
    workloads = _workloads(entries)
    tools = {entry.arm: machine_of(entry) for entry in entries}
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
        "arm": [
            {"name": name, "disk": name, "machine": tools[name], "label": import_names.short(visible(words))}
            for name, words in arms.items()
        ],
        "workload": workloads,
        "design": {"replicates": 1, "repeats": 1, "seed": 1},
        "comparison": _comparisons(entries, list(arms), workloads, settings),
        "check": [],
    }


def machine_of(entry: Described) -> str:
    """Name of the machine that stands for those with this tool: which it was, is seldom told."""
    return _MACHINE_OF_SYSTEM[_system_of(entry)]


def _system_of(entry: Described) -> str:
    return registry.TOOLS[entry.tool].system


def blocks(entries: Sequence[Described]) -> list[list[Any]]:
    """Order by time; the first measurement of every cell makes the first block, the second the next."""
    seen: dict[tuple[str, str], int] = {}
    numbered = []
    for entry in sorted(entries, key=lambda entry: (entry.started, entry.arm)):
        cell = entry.arm, entry.workload["name"]
        seen[cell] = seen.get(cell, 0) + 1
        numbered.append((seen[cell], entry))
    numbered.sort(key=lambda pair: pair[0])
    return [[entry for _, entry in group] for _, group in groupby(numbered, key=lambda pair: pair[0])]


def manifest(
    name: str,
    scenario: dict[str, Any],
    arms: Mapping[str, str],
    settings: Settings,
    known: Mapping[str, dict[str, float | None]],
) -> dict[str, Any]:
    """Make the manifest of the run."""
    machine = {"id": UNKNOWN, "size": settings.vm_size or UNKNOWN, "limits": known["vm"]}
    disks = {
        arm: {"id": UNKNOWN, "sku": settings.disk_sku or UNKNOWN, "limits": known["disk"]} for arm in arms
    }
    machines = {item["name"]: machine for item in scenario["machine"]}
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
        "replicates": [{"replicate": 1, "machines": machines, "disks": disks}],
    }


def _workloads(entries: Sequence[Described]) -> list[dict[str, Any]]:
    """One for every load; loads that differ in their file's size or in a rate alone are told apart, too."""
    by_load: dict[tuple[Any, ...], dict[str, Any]] = {}
    names: dict[str, int] = {}
    for entry in entries:
        asked = {key: value for key, value in entry.workload.items() if key not in ("ramp_s", "runtime_s")}
        key = (
            *sorted((name, str(value)) for name, value in asked.items()),
            entry.measurement.load.queue_depth,
        )
        if key not in by_load:
            name = loads.name_of(entry.workload, entry.measurement.load)[:36]
            names[name] = names.get(name, 0) + 1
            unique = name if names[name] == 1 else f"{name}-{names[name]}"
            by_load[key] = {"name": unique, **entry.workload, "arms": [], "blocks": 1}
        row = by_load[key]
        row["arms"] = sorted({*row["arms"], entry.arm})
        entry.workload = {**entry.workload, "name": row["name"]}
    for row in by_load.values():
        counts = [
            sum(entry.workload["name"] == row["name"] and entry.arm == arm for entry in entries)
            for arm in row["arms"]
        ]
        row["blocks"] = min(max(counts), 1000)
    return list(by_load.values())


def _comparisons(
    entries: Sequence[Described], arms: list[str], workloads: list[dict[str, Any]], settings: Settings
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


def _hosts(entries: Sequence[Described]) -> dict[str, str]:
    """Machine of every arm, "" where its files name none; "localhost" may be any."""
    hosts = {entry.arm: entry.measurement.host for entry in entries}
    return {arm: "" if host in ("localhost", "127.0.0.1", "::1") else host for arm, host in hosts.items()}


def _pairing(host: str, base_host: str, same_machine: bool) -> str:
    """Only a machine that both arms share cancels in their ratio."""
    return "same-machine" if same_machine or (host and host == base_host) else "replicate"


def _known(made_by: tuple[str, str]) -> bool:
    """Versions that are not told may differ."""
    return made_by[1] != UNKNOWN
