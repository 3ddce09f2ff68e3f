"""Read and mark an emulated disk through its NBD export: `diskbook-disk` on emulated machines.

    diskbook-disk show LUN     prints as JSON what stands where a disk of ours is looked at
    diskbook-disk mark LUN     writes standard input, 4096 bytes, to the beginning of the last MiB

A stand-in for lsblk, wipefs and dd, which need a block device. It runs by itself, without this package.
"""

import base64
import json
import os
import socket
import struct
import sys
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

MIB = 1024**2
MARK_BYTES = 4096
# Numbers of the NBD protocol: fixed newstyle negotiation, simple replies.
_MAGIC, _OPTIONS, _REQUEST, _REPLY = b"NBDMAGIC", b"IHAVEOPT", 0x25609513, 0x67446698
_NO_ZEROES, _EXPORT_NAME = 3, 1
READ, WRITE, DISCONNECT, FLUSH = 0, 1, 2, 3


class Export:
    """An NBD export, by a URI such as nbd+unix:///unthrottled?socket=/tmp/s."""

    def __init__(self, uri: str) -> None:
        parts = urlsplit(uri)
        self._link = socket.socket(socket.AF_UNIX)
        self._link.settimeout(30)
        self._link.connect(parse_qs(parts.query)["socket"][0])
        self.size_bytes = self._negotiate(parts.path.lstrip("/").encode())

    def __enter__(self) -> "Export":
        return self

    def __exit__(self, *_: object) -> None:
        self._send(DISCONNECT, 0, 0)
        self._link.close()

    def read(self, offset: int, length: int) -> bytes:
        """Read bytes."""
        self._send(READ, offset, length)
        self._reply()
        return self._receive(length)

    def write(self, offset: int, content: bytes) -> None:
        """Write bytes, and have them kept."""
        self._send(WRITE, offset, len(content), content)
        self._reply()
        self._send(FLUSH, 0, 0)
        self._reply()

    def _negotiate(self, name: bytes) -> int:
        if self._receive(18)[:16] != _MAGIC + _OPTIONS:
            raise OSError("this is not an NBD server")
        self._link.sendall(struct.pack(">I8sII", _NO_ZEROES, _OPTIONS, _EXPORT_NAME, len(name)) + name)
        size, _ = struct.unpack(">QH", self._receive(10))
        return int(size)

    def _send(self, kind: int, offset: int, length: int, content: bytes = b"") -> None:
        self._link.sendall(struct.pack(">IHHQQI", _REQUEST, 0, kind, 0, offset, length) + content)

    def _reply(self) -> None:
        magic, error, _ = struct.unpack(">IIQ", self._receive(16))
        if magic != _REPLY or error:
            raise OSError(error, os.strerror(error) if error else "no reply of an NBD server")

    def _receive(self, length: int) -> bytes:
        content = bytearray()
        while len(content) < length:
            part = self._link.recv(length - len(content))
            if not part:
                raise OSError("the NBD server closed the connection")
            content += part
        return bytes(content)


def show(row: dict[str, str]) -> dict[str, object]:
    """Look at the first and the last MiB of a disk."""
    with Export(row["prefill_uri"]) as export:
        first, last = export.read(0, MIB), export.read(export.size_bytes - MIB, MIB)
    return {
        "unique_id": row.get("unique_id"),
        "first_mib_empty": not any(first),
        "last_mib_empty": not any(last),
        "mark": base64.b64encode(last[:MARK_BYTES]).decode(),
    }


def write_mark(row: dict[str, str], content: bytes) -> None:
    """Write the mark of a disk."""
    if len(content) != MARK_BYTES:
        raise SystemExit(f"a mark has {MARK_BYTES} bytes, not {len(content)}")
    with Export(row["prefill_uri"]) as export:
        export.write(export.size_bytes - MIB, content)


def main() -> None:
    """Read the command line: the file of disks, what to do, the LUN."""
    _, disks, action, lun = sys.argv
    rows = json.loads(Path(disks).read_text("utf-8"))
    if lun not in rows:
        raise SystemExit(f"there is no disk at LUN {lun}")
    if action == "mark":
        write_mark(rows[lun], sys.stdin.buffer.read())
    else:
        print(json.dumps(show(rows[lun])))


if __name__ == "__main__":
    main()
