"""Where the catalogue lies, and the names of its files.

`RUNS/.catalogue/<table>/scenario=<name>/` holds `run-<hash of the run's name>.parquet`, written when that run
joined, and `many-<id>-<number>.parquet` of many runs, written by a rebuild. So no two runs share a file, a
run that joins again replaces its own, and the rows of a scenario are a partition, as pyarrow, DuckDB and Dask
read it.
"""

import hashlib
import os
from collections.abc import Collection
from pathlib import Path
from urllib.parse import quote

NAME = ".catalogue"
"""Hidden, so that nobody takes it for a run."""
OWN, MANY = "run", "many-"
LOCK = ".lock"
"""Locked while a rebuild is under way."""


def folder_of(runs: Path) -> Path:
    """Folder of the catalogue of a folder of runs; it is there from when the first run joins."""
    return runs / NAME


def partition(table: str, scenario: str) -> str:
    """Folder of a scenario's rows, below the catalogue's."""
    return f"{table}/scenario={quote(scenario, safe='')}"


def name_of(run: str) -> str:
    """Name of a run's own file: a name may hold what a file's may not."""
    return f"{OWN}-{hashlib.sha256(os.fsencode(run)).hexdigest()[:32]}.parquet"


def source_of(path: str) -> str:
    """What wrote a file: "run" for a run's own, else the id of the rebuild."""
    return Path(path).name.split("-")[1] if Path(path).name.startswith(MANY) else OWN


def files(
    folder: Path, table: str, scenario: str | None = None, runs: Collection[str] | None = None
) -> list[Path]:
    """Files of a table, of one scenario or all; of named runs their own, and those of many runs."""
    place = folder / partition(table, scenario) if scenario is not None else folder / table
    pattern = "*.parquet" if scenario is not None else "scenario=*/*.parquet"
    own = None if runs is None else {name_of(run) for run in runs}
    return sorted(
        path
        for path in place.glob(pattern)
        if not path.name.startswith(".") and (own is None or path.name in own or path.name.startswith(MANY))
    )
