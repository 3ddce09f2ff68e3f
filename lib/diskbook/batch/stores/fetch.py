"""From a store into a folder: a run as it was when it was last whole, or as far as it has come."""

import contextlib
import hashlib
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from diskbook.batch.stores import address as addresses, contents, lease, push, record as records
from diskbook.batch.stores.objects import Objects, open_objects
from diskbook.batch.stores.record import LEDGER, Entry, State
from diskbook.facts import files as own_files, paths
from diskbook.facts.errors import DiskbookError, UsageError, visible

Check = Callable[[Path], None]
"""Raises DiskbookError for a folder that is not a run."""
_AT_ONCE = 8
_PART, _LOCK = ".diskbook-fetch-", ".lock"


class AnotherRunError(DiskbookError):
    """The folder and the stored run of its name have grown apart."""


def cached(address: addresses.Address | str, check: Check = lambda folder: None) -> Path:
    """Folder with a run as it was when it was last whole, fetched unless it is here already.

    Raises UsageError when there is no run of that address, or none that has ever been whole. Raises
    DiskbookError when what is stored is damaged, or no run to `check`.
    """
    address = addresses.run(address) if isinstance(address, str) else address
    objects, state = _read(address)
    if state.complete is None:
        who = f"{visible(state.holder)} works on it" if state.holder else "it was cut off"
        raise UsageError(
            f"{address} is not whole yet ({who}); 'diskbook fetch --unfinished {address}' brings the part"
        )
    place = hashlib.sha256(str(address.parent).encode()).hexdigest()[:16]
    folder = paths.CACHE / "runs" / place / f"{state.complete.number:08}" / address.name
    if not folder.exists():
        _fetch(objects, state.complete.files, None, folder, check)
    return folder


def fetch(
    address: addresses.Address, folder: Path, unfinished: bool = False, check: Check = lambda folder: None
) -> bool:
    """Bring a run into a folder, or one that is there up to date.

    - `folder`: its folder; one that is there must be an earlier or later state of the same run.
    - `unfinished`: as far as it has come, also where it is not whole.
    - `check`: called with the run's manifest, ledger and new files, before any of it gets into `folder`.

    Returns whether anything was fetched; what is here may be further on than what is there.

    Raises UsageError when there is no such run, or it is not whole and that was not asked for. Raises
    AnotherRunError when the folder holds another run. Raises DiskbookError when what is stored is damaged, or
    no run to `check`.
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
        return _bring_up_to_date(objects, files, ledger, folder, check)
    _fetch(objects, files, ledger, folder, check)
    return True


def fetch_part(address: addresses.Address, folder: Path, belongs: Callable[[str], bool]) -> State:
    """Bring the ledger of a run and a part of its files, as far as it has come.

    - `folder`: where to; it then is not a whole run, and nothing resumes it. Not made where there is no run
      yet.
    - `belongs`: whether a file belongs to the part, by its path.

    Returns all that is stored.
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


def _read(address: addresses.Address) -> tuple[Objects, State]:
    objects = open_objects(address)
    state = lease.read(objects).state
    if not state.number:
        raise UsageError(f"there is no run at {address}; 'diskbook verify {address.parent}' lists the runs")
    return objects, state


def left() -> list[Path]:
    """Folders that fetches were writing in when they were killed."""
    parents = [paths.runs_root(), *(paths.CACHE / "runs").glob("*/*")]
    parts = (path for parent in parents for path in parent.glob(f"{_PART}*"))
    return [path for path in parts if not path.is_symlink() and not own_files.is_locked(path / _LOCK)]


@contextlib.contextmanager
def _part_of(folder: Path) -> Iterator[Path]:
    """Make a folder to fetch a run into, on the same file system, where `left` finds it."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    place = paths.runs_root()
    if not os.access(place, os.W_OK) or place.stat().st_dev != folder.parent.stat().st_dev:
        place = folder.parent
    busy = DiskbookError(f"another process fetches {folder.name}; try again")
    with tempfile.TemporaryDirectory(dir=place, prefix=_PART) as part:
        with own_files.locked(Path(part, _LOCK), busy):
            whole = Path(part, folder.name)
            whole.mkdir()
            yield whole


def _checked(whole: Path, address: addresses.Address, check: Check) -> None:
    try:
        check(whole)
    except DiskbookError as error:
        why = str(error).replace(str(whole), str(address))
        raise DiskbookError(f"nothing of {address} was fetched: {why}") from None


def _fetch(
    objects: Objects, files: Mapping[str, Entry], ledger: bytes | None, folder: Path, check: Check
) -> None:
    """Make a folder that is whole when it appears."""
    with _part_of(folder) as whole:
        _write(objects, files, ledger, whole)
        _checked(whole, objects.address, check)
        try:
            whole.rename(folder)
        except OSError:
            if not folder.exists():  # else another process was quicker
                raise


def _write(objects: Objects, files: Mapping[str, Entry], ledger: bytes | None, folder: Path) -> None:
    records.check_tree([*files, LEDGER] if ledger is not None else files, objects.address)

    def fetch_one(item: tuple[str, Entry]) -> None:
        path = folder / item[0]
        path.parent.mkdir(parents=True, exist_ok=True)
        own_files.write_atomic(path, push.read(objects, *item))  # another may read or bring the same

    with ThreadPoolExecutor(_AT_ONCE) as pool:
        list(pool.map(fetch_one, files.items()))
    if ledger is not None:
        own_files.write_atomic(folder / LEDGER, ledger)


def _bring_up_to_date(
    objects: Objects, files: dict[str, Entry], ledger: bytes | None, folder: Path, check: Check
) -> bool:
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
    records.check_tree({*own, *files, LEDGER}, objects.address)
    with _part_of(folder) as part:
        _write(objects, changed, stored, part)
        if contents.MANIFEST not in changed:
            shutil.copy2(folder / contents.MANIFEST, part)
        _checked(part, objects.address, check)
        # The ledger last: it names what the others hold.
        for name in (*changed, LEDGER):
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.move(str(part / name), str(folder / name))
    return True
