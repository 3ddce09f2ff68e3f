"""The step `fleet` on emulated machines: one load on many machines at once, on volumes as nodes see them.

fio runs as a process of the node that was asked, and ends with it. It plays processes of DiskSpd on the nodes
and machines that VMFleet made alike.
"""

import base64
import io
import json
import math
import os
import select
import shutil
import subprocess
import tempfile
import time
import zipfile
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path, PureWindowsPath
from typing import Any

from diskbook.clusters.powershell import steps
from diskbook.clusters.vmfleet import line as names
from diskbook.design.diskspd_arguments import Arguments, parse, with_target
from diskbook.facts.errors import DiskbookError
from diskbook.facts.units import MS_PER_S, NS_PER_MS
from diskbook.tools import fio
from diskbook.tools.record import Direction, Series, UnusableError, percentile_ns
from diskbook_emulator import FOLDER_VARIABLE, processes, windows_diskspd, windows_xml
from diskbook_emulator.records import VolumeRecord
from diskbook_emulator.step_call import Call, Json, Killed, StepError

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


_UNREACHED = (
    "Connecting to remote server {node} failed with the following error message : The WinRM client cannot "
    "process the request because the server name cannot be resolved or the server does not run."
)
_MESSAGES = "messages.txt"


def fleet(call: Call, asked: steps.Fleet) -> Json:
    """Run a load on all machines of a fleet at once; answers with the archive of its results."""
    call.reaches_others()
    call.cluster()
    try:
        line = parse(asked.line)
        if line.output != "xml":
            raise StepError("the emulated DiskSpd writes XML only; add -Rxml")
        windows_diskspd.check_depth(line)
        members: list[Member] = []
        made: dict[str, int] = defaultdict(int)
        for volume in asked.volumes:
            first = made[volume.name] + 1
            made[volume.name] += asked.instances
            members += _of_volume(call, asked, volume, range(first, first + asked.instances))
        return _run(call, asked, line, members)
    except DiskbookError as error:
        raise StepError(error.reason if isinstance(error, UnusableError) else str(error)) from error


def _of_volume(call: Call, asked: steps.Fleet, volume: steps.FleetVolume, numbers: range) -> Iterator[Member]:
    uri, record = _reached(call, volume)
    folder = call.host.files(record)
    paths = {number: PureWindowsPath(volume.path) / f"vm-{number:03}.dat" for number in numbers}
    if asked.create:
        sizes = {path.name: asked.file_bytes for path in paths.values()}
        try:
            windows_diskspd.make_files(folder, sizes, record.layout.size_bytes)
        except windows_diskspd.NoRoomError:
            raise windows_diskspd.not_opened(next(iter(paths.values())), windows_diskspd.NO_ROOM) from None
    extents = windows_diskspd.read_extents(folder)
    for number, path in paths.items():
        extent = extents.get(path.name)
        if extent is None:
            raise windows_diskspd.not_opened(path, windows_diskspd.NO_FILE)
        disk = windows_diskspd.Disk(uri, min(extent.size, asked.file_bytes), offset=extent.offset)
        yield Member(names.machine(volume.name, volume.node, number), volume.name, volume.node, path, disk)


def _reached(call: Call, volume: steps.FleetVolume) -> tuple[str, VolumeRecord]:
    """Return where a node reaches a volume, and the volume."""
    vm_id = call.vm_of(volume.node)
    if vm_id is None or not call.book.is_up(vm_id):
        raise StepError(_UNREACHED.format(node=volume.node))
    path = PureWindowsPath(volume.path)
    for record in call.spaces.volumes_of(vm_id):
        server = call.host.running.get((record.number, vm_id))
        if path not in (PureWindowsPath(record.path), PureWindowsPath(record.fill_path)) or server is None:
            continue
        if call.host.volumes[record.number].online:
            return server.uri(unthrottled=path == PureWindowsPath(record.fill_path)), record
    raise windows_diskspd.not_opened(path / "vm-001.dat", windows_diskspd.NO_PATH)


def _run(call: Call, asked: steps.Fleet, line: Arguments, members: Sequence[Member]) -> Json:
    began, clock = datetime.now(UTC), time.monotonic()
    home = call.machines.folder(call.vm_id)
    with tempfile.TemporaryDirectory(dir=home / "tmp", prefix="fleet-") as name:
        folder = Path(name)
        seed = line.seed if line.seed is not None else time.time_ns() % 2**31
        (folder / JOBS).write_text(job_file(line, members, seed), encoding="utf-8")
        with windows_diskspd.watched() as cores:
            _play(call, folder, home, asked.wait_s)
        seconds = time.monotonic() - clock
        with call.unlocked():
            messages = (folder / _MESSAGES).read_text("utf-8", errors="replace")
            outcomes = read(folder, messages, line, members, cores)
            packed = archive(line, asked.spec, members, outcomes, began)
    return {"archive": base64.b64encode(packed).decode(), "seconds": round(seconds, 3)}


def _play(call: Call, folder: Path, home: Path, wait_s: float) -> None:
    """Run fio to its end, as a process of the node; others work meanwhile."""
    program = shutil.which("fio") or processes.require("fio", "fio")
    environment = {"PATH": os.environ.get("PATH", ""), FOLDER_VARIABLE: f"{home}/"}
    running = processes.spawn(command(program), cwd=folder, env=environment, output=folder / _MESSAGES)
    try:
        with _end_of(running) as pause:
            call.wait_until("that the fleet ends", wait_s, lambda: running.poll() is not None, pause)
    finally:
        processes.kill(processes.tree(running.pid) if running.poll() is None else [])
        running.wait()
    if call.machines.closed or not call.book.is_up(call.vm_id):
        raise Killed


@contextmanager
def _end_of(running: subprocess.Popen[bytes]) -> Iterator[Callable[[float], object]]:
    """Give a pause that the end of a process cuts short."""
    process = os.pidfd_open(running.pid)  # not reaped before its `poll`, so the number is its own
    try:
        waiting = select.poll()
        waiting.register(process, select.POLLIN)
        yield lambda seconds: waiting.poll(1000 * seconds)
    finally:
        os.close(process)
