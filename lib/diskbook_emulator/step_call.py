"""One call of a cluster's step on an emulated machine: what it sees, changes and waits for."""

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from diskbook_emulator.records import Book, Cluster, Node, Spaces, digest, group_of
from diskbook_emulator.volume_host import VolumeHost

Json = dict[str, Any]
POLL_S = 0.1
"""How often a step looks whether what it waits for has come; the scripts look every 2 s."""


class StepError(Exception):
    """A step failed; the sentence is what the machine would say."""


class Killed(Exception):
    """The step was killed here."""


@dataclass(frozen=True)
class Planted:
    """What a test has planted in a step.

    `reads` are facts that the machine gives instead of the true ones, by name; the step is killed after
    `killed_after` changes.
    """

    reads: Mapping[str, Any] = field(default_factory=dict)
    killed_after: int | None = None


class Machines(Protocol):
    """What steps ask of the machines' side besides its book; `closed` when all is being ended."""

    closed: bool

    def save(self) -> None:
        """Keep the book."""

    def restart_soon(self, vm_id: str) -> None:
        """Restart a machine from within, in a moment."""

    def show(self, vm_ids: Iterable[str]) -> None:
        """Write what machines see of their disks and volumes."""

    def folder(self, vm_id: str) -> Path:
        """Return the folder of a machine."""

    def opens_account(self, account: str, key: str) -> bool:
        """Tell whether a storage account takes a key."""


@dataclass
class Call:
    """A call of a step.

    - `vm_id`: the machine that it runs on.
    - `book`, `host`, `machines`: what there is.
    - `planted`: what a test has planted.
    - `lock`: held all the while, but for waiting.
    - `account`, `password`: whom it runs as; none for a session that signed in by key.
    """

    vm_id: str
    book: Book
    host: VolumeHost
    machines: Machines
    lock: threading.RLock
    planted: Planted = field(default_factory=Planted)
    account: str | None = None
    password: str | None = None
    changed: list[str] = field(default_factory=list)

    @property
    def spaces(self) -> Spaces:
        return self.book.spaces

    @property
    def name(self) -> str:
        """Name of the machine as it was created."""
        return self.book.spec(self.vm_id).name

    @property
    def computer(self) -> str:
        """Name of the machine as it says it itself: Windows' $env:COMPUTERNAME is in capitals."""
        return self.name.upper()

    def change(self, what: str) -> None:
        """Note that something was changed; a planted kill ends the step here."""
        self.changed.append(what)
        self.machines.save()
        if len(self.changed) == self.planted.killed_after:
            raise Killed

    def read(self, fact: str, actual: Any) -> Any:
        """Return what the machine gives for a fact."""
        return self.planted.reads.get(fact, actual)

    def wait_until(
        self,
        what: str,
        seconds: float,
        test: Callable[[], bool],
        pause: Callable[[float], object] = time.sleep,
    ) -> None:
        """Wait as Wait-Until of common.ps1 does; others work meanwhile. `pause` may be cut short."""
        until = time.monotonic() + seconds
        while not test():
            if time.monotonic() > until:
                raise StepError(f"{what} was waited for, but did not come about in {seconds:g} s")
            with self.unlocked():
                pause(POLL_S)
            if self.machines.closed or not self.book.is_up(self.vm_id):
                raise Killed

    @contextmanager
    def unlocked(self) -> Iterator[None]:
        """Let others work meanwhile."""
        self.lock.release()
        try:
            yield
        finally:
            self.lock.acquire()

    # who may reach what

    def reaches_others(self) -> None:
        """Refuse a session that cannot authenticate to other nodes (Win32-OpenSSH, issues 518 and 543)."""
        if self.account is None or not self.admits(self.vm_id):
            raise StepError("Access is denied. (Exception from HRESULT: 0x80070005 (E_ACCESSDENIED))")

    def admits(self, vm_id: str) -> bool:
        """Tell whether a machine knows the account and the password of this call."""
        node = self.spaces.nodes.get(vm_id, Node())
        if self.account is None or node.account.lower() != self.account.lower():
            return False
        return node.password == digest(vm_id, self.password or "")

    def cluster(self) -> Cluster:
        """Return the machine's cluster, as Get-Cluster does."""
        cluster = self.spaces.cluster_of(self.vm_id)
        if cluster is None:
            raise StepError(
                "The cluster service is not running.  Make sure that the service is running on all nodes in "
                "the cluster. There are no more endpoints available from the endpoint mapper"
            )
        return cluster

    def vm_of(self, node: str) -> str | None:
        """Return the machine of a name in the network of this one."""
        own = group_of(self.vm_id)
        vms = self.book.vms.values()
        ids = (vm.spec.id for vm in vms if vm.spec.name.lower() == node.lower())
        return next((vm_id for vm_id in ids if group_of(vm_id) == own), None)

    def name_of(self, vm_id: str) -> str:
        return self.book.spec(vm_id).name


def same(what: str, expected: object, actual: object) -> None:
    """Compare as Assert-Same of common.ps1 does: as text, whatever the case."""
    if str(expected).lower() != str(actual).lower():
        raise StepError(f"{what} is '{actual}', but '{expected}' was asked for")
