"""The step `fleet` on emulated machines: one load on many machines at once, on volumes as nodes see them.

fio runs as a process of the node that was asked, and ends with it. It plays processes of DiskSpd on the nodes
and machines that VMFleet made alike.
"""

import base64
import os
import select
import shutil
import subprocess
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path, PureWindowsPath

from diskbook.clusters.powershell import steps
from diskbook.clusters.vmfleet import names
from diskbook.design.diskspd_arguments import Arguments, parse
from diskbook.facts.errors import DiskbookError
from diskbook.tools.record import UnusableError
from diskbook_emulator import FOLDER_VARIABLE, fleet_fio, processes, volume_files, windows_diskspd
from diskbook_emulator.fleet_fio import Member
from diskbook_emulator.step_call import Call, Json, Killed, StepError
from diskbook_emulator.storage_spaces import VolumeRecord

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
        return _run(call, asked, line, _members(call, asked))
    except DiskbookError as error:
        raise StepError(error.reason if isinstance(error, UnusableError) else str(error)) from error


def _members(call: Call, asked: steps.Fleet) -> list[Member]:
    """Machines of a fleet, each with its file, which is made where that was asked for."""
    members: list[Member] = []
    made: dict[str, int] = defaultdict(int)
    for volume in asked.volumes:
        first = made[volume.name] + 1
        made[volume.name] += asked.instances
        members += _of_volume(call, asked, volume, range(first, first + asked.instances))
    return members


def _of_volume(call: Call, asked: steps.Fleet, volume: steps.FleetVolume, numbers: range) -> Iterator[Member]:
    uri, record = _reached(call, volume)
    folder = call.host.files(record)
    paths = {number: PureWindowsPath(volume.path) / f"vm-{number:03}.dat" for number in numbers}
    if asked.create:
        sizes = {path.name: asked.file_bytes for path in paths.values()}
        try:
            volume_files.make(folder, sizes, record.layout.size_bytes)
        except volume_files.NoRoomError:
            raise windows_diskspd.not_opened(next(iter(paths.values())), windows_diskspd.NO_ROOM) from None
    extents = volume_files.read(folder)
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
        (folder / fleet_fio.JOBS).write_text(fleet_fio.job_file(line, members, seed), encoding="utf-8")
        with windows_diskspd.watched() as cores:
            _play(call, folder, home, asked.wait_s)
        seconds = time.monotonic() - clock
        with call.unlocked():
            messages = (folder / _MESSAGES).read_text("utf-8", errors="replace")
            outcomes = fleet_fio.read(folder, messages, line, members, cores)
            packed = fleet_fio.archive(line, asked.spec, members, outcomes, began)
    return {"archive": base64.b64encode(packed).decode(), "seconds": round(seconds, 3)}


def _play(call: Call, folder: Path, home: Path, wait_s: float) -> None:
    """Run fio to its end, as a process of the node; others work meanwhile."""
    program = shutil.which("fio") or processes.require("fio", "fio")
    environment = {"PATH": os.environ.get("PATH", ""), FOLDER_VARIABLE: f"{home}/"}
    running = processes.spawn(
        fleet_fio.command(program), cwd=folder, env=environment, output=folder / _MESSAGES
    )
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
