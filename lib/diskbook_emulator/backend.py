"""The machines' side of the emulator: what the control plane decides becomes sshd and nbdkit processes."""

import hmac
import subprocess
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from diskbook.facts.catalog import EPHEMERAL, NVME
from diskbook.facts.errors import DiskbookError
from diskbook.facts.linux import FIRST_DATA_NAMESPACE, NVME_MODEL, OS_DISK
from diskbook.facts.units import GIB
from diskbook_emulator import cluster_steps, machine, stand_ins
from diskbook_emulator.exports import OS_LUN, Exports, key
from diskbook_emulator.jump import JumpHost
from diskbook_emulator.machine import Machine
from diskbook_emulator.model import Model
from diskbook_emulator.played import of_volumes, played
from diskbook_emulator.records import Book, VmRecord, load_book, save_book
from diskbook_emulator.shm import ModelFile
from diskbook_emulator.step_call import Call, Planted
from diskbook_emulator.types import (
    Activity,
    DiskSpec,
    VmAddress,
    VmSpec,
)
from diskbook_emulator.volume_host import VolumeHost

RESTART_S = 1.0
"""How long after a script asked for it a machine restarts; the script grants 5 s."""


class LocalBackend:
    """Runs machines and disks on this computer; implements `types.Backend`.

    - `folder`: state folder of the emulator. Machines known from before keep addresses and host keys, disks
      their data; none runs or is attached until the control plane says so again. Burst credit is full again.
    - `model`: what it plays; machines and disks are named for its seed by the book (see `Book.entity`).
    - `plugin`: the compiled nbdkit plugin.
    """

    def __init__(self, folder: Path, name: str, model: Model, plugin: Path) -> None:
        self._folder = folder
        self._name = name
        self._lock = threading.RLock()
        self._book_path = folder / "backend.json"
        self._book: Book = load_book(self._book_path) or Book(began=time.time())
        self._model = replace(model, entity=self._book.entity)
        self._machines: dict[str, Machine] = {}
        self._exports = Exports(folder, self._book, self._model, plugin)
        self.closed = False
        self._control: tuple[str, str] | None = None
        self._accounts: Callable[[str, str], bool] | None = None
        self._jump: JumpHost | None = None
        self._stand_ins: subprocess.Popen[bytes] | None = None
        self._private: dict[str, tuple[VmAddress, str]] = {}
        self._recover()
        self._host = VolumeHost(folder, self._book, self._model, self._exports, plugin.parent)

    # what the control plane calls

    def reached_at(self, endpoint: str, ca: Path) -> None:
        """Know where machines started from now on reach the control plane, and whom they trust there."""
        self._control = endpoint, str(ca)

    def ask_about_keys(self, opens: Callable[[str, str], bool]) -> None:
        """Know whom to ask whether a storage account takes a key."""
        self._accounts = opens

    def start_jump_host(self) -> JumpHost:
        """Start the jump host of the company's network, which reaches machines there."""
        self._jump = JumpHost(self._folder, self._name)
        self._jump.begin()
        return self._jump

    def reached_privately(self, vm_id: str, private: str, at: VmAddress) -> None:
        """Tell the jump host where a machine listens that has a private address alone."""
        with self._step():
            self._private[private] = (at, vm_id)
            self._tell_jump_host()

    def _tell_jump_host(self) -> None:
        if self._jump is not None:
            self._jump.tell(self._private)

    def start_vm(self, vm: VmSpec) -> VmAddress:
        """Start the machine and the exports of its disks; a machine known before keeps its address."""
        with self._step():
            record = self._book.vms.get(vm.id)
            address = record.address if record else self._new_address()
            machine = self._machine(VmRecord(vm, address, running=True))
            machine.prepare(vm)
            if self._stand_ins is None and vm.os == "windows":
                self._stand_ins = stand_ins.start(self._folder)
            if self._control is not None and vm.os == "windows":
                machine.write_control(vm.id, *self._control)
            machine.start()
            block = record.block if record else 1
            self._book.vms[vm.id] = VmRecord(vm, address, running=True, block=block)
            if vm.local_os_gib is not None and self._book.at(vm.id, OS_LUN) is None:
                self._book.add(vm.id, OS_LUN, _os_disk(vm, vm.local_os_gib), "None", time.time())
            for attachment in self._book.attached_to(vm.id):
                self._exports.start(attachment)
            if vm.id in self._book.spaces.nodes:
                self._book.spaces.nodes[vm.id].restarted()
            self._host.start(vm.id)
            self._publish(vm.id)
            return address

    def stop_vm(self, vm_id: str, notice: bool = False) -> None:
        with self._step():
            record = self._book.vms.get(vm_id)
            if record is None:
                return
            self._machine(record).stop(notice=notice)
            for attachment in self._book.attached_to(vm_id):
                self._exports.stop(attachment)
            self._host.stop(vm_id)
            record.running = False
            self._host.refresh()
            self._save()

    def set_up(self, vm_id: str, host_key: str, authorized_keys: tuple[str, ...]) -> None:
        """Give a running machine its host key and the keys that may sign in; open connections end."""
        with self._step():
            record = self._record(vm_id)
            record.spec = replace(record.spec, authorized_keys=authorized_keys)
            self._machine(record).set_up(record.spec, host_key)
            self._save()

    def delete_vm(self, vm_id: str) -> None:
        with self._step():
            record = self._book.vms.get(vm_id)
            if record is None:
                return
            self.stop_vm(vm_id)
            for attachment in self._book.attached_to(vm_id):
                self._exports.end(attachment)
            self._machine(record).delete()
            self._exports.backing(_os_disk_id(vm_id)).unlink(missing_ok=True)
            del self._machines[vm_id]
            self._book.gone[vm_id] = self._book.vms.pop(vm_id)
            self._private = {key: row for key, row in self._private.items() if row[1] != vm_id}
            self._tell_jump_host()
            for volume in self._book.spaces.forget(vm_id):
                self._host.end(volume)
            self._host.refresh()
            self._exports.drop_limits(key(vm_id))
            self._save()

    def attach(self, vm_id: str, lun: int, disk: DiskSpec, caching: str) -> None:
        """Make the disk reachable at this LUN; nothing happens when it is there already.

        Raises RuntimeError when the machine is unknown, or the LUN holds another disk.
        """
        with self._step():
            self._record(vm_id)
            there = self._book.at(vm_id, lun)
            if there is not None and there.disk.id != disk.id:
                raise RuntimeError(f"LUN {lun} of {vm_id} holds another disk, {there.disk.id}")
            if there is None:
                there = self._book.add(vm_id, lun, disk, caching, time.time())
            there.disk, there.caching = disk, caching
            if self._book.vms[vm_id].running:
                try:
                    self._exports.start(there)
                except Exception:
                    self._book.attachments.remove(there)
                    raise
            self._host.refresh()
            self._publish(vm_id)

    def detach(self, vm_id: str, lun: int) -> None:
        """Take the disk away; its data and what it recorded stay."""
        with self._step():
            attachment = self._book.at(vm_id, lun)
            if attachment is not None:
                self._exports.stop(attachment)
                self._exports.end(attachment)
                self._host.refresh()
                self._publish(vm_id)

    def update_disk(self, disk: DiskSpec) -> None:
        """Put the disk's new limits in force at once, in all its attachments."""
        with self._step():
            self._exports.update(disk)
            self._save()

    def delete_disk(self, disk_id: str) -> None:
        """Delete the disk's data.

        Raises RuntimeError when the disk is attached.
        """
        with self._step():
            if self._book.of_disk(disk_id):
                raise RuntimeError(f"{disk_id} is attached to a machine")
            self._exports.delete(disk_id)

    def activity(self) -> list[Activity]:
        """Return what all data disks did second by second, also those detached since."""
        with self._step():
            return [
                self._with_volumes(self._exports.activity(attachment))
                for attachment in self._book.attachments
                if attachment.lun != OS_LUN
            ]

    def _with_volumes(self, alone: Activity) -> Activity:
        """Add what a disk did for volumes to what it did by itself."""
        more = self._host.activity.of(alone.disk.id, alone.attached, alone.detached)
        counts = np.concatenate([alone.counts, more])
        return replace(alone, counts=counts[counts[:, 0].argsort(kind="stable")])

    def begin_block(self, vm_ids: Iterable[str], block: int) -> None:
        """Set the noise clock of machines, and of the disks attached there, to a block of their run.

        A machine that is gone has no clock; who measures on it will notice.
        """
        with self._step():
            for vm_id in (name.lower() for name in vm_ids):
                if vm_id in self._book.vms:
                    self._book.vms[vm_id].block = block
                    self._exports.refresh(vm_id)
                    self._host.play(vm_id)
            self._save()

    # what machines call

    def step(
        self, vm_id: str, secret: str, step: str, request: Mapping[str, Any], inner: str, planted: Planted
    ) -> dict[str, Any] | None:
        """Carry a cluster's step out on a machine, as `cluster_steps.answer` does; None where it was killed.

        Raises PermissionError when the secret is not the machine's, and RuntimeError when the machine does
        not run.
        """
        with self._step():
            record = self._record(vm_id)
            if not hmac.compare_digest(self._machine(record).secret().encode(), secret.encode()):
                raise PermissionError(f"that is not the secret of {vm_id}")
            if not record.running:
                raise RuntimeError(f"{vm_id} does not run")
            call = Call(vm_id, self._book, self._host, self, self._lock, planted)
            return cluster_steps.answer(call, step, request, inner)

    def save(self) -> None:
        self._save()

    def show(self, vm_ids: Iterable[str]) -> None:
        """Write what machines see of their disks and volumes."""
        for vm_id in vm_ids:
            if vm_id in self._book.vms:
                self._publish(vm_id)

    def folder(self, vm_id: str) -> Path:
        """Return the folder of a machine, in which all is that belongs to it."""
        return self._machine(self._record(vm_id)).folder

    def opens_account(self, account: str, key: str) -> bool:
        """Tell whether a storage account takes a key; without a control plane every one does."""
        return self._accounts is None or self._accounts(account, key)

    def restart_soon(self, vm_id: str) -> None:
        """Restart a machine from within, in a moment; its disks stay attached."""
        timer = threading.Timer(RESTART_S, self._restart, (vm_id,))
        timer.daemon = True
        timer.start()

    def _restart(self, vm_id: str) -> None:
        with self._step():
            record = self._book.vms.get(vm_id)
            if record is None or not record.running or self.closed:
                return
            self._machine(record).stop(notice=True)
            self._book.spaces.nodes[vm_id].restarted()
            self._machine(record).start()
            self._save()

    # life of the emulator

    def heal(self) -> None:
        """Start again what has died of running machines: sshd, as systemd does, and exports of disks."""
        with self._step():
            for vm_id, record in () if self.closed else self._book.vms.items():
                if record.running and not self._machine(record).running:
                    self._machine(record).start()
                for attachment in self._book.attached_to(vm_id):
                    export = self._exports.running.get(attachment.number)
                    if record.running and export is not None and not export.alive():
                        export.start()
            if not self.closed:
                self._host.heal()

    def close(self) -> None:
        """End all machines and exports; what is known of them stays in the state folder."""
        with self._step():
            self.closed = True
            for vm_id, machine in self._machines.items():
                machine.stop()
                for attachment in self._book.attached_to(vm_id):
                    self._exports.stop(attachment)
            if self._jump is not None:
                self._jump.stop()
            if self._stand_ins is not None:
                self._stand_ins.kill()
                self._stand_ins.wait()
            self._host.close()
            self._save()

    def truth(self) -> dict[str, Any]:
        """Return population and realised truth of all machines, disks and attachments, also of those gone."""
        with self._step():
            whole = played(self._model, self._book, self._exports.sessions)
            return {**whole, "volumes": of_volumes(self._model, self._book, self._host)}

    def _recover(self) -> None:
        """Close what an emulator that was killed left open."""
        for record in self._book.vms.values():
            record.running = False
        for attachment in self._book.attachments:
            if attachment.detached is None:
                path = self._folder / "exports" / str(attachment.number) / "model"
                if path.exists():
                    left = ModelFile(path, time.monotonic())
                    attachment.sessions = left.sessions()
                    self._exports.keep_activity(attachment, left.activity())
                self._exports.end(attachment)

    # machines

    @contextmanager
    def _step(self) -> Iterator[None]:
        """One step at a time; errors as the control plane expects them."""
        with self._lock:
            try:
                yield
            except DiskbookError as error:
                raise RuntimeError(str(error)) from error

    def _record(self, vm_id: str) -> VmRecord:
        record = self._book.vms.get(vm_id)
        if record is None:
            raise RuntimeError(f"the emulator has no machine {vm_id}")
        return record

    def _new_address(self) -> VmAddress:
        taken = [record.address.address for record in self._book.vms.values()]
        address = machine.next_address(machine.network_of(self._folder), taken)
        return VmAddress(address, machine.free_port(address))

    def _machine(self, record: VmRecord) -> Machine:
        vm = record.spec
        if vm.id not in self._machines:
            folder = self._folder / "vms" / key(vm.id)
            self._machines[vm.id] = Machine(folder, f"{self._name}/{vm.name}", record.address, self._folder)
        return self._machines[vm.id]

    def _publish(self, vm_id: str) -> None:
        """Write what the machine sees of disks and volumes, and save; a pool's disks are seen no more."""
        disks = {
            OS_DISK if attachment.lun == OS_LUN else str(attachment.lun): {
                "engine": "nbd",
                "uri": self._exports.running[attachment.number].uri(),
                "prefill_uri": self._exports.running[attachment.number].uri(unthrottled=True),
                "size_bytes": attachment.disk.size_gib * GIB,
                "disk_id": attachment.disk.id,
                "unique_id": attachment.disk.unique_id,
                "reservations": str(self._exports.reservations_path(attachment.disk.id).absolute()),
                "nexus": attachment.number,
                **self._namespace(vm_id, attachment.lun),
            }
            for attachment in self._book.attached_to(vm_id)
            if attachment.number in self._exports.running
            and self._book.spaces.pool_with(attachment.disk.id) is None
        }
        machine = self._machine(self._record(vm_id))
        machine.write_disks(disks)
        machine.write_volumes(self._host.shown(vm_id))
        self._save()

    def _namespace(self, vm_id: str, lun: int) -> dict[str, Any]:
        """How a machine with an NVMe controller sees a disk: as a namespace, with no word of a LUN."""
        if lun == OS_LUN or self._record(vm_id).spec.controller != NVME:
            return {}
        return {"nvme": {"model": NVME_MODEL, "namespace": lun + FIRST_DATA_NAMESPACE}}

    def _save(self) -> None:
        save_book(self._book_path, self._book)


def _os_disk_id(vm_id: str) -> str:
    return f"{vm_id}/osdisk"


def _os_disk(vm: VmSpec, size_gib: int) -> DiskSpec:
    """The ephemeral OS disk of a machine, which is no resource of its own."""
    return DiskSpec(
        id=_os_disk_id(vm.id), name=f"{vm.name}-os", sku=EPHEMERAL, size_gib=size_gib, zone=vm.zone,
        max_shares=1, iops=0, mb_s=0, bursting=False, performance_plus=False, tier=None, tags=vm.tags,
    )  # fmt: skip
