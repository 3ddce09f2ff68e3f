"""Numbered, checksummed blocks on a disk. Sent to a machine and run there by itself, with nothing but Python.

    write      writes blocks one after another, each durable before the next; prints one line each
    verify     reads blocks back and says which are not what was written
    take-over  verifies, then writes its own block: what a machine does that takes a disk over

It prints a JSON document a line. Told to end (SIGTERM), `write` ends after the block in hand.
"""

import errno
import hashlib
import importlib
import json
import mmap
import os
import signal
import struct
import sys
import time
from collections.abc import Iterator
from typing import Any

BLOCK = 4096
CHUNK = 256 * BLOCK
_MAGIC = b"diskbook's drill"
_LISTED = 100  # numbers of lost blocks that are told one by one


class BlockDevice:
    """A block device past the page cache; a write is durable when it returns."""

    def __init__(self, path: str) -> None:
        self._file = os.open(path, os.O_RDWR | os.O_DIRECT | os.O_DSYNC)
        self._memory = mmap.mmap(-1, CHUNK)  # O_DIRECT wants it aligned

    def __enter__(self) -> "BlockDevice":
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._file)
        self._memory.close()

    def read(self, offset: int, length: int) -> bytes:
        """Read bytes."""
        with memoryview(self._memory) as memory, memory[:length] as part:
            if os.preadv(self._file, [part], offset) != length:
                raise OSError(errno.EIO, "a read ended early")
        return self._memory[:length]

    def write(self, offset: int, content: bytes) -> None:
        """Write bytes, and have them kept."""
        self._memory[: len(content)] = content
        with memoryview(self._memory) as memory, memory[: len(content)] as part:
            if os.pwritev(self._file, [part], offset) != len(content):
                raise OSError(errno.EIO, "a write ended early")


def opened(target: str) -> Any:
    """Open a block device, or on an emulated machine an NBD export."""
    if target.startswith("nbd"):
        return importlib.import_module("diskbook.hosts.nbd").Export(target)
    return BlockDevice(target)


def block(tag: bytes, number: int) -> bytes:
    """Return a block: magic, tag of the writer, number, bytes that follow from these, SHA-256 of all."""
    head = _MAGIC + tag + struct.pack("<Q", number)
    inside = head + hashlib.shake_256(head).digest(BLOCK - len(head) - 32)
    return inside + hashlib.sha256(inside).digest()


def write(disk: Any, offset: int, tag: bytes, numbers: range, interval_s: float) -> Iterator[dict[str, Any]]:
    """Write blocks at most one an interval; yield the number of each once it is durable."""
    signals: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, _: signals.append(number))
    due = time.monotonic()
    for number in numbers:
        if signals:
            yield {"told_to_end": True}
            return
        disk.write(offset + number * BLOCK, block(tag, number))
        yield {"ack": number}
        due = max(due + interval_s, time.monotonic())
        time.sleep(due - time.monotonic() if due > time.monotonic() else 0)


def verify(disk: Any, offset: int, tag: bytes, numbers: range) -> dict[str, Any]:
    """Read blocks back, many at a time; a block is lost when a single byte differs."""
    lost = []
    step = CHUNK // BLOCK
    for first in range(numbers.start, numbers.stop, step):
        count = min(step, numbers.stop - first)
        content = disk.read(offset + first * BLOCK, count * BLOCK)
        blocks = (content[place * BLOCK : (place + 1) * BLOCK] for place in range(count))
        lost += [number for number, read in enumerate(blocks, first) if read != block(tag, number)]
    return {"verified": len(numbers) - len(lost), "lost": len(lost), "lost_blocks": lost[:_LISTED]}


def act(action: str, disk: Any, offset: int, tag: bytes, count: int, interval_s: float) -> Iterator[Any]:
    """Do an action on blocks 0 to count - 1."""
    numbers = range(count)
    if action == "write":
        yield from write(disk, offset, tag, numbers, interval_s)
        return
    yield verify(disk, offset, tag, numbers)
    if action == "take-over":
        yield from write(disk, offset, tag, range(count, count + 1), 0.0)


def main() -> None:
    """Read the command line: action, target, offset, tag (32 hexadecimal digits), count, interval in s."""
    _, action, target, offset, tag, count, interval = sys.argv
    try:
        with opened(target) as disk:
            for row in act(action, disk, int(offset), bytes.fromhex(tag), int(count), float(interval)):
                print(json.dumps(row), flush=True)
    except OSError as error:
        name = errno.errorcode.get(error.errno or 0, "unknown")
        print(json.dumps({"error": name, "text": str(error)}), flush=True)
        raise SystemExit(1) from None


if __name__ == "__main__":
    main()
