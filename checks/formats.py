"""Formats x versions x {read, refused, why} as one table, for docs/reference/formats.md.

`make format` writes the page; a test tries every row and compares.
"""

from dataclasses import dataclass

from diskbook.facts import paths

PAGE = paths.ROOT / "docs" / "reference" / "formats.md"
READ, FLAGGED, REFUSED = "read", "read, with a remark", "refused"
COLUMNS = ("Format", "Versions", "Case", "What becomes of it", "Why, or with which remark")
_HEAD = """# What `diskbook import` reads

diskbook recognises a file by its content, never by its name, and unpacks `.gz`. It names each refused file in
one sentence, and imports the rest. Each row is a test (`tests/checks/test_formats.py`). `make format` writes
this page from `checks/formats.py`.

Any other table of results (CSV, TSV, Parquet, Excel) is read with `--columns`, which names the column of each
field ([Import results](../how-to/import.md) lists them). It is refused without a rate, a block size, or what
tells reads from writes. A row that is not a measurement is left out and named.

"""
_FIO_TEXT, _FIO_JSON, _FIO_LOG = "fio, normal text", "fio, JSON and json+", "fio, log"
_SPD_TEXT, _SPD_XML, _FLEET = "DiskSpd, text", "DiskSpd, XML", "VMFleet"
_SYSBENCH, _TABLE = "sysbench fileio, text", "table, with --columns"


@dataclass(frozen=True)
class Row:
    """A kind of file, and what becomes of it; `case` names the test's example."""

    format: str
    versions: str
    case: str
    outcome: str
    words: str = ""
    """What the sentence or the remark says, in part; empty where there is none."""


ROWS = (
    Row(_FIO_JSON, "2.2 to 3.4x", "json", READ),
    Row(_FIO_JSON, "before 2.2", "json without total_ios", FLAGGED, "the number of I/Os is IOPS x time"),
    Row(_FIO_JSON, "all", "json after other output", READ),
    Row(_FIO_JSON, "all", "json cut within a job", REFUSED, "the file is cut"),
    Row(_FIO_JSON, "all", "json of a job without I/O", REFUSED, "fio did no I/O"),
    Row(_FIO_JSON, "all", "json of unlike jobs reported as one", REFUSED, "other jobs were summed with it"),
    Row(_FIO_JSON, "all", "json of a job that only trims", REFUSED, "it only trims"),
    Row(_FIO_JSON, "3.20", "json written again without zeros", FLAGGED, "no latencies were recorded"),
    Row(_FIO_JSON, "all", "json with disable_lat", FLAGGED, "completion latency"),
    Row(_FIO_TEXT, "2", "text of fio 2", READ),
    Row(_FIO_TEXT, "2.0.8", "text with a bare version", READ),
    Row(_FIO_TEXT, "3", "text of fio 3", READ),
    Row(_FIO_TEXT, "2, 3", "text quoted and with Windows line ends", READ),
    Row(_FIO_TEXT, "2, 3", "text without its report", REFUSED, "ends before the first result"),
    Row("fio, terse", "2 to 5", "terse", READ),
    Row(_FIO_LOG, "3", "latency log", READ),
    Row(_FIO_LOG, "2.99 to 3", "histogram log", READ),
    Row(_SPD_TEXT, "2.0.12 to 2.2", "DiskSpd text", FLAGGED, "does not tell DiskSpd's version"),
    Row(_SPD_TEXT, "for Linux", "DiskSpd text for Linux", FLAGGED, "the time that was asked for"),
    Row(
        _SPD_TEXT, "all", "DiskSpd text, interrupted", REFUSED, "was interrupted before it measured anything"
    ),
    Row(_SPD_XML, "2.0.17", "DiskSpd XML 2.0.17", READ),
    Row(_SPD_XML, "2.2", "DiskSpd XML 2.2", READ),
    Row(_SPD_XML, "all", "DiskSpd XML without -L", FLAGGED, "no latencies were measured"),
    Row(_SPD_XML, "all", "DiskSpd XML of a missing file", REFUSED, ""),
    Row(_FLEET, "2", "VMFleet archive", READ),
    Row(_FLEET, "1, 2", "VMFleet table", FLAGGED, "core workload of this name"),
    Row("kubestr, JSON", "with fio 3.20", "kubestr JSON", FLAGGED, "no latencies were recorded"),
    Row("kubestr, JSON", "with fio 3.20", "kubestr JSON, cut", REFUSED, "damaged or cut"),
    Row("elbencho, CSV", "3.1-1", "elbencho CSV", FLAGGED, "neither read nor write are left out"),
    Row("elbencho, JSON", "3.1-1", "elbencho JSON", READ),
    Row("elbencho, CSV and JSON", "all", "elbencho CSV of two versions", REFUSED, "rows of several versions"),
    Row("elbencho, CSV and JSON", "all", "elbencho CSV of object storage", REFUSED, "which is no disk"),
    Row(_SYSBENCH, "1.0 to 1.0.20", "sysbench", READ),
    Row(_SYSBENCH, "0.4.12, 0.5", "sysbench before 1.0", READ),
    Row(_SYSBENCH, "all", "sysbench of two processes at once", FLAGGED, "its own events per thread"),
    Row(_SYSBENCH, "all", "sysbench with an fsync per 100", FLAGGED, "they are not measured for either"),
    Row(_SYSBENCH, "all", "sysbench that was ended", REFUSED, "ended before it printed a result"),
    Row(_SYSBENCH, "all", "sysbench prepare", REFUSED, "made its files here"),
    Row(_SYSBENCH, "all", "sysbench of another test", REFUSED, "no result of 'sysbench fileio run'"),
    Row("PerfKitBenchmarker, samples", "fio, DiskSpd", "PerfKitBenchmarker samples", READ),
    Row("PerfKitBenchmarker, samples", "others", "samples of another benchmark", REFUSED, "no sample of fio"),
    Row(_TABLE, "CSV, TSV, with ; or UTF-16", "CSV table", FLAGGED, "from a table of results"),
    Row(_TABLE, "Parquet of pyarrow 26", "Parquet table", FLAGGED, "from a table of results"),
    Row(_TABLE, "Excel .xlsx of openpyxl 3.1", "Excel table", FLAGGED, "from a table of results"),
    Row(_TABLE, "all", "table whose rows have no rate", REFUSED, "no row can be used"),
    Row("others", "", "Windows performance counters", REFUSED, "performance counters, which are not read"),
    Row("others", "", "zip archive", REFUSED, "unpack it first"),
    Row("others", "", "picture", REFUSED, "this is a picture"),
    Row("others", "", "HTML page", REFUSED, "XML, but no result of DiskSpd"),
    Row("others", "", "JSON of something else", REFUSED, "nor samples of PerfKitBenchmarker"),
    Row("others", "", "table without --columns", REFUSED, "if it is a table of results"),
    Row("others", "", "Parquet table without --columns", REFUSED, "a Parquet table"),
    Row("others", "", "any other text", REFUSED, "no format that is known here"),
    Row("others", "", "empty file", REFUSED, "the file is empty"),
)


def page() -> str:
    cells = [COLUMNS, ("---",) * len(COLUMNS), *map(_cells, ROWS)]
    return _HEAD + "".join(f"| {' | '.join(row)} |\n" for row in cells)


def _cells(row: Row) -> tuple[str, ...]:
    words = f'"... {row.words} ..."' if row.words else ""
    return row.format, row.versions, row.case, row.outcome, words
