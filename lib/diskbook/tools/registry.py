"""The measuring tools behind one face: what to run, which files it leaves, what they say."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from diskbook.base.errors import UsageError
from diskbook.scenario.model import Scenario, Workload
from diskbook.tools import fio
from diskbook.tools.diskspd import command as diskspd
from diskbook.tools.job import Job
from diskbook.tools.record import Direction, Series


class Target(Protocol):
    """A disk as a machine sees it: fio's engine, and the target in the tool's own words."""

    @property
    def engine(self) -> str:
        """nbd, libaio or windows."""

    @property
    def target(self) -> str:
        """NBD URI, path of a block device, or physical drive."""


@dataclass(frozen=True)
class Reading:
    """What a tool measured in one trial, by direction: totals with histogram, and series."""

    version: str | None
    directions: dict[str, Direction]
    series: dict[str, Series]


class Tool(Protocol):
    """A measuring tool.

    Attributes
    ----------
    main
        Kind, in the ledger, of the raw file that holds the result.
    raw
        File in a job's folder to its kind and the ending of its raw name.
    """

    main: str
    raw: Mapping[str, tuple[str, str]]

    def command(self, workload: Workload, target: Target, *, seed: int) -> Job:
        """Build the measurement of one trial."""

    def read(self, text: Mapping[str, str], source: str, workload: Workload, *, whole: bool) -> Reading:
        """Read the files of a trial, by kind; `whole` refuses a trial cut short. Raises UnusableError."""


class _Fio:
    main = "json"
    raw: Mapping[str, tuple[str, str]] = {
        "stdout": ("json", ".json"),
        "stderr": ("err", ".txt"),
        "trial_lat.log": ("lat_log", "_lat.log"),
        "trial_iops.log": ("iops_log", "_iops.log"),
    }

    def command(self, workload: Workload, target: Target, *, seed: int) -> Job:
        return fio.command(workload, target, seed=seed)

    def read(self, text: Mapping[str, str], source: str, workload: Workload, *, whole: bool) -> Reading:
        result = fio.parse_output(
            text.get("json", ""),
            source,
            messages=text.get("err", ""),
            runtime_s=workload.runtime_s if whole else None,
        )
        logs = text.get("lat_log", ""), text.get("iops_log", "")
        return Reading(result.version, result.directions, fio.parse_logs(*logs, workload.series_s, source))


class _DiskSpd:
    main = "xml"
    raw: Mapping[str, tuple[str, str]] = {"stdout": ("xml", ".xml"), "stderr": ("err", ".txt")}

    def command(self, workload: Workload, target: Target, *, seed: int) -> Job:
        return diskspd.command(workload, target, seed=seed)

    def read(self, text: Mapping[str, str], source: str, workload: Workload, *, whole: bool) -> Reading:
        streams = {"stdout": text.get("xml", ""), "stderr": text.get("err", "")}
        result = diskspd.parse_output(streams, source, workload.runtime_s if whole else None)
        return Reading(f"diskspd {result.version}", result.measurement.directions, result.series)


TOOLS: Mapping[str, Tool] = {"fio": _Fio(), "diskspd": _DiskSpd()}


@dataclass(frozen=True)
class _Any:
    engine: str
    target: str


def check(scenario: Scenario) -> list[str]:
    """Say of each cell what its tool cannot do, a sentence each; empty when all is well."""
    kinds = {"fio": _Any("libaio", "/dev/disk"), "diskspd": _Any("windows", "#1")}
    found = []
    for arm, workload in scenario.cells:
        name = scenario.tool_of(arm)
        try:
            TOOLS[name].command(workload, kinds[name], seed=1)
        except UsageError as error:
            found.append(f"[[workload]] {workload.name} on {arm.name}: {error}")
    for item in scenario.check:
        machines = {item.machine, item.from_machine} - {None}
        if item.kind == "data-intact" and any(_is_windows(scenario, str(name)) for name in machines):
            found.append(
                f"[[check]] {item.name}: data are verified by fio, which Windows machines do not have"
            )
    return list(dict.fromkeys(found))


def _is_windows(scenario: Scenario, machine: str) -> bool:
    return scenario.machine_named(machine).os == "windows"
