"""List prices: a dated table, and Azure's Retail Prices API where it can be reached.

The API is public: no account and no token. Its answers win, price by price; what it does not answer comes
from `data/reference/prices.csv`, whose rows tell what was read and what is inferred. A region that the table
lacks takes the dearest price of the others, and says so.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import date
from functools import cache
from pathlib import Path
from typing import Any

from diskbook.facts.errors import DiskbookError
from diskbook.facts.files import read_table as read
from diskbook.facts.paths import REFERENCE

HOURS_A_MONTH = 730  # Azure's month, by which it bills disks for hours
TABLE = "dated table data/reference/prices.csv"

# Unit in which each kind of price is given.
UNITS = {
    "vm-linux": "1 Hour",
    "vm-windows": "1 Hour",
    "disk": "1/Month",
    "mount": "1/Month",
    "operations": "10K",
    "burst-enablement": "1/Month",
    "burst-transactions": "10K",
    "v2-capacity": "1 GiB/Hour",
    "v2-iops": "1/Hour",
    "v2-mb-s": "1/Hour",
    "ultra-capacity": "1 GiB/Hour",
    "ultra-iops": "1/Hour",
    "ultra-mb-s": "1/Hour",
    "public-ip": "1 Hour",
    "witness": "1 GB/Month",
}

_FAMILIES = {"P": "Premium SSD", "E": "Standard SSD", "S": "Standard HDD"}
_FLEXIBLE = {"v2": ("Azure Premium SSD v2", "Premium LRS"), "ultra": ("Ultra Disks", "Ultra LRS")}
_PARTS = {"capacity": "Capacity", "iops": "IOPS", "mb-s": "Throughput (MBps)"}


@dataclass(frozen=True, order=True)
class Meter:
    """What is priced: a `kind` of UNITS and a name, e.g. ("disk", "P30 LRS") or ("vm-linux", a size)."""

    kind: str
    name: str

    def __str__(self) -> str:
        return self.name if self.kind.startswith("vm-") else f"{self.kind} {self.name}"


@dataclass(frozen=True)
class Price:
    """US dollars for one unit. `quality` is "read", "inferred" or "live"; `as_of` None where not known."""

    meter: Meter
    usd: float
    quality: str
    as_of: date | None
    note: str = ""

    @property
    def unit(self) -> str:
        """The unit, as the API writes it."""
        return UNITS[self.meter.kind]

    @property
    def usd_per_hour(self) -> float:
        """Dollars an hour, for what is billed by time."""
        return self.usd / HOURS_A_MONTH if self.unit.endswith("/Month") else self.usd


@dataclass(frozen=True)
class PriceList:
    """Prices of a region with their source in words, and what had to be said about them."""

    region: str
    source: str
    prices: Mapping[Meter, Price]
    notes: tuple[str, ...] = ()

    def of(self, kind: str, name: str) -> Price | None:
        """The price of a meter, None where none is known."""
        return self.prices.get(Meter(kind, name))


# The table


@cache
def table() -> dict[str, dict[Meter, Price]]:
    """Read the dated table: prices by region.

    Raises DiskbookError where a row is not what it must be; a wrong price is worse than none.
    """
    return read_table(REFERENCE / "prices.csv")


def read_table(path: Path) -> dict[str, dict[Meter, Price]]:
    """Read a table of prices; each row is checked."""
    known: dict[str, dict[Meter, Price]] = {}
    for line, row in read(_Row, path):
        try:
            price = row.price()
        except (KeyError, ValueError) as error:
            raise DiskbookError(f"{path.name}, line {line}: {error}; mend the row") from None
        prices = known.setdefault(row.region, {})
        if price.meter in prices:
            raise DiskbookError(f"{path.name}, line {line}: {price.meter.name} is priced twice")
        prices[price.meter] = price
    return known


@dataclass(frozen=True)
class _Row:
    """A row of the table."""

    region: str
    kind: str
    name: str
    unit: str
    usd: str
    quality: str
    as_of: date | None
    source: str
    read_on: date
    note: str

    def price(self) -> Price:
        """The price; KeyError or ValueError where what is said of it cannot be."""
        if self.unit != UNITS[self.kind]:
            raise ValueError(f"{self.kind} is priced by {UNITS[self.kind]}, not by {self.unit}")
        if self.quality not in ("read", "inferred"):
            raise ValueError(f"quality is read or inferred, not '{self.quality}'")
        if not self.source or not self.region or not self.name:
            raise ValueError("region, name and source may not be empty")
        return Price(Meter(self.kind, self.name), dollars(self.usd), self.quality, self.as_of, self.note)


def dollars(value: Any) -> float:
    """Read an amount; ValueError where it is none."""
    usd = float(value)
    if isinstance(value, bool) or not math.isfinite(usd) or usd <= 0:
        raise ValueError(f"'{value}' is not a price")
    return usd


def from_table(region: str, meters: Iterable[Meter], known: Mapping[str, dict[Meter, Price]]) -> PriceList:
    """Prices of a region out of a table; what it lacks takes the dearest of the other regions."""
    priced, elsewhere = {}, []
    for meter in meters:
        price = known.get(region, {}).get(meter) or _dearest(meter, known)
        if price is not None:
            priced[meter] = price
            elsewhere += [str(meter)] if meter not in known.get(region, {}) else []
    dates = [price.as_of for price in priced.values() if price.as_of]
    when = f", prices of {min(dates)} to {max(dates)}" if dates else ""
    notes = []
    if elsewhere:
        names = ", ".join(sorted(set(elsewhere)))
        notes.append(f"no price of {region} for {names}: the dearest of the other regions is taken")
    return PriceList(region, f"{TABLE}{when}", priced, tuple(notes))


def _dearest(meter: Meter, known: Mapping[str, dict[Meter, Price]]) -> Price | None:
    rows = [(prices[meter], region) for region, prices in known.items() if meter in prices]
    if not rows:
        return None
    price, region = max(rows, key=lambda row: row[0].usd)
    return replace(price, quality="inferred", note=f"price of {region}")


def product_and_meter(meter: Meter) -> tuple[str, str]:
    """productName and meterName of everything but machines, as the API spells them.

    Those of bursting are from Microsoft's page on disk billing, those of a witness's storage account are
    general knowledge; none was seen in an answer of the API.
    """
    if meter.kind == "witness":
        return "General Block Blob v2", f"{meter.name} Data Stored"
    if meter.kind == "public-ip":
        return "IP Addresses", f"{meter.name} IPv4 Static Public IP"
    family, _, part = meter.kind.partition("-")
    if family in _FLEXIBLE:
        product, sku = _FLEXIBLE[family]
        return product, f"{sku} Provisioned {_PARTS[part]}"
    if family == "burst":
        return "Premium SSD Managed Disks", f"{meter.name} Burst {part.capitalize()}"
    ending = {"disk": "Disk", "mount": "Disk Mount", "operations": "Disk Operations"}[meter.kind]
    return f"{_FAMILIES[meter.name[0]]} Managed Disks", f"{meter.name} {ending}"
