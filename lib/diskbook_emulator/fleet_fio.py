"""A fleet as one call of fio: a section for every machine, and what each of them measured.

Sections start within 0.6 s on two cores (`checks.bench_emulator` says why), since fio sets all threads up
before it lets any of them go; as processes of their own 28 of them would take 8 s to begin. Threads share one
process (`thread`), and each machine is a group of its own (`new_group`), whose numbers are distinguished.
"""

import io
import json
import math
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path, PureWindowsPath
from typing import Any

from diskbook.clusters.vmfleet import names
from diskbook.design.diskspd_arguments import Arguments, with_target
from diskbook.facts.units import MS_PER_S, NS_PER_MS
from diskbook.tools import fio
from diskbook.tools.record import Direction, Series, percentile_ns
from diskbook_emulator import windows_diskspd, windows_xml

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
    disk: windows_diskspd.Disk


@dataclass(frozen=True)
class Outcome:
    """What a machine measured, and when (ms since the Unix epoch)."""

    measured: windows_xml.Measured
    started_ms: int
    ended_ms: int


def job_file(line: Arguments, members: Sequence[Member], seed: int) -> str:
    """Write the job file of a fleet: DiskSpd's line, once for each machine.

    - `line`: what each machine does.
    - `seed`: of the offsets; fio draws others in each thread.
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

    Raises UnusableError when a machine did not measure, or not for as long as it was to; it is named.
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


# ---- the results as VMFleet leaves them: DiskSpd's XML of each machine, and its tables, zipped


TIMES = "fleet.json"
_WORDS = {"read": "Read", "write": "Write"}
_SHARES = {"50": 0.5, "90": 0.9, "99": 0.99}
Row = dict[str, float]


def archive(
    line: Arguments, spec: str, members: Sequence[Member], outcomes: Mapping[str, Outcome], began: datetime
) -> bytes:
    """Pack the results of a fleet.

    - `line`: what each machine did.
    - `spec`: names the results.
    - `members`, `outcomes`: the machines, and what they measured.
    - `began`: when DiskSpd would have been started.

    Of VMFleet's columns that of the processors is left out: it is none of what fio measured. DiskSpd's own
    results have it.
    """
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as files:
        for member in members:
            own = with_target(line, str(member.file))
            measured = outcomes[member.name].measured
            text = windows_xml.document(own, member.disk.size_bytes, measured, began, member.name)
            files.writestr(names.result_file(line, spec, member.name), text)
        rows = {name: _row(outcome) for name, outcome in outcomes.items()}
        results = {name: names.result_file(line, spec, name).removesuffix(".xml") for name in rows}
        named = [({"Result": results[name]}, row) for name, row in rows.items()]
        files.writestr(f"result-vm-{spec}.tsv", _table(named))
        files.writestr("result.tsv", _table([({"VMCount": str(len(rows))}, _sum(list(rows.values())))]))
        files.writestr(TIMES, json.dumps({"vms": _times(members, outcomes)}, indent=1))
    return packed.getvalue()


def _times(members: Sequence[Member], outcomes: Mapping[str, Outcome]) -> dict[str, dict[str, str]]:
    return {
        member.name: {
            "volume": member.volume,
            "node": member.node,
            "started_utc": _iso(outcomes[member.name].started_ms),
            "ended_utc": _iso(outcomes[member.name].ended_ms),
        }
        for member in members
    }


def _iso(ms: int) -> str:
    return datetime.fromtimestamp(ms / MS_PER_S, UTC).isoformat(timespec="milliseconds")


def _row(outcome: Outcome) -> Row:
    """Columns of a machine; a direction without I/O has zeros, as in VMFleet's tables."""
    parts = {word: outcome.measured.total.directions.get(name) for name, word in _WORDS.items()}
    row = {"IOPS": sum(part.iops for part in parts.values() if part)}
    row |= {f"Average{word}IOPS": part.iops if part else 0.0 for word, part in parts.items()}
    row |= {f"Average{word}BW": part.bw_bytes if part else 0.0 for word, part in parts.items()}
    for word, part in parts.items():
        row |= _latencies(word, part)
    return row


def _latencies(word: str, part: Direction | None) -> Row:
    levels = percentile_ns(part.bins, *_SHARES.values()) if part else [0.0] * len(_SHARES)
    at = zip(_SHARES, levels, strict=True)
    row = {f"{word}Milliseconds{share}": level / NS_PER_MS for share, level in at}
    mean = part.lat_mean_ms if part else 0.0
    return {**row, f"Average{word}Milliseconds": 0.0 if math.isnan(mean) else mean}


def _sum(rows: Sequence[Row]) -> Row:
    """All machines together as VMFleet has it: rates add up, mean latencies are weighted by them, and
    percentiles are means over machines (which are no percentiles of anything)."""
    whole: Row = {}
    for column in rows[0]:
        values = [row[column] for row in rows]
        whole[column] = sum(values)
        if column.startswith("Average") and column.endswith("Milliseconds"):
            rates = [row[column.removesuffix("Milliseconds") + "IOPS"] for row in rows]
            weighted = sum(value * rate for value, rate in zip(values, rates, strict=True))
            whole[column] = weighted / sum(rates) if sum(rates) else 0.0
        elif "Milliseconds" in column:
            whole[column] /= len(rows)
    return whole


def _table(rows: Sequence[tuple[dict[str, str], Row]]) -> str:
    return "".join(f"{line}\r\n" for line in _lines(rows))


def _lines(rows: Sequence[tuple[dict[str, str], Row]]) -> Iterator[str]:
    """Lines as Export-Csv writes them: everything is quoted."""
    names, columns = rows[0]
    yield "\t".join(f'"{name}"' for name in (*names, *columns))
    for labels, row in rows:
        values = [*labels.values(), *(f"{value:.6g}" for value in row.values())]
        yield "\t".join(f'"{value}"' for value in values)
