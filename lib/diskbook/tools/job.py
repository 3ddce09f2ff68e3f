"""One call of a measuring tool on a machine."""

from __future__ import annotations

from dataclasses import dataclass, field


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
    """

    argv: tuple[str, ...]
    logs: dict[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
