"""For tests on a running emulator: its control plane through the unmodified SDK, its machines through SSH."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import pytest

from diskbook.cloud import kinds
from diskbook.cloud.azure import clients as azure, keys, requests
from diskbook.design.model import Disk, Machine
from diskbook.hosts import disks as machine_disks
from diskbook.hosts.ssh import Connection, Host
from diskbook.measure.runs import stages
from diskbook.results.run import Run
from diskbook_emulator import lifecycle

REGION = "westeurope"
GROUP = "tests"
SMALL = Disk(name="disk", sku="Premium_ZRS", size_gib=64)


@contextmanager
def own_place() -> Iterator[None]:
    """Runs and emulators in a folder of their own, with a short path; none may be left running."""
    with (
        tempfile.TemporaryDirectory(prefix="diskbook-test-", dir="/tmp") as name,
        pytest.MonkeyPatch.context() as patch,
    ):
        patch.setenv("TMPDIR", name)
        patch.setenv("DISKBOOK_RUNS", f"{name}/runs")
        yield
        assert lifecycle.status() == []


def measured(
    name: str, scenario: str, profile: str, changes: dict[str, Any] | None = None, time_scale: float = 0.0
) -> Run:
    """Provision, measure and tear down a scenario on an emulator of its own, without notebooks."""
    emulator = {"profile": profile, "time_scale": time_scale}
    folder = stages.begin(name, scenario, "emulator", "quick", changes, emulator)
    try:
        kinds.of(folder).start(folder, owner=True)
        stages.provision(folder)
        stages.benchmark(folder)
    finally:
        stages.teardown(folder)
    return folder


@dataclass
class Azure:
    """One resource group on an emulator, with what tests need of it."""

    emulator: lifecycle.Connection
    folder: Path

    def __post_init__(self) -> None:
        self.folder.mkdir(exist_ok=True)
        self.key = keys.run_key(self.folder)
        self.clients = azure.Clients(
            azure.Cloud(
                kind="emulator",
                subscription=self.emulator.subscription_id,
                credential=azure.StaticToken(self.emulator.token),
                endpoint=self.emulator.endpoint,
                ca=self.emulator.ca_path,
                time_scale=0.0,
                admin_user=self.emulator.admin_user,
            )
        )
        self.clients.resource.resource_groups.create_or_update(GROUP, {"location": REGION})

    def machine(self, name: str, zone: str) -> Host:
        """Create a machine with its network, and return how to reach it."""
        network, common = self.clients.network, {"location": REGION}
        rules = {"securityRules": [requests.ssh_only("*")]}
        group = network.network_security_groups.begin_create_or_update(
            GROUP, "nsg", {**common, "properties": rules}
        ).result()
        net = network.virtual_networks.begin_create_or_update(
            GROUP, "net", {**common, "properties": requests.network()}
        ).result()
        address = network.public_ip_addresses.begin_create_or_update(
            GROUP, f"{name}-ip", {**common, **requests.public_address(zone)}
        ).result()
        interface = requests.interface(net.subnets[0].id, address.id, group.id)
        nic = network.network_interfaces.begin_create_or_update(
            GROUP, f"{name}-nic", {**common, "properties": interface}
        ).result()
        host_key = keys.new_pair(name)
        body = requests.machine(
            Machine(name=name, size="Standard_D4as_v4", zone=zone),
            REGION,
            {},
            name=name,
            nic_id=nic.id,
            user=self.emulator.admin_user,
            public_key=self.key.with_suffix(".pub").read_text().strip(),
            host_key=host_key,
            image_version="1.0.10",
        )
        self.clients.compute.virtual_machines.begin_create_or_update(GROUP, name, body).result()
        return self.host(name, " ".join(host_key.public.split()[:2]))

    def host(self, name: str, host_key: str) -> Host:
        """Ask where a machine listens."""
        vm = self.clients.compute.virtual_machines.get(GROUP, name)
        address = self.clients.network.public_ip_addresses.get(GROUP, f"{name}-ip").ip_address
        port = int(vm.tags["diskbook-ssh-port"])
        return Host(name, address, port, self.emulator.admin_user, host_key, self.key)

    def disk(self, spec: Disk = SMALL) -> str:
        """Create a disk and return its id."""
        body = requests.disk(spec, REGION, {})
        created: Any = self.clients.compute.disks.begin_create_or_update(GROUP, spec.name, body).result()
        return str(created.id)

    def change(self, machine: str, **change: Any) -> None:
        """Attach or detach disks."""
        self.clients.compute.virtual_machines.begin_attach_detach_data_disks(GROUP, machine, change).result()

    def attach(self, machine: str, disk_id: str, lun: int = 0) -> None:
        """Attach a disk."""
        self.change(machine, dataDisksToAttach=[{"diskId": disk_id, "lun": lun, "caching": "None"}])

    def detach(self, machine: str, disk_id: str) -> None:
        """Detach a disk."""
        self.change(machine, dataDisksToDetach=[{"diskId": disk_id}])


def fio(connection: Connection, lun: int, *options: str) -> dict[str, Any]:
    """Run fio on a disk of the machine and return its job record.

    `prefill` among the options takes the export without latency and caps.
    """
    device = machine_disks.by_lun(connection)[lun]
    target = device.prefill_target if "prefill" in options else device.target
    given = " ".join(f"--{option}" for option in options if option != "prefill")
    command = (
        f"fio --output=fio.json --output-format=json --name=t --ioengine=nbd --uri='{target}' {given} "
        ">fio.said 2>&1; status=$?; cat fio.said >&2; cat fio.json; exit $status"
    )
    text = connection.check(command).decode()
    job: dict[str, Any] = json.loads(text[text.index("{") :])["jobs"][0]
    return job


def leftovers(folder: Path) -> list[str]:
    """Command lines of all processes, zombies aside, that have to do with a folder."""
    found = []
    for process in psutil.process_iter():
        try:
            line, status = " ".join(process.cmdline()), process.status()
            mine = str(folder) in line or str(folder) in process.cwd()
            mine = mine or str(folder) in str(process.environ().get("DISKBOOK_MACHINE_FOLDER"))
        except (psutil.Error, OSError):
            continue
        if mine and status != psutil.STATUS_ZOMBIE:
            found.append(line)
    return found


def soon(condition: Any, limit_s: float = 120.0) -> bool:
    """Wait until something is so; False when it does not come about, even on a machine that is very busy.

    What takes long to look at is looked at less often, so that waiting leaves the processor to others.
    """
    deadline = time.monotonic() + limit_s
    while True:
        began = time.thread_time()
        if condition():
            return True
        if time.monotonic() > deadline:
            return False
        time.sleep(max(0.02, 4 * (time.thread_time() - began)))


def python(code: str) -> subprocess.Popen[str]:
    """Run a piece of Python in a process of its own, with its output to read."""
    return subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
