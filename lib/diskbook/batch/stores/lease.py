"""Who works on a run in a store: at most one, known by a token that only grows (a fencing token).

To claim a run is to make the next record of its log; of several who try, one makes it. Whoever does not know
yet that the run went to another cannot make a record any more: its number is taken. No clock is compared with
another: the owner shows a sign of life three times a lease, and is taken for dead when somebody has seen none
for a whole lease; it stops by itself when it could show none for so long (Kleppmann, "How to do distributed
locking", 2016).
"""

import json
import os
import secrets
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from diskbook.batch.stores import record as records
from diskbook.batch.stores.objects import Objects
from diskbook.facts import paths
from diskbook.facts.errors import DiskbookError, visible

_LONGEST_S = 600.0  # of a lease; a sign of life may name any, and whoever may write there has written it
LEASE_S = paths.seconds_from_environment("DISKBOOK_LEASE_S", usual=60.0, most=_LONGEST_S)
_AT_ONCE = 8
_MOST_SIGN = 10_000  # bytes of a sign of life
_LOOKS = 12  # times that a lease is looked at before its owner is taken for dead


class HeldError(DiskbookError):
    """Another works on the run, and is alive."""


class LeaseLostError(DiskbookError):
    """The run belongs to another now; nothing more of this one may be stored."""


@dataclass
class Log:
    """The log of a run, as far as it has been read."""

    objects: Objects
    state: records.State = field(default_factory=records.State)

    def refresh(self) -> None:
        """Read the records that are new.

        Raises DiskbookError when one is damaged, or does not follow the others.
        """
        known = {} if self.state.number else self._all()
        while True:
            name = records.name_of(self.state.number + 1)
            where = str(self.objects.address / name)
            try:
                content = known.get(name) or self.objects.read(name, records.MOST)
            except FileNotFoundError:
                return
            self.state.add(records.read(content, where), content, where)

    def _all(self) -> dict[str, bytes]:
        """All records that there are, read side by side."""
        names = sorted(self.objects.names(records.FOLDER))
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            contents = pool.map(lambda name: self.objects.read(name, records.MOST), names)
            return dict(zip(names, contents, strict=True))


@dataclass
class Hold:
    """A run that this process owns in a store, until it is released, completed or lost."""

    log: Log
    token: int
    owner: str
    lease_s: float
    _seen: float = field(default_factory=time.monotonic)
    _beats: int = 0
    _lock: threading.RLock = field(default_factory=threading.RLock)

    def beat(self) -> None:
        """Show a sign of life.

        Raises LeaseLostError when another owns the run, or none could be shown for a whole lease.
        """
        began = time.monotonic()
        with self._lock:
            self._beats += 1
            sign = {"owner": self.owner, "lease_s": self.lease_s, "beat": self._beats}
            self.log.objects.replace(_sign(self.token), json.dumps(sign).encode())
            self.log.refresh()
            self.check()
            self._seen = began

    def check(self) -> None:
        """Raise LeaseLostError when this process must not take the run for its own any more."""
        state, where = self.log.state, self.log.objects.address
        if state.token != self.token or state.holder != self.owner:
            raise LeaseLostError(
                f"{where} was taken over by {visible(state.holder) or 'another, who has finished it'}, after "
                f"{self.lease_s:.0f} s without a sign of life; nothing more is stored from here: "
                f"'diskbook run --resume {where}' continues from what is stored, once nobody else works on it"
            )
        if time.monotonic() - self._seen > self.lease_s:
            raise LeaseLostError(
                f"{where}: no sign of life could be shown for {self.lease_s:.0f} s, so another may own it "
                "now; nothing more is stored from here: 'diskbook run --resume' goes on when that is mended"
            )

    def append(self, kind: records.Kind, **fields: Any) -> bool:
        """Make the next record of the log.

        Returns false when an earlier record of ours, whose answer was lost, has that number: think again.

        Raises LeaseLostError when another owns the run; nothing is written then.
        """
        with self._lock:
            self.check()
            if _append(self.log, self.token, self.owner, kind, **fields):
                return True
            self.log.refresh()
            self.check()
            return False


def read(objects: Objects) -> Log:
    log = Log(objects)
    log.refresh()
    return log


def claim(objects: Objects, lease_s: float = LEASE_S) -> Hold:
    """Own a run; waits a lease where its last owner shows no sign of life.

    Raises HeldError when somebody works on it. Raises DiskbookError when its log cannot be written to, or the
    lease has no length.
    """
    if not 0 < lease_s <= _LONGEST_S:
        raise DiskbookError(f"a lease of {lease_s} s: choose more than 0 and at most {_LONGEST_S:.0f} s")
    log, owner = read(objects), f"{socket.gethostname()}-{os.getpid()}-{secrets.token_hex(4)}"
    while True:
        if log.state.holder:
            _wait_for_death(log)
        before = log.state.number
        token = log.state.token + 1
        if _append(log, token, owner, "claim"):
            hold = Hold(log, token, owner, lease_s)
            hold.beat()
            return hold
        log.refresh()
        if log.state.number == before:
            raise DiskbookError(f"{objects.address}: its log cannot be written to; see who may write there")


def _wait_for_death(log: Log) -> None:
    """Return when the owner has shown no sign of life, and made no record, for its whole lease."""
    state = log.state
    first, lease_s = _look(log)
    deadline = time.monotonic() + lease_s
    while state.holder and time.monotonic() < deadline:
        time.sleep(lease_s / _LOOKS)
        log.refresh()
        if _look(log)[0] != first and state.holder:
            raise HeldError(
                f"{log.objects.address} is being worked on by {visible(state.holder)} since "
                f"{visible(state.since_utc)}; wait for its end"
            )


def _look(log: Log) -> tuple[tuple[int, bytes], float]:
    """What changes while the owner lives, and the length of its lease; the longest where it cannot be one."""
    try:
        sign = log.objects.read(_sign(log.state.token), _MOST_SIGN)
        lease_s = float(json.loads(sign)["lease_s"])
    except FileNotFoundError:
        sign, lease_s = b"", LEASE_S
    except (ValueError, KeyError, TypeError, RecursionError, OverflowError):
        lease_s = _LONGEST_S
    return (log.state.number, sign), max(lease_s, 0.1) if 0 < lease_s <= _LONGEST_S else _LONGEST_S


def _append(log: Log, token: int, owner: str, kind: records.Kind, **fields: Any) -> bool:
    """Make the next record, unless there is one already."""
    record = records.Record(
        number=log.state.number + 1,
        previous=log.state.digest,
        token=token,
        owner=owner,
        time_utc=datetime.now(UTC).isoformat(timespec="microseconds"),
        kind=kind,
        **fields,
    )
    name, content = records.name_of(record.number), record.content()
    if not log.objects.create(name, content):
        return False
    log.state.add(record, content, str(log.objects.address / name))
    return True


def _sign(token: int) -> str:
    return f"lease/{token:08}.json"
