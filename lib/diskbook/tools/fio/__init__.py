"""fio, on Linux machines: the command for a workload, and readers of its JSON and its logs."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

from diskbook.design.model import ToolName, Workload
from diskbook.facts.files import plain_text
from diskbook.facts.units import NS_PER_US
from diskbook.tools.fio.command import (
    command,
    overwrite_command,
    prefill_command,
    read_command,
    verify_read_command,
    verify_write_command,
)
from diskbook.tools.fio.trial import add_log, parse_logs, parse_output
from diskbook.tools.protocol import Install, Job, Releases, Target, Tool
from diskbook.tools.record import Direction, Measurement, Series, merge_bins, percentile_ns

__all__ = [
    "TOOL",
    "Direction",
    "Job",
    "Series",
    "Target",
    "command",
    "merge_bins",
    "overwrite_command",
    "parse_logs",
    "parse_output",
    "percentile_ns",
    "prefill_command",
    "read_command",
    "verify_read_command",
    "verify_write_command",
]


@dataclass(frozen=True)
class _BlockDevice:
    engine: str = "libaio"
    target: str = "/dev/disk"


class Fio:
    """fio as `protocol.Tool` has it."""

    name: ToolName = "fio"
    title = "fio"
    system: Literal["linux", "windows"] = "linux"
    fleet = False
    main = "json"
    raw: Mapping[str, tuple[str, str]] = {
        "stdout": ("json", ".json"),
        "stderr": ("err", ".txt"),
        "trial_lat.log": ("lat_log", "_lat.log"),
        "trial_iops.log": ("iops_log", "_iops.log"),
    }
    install = Install(version="fio --version", packages=("fio",))
    releases = Releases()
    prints_mib = False
    example: Target = _BlockDevice()

    def command(self, workload: Workload, target: Target, *, seed: int, offset: int = 0) -> Job:
        """Build the measurement of one trial."""
        return command(workload, target, seed=seed, offset=offset, each_io=workload.rate is not None)

    def prefill(self, size_bytes: int, target: Target, written: Measurement | None = None) -> Job | None:
        """Build the writing of the first part; fio ends when all of it is written, so once is enough."""
        return prefill_command(size_bytes, target) if written is None else None

    def overwrite(self, size_bytes: int, target: Target, written: Measurement | None = None) -> Job | None:
        """Build the random pass over the first part; fio's random map writes each block once."""
        return overwrite_command(size_bytes, target) if written is None else None

    def read(
        self,
        files: Mapping[str, bytes],
        source: str,
        *,
        runtime_s: float | None = None,
        series_s: float | None = None,
        instances: int | None = None,
    ) -> Measurement:
        """Read JSON and logs."""
        output, messages, *logs = (plain_text(files, kind) for kind in ("json", "err", "lat_log", "iops_log"))
        measurement = parse_output(output, source, messages=messages, runtime_s=runtime_s)
        if series_s is None:
            return measurement
        if measurement.rates and measurement.log_interval_s is None:
            return add_log(measurement, logs[0], series_s, source)
        return replace(measurement, series=parse_logs(logs[0], logs[1], series_s, source))

    def version(self, printed: str) -> str:
        """Return it as it is: "fio-3.33"."""
        return printed

    def log_unit_ns(self, version: str) -> int | None:
        """Return a nanosecond; before version 3 a microsecond."""
        return NS_PER_US if version.startswith(("1.", "2.")) else 1


TOOL: Tool = Fio()
