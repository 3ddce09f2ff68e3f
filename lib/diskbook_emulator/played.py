"""What an emulator plays and has played: the source of `truth.json`. Pure. No analysis may read it."""

from collections.abc import Callable
from dataclasses import asdict
from typing import Any

from diskbook_emulator.model import Model
from diskbook_emulator.records import Attachment, Book
from diskbook_emulator.truth import OPS
from diskbook_emulator.types import DiskSpec, Session, VmSpec


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
    blocks = {vm_id: record.block for vm_id, record in vms.items()}
    disks = {attachment.disk.id: attachment.disk for attachment in book.attachments}
    return {
        "machines": [_machine(model, record.spec, record.block) for record in vms.values()],
        "disks": [_disk(model, disk, max(blocks.values())) for disk in disks.values()],
        "attachments": [
            _attachment(model, vms[attachment.vm_id].spec, attachment, sessions(attachment))
            for attachment in book.attachments
        ],
    }


def _machine(model: Model, vm: VmSpec, blocks: int) -> dict[str, Any]:
    uncached, cached = model.vm_limits(vm)
    return {
        "machine_id": vm.id,
        "name": vm.name,
        "size": vm.size,
        "zone": vm.zone,
        "log_factor": model.machine_log(vm.id),
        "slow_log": model.slow_machine_log(vm.id),
        "offset_us": model.machine_us(vm.id),
        "moves": model.machine_moves(vm.id, blocks),
        "credit_share": model.credit_share(vm.id),
        "limits_uncached": asdict(uncached),
        "limits_cached": asdict(cached),
    }


def _disk(model: Model, disk: DiskSpec, blocks: int) -> dict[str, Any]:
    return {
        "disk_id": disk.id,
        "name": disk.name,
        "sku": disk.sku,
        "zone": disk.zone,
        "home_zone": model.home_zone(disk),
        "log_factor": model.disk_log(disk.id),
        "slow_log": model.slow_disk_log(disk.id),
        "moves": model.disk_moves(disk.id, blocks),
        "limits": asdict(model.disk_limits(disk)),
    }


def _attachment(model: Model, vm: VmSpec, attachment: Attachment, sessions: list[Session]) -> dict[str, Any]:
    population = asdict(model.population(vm, attachment.disk))
    return {
        "machine_id": vm.id,
        "disk_id": attachment.disk.id,
        "lun": attachment.lun,
        "caching": attachment.caching,
        "attached": attachment.attached,
        "detached": attachment.detached,
        "log_factor": model.pair_log(vm.id, attachment.disk.id),
        "slow_log": model.slow_machine_log(vm.id) + model.slow_disk_log(attachment.disk.id),
        "added_ms": {op: model.offset_ms(vm.id, population[f"{op}_mean_ms"]) for op in OPS},
        "population": population,
        "sessions": [asdict(session) for session in sessions],
    }
