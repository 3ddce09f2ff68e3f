"""Attach, detach and move data disks, and switch the machines of a replicate off and on."""

import re
import time
from collections.abc import Mapping, Sequence
from typing import Any

from diskbook.cloud.azure import readback, refusals, requests
from diskbook.cloud.azure.clients import Clients
from diskbook.cloud.azure.operation import operation
from diskbook.design.model import Disk
from diskbook.facts.errors import DiskbookError
from diskbook.results.run import Run

_ID = re.compile(r"/resourcegroups/(?P<group>[^/]+)/providers/.*/(?P<name>[^/]+)$", re.IGNORECASE)


class Attachments:
    """Disks and machines of one replicate, moved by attachDetachDataDisks.

    - `clients`, `run`: where to ask, and where to record the time of each operation.
    - `replicate`: entry of the manifest: ids of machines and disks.
    """

    def __init__(self, clients: Clients, run: Run, replicate: dict[str, Any]) -> None:
        self._clients = clients
        self._run = run
        self._machines = {name: row["id"] for name, row in replicate["machines"].items()}
        self._disks = {name: row["id"] for name, row in replicate["disks"].items()}
        self._replicate: int | None = replicate.get("replicate")
        self.attached_at: dict[tuple[str, str], float] = {}
        """When a disk was attached to a machine last (`time.monotonic`), by their names."""

    def where(self, disk: str) -> list[tuple[str, int]]:
        """Machines, by scenario name, that have the disk now, with the LUN, as Azure says."""
        places = []
        for machine in self._machines:
            for row in self._data_disks(machine):
                if row.managed_disk and row.managed_disk.id.lower() == self._disks[disk]:
                    places.append((machine, row.lun))
        return places

    def move(self, disk: Disk, machine: str) -> int:
        """Have the disk on the machine, taking it from another one where it cannot be shared.

        Returns the LUN.
        """
        places = self.where(disk.name)
        for other, lun in places:
            if other == machine:
                return lun
        if len(places) >= disk.max_shares:
            self.detach(disk.name, places[0][0])
        return self.attach(disk, machine)

    def renew(self, disk: Disk, machine: str) -> int:
        """Attach a disk to a machine again, which is detached first where it is there already.

        Else it is taken from another machine where it cannot be shared. Returns the LUN.
        """
        places = [place for place, _ in self.where(disk.name)]
        if machine in places:
            self.detach(disk.name, machine)
        elif len(places) >= disk.max_shares:
            self.detach(disk.name, places[0])
        return self.attach(disk, machine)

    def attach(self, disk: Disk, machine: str) -> int:
        """Attach at the lowest free LUN, read the attachment back, and record what Azure says of it.

        Raises DiskbookError with Azure's own message, or when the attachment is not what was asked for.
        """
        return self._attach([disk], machine, {row.lun for row in self._data_disks(machine)})[disk.name]

    def attach_all(self, disks: Sequence[Disk], machine: str) -> dict[str, int]:
        """Have disks on a machine, each for itself: attach those that it lacks, in order, by one request.

        Returns name to LUN, as Azure says.

        Raises DiskbookError as `attach` does.
        """
        rows = self._data_disks(machine)
        lun_of = {row.managed_disk.id.lower(): row.lun for row in rows if row.managed_disk}
        luns = {spec.name: lun_of.get(self._disks[spec.name]) for spec in disks}
        lacking = [spec for spec in disks if luns[spec.name] is None]
        there = {name: lun for name, lun in luns.items() if lun is not None}
        return there | (self._attach(lacking, machine, {row.lun for row in rows}) if lacking else {})

    def _attach(self, disks: Sequence[Disk], machine: str, used: set[int]) -> dict[str, int]:
        """Attach disks at the lowest LUNs that are not used, and read the attachments back."""
        free = [number for number in range(len(used) + len(disks)) if number not in used]
        luns = {spec.name: lun for spec, lun in zip(disks, free, strict=False)}
        bodies = [requests.attachment(spec, self._disks[spec.name], luns[spec.name]) for spec in disks]
        with operation(self._run, "attach", f"{', '.join(luns)} to {machine}", self._clients):
            self._change(machine, {"dataDisksToAttach": bodies})
        attached_at = time.monotonic()
        vm = self._get(machine)
        for spec in disks:
            asked = requests.attachment(spec, self._disks[spec.name], luns[spec.name])
            attachment = readback.check_attachment(spec.name, asked, vm)
            place = {"replicate": self._replicate, "disk": spec.name, "machine": machine}
            self._run.append("attached", **place, read_back=attachment)
            self.attached_at[spec.name, machine] = attached_at
        return luns

    def detach(self, disk: str, machine: str, *, force: bool = False) -> None:
        """Detach the disk from the machine; its data stay.

        With `force` it is taken from a machine that does not let go of it, what is not written yet with it
        (`detachOption`, from the REST specification, not seen on the wire).
        """
        option = {"detachOption": "ForceDetach"} if force else {}
        self._detach([disk], machine, option)

    def detach_all(self, disks: Sequence[str], machine: str) -> None:
        """Detach disks from a machine, all by one request; their data stay."""
        self._detach(disks, machine, {})

    def _detach(self, disks: Sequence[str], machine: str, option: Mapping[str, str]) -> None:
        bodies = [{"diskId": self._disks[disk], **option} for disk in disks]
        with operation(self._run, "detach", f"{', '.join(disks)} from {machine}", self._clients):
            self._change(machine, {"dataDisksToDetach": bodies})

    def _data_disks(self, machine: str) -> list[Any]:
        return list(self._get(machine).storage_profile.data_disks or [])

    def _get(self, machine: str) -> Any:
        return self._clients.compute.virtual_machines.get(*group_and_name(self._machines[machine]))

    def _change(self, machine: str, body: dict[str, Any]) -> None:
        place = group_and_name(self._machines[machine])
        change = self._clients.compute.virtual_machines.begin_attach_detach_data_disks
        refusals.retry_once(lambda: change(*place, body).result(), self._clients.tell)


def group_and_name(resource_id: str) -> tuple[str, str]:
    """Split an ARM id into resource group and name."""
    match = _ID.search(resource_id)
    if match is None:
        raise DiskbookError(f"'{resource_id}' is not the id of an Azure resource; the manifest is damaged")
    return match["group"], match["name"]


class Power:
    """Power of the machines of one replicate.

    - `clients`, `run`: where to ask, and where to record the time of each operation.
    - `replicate`: entry of the manifest.
    """

    def __init__(self, clients: Clients, run: Run, replicate: Mapping[str, Any]) -> None:
        self.clients = clients
        self._run = run
        self._ids = {name: row["id"] for name, row in replicate["machines"].items()}

    def off(self, failure: str, machine: str) -> None:
        """Have a machine fail, and wait until Azure says that it is off.

        - `failure`: crash: power cut (`skipShutdown`); stop: shutdown, its place is kept; deallocate.

        Raises DiskbookError with Azure's own message.
        """
        machines = self.clients.compute.virtual_machines
        place = group_and_name(self._ids[machine])
        with operation(self._run, f"{failure} machine", machine, self.clients):
            if failure == "deallocate":
                machines.begin_deallocate(*place).result()
            else:
                machines.begin_power_off(*place, skip_shutdown=failure == "crash").result()

    def on(self, machine: str) -> None:
        """Start a machine, and wait until Azure says that it runs; raises as `off` does."""
        machines = self.clients.compute.virtual_machines
        with operation(self._run, "start machine", machine, self.clients):
            machines.begin_start(*group_and_name(self._ids[machine])).result()
