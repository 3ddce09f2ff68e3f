"""Where a batch looks for its runs: among those of this machine, or in the store where workers keep them."""

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from diskbook.batch import status
from diskbook.batch.batch_run import Item
from diskbook.batch.stores import fetch
from diskbook.batch.stores.address import Address
from diskbook.facts.errors import DiskbookError
from diskbook.report.analysis import report as reports
from diskbook.results.run import Run

_AT_ONCE = 8
_WANTED = {"manifest.json", "plan.json", "comparisons.csv", "headline.txt", status.REPORT}
"""What says how far a run is, what it cost and what it answers: a thousand runs of this fit a laptop."""


class Shelf(Protocol):
    """Where the runs of a batch are."""

    def run_of(self, item: Item) -> Run:
        """The run of an item, whether or not it has begun."""

    def look(self, item: Item) -> status.Standing:
        """How far it is."""


class Here:
    """Runs of this machine."""

    def run_of(self, item: Item) -> Run:
        return status.run_of(item)

    def look(self, item: Item) -> status.Standing:
        return status.of(item)


@dataclass(frozen=True)
class Stored:
    """Runs in a store; `folder` gets of each what says how far it is, and its report."""

    store: Address
    folder: Path

    def run_of(self, item: Item) -> Run:
        return Run(self.folder / item.name)

    def look(self, item: Item) -> status.Standing:
        """See `Shelf`: finished is what is whole in the store."""
        run = self.run_of(item)
        stored = fetch.fetch_part(self.store / item.name, run.folder, _WANTED.__contains__)
        if not stored.number and run.folder.exists():
            raise DiskbookError(f"{self.store / item.name} is gone; restore it, or remove {run.folder}")
        standing = status.of(item, run)
        is_cut = standing.state == status.State.FINISHED and stored.complete is None
        return replace(standing, state=status.State.CUT) if is_cut else standing


def looks(shelf: Shelf, items: Iterable[Item]) -> list[status.Standing | DiskbookError]:
    """Look at many runs side by side, since a store answers slowly; what is damaged comes as its error."""

    def one(item: Item) -> status.Standing | DiskbookError:
        try:
            return shelf.look(item)
        except DiskbookError as error:
            return error

    with ThreadPoolExecutor(_AT_ONCE) as pool:
        return list(pool.map(one, items))


def report_of(run: Run) -> Path:
    """Where the report of a run is, once it has one."""
    return run.folder / status.REPORT


def answer_of(run: Run) -> str:
    """Answer of a finished run in one sentence, or why it cannot be read."""
    try:
        return reports.headline(run)
    except DiskbookError as error:
        return f"no answer: {error}"
