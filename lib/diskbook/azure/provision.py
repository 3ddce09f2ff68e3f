"""Create what a run needs: one resource group, its network, and a set of machines and disks a replicate."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from azure.core.exceptions import AzureError

from diskbook.azure import keys, limits, readback, requests
from diskbook.azure.clients import Clients
from diskbook.errors import DiskbookError
from diskbook.hosts import Connection, Host
from diskbook.run import Run, now_utc
from diskbook.scenario import Disk, Machine, Scenario

SSH_PORT_TAG = "diskbook-ssh-port"  # set by the emulator, whose machines cannot all have port 22


@dataclass(frozen=True)
class Place:
    """Where one set of machines and disks is created, and how it is labelled."""

    group: str
    region: str
    tags: dict[str, str]
    replicate: int

    def named(self, name: str) -> str:
        """Azure name of a scenario's machine or disk in this replicate."""
        return f"r{self.replicate}-{name}"


def group_tags(run: str, scenario: Scenario, expires_utc: str) -> dict[str, str]:
    """Tags of everything a run creates; `diskbook-site` is read by the emulator only."""
    return {
        "diskbook-run": run,
        "diskbook-owner": os.environ.get("USER", "unknown"),
        "diskbook-scenario": scenario.name,
        "diskbook-site": scenario.site,
        "diskbook-expires": expires_utc,
    }


def create_group(clients: Clients, run: Run, place: Place) -> None:
    """Create the resource group, tagged, unless it is there."""
    body = {"location": place.region, "tags": place.tags}
    with operation(run, "create resource group", place.group):
        clients.resource.resource_groups.create_or_update(place.group, body)


def replicate(clients: Clients, run: Run, scenario: Scenario, place: Place) -> dict[str, Any]:
    """Create machines and disks of one replicate in parallel, read every setting back, and record them.

    Returns
    -------
    dict
        The replicate's entry of the manifest: for each machine id, size, zones, limits, read-back and host;
        for each disk id, zones, limits and read-back.

    Raises
    ------
    DiskbookError
        When Azure refuses something, with its own message, or when a setting is not what was asked for.
    """
    keys.run_key(run.folder)
    zones = clients.zone_map(place.region)
    caps = limits.vm_limits(clients, place.region, {machine.size for machine in scenario.machine})
    with ThreadPoolExecutor(max_workers=16) as pool:
        network = pool.submit(_network, clients, run, place)
        disks = {disk.name: pool.submit(_disk, clients, run, place, disk, zones) for disk in scenario.disk}
        machines = {
            machine.name: pool.submit(_machine, clients, run, place, machine, network)
            for machine in scenario.machine
        }
        entry: dict[str, Any] = {"replicate": place.replicate, "resource_group": place.group}
        entry["disks"] = {name: future.result() for name, future in disks.items()}
        entry["machines"] = {name: future.result() for name, future in machines.items()}
    for name, row in entry["machines"].items():
        row["physical_zone"] = zones.get(row["logical_zone"])
        row["limits"] = caps[scenario.machine_named(name).size]
    return entry


def _network(clients: Clients, run: Run, place: Place) -> str:
    """Create network and security group; return the id of the subnet."""
    name = f"r{place.replicate}"
    rules = [requests.ssh_only(clients.cloud.ssh_source)]
    common = {"location": place.region, "tags": place.tags}
    with operation(run, "create network security group", f"{name}-nsg"):
        group = clients.network.network_security_groups.begin_create_or_update(
            place.group, f"{name}-nsg", {**common, "properties": {"securityRules": rules}}
        ).result()
    body = {**common, "properties": requests.network(group.id)}
    with operation(run, "create virtual network", f"{name}-net"):
        network = clients.network.virtual_networks.begin_create_or_update(
            place.group, f"{name}-net", body
        ).result()
    return network.subnets[0].id


def _machine(clients: Clients, run: Run, place: Place, spec: Machine, network: Future[str]) -> dict[str, Any]:
    """Create public address, network interface and machine; return the machine's entry of the manifest."""
    name = place.named(spec.name)
    host_key = keys.new_pair(name)
    nic_id = _interface(clients, run, place, spec, network.result())
    public_key = keys.run_key(run.folder).with_suffix(".pub").read_text().strip()
    body = requests.machine(
        spec, place.region, place.tags, name=name, nic_id=nic_id, user=clients.cloud.admin_user,
        public_key=public_key, host_key=host_key,
    )  # fmt: skip
    with operation(run, "create machine", name):
        clients.compute.virtual_machines.begin_create_or_update(place.group, name, body).result()
    machine = clients.compute.virtual_machines.get(place.group, name)
    address = clients.network.public_ip_addresses.get(place.group, f"{name}-ip").ip_address
    readback.check_machine(spec, machine)
    host = {
        "name": name,
        "address": address,
        "port": int((machine.tags or {}).get(SSH_PORT_TAG, 22)),
        "user": clients.cloud.admin_user,
        "host_key": " ".join(host_key.public.split()[:2]),
    }
    return {
        "id": machine.id.lower(),
        "vm_id": machine.vm_id,
        "size": spec.size,
        "logical_zone": spec.zone,
        "read_back": readback.machine(machine),
        "host": host,
        **_software(Host(**host, private_key=keys.run_key(run.folder))),
    }


def _software(host: Host) -> dict[str, str]:
    """Wait until the machine is set up, and ask for its kernel and its tool."""
    with Connection(host) as connection:
        # cloud-init installs fio on Azure; the emulated machine has neither need nor cloud-init.
        connection.run("command -v cloud-init >/dev/null && cloud-init status --wait", timeout_s=900)
        kernel, tool = connection.check("uname -sr && fio --version").decode().splitlines()[:2]
    return {"kernel": kernel, "tool_version": tool}


def _interface(clients: Clients, run: Run, place: Place, spec: Machine, subnet: str) -> str:
    """Create public address and network interface; return the id of the interface."""
    name = place.named(spec.name)
    common = {"location": place.region, "tags": place.tags}
    with operation(run, "create public address", f"{name}-ip"):
        address = clients.network.public_ip_addresses.begin_create_or_update(
            place.group, f"{name}-ip", {**common, **requests.public_address(spec.zone)}
        ).result()
    with operation(run, "create network interface", f"{name}-nic"):
        interface = clients.network.network_interfaces.begin_create_or_update(
            place.group, f"{name}-nic", {**common, "properties": requests.interface(subnet, address.id)}
        ).result()
    return interface.id


def _disk(clients: Clients, run: Run, place: Place, spec: Disk, zones: dict[str, str]) -> dict[str, Any]:
    name = place.named(spec.name)
    body = requests.disk(spec, place.region, place.tags)
    with operation(run, "create disk", name):
        clients.compute.disks.begin_create_or_update(place.group, name, body).result()
    disk = clients.compute.disks.get(place.group, name)
    readback.check_disk(spec, disk)
    return {
        "id": disk.id.lower(),
        "unique_id": disk.unique_id,
        "sku": spec.sku,
        "logical_zone": spec.zone,
        "physical_zone": zones.get(spec.zone or ""),
        "limits": limits.disk_limits(spec, disk),
        "read_back": readback.disk(disk),
    }


@contextlib.contextmanager
def operation(run: Run, name: str, target: str, clients: Clients | None = None) -> Iterator[None]:
    """Record the time of one control-plane operation, and put Azure's refusal into one sentence.

    With `clients` given the unscaled time is recorded as well; it is only right while no other operation
    runs. On the emulator both are the profile's own delays, not a finding about Azure.
    """
    started_utc, started, saved = now_utc(), time.monotonic(), clients.saved_s if clients else 0.0
    try:
        yield
    except AzureError as error:
        raise DiskbookError(f"{name} {target}: {azure_message(error)}") from error
    real_s = time.monotonic() - started
    unscaled_s = round(real_s + clients.saved_s - saved, 3) if clients else None
    run.append(
        "operation",
        name=name,
        target=target,
        started_utc=started_utc,
        real_s=round(real_s, 3),
        unscaled_s=unscaled_s,
    )


def azure_message(error: AzureError) -> str:
    """Azure's own code and message, in one line."""
    inner = getattr(error, "error", None)
    if inner is not None and getattr(inner, "code", None):
        return f"{inner.code}: {inner.message}"
    return str(error.message).splitlines()[0]
