"""Documented limits of VM sizes as a data set, a row per size, attachment and disk kind.

docs/reference/limits.md explains it.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache

from diskbook.facts import catalog

SCHEMA_VERSION = 1
PREMIUM, CACHED, FLEXIBLE = "premium_ssd", "premium_ssd_host_cache", "premium_ssd_v2_or_ultra"
# Further figures of a size's page stand in its note, in these words.
_NOTED = {
    (None, FLEXIBLE): r"Premium SSD v2 and Ultra: (\d+) IOPS, ([\d.]+) MB/s(?:, burst (\d+)/([\d.]+))?",
    (catalog.NVME, PREMIUM): r"with NVMe \(generation 2\): (\d+) IOPS/([\d.]+) MB/s, burst (\d+)/([\d.]+)",
    (catalog.NVME, FLEXIBLE): r"Premium SSD v2 and Ultra with NVMe (\d+)/([\d.]+), burst (\d+)/([\d.]+)",
}
_BASE = "limits with the SCSI controller"


@dataclass(frozen=True)
class Limit:
    """Limits of a size for all disks of a kind; None is unknown. docs/reference/limits.md has the columns."""

    schema_version: int
    size: str
    attachment: str
    disk_kind: str
    iops: int | None
    mb_s: float | None
    burst_iops: int | None
    burst_mb_s: float | None
    source: str
    licence: str
    read_on: str
    note: str


Figures = tuple[int | None, float | None, int | None, float | None]
_UNKNOWN: Figures = (None, None, None, None)


@cache
def all_limits() -> tuple[Limit, ...]:
    """Return the whole data set, in the order of the table of sizes."""
    return tuple(row for size in catalog.vm_sizes().values() for row in limits_of(size))


def limits_of(size: catalog.VmSize) -> tuple[Limit, ...]:
    """Return the rows of one size.

    A host cache has a row where the size has one. Premium SSD v2 and Ultra always have one, with empty
    figures where the page has no column of theirs.
    """
    noted, note = _noted(size.note)
    return tuple(
        _row(size, attachment, kind, figures, note)
        for attachment in size.attachments
        for kind, figures in _kinds(size, attachment, noted)
    )


@cache
def by_kind(size: str, attachment: str) -> dict[str, Limit]:
    """Return the limits of a size at one attachment, by kind of disk.

    Those of Premium SSD v2 and Ultra are Premium SSD's where unknown; without host cache its are empty.
    """
    rows = {row.disk_kind: row for row in limits_of(catalog.vm_size(size)) if row.attachment == attachment}
    if rows[FLEXIBLE].iops is None:
        rows[FLEXIBLE] = rows[PREMIUM]
    rows.setdefault(CACHED, replace(rows[PREMIUM], iops=None, mb_s=None, burst_iops=None, burst_mb_s=None))
    return rows


def _kinds(
    size: catalog.VmSize, attachment: str, noted: dict[tuple[str | None, str], Figures]
) -> Iterator[tuple[str, Figures]]:
    """Yield kinds of disk with their figures; the table's own are those of SCSI where a size has both."""
    second = attachment == catalog.NVME and catalog.SCSI in size.disk_controllers
    own = (size.uncached_iops, size.uncached_mb_s, size.uncached_burst_iops, size.uncached_burst_mb_s)
    yield PREMIUM, noted.get((catalog.NVME, PREMIUM), _UNKNOWN) if second else own
    if size.host_cache:
        yield CACHED, _UNKNOWN if second else (size.cached_iops, size.cached_mb_s, None, None)
    yield FLEXIBLE, noted.get((catalog.NVME if second else None, FLEXIBLE), _UNKNOWN)


def _noted(note: str) -> tuple[dict[tuple[str | None, str], Figures], str]:
    """Take the figures out of a note, and return what is left of it."""
    figures: dict[tuple[str | None, str], Figures] = {}
    left = []
    for part in filter(None, note.split("; ")):
        matches = {key: match for key, words in _NOTED.items() if (match := re.fullmatch(words, part))}
        figures |= {key: _figures(match) for key, match in matches.items()}
        if not matches and part != _BASE:
            left.append(part)
    return figures, "; ".join(left)


def _figures(match: re.Match[str]) -> Figures:
    iops, mb_s, burst_iops, burst_mb_s = match.groups()
    return (
        int(iops), float(mb_s), int(burst_iops) if burst_iops else None,
        float(burst_mb_s) if burst_mb_s else None,
    )  # fmt: skip


def _row(size: catalog.VmSize, attachment: str, kind: str, figures: Figures, note: str) -> Limit:
    pages = _pages(size, "cached_iops" if kind == CACHED else "uncached_iops")
    return Limit(
        SCHEMA_VERSION,
        size.name,
        attachment,
        kind,
        *figures,
        source="; ".join(page.source for page in pages),
        licence=", ".join(sorted({page.licence for page in pages})),
        read_on=size.read_on,
        note=note,
    )


def _pages(size: catalog.VmSize, column: str) -> list[catalog.SizeSource]:
    """Pages that a column was read on: those that name it, else the pages of the series."""
    pages = [source for key in size.source if (source := catalog.size_sources()[key]).kind != catalog.COPY]
    return [page for page in pages if column in page.columns] or [page for page in pages if not page.columns]


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
        lines.append(f"{place}, {_KINDS[row.disk_kind]}: {_figures_text(row)} [{number}]")
    lines.append("")
    for number, (source, licence, read_on) in enumerate(sources, 1):
        lines.append(f"[{number}] {source}; licence {licence}; read {read_on}")
    return "\n".join([*lines, *([f"Note: {rows[0].note}."] if rows[0].note else [])])


def _figures_text(row: Limit) -> str:
    if row.iops is None:
        return "unknown"
    base = f"{row.iops:,} IOPS, {row.mb_s:,g} MB/s"
    if row.burst_iops is None:
        return f"{base}, burst unknown"
    return f"{base}, burst {row.burst_iops:,} IOPS, {row.burst_mb_s:,g} MB/s"
