"""A run that is kept in a store while it is worked on: every few seconds what is new goes there.

So another machine can go on where this one ended, and learns within a lease that it has.
"""

import contextlib
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from diskbook.batch.stores import lease, push
from diskbook.batch.stores.address import Address
from diskbook.batch.stores.contents import Folder
from diskbook.batch.stores.objects import open_objects
from diskbook.batch.stores.record import State
from diskbook.batch.stores.retries import UnreachableError
from diskbook.facts.errors import DiskbookError

Lost = Callable[[DiskbookError], None]
IsWhole = Callable[[], bool]
Prepare = Callable[[State], None]
IsVoid = Callable[[BaseException], bool]

_SIGNS = 3
"""Signs of life a lease."""


@dataclass
class Keeper:
    """Stores a run that this process owns, beside what works on it."""

    hold: lease.Hold
    folder: Folder
    lost: Lost
    error: DiskbookError | None = None
    _end: threading.Event = field(default_factory=threading.Event)

    def loop(self) -> None:
        """Store what is new until the end; an error that does not pass ends it, and is told to `lost`."""
        while not self._end.wait(self.hold.lease_s / _SIGNS):
            try:
                self._store()
            except FileNotFoundError:
                continue  # a folder that went just then
            except DiskbookError as error:
                self.error = error
                self.lost(error)
                return

    def _store(self) -> None:
        """Show a sign of life and store what is new; a store may be away until another may own the run."""
        try:
            self.hold.beat()
            push.store_new(self.hold, self.folder)
        except UnreachableError:
            self.hold.check()

    def stop(self) -> None:
        self._end.set()


@contextlib.contextmanager
def keeping(
    folder: Path,
    address: Address,
    lost: Lost,
    is_whole: IsWhole,
    lease_s: float = lease.LEASE_S,
    prepare: Prepare = lambda state: None,
    is_void: IsVoid = lambda error: False,
) -> Iterator[lease.Hold]:
    """Own a run in a store for the length of a with block, and keep it there.

    - `folder`: the run's folder; what is new in it is stored about every third of a lease.
    - `lost`: called once, from another thread, when the run must not be worked on any more.
    - `is_whole`: asked at the end: whether the run is finished, so that readers may see it.
    - `lease_s`: for how long the run is taken for owned without a sign of life.
    - `prepare`: called with what is stored as soon as the run is owned; makes the folder, or brings it up to
      date.
    - `is_void`: asked when the block ends with an error: whether nothing of the run is to stay in the store.
      What another process had stored there stays.

    Yields what is owned.

    Raises LeaseLostError at the end, when the run has gone to another; what was stored until then is whole.
    Raises HeldError when another works on it. Raises DiskbookError when the end cannot be stored.
    """
    hold = lease.claim(open_objects(address, lease_s), lease_s)
    keeper = Keeper(hold, Folder(folder), lost)
    thread = threading.Thread(target=keeper.loop, name=f"keep {address.name}", daemon=True)
    try:
        prepare(hold.log.state)
        push.store_all(hold, keeper.folder)
        thread.start()
        yield hold
    except BaseException as error:
        _finish(keeper, thread)
        if not (is_void(error) and _removed(keeper)):
            _leave(keeper)
        if keeper.error is not None:  # why the work was stopped
            raise keeper.error from error
        raise
    _finish(keeper, thread)
    if keeper.error is not None:
        raise keeper.error
    if is_whole():
        _complete(keeper, address)
    else:
        _leave(keeper)


def _complete(keeper: Keeper, address: Address) -> None:
    try:
        push.complete(keeper.hold, keeper.folder)
    except UnreachableError as error:
        raise DiskbookError(
            f"{error}; all of it is here: 'diskbook push {address.name} {address.parent}'"
        ) from error


def _finish(keeper: Keeper, thread: threading.Thread) -> None:
    keeper.stop()
    if thread.ident is not None:
        thread.join()


def _removed(keeper: Keeper) -> bool:
    """Remove the run from the store, if none but this process ever owned it and the store allows it."""
    if keeper.hold.token > 1:
        return False
    try:
        keeper.hold.check()
        keeper.hold.log.objects.remove()
    except DiskbookError as error:
        print(f"diskbook: the store keeps the run, which made nothing: {error}", file=sys.stderr)
        return False
    return True


def _leave(keeper: Keeper) -> None:
    """Store what was done before an error, and let go of the run: it is not whole."""
    if isinstance(keeper.error, lease.LeaseLostError):
        return
    with contextlib.suppress(DiskbookError, OSError):
        push.store_all(keeper.hold, keeper.folder)
    push.release(keeper.hold)
