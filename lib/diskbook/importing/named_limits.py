"""Limits of disk and machine that somebody names for a run that others measured, and which it lacks."""

import copy
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

from diskbook.facts.errors import UsageError
from diskbook.facts.quantities import as_written

Limits = dict[str, dict[str, float | None]]
"""By "disk" and "vm", as a manifest has them; None where not known."""
UNKNOWN = "unknown"
NUMBERS = ("vm_iops", "vm_mb_s", "disk_iops", "disk_mb_s")
_GREATEST = 1e9


@dataclass(frozen=True)
class Named:
    """What is said of disk and machine; None where nothing is.

    - `disk_sku`, `size_gib`, `vm_size`: what was measured: documented limits follow from these.
    - `vm_iops`, `vm_mb_s`, `disk_iops`, `disk_mb_s`: limits themselves, in IOPS and 10^6 bytes/s; each goes
      before what a table says.
    """

    disk_sku: str | None = None
    size_gib: int | None = None
    vm_size: str | None = None
    vm_iops: float | None = None
    vm_mb_s: float | None = None
    disk_iops: float | None = None
    disk_mb_s: float | None = None

    @classmethod
    def of(cls, options: object) -> "Named":
        """Take them from anything that has them as attributes."""
        return cls(**{item.name: getattr(options, item.name) for item in fields(cls)})

    @classmethod
    def of_manifest(cls, manifest: Mapping[str, Any]) -> "Named":
        """Those that an imported run keeps; of older ones what its disk and machine are called."""
        kept = manifest.get("imported", {}).get("named")
        if kept is not None:
            return cls(**kept)
        parts = manifest["replicates"][0]
        sku = next((disk.get("sku", UNKNOWN) for disk in parts["disks"].values()), UNKNOWN)
        size = next((machine["size"] for machine in parts["machines"].values()), UNKNOWN)
        gib = next((disk.get("size_gib") for disk in manifest["scenario"].get("disk", ())), None)
        is_named = sku != UNKNOWN
        return cls(sku if is_named else None, gib if is_named else None, size if size != UNKNOWN else None)

    @property
    def given(self) -> dict[str, Any]:
        """Those that are named."""
        values = {item.name: getattr(self, item.name) for item in fields(self)}
        return {name: value for name, value in values.items() if value is not None}

    @property
    def words(self) -> str:
        """As options of a command, e.g. "--vm-size Standard_D4s_v3"."""
        return " ".join(f"{_option(name)} {as_written(value)}" for name, value in self.given.items())

    def beside(self, others: "Named") -> "Named":
        """Return these limits, completed by those of others where these have none."""
        return replace(others, **self.given)


NOTHING = Named()


def in_force(tabled: Limits, named: "Named") -> Limits:
    """Put limits that are named as numbers before those of a table.

    A burst above the limit named stays; one below it cannot be.
    Raises UsageError for a number that is no limit.
    """
    known = copy.deepcopy(tabled)
    for name in NUMBERS:
        value = getattr(named, name)
        if value is None:
            continue
        if not 0 < value < _GREATEST:
            raise UsageError(f"{_option(name)} {value:g}: a limit is more than 0 and less than {_GREATEST:g}")
        whose, _, counts = name.partition("_")
        parts, burst = known[whose], known[whose].get(f"burst_{counts}")
        parts[counts] = value
        parts[f"burst_{counts}"] = burst if burst is not None and burst > value else None
    return known


def with_limits(manifest: Mapping[str, Any], known: Limits, given: Named) -> dict[str, Any]:
    """Copy the manifest of an import, with limits in force of the parts, disk or machine, that are given."""
    changed = copy.deepcopy(dict(manifest))
    of_disk = {"disk_sku", "size_gib", "disk_iops", "disk_mb_s"} & given.given.keys()
    of_machine = {"vm_size", "vm_iops", "vm_mb_s"} & given.given.keys()
    for part in changed["replicates"]:
        for disk in part["disks"].values() if of_disk else ():
            disk["limits"] = known["disk"]
        for machine in part["machines"].values() if of_machine else ():
            machine["limits"] = known["vm"]
    return changed


def lacking(manifest: Mapping[str, Any]) -> str:
    """Say in one line which options would name limits that an import lacks; empty where it lacks none."""
    named, parts = Named.of_manifest(manifest), []
    if not any(_known(manifest, "disks")):
        parts.append("--disk-sku and --size-gib (or --disk-iops and --disk-mb-s)")
    if not any(_known(manifest, "machines")):
        sized = named.vm_size is not None
        parts.append("--vm-iops and --vm-mb-s" if sized else "--vm-size (or --vm-iops and --vm-mb-s)")
    if not parts:
        return ""
    which = "disk and machine" if len(parts) > 1 else "the disk" if "--disk" in parts[0] else "the machine"
    return f"no limit of {which} is known; it lacks {' and '.join(parts)}, which 'diskbook why' takes as well"


def head(manifest: Mapping[str, Any], given: Named = NOTHING) -> list[str]:
    """Say which limits were named for an imported run, when, and which it lacks; a line each."""
    kept = Named.of_manifest(manifest).words
    lines = [f"limits by {kept}, named at the import"] if kept else []
    if given.given:
        lines.append(f"limits by {given.words}, for this answer alone: 'diskbook import' keeps them")
    return [*lines, *filter(None, [lacking(manifest)])]


def _known(manifest: Mapping[str, Any], kind: str) -> Iterator[bool]:
    """Whether each disk or machine has any limit."""
    for part in manifest["replicates"]:
        for item in part[kind].values():
            yield any(item.get("limits", {}).values())


def _option(name: str) -> str:
    return f"--{name.replace('_', '-')}"
