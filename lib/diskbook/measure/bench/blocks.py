"""Write and verify numbered blocks on a disk, from a machine: `blocks_remote` is sent there and run.

The blocks lie behind the working sets and the region of the checks that verify data, so that no trial and no
check meets them. The disk must be one that `machines.disks.ours` has proved to be ours.
"""

import json
import secrets
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from diskbook.design.layout import REGION_BYTES, region_offset
from diskbook.design.model import Scenario
from diskbook.facts.errors import DiskbookError
from diskbook.hosts import nbd
from diskbook.hosts.device import Device
from diskbook.hosts.ssh import Connection
from diskbook.measure.bench import blocks_remote

MAX_BLOCKS = REGION_BYTES // blocks_remote.BLOCK - 1  # the last one is for the machine that takes over

# Runs what stands in standard input: modules by name, of which the last one is started.
_START = (
    "import json, sys, types\n"
    "for name, text in json.load(sys.stdin):\n"
    "    module = sys.modules[name] = types.ModuleType(name)\n"
    "    exec(compile(text, name, 'exec'), module.__dict__)\n"
    "module.main()\n"
)


@dataclass(frozen=True)
class Blocks:
    """A series of blocks of one writer: where they lie, and a tag that nobody else has."""

    offset: int
    tag: str

    @classmethod
    def fresh(cls, scenario: Scenario, disk: str) -> "Blocks":
        """A new series, which no block of an earlier one can be taken for."""
        return cls(region_offset(scenario, disk), secrets.token_hex(16))

    def run(self, connection: Connection, device: Device, action: str, count: int) -> list[dict[str, Any]]:
        """Do an action of `blocks_remote` and return what it printed; an error of the disk is its last line.

        Raises DiskbookError when the machine cannot run it.
        """
        output = connection.run(self._command(device, action, count), stdin=_modules(device), timeout_s=300)
        rows = [json.loads(line) for line in output.stdout.decode().splitlines()]
        if output.status != 0 and not (rows and "error" in rows[-1]):
            lines = output.stderr.decode(errors="replace").strip().splitlines() or ["it said nothing"]
            raise DiskbookError(f"machine {connection.host.name} cannot {action} blocks: {lines[-1]}")
        return rows

    def follow(
        self, connection: Connection, device: Device, action: str, count: int, interval_s: float = 0.0
    ) -> Iterator[dict[str, Any]]:
        """Do an action and yield what it prints, as it comes; ends when the machine is gone."""
        command = self._command(device, action, count, interval_s)
        for line in connection.follow(command, stdin=_modules(device)):
            yield json.loads(line)

    def _command(self, device: Device, action: str, count: int, interval_s: float = 0.0) -> str:
        given = [action, device.target, str(self.offset), self.tag, str(count), str(interval_s)]
        root = ["sudo", "-n"] if device.needs_root else []
        return shlex.join([*root, "python3", "-I", "-c", _START, *given])


def _modules(device: Device) -> bytes:
    modules = [nbd, blocks_remote] if device.engine == "nbd" else [blocks_remote]
    texts = [(module.__name__, Path(str(module.__file__)).read_text("utf-8")) for module in modules]
    return json.dumps(texts).encode()
