"""From a store into a folder: a run as it was when it was last whole, or as far as it has come."""

from __future__ import annotations

import hashlib
import shutil
import tempfile
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from diskbook.base import paths
from diskbook.base.errors import DiskbookError, UsageError
from diskbook.base.files import write_atomic
from diskbook.base.visible import visible
from diskbook.remote import contents, lease, push
from diskbook.remote.address import Address
from diskbook.remote.objects import Objects, open_objects
from diskbook.remote.record import LEDGER, Entry, State

_AT_ONCE = 8


class AnotherRunError(DiskbookError):
    """The folder and the stored run of its name have grown apart."""


def cached(address: Address) -> Path:
    """Folder with a run as it was when it was last whole, fetched unless it is here already.

    Raises
    ------
    UsageError
        When there is no run of that address, or none that has ever been whole.
    """
    objects, state = _read(address)
    if state.complete is None:
        who = f"{visible(state.holder)} works on it" if state.holder else "it was cut off"
        raise UsageError(
            f"{address} is not whole yet ({who}); 'diskbook fetch --unfinished {address}' brings the part"
        )
    place = hashlib.sha256(str(address.parent).encode()).hexdigest()[:16]
    folder = paths.CACHE / "runs" / place / f"{state.complete.number:08}" / address.name
    if not folder.exists():
        _fetch(objects, state.complete.files, None, folder)
    return folder


def fetch(address: Address, folder: Path, unfinished: bool = False) -> bool:
    """Bring a run into a folder, or one that is there up to date.

    Parameters
    ----------
    address
        The run.
    folder
        Its folder; one that is there must be an earlier or later state of the same run.
    unfinished
        As far as it has come, also where it is not whole.

    Returns
    -------
    bool
        Whether anything was fetched; what is here may be further on than what is there.

    Raises
    ------
    UsageError
        When there is no such run, or it is not whole and that was not asked for.
    AnotherRunError
        When the folder holds another run.
    """
    objects, state = _read(address)
    if not unfinished:
        if state.complete is None:
            raise UsageError(f"{address} is not whole yet; with --unfinished what there is comes")
        files, ledger = dict(state.complete.files), None
    else:
        files, ledger = dict(state.files), push.ledger_of(state, objects)
        files.pop(LEDGER, None)
    if folder.exists():
        return _bring_up_to_date(objects, files, ledger, folder)
    _fetch(objects, files, ledger, folder)
    return True


def fetch_part(address: Address, folder: Path, belongs: Callable[[str], bool]) -> State:
    """Bring the ledger of a run and a part of its files, as far as it has come.

    Parameters
    ----------
    address
        The run.
    folder
        Where to; it then is no whole run, and nothing goes on with it. Not made where there is no run yet.
    belongs
        Whether a file belongs to the part, by its path.

    Returns
    -------
    State
        All that is stored.
    """
    objects = open_objects(address)
    state = lease.read(objects).state
    if state.number:
        here = contents.Folder(folder).entries() if folder.exists() else {}
        files = {name: entry for name, entry in state.files.items() if belongs(name) and name != LEDGER}
        new = {name: entry for name, entry in files.items() if here.get(name) != entry}
        folder.mkdir(parents=True, exist_ok=True)
        _write(objects, new, push.ledger_of(state, objects), folder)
    return state


def _read(address: Address) -> tuple[Objects, State]:
    objects = open_objects(address)
    state = lease.read(objects).state
    if not state.number:
        raise UsageError(f"there is no run at {address}; 'diskbook verify {address.parent}' lists the runs")
    return objects, state


def _fetch(objects: Objects, files: Mapping[str, Entry], ledger: bytes | None, folder: Path) -> None:
    """Make a folder that is whole when it appears."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".") as part:
        whole = Path(part, folder.name)
        whole.mkdir()
        _write(objects, files, ledger, whole)
        try:
            whole.rename(folder)
        except OSError:
            if not folder.exists():  # else another process was quicker
                raise


def _write(objects: Objects, files: Mapping[str, Entry], ledger: bytes | None, folder: Path) -> None:
    def fetch_one(item: tuple[str, Entry]) -> None:
        path = folder / item[0]
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomic(path, push.read(objects, *item))  # another may read or bring the same

    with ThreadPoolExecutor(_AT_ONCE) as pool:
        list(pool.map(fetch_one, files.items()))
    if ledger is not None:
        write_atomic(folder / LEDGER, ledger)


def _bring_up_to_date(objects: Objects, files: dict[str, Entry], ledger: bytes | None, folder: Path) -> bool:
    """Replace what differs, when what is stored follows what is here."""
    own = contents.Folder(folder).entries()
    here = contents.ledger_of(folder)
    if ledger is None:
        ledger = push.read(objects, LEDGER, files[LEDGER]) if LEDGER in files else b""
    stored = ledger
    changed = {name: entry for name, entry in files.items() if name != LEDGER and own.get(name) != entry}
    raw = [name for name in changed if name.startswith(contents.RAW) and name in own]
    if here.startswith(stored) and len(here) > len(stored) and not raw:
        return False
    if not stored.startswith(here) or raw:
        raise AnotherRunError(
            f"{folder} and {objects.address} are two runs of one name, or one was changed; move the folder"
        )
    if not changed and here == stored:
        return False
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".") as part:
        _write(objects, changed, stored, Path(part))
        # The ledger last: it names what the others hold.
        for name in (*changed, LEDGER):
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.move(str(Path(part, name)), str(folder / name))
    return True
