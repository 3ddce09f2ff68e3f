"""Limits of VM sizes as files for others: data/limits, the documented ones and the caps that others saw.

`make format` writes them; a test compares their contents.
"""

from dataclasses import fields

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from diskbook.facts import paths
from diskbook.facts.limits import SCHEMA_VERSION, Limit, all_limits
from diskbook.importing.answers import seen

FOLDER = paths.ROOT / "data" / "limits"
CSV, PARQUET = FOLDER / "azure-vm-disk-limits.csv", FOLDER / "azure-vm-disk-limits.parquet"
SEEN = FOLDER / "azure-vm-caps-seen.csv"
_TYPES: dict[object, pa.DataType] = {
    int: pa.int32(),
    int | None: pa.int32(),
    float | None: pa.float64(),
    str: pa.string(),
}
_METADATA = {
    "schema_version": str(SCHEMA_VERSION),
    "licence": "selection: CC0-1.0; figures: as the column licence says",
    "description": "docs/reference/limits.md",
}


def csv_text() -> str:
    """Return the CSV file; what is unknown is empty, and 96.0 MB/s is written 96."""
    frame = table().to_pandas(integer_object_nulls=True)
    return str(frame.to_csv(index=False, float_format="%g", lineterminator="\n"))


def seen_text() -> str:
    """Return the caps that others saw as CSV; joined to the documented limits by `size`."""
    return str(
        pd.DataFrame(map(vars, seen.every())).to_csv(index=False, float_format="%g", lineterminator="\n")
    )


def table() -> pa.Table:
    """Return the data set as an Arrow table; what is unknown is null."""
    schema = pa.schema([(field.name, _TYPES[field.type]) for field in fields(Limit)], _METADATA)
    return pa.Table.from_pylist([vars(row) for row in all_limits()], schema)


def write() -> None:
    """Write all files; a Parquet file with the same content stays, since its bytes are its writer's."""
    FOLDER.mkdir(exist_ok=True)
    CSV.write_text(csv_text(), "utf-8")
    SEEN.write_text(seen_text(), "utf-8")
    if not PARQUET.is_file() or not pq.read_table(PARQUET).equals(table(), check_metadata=True):
        pq.write_table(table(), PARQUET, compression="zstd")
