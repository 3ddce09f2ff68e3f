"""Caps that others saw on Azure, to stand beside the documented limits."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

import pandas as pd

from diskbook.facts import catalog
from diskbook.facts.quantities import many
from diskbook.facts.units import MB, MIB
from diskbook.importing import public

ON_CAP_THREADS = 16
NO_CAP = ("h16r", "gs4", "ds14-16sep")
"""Machines of `cockroach-2019` that were below their cap with 16 threads, or reached none."""


@dataclass(frozen=True)
class Seen:
    """A cap as others saw it.

    - `size`: VM size.
    - `what`: which of its disks, and how it was reached.
    - `rate`: the rate that was seen, in words.
    - `documented`: the limit that is documented for it; empty where none is known.
    - `machines`: number of machines; None where it is not told.
    - `date`, `source`: when, and by whom under which licence.
    """

    size: str
    what: str
    rate: str
    documented: str
    machines: int | None
    date: str
    source: str

    @property
    def words(self) -> str:
        """The cap as one line."""
        number = "unknown number of machines" if self.machines is None else many(self.machines, "machine")
        documented = f"documented: {self.documented or 'unknown'}"
        return f"seen by others: {self.what}: {self.rate}; {documented}; {number}, {self.date}; {self.source}"


def caps(size: str) -> tuple[Seen, ...]:
    """Return the caps that were seen on a VM size; none where nobody published any."""
    return tuple(item for item in every() if item.size == size)


@cache
def every() -> tuple[Seen, ...]:
    """Return all caps that were seen, as `data/limits` has them."""
    return (*_temporary_disks(), *_local_disks(), *_e10())


def _temporary_disks() -> Iterator[Seen]:
    table = public.table_of("cockroach-2019")
    on_cap = table[(table["threads"] == ON_CAP_THREADS) & ~table["arm"].str.startswith(NO_CAP)]
    for size, rows in on_cap.groupby("vm_size"):
        rates = rows["mib_per_s"] * MIB / MB
        yield Seen(
            str(size),
            f"temporary disk, writes with {ON_CAP_THREADS} threads",
            f"{rates.mean():.1f} MB/s ({rates.min():.1f} to {rates.max():.1f})",
            f"{catalog.vm_size(str(size)).cached_mb_s:,g} MB/s",
            rows["arm"].nunique(),
            ", ".join(sorted(rows["date"].unique())),
            _source("cockroach-2019"),
        )


def _local_disks() -> Iterator[Seen]:
    table = public.table_of("scylla-iotune")
    for row in table[table["state"] == "head"].to_dict("records"):
        parts = (
            f"{kind} {row[f'{kind}_iops']:,.0f} IOPS, {row[f'{kind}_bandwidth_bytes_s'] / MB:,.0f} MB/s"
            for kind in ("read", "write")
        )
        date = str(public.load("scylla-iotune").source["measured"])
        what = "all local NVMe disks together"
        yield Seen(row["size"], what, "; ".join(parts), "", None, f"date {date}", _source("scylla-iotune"))


def _e10() -> Iterator[Seen]:
    table = public.table_of("cloud-storage-bench-2026")
    rows = table[(table["workload"] == "read-64k-t16") & (table["arm"] == "e10-sweep")]
    rate = f"{pd.Series(rows['iops']).mean():.1f} IOPS"
    source = public.load("cloud-storage-bench-2026").source
    what = "E10 Standard SSD (100 GiB), reads with 16 threads"
    documented = f"{catalog.disk_limits('StandardSSD_LRS', 100).burst_iops:,.0f} IOPS in a burst"
    by = _source("cloud-storage-bench-2026")
    yield Seen("Standard_D4s_v3", what, rate, documented, 1, source["measured"], by)


def _source(name: str) -> str:
    source = public.load(name).source
    return f"{source['authors']} ({source['licence']}), data set {name}"
