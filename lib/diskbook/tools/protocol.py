"""What a measuring tool offers. Each is a package beside this module; `registry` lists them.

Whatever depends on the tool is asked here: its command and its output, how it fills a disk, how a machine
gets it, what its files are called, which of its releases may be compared.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, Protocol

from diskbook.design.model import ToolName, Workload
from diskbook.tools.job import Job, Target
from diskbook.tools.record import Measurement


@dataclass(frozen=True)
class Install:
    """How a new machine gets a tool.

    Attributes
    ----------
    packages
        Of the system's package manager.
    url, sha256
        Of an archive to be downloaded; empty where packages are enough.
    version
        Line for the machine's shell that prints the version.
    """

    version: str
    packages: tuple[str, ...] = ()
    url: str = ""
    sha256: str = ""


@dataclass(frozen=True)
class Releases:
    """What versions of a tool mean for a comparison.

    Attributes
    ----------
    alike
        Whether releases count alike, so that their results may be compared.
    emulated_by
        Name of the tool that stands in for it on the emulator; None where it runs there itself.
    """

    alike: bool = True
    emulated_by: ToolName | None = None


class Tool(Protocol):
    """A measuring tool.

    Attributes
    ----------
    name, title
        In scenarios and ledgers, and for readers.
    system
        Of the machines that it runs on.
    fleet
        Whether it runs a load on many machines at once (`Workload.instances`), not on one.
    main
        Kind, in the ledger, of the raw file that holds the result.
    raw
        File in a job's folder, or "archive" of a fleet, to its kind and the ending of its raw name.
    install
        How a machine gets it.
    releases
        What its versions mean for a comparison.
    prints_mib
        Whether what it prints as MB/s is MiB/s.
    example
        A target of its kind, to check commands without a machine.
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

        Raises
        ------
        UsageError
            For what the tool cannot do.
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

        Parameters
        ----------
        files
            Content of its raw files, by kind; one that is missing counts as empty.
        source
            Name of the trial's output, for messages.
        runtime_s
            How long it was to measure; when given, a result that is much shorter is refused.
        series_s
            Interval of the series kept; None for a call that keeps none.
        instances
            Machines that were to measure; when given, a fleet that lacks one is refused.

        Raises
        ------
        UnusableError
            When it did not measure what it was asked to, with its own message where it has one.
        """

    def version(self, printed: str) -> str:
        """Name tool and version as a run's tables do, from what the tool prints as its version."""

    def log_unit_ns(self, version: str) -> int | None:
        """Return the unit of latencies, in ns, in the logs of that version; None for a tool without logs."""
