"""DiskSpd, on Windows machines: the command for a workload, and parsers of its XML and text."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from diskbook.design.model import ToolName, Workload
from diskbook.facts.files import plain_text
from diskbook.tools.diskspd import command as diskspd_command, xml as diskspd_xml
from diskbook.tools.protocol import Install, Job, Releases, Target, Tool
from diskbook.tools.record import Measurement

__all__ = ["TOOL"]


@dataclass(frozen=True)
class _Drive:
    engine: str = "windows"
    target: str = "#1"


class DiskSpd:
    """DiskSpd as `protocol.Tool` has it."""

    name: ToolName = "diskspd"
    title = "DiskSpd"
    system: Literal["linux", "windows"] = "windows"
    fleet = False
    main = "xml"
    raw: Mapping[str, tuple[str, str]] = {"stdout": ("xml", ".xml"), "stderr": ("err", ".txt")}
    install: Install = diskspd_command.INSTALL
    # 2.2's I/O loop "will require rebaselining", says its release note.
    releases = Releases(alike=False, emulated_by="fio")
    prints_mib = True
    example: Target = _Drive()

    def command(self, workload: Workload, target: Target, *, seed: int, offset: int = 0) -> Job:
        """Build the measurement of one trial."""
        return diskspd_command.command(workload, target, seed=seed, offset=offset)

    def prefill(self, size_bytes: int, target: Target, written: Measurement | None = None) -> Job | None:
        """Build the writing of the first part, longer each time until all of it was written in one go."""
        return diskspd_command.prefill_command(size_bytes, target, written)

    def overwrite(self, size_bytes: int, target: Target, written: Measurement | None = None) -> Job | None:
        """Build random writes of as many bytes as the first part has, which meet most of its blocks."""
        return diskspd_command.overwrite_command(size_bytes, target, written)

    def read(
        self,
        files: Mapping[str, bytes],
        source: str,
        *,
        runtime_s: float | None = None,
        series_s: float | None = None,
        instances: int | None = None,
    ) -> Measurement:
        """Read the XML; the series is in it."""
        streams = {"stdout": plain_text(files, "xml"), "stderr": plain_text(files, "err")}
        return diskspd_xml.parse_output(streams, source, runtime_s)

    def version(self, printed: str) -> str:
        """Put the name before the number."""
        return diskspd_xml.version(printed)

    def log_unit_ns(self, version: str) -> int | None:
        """Return None: it writes no logs."""
        return None


TOOL: Tool = DiskSpd()
