"""Attach, detach and move data disks, switch machines off and on, and recover those that do not answer.

Of a machine that does not answer the state is read from Azure. An evicted or stopped one is started, a hung
one restarted, each once, and has to come back with the same disks. One with a new address is found there.
Power states are those of the instance view ("PowerState/deallocated").
"""

import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

from azure.core.exceptions import AzureError, ResourceNotFoundError, ServiceRequestError, ServiceResponseError

from diskbook.cloud.azure import expiry, readback, refusals, requests
from diskbook.cloud.azure.clients import Clients
from diskbook.cloud.azure.refusals import operation
from diskbook.cloud.azure.requests import SSH_PORT_TAG
from diskbook.design.model import Disk
from diskbook.facts.catalog import EPHEMERAL
from diskbook.facts.errors import DiskbookError
from diskbook.hosts.ssh import Host
from diskbook.results.run import Run

_ID = re.compile(r"/resourcegroups/(?P<group>[^/]+)/providers/.*/(?P<name>[^/]+)$", re.IGNORECASE)


class Attachments:
    """Disks and machines of one replicate (its entry of the manifest), moved by attachDetachDataDisks."""

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

    def move(self, disk: Disk, machine: str, *, again: bool = False) -> int:
        """Have the disk on the machine, taken from another where it cannot be shared; return the LUN.

        With `again` it is detached from the machine, where it is there already, and attached anew.
        """
        places = dict(self.where(disk.name))
        if machine in places and not again:
            return places[machine]
        if machine in places or len(places) >= disk.max_shares:
            self.detach(disk.name, machine if machine in places else next(iter(places)))
        return self.attach(disk, machine)

    def attach(self, disk: Disk, machine: str) -> int:
        """Attach at the lowest free LUN, read it back, and record what Azure says of it.

        Raises DiskbookError with Azure's own message, or when the attachment is not what was asked for.
        """
        return self._attach([disk], machine, {row.lun for row in self._data_disks(machine)})[disk.name]

    def attach_all(self, disks: Sequence[Disk], machine: str) -> dict[str, int]:
        """Attach the disks that a machine lacks, by one request; return name to LUN. Raises as `attach`."""
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
        self.detach_all([disk], machine, force=force)

    def detach_all(self, disks: Sequence[str], machine: str, *, force: bool = False) -> None:
        """Detach disks from a machine, all by one request; their data stay."""
        option = {"detachOption": "ForceDetach"} if force else {}
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
    """Power of the machines of one replicate, by its entry of the manifest."""

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


STOPPED = ("stopped", "deallocated")
CHANGING = ("starting", "stopping", "deallocating")
LOCAL = ("private_key", "route")
"""Parts of a host that its entry of the manifest does not have."""
# One try: whoever asks will ask again, and a laptop without a network must not wait here.
_SINGLE_TRY: dict[str, Any] = {"retry_total": 0, "connection_timeout": 5, "read_timeout": 20}


class Recovery:
    """Looks after the machines of one replicate, by its entry of the manifest, while it is measured."""

    def __init__(self, clients: Clients, run: Run, replicate: dict[str, Any]) -> None:
        self._clients = clients
        self._run = run
        self._replicate = replicate
        self._brought_back: set[str] = set()

    def handle_unreachable(self, machine: str, host: Host, last: bool) -> Host | None:
        """Look after a machine that does not answer, given by its scenario name.

        Returns where it listens, when something was done or is under way; None when there is nothing to do
        but to wait, or Azure cannot be asked. Raises DiskbookError: it is gone, was found stopped again, or
        Azure refuses to start it.
        """
        try:
            state = self._power(machine)
            if state in CHANGING:
                return host
            if state in STOPPED:
                return self._bring_back(machine, host, state, "start")
            return self._host_if_moved(machine, host) or (
                self._bring_back(machine, host, state, "restart") if last else None
            )
        except ResourceNotFoundError:
            raise DiskbookError(
                f"machine {host.name} is gone, somebody or Azure has deleted it; a resumed run makes new ones"
            ) from None
        except (ServiceRequestError, ServiceResponseError):
            return None  # no way to Azure at the moment
        except AzureError as error:
            if last:
                refused = refusals.message(error)
                raise DiskbookError(f"Azure refuses to tell of machine {host.name} ({refused})") from error
            return None

    def _power(self, machine: str) -> str:
        view = self._clients.compute.virtual_machines.instance_view(*self._place(machine), **_SINGLE_TRY)
        codes = [status.code or "" for status in view.statuses or []]
        states = [code.split("/", 1)[1].lower() for code in codes if code.startswith("PowerState/")]
        return states[0] if states else "unknown"

    def _bring_back(self, machine: str, host: Host, state: str, action: str) -> Host | None:
        """Start or restart a machine, once; make sure that it has come back with the same disks."""
        expiry.check_not_past(self._run, self._replicate["resource_group"])
        if machine in self._brought_back:
            if action == "restart":
                return None
            raise DiskbookError(
                f"machine {host.name} was found {state} again after it was started once; "
                "see who stops it, or take a size or zone with more room"
            )
        self._brought_back.add(machine)
        machines = self._clients.compute.virtual_machines
        begin = {"start": machines.begin_start, "restart": machines.begin_restart}[action]
        with operation(self._run, f"{action} machine", host.name, self._clients):
            begin(*self._place(machine)).result()
        self._check_disks(host)
        back = self._current_host(machine, host)
        self._record(machine, state, f"{action}ed", back)
        return back

    def _host_if_moved(self, machine: str, host: Host) -> Host | None:
        """Return where a running machine listens if that is not where it was."""
        now = self._current_host(machine, host)
        if now == host:
            return None
        self._record(machine, "running at another address", "found there", now)
        return now

    def _current_host(self, machine: str, host: Host) -> Host:
        vm = self._clients.compute.virtual_machines.get(*self._place(machine), **_SINGLE_TRY)
        group, name = self._place(machine)
        port = int((vm.tags or {}).get(SSH_PORT_TAG, 22))
        if host.route is not None:  # without a public address it keeps the one in its network
            return replace(host, port=port)
        address = self._clients.network.public_ip_addresses.get(group, f"{name}-ip", **_SINGLE_TRY).ip_address
        return replace(host, address=address or host.address, port=port)

    def _check_disks(self, host: Host) -> None:
        for name, row in self._replicate["disks"].items():
            if row["sku"] == EPHEMERAL:
                continue  # it came back with its machine, which is the same one
            disk = self._clients.compute.disks.get(*group_and_name(row["id"]))
            if disk.unique_id != row["unique_id"]:
                raise DiskbookError(
                    f"machine {host.name} came back, but disk {name} is not the one created for this run"
                )

    def _record(self, machine: str, state: str, done: str, host: Host) -> None:
        entry = self._replicate["machines"][machine]
        entry["host"] = {key: value for key, value in asdict(host).items() if key not in LOCAL}
        self._run.update_replicate(self._replicate["replicate"], machines=self._replicate["machines"])
        self._run.append(
            "recovery",
            replicate=self._replicate["replicate"],
            machine=machine,
            machine_id=entry["id"],
            found=state,
            done=done,
        )

    def _place(self, machine: str) -> tuple[str, str]:
        return group_and_name(self._replicate["machines"][machine]["id"])
