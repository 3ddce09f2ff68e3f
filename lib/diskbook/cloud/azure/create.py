"""Create one resource, wait for it, and read it back: the steps of provisioning.

A new machine is looked at over SSH: whether it is set up, its system and tool, round trips to other zones.
"""

import json
import shlex
import statistics
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import paramiko

from diskbook.cloud.azure import expiry, keys, offers, private, readback, refusals, requests, witness
from diskbook.cloud.azure.clients import Clients
from diskbook.cloud.azure.refusals import operation
from diskbook.design.model import PUBLIC, Disk, Machine, Network
from diskbook.facts.errors import DiskbookError
from diskbook.facts.units import span
from diskbook.hosts import powershell
from diskbook.hosts.powershell import EXTENSION
from diskbook.hosts.ssh import Connection, Output, UnreachableError
from diskbook.results.run import Run
from diskbook.tools import registry
from diskbook.tools.protocol import Tool


@dataclass(frozen=True)
class Place:
    """Where things are created, and how they are labelled."""

    group: str
    region: str
    tags: dict[str, str]
    prefix: str = ""  # of names in a group that is not the run's own

    @property
    def common(self) -> dict[str, Any]:
        """What every request has in common."""
        return {"location": self.region, "tags": self.tags}


@dataclass(frozen=True)
class Maker:
    """Creates the things of one resource group, which is there; `zones` is logical zone to physical one."""

    clients: Clients
    run: Run
    place: Place
    zones: Mapping[str, str]
    asked_network: Network = PUBLIC

    def _made(self, name: str, target: str, begin: Callable[[], Any]) -> Any:
        """Begin an operation and wait for its end; once more where Azure ended it for no fault of ours."""
        with operation(self.run, name, target):
            return refusals.retry_once(lambda: begin().result(), self.clients.tell)

    def security_group(self) -> str:
        """Create the security group, which lets in SSH from one place only; return its id."""
        source = private.SSH_SOURCE if self.asked_network.is_private else self.clients.cloud.ssh_source
        rules = {"securityRules": [requests.ssh_only(source)]}
        body = {**self.place.common, "properties": rules}
        create = self.clients.network.network_security_groups.begin_create_or_update
        name = f"{self.place.prefix}nsg"
        made = self._made("create network security group", name, lambda: create(self.place.group, name, body))
        readback.check_security_group(source, made)
        return str(made.id)

    def network(self) -> str:
        """Create the virtual network, or look up the one that is there; return the id of the subnet."""
        if self.asked_network.is_private:
            return private.subnet_id(self.clients, self.asked_network)
        body = {**self.place.common, "properties": requests.network()}
        create = self.clients.network.virtual_networks.begin_create_or_update
        name = f"{self.place.prefix}net"
        made = self._made("create virtual network", name, lambda: create(self.place.group, name, body))
        return str(made.subnets[0].id)

    def address(self, name: str, zone: str | None) -> str:
        """Create a machine's public address; return its id."""
        name, body = f"{self.place.prefix}{name}-ip", {**self.place.common, **requests.public_address(zone)}
        create = self.clients.network.public_ip_addresses.begin_create_or_update
        made = self._made("create public address", name, lambda: create(self.place.group, name, body))
        return str(made.id)

    def interface(self, name: str, spec: Machine, parts: Mapping[str, str], size: offers.Size) -> Any:
        """Create a machine's network interface and read it back.

        - `parts`: ids of `subnet`, `group` (the security group) and, with a public one, `address`.
        """
        accelerated = spec.accelerated_networking and size.accelerated_networking
        address = parts.get("address")
        asked = requests.interface(parts["subnet"], address, parts["group"], accelerated=accelerated)
        name, body = f"{self.place.prefix}{name}-nic", {**self.place.common, "properties": asked}
        interfaces = self.clients.network.network_interfaces
        create = interfaces.begin_create_or_update
        self._made("create network interface", name, lambda: create(self.place.group, name, body))
        made = interfaces.get(self.place.group, name)
        readback.check_interface(spec.name, asked, made)
        return made

    def machine(
        self,
        name: str,
        spec: Machine,
        nic: Any,
        size: offers.Size,
        os_disk: Disk | None = None,
        *,
        images: Mapping[str, str],
        pooled: bool = False,
        ultra: bool = False,
    ) -> dict[str, Any]:
        """Create a machine and read it back; return its entry of the manifest. Windows is set up as well.

        `images` are from `offers.image_versions`. `os_disk` is ephemeral, if given. `pooled` says that it is
        to have disks of a pool, `ultra` an Ultra disk.
        """
        host_key = keys.new_pair(name)
        public_key = keys.run_key(self.run.folder).with_suffix(".pub").read_text().strip()
        body = requests.machine(
            spec, self.place.region, self.place.tags, name=name, nic_id=nic.id,
            user=self.clients.cloud.admin_user, public_key=public_key, host_key=host_key, os_disk=os_disk,
            pooled=pooled, ultra=ultra, traits=size.traits, prefix=self.place.prefix,
            image_version=images[requests.image_of(spec, size.traits, pooled=pooled)],
        )  # fmt: skip
        compute, group, named = self.clients.compute, self.place.group, f"{self.place.prefix}{name}"
        create = compute.virtual_machines.begin_create_or_update
        self._made("create machine", name, lambda: create(group, named, body))
        if spec.os == "windows":
            setup = requests.windows_extension(self.place.region, self.place.tags, host_key, public_key)
            install = compute.virtual_machine_extensions.begin_create_or_update
            self._made("set up machine", name, lambda: install(group, named, EXTENSION, setup))
        made = compute.virtual_machines.get(group, named)
        readback.check_machine(spec, body, made, os_disk)
        return self._machine_entry(name, spec, made, nic, size, host_key)

    def _machine_entry(
        self, name: str, spec: Machine, made: Any, nic: Any, size: offers.Size, host_key: keys.KeyPair
    ) -> dict[str, Any]:
        """Entry of the manifest for a machine, of what Azure says of it and its network."""
        address = address_of(self.clients, self.place.group, f"{self.place.prefix}{name}", nic)
        port = (made.tags or {}).get(requests.SSH_PORT_TAG)
        inside = nic.ip_configurations[0].private_ip_address
        route = private.route_entry(self.asked_network, self.clients.cloud.subscription, made.id)
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
            **({"size_differs": size.differs} if size.differs else {}),
            "read_back": readback.machine(made),
            "network": readback.interface(nic),
            # Where the others reach it; emulated machines have no network but this computer's own.
            "reached_at": f"{address}:{port}" if port else f"{inside}:22",
            "host": host,
            **({"route": route} if route else {}),
        }

    def shutdown(self, name: str, machine_id: str, local: bool) -> bool:
        """Have Azure deallocate a machine at expiry; say whether it will. `local`: an ephemeral OS disk."""
        place = self.place
        named = f"{place.prefix}{name}"
        return expiry.schedule(self.clients, self.run, named, machine_id, place.region, place.tags, local)

    def inspect(self, spec: Machine, machines: Mapping[str, dict[str, Any]]) -> dict[str, Any]:
        """Complete a machine's entry of the manifest by what only the machine can tell."""
        try:
            return {**machines[spec.name], **inspect_machine(self.run.folder, spec, machines)}
        except UnreachableError as error:
            source, private_way = self.clients.cloud.ssh_source, self.asked_network.is_private
            raise DiskbookError(
                f"{error}. {unreachable_advice(error, source, private=private_way)}"
            ) from error

    def disk(self, name: str, spec: Disk) -> dict[str, Any]:
        """Create a disk and read it back; return its entry of the manifest."""
        body = requests.disk(spec, self.place.region, self.place.tags)
        disks, named = self.clients.compute.disks, f"{self.place.prefix}{name}"
        create = disks.begin_create_or_update
        self._made("create disk", name, lambda: create(self.place.group, named, body))
        made = disks.get(self.place.group, named)
        readback.check_disk(spec, made)
        return {
            "id": made.id.lower(),
            "unique_id": made.unique_id,
            "sku": spec.sku,
            "logical_zone": spec.zone,
            "physical_zone": self.zones.get(spec.zone or ""),
            "limits": offers.disk_limits(spec, made),
            "read_back": readback.disk(made),
        }

    def witness(self, number: int, redundancy: str) -> dict[str, Any]:
        """Create the storage account (LRS or ZRS) of a replicate's witness, read it back, return its entry.

        The entry has no key: that is asked for when it is used (`witness.key`).
        """
        place = self.place
        home = witness.home(place.group, place.prefix)
        name = witness.account_name(self.clients.cloud.subscription, home, number)
        body = requests.witness(place.region, place.tags, redundancy)
        accounts = self.clients.storage.storage_accounts
        self._made("create storage account", name, lambda: accounts.begin_create(place.group, name, body))
        made = accounts.get_properties(place.group, name)
        readback.check_witness(body, made)
        return {
            "id": made.id.lower(),
            "account": name,
            "endpoint": witness.endpoint_of(made.primary_endpoints.blob),
            "read_back": readback.witness(made),
        }

    def os_disk(self, spec: Disk, machine: Mapping[str, Any]) -> dict[str, Any]:
        """Entry of the manifest for the ephemeral OS disk of a machine, which was created with it.

        It has no limits of its own: the machine's for its cache and local disk hold.
        """
        reported = machine["read_back"]
        return {
            "id": f"{machine['id']}/osdisk",
            "unique_id": machine["vm_id"],
            "sku": spec.sku,
            "logical_zone": machine["logical_zone"],
            "physical_zone": machine["physical_zone"],
            "limits": dict.fromkeys(("iops", "mb_s", "burst_iops", "burst_mb_s")),
            "read_back": {
                "sku": spec.sku,
                "size_gib": reported["os_disk_gib"],
                "zone": reported["zone"],
                "placement": reported["os_disk_local"],
            },
        }


def address_of(clients: Clients, group: str, name: str, nic: Any) -> str | None:
    """Where a machine is reached: its public address, or without one that in its network."""
    row = nic.ip_configurations[0]
    if row.public_ip_address is None:
        return str(row.private_ip_address)
    address: str | None = clients.network.public_ip_addresses.get(group, f"{name}-ip").ip_address
    return address


SETUP_S = 840  # cloud-init installs packages
TIMED_OUT = 124  # status of the program timeout
PROBES = 9

# Times the handshake of TCP with port 22, which the machines' network lets in among themselves.
_PROBE = """\
import json, socket, sys, time
results = []
for place in sys.argv[2:]:
    address, port = place.rsplit(":", 1)
    times = []
    for _ in range(int(sys.argv[1])):
        began = time.perf_counter()
        try:
            socket.create_connection((address, int(port)), 5).close()
        except OSError:
            continue
        times.append(time.perf_counter() - began)
    results.append(times)
print(json.dumps(results))
"""


def inspect_machine(folder: Path, spec: Machine, machines: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Sign in to a machine, wait until it is set up, and ask what only it can tell.

    Returns `kernel`, `tool_version` and `round_trips` to each machine of another zone (at its `reached_at`),
    with `to`, both physical (else logical) zones, `median_ms`, `min_ms` and `n`. Where no probe got through,
    n is 0 and there are no times. Windows machines are not asked. Raises DiskbookError when it cannot be
    reached, or has no tool.
    """
    host = private.host_of(machines[spec.name], folder)
    tool = registry.TOOLS[spec.tools[0]]
    with Connection(host) as connection:
        if spec.os == "windows":
            return {**_windows_software(connection, tool), "round_trips": []}
        software = _linux_software(connection, tool)  # first: it waits until the machine is set up
        return {**software, "round_trips": _round_trips(connection, spec.name, machines)}


def _windows_software(connection: Connection, tool: Tool) -> dict[str, str]:
    facts = powershell.encoded(powershell.setup_facts(tool))
    lines = connection.check(facts, timeout_s=120)
    system, version = _two_lines(lines, connection.host.name)
    return {"kernel": system, "tool_version": tool.version(version)}


def _linux_software(connection: Connection, tool: Tool) -> dict[str, str]:
    # cloud-init installs the tools on Azure; the emulated machine has neither need nor cloud-init.
    wait = (
        f"if command -v cloud-init >/dev/null; then timeout {SETUP_S} cloud-init status --wait >/dev/null; "
        f"[ $? = {TIMED_OUT} ] && exit {TIMED_OUT}; fi"
    )
    output = connection.run(f"{wait}; uname -sr && {tool.install.version}", timeout_s=SETUP_S + 60)
    if output.status != 0:
        raise DiskbookError(_not_set_up(connection.host.name, output))
    kernel, version = _two_lines(output.stdout, connection.host.name)
    return {"kernel": kernel, "tool_version": tool.version(version)}


def _not_set_up(name: str, output: Output) -> str:
    """Say what cloud-init did not do, and where it tells why."""
    look = (
        "'cloud-init status --long' and /var/log/cloud-init-output.log there say why: keep the machine for a "
        "look with --debug-minutes 10"
    )
    if output.status == TIMED_OUT:
        return f"machine {name}: cloud-init has not finished after {span(SETUP_S)}; {look}"
    reason = output.stderr.decode(errors="replace").strip() or f"status {output.status}"
    return (
        f"machine {name} does not have the tool that cloud-init installs ({reason}): the network must let it "
        f"out to its system's package servers; {look}"
    )


def unreachable_advice(error: UnreachableError, ssh_source: str, *, private: bool) -> str:
    """Say what keeps a new machine from being reached, the likeliest first.

    The cause of `error` tells a machine that is silent from one that refuses; `private` has no public
    address.
    """
    keep = "keep it for a look with --debug-minutes 10"
    if isinstance(error.__cause__, paramiko.AuthenticationException):
        return f"Its sshd refuses the run's key: cloud-init has not finished or failed; {keep}"
    if private:
        return f"The way to it is that of [network]; cloud-init may also not have finished: {keep}"
    return (
        f"It lets in SSH from {ssh_source} alone: with a VPN or a second egress address, name the address "
        "that Azure sees, --ssh-source. Else your network may block outbound port 22: 'diskbook doctor "
        "--cloud azure --try-ssh HOST' tries that. Else cloud-init has not finished: " + keep
    )


def _two_lines(output: bytes, name: str) -> tuple[str, str]:
    lines = output.decode(errors="replace").splitlines()
    if len(lines) < 2:
        raise DiskbookError(f"machine {name} does not say which system and tool it has; it said {lines}")
    return lines[0].strip(), lines[1].strip()


def _round_trips(
    connection: Connection, name: str, machines: Mapping[str, Mapping[str, Any]]
) -> list[dict[str, Any]]:
    here = machines[name]["logical_zone"]
    others = [other for other, row in machines.items() if row["logical_zone"] != here]
    times = _probe(connection, [machines[other]["reached_at"] for other in others])
    return [
        {
            "to": other,
            "from_zone": _zone(machines[name]),
            "to_zone": _zone(machines[other]),
            **_summary(seen),
        }
        for other, seen in zip(others, times, strict=True)
    ]


def _zone(row: Mapping[str, Any]) -> str | None:
    return row.get("physical_zone") or row["logical_zone"]


def _probe(connection: Connection, places: list[str]) -> list[list[float]]:
    """Times in s of the handshakes with each place that got through."""
    if not places:
        return []
    command = ["python3", "-c", _PROBE, str(PROBES), *places]
    output = connection.run(shlex.join(command), timeout_s=60 + 5 * PROBES * len(places))
    try:
        times: list[list[float]] = json.loads(output.stdout)
    except ValueError:
        return [[] for _ in places]
    return times


def _summary(times_s: list[float]) -> dict[str, Any]:
    if not times_s:
        return {"median_ms": None, "min_ms": None, "n": 0}
    median_ms, min_ms = (round(time_s * 1000, 4) for time_s in (statistics.median(times_s), min(times_s)))
    return {"median_ms": median_ms, "min_ms": min_ms, "n": len(times_s)}
