"""Run a measuring tool on a machine as a detached job, and read what it left."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from diskbook.hosts.device import Device
from diskbook.hosts.jobs import JobLost
from diskbook.measure.bench.rig import Rig
from diskbook.tools.job import Job
from diskbook.tools.protocol import Tool
from diskbook.tools.record import Measurement

START_S = 60.0  # a tool that has not ended this long after its time is taken for hung


def run_job(rig: Rig, machine: str, name: str, device: Device, job: Job, limit_s: float) -> dict[str, bytes]:
    """Run a tool as a detached job and return its files: `stdout`, `stderr`, `status` and its logs."""
    connection = rig.connection(machine)
    connection.start_job(name, list(job.argv), root=device.needs_root)
    return connection.finish_job(name, job.logs.values(), limit_s=limit_s)


def run_with_retry(
    rig: Rig, machine: str, name: str, device: Device, job: Job, limit_s: float
) -> dict[str, bytes]:
    """Run a tool as `run_job` does, once more where the machine was restarted under it."""
    try:
        return run_job(rig, machine, name, device, job, limit_s)
    except JobLost:
        return run_job(rig, machine, f"{name}-again", device, job, limit_s)


def read(tool: Tool, output: Mapping[str, bytes], source: str, **limits: Any) -> Measurement:
    """Read what a job left, as `Tool.read` does; raises UnusableError with the tool's own message."""
    files = {kind: output.get(file, b"") for file, (kind, _) in tool.raw.items()}
    return tool.read(files, source, **limits)
