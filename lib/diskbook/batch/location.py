"""Where a batch runs and keeps its runs, as its file and the command line ask for it."""

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from diskbook.batch import dask_cluster
from diskbook.batch.dask_engine import DaskEngine
from diskbook.batch.engine import JOBS, Engine
from diskbook.batch.local import LocalEngine
from diskbook.batch.matrix import Matrix
from diskbook.batch.run_lookup import Here, Shelf, Stored
from diskbook.batch.stores import address
from diskbook.facts.errors import UsageError

LOCAL = "local"
NO_TLS = dask_cluster.Tls()
WORKERS = 2
"""Of a cluster of this machine: enough for one to go on where the other ends."""
PARTS = "runs"
"""Folder of a batch's folder: what is here of runs that are in a store."""


@dataclass(frozen=True)
class Place:
    """Where a batch runs, and where its runs are kept."""

    engine: str = LOCAL
    scheduler: str | None = None
    store: str | None = None
    tls: dask_cluster.Tls = NO_TLS

    def check(self) -> None:
        """Raise UsageError for what does not go together; nothing is asked of anybody."""
        if self.engine == LOCAL and (self.scheduler is not None or self.tls != NO_TLS):
            raise UsageError("a scheduler and its certificates go with --engine dask")
        if self.scheduler is None and self.tls != NO_TLS:
            raise UsageError("certificates are for a scheduler: name one with --scheduler tls://HOST:8786")
        if self.scheduler is not None and self.store is None:
            raise UsageError(
                "with a scheduler runs are kept in a store, by which they go on on another worker: name one "
                "with --store, for example abfs://CONTAINER/FOLDER"
            )
        if self.store is not None:
            address.parse(self.store)

    def shelf(self, folder: Path) -> Shelf:
        """Where the runs are looked for; `folder` is the batch's."""
        if self.engine == LOCAL or self.store is None:
            return Here()
        return Stored(address.parse(self.store), folder / PARTS)

    @property
    def warning(self) -> str:
        """What is to be said of a scheduler without TLS; empty where there is nothing."""
        asked = urlsplit(self.scheduler or "")
        if asked.scheme != "tcp" or asked.hostname in ("127.0.0.1", "localhost", "::1"):
            return ""
        return (
            f"{self.scheduler} has no TLS: whoever reaches it can run code on its workers "
            "(docs/how-to/cluster.md)"
        )


def of(
    matrix: Matrix,
    engine: str | None = None,
    scheduler: str | None = None,
    store: str | None = None,
    tls: dask_cluster.Tls | None = None,
) -> Place:
    """What the file asks for, but for what is given.

    Raises UsageError when that does not go together.
    """
    place = Place(
        engine or matrix.engine, scheduler or matrix.scheduler, store or matrix.store, tls or NO_TLS
    )
    place.check()
    return place


@contextlib.contextmanager
def opened(place: Place, matrix: Matrix, folder: Path) -> Iterator[Engine]:
    """Have the engine of a place for the length of a with block.

    Raises UsageError, DiskbookError when there is no cluster, or one of its workers cannot work; nothing is
    begun.
    """
    if place.engine == LOCAL:
        yield LocalEngine(folder, matrix.jobs, store=place.store)
        return
    jobs = matrix.jobs
    with dask_cluster.opening(place.scheduler):
        if place.scheduler is None:
            jobs = jobs or JOBS
            cluster = dask_cluster.here(min(jobs, WORKERS), jobs)
        else:
            cluster = dask_cluster.at(place.scheduler, place.tls)
    try:
        engine = DaskEngine(cluster, folder, place.store, jobs)
        engine.check(matrix.items)
        yield engine
    finally:
        cluster.close()
