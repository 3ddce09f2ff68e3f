"""From a run's folder into a store: what is new goes up under new names, then one record says so.

Nothing that is stored is replaced or removed. Raw results never change, and the ledger only grows; a folder
in which they did is refused. A copy that is cut off leaves objects that no record names, and readers see the
run as it was; made again, it sends only what is missing.
"""

import json
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from diskbook.batch.stores import contents, lease, record as records
from diskbook.batch.stores.address import Address
from diskbook.batch.stores.lease import Hold
from diskbook.batch.stores.objects import Objects, open_objects
from diskbook.batch.stores.record import LEDGER, Entry, State
from diskbook.facts.errors import DiskbookError, UsageError

_AT_ONCE = 8
_READS = 3  # times that a file is read whose hash does not fit: it may be the way's fault
_LARGEST_TAIL = 1_000_000  # bytes of ledger in one record


@dataclass(frozen=True)
class Pushed:
    """What a copy into a store has done."""

    address: Address
    files: int
    size: int
    sent: int
    whole: bool = True

    @property
    def words(self) -> str:
        state = (
            "whole" if self.whole else "unfinished, so read by 'run --resume' and 'fetch --unfinished' alone"
        )
        return f"{self.address}: {state}, {self.files} files, {self.size / 1e6:.1f} MB; {self.sent} sent now"


def push(folder: Path, store: Address, whole: bool = True) -> Pushed:
    """Copy a run into a store; readers see all of it or what was there before.

    - `store`: where its folder goes.
    - `whole`: whether it is finished: readers see it from then on.

    Raises DiskbookError when another works on it there, or it is not the run that is there.
    """
    address = store / _name(folder)
    objects = open_objects(address)
    hold = lease.claim(objects)
    try:
        if whole:
            return complete(hold, contents.Folder(folder))
        sent, files = store_all(hold, contents.Folder(folder)), hold.log.state.files
        release(hold)
        return Pushed(address, len(files), records.sizes(files.values()), sent, False)
    except BaseException:
        release(hold)
        raise


def complete(hold: Hold, folder: contents.Folder) -> Pushed:
    """Store all of a run that is owned, say that it is whole, and let go of it."""
    sent, objects = 0, hold.log.objects
    while True:
        sent += store_all(hold, folder)
        files, ledger = folder.entries(), contents.ledger_of(folder.path)
        stored = hold.log.state
        if len(ledger) != stored.ledger_size() or not files.items() <= stored.files.items():
            continue  # something has grown or changed meanwhile
        if ledger:
            files[LEDGER] = Entry.of(ledger)
            _send(objects, [LEDGER], {LEDGER: ledger}, folder, hold)
        if hold.append("complete", files=files):
            return Pushed(objects.address, len(files), records.sizes(files.values()), sent)


def store_all(hold: Hold, folder: contents.Folder) -> int:
    """Store what is new, also where that takes several records; return how many files were sent."""
    sent = 0
    while True:
        before = hold.log.state.number
        sent += store_new(hold, folder)
        if hold.log.state.number == before:
            return sent


def store_new(hold: Hold, folder: contents.Folder) -> int:
    """Store what is new in the folder of a run that is owned; return how many files were sent.

    Others may work on the run meanwhile. Manifest and ledger are stored as they were at one moment, and all
    raw results that the ledger names, which are written before it. Every other file is stored as it was when
    it was read, and again the next time if it has changed since.
    """
    manifest, ledger = folder.moment()
    state, files = hold.log.state, {**folder.entries(), contents.MANIFEST: Entry.of(manifest)}
    check_follows(state, files, ledger, hold.log.objects)
    changed = [name for name, entry in files.items() if state.files.get(name) != entry]
    sent = _send(hold.log.objects, changed, {contents.MANIFEST: manifest}, folder, hold)
    size = state.ledger_size()
    text = ledger[size:]
    if len(text) > _LARGEST_TAIL:
        cut = text.rfind(b"\n", 0, _LARGEST_TAIL)
        text = text[: (cut if cut >= 0 else text.index(b"\n")) + 1]
    if (sent or text) and not hold.append("state", files=sent, ledger_start=size, ledger=text.decode()):
        return store_new(hold, folder)
    return len(sent)


def check_follows(state: State, files: Mapping[str, Entry], ledger: bytes, objects: Objects) -> None:
    """Make sure that a folder is what is stored, and what came after it.

    Raises DiskbookError when the ledger was changed or is older, or a raw result is missing or another.
    """
    where = objects.address
    stored = ledger_of(state, objects)
    if stored.startswith(ledger) and len(stored) > len(ledger):
        raise UsageError(f"{where} is further on than this folder; 'diskbook fetch {where}' brings it here")
    if not ledger.startswith(stored):
        raise DiskbookError(f"{where} has another ledger: it is another run of that name, or one was changed")
    for name, entry in state.files.items():
        if name.startswith(contents.RAW) and files.get(name) != entry:
            what = "is another here" if name in files else "is missing here"
            raise DiskbookError(f"{where} has {name}, which {what}; raw results never change: restore it")


def ledger_of(state: State, objects: Objects) -> bytes:
    """The ledger as it is stored."""
    entry = state.files.get(LEDGER)
    if entry is None:
        return state.tail.encode()
    return read(objects, LEDGER, entry) + state.tail.encode()


def read(objects: Objects, name: str, entry: Entry) -> bytes:
    """Content of a stored file, which is what was stored.

    Raises DiskbookError when it is missing or larger, or its hash is another.
    """
    place = records.place_of(name, entry)
    for _ in range(_READS):
        try:
            content = objects.read(place, entry.size)
        except FileNotFoundError:
            raise DiskbookError(f"{objects.address / place} is missing; restore it") from None
        if entry.fits(content):
            return content
    raise DiskbookError(f"{objects.address / place} is not what was stored: its hash is another; restore it")


def release(hold: Hold) -> None:
    """Let go of a run that is owned, if that can be said; else its lease ends by itself."""
    try:
        hold.append("release")
    except DiskbookError:
        return


def _send(
    objects: Objects, names: Iterable[str], given: Mapping[str, bytes], folder: contents.Folder, hold: Hold
) -> dict[str, Entry]:
    """Store files as given, or as they are now; return the entries of what was stored."""

    def send(name: str) -> tuple[str, Entry] | None:
        try:
            entry, content = (Entry.of(given[name]), given[name]) if name in given else folder.read(name)
        except FileNotFoundError:
            return None
        place = records.place_of(name, entry)
        if not objects.create(place, content):
            raise DiskbookError(
                f"{objects.address / place} is there with other content; 'diskbook verify' names all such"
            )
        return name, entry

    sent = []
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        for stored in pool.map(send, names):
            hold.check()
            sent += [stored] if stored else []
    return dict(sent)


def _name(folder: Path) -> str:
    """Name of the run that lies in a folder: its manifest's, which is the folder's."""
    try:
        name = json.loads((folder / contents.MANIFEST).read_text("utf-8"))["run"]
    except (OSError, ValueError, KeyError, TypeError):
        raise UsageError(f"{folder} is not a run: it has no manifest.json that names one") from None
    if name != folder.resolve().name:
        raise UsageError(f"{folder} holds the run {name!r}: give the folder its name")
    return folder.resolve().name
