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
from diskbook.tools.fio.json_output import Direction, FioError, FioResult, merge_bins, parse, percentile_ns
from diskbook.tools.fio.log_small import Series, parse_logs

__all__ = [
    "Direction",
    "FioError",
    "FioResult",
    "Job",
    "Series",
    "Target",
    "command",
    "merge_bins",
    "parse",
    "parse_logs",
    "percentile_ns",
    "prefill_command",
    "verify_read_command",
    "verify_write_command",
    "version_command",
]
