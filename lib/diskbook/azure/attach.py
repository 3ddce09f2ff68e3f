"""Attach and detach data disks, move one to the machine that measures it, and tell which has which."""

from __future__ import annotations

import re
from typing import Any

from diskbook.azure import readback, refusals
from diskbook.azure.clients import Clients
from diskbook.azure.provision import operation
from diskbook.base.errors import DiskbookError
from diskbook.scenario.model import Disk
from diskbook.store.run import Run

_ID = re.compile(r"/resourcegroups/(?P<group>[^/]+)/providers/.*/(?P<name>[^/]+)$", re.IGNORECASE)


class Attachments:
    """Disks and machines of one replicate, moved by attachDetachDataDisks.

    Parameters
    ----------
    clients, run
        Where to ask, and where to record the time of each operation.
    replicate
        Entry of the manifest: ids of machines and disks.
    """

    def __init__(self, clients: Clients, run: Run, replicate: dict[str, Any]) -> None:
        self._clients = clients
        self._run = run
        self._machines = {name: row["id"] for name, row in replicate["machines"].items()}
        self._disks = {name: row["id"] for name, row in replicate["disks"].items()}

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

        Returns
        -------
        int
            The LUN.
        """
        places = self.where(disk.name)
        for other, lun in places:
            if other == machine:
                return lun
        if len(places) >= disk.max_shares:
            self.detach(disk.name, places[0][0])
        return self.attach(disk, machine)

    def attach(self, disk: Disk, machine: str) -> int:
        """Attach at the lowest free LUN, read the attachment back, and record what Azure says of it.

        Raises
        ------
        DiskbookError
            With Azure's own message, or when the attachment is not what was asked for.
        """
        used = {row.lun for row in self._data_disks(machine)}
        lun = next(number for number in range(len(used) + 1) if number not in used)
        body = {
            "diskId": self._disks[disk.name],
            "lun": lun,
            "caching": disk.cache,
            "deleteOption": "Delete",
        }
        with operation(self._run, "attach", f"{disk.name} to {machine}", self._clients):
            self._change(machine, {"dataDisksToAttach": [body]})
        attachment = readback.check_attachment(
            disk.name, self._get(machine), self._disks[disk.name], lun, disk.cache
        )
        self._run.append("attached", disk=disk.name, machine=machine, read_back=attachment)
        return lun

    def detach(self, disk: str, machine: str, *, force: bool = False) -> None:
        """Detach the disk from the machine; its data stay.

        With `force` it is taken from a machine that does not let go of it, what is not written yet with it
        (`detachOption`, from the REST specification, not seen on the wire).
        """
        option = {"detachOption": "ForceDetach"} if force else {}
        with operation(self._run, "detach", f"{disk} from {machine}", self._clients):
            self._change(machine, {"dataDisksToDetach": [{"diskId": self._disks[disk], **option}]})

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
