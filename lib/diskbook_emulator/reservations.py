"""Who may write to an emulated disk: SCSI-3 persistent reservations, in a file that its nbdkit processes map.

The rules are those of SPC-4 for one type, "write exclusive, registrants only" (5), which clusters use. The
file mirrors `struct reservations` of plugin.c, which enforces them. A nexus is the number of an attachment.
"""

import mmap
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

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
        """Remove the reservation and every registration."""
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
