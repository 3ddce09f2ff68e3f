"""One call of a measuring tool on a machine: what is run, and on what."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

from diskbook.facts.units import KIB, MIB

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

    Attributes
    ----------
    argv
        Program and arguments.
    logs
        Kind (lat_log, iops_log) to the name of the file that it leaves in its folder.
    notes
        Where it does not do quite what was asked, one sentence each; kept with the trial.
    limit_s
        Time after which it is taken for hung; None where the caller knows better.
    content
        What the data are that it writes, in words; kept with the trial. Empty where it writes none.
    """

    argv: tuple[str, ...]
    logs: dict[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    limit_s: float | None = None
    content: str = ""
