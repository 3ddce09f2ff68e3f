"""One call of a measuring tool on a machine: what is run, and on what."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

from diskbook.base.units import MIB

FILL_BLOCK_BYTES = MIB
"""Block size that every tool fills a disk with."""


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
    """

    argv: tuple[str, ...]
    logs: dict[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    limit_s: float | None = None
