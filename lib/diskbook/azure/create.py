"""Create one thing, wait for it, and read back what it has become: the steps of provisioning."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from diskbook.azure import guests, keys, limits, readback, requests, windows
from diskbook.azure.clients import Clients
from diskbook.azure.operation import operation
from diskbook.run import Run
from diskbook.scenario import Disk, Machine

SSH_PORT_TAG = "diskbook-ssh-port"  # set by the emulator, whose machines cannot all have port 22


@dataclass(frozen=True)
class Place:
    """Where things are created, and how they are labelled."""

    group: str
    region: str
    tags: dict[str, str]

    @property
    def common(self) -> dict[str, Any]:
        """What every request has in common."""
        return {"location": self.region, "tags": self.tags}


@dataclass(frozen=True)
class Maker:
    """Creates the things of one resource group.

    Parameters
    ----------
    clients, run
        Where to ask, and where to record the time of each operation.
    place
        The group, which is there.
    zones
        Logical zone to physical one.
    """

    clients: Clients
    run: Run
    place: Place
    zones: Mapping[str, str]

    def security_group(self) -> str:
        """Create the security group, which lets in SSH from one place only; return its id."""
        rules = {"securityRules": [requests.ssh_only(self.clients.cloud.ssh_source)]}
        with operation(self.run, "create network security group", "nsg"):
            made = self.clients.network.network_security_groups.begin_create_or_update(
                self.place.group, "nsg", {**self.place.common, "properties": rules}
            ).result()
        readback.check_security_group(self.clients.cloud.ssh_source, made)
        return str(made.id)

    def network(self) -> str:
        """Create the virtual network; return the id of its subnet."""
        with operation(self.run, "create virtual network", "net"):
            made = self.clients.network.virtual_networks.begin_create_or_update(
                self.place.group, "net", {**self.place.common, "properties": requests.network()}
            ).result()
        return str(made.subnets[0].id)

    def address(self, name: str, zone: str | None) -> str:
        """Create a machine's public address; return its id."""
        with operation(self.run, "create public address", f"{name}-ip"):
            made = self.clients.network.public_ip_addresses.begin_create_or_update(
                self.place.group, f"{name}-ip", {**self.place.common, **requests.public_address(zone)}
            ).result()
        return str(made.id)

    def interface(self, name: str, spec: Machine, parts: Mapping[str, str], size: limits.Size) -> Any:
        """Create a machine's network interface and read it back.

        Parameters
        ----------
        name
            The machine's name in Azure.
        spec
            The machine as the scenario asks for it.
        parts
            Ids of `subnet`, `address` and `group` (the security group).
        size
            What the machine's size can do.
        """
        accelerated = spec.accelerated_networking and size.accelerated_networking
        asked = requests.interface(parts["subnet"], parts["address"], parts["group"], accelerated=accelerated)
        with operation(self.run, "create network interface", f"{name}-nic"):
            self.clients.network.network_interfaces.begin_create_or_update(
                self.place.group, f"{name}-nic", {**self.place.common, "properties": asked}
            ).result()
        made = self.clients.network.network_interfaces.get(self.place.group, f"{name}-nic")
        readback.check_interface(spec.name, asked, made)
        return made

    def machine(self, name: str, spec: Machine, nic: Any, size: limits.Size) -> dict[str, Any]:
        """Create a machine and read it back; return its entry of the manifest. Windows is set up as well."""
        host_key = keys.new_pair(name)
        public_key = keys.run_key(self.run.folder).with_suffix(".pub").read_text().strip()
        body = requests.machine(
            spec, self.place.region, self.place.tags, name=name, nic_id=nic.id,
            user=self.clients.cloud.admin_user, public_key=public_key, host_key=host_key,
        )  # fmt: skip
        compute, group = self.clients.compute, self.place.group
        with operation(self.run, "create machine", name):
            compute.virtual_machines.begin_create_or_update(group, name, body).result()
        if spec.os == "windows":
            setup = windows.extension(self.place.region, self.place.tags, host_key, public_key)
            with operation(self.run, "set up machine", name):
                compute.virtual_machine_extensions.begin_create_or_update(
                    group, name, windows.EXTENSION, setup
                ).result()
        made = compute.virtual_machines.get(group, name)
        readback.check_machine(spec, body, made)
        address = self.clients.network.public_ip_addresses.get(group, f"{name}-ip").ip_address
        port = (made.tags or {}).get(SSH_PORT_TAG)
        inside = nic.ip_configurations[0].private_ip_address
        host = {
            "name": name,
            "address": address,
            "port": int(port or 22),
            "user": self.clients.cloud.admin_user,
            "host_key": " ".join(host_key.public.split()[:2]),
        }
        return {
            "id": made.id.lower(),
            "vm_id": made.vm_id,
            "size": spec.size,
            "os": spec.os,
            "logical_zone": spec.zone,
            "physical_zone": self.zones.get(spec.zone or ""),
            "limits": size.limits,
            "read_back": readback.machine(made),
            "network": readback.interface(nic),
            # Where the others reach it; emulated machines have no network but this computer's own.
            "reached_at": f"{address}:{port}" if port else f"{inside}:22",
            "host": host,
        }

    def software(self, spec: Machine, entry: dict[str, Any]) -> dict[str, Any]:
        """Wait until a machine is set up; complete its entry of the manifest."""
        return {**entry, **guests.software(self.run.folder, spec, entry["host"])}

    def disk(self, name: str, spec: Disk) -> dict[str, Any]:
        """Create a disk and read it back; return its entry of the manifest."""
        body = requests.disk(spec, self.place.region, self.place.tags)
        with operation(self.run, "create disk", name):
            self.clients.compute.disks.begin_create_or_update(self.place.group, name, body).result()
        made = self.clients.compute.disks.get(self.place.group, name)
        readback.check_disk(spec, made)
        return {
            "id": made.id.lower(),
            "unique_id": made.unique_id,
            "sku": spec.sku,
            "logical_zone": spec.zone,
            "physical_zone": self.zones.get(spec.zone or ""),
            "limits": limits.disk_limits(spec, made),
            "read_back": readback.disk(made),
        }
