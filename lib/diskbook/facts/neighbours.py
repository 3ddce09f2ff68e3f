"""What the core asks of its neighbours: the one table of modules that it imports by name, when it asks.

The core never imports a neighbour. It asks `clusters` only where a scenario has clusters, volumes, fleets,
losses or failover tests, or a run holds their results. It asks a reader only for an imported run, and a
store only for a run that lies in one.

`LazyTable` holds objects that are named as text and imported on first use.
"""

from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Any

from diskbook.facts.errors import UsageError

EXTRA = ("adlfs", "dask", "distributed", "fsspec")
"""Packages of the extra `cluster` (pyproject.toml)."""


def imported(where: str, what: str) -> Any:
    """Import the object that a line of a table names, such as `diskbook.cli.run:run`, or a module.

    Each kind has one such table: commands, clouds, tools, analyses of scenarios, checks of scenarios.

    - `where`: module and object, with a colon between them.
    - `what`: what needs it, for the message: "the command batch".

    Raises UsageError if a package is missing.
    """
    module, _, name = where.partition(":")
    try:
        loaded = import_module(module)
    except ModuleNotFoundError as error:
        raise lacking(error, what) from error
    return getattr(loaded, name) if name else loaded


class LazyTable(Mapping[str, Any]):
    """A table of objects, each imported when it is first asked for.

    - `rows`: where each object is, by name, as for `imported`.
    - `kind`: what the objects are, for messages: "tool".
    """

    def __init__(self, rows: Mapping[str, str], kind: str) -> None:
        self._rows, self._kind = rows, kind

    def __getitem__(self, name: str) -> Any:
        return imported(self._rows[name], f"the {self._kind} {name}")

    def __iter__(self) -> Iterator[str]:
        return iter(self._rows)

    def __len__(self) -> int:
        return len(self._rows)


def lacking(error: ModuleNotFoundError, what: str) -> UsageError:
    """Say which package is missing, and how to install it."""
    package = (error.name or "a package").partition(".")[0]
    how = "pip install -e '.[cluster]'" if package in EXTRA else "run 'make setup'"
    return UsageError(f"{what} needs {package}, which is not installed: {how}")


class Neighbour:
    """A module of a neighbour, or "module:object"; it is imported when something of it is first asked for."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        return getattr(imported(self._name, "this"), name)


imported_trials = Neighbour("diskbook.importing.raw")
"""Trials of an imported run, read from its raw files."""
imported_limits = Neighbour("diskbook.importing.named_limits")
"""What is said of the limits of an imported run."""
imported_why = Neighbour("diskbook.importing.why")
"""What holds the cells of an imported run, by limits that are named with the question."""
real_answers = Neighbour("diskbook.importing.answers.questions")
"""What public measurements of real Azure answer."""
seen_caps = Neighbour("diskbook.importing.answers.seen")
"""Caps that others saw, by VM size."""
stores = Neighbour("diskbook.batch.stores.fetch")
"""Copies of runs in stores, and the folders that killed fetches have left."""
stored_runs = Neighbour("diskbook.batch.stored")
"""Runs that are kept in a store while they are worked on."""
catalogue = Neighbour("diskbook.batch.catalogue.read")
"""The rows of the runs of a folder or store."""
catalogue_join = Neighbour("diskbook.batch.catalogue.join")
"""A finished run's joining the catalogue."""
shared_runs = Neighbour("diskbook.sharing.shared")
"""Runs that others shared with everybody."""
bundles = Neighbour("diskbook.sharing.bundle")
"""Files of shared runs."""
bundled_runs = Neighbour("diskbook.sharing.take")
"""How such a file becomes a run."""
recording = Neighbour("diskbook.sharing.recording")
"""Recorders of a run's exchanges with Azure."""
choice = Neighbour("diskbook.choose.ask")
"""Machines and disks that carry a load."""
volume_rules = Neighbour("diskbook.clusters.design.rules")
"""Rules of clusters, volumes, fleets and losses, and what these are in words."""
volume_limits = Neighbour("diskbook.clusters.stats.volume_setups")
"""Limits of volumes, documented and measured."""
volume_tables = Neighbour("diskbook.clusters.tables")
"""What the tables of a run on volumes have besides."""
volume_cost = Neighbour("diskbook.clusters.cost")
"""What clusters, volumes and losses take and cost."""
volume_steps: Any = Neighbour("diskbook.clusters.measure.steps:STEPS")
"""Steps around trials on volumes (`measure.bench.steps.Steps`)."""
drill_steps: Any = Neighbour("diskbook.clusters.measure.failover:STEPS")
"""Steps of a scenario on disks with failover tests."""
vmfleet: Any = Neighbour("diskbook.clusters.vmfleet:TOOL")
"""The tool that runs one load on many machines at once (`tools.protocol.Tool`)."""
vmfleet_results = Neighbour("diskbook.clusters.vmfleet.table")
"""Formats of its results, and names of its files."""

CLAIMS = ("diskbook.clusters.analysis.claims_s2d", "diskbook.clusters.analysis.claims_nested")
"""Modules whose `JUDGES` judge claims of articles; others are in `report.analysis.published_claims`."""
