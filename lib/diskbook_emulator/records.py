"""What the machines' side of an emulator remembers, and its file."""

import json
import math
import re
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from diskbook.facts.errors import DiskbookError
from diskbook.facts.files import write_atomic
from diskbook_emulator.storage_spaces import Spaces
from diskbook_emulator.types import DiskSpec, Session, VmAddress, VmSpec

_GROUP = re.compile(r"/resourcegroups/(?P<group>[^/]+)/providers/(?P<rest>.+)")


@dataclass
class VmRecord:
    """A machine: what was asked for, where it listens, whether it is on.

    `block` is the block of its run, at which its noise clock stands.
    """

    spec: VmSpec
    address: VmAddress
    running: bool
    block: int = 1


@dataclass
class Attachment:
    """One stretch of time in which a disk was attached to a machine.

    `number` is its own in the emulator, `times_before` counts earlier attachments of this disk to this
    machine. Times are seconds since the Unix epoch; `detached` is None while attached.
    """

    number: int
    times_before: int
    vm_id: str
    lun: int
    disk: DiskSpec
    caching: str
    attached: float
    detached: float | None = None
    sessions: list[Session] = field(default_factory=list)


@dataclass
class Book:
    """All machines, those deleted too, and all attachments; `began` is when it first started (epoch).

    `groups` are the resource groups in the order in which they were first used, `spaces` the clusters,
    pools and volumes.
    """

    began: float
    vms: dict[str, VmRecord] = field(default_factory=dict)
    gone: dict[str, VmRecord] = field(default_factory=dict)
    attachments: list[Attachment] = field(default_factory=list)
    groups: list[str] = field(default_factory=list)
    spaces: Spaces = field(default_factory=Spaces)

    def entity(self, arm_id: str) -> str:
        """Name a machine or disk for the seed: by the place of its resource group, its type and its name.

        So the first run on an emulator gets the same draws whatever its name and subscription, and the next
        run gets others.
        """
        match = _GROUP.search(arm_id.lower())
        if match is None:
            return arm_id.lower()
        if match["group"] not in self.groups:
            self.groups.append(match["group"])
        return f"{self.groups.index(match['group'])}/{match['rest']}"

    def attached_to(self, vm_id: str) -> list[Attachment]:
        """Return the disks attached to a machine now."""
        return [entry for entry in self.attachments if entry.vm_id == vm_id and entry.detached is None]

    def of_disk(self, disk_id: str) -> list[Attachment]:
        """Return the present attachments of a disk."""
        return [entry for entry in self.attachments if entry.disk.id == disk_id and entry.detached is None]

    def spec(self, vm_id: str) -> VmSpec:
        """Return what was asked for of a machine, also of a deleted one."""
        return (self.vms.get(vm_id) or self.gone[vm_id]).spec

    def disk(self, disk_id: str) -> DiskSpec:
        """Return a disk as it was attached last."""
        return next(entry.disk for entry in reversed(self.attachments) if entry.disk.id == disk_id)

    def is_up(self, vm_id: str) -> bool:
        return vm_id in self.vms and self.vms[vm_id].running

    def is_at(self, vm_id: str, disk_id: str, unique_id: str) -> bool:
        """Tell whether a disk is attached to a machine now, and not another one of its name."""
        return any(
            entry.vm_id == vm_id and entry.disk.unique_id == unique_id for entry in self.of_disk(disk_id)
        )

    def at(self, vm_id: str, lun: int) -> Attachment | None:
        """Return what is at a LUN of a machine now."""
        return next((entry for entry in self.attached_to(vm_id) if entry.lun == lun), None)

    def add(self, vm_id: str, lun: int, disk: DiskSpec, caching: str, now: float) -> Attachment:
        before = sum(entry.vm_id == vm_id and entry.disk.id == disk.id for entry in self.attachments)
        number = 1 + max((entry.number for entry in self.attachments), default=0)
        attachment = Attachment(number, before, vm_id, lun, disk, caching, now)
        self.attachments.append(attachment)
        return attachment


def save_book(path: Path, book: Book) -> None:
    """Write the book so that a crash leaves the old one or the new one."""
    write_atomic(path, json.dumps(asdict(book), default=str))


def load_book(path: Path) -> Book | None:
    """Read the book, None when there is none.

    Raises DiskbookError when the file is not what `save_book` writes.
    """
    if not path.exists():
        return None
    try:
        return TypeAdapter(Book).validate_json(path.read_bytes())
    except ValidationError as error:
        reason = error.errors()[0]["msg"]
        raise DiskbookError(f"{path}: the emulator's state cannot be read ({reason}): remove it.") from error


def without_nan(value: Any) -> Any:
    """Replace NaN by None, all through a document, so that it is JSON."""
    if isinstance(value, dict):
        return {key: without_nan(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [without_nan(entry) for entry in value]
    return None if isinstance(value, float) and math.isnan(value) else value
