"""Who may write to an emulated disk: SCSI-3 persistent reservations, in a file that its nbdkit processes map.

The rules are those of SPC-4 for one type, "write exclusive, registrants only" (5), which clusters use. The
file mirrors `struct reservations` of plugin.c, which enforces them. A nexus is the number of an attachment.
"""

import argparse
import json
import mmap
import struct
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from diskbook.facts import files

MAGIC = int.from_bytes(b"DSKRSV01", "little")
REGISTRATIONS = 32
WRITE_EXCLUSIVE_REGISTRANTS = 5
_GENERATION, _HOLDER, _TYPE, _FIRST = 1, 2, 3, 8  # numbers of 8-byte words
_BYTES = 8 * (_FIRST + 2 * REGISTRATIONS)


class Conflict(Exception):
    """The disk answers RESERVATION CONFLICT: the key is not this machine's, or another one holds it."""


class Reservations:
    """The reservations of one disk.

    - `path`: a file made by `create`.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    @classmethod
    def create(cls, path: Path) -> "Reservations":
        """Make the file: nobody is registered, nothing is reserved."""
        files.write_atomic(path, struct.pack("<Q", MAGIC).ljust(_BYTES, b"\0"))
        return cls(path)

    def keys(self) -> tuple[int, dict[int, int]]:
        """Return the generation, and the key of every registered nexus."""
        with self._words() as words:
            return words[_GENERATION], _registered(words)

    def reservation(self) -> tuple[int, int | None, int]:
        """Return the generation, the key of the holder (None: no reservation) and the type."""
        with self._words() as words:
            return words[_GENERATION], _registered(words).get(words[_HOLDER]), words[_TYPE]

    def register(self, nexus: int, key: int, new_key: int, *, ignore: bool = False) -> None:
        """Give a nexus a key, another one, or (0) none; `key` is its present one unless that is ignored."""
        with self._words() as words:
            if not ignore and _registered(words).get(nexus, 0) != key:
                raise Conflict
            _set_key(words, nexus, new_key)
            words[_GENERATION] += 1

    def reserve(self, nexus: int, key: int, kind: int) -> None:
        """Reserve the disk for a registered nexus; once more is no error."""
        with self._words() as words:
            _check_key(words, nexus, key)
            if words[_HOLDER] and (words[_HOLDER], words[_TYPE]) != (nexus, kind):
                raise Conflict
            _hold(words, nexus, kind)

    def release(self, nexus: int, key: int) -> None:
        """Give the reservation up; nothing happens when another one holds it."""
        with self._words() as words:
            _check_key(words, nexus, key)
            if words[_HOLDER] == nexus:
                _hold(words, 0, 0)

    def preempt(self, nexus: int, key: int, other_key: int, kind: int) -> None:
        """Remove every registration with another key; take the reservation over where its holder had it."""
        with self._words() as words:
            _check_key(words, nexus, key)
            away = [
                registrant
                for registrant, registered_key in _registered(words).items()
                if registered_key == other_key
            ]
            if not away:
                raise Conflict
            if words[_HOLDER] in away:
                _hold(words, nexus, kind)
            for registrant in away:
                if registrant != nexus:
                    _set_key(words, registrant, 0)
            words[_GENERATION] += 1

    def clear(self, nexus: int, key: int) -> None:
        with self._words() as words:
            _check_key(words, nexus, key)
            for registrant in _registered(words):
                _set_key(words, registrant, 0)
            words[_GENERATION] += 1

    def drop(self, nexus: int) -> None:
        """Forget a nexus that is gone: its disk was detached."""
        with self._words() as words:
            if nexus in _registered(words):
                _set_key(words, nexus, 0)

    @contextmanager
    def _words(self) -> Iterator[memoryview]:
        """Map the file for one change, one at a time over all processes."""
        with self.path.open("r+b") as file:
            files.acquire(file)
            with mmap.mmap(file.fileno(), _BYTES) as mapped, memoryview(mapped) as view:
                with view.cast("Q") as words:
                    if words[0] != MAGIC:
                        raise OSError(f"{self.path} was made by another version of the emulator")
                    yield words


def _slots(words: memoryview) -> range:
    return range(_FIRST, _FIRST + 2 * REGISTRATIONS, 2)


def _registered(words: memoryview) -> dict[int, int]:
    return {words[slot]: words[slot + 1] for slot in _slots(words) if words[slot + 1]}


def _check_key(words: memoryview, nexus: int, key: int) -> None:
    if key == 0 or _registered(words).get(nexus) != key:
        raise Conflict


def _hold(words: memoryview, nexus: int, kind: int) -> None:
    words[_HOLDER] = nexus
    words[_TYPE] = kind


def _set_key(words: memoryview, nexus: int, key: int) -> None:
    """Set the key of a nexus. Under this type the reservation goes with the registration of its holder."""
    if key == 0 and words[_HOLDER] == nexus:
        _hold(words, 0, 0)
    slots = [slot for slot in _slots(words) if words[slot] == nexus and words[slot + 1]]
    free = slots or [slot for slot in _slots(words) if not words[slot + 1]]
    if not free:
        raise OSError(f"an emulated disk takes {REGISTRATIONS} registrations")
    words[free[0]] = nexus
    words[free[0] + 1] = key


CONFLICT = 24
NOT_SUPPORTED = 9
_TYPE_NAME = "Write Exclusive, registrants only"
_CHANGES = ("register", "register-ignore", "reserve", "release", "clear", "preempt")


def main() -> None:
    """Read the command line: the machine's file of disks, then the options of sg_persist."""
    given = _parser().parse_args(sys.argv[2:])
    row = _row(Path(sys.argv[1]), given.device)
    if not given.no_inquiry:
        print("  diskbook  emulated disk     1\n  Peripheral device type: disk")
    disk = Reservations(Path(row["reservations"]))
    if given.out:
        _change(disk, int(row["nexus"]), given)
    elif given.read_reservation:
        _show_reservation(disk)
    else:
        _show_keys(disk)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("sg_persist", description="emulated by diskbook", allow_abbrev=False)
    parser.add_argument("--version", action="version", version="version: emulated by diskbook")
    parser.add_argument("--no-inquiry", "-n", action="store_true")
    parser.add_argument("--in", "-i", dest="into", action="store_true")
    parser.add_argument("--out", "-o", action="store_true")
    parser.add_argument("--read-keys", "-k", action="store_true")
    parser.add_argument("--read-reservation", "-r", action="store_true")
    for name in _CHANGES:
        parser.add_argument(f"--{name}", action="store_true")
    parser.add_argument("--param-rk", type=_hex, default=0)
    parser.add_argument("--param-sark", type=_hex, default=0)
    parser.add_argument("--prout-type", type=_hex, default=0)
    parser.add_argument("device")
    return parser


def _hex(text: str) -> int:
    return int(text, 16)


def _row(disks: Path, device: str) -> dict[str, Any]:
    rows = json.loads(disks.read_text("utf-8")).values()
    matching = [row for row in rows if device in (row["uri"], row["prefill_uri"])]
    if not matching:
        print(f"sg_persist: error opening file: {device}: No such file or directory", file=sys.stderr)
        raise SystemExit(15)
    return matching[0]


def _change(disk: Reservations, nexus: int, given: argparse.Namespace) -> None:
    chosen = [name for name in _CHANGES if getattr(given, name.replace("-", "_"))]
    if len(chosen) != 1:
        raise SystemExit("sg_persist (emulated): give one of " + ", ".join(_CHANGES))
    (action,) = chosen
    if action in ("reserve", "release", "preempt") and given.prout_type != WRITE_EXCLUSIVE_REGISTRANTS:
        print("sg_persist (emulated): only type 5 is emulated", file=sys.stderr)
        raise SystemExit(NOT_SUPPORTED)
    try:
        _do(disk, nexus, action, given)
    except Conflict:
        print("PR out: Reservation conflict (emulated)", file=sys.stderr)
        raise SystemExit(CONFLICT) from None


def _do(disk: Reservations, nexus: int, action: str, given: argparse.Namespace) -> None:
    key, other, kind = given.param_rk, given.param_sark, given.prout_type
    if action in ("register", "register-ignore"):
        disk.register(nexus, key, other, ignore=action == "register-ignore")
    elif action == "reserve":
        disk.reserve(nexus, key, kind)
    elif action == "release":
        disk.release(nexus, key)
    elif action == "preempt":
        disk.preempt(nexus, key, other, kind)
    else:
        disk.clear(nexus, key)


def _show_keys(disk: Reservations) -> None:
    generation, keys = disk.keys()
    if not keys:
        print(f"  PR generation=0x{generation:x}, there are NO registered reservation keys")
        return
    many = "key follows" if len(keys) == 1 else "keys follow"
    print(f"  PR generation=0x{generation:x}, {len(keys)} registered reservation {many}:")
    for key in keys.values():
        print(f"    0x{key:x}")


def _show_reservation(disk: Reservations) -> None:
    generation, key, _ = disk.reservation()
    if key is None:
        print(f"  PR generation=0x{generation:x}, there is NO reservation held")
        return
    print(f"  PR generation=0x{generation:x}, Reservation follows:")
    print(f"    Key=0x{key:x}\n    scope: LU_SCOPE,  type: {_TYPE_NAME}")


if __name__ == "__main__":
    main()
