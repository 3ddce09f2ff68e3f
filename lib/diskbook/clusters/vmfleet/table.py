"""Reader of VMFleet's tables (result.tsv, result-vm-*.tsv), where DiskSpd's own XML is not at hand.

A row of result.tsv is all machines together, one of result-vm-*.tsv a machine. Bandwidths are bytes a second.
Reads text, touches no file.
"""

import csv
import math
import re
from collections.abc import Mapping
from dataclasses import replace

from diskbook.clusters.vmfleet.archive import is_fleet, parse as parse_archive
from diskbook.clusters.vmfleet.fleet import join, machine
from diskbook.clusters.vmfleet.line import cell_and_machine, grouped, place_of, spec_of
from diskbook.facts.units import KIB
from diskbook.tools.record import Direction, Load, Measurement, Parsed, UnusableError, number

__all__ = [  # what imports use of fleets
    "cell_and_machine", "grouped", "is_fleet", "is_table", "join", "machine", "parse_archive", "parse_table",
    "place_of", "spec_of",
]  # fmt: skip

_NEEDED = {"IOPS", "AverageReadIOPS", "AverageWriteIOPS"}
_WORDS = {"read": "Read", "write": "Write"}
_MOST_COLUMNS = 200
_TOLD_NOT = "from VMFleet's table: numbers of I/Os, threads and depth are not told"
_TOLD_BY_NAME = (
    "from VMFleet's table: threads, depth and block size are those of its core workload of this name"
)
_CORE = {
    "general4k": Load("random", 4 * KIB, None, 1, 32),
    "peak4kread": Load("random", 4 * KIB, 0, 1, 32),
}
"""Core workloads of one target, as `Measure-FleetCoreWorkload` makes them (VMFleet.psm1); Vdi and Sql have
several targets, and go unnamed here."""
_MIXED = "general4k"
_WRITE_RATIO = re.compile(r"WriteRatio(\d{1,3})$")


def is_table(text: str) -> bool:
    """Whether the first line names VMFleet's columns."""
    first = text[:20_000].split("\n", 1)[0]
    return _NEEDED.issubset([name.strip().strip('"') for name in first.split("\t")][:_MOST_COLUMNS])


def parse_table(text: str, source: str) -> Parsed:
    """Read the rows of a table.

    Raises UnusableError when no row can be used; names the first line that cannot.
    """
    if not is_table(text):
        raise UnusableError(source, "its first line does not name VMFleet's columns", 1)
    measurements: list[Measurement] = []
    problems: list[tuple[int, str]] = []
    reader = csv.DictReader(text.splitlines(), delimiter="\t")
    try:
        for row in reader:
            try:
                measurements.append(_measurement({key: value for key, value in row.items() if key and value}))
            except ValueError as error:
                problems.append((reader.line_num, str(error)))
    except csv.Error as error:
        problems.append((reader.line_num + 1, f"the table is damaged ({error})"))
    if not measurements:
        where, why = problems[0] if problems else (2, "the table has no rows")
        raise UnusableError(source, why, where)
    flags = tuple(f"line {where}: {why}" for where, why in problems)
    return Parsed("diskspd", "unknown", "VMFleet table", tuple(measurements), flags)


def _measurement(row: Mapping[str, str]) -> Measurement:
    directions = {name: part for name in _WORDS if (part := _direction(row, name)) is not None}
    if not directions:
        raise ValueError("the row has no IOPS of reads or writes")
    machines = row.get("VMCount", "")
    workload = row.get("Workload", "")
    ratio = _WRITE_RATIO.search(workload)
    core = _CORE.get(_WRITE_RATIO.sub("", workload).lower(), Load())
    flags = [_TOLD_NOT if core.threads is None else _TOLD_BY_NAME]
    if workload.lower().startswith(_MIXED):
        flags.append("50 % of the I/Os were random, the others in a row")
    if machines.isdigit() and int(machines) > 1:
        flags.append(f"{int(machines)} machines together")
    qos = row.get("QOSperVM", "0")
    rate = number(qos, "QOSperVM") * max(1.0, number(machines or "1", "VMCount"))
    name = " ".join(row[key] for key in ("Workload", "RunType", "QOSperVM", "Result") if row.get(key))
    return Measurement(
        name=name[:200] or "row",
        target=row.get("Result", row.get("Workload", ""))[:200],
        load=replace(
            core,
            write_pct=min(int(ratio[1]), 100) if ratio else core.write_pct,
            rate=rate or None,
            instances=int(machines) if core.threads and machines.isdigit() and int(machines) > 1 else None,
        ),
        directions=directions,
        flags=tuple(flags),
    )


def _direction(row: Mapping[str, str], name: str) -> Direction | None:
    word = _WORDS[name]
    iops = number(row.get(f"Average{word}IOPS", "0"), f"Average{word}IOPS")
    if not iops:
        return None

    def told(column: str) -> float:
        # A table without latencies (-L) holds zeros.
        return number(row[column], column) or math.nan if column in row else math.nan

    return Direction(
        ios=math.nan,
        iops=iops,
        bw_bytes=told(f"Average{word}BW"),
        runtime_ms=math.nan,
        lat_mean_ms=told(f"Average{word}Milliseconds"),
        lat_p50_ms=told(f"{word}Milliseconds50"),
        lat_p99_ms=told(f"{word}Milliseconds99"),
    )
