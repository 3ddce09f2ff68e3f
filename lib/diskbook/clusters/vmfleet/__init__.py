"""VMFleet: one load of DiskSpd on many machines at once, whose results are one trial."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from diskbook.clusters.vmfleet import archive, line
from diskbook.design.model import ToolName, Workload
from diskbook.tools.diskspd import command as diskspd_command
from diskbook.tools.protocol import Install, Job, Releases, Target, Tool
from diskbook.tools.record import Measurement

__all__ = ["TOOL"]


@dataclass(frozen=True)
class _File:
    engine: str = "windows"
    target: str = r"C:\ClusterStorage\volume\vm-001.dat"


class VmFleet:
    """VMFleet as `protocol.Tool` has it."""

    name: ToolName = "vmfleet"
    title = "VMFleet"
    system: Literal["linux", "windows"] = "windows"
    fleet = True
    main = "fleet"
    raw: Mapping[str, tuple[str, str]] = {"archive": ("fleet", ".zip")}
    # It runs DiskSpd, in its machines or, where there are none, as processes of the nodes.
    install: Install = diskspd_command.INSTALL
    releases = Releases(alike=False, emulated_by="fio")
    prints_mib = True
    example: Target = _File()

    def command(self, workload: Workload, target: Target, *, seed: int, offset: int = 0) -> Job:
        """Build the line of one machine, without program and target; its seed is from the clock."""
        return line.command(workload)

    def prefill(self, size_bytes: int, target: Target, written: Measurement | None = None) -> Job | None:
        """Build the writing of each machine's file, longer until the slowest has written all of its own."""
        return line.prefill(size_bytes, target, written)

    def overwrite(self, size_bytes: int, target: Target, written: Measurement | None = None) -> Job | None:
        """Return None: every file is written again, in full, before each block."""
        return None

    def read(
        self,
        files: Mapping[str, bytes],
        source: str,
        *,
        runtime_s: float | None = None,
        series_s: float | None = None,
        instances: int | None = None,
    ) -> Measurement:
        """Read the archive of all machines' XML; the series are in it."""
        return archive.read(files.get("fleet", b""), source, runtime_s=runtime_s, instances=instances)

    def version(self, printed: str) -> str:
        """Put the names before the number, which is DiskSpd's."""
        return archive.version(printed)

    def log_unit_ns(self, version: str) -> int | None:
        """Return None: it writes no logs."""
        return None


TOOL: Tool = VmFleet()
