"""The catalogue's tables: columns with their units in the names, and the schema's number in each file."""

from collections.abc import Mapping

import pyarrow as pa

from diskbook.design import schema as of_runs

SCHEMA = 1
"""Goes up where a column goes or means something else: such files are then old, and said to be."""
_KEY = b"diskbook.report.catalogue"
_TYPES = {
    "str": pa.string(),
    "int64": pa.int64(),
    "float64": pa.float64(),
    "datetime64[us, UTC]": pa.timestamp("us", "UTC"),
}
_UTC = _TYPES["datetime64[us, UTC]"]
_OF = [pa.field("run", pa.string(), False), pa.field("entry", pa.string(), False)]
"""In every table: the run, and which of its states a row is of; rows of one state belong together."""


def _texts(*names: str) -> list[pa.Field]:
    return [pa.field(name, pa.string()) for name in names]


def _columns(table: of_runs.Table) -> list[pa.Field]:
    """Columns of a run's own table, but those that every table of the catalogue has."""
    return [
        pa.field(column.name, _TYPES[column.dtype])
        for column in table.columns
        if column.name not in ("run", "scenario")
    ]


def _table(*fields: pa.Field) -> pa.Schema:
    return pa.schema([*_OF, *fields], metadata={_KEY: str(SCHEMA).encode()})


RUNS = _table(
    *_texts("version", "title", "question", "preset", "provenance", "site", "cloud", "region"),
    *_texts("physical_zones", "vm_sizes", "disk_skus", "profile", "state"),
    pa.field("stands", pa.bool_()),
    *(pa.field(f"{name}_utc", _UTC) for name in ("joined", "created", "first_trial", "last_trial")),
    *(pa.field(f"n_{name}", pa.int64()) for name in ("replicates", "trials")),
    *(pa.field(f"{name}_usd", pa.float64()) for name in ("expected", "worst")),
    *_texts("plan_sha256", "scenario_sha256", "manifest_sha256", "tool_versions", "kernels"),
    *_texts("answer", "report", "scenario_json", "manifest_json"),
)
"""A row a run. `state` is measured or unfinished; `stands`: something of it is on record as not torn down;
`answer` is empty before its analysis; `report` is its path from the folder of runs. `scenario_json` and
`manifest_json` are what `compare` and the site read of its manifest (`manifest.kept_of`)."""

COMPARISONS = _table(
    *_columns(of_runs.COMPARISONS),
    pa.field("closed", pa.bool_()),
    *_texts("missing"),
)
"""A row a comparison, direction and scope, as comparisons.csv has it. `closed`: no gate or other point of the
protocol is missing; `missing` names those that are; both are empty where the analysis wrote none."""

TRIALS = _table(*_columns(of_runs.TRIALS))
"""A row a trial and direction, as a run's trials.parquet has it."""

BINS = _table(*_columns(of_runs.BINS))
"""A row a bin of a trial's latency histogram, as a run's bins.parquet has it."""

TABLES: Mapping[str, pa.Schema] = {
    "comparisons": COMPARISONS,
    "trials": TRIALS,
    "bins": BINS,
    "runs": RUNS,
}
"""All tables by name; `runs` last, since a run counts from when its row is there."""


def number_of(schema: pa.Schema) -> int | None:
    """Number of the schema that a file was written with; None for a file of something else."""
    text = (schema.metadata or {}).get(_KEY, b"")
    return int(text) if text.isdigit() else None
