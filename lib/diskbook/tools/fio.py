"""fio: the command for a workload, and what its output says."""

from __future__ import annotations

from diskbook.tools.fio_command import (
    Job,
    Target,
    command,
    prefill_command,
    verify_read_command,
    verify_write_command,
    version_command,
)
from diskbook.tools.fio_log import Series, parse_logs
from diskbook.tools.fio_parse import Direction, FioError, FioResult, merge_bins, parse, percentile_ns

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
