"""Whether all of a store is as it was stored: each record follows the one before, each file has its hash."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from diskbook.batch.stores import lease, push, record as records
from diskbook.batch.stores.address import Address
from diskbook.batch.stores.objects import Objects, open_objects
from diskbook.facts.errors import DiskbookError, UsageError, visible

_AT_ONCE = 8


@dataclass
class Verified:
    """What a look at all of a run has shown."""

    name: str
    files: int = 0
    size: int = 0
    state: str = "whole"
    unused: int = 0
    faults: list[str] = field(default_factory=list)

    @property
    def words(self) -> str:
        """One line for the user, and one a fault."""
        unused = f", {self.unused} objects of copies that were cut off" if self.unused else ""
        verdict = f"{len(self.faults)} faults" if self.faults else "every hash agrees"
        line = f"{self.name}: {self.state}, {self.files} files, {self.size / 1e6:.1f} MB{unused}: {verdict}"
        return "\n".join([line, *(f"  {fault}" for fault in self.faults)])


def verify(place: Address) -> Iterator[Verified]:
    """Read all that is stored, run after run.

    - `place`: a store, or one run of it.

    Yields one a run.

    Raises UsageError when there is no run.
    """
    sizes = open_objects(place).names()
    own = [name for name in sizes if name.startswith(f"{records.FOLDER}/")]
    runs = {name.split("/")[0] for name in sizes if name.split("/")[1:2] == [records.FOLDER]}
    if not own and not runs:
        raise UsageError(f"there is no run at {place}; name a store that 'diskbook push' has made")
    if own:
        yield _run(open_objects(place), set(sizes))
        return
    for run in sorted(runs):
        names = {name.removeprefix(f"{run}/") for name in sizes if name.startswith(f"{run}/")}
        yield _run(open_objects(place / run), names)


def _run(objects: Objects, names: set[str]) -> Verified:
    result = Verified(visible(objects.address.name))
    log = lease.Log(objects)
    try:
        log.refresh()
    except DiskbookError as error:
        result.faults.append(str(error))
    lost = len([name for name in names if name.startswith(f"{records.FOLDER}/")]) - log.state.number
    if lost and not result.faults:
        record = records.name_of(log.state.number + 1)
        result.faults.append(f"{objects.address / record} is missing; restore it")
    entries = sorted(log.state.named, key=lambda item: (item[0], item[1].sha256))
    result.state = _state(log.state)
    result.files, result.size = len(entries), records.sizes(entry for _, entry in entries)
    result.unused = len(
        [name for name in names - {records.place_of(*item) for item in entries} if name.startswith("files/")]
    )

    def fault(item: tuple[str, records.Entry]) -> str | None:
        try:
            push.read(objects, *item)
        except DiskbookError as error:
            return str(error)
        return None

    with ThreadPoolExecutor(_AT_ONCE) as pool:
        result.faults += [text for text in pool.map(fault, entries) if text]
    return result


def _state(state: records.State) -> str:
    if state.holder:
        since = "whole before; " if state.complete else ""
        return f"{since}{visible(state.holder)} works on it"
    follows = state.complete is not None and state.complete.number < state.number and state.tail
    return "whole" if state.complete and not follows else "cut off"
