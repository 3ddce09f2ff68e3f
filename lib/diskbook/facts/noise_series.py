"""How much real Azure disks and machines vary: components of public series, read from `data/reference`.

Source: Azure VM Noise Dataset 2024 (Azure/AzurePublicDataset, CC-BY-4.0), 2023-05-28 to 2024-09-23, machines
Standard_D8s_v5 and Standard_B8ms in two regions; "remote" disks are Premium SSD v2, "local" ones Premium SSD.
All standard deviations are of natural logs, one value a run of 20 to 90 s.
"""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import date
from functools import cache
from pathlib import Path

from diskbook.facts.errors import DiskbookError
from diskbook.facts.files import Record, read_table as read
from diskbook.facts.paths import REFERENCE

COMPONENTS, SHARES, PLANNING, PAIRS = (
    f"azure-noise-{name}.csv" for name in ("components", "shares", "planning", "pairs")
)
ON_CAP_SD = 0.002
"""Standard deviation of runs (CV 0.2 %) below which a cell is a limit: its rate is not the disk's."""
PLANNED_SIZE = "D8s_v5"
LATENCY = "randread-8k-sync-qd1"
"""The one load whose rate is a latency: random reads of 8 KiB, one at a time."""

WORDS = {
    "run": "run within a machine's day",
    "run-robust": "run, robust, about the median of 25",
    "day": "day within a machine's week",
    "week": "week within a machine",
    "long-vm": "between long-lived machines",
    "fresh": "fresh machine with disk, same day",
    "fresh-robust": "fresh machine with disk, robust core",
    "fresh-less-run": "fresh machine with disk, less the run",
    "fresh-derived": "fresh machine with disk, less fast noise",
    "calendar-day": "calendar day, common to fresh machines",
    "apart": "two runs of one machine, some hours apart",
    "nugget": "run and all faster noise",
    "wander": "wander of one machine",
    "pair-ratio-derived": "log ratio of two disks of a fresh machine",
}
"""Components by key; docs/explanation/noise.md says what each is."""
KINDS = {
    "cap": "on a cap",
    "credit": "burst credit",
    "latency": "latency-bound",
    "latency, cached": "latency-bound, host cache likely",
    "page cache": "page cache and write-back",
}


@dataclass(frozen=True)
class Component:
    """A standard deviation of logs in one cell (load, place of the disk, size, region), with its interval.

    `hours` is the lag of "apart" and the time constant of "wander"; None elsewhere.
    """

    operation: str
    place: str
    size: str
    region: str
    kind: str
    component: str
    hours: float | None
    sd_log: float
    ci_low_log: float
    ci_high_log: float
    n: int
    source: str
    licence: str
    measured_from: date
    measured_to: date
    read_on: date
    note: str

    @property
    def key(self) -> tuple[str, str, str, str, str, float | None]:
        """What names the row."""
        return (self.operation, self.place, self.size, self.region, self.component, self.hours)


@dataclass(frozen=True)
class Share:
    """A share, rate, correlation or level of one cell; `unit` says of what. The interval may be missing."""

    operation: str
    place: str
    size: str
    region: str
    quantity: str
    unit: str
    value: float
    ci_low: float | None
    ci_high: float | None
    n: int | None
    source: str
    licence: str
    measured_from: date
    measured_to: date
    read_on: date
    note: str

    @property
    def key(self) -> tuple[str, str, str, str, str]:
        """What names the row."""
        return (self.operation, self.place, self.size, self.region, self.quantity)


@dataclass(frozen=True)
class Planning:
    """A spread of log ratios to plan with; `low_log` and `high_log` are its range, where one is known."""

    size: str
    quantity: str
    sd_log: float
    low_log: float | None
    high_log: float | None
    source: str
    licence: str
    measured_from: date
    measured_to: date
    read_on: date
    note: str

    @property
    def key(self) -> tuple[str, str]:
        """What names the row."""
        return (self.size, self.quantity)


@dataclass(frozen=True)
class Pairs:
    """Pairs for 80 % power at 5 %, two-sided; `pairs_high` is None where there is no upper end.

    "normal" rows follow from `sd_log`; "resampled" ones are drawn from the real runs of fresh machines.
    """

    case: str
    size: str
    sd_log: float | None
    method: str
    effect_pct: float
    pairs_low: int
    pairs_high: int | None
    source: str
    licence: str
    measured_from: date
    measured_to: date
    read_on: date
    note: str

    @property
    def key(self) -> tuple[str, str, float]:
        """What names the row."""
        return (self.case, self.size, self.effect_pct)


Row = Component | Share | Planning | Pairs


@cache
def components(path: Path = REFERENCE / COMPONENTS) -> tuple[Component, ...]:
    """Read the components; by default those of the public series, else of a folder made by an import."""
    return _rows(Component, path, _check_component)


@cache
def shares(path: Path = REFERENCE / SHARES) -> tuple[Share, ...]:
    """Read shares of slow runs, rates, correlations and levels."""
    return _rows(Share, path, lambda row: _in_order(row.ci_low, row.value, row.ci_high))


@cache
def planning() -> dict[tuple[str, str], Planning]:
    """Read the spreads to plan with, by size and quantity."""
    rows = _rows(Planning, REFERENCE / PLANNING, lambda row: _in_order(row.low_log, row.sd_log, row.high_log))
    return {row.key: row for row in rows}


@cache
def pairs() -> tuple[Pairs, ...]:
    """Read how many pairs a difference takes."""
    return _rows(
        Pairs, REFERENCE / PAIRS, lambda row: _in_order(row.pairs_low, row.pairs_low, row.pairs_high)
    )


def planned(quantity: str) -> float:
    """Spread to plan with, as s.d. of log ratios on Standard_D8s_v5, e.g. of "pair-core"."""
    return planning()[PLANNED_SIZE, quantity].sd_log


def attribution(rows: Iterable[Row]) -> str:
    """Source, licence and dates of rows in a sentence, as the licence asks for."""
    known = list(rows)
    sources = ", ".join(sorted({f"{row.source} ({row.licence})" for row in known}))
    first, last = min(row.measured_from for row in known), max(row.measured_to for row in known)
    return f"Source: {sources}, measured {first} to {last}"


def _rows(record: type[Record], path: Path, check: Callable[[Record], str]) -> tuple[Record, ...]:
    if not path.is_file():
        raise DiskbookError(
            f"{path} is missing; make it with `diskbook import --dataset`, or name its folder"
        )
    rows, keys = [], set()
    for line, row in read(record, path):
        problem = check(row) or _unsourced(row)
        key = row.key  # type: ignore[attr-defined]
        if key in keys:
            problem = f"{' '.join(str(part) for part in key)} stands twice"
        if problem:
            raise DiskbookError(f"{path.name}, line {line}: {problem}; mend the row")
        keys.add(key)
        rows.append(row)
    if not rows:
        raise DiskbookError(f"{path.name} is empty; it needs a row at least")
    return tuple(rows)


def _check_component(row: Component) -> str:
    if row.kind not in KINDS or row.component not in WORDS:
        return f"kind '{row.kind}' or component '{row.component}' is not known"
    if (row.hours is None) == (row.component in ("apart", "wander")):
        return "hours belong to apart and wander, and to them alone"
    return _in_order(row.ci_low_log, row.sd_log, row.ci_high_log) or (
        "" if row.ci_low_log >= 0 else "below 0"
    )


def _in_order(low: float | None, value: float, high: float | None) -> str:
    ends = (value if low is None else low, value, value if high is None else high)
    if not all(math.isfinite(end) for end in ends):
        return "not a number"
    return "" if ends[0] <= ends[1] <= ends[2] else "the value lies outside of its interval"


def _unsourced(row: object) -> str:
    named = row.source and row.licence  # type: ignore[attr-defined]
    ordered = row.measured_from <= row.measured_to  # type: ignore[attr-defined]
    return "" if named and ordered else "source, licence or dates are missing or out of order"
