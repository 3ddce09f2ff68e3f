"""What an emulator plays and has played: the source of `truth.json`. Pure. No analysis may read it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from typing import Any

from diskbook.emulator.model import Model
from diskbook.emulator.records import Attachment, Book
from diskbook.emulator.types import DiskSpec, Session, VmSpec


def played(model: Model, book: Book, sessions: Callable[[Attachment], list[Session]]) -> dict[str, Any]:
    """Return population and realised truth of all machines, disks and attachments, also of those gone.

    Parameters
    ----------
    model, book
        What the emulator plays, and what it remembers.
    sessions
        Gives the sessions of an attachment, those of a disk in use as well.
    """
    vms = {**book.gone, **book.vms}
    disks = {attachment.disk.id: attachment.disk for attachment in book.attachments}
    return {
        "machines": [_machine(model, record.spec) for record in vms.values()],
        "disks": [_disk(model, disk) for disk in disks.values()],
        "attachments": [
            _attachment(model, vms[attachment.vm_id].spec, attachment, sessions(attachment))
            for attachment in book.attachments
        ],
    }


def _machine(model: Model, vm: VmSpec) -> dict[str, Any]:
    uncached, cached = model.vm_limits(vm)
    return {
        "machine_id": vm.id,
        "name": vm.name,
        "size": vm.size,
        "zone": vm.zone,
        "log_factor": model.machine_log(vm.id),
        "limits_uncached": asdict(uncached),
        "limits_cached": asdict(cached),
    }


def _disk(model: Model, disk: DiskSpec) -> dict[str, Any]:
    return {
        "disk_id": disk.id,
        "name": disk.name,
        "sku": disk.sku,
        "zone": disk.zone,
        "home_zone": model.home_zone(disk),
        "log_factor": model.disk_log(disk.id),
        "limits": asdict(model.disk_limits(disk)),
    }


def _attachment(model: Model, vm: VmSpec, attachment: Attachment, sessions: list[Session]) -> dict[str, Any]:
    return {
        "machine_id": vm.id,
        "disk_id": attachment.disk.id,
        "lun": attachment.lun,
        "caching": attachment.caching,
        "attached": attachment.attached,
        "detached": attachment.detached,
        "log_factor": model.machine_log(vm.id) + model.disk_log(attachment.disk.id),
        "population": asdict(model.population(vm, attachment.disk)),
        "sessions": [asdict(session) for session in sessions],
    }
