"""Predicted caps beside those that others saw, as a table of docs/how-to/choose.md (`make format`).

A cap is a hit within 5 %. What is seen comes from data/reference/public.
"""

import csv
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import pyarrow.parquet

from checks import markdown
from diskbook.choose import candidates
from diskbook.choose.need import Need
from diskbook.facts import catalog, paths
from diskbook.facts.units import KIB, MB, MIB

PAGE = paths.ROOT / "docs/how-to/choose.md"
_HIT = 0.05
_PUBLIC = paths.REFERENCE / "public"


class Row(NamedTuple):
    """A cap that somebody saw, and what is predicted for it; None where the tables have no limit."""

    dataset: str
    what: str
    unit: str
    seen: float
    predicted: float | None

    @property
    def verdict(self) -> str:
        """hit, miss, or that no limit is known."""
        if self.predicted is None:
            return "miss: no limit is documented"
        return "hit" if abs(self.seen / self.predicted - 1) <= _HIT else "miss"


def rows() -> Iterator[Row]:
    """All caps of the public data sets that a known machine and disk explain."""
    yield from _aks()
    disk = candidates.parsed("D4s_v3+E10")
    reads = [
        float(row["iops"])
        for row in _read("cloud-storage-bench-2026")
        if row["operation"] == "read" and row["block_size_bytes"] == "65536" and int(row["threads"]) >= 4
    ]
    predicted = _burst(disk, 64 * KIB)
    yield Row(
        "cloud-storage-bench-2026", "E10 on D4s_v3, 64 KiB reads", "IOPS", float(np.median(reads)), predicted
    )
    for size in ("D16s_v3", "E16s_v3", "F16s_v2", "DS5_v2", "DS14_v2", "DS14", "GS4"):
        local = [
            float(row["requests_per_s"]) * 32 * KIB / MB
            for row in _read("cockroach-2019")
            if row["vm_size"] == f"Standard_{size}" and row["threads"] == "64"
        ]
        limit = catalog.vm_size(f"Standard_{size}").cached_mb_s
        yield Row(
            "cockroach-2019", f"local disk of {size}, 32 KiB writes", "MB/s", float(np.median(local)), limit
        )


def _aks() -> Iterator[Row]:
    """A 128 GiB Premium OS disk (inferred), whose host cache answers reads."""
    table = pyarrow.parquet.read_table(_PUBLIC / "aks-fio-2022" / "table.parquet").to_pandas()
    for size in ("D2s_v4", "D4s_v4", "D8s_v4"):
        own = table[(table["vm_size"] == f"Standard_{size}") & (table["access"] != "randrw")]
        writes, reads = own[own["operation"] == "write"], own[own["operation"] == "read"]
        disk = candidates.parsed(f"{size}+P10")
        small = float(writes.loc[writes["block_size"] == "8k", "iops"].median())
        yield Row("aks-fio-2022", f"P10 on {size}, 8 KiB writes", "IOPS", small, _burst(disk, 8 * KIB))
        large = float(writes.loc[writes["block_size"] == "256k", "mib_s"].median()) * MIB / MB
        predicted = _burst(disk, 256 * KIB) * 256 * KIB / MB
        yield Row("aks-fio-2022", f"P10 on {size}, 256 KiB writes", "MB/s", large, predicted)
        cached = float(reads.loc[reads["block_size"] == "256k", "mib_s"].median()) * MIB / MB
        limit = catalog.vm_size(f"Standard_{size}").cached_mb_s
        yield Row("aks-fio-2022", f"cached reads on {size}, 256 KiB", "MB/s", cached, limit)


def _burst(candidate: candidates.Candidate, block_bytes: int) -> float:
    """IOPS that a candidate lets through while it has credit."""
    single = np.ones(1)
    need = Need(single, single * block_bytes / MB, single, 100)
    return min(limit.burst * limit.lasting_iops / limit.base for limit in candidate.held(need))


def _read(name: str) -> Iterator[dict[str, str]]:
    with (_PUBLIC / name / "table.csv").open(newline="", encoding="utf-8") as file:
        yield from csv.DictReader(file)


def table() -> str:
    """Tabulate what others saw and what the tables predict, and count the hits."""
    cells = [
        (row.dataset, row.what, f"{row.seen:,.0f} {row.unit}", _predicted(row), row.verdict) for row in rows()
    ]
    hits = sum(cell[-1] == "hit" for cell in cells)
    drawn = markdown(("data set", "what", "seen", "predicted", ""), cells)
    return f"{drawn}\n\n{hits} of {len(cells)} are hits: within {100 * _HIT:.0f} % of what was predicted."


def _predicted(row: Row) -> str:
    return "unknown" if row.predicted is None else f"{row.predicted:,.0f} {row.unit}"
