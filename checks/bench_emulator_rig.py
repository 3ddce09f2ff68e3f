"""What a check of the emulated disk needs: disks, fio, and who else used the processors meanwhile."""

import os
import shutil
import subprocess
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Self

import psutil

from diskbook.facts.errors import UsageError
from diskbook.tools import fio
from diskbook.tools.record import Measurement
from diskbook_emulator.disk import Export, LimitsFile, Server, build_plugin
from diskbook_emulator.layout_file import Hop, MemberModel, NodeModel, VolumeModel
from diskbook_emulator.types import Cache, ExportModel, Latency, Limits
from diskbook_emulator.volume_host import VOLUME_SOURCE, Volume, VolumeServer
from diskbook_emulator.volumes import arrange

DISK_BYTES = 2**40
WORKING_SET_MIB = 256
DISKS = 4  # of each node of a volume
SIZES_GIB = {
    "nested-parity": (0.0156, 1.0)
}  # so little mirror that writes meet parity; all others have 1 GiB
NO_LIMITS = Limits()
NO_HOP = Hop()


class Rig:
    """Emulated disks in a folder, prefilled, each with its own nbdkit.

    Leaving its `with` block ends the disks; their data stay for the next block.

    - `folder`: an empty folder with a short path; about 600 MB are written to it.
    """

    def __init__(self, folder: Path) -> None:
        if shutil.which("fio") is None:
            raise UsageError("fio is missing; install the Debian package 'fio'.")
        self.folder = folder
        self._plugin = build_plugin(folder)
        self._exports = ExitStack()
        self._made = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._exports.close()

    def limits(self, limits: Limits) -> Path:
        """Make a limits file; return its path."""
        self._made += 1
        return LimitsFile.create(self.folder / f"limits-{self._made}", limits).path

    def disk(
        self,
        latency: Latency,
        limits: Limits = NO_LIMITS,
        *,
        data: str = "a",
        cache: Cache | None = None,
        vm_uncached: Path | None = None,
        vm_cached: Path | None = None,
    ) -> Export:
        """Start an emulated disk. `data` names the backing file, shared by all disks of that name."""
        self._made += 1
        work_dir = self.folder / f"disk-{self._made}"
        backing = self.folder / f"{data}.img"
        fresh = not backing.exists()
        export = Export(
            work_dir.with_suffix(".sock"),
            backing,
            DISK_BYTES,
            ExportModel(latency, latency, latency, cache=cache),
            self.limits(limits),
            vm_uncached,
            vm_cached,
            self._plugin,
            work_dir,
        )
        export.start()
        self._exports.callback(export.stop)
        if fresh:
            run_fio([export], "--rw=write", "--bs=1m", "--iodepth=4", unthrottled=True)
        return export

    def volume(
        self,
        kind: str,
        nodes: int,
        latency: Latency,
        limits: Limits = NO_LIMITS,
        *,
        vm: Limits = NO_LIMITS,
        hop: Hop = NO_HOP,
        local_share: float = 1.0,
        threads: int = 8,
    ) -> tuple[Volume, VolumeServer]:
        """Make a volume of four disks a node, prefilled, and start serving it to the first node."""
        members = self._limits_of_drives(nodes, limits)
        made = self._volume(kind, members, latency, [self.limits(vm) for _ in range(nodes)], hop, local_share)
        return made, self._served(made, 0, threads)

    def pool(self, kind: str, latency: Latency, limits: Limits) -> tuple[VolumeServer, VolumeServer]:
        """Make two volumes of two nodes on the same drives, each served to the node that owns it."""
        members, nodes = self._limits_of_drives(2, limits), [self.limits(NO_LIMITS) for _ in range(2)]
        servers = []
        for node in range(2):
            made = self._volume(kind, members, latency, nodes, NO_HOP, 1.0)
            made.file.owner = node
            servers.append(self._served(made, node, 8))
        return servers[0], servers[1]

    def _limits_of_drives(self, nodes: int, limits: Limits) -> list[Path]:
        return [self.limits(limits) for _ in range(DISKS * nodes)]

    def _volume(
        self, kind: str, drives: list[Path], latency: Latency, vms: list[Path], hop: Hop, local_share: float
    ) -> Volume:
        self._made += 1
        folder = self.folder / f"volume-{self._made}"
        folder.mkdir()
        members = tuple(
            MemberModel(folder / f"{number}.img", own, latency, latency) for number, own in enumerate(drives)
        )
        columns = DISKS // 2 if kind.startswith("nested") else DISKS
        layout = arrange(kind, DISKS, len(vms), SIZES_GIB.get(kind, (1.0,)), columns)
        model = VolumeModel(tuple(NodeModel(vm) for vm in vms), members, local_share, hop, rotate_at=0.0)
        return Volume(folder / "layout", layout, model, witness=True)

    def _served(self, volume: Volume, node: int, threads: int) -> VolumeServer:
        """Serve a volume to a node, prefilled."""
        folder = volume.file.path.parent
        plugin = build_plugin(self.folder, VOLUME_SOURCE)
        server = VolumeServer(folder / "s", plugin, folder / "w", volume.file.path, node, threads=threads)
        server.start()
        self._exports.callback(server.stop)
        run_fio([server], "--rw=write", "--bs=1m", "--iodepth=4", unthrottled=True)
        return server


def run_fio(exports: Sequence[Server], *options: str, unthrottled: bool = False) -> list[Measurement]:
    """Run one fio on each export, all at the same time, and return what each measured."""
    common = [
        "fio",
        "--name=bench",
        "--ioengine=nbd",
        "--group_reporting",
        "--output-format=json",
    ]
    common += [f"--size={WORKING_SET_MIB}m", "--verify_state_save=0", *options]
    running = [
        subprocess.Popen(
            [*common, f"--uri={export.uri(unthrottled)}"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for export in exports
    ]
    outputs = [process.communicate() for process in running]
    return [
        fio.parse_output(out, export.socket.name, messages=err)
        for export, (out, err) in zip(exports, outputs, strict=True)
    ]


def run_fio_together(exports: Sequence[Export], *options: str) -> Measurement:
    """Run one fio with a job for each export, which start and end together; return the sum."""
    command = ["fio", "--output-format=json", "--group_reporting", f"--size={WORKING_SET_MIB}m", *options]
    for export in exports:
        command += [f"--name={export.socket.stem}", "--ioengine=nbd", f"--uri={export.uri()}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return fio.parse_output(done.stdout, "all disks", messages=done.stderr)


class OtherCpu:
    """Processors used by others than this process and its children, as a context manager.

    Two estimates are made and the higher one taken: all that /proc/stat says was busy, less our own (it is
    sampled, and blind to work in step with the timer); and the sum over all other processes that live at the
    end (exact, but blind to those that came and went).

    - `cores`: mean number of cores, once the block has ended.
    """

    cores = 0.0

    def __enter__(self) -> Self:
        self._start = time.monotonic()
        self._before = _cpu_by_process()
        self._busy, self._own = _busy_s(), _own_s()
        return self

    def __exit__(self, *_: object) -> None:
        elapsed = time.monotonic() - self._start
        by_stat = (_busy_s() - self._busy) - (_own_s() - self._own)
        by_process = sum(used - self._before.get(key, 0.0) for key, used in _cpu_by_process().items())
        self.cores = max(0.0, by_stat, by_process) / elapsed


def _busy_s() -> float:
    """All processors' busy seconds; what a hypervisor took away counts too."""
    times = psutil.cpu_times()
    return times.user + times.nice + times.system + times.irq + times.softirq + times.steal


def _own_s() -> float:
    """Seconds used by this process, its children alive, and those waited for."""
    me = psutil.Process()
    total = sum(me.cpu_times()[:4])
    for child in me.children(recursive=True):
        try:
            total += sum(child.cpu_times()[:4])
        except psutil.NoSuchProcess:
            continue
    return total


def _cpu_by_process() -> dict[tuple[int, float], float]:
    """Seconds used so far by every process that is not ours."""
    ours = {os.getpid(), *(child.pid for child in psutil.Process().children(recursive=True))}
    used = {}
    for process in psutil.process_iter(["pid", "create_time", "cpu_times"]):
        times = process.info["cpu_times"]
        if process.pid not in ours and times is not None:
            used[process.pid, process.info["create_time"]] = times.user + times.system
    return used
