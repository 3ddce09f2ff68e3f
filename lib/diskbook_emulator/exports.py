"""The disks' side of the emulator: an NBD export for each attachment, with the files that it stands on."""

import hashlib
import time
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from diskbook.facts.units import GIB
from diskbook_emulator.disk import THREADS, Export, LimitsFile
from diskbook_emulator.model import DEPTH_TAG, Model
from diskbook_emulator.records import Attachment, Book
from diskbook_emulator.reservations import Reservations
from diskbook_emulator.types import Activity, DiskSpec, ExportModel, Limits, Session, VmSpec

OS_LUN = -1  # where a machine's ephemeral OS disk is kept in the book; it has no LUN


class Exports:
    """Exports of the disks of running machines, and the data, limits and reservations behind them.

    - `folder`: state folder of the emulator.
    - `book`: what is attached where; read here, written by the backend.
    - `model`: what the disks play.
    - `plugin`: the compiled nbdkit plugin.
    """

    def __init__(self, folder: Path, book: Book, model: Model, plugin: Path) -> None:
        self._folder = folder
        self._book = book
        self._model = model
        self._plugin = plugin
        self.running: dict[int, Export] = {}  # by number of the attachment
        self._limits: dict[str, LimitsFile] = {}

    def update(self, disk: DiskSpec) -> None:
        """Put a disk's new limits in force at once, in all its attachments."""
        limits = self._limits.get(key(disk.id))
        if limits is not None:
            limits.update(self._model.disk_limits(disk))
        for attachment in self._book.of_disk(disk.id):
            attachment.disk = disk
            self._play(attachment)

    def refresh(self, vm_id: str) -> None:
        """Have the disks of a machine play what it is time for now."""
        for attachment in self._book.attached_to(vm_id):
            self._play(attachment)

    def _play(self, attachment: Attachment) -> None:
        export = self.running.get(attachment.number)
        if export is not None:
            export.set_model(self.model_of(attachment))

    @property
    def epoch_s(self) -> float:
        """`time.monotonic()` when the emulator first began: second 0 of all noise."""
        return time.monotonic() - (time.time() - self._book.began)

    def delete(self, disk_id: str) -> None:
        self.backing(disk_id).unlink(missing_ok=True)
        self.reservations_path(disk_id).unlink(missing_ok=True)
        self.drop_limits(key(disk_id))

    def start(self, attachment: Attachment) -> None:
        if attachment.number not in self.running:
            self.running[attachment.number] = self._new_export(attachment)
        try:
            self.running[attachment.number].start()
        except Exception:
            del self.running[attachment.number]
            raise

    def model_of(self, attachment: Attachment) -> ExportModel:
        """What the disk plays in this attachment."""
        record, times = self._book.vms[attachment.vm_id], attachment.times_before
        model = self._model.export_model(
            record.spec, attachment.disk, attachment.caching, times, record.block
        )
        attached_at = time.monotonic() - (time.time() - attachment.attached)
        return self._model.fresh(model, attachment.disk.sku, attached_at)

    def stop(self, attachment: Attachment) -> None:
        export = self.running.pop(attachment.number, None)
        if export is not None:
            export.stop()
            attachment.sessions = export.sessions()
            self.keep_activity(attachment, export.activity())

    def end(self, attachment: Attachment) -> None:
        """End an attachment: its reservations and files go, what it did stays."""
        attachment.detached = time.time()
        path = self.reservations_path(attachment.disk.id)
        if path.exists():
            Reservations(path).drop(attachment.number)
        _remove_tree(self._folder / "exports" / str(attachment.number))

    def activity(self, attachment: Attachment) -> Activity:
        """What a disk did in one attachment: read from the disk at work, or from what was kept of it."""
        record = self._book.vms.get(attachment.vm_id) or self._book.gone[attachment.vm_id]
        uncached, cached = self._model.vm_limits(record.spec)
        export, kept = self.running.get(attachment.number), self._activity_path(attachment)
        if export is not None:
            counts = export.activity()
        else:
            counts = np.load(kept) if kept.exists() else np.empty((0, 5), dtype=np.int64)
        return Activity(
            vm=record.spec,
            disk=attachment.disk,
            lun=attachment.lun,
            attached=attachment.attached,
            detached=attachment.detached,
            disk_limits=self._model.disk_limits(attachment.disk),
            vm_uncached=uncached,
            vm_cached=cached,
            counts=counts,
        )

    def keep_activity(self, attachment: Attachment, counts: NDArray[np.int64]) -> None:
        """Keep what a disk did, I/Os and bytes a second, beyond its export."""
        path = self._activity_path(attachment)
        path.parent.mkdir(exist_ok=True)
        np.save(path, counts)

    def backing(self, disk_id: str) -> Path:
        return self._folder / "disks" / f"{key(disk_id)}.img"

    def reservations_path(self, disk_id: str) -> Path:
        """File of who may write to a disk."""
        return self._folder / "reservations" / key(disk_id)

    def drop_limits(self, name: str) -> None:
        for path in (name, *(f"{name}.{way}" for way in ("uncached", "cached", "nic_out", "nic_in"))):
            if self._limits.pop(path, None) is not None:
                (self._folder / "limits" / path).unlink(missing_ok=True)

    def limits_of_disk(self, disk: DiskSpec) -> Path:
        """Limits file of a disk, which all that use it share."""
        return self._limits_file(key(disk.id), self._model.disk_limits(disk))

    def limits_of_vm(self, vm: VmSpec) -> Path:
        """Limits file of a machine's uncached path, which all its disks share."""
        return self._limits_file(f"{key(vm.id)}.uncached", self._model.vm_limits(vm)[0])

    def limits_of_network(self, vm: VmSpec) -> tuple[Path | None, Path | None]:
        """Limits files of what a machine sends and receives; none where its network has no limit."""
        ways = zip(("nic_out", "nic_in"), self._model.network_limits(), strict=True)
        out, into = (self._limits_file(f"{key(vm.id)}.{way}", cap) if cap else None for way, cap in ways)
        return out, into

    def sessions(self, attachment: Attachment) -> list[Session]:
        export = self.running.get(attachment.number)
        return attachment.sessions if export is None else export.sessions()

    def _new_export(self, attachment: Attachment) -> Export:
        vm, disk = self._book.vms[attachment.vm_id].spec, attachment.disk
        model = self.model_of(attachment)
        uncached, cached = self._model.vm_limits(vm)
        path = f"{key(vm.id)}.uncached", uncached
        if attachment.lun == OS_LUN:  # limited with the host cache
            path = f"{key(vm.id)}.cached", cached
        sockets = self._folder / "s"
        sockets.mkdir(exist_ok=True)
        return Export(
            socket=sockets / str(attachment.number),
            backing=self.backing(disk.id),
            size_bytes=disk.size_gib * GIB,
            model=model,
            disk_limits=self.limits_of_disk(disk),
            vm_uncached=self._limits_file(*path),
            vm_cached=self._limits_file(f"{key(vm.id)}.cached", cached) if model.cache else None,
            plugin=self._plugin,
            work_dir=self._folder / "exports" / str(attachment.number),
            epoch_s=self.epoch_s,
            reservations=self._reservations_file(disk.id),
            nexus=attachment.number,
            threads=int(disk.tags.get(DEPTH_TAG, THREADS)),
        )

    def _activity_path(self, attachment: Attachment) -> Path:
        return self._folder / "activity" / f"{attachment.number}.npy"

    def _reservations_file(self, disk_id: str) -> Path:
        """File of who may write to a disk, made when missing.

        A registration belongs to an attachment: it outlasts a machine that is off, as a cluster needs, and
        ends with the attachment. (What Azure does when a disk is detached is not documented.)
        """
        path = self.reservations_path(disk_id)
        if not path.exists():
            path.parent.mkdir(exist_ok=True)
            Reservations.create(path)
        return path

    def _limits_file(self, name: str, limits: Limits) -> Path:
        """Put limits in force in their file, made when missing; used credit stays used."""
        path = self._folder / "limits" / name
        if name in self._limits:
            self._limits[name].update(limits)
        else:
            path.parent.mkdir(exist_ok=True)
            self._limits[name] = LimitsFile.create(path, limits)
        return path


def key(arm_id: str) -> str:
    """Return a short file name for an ARM id, which only it has."""
    name = arm_id.rsplit("/", 1)[-1]
    return f"{name[:40]}-{hashlib.sha256(arm_id.lower().encode()).hexdigest()[:8]}"


def _remove_tree(folder: Path) -> None:
    for path in folder.glob("*"):
        path.unlink(missing_ok=True)
    if folder.exists():
        folder.rmdir()
