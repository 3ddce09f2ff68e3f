"""What a measuring tool offers. Each is a package next to this module; `registry` lists them.

Whatever depends on the tool is asked here: its command and its output, how it fills a disk, how a machine
gets it, what its files are called, which of its releases may be compared. Tools whose results
`diskbook import` reads, and that diskbook itself never runs, are here too (`Imported`).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from diskbook.design.model import ToolName, Workload
from diskbook.facts.errors import UsageError
from diskbook.facts.units import KIB, MIB
from diskbook.tools.record import Measurement

FILL_BLOCK_BYTES = MIB
"""Block size that every tool fills a disk with."""
OVERWRITE_BLOCK_BYTES = 64 * KIB
"""Block size of the random pass after a fill: the smallest power of two at which Azure's larger premium disks
(from P20 on, Premium SSD v2) are held by their MB/s and not by their IOPS, so that the pass takes no longer
than the fill. 4 KiB blocks would take a P30 8 times as long (5,000 IOPS: 26 min for 30 GiB, not 2.7)."""
COMPRESSIBLE = bytes(range(256))
"""Repeated in every write of data that compress: what DiskSpd writes unless it is told otherwise."""


class Target(Protocol):
    """A disk as a machine sees it: fio's engine, and the target in the tool's own words."""

    @property
    def engine(self) -> str:
        """nbd, libaio or windows."""

    @property
    def target(self) -> str:
        """NBD URI, path of a block device or file, or physical drive ("#1")."""


@dataclass(frozen=True)
class Job:
    """One call of a tool, to be run in a folder of its own; its result goes to standard output.

    - `argv`: program and arguments.
    - `logs`: kind (lat_log, iops_log) to the name of the file that it leaves in its folder.
    - `notes`: where it does not do quite what was asked, one sentence each; kept with the trial.
    - `limit_s`: time after which it is taken for hung; None where the caller knows better.
    - `content`: what the data are that it writes, in words; kept with the trial. Empty where it writes none.
    """

    argv: tuple[str, ...]
    logs: dict[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    limit_s: float | None = None
    content: str = ""


@dataclass(frozen=True)
class Install:
    """How a new machine gets a tool.

    - `packages`: of the system's package manager.
    - `url`, `sha256`: of an archive to be downloaded; empty where packages are enough.
    - `version`: line for the machine's shell that prints the version.
    """

    version: str
    packages: tuple[str, ...] = ()
    url: str = ""
    sha256: str = ""


@dataclass(frozen=True)
class Releases:
    """What versions of a tool mean for a comparison.

    - `alike`: whether releases count alike, so that their results may be compared.
    - `emulated_by`: name of the tool that stands in for it on the emulator; None where it runs there itself.
    """

    alike: bool = True
    emulated_by: ToolName | None = None


class Tool(Protocol):
    """A measuring tool.

    - `name`, `title`: in scenarios and ledgers, and for readers.
    - `system`: of the machines that it runs on.
    - `fleet`: whether it runs a load on many machines at once (`Workload.instances`), not on one.
    - `main`: kind, in the ledger, of the raw file that holds the result.
    - `raw`: file in a job's folder, or "archive" of a fleet, to its kind and the ending of its raw name.
    - `install`: how a machine gets it.
    - `releases`: what its versions mean for a comparison.
    - `prints_mib`: whether what it prints as MB/s is MiB/s.
    - `example`: a target of its kind, to check commands without a machine.
    """

    name: ToolName
    title: str
    system: Literal["linux", "windows"]
    fleet: bool
    main: str
    raw: Mapping[str, tuple[str, str]]
    install: Install
    releases: Releases
    prints_mib: bool
    example: Target

    def command(self, workload: Workload, target: Target, *, seed: int, offset: int = 0) -> Job:
        """Build the measurement of one trial, on a working set that begins at an offset in bytes.

        Raises UsageError for what the tool cannot do.
        """

    def prefill(self, size_bytes: int, target: Target, written: Measurement | None = None) -> Job | None:
        """Build the writing of a disk's first part; None when `written`, the job before, did all of it."""

    def overwrite(self, size_bytes: int, target: Target, written: Measurement | None = None) -> Job | None:
        """Build the writing of that part once more in random order; None when all of it is done."""

    def read(
        self,
        files: Mapping[str, bytes],
        source: str,
        *,
        runtime_s: float | None = None,
        series_s: float | None = None,
        instances: int | None = None,
    ) -> Measurement:
        """Read what one call left.

        - `files`: content of its raw files, by kind; one that is missing counts as empty.
        - `source`: name of the trial's output, for messages.
        - `runtime_s`: how long it was to measure; when given, a result that is much shorter is refused.
        - `series_s`: interval of the series kept; None for a call that keeps none.
        - `instances`: machines that were to measure; when given, a fleet that lacks one is refused.

        Raises UnusableError when it did not measure what it was asked to, with its own message where it has
        one.
        """

    def version(self, printed: str) -> str:
        """Name tool and version as a run's tables do, from what the tool prints as its version."""

    def log_unit_ns(self, version: str) -> int | None:
        """Return the unit of latencies, in ns, in the logs of that version; None for a tool without logs."""


@dataclass(frozen=True)
class _Nowhere:
    engine: str = ""
    target: str = ""


_NOT_INSTALLED = Install(version="")
_ALIKE = Releases()
_NO_TARGET = _Nowhere()


@dataclass(frozen=True)
class Imported:
    """A tool as `protocol.Tool` has it, without the parts that run it: these raise UsageError."""

    name: ToolName
    title: str
    system: Literal["linux", "windows"] = "linux"
    fleet: bool = False
    main: str = ""
    raw: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    install: Install = _NOT_INSTALLED
    releases: Releases = _ALIKE
    prints_mib: bool = False
    example: Target = _NO_TARGET

    def command(self, *_: Any, **__: Any) -> Job:
        """Refuse: there is no command.

        Raises UsageError: always.
        """
        raise UsageError(f"diskbook reads results of {self.title}, but does not run it; choose another tool")

    prefill = overwrite = command

    def read(self, *_: Any, **__: Any) -> Measurement:
        """Refuse as `command` does: `diskbook.importing` reads the results."""
        raise UsageError(f"results of {self.title} are read by 'diskbook import'")

    def version(self, printed: str) -> str:
        """Return what was printed."""
        return printed

    def log_unit_ns(self, version: str) -> int | None:
        """Return None: it writes no logs that are read."""
        return None


ELBENCHO = Imported("elbencho", "elbencho")
SYSBENCH = Imported("sysbench", "sysbench")
OTHER = Imported("other", "another tool")
"""A tool that is not named, as that of a table of results."""
