"""Recover a machine that does not answer: read its state from Azure, bring it back with the same disks.

An evicted or stopped machine is started, a hung one restarted, each once. A machine with a new address is
found there. Power states are those of the instance view ("PowerState/deallocated").
"""

from dataclasses import asdict, replace
from typing import Any

from azure.core.exceptions import AzureError, ResourceNotFoundError, ServiceRequestError, ServiceResponseError

from diskbook.cloud.azure import expiry, refusals
from diskbook.cloud.azure.attach import group_and_name
from diskbook.cloud.azure.clients import Clients
from diskbook.cloud.azure.operation import operation
from diskbook.cloud.azure.requests import SSH_PORT_TAG
from diskbook.facts.catalog import EPHEMERAL
from diskbook.facts.errors import DiskbookError
from diskbook.hosts.ssh import Host
from diskbook.results.run import Run

STOPPED = ("stopped", "deallocated")
CHANGING = ("starting", "stopping", "deallocating")
LOCAL = ("private_key", "route")
"""Parts of a host that its entry of the manifest does not have."""
# One try: whoever asks will ask again, and a laptop without a network must not wait here.
_SINGLE_TRY: dict[str, Any] = {"retry_total": 0, "connection_timeout": 5, "read_timeout": 20}


class Recovery:
    """Looks after the machines of one replicate while it is measured.

    - `clients`, `run`: where to ask, and where to record what was found and done.
    - `replicate`: entry of the manifest: ids of machines and disks.
    """

    def __init__(self, clients: Clients, run: Run, replicate: dict[str, Any]) -> None:
        self._clients = clients
        self._run = run
        self._replicate = replicate
        self._brought_back: set[str] = set()

    def handle_unreachable(self, machine: str, host: Host, last: bool) -> Host | None:
        """Look after a machine that does not answer, given by its scenario name.

        Returns where it listens, when something was done or is under way; None when there is nothing to do
        but to wait, or Azure cannot be asked either.

        Raises DiskbookError: it is gone, or was found stopped a second time, or Azure refuses to start it.
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
        if host.route is not None:  # without a public address it keeps the one in its network
            return replace(host, port=int((vm.tags or {}).get(SSH_PORT_TAG, 22)))
        address = self._clients.network.public_ip_addresses.get(group, f"{name}-ip", **_SINGLE_TRY).ip_address
        port = int((vm.tags or {}).get(SSH_PORT_TAG, 22))
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
