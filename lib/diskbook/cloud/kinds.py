"""The clouds that a run can use, by name, and one line of the doctor. Your own package may add a cloud.

It writes a subclass of `CloudKind`, and lists an instance under the entry point group `diskbook.clouds`::

    [project.entry-points."diskbook.clouds"]
    stack = "my_package.stack:STACK"

`diskbook run SCENARIO --cloud stack` then uses it. Its clients are those of the Azure SDK.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

from azure.core.exceptions import AzureError

from diskbook.cloud.azure import refusals
from diskbook.cloud.azure.clients import Clients, Cloud
from diskbook.design.model import Scenario
from diskbook.design.schedule import Block
from diskbook.design.vocabulary import Provenance
from diskbook.facts.errors import DiskbookError, UsageError, unknown
from diskbook.facts.neighbours import imported
from diskbook.results.run import Run


class State(StrEnum):
    """How a check came out."""

    OK = "ok"
    FAILS = "fails"
    NOT_ASKED = "not asked"  # what it rests on failed before


@dataclass(frozen=True)
class Check:
    """What was looked at; `text` is what was seen, or what is wrong with its remedy."""

    name: str
    state: State
    text: str


def look(name: str, ask: Callable[[], str]) -> Check:
    """Ask, and make a line of the answer, or of the error and its remedy."""
    try:
        return Check(name, State.OK, ask())
    except AzureError as error:
        return Check(name, State.FAILS, refusals.with_advice(error))
    except DiskbookError as error:
        return Check(name, State.FAILS, str(error))


def not_asked(names: Sequence[str], why: str) -> list[Check]:
    """Lines of what could not be asked."""
    return [Check(name, State.NOT_ASKED, why) for name in names]


CLOUDS = {
    "azure": "diskbook.measure.clouds:AZURE",
    "emulator": "diskbook.emulated.cloud:EMULATOR",
    "inventory": "diskbook.measure.clouds:INVENTORY",
}
"""Where each cloud of diskbook is."""
GROUP = "diskbook.clouds"
"""Entry points of other packages' clouds."""
NONE = "none"
"""Cloud of an imported run."""


@dataclass(frozen=True)
class Asked:
    """What the command line gave the doctor; the rest comes from the environment, as for a run."""

    subscription: str | None = None
    ssh_source: str | None = None
    max_cost_usd: float | None = None
    expires_h: float | None = None
    try_ssh: str | None = None


@dataclass(frozen=True)
class Leftover:
    """Something that a run has left on this computer; `goes` says that a sweep removes it."""

    text: str
    goes: bool
    remove: Callable[[], object] = field(repr=False)


@dataclass(frozen=True)
class Found:
    """Where a sweep looks for resource groups: clients by title, and notes on what it cannot look at."""

    places: Mapping[str, Clients]
    notes: tuple[str, ...] = ()


class CloudKind:
    """A cloud as a run, the doctor and the sweep use it. A subclass overrides what differs.

    By default there is nothing to start or stop, and nothing that a run leaves outside its resource groups.

    - `name`: value of `--cloud`, and the key of its settings in a manifest.
    - `provenance`: label of all results.
    - `is_local`: whether its machines use the cores of this computer.
    - `asks_azure`: whether the cloud itself decides which machine sizes exist.
    - `where`: what the doctor looked at, e.g. "on Azure".
    """

    name = NONE
    provenance = Provenance.AZURE
    is_local = False
    asks_azure = False
    where = ""

    def fitted(self, scenario: Scenario) -> Scenario:
        """Return the scenario as this cloud can run it; raise UsageError if it cannot."""
        return scenario

    def settings(self, asked: Mapping[str, Any], scenario: Scenario, folder: Path) -> dict[str, Any]:
        """Decide what a new run uses, for its manifest. Creates nothing.

        - `asked`: options of the command line that belong to this cloud.
        - `scenario`: the scenario, fitted.
        - `folder`: of the run; it need not exist yet.

        Raises UsageError if anything is missing or does not fit.
        """
        return dict(asked)

    def check(self, scenario: Scenario, settings: Mapping[str, Any]) -> None:
        """Raise UsageError if this cloud with these settings cannot measure the scenario."""

    def connect(self, run: Run) -> Cloud:
        """Return the endpoint and credential of a run; raise UsageError if there is none."""
        raise UsageError(f"run {run.name} uses no cloud")

    def start(self, run: Run, *, owner: bool) -> None:
        """Start what the run needs before any request; with `owner` it ends with this process."""

    def stop(self, run: Run) -> None:
        """End what `start` started, and remove what it has left."""

    def is_there(self, run: Run) -> bool:
        """Tell whether anything that `start` started still exists, running or dead."""
        return False

    def is_gone(self, run: Run) -> bool:
        """Tell whether the cloud itself has gone, and all machines and disks with it."""
        return False

    def blocks(self, run: Run, replicate: Mapping[str, Any], blocks: Iterable[Block]) -> Iterable[Block]:
        """Return the blocks of a replicate; a cloud with a clock of its own sets that before each."""
        return blocks

    def keep_truth(self, run: Run) -> None:
        """Write down what a simulated cloud played, for tests."""

    def doctor(self, scenario: Scenario, asked: Asked) -> list[Check]:
        """Check the prerequisites of a run."""
        raise UsageError(f"--cloud {self.name}: doctor has no checks for it; leave --cloud out")

    def find(self, *, must: bool, only: str | None = None) -> Found:
        """Find where runs may have left resource groups.

        - `must`: the user named this cloud: raise DiskbookError if it cannot be reached. Otherwise note it.
        - `only`: look at the emulator of this name only.
        """
        return Found({})

    def leftovers(self) -> Iterator[Leftover]:
        """Find what runs have left on this computer."""
        yield from ()


def names() -> list[str]:
    """Return the names of all clouds: those of diskbook, then those of other packages."""
    return [*CLOUDS, *(name for name in _entry_points() if name not in CLOUDS)]


def check(name: str) -> None:
    """Raise UsageError for a cloud that does not exist."""
    if name not in names():
        raise unknown("cloud", name, names())


def get(name: str) -> CloudKind:
    """Return the cloud of that name; raise UsageError if there is none, or it cannot be loaded."""
    check(name)
    kind: CloudKind = imported(CLOUDS.get(name) or _entry_points()[name], f"the cloud {name}")
    return kind


def every() -> list[CloudKind]:
    """Return all clouds."""
    return [get(name) for name in names()]


def of(run: Run) -> CloudKind:
    """Return the cloud of a run; an imported run has one that does nothing."""
    name = str(run.manifest["cloud"])
    if name == NONE:
        return CloudKind()
    if name not in names():
        raise DiskbookError(f"run {run.name} uses the cloud {name}: install the package that brings it")
    return get(name)


@cache
def _entry_points() -> dict[str, str]:
    return {point.name: point.value for point in metadata.entry_points(group=GROUP)}
