"""A regular file that answers late and counts what reaches it: a FUSE server of the kernel's own protocol.

    python slow_file.py FILE COUNTS SIZE READ_MS WRITE_MS FSYNC_MS

mounts over the empty FILE a file of SIZE bytes in memory and serves it until it is unmounted, or until who
started it is gone. A block device of it (losetup) is a disk with known delays behind the kernel's real path:
O_DIRECT, the block layer, flushes. COUNTS gets how many reads, writes and fsyncs came, three 64-bit integers.
Layout of what is asked and answered: include/uapi/linux/fuse.h of Linux, version 7.31.
"""

from __future__ import annotations

import ctypes
import errno
import heapq
import mmap
import os
import select
import signal
import stat
import struct
import sys
import time
from collections.abc import Sequence
from pathlib import Path

GETATTR, SETATTR, OPEN, READ, WRITE, STATFS, RELEASE, FSYNC, FLUSH, INIT = (
    3,
    4,
    14,
    15,
    16,
    17,
    18,
    20,
    25,
    26,
)
UNANSWERED = (2, 36, 42)  # FORGET, INTERRUPT, BATCH_FORGET
DELAYED = (READ, WRITE, FSYNC)
_HEADER, _REPLY = struct.Struct("<IIQQIIIHH"), struct.Struct("<IiQ")
_IO = struct.Struct("<QQIIQII")  # of a read and of a write: handle, offset, size, ...
_OPENED, _WRITTEN = struct.pack("<QII", 0, 0, 0), struct.Struct("<II")
_PAGE, _MOST = 4096, 128 * 1024
_FLAGS = 1 << 0 | 1 << 5 | 1 << 15 | 1 << 22  # ASYNC_READ, BIG_WRITES, ASYNC_DIO, MAX_PAGES
_INIT_REPLY = struct.pack("<IIIIHHIIHH8I", 7, 31, _MOST, _FLAGS, 64, 48, _MOST, 1, _MOST // _PAGE, *[0] * 9)
_MS_NOSUID, _MS_NODEV, _PR_SET_PDEATHSIG = 2, 4, 1


class Server:
    """The file's content, its counts, and the replies that are not due yet."""

    def __init__(self, fuse: int, counts: Path, size: int, delays_ms: Sequence[float]) -> None:
        self.fuse = fuse
        self.content = mmap.mmap(-1, size)
        self.delays_s = dict(zip(DELAYED, (ms / 1000 for ms in delays_ms), strict=True))
        with counts.open("r+b") as file:
            self.counts = memoryview(mmap.mmap(file.fileno(), 8 * len(DELAYED))).cast("Q")
        self.due: list[tuple[float, int, bytes]] = []

    def serve(self) -> None:
        """Answer until the file is unmounted."""
        while True:
            wait_s = max(0.0, self.due[0][0] - time.monotonic()) if self.due else None
            if select.select([self.fuse], [], [], wait_s)[0]:
                try:
                    self._take(os.read(self.fuse, _MOST + _PAGE))
                except OSError as error:
                    if error.errno == errno.ENODEV:
                        return
                    if error.errno not in (errno.EINTR, errno.ENOENT):  # who asked was interrupted
                        raise
            while self.due and self.due[0][0] <= time.monotonic():
                os.write(self.fuse, heapq.heappop(self.due)[2])

    def _take(self, request: bytes) -> None:
        """Do what is asked at once; answer it when its delay has passed."""
        arrived = time.monotonic()
        _, kind, unique, *_ = _HEADER.unpack_from(request)
        if kind in UNANSWERED:
            return
        content = self._done(kind, memoryview(request)[_HEADER.size :])
        status = -errno.ENOSYS if content is None else 0
        reply = _REPLY.pack(_REPLY.size + len(content or b""), status, unique) + (content or b"")
        if kind in DELAYED:
            self.counts[DELAYED.index(kind)] += 1
            heapq.heappush(self.due, (arrived + self.delays_s[kind], unique, reply))
        else:
            os.write(self.fuse, reply)

    def _done(self, kind: int, asked: memoryview) -> bytes | None:
        """Content of a reply; None for what is not implemented."""
        if kind in (READ, WRITE):
            _, offset, size, *_ = _IO.unpack_from(asked)
            if kind == READ:
                return self.content[offset : offset + size]
            self.content[offset : offset + size] = asked[_IO.size : _IO.size + size]
            return _WRITTEN.pack(size, 0)
        attributes = self._attributes()
        always = {INIT: _INIT_REPLY, OPEN: _OPENED, GETATTR: attributes, SETATTR: attributes}
        return {**always, STATFS: bytes(80), FSYNC: b"", FLUSH: b"", RELEASE: b""}.get(kind)

    def _attributes(self) -> bytes:
        size = len(self.content)
        valid, times, owner = (3600, 0, 0), [0] * 6, (os.getuid(), os.getgid())
        rest = (stat.S_IFREG | 0o600, 1, *owner, 0, _PAGE, 0)
        return struct.pack("<QII3Q3Q3I7I", *valid, 1, size, size // 512, *times, *rest)


def mount(file: Path) -> int:
    """Mount over a file; the descriptor on which the kernel asks. Ends with who started this."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    fuse = os.open("/dev/fuse", os.O_RDWR)
    options = f"fd={fuse},rootmode={stat.S_IFREG:o},user_id={os.getuid()},group_id={os.getgid()}"
    flags = _MS_NOSUID | _MS_NODEV
    if libc.mount(b"diskbook-slow", os.fsencode(file), b"fuse", flags, options.encode()):
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), str(file))
    return fuse


def main(file: str, counts: str, size: str, *delays_ms: str) -> None:
    """Mount, say so, serve."""
    try:
        fuse = mount(Path(file))
    except OSError as error:
        sys.exit(f"{error.filename}: {error.strerror}")
    print("mounted", flush=True)
    Server(fuse, Path(counts), int(size), [float(ms) for ms in delays_ms]).serve()


if __name__ == "__main__":
    main(*sys.argv[1:])
