"""The files of the Azure VM Noise Dataset 2024: which there are, what is in them, and in which units.

    vm-noise-data/test_suite=Flexible_IO_Tester/test_name=Type:_Random_Read_-_IO_Engine:_Sync_-_Buffered:_Yes_-
    _Direct:_No_-_Block_Size:_8KB_-_Remote_Disk/vm_lifespan=long/vm_region=westus2/vm_sku=B8ms/unit=IOPS.csv
    value,runtime,starttime,VM_id
    1257.0,36.19,2023-05-28 20:34:39.410,0

Earlier revisions say vm_duration, vm_type and IOPS.csv; they are read alike. Two things are not as the
dataset's page has them: `starttime` is the end of the run (runs of one machine follow each other only that
way), and `msec` of the aio tests holds microseconds (64 in flight / 5,098 IOPS = 12.55 ms is "12550").
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from diskbook.facts.errors import DiskbookError, UsageError, visible

COLUMNS = ["value", "runtime", "starttime", "VM_id"]
RATE, LATENCY = "IOPS", "msec"
DEPTH = 64
"""I/Os in flight of the aio tests, which the dataset's page does not say: IOPS x latency is 64 throughout."""
MICROSECONDS, MILLISECONDS = 1e6, 1e3
_NEAR = 0.2
"""How far IOPS x latency may be from 64 in flight; runs whose credit ends within are off by more."""
_EARLIEST, _LATEST = pd.Timestamp("2000-01-01"), pd.Timestamp("2100-01-01")
_LONGEST_S = 24 * 3600
"""What lies beyond is a damaged row: runs of 2023 and 2024 take minutes."""
_PATTERN = re.compile(
    r"test_suite=Flexible_IO_Tester/test_name=Type:?_(?P<pattern>\w+?)_-_IO_Engine:?_(?P<engine>Linux_AIO|Sync)"
    r"_-_Buffered:?_(?:Yes|No)_-_Direct:?_(?:Yes|No)_-_Block_Size:?_(?P<block>\d+)KB_-_(?P<place>Remote|Local)"
    r"_Disk/(?:vm_lifespan|vm_duration)=(?P<life>long|short)/vm_region=(?P<region>\w+)/"
    r"(?:vm_sku|vm_type)=(?P<size>\w+)/(?:unit=)?(?P<unit>\w+)\.csv$"
)
_PATTERNS = {
    "Random_Read": "randread",
    "Random_Write": "randwrite",
    "Sequential_Read": "seqread",
    "Sequential_Write": "seqwrite",
}
LAYOUT = (
    "test_suite=Flexible_IO_Tester/test_name=.../vm_lifespan=.../vm_region=.../vm_sku=.../unit=IOPS.csv "
    "(Azure/AzurePublicDataset, vm-noise-data)"
)


class Cell(NamedTuple):
    """A test on a disk of a machine in a region, as the component table names it."""

    operation: str
    place: str
    size: str
    region: str

    def __str__(self) -> str:
        return f"{self.operation}, {self.place}, {self.size}, {self.region}"


@dataclass(frozen=True)
class Dataset:
    """Files by cell, by whether the machines were long-lived or fresh, and by unit."""

    files: dict[tuple[Cell, str], dict[str, Path]]
    root: Path

    def shown(self, path: Path) -> str:
        """Path of a file below the folder, in messages."""
        return visible(str(path.relative_to(self.root)))


def find(folder: Path) -> Dataset:
    """Find the dataset's files of fio below a folder.

    Raises UsageError when there is no such folder. Raises DiskbookError when it holds none, or two of one
    cell, or a cell that lacks its rates.
    """
    if not folder.is_dir():
        raise UsageError(f"there is no folder {visible(str(folder))}; give the folder with {LAYOUT}")
    dataset = Dataset({}, folder)
    for path in sorted(folder.rglob("*.csv")):
        match = _PATTERN.search(path.absolute().as_posix())
        if match is None or match["pattern"] not in _PATTERNS:
            continue
        cell = Cell(_operation(match), match["place"].lower(), match["size"], match["region"])
        units = dataset.files.setdefault((cell, match["life"]), {})
        if match["unit"] in units:
            raise DiskbookError(
                f"{cell} ({match['life']}) is there twice, as {dataset.shown(units[match['unit']])} and "
                f"{dataset.shown(path)}; keep one of the two revisions"
            )
        units[match["unit"]] = path
    _complete(dataset)
    return dataset


def _operation(match: re.Match[str]) -> str:
    engine = f"aio-qd{DEPTH}"
    if match["engine"] == "Sync":
        engine = "sync-qd1" if match["pattern"] == "Random_Read" else "sync-buffered"
    return f"{_PATTERNS[match['pattern']]}-{match['block']}k-{engine}"


def _complete(dataset: Dataset) -> None:
    if not dataset.files:
        raise DiskbookError(f"{visible(str(dataset.root))} holds no file of the dataset; it needs {LAYOUT}")
    for (cell, life), units in dataset.files.items():
        if RATE not in units:
            there = ", ".join(sorted(units))
            raise DiskbookError(f"{cell} ({life}): unit={RATE}.csv is missing beside {there}; fetch it too")


def read(path: Path, shown: str) -> pd.DataFrame:
    """Read one file into columns rate, runtime_s, end, middle and vm.

    Raises DiskbookError with the first thing that is wrong, and where.
    """
    try:
        frame = pd.read_csv(path, dtype=str, keep_default_na=False, encoding="utf-8")
    except pd.errors.EmptyDataError:
        raise DiskbookError(f"{shown} is empty; fetch it again") from None
    except (pd.errors.ParserError, UnicodeDecodeError, OSError) as error:
        raise DiskbookError(f"{shown} cannot be read as CSV ({error}); fetch it again") from None
    if list(frame.columns) != COLUMNS:
        if str(frame.columns[0]).startswith("version https://git-lfs"):
            raise DiskbookError(
                f"{shown} is a pointer of Git LFS, not the data; fetch it with `git lfs pull`"
            )
        names = visible(", ".join(map(str, frame.columns[:8])))
        raise DiskbookError(f"{shown}: columns are {names}; they must be {', '.join(COLUMNS)}")
    if frame.empty:
        raise DiskbookError(f"{shown} has no rows; fetch it again")
    end = pd.to_datetime(frame["starttime"], errors="coerce", format="ISO8601", utc=True).dt.tz_localize(None)
    value, runtime = (pd.to_numeric(frame[name], errors="coerce") for name in ("value", "runtime"))
    good = (end > _EARLIEST) & (end < _LATEST) & np.isfinite(value) & (value > 0)
    good &= (runtime >= 0) & (runtime < _LONGEST_S)
    good &= frame["VM_id"] != ""
    if not good.all():
        line = int(np.flatnonzero(~good.to_numpy(bool))[0])
        row = visible(",".join(frame.iloc[line].astype(str)))
        raise DiskbookError(
            f"{shown}, line {line + 2}: '{row}' is not a value above 0, runtime, time and VM; fetch it again"
        )
    middle = end - pd.to_timedelta(runtime / 2, unit="s")
    return pd.DataFrame(
        {"rate": value, "runtime_s": runtime, "end": end, "middle": middle, "vm": frame["VM_id"]}
    )


def latency_unit(rates: pd.DataFrame, latencies: pd.DataFrame, shown: str) -> str:
    """Unit that a msec file of an aio test is written in, by Little's law over the runs it shares with IOPS.

    Raises DiskbookError when one file mixes units.
    """
    both = rates.merge(latencies, on=["vm", "end"], suffixes=("", "_latency"))
    in_flight = (both["rate"] * both["rate_latency"] / DEPTH).to_numpy(float)
    counts = {
        unit: int((np.abs(np.log(in_flight / scale)) < _NEAR).sum())
        for unit, scale in (("microseconds", MICROSECONDS), ("milliseconds", MILLISECONDS))
    }
    if min(counts.values()) > 0:
        raise DiskbookError(
            f"{shown} mixes units: by IOPS x latency = {DEPTH} in flight {counts['microseconds']} rows hold "
            f"microseconds and {counts['milliseconds']} milliseconds; fetch it again, or leave it out"
        )
    unit = max(counts, key=lambda name: counts[name])
    return unit if counts[unit] > len(both) / 2 else "an unknown unit"


class Overlaps(NamedTuple):
    """Consecutive runs of long-lived machines, and how many overlap, by what `starttime` is taken for."""

    runs: int
    as_ends: int
    as_starts: int


def overlaps(tests: Iterable[pd.DataFrame], slack_s: float = 0.5) -> Overlaps:
    """Count runs that would overlap the next of their long-lived machine, of one number in all tests."""
    runs = pd.concat(list(tests)).sort_values(["vm", "end"], kind="stable")
    same = runs["vm"].to_numpy()[1:] == runs["vm"].to_numpy()[:-1]
    gap = np.diff(runs["end"].to_numpy()) / np.timedelta64(1, "s")
    seconds = runs["runtime_s"].to_numpy(float)
    return Overlaps(
        int(same.sum()),
        int((same & (seconds[1:] > gap + slack_s)).sum()),
        int((same & (seconds[:-1] > gap + slack_s)).sum()),
    )
