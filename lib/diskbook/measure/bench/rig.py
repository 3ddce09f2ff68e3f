"""The rig of one replicate: connections to its machines, disks attached when needed, and detached jobs.

The rig runs a measuring tool on a machine as a detached job and reads its results.

On your own hosts a rig attaches, moves and recovers nothing.
"""

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from diskbook.cloud.azure import private
from diskbook.cloud.azure.attach import Attachments, Recovery
from diskbook.cloud.azure.clients import Clients
from diskbook.design import layout
from diskbook.design.model import Disk, Scenario
from diskbook.facts.units import GIB
from diskbook.hosts import disks as machine_disks, stage, targets
from diskbook.hosts.device import Device
from diskbook.hosts.jobs import JobLost
from diskbook.hosts.ssh import Connection, Host
from diskbook.hosts.ssh_windows import WindowsConnection
from diskbook.results.run import Run
from diskbook.tools.protocol import Job, Tool
from diskbook.tools.record import Measurement


@dataclass
class Rig:
    """Connections and attachments of one replicate while it is measured."""

    run: Run
    scenario: Scenario
    replicate: dict[str, Any]
    attachments: Attachments
    recovery: Recovery
    stop: threading.Event = field(default_factory=threading.Event)  # set when another replicate has failed
    time_scale: float = 1.0  # of waits; the emulator's for an emulated run
    connections: dict[str, Connection] = field(default_factory=dict)
    prefilled: set[str] = field(default_factory=set)  # names of disks, ids of volumes
    overwritten: set[str] = field(default_factory=set)  # likewise, after their fill
    owners: dict[str, str] = field(default_factory=dict)  # of volumes, as far as it is known
    counted: dict[str, dict[str, Any]] = field(default_factory=dict)  # totals of clusters, if still so
    guests: dict[tuple[str, str], tuple[Connection, Device, dict[str, Any]]] = field(default_factory=dict)
    warm: bool = False  # whether the files of fleets were written in this session
    rotating: bool = False  # whether a trial has left data that may still move between tiers
    _placed: dict[str, tuple[str, Device]] = field(default_factory=dict)
    _for_steps: dict[str, WindowsConnection] = field(default_factory=dict)
    _recording: threading.Lock = field(default_factory=threading.Lock)

    @classmethod
    def of(
        cls, clients: Clients, run: Run, scenario: Scenario, replicate: dict[str, Any], stop: threading.Event
    ) -> "Rig":
        """Set up for a replicate of the manifest; connects when first needed."""
        attachments, recovery = Attachments(clients, run, replicate), Recovery(clients, run, replicate)
        scale = clients.cloud.time_scale
        filled, over = states(run, replicate)
        return cls(
            run, scenario, replicate, attachments, recovery, stop, scale, prefilled=filled, overwritten=over
        )

    @property
    def number(self) -> int:
        """Number of the replicate."""
        return self.replicate["replicate"]

    def connection(self, machine: str) -> Connection:
        """Return the connection to a machine, by scenario name; what a killed run left there is ended."""
        if machine not in self.connections:
            self.connections[machine] = self.new_connection(machine)
            self.connections[machine].end_jobs()
        return self.connections[machine]

    def windows(self, machine: str) -> WindowsConnection:
        """Return a connection to a Windows machine for steps: jobs there are left to go on.

        Volumes are made again before a resumed run looks for the jobs of trials that it was cut off from.
        """
        if machine not in self._for_steps:
            connection = self.new_connection(machine)
            assert isinstance(connection, WindowsConnection)
            self._for_steps[machine] = connection
        return self._for_steps[machine]

    def new_connection(self, machine: str, *, recover: bool = True) -> Connection:
        """Return another connection to a machine, which leaves what runs there; `recover` looks after it."""

        def on_unreachable(host: Host, last: bool) -> Host | None:
            back = self.recovery.handle_unreachable(machine, host, last)
            if back is not None:
                self._placed.clear()
                self.owners.clear()
                self.counted.clear()
            return back

        host = private.host_of(self.replicate["machines"][machine], self.run.folder)
        kind = WindowsConnection if self.scenario.machine_named(machine).os == "windows" else Connection
        return kind(host, on_unreachable if recover else None)

    def record_parts(self, section: str, parts: Mapping[str, Any]) -> None:
        """Set entries of a section of the replicate in the manifest; nodes are worked on side by side."""
        with self._recording:
            self.replicate[section] = {**self.replicate.get(section, {}), **parts}
            self.run.update_replicate(self.number, **{section: self.replicate[section]})

    def device(self, disk: str, machine: str) -> Device:
        """Have the disk on the machine and return it as the machine sees it."""
        if self._placed.get(disk, ("", None))[0] != machine:
            spec = self.scenario.disk_named(disk)
            device = self._os_disk(disk, machine) if spec.ephemeral else self._data_disk(spec, machine)
            self._placed[disk] = (machine, device)
        return self._placed[disk][1]

    def _data_disk(self, spec: Disk, machine: str) -> Device:
        lun = self.attachments.move(spec, machine)
        row, connection = self.replicate["disks"][spec.name], self.connection(machine)
        seen = machine_disks.ours(connection, lun, size_bytes=spec.size_gib * GIB, unique_id=row["unique_id"])
        if seen.first:
            names = {"serial": seen.facts.serial, "wwn": seen.facts.wwn}
            self.run.append("marked", replicate=self.number, disk=spec.name, disk_id=row["id"], **names)
        return seen.device

    def _os_disk(self, disk: str, machine: str) -> Device:
        """A machine that was moved to another host comes back with an empty one, to be filled again."""
        needed = layout.working_set_end(self.scenario, disk)
        system_disk = machine_disks.find(self.connection(machine), needed)
        if system_disk.held_bytes is not None and system_disk.held_bytes < needed:
            self.prefilled.discard(disk)
            self.overwritten.discard(disk)
        return system_disk.device

    def luns(self, disk: str, machine: str) -> list[int]:
        """LUNs at which a disk is on a machine."""
        return [lun for place, lun in self.attachments.where(disk) if place == machine]

    def renew(self, disk: str, machine: str) -> None:
        """Attach a disk to a machine again; it is proved to be ours again before it is used next."""
        self.forget(disk)
        self.attachments.move(self.scenario.disk_named(disk), machine, again=True)

    def attached_at(self, disk: str, machine: str) -> float | None:
        """When this session attached a disk to a machine (`time.monotonic`); None where it did not."""
        return self.attachments.attached_at.get((disk, machine))

    def forget(self, disk: str) -> None:
        """Look again where the disk is before it is used next."""
        self._placed.pop(disk, None)

    def forget_connections(self, machine: str) -> None:
        """Close the connections to a machine that was off."""
        for kept in (self.connections, self._for_steps):
            connection = kept.pop(machine, None)
            if connection is not None:
                connection.close()

    def close(self) -> None:
        """Close all connections."""
        for connection in (*self.connections.values(), *self._for_steps.values()):
            connection.close()


def states(run: Run, replicate: Mapping[str, Any]) -> tuple[set[str], set[str]]:
    """Names of disks, and ids of volumes, that were filled; and of those that were then written over.

    By the ledger, since each was last marked as ours. What was measured after its fill alone stays as it is:
    a random pass in the middle would make two disks of it.
    """
    names = {row["id"]: name for name, row in replicate["disks"].items()}
    filled: set[str] = set()
    overwritten: set[str] = set()
    for event in run.ledger():
        name = names.get(event.get("disk_id", ""), event.get("disk_id", ""))
        if event["event"] in ("prefill", "marked"):
            (filled.add if event["event"] == "prefill" else filled.discard)(name)
            overwritten.discard(name)
        elif event["event"] == "overwrite" or (event["event"] == "trial" and name in filled):
            overwritten.add(name)
    return filled, overwritten


START_S = 60.0  # a tool that has not ended this long after its time is taken for hung


def run_job(rig: Rig, machine: str, name: str, device: Device, job: Job, limit_s: float) -> dict[str, bytes]:
    """Run a tool as a detached job and return its files: `stdout`, `stderr`, `status` and its logs."""
    connection = rig.connection(machine)
    connection.start_job(name, list(job.argv), root=device.needs_root)
    return connection.finish_job(name, job.logs.values(), limit_s=limit_s)


def run_with_retry(
    rig: Rig, machine: str, name: str, device: Device, job: Job, limit_s: float
) -> dict[str, bytes]:
    """Run a tool as `run_job` does, once more where the machine was restarted under it."""
    try:
        return run_job(rig, machine, name, device, job, limit_s)
    except JobLost:
        return run_job(rig, machine, f"{name}-again", device, job, limit_s)


def read_job(tool: Tool, output: Mapping[str, bytes], source: str, **limits: Any) -> Measurement:
    """Read what a job left, as `Tool.read` does; raises UnusableError with the tool's own message."""
    files = {kind: output.get(file, b"") for file, (kind, _) in tool.raw.items()}
    return tool.read(files, source, **limits)


@dataclass
class OwnRig(Rig):
    """Connections of a run on hosts of the user's own; without attachments and recovery."""

    attachments: Attachments = field(init=False)
    recovery: Recovery = field(init=False)

    @classmethod
    def on_hosts(cls, run: Run, stop: threading.Event) -> "OwnRig":
        """Set up for the only replicate there is; connects when first needed."""
        replicate = run.manifest["replicates"][0]
        filled, over = states(run, replicate)
        return cls(run, run.scenario, replicate, stop=stop, prefilled=filled, overwritten=over)

    def new_connection(self, machine: str, *, recover: bool = True) -> Connection:
        """Return another connection to a host, in the run's folder there; nobody looks after that host."""
        manifest = self.run.manifest
        return stage.connection(manifest, machine, stage.work_folder(manifest, machine))

    def luns(self, disk: str, machine: str) -> list[int]:
        """Return none: these disks have no LUN."""
        return []

    def attached_at(self, disk: str, machine: str) -> float | None:
        """Return none: these disks are never attached."""
        return None

    def _data_disk(self, spec: Disk, machine: str) -> Device:
        read_back = self.replicate["disks"][spec.name]["read_back"]
        place, link = stage.place_of(self.run.manifest, spec.name), self.connection(machine)
        return targets.known(link, link.host.name, place, read_back)
