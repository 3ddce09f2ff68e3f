"""The results of a fleet as VMFleet leaves them: DiskSpd's XML of each machine, and its tables, zipped."""

import io
import json
import math
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime

from diskbook.clusters.vmfleet import names
from diskbook.design.diskspd_line.arguments import Arguments, with_target
from diskbook.facts.units import MS_PER_S, NS_PER_MS
from diskbook.tools.record import Direction, percentile_ns
from diskbook_emulator import windows_xml
from diskbook_emulator.fleet_fio import Member, Outcome

TIMES = "fleet.json"
_WORDS = {"read": "Read", "write": "Write"}
_SHARES = {"50": 0.5, "90": 0.9, "99": 0.99}
Row = dict[str, float]


def archive(
    line: Arguments, spec: str, members: Sequence[Member], outcomes: Mapping[str, Outcome], began: datetime
) -> bytes:
    """Pack the results of a fleet.

    Parameters
    ----------
    line
        What each machine did.
    spec
        Names the results.
    members, outcomes
        The machines, and what they measured.
    began
        When DiskSpd would have been started.

    Notes
    -----
    Of VMFleet's columns that of the processors is left out: it is none of what fio measured. DiskSpd's own
    results have it.
    """
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as files:
        for member in members:
            own = with_target(line, str(member.file))
            measured = outcomes[member.name].measured
            text = windows_xml.document(own, member.disk.size_bytes, measured, began, member.name)
            files.writestr(names.result_file(line, spec, member.name), text)
        rows = {name: _row(outcome) for name, outcome in outcomes.items()}
        results = {name: names.result_file(line, spec, name).removesuffix(".xml") for name in rows}
        named = [({"Result": results[name]}, row) for name, row in rows.items()]
        files.writestr(f"result-vm-{spec}.tsv", _table(named))
        files.writestr("result.tsv", _table([({"VMCount": str(len(rows))}, _sum(list(rows.values())))]))
        files.writestr(TIMES, json.dumps({"vms": _times(members, outcomes)}, indent=1))
    return packed.getvalue()


def _times(members: Sequence[Member], outcomes: Mapping[str, Outcome]) -> dict[str, dict[str, str]]:
    return {
        member.name: {
            "volume": member.volume,
            "node": member.node,
            "started_utc": _iso(outcomes[member.name].started_ms),
            "ended_utc": _iso(outcomes[member.name].ended_ms),
        }
        for member in members
    }


def _iso(ms: int) -> str:
    return datetime.fromtimestamp(ms / MS_PER_S, UTC).isoformat(timespec="milliseconds")


def _row(outcome: Outcome) -> Row:
    """Columns of a machine; a direction without I/O has zeros, as in VMFleet's tables."""
    parts = {word: outcome.measured.total.directions.get(name) for name, word in _WORDS.items()}
    row = {"IOPS": sum(part.iops for part in parts.values() if part)}
    row |= {f"Average{word}IOPS": part.iops if part else 0.0 for word, part in parts.items()}
    row |= {f"Average{word}BW": part.bw_bytes if part else 0.0 for word, part in parts.items()}
    for word, part in parts.items():
        row |= _latencies(word, part)
    return row


def _latencies(word: str, part: Direction | None) -> Row:
    levels = percentile_ns(part.bins, *_SHARES.values()) if part else [0.0] * len(_SHARES)
    at = zip(_SHARES, levels, strict=True)
    row = {f"{word}Milliseconds{share}": level / NS_PER_MS for share, level in at}
    mean = part.lat_mean_ms if part else 0.0
    return {**row, f"Average{word}Milliseconds": 0.0 if math.isnan(mean) else mean}


def _sum(rows: Sequence[Row]) -> Row:
    """All machines together as VMFleet has it: rates add up, mean latencies are weighted by them, and
    percentiles are means over machines (which are no percentiles of anything)."""
    whole: Row = {}
    for column in rows[0]:
        values = [row[column] for row in rows]
        whole[column] = sum(values)
        if column.startswith("Average") and column.endswith("Milliseconds"):
            rates = [row[column.removesuffix("Milliseconds") + "IOPS"] for row in rows]
            weighted = sum(value * rate for value, rate in zip(values, rates, strict=True))
            whole[column] = weighted / sum(rates) if sum(rates) else 0.0
        elif "Milliseconds" in column:
            whole[column] /= len(rows)
    return whole


def _table(rows: Sequence[tuple[dict[str, str], Row]]) -> str:
    return "".join(f"{line}\r\n" for line in _lines(rows))


def _lines(rows: Sequence[tuple[dict[str, str], Row]]) -> Iterator[str]:
    """Lines as Export-Csv writes them: everything is quoted."""
    names, columns = rows[0]
    yield "\t".join(f'"{name}"' for name in (*names, *columns))
    for labels, row in rows:
        values = [*labels.values(), *(f"{value:.6g}" for value in row.values())]
        yield "\t".join(f'"{value}"' for value in values)
