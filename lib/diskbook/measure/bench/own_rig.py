"""A rig on hosts of the user's own: nothing is attached there, moved or brought back."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field

from diskbook.cloud.azure.attach import Attachments
from diskbook.cloud.azure.recovery import Recovery
from diskbook.design.model import Disk
from diskbook.hosts import stage, targets
from diskbook.hosts.device import Device
from diskbook.hosts.ssh import Connection
from diskbook.measure.bench.rig import Rig, states
from diskbook.results.run import Run


@dataclass
class OwnRig(Rig):
    """Connections of a run on hosts of the user's own; without attachments and recovery."""

    attachments: Attachments = field(init=False)
    recovery: Recovery = field(init=False)

    @classmethod
    def on_hosts(cls, run: Run, stop: threading.Event) -> OwnRig:
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
