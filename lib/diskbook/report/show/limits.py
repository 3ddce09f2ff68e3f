"""The documented limits of a VM size as text."""

from __future__ import annotations

from collections.abc import Sequence

from diskbook.facts.limits import CACHED, FLEXIBLE, PREMIUM, Limit

_KINDS = {
    PREMIUM: "Premium SSD, uncached",
    CACHED: "Premium SSD, host cache",
    FLEXIBLE: "Premium SSD v2 and Ultra",
}


def words(rows: Sequence[Limit]) -> str:
    """Return all rows of a size, then their sources and what else is known."""
    sources = list(dict.fromkeys((row.source, row.licence, row.read_on) for row in rows))
    lines = [f"{rows[0].size}: documented limits for all disks of the machine together.", ""]
    for row in rows:
        number = sources.index((row.source, row.licence, row.read_on)) + 1
        place = row.attachment or "attachment unknown"
        lines.append(f"{place}, {_KINDS[row.disk_kind]}: {_figures(row)} [{number}]")
    lines.append("")
    for number, (source, licence, read_on) in enumerate(sources, 1):
        lines.append(f"[{number}] {source}; licence {licence}; read {read_on}")
    return "\n".join([*lines, *([f"Note: {rows[0].note}."] if rows[0].note else [])])


def _figures(row: Limit) -> str:
    if row.iops is None:
        return "unknown"
    base = f"{row.iops:,} IOPS, {row.mb_s:,g} MB/s"
    if row.burst_iops is None:
        return f"{base}, burst unknown"
    return f"{base}, burst {row.burst_iops:,} IOPS, {row.burst_mb_s:,g} MB/s"
