"""The kernel's real I/O path for tests: block devices and files that fio reaches by libaio or io_uring.

What there is, is found when asked for: a loop device where root and the kernel give one, else a file that
takes O_DIRECT. `met` notes what it was, for the summary that `conftest` prints at the end of the tests.
"""

from __future__ import annotations

import os
import shutil
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import pytest

from diskbook.facts.units import MIB
from diskbook.hosts.device import Device
from support import slow_file

SUMMARY, TESTS = "real I/O path", "test_real_path.py"
_STAT = (0, 4, 15)
"""Where reads, writes and flushes are in /sys/block/*/stat; flushes from Linux 5.5 on (block/stat.rst)."""


class Counts(NamedTuple):
    """What reached a disk: reads, writes and flushes."""

    reads: int
    writes: int
    flushes: int

    def since(self, before: Counts) -> Counts:
        """What reached it after `before`."""
        return Counts(*(now - then for now, then in zip(self, before, strict=True)))


@dataclass(frozen=True)
class Disk:
    """A block device, or a file where `why_no_device` says why there is none.

    `cache` is what the kernel calls the device's: it sends flushes to "write back" alone.
    """

    path: str
    why_no_device: str = ""
    cache: str = ""

    @property
    def device(self) -> Device:
        """The disk as tools address it."""
        return Device("libaio", self.path, self.path, 0, by_user=True)

    @property
    def counts(self) -> Counts | None:
        """What the block device has done so far; None for a file, or where the kernel counts no flushes."""
        fields = [] if self.why_no_device else _of_device(self.path, "stat").split()
        return Counts(*(int(fields[at]) for at in _STAT)) if len(fields) > max(_STAT) else None

    def __str__(self) -> str:
        if self.why_no_device:
            return f"a file with O_DIRECT, since {self.why_no_device}"
        return f"a loop device ({self.cache})"


def _of_device(device: str, name: str) -> str:
    return Path("/sys/block", Path(device).name, name).read_text().strip()


def met(request: pytest.FixtureRequest, line: str) -> None:
    """Have a line printed when all tests are over."""
    request.node.user_properties.append((SUMMARY, line))


def refusal_of_io_uring() -> str:
    """Say why fio cannot use io_uring here; "" where it can."""
    job = ["fio", "--name=probe", "--ioengine=io_uring", "--filename=probe", "--size=4k", "--rw=write"]
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(job, cwd=folder, capture_output=True, text=True, check=False)
    lines = [line for line in done.stderr.splitlines() if line.strip()]
    return (lines or [f"fio ended with {done.returncode}"])[0] if done.returncode else ""


@contextmanager
def loop_device(image: Path, *options: str) -> Iterator[str]:
    """A block device of a file; skips for who may not make one.

    It is given back at once and stays while it is open here, so that it goes with this process in any case.
    """
    losetup = shutil.which("losetup", path="/usr/sbin:/sbin:/usr/bin")
    if os.geteuid() != 0 or losetup is None:
        pytest.skip("only root may make a block device of a file")
    command = [losetup, "-f", "--show", *options, str(image)]
    made = subprocess.run(command, capture_output=True, text=True, check=False)
    if made.returncode:
        pytest.skip(f"no block device can be made of a file here: {made.stderr.strip()}")
    device = made.stdout.strip()
    held = os.open(device, os.O_RDONLY)
    try:
        subprocess.run([losetup, "-d", device], check=True)
        yield device
    finally:
        os.close(held)


@contextmanager
def disk(folder: Path, size_mib: int) -> Iterator[Disk]:
    """A disk of a file in a folder that takes O_DIRECT: a loop device, else the file itself."""
    image = folder / "image"
    image.write_bytes(os.urandom(MIB) * size_mib)
    with ExitStack() as stack:
        try:
            path = stack.enter_context(loop_device(image, "--direct-io=on"))
        except pytest.skip.Exception as why:
            yield Disk(str(image), why_no_device=str(why))
        else:
            yield Disk(path, cache=_of_device(path, "queue/write_cache"))


@dataclass(frozen=True)
class SlowDisk:
    """A block device with planted delays; `counts` are of what reached its file: fsyncs for flushes."""

    path: str
    folder: Path
    server: subprocess.Popen[str]

    @property
    def counts(self) -> Counts:
        """So far."""
        return Counts(*struct.unpack("<3Q", (self.folder / "counts").read_bytes()))


@contextmanager
def slow_disk(folder: Path, size_mib: int, *delays_ms: float) -> Iterator[SlowDisk]:
    """A loop device of a file that answers so late to a read, a write and an fsync; skips where none can be.

    The file is unmounted, lazily, as soon as the device holds it, so all of it goes with the device.
    """
    file, counts = folder / "slow", folder / "counts"
    file.touch()
    counts.write_bytes(bytes(8 * len(slow_file.DELAYED)))
    arguments = map(str, (file, counts, size_mib * MIB, *delays_ms))
    command = [sys.executable, slow_file.__file__, *arguments]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert server.stdout is not None and server.stderr is not None
        if not server.stdout.readline():
            pytest.skip(f"no delay can be planted, FUSE mounts nothing here: {server.stderr.read().strip()}")
        try:
            with loop_device(file, "--direct-io=on") as device:
                _unmount(file)
                yield SlowDisk(device, folder, server)
            _await_end(server)
        finally:
            _unmount(file)
    finally:
        server.kill()
        server.communicate()


def is_mounted(file: Path) -> bool:
    """Whether something is mounted over a file."""
    return f" {file} " in Path("/proc/self/mounts").read_text()


def _unmount(file: Path) -> None:
    if is_mounted(file):
        subprocess.run(["umount", "-l", str(file)], check=True)


def _await_end(server: subprocess.Popen[str]) -> None:
    """Wait until the kernel has let go of the file: the server ends by itself then."""
    deadline = time.monotonic() + 10
    while server.poll() is None and time.monotonic() < deadline:
        time.sleep(0.01)
