"""Switching the machines of a replicate off and on, by scenario name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from diskbook.cloud.azure.attach import group_and_name
from diskbook.cloud.azure.clients import Clients
from diskbook.cloud.azure.operation import operation
from diskbook.results.run import Run


class Power:
    """Power of the machines of one replicate.

    Parameters
    ----------
    clients, run
        Where to ask, and where to record the time of each operation.
    replicate
        Entry of the manifest.
    """

    def __init__(self, clients: Clients, run: Run, replicate: Mapping[str, Any]) -> None:
        self.clients = clients
        self._run = run
        self._ids = {name: row["id"] for name, row in replicate["machines"].items()}

    def off(self, failure: str, machine: str) -> None:
        """Have a machine fail, and wait until Azure says that it is off.

        Parameters
        ----------
        failure
            crash: power cut (`skipShutdown`); stop: shutdown, its place is kept; deallocate.
        machine
            Its scenario name.

        Raises
        ------
        DiskbookError
            With Azure's own message.
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
