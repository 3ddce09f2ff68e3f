"""A fleet as one call of fio: a section for every machine, and what each of them measured.

Sections start within 0.6 s on two cores (`checks.bench_emulator` says why), since fio sets all threads up
before it lets any of them go; as processes of their own 28 of them would take 8 s to begin. Threads share one
process (`thread`), and each machine is a group of its own (`new_group`), whose numbers are told apart.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PureWindowsPath
from typing import Any

from diskbook.design.diskspd_line.arguments import Arguments
from diskbook.facts.units import MS_PER_S
from diskbook.tools import fio
from diskbook.tools.record import Series
from diskbook_emulator import windows_diskspd, windows_xml
from diskbook_emulator.windows_diskspd import Disk

OUTPUT, JOBS = "fio.json", "fleet.fio"
_ONLY_IN_COMMANDS = ("fio", "--name=", "--output-format=")
_LOGS = ("write_lat_log", "write_iops_log")


@dataclass(frozen=True)
class Member:
    """A machine of a fleet: the file that it drives, on a volume as a node sees it."""

    name: str
    volume: str
    node: str
    file: PureWindowsPath
    disk: Disk


@dataclass(frozen=True)
class Outcome:
    """What a machine measured, and when (ms since the Unix epoch)."""

    measured: windows_xml.Measured
    started_ms: int
    ended_ms: int


def job_file(line: Arguments, members: Sequence[Member], seed: int) -> str:
    """Write the job file of a fleet: DiskSpd's line, once for each machine.

    Parameters
    ----------
    line
        What each machine does.
    members
        The machines.
    seed
        Of the offsets; fio draws others in each thread.
    """
    sections = ["[global]", "thread", "log_unix_epoch=1"]
    for member in members:
        sections += ["", f"[{member.name}]", "new_group", *_options(line, member, seed)]
    return "\n".join(sections) + "\n"


def _options(line: Arguments, member: Member, seed: int) -> Iterator[str]:
    for word in windows_diskspd.command(line, member.disk, seed).argv:
        if word.startswith(_ONLY_IN_COMMANDS):
            continue
        option, _, value = word.removeprefix("--").partition("=")
        value = member.name if option in _LOGS else value
        yield f"{option}={value}" if value else option


def command(program: str) -> list[str]:
    """Build the command line that runs the job file in its folder."""
    return [program, "--eta=never", f"--output={OUTPUT}", "--output-format=json+", JOBS]


def read(
    folder: Path,
    messages: str,
    line: Arguments,
    members: Sequence[Member],
    cores: Sequence[tuple[float, float]] = (),
) -> dict[str, Outcome]:
    """Read what fio left, by machine; each is told how busy the cores were that all of them shared.

    Raises
    ------
    UnusableError
        A machine did not measure, or not for as long as it was to; it is named.
    """
    file = folder / OUTPUT
    text = file.read_text("utf-8") if file.exists() else ""
    whole = json.loads(text[text.index("{\n") :]) if "{\n" in text else {"jobs": []}
    of_machines: dict[str, list[Mapping[str, Any]]] = {member.name: [] for member in members}
    for job in whole["jobs"]:
        of_machines[job["jobname"]].append(windows_diskspd.ended_in_time(job, line))
    return {
        name: _outcome(folder, name, {**whole, "jobs": jobs}, messages, line, cores)
        for name, jobs in of_machines.items()
    }


def _outcome(
    folder: Path,
    name: str,
    own: Mapping[str, Any],
    messages: str,
    line: Arguments,
    cores: Sequence[tuple[float, float]],
) -> Outcome:
    printed = json.dumps(own) if own["jobs"] else ""
    whole = fio.parse_output(printed, name, messages=messages, runtime_s=line.duration_s)
    total = windows_diskspd.over_duration(whole, line)
    logs = [folder / f"{name}_{kind}.log" for kind in ("lat", "iops")]
    texts = [log.read_text("utf-8") if log.exists() else "" for log in logs]
    # A thread ends, and writes its last line, when its last I/O has: that may be long after its time is up.
    last = max((_time_ms(row) for text in texts for row in text.splitlines()), default=0)
    started = last - max(job["job_runtime"] for job in own["jobs"])
    interval_s = (line.iops_interval_ms or MS_PER_S) / MS_PER_S
    series = _series(texts, started, interval_s, name) if line.iops_interval_ms else {}
    threads = windows_diskspd.threads_of(own)
    measured = windows_xml.Measured(total, threads, series, cores)
    return Outcome(measured, started, started + round(total.runtime_ms))


def _time_ms(row: str) -> int:
    return int(row.partition(",")[0])


def _series(texts: Sequence[str], started_ms: int, interval_s: float, name: str) -> Mapping[str, Series]:
    """Read the logs, with times since the machine began to measure."""
    since = ["".join(_since(text, started_ms)) for text in texts]
    return fio.parse_logs(since[0], since[1], interval_s, name)


def _since(text: str, started_ms: int) -> Iterator[str]:
    for row in text.splitlines():
        _, comma, rest = row.partition(",")
        yield f"{max(0, _time_ms(row) - started_ms)}{comma}{rest}\n"
