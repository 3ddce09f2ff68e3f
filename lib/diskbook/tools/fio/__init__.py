"""fio: the command for a workload, and what its output says."""

from __future__ import annotations

from diskbook.tools.fio.command import (
    Job,
    Target,
    command,
    prefill_command,
    verify_read_command,
    verify_write_command,
    version_command,
)
from diskbook.tools.fio.trial import parse_logs, parse_output
from diskbook.tools.record import Direction, Series, merge_bins, percentile_ns

__all__ = [
    "Direction",
    "Job",
    "Series",
    "Target",
    "command",
    "merge_bins",
    "parse_logs",
    "parse_output",
    "percentile_ns",
    "prefill_command",
    "verify_read_command",
    "verify_write_command",
    "version_command",
]
