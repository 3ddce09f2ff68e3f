"""`diskbook import --dataset azure-vm-noise-2024`: the components of `data/reference`, computed again.

What is computed is defined in `spreads`. How the table was made is not known to the last detail, so numbers
may differ for that reason alone; both are printed.
"""

import csv
import math
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, fields
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from diskbook.facts import noise_series
from diskbook.facts.errors import DiskbookError, UsageError, visible
from diskbook.facts.noise_series import Component, Share
from diskbook.facts.table_writers import csv_text
from diskbook.facts.units import percent
from diskbook.importing.noise import dataset_files as files, spreads as stats_noise
from diskbook.importing.noise.dataset_files import Cell, Dataset, Overlaps
from diskbook.importing.noise.spreads import Spread
from diskbook.results import run as runs

NAME = "azure-vm-noise-2024"
PROVENANCE = "azure, imported"
DIFFERENCES = "differences.csv"
LICENCE = "CC-BY-4.0"
LEAST_RUNS = 100
"""Fewer runs make no components."""
MOST_LINES = 12
NOT_COMPUTED = (
    "not computed: level shifts, correlations of two disks, pairs derived from them (fresh VMs have other "
    "numbers in each test)"
)
UNCHECKED = (
    "not checked: layout, columns and units follow the dataset's page and the first rows of its files; "
    "beyond that this was tried on generated files alone"
)


@dataclass(frozen=True)
class Recomputed:
    """Components and shares as computed from files, and what was learnt of the files on the way."""

    components: tuple[Component, ...]
    shares: tuple[Share, ...]
    n_files: int
    n_runs: int
    units: dict[str, int]
    overlaps: Overlaps
    notes: tuple[str, ...]


def run(folder: str, name: str | None) -> str:
    """Recompute the tables from a folder, write them, and say what came of it.

    Raises UsageError for a name that is taken. Raises DiskbookError for files that cannot be used.
    """
    target = runs.folder_of(name or runs.new_name("azure-noise"))
    if target.exists():
        raise UsageError(f"{visible(str(target))} exists already; choose another --name")
    made = recompute(Path(folder))
    differences = compare(
        [*made.components, *made.shares], [*noise_series.components(), *noise_series.shares()]
    )
    write(made, differences, target)
    return text(made, differences, target)


def recompute(folder: Path, seed: int = 1) -> Recomputed:
    """Compute components and shares of every cell below a folder.

    Raises UsageError, DiskbookError for a folder or a file that cannot be used, or too few runs for anything.
    """
    dataset = files.find(folder)
    rng, units, notes = np.random.default_rng(seed), dict[str, int](), list[str]()
    tests = {key: _runs(dataset, key, units, notes) for key in dataset.files}
    components: list[Component] = []
    shares: list[Share] = []
    for cell in dict.fromkeys(cell for cell, _ in tests):
        series = _usable(cell, tests, notes)
        if series:
            spreads, rates = _of_cell(series, rng)
            notes += [f"{cell}: no two runs share a day"] * (not spreads)
            dated = _dated(series.values())
            components += _components(cell, spreads, dated)
            shares += _shares(cell, [*rates, *_levels(cell, series)], dated)
    if not components:
        raise DiskbookError(f"{visible(str(folder))}: {'; '.join(notes)}; nothing can be computed")
    n_runs = sum(len(frame) for frame in tests.values())
    n_files = sum(len(part) for part in dataset.files.values())
    spans = _overlaps(tests)
    return Recomputed(tuple(components), tuple(shares), n_files, n_runs, units, spans, tuple(notes))


def _usable(
    cell: Cell, tests: dict[tuple[Cell, str], pd.DataFrame], notes: list[str]
) -> dict[str, pd.DataFrame]:
    """Runs of a cell on long-lived and on fresh machines, where there are enough; notes what is left out."""
    series = {}
    for life, words in (("long", "long-lived"), ("short", "fresh")):
        frame = tests.get((cell, life))
        if frame is None:
            notes.append(f"{cell}: no file of {words} machines")
        elif len(frame) < LEAST_RUNS:
            notes.append(f"{cell}: {len(frame)} runs, of {LEAST_RUNS} that it takes, of {words} machines")
        else:
            series[life] = frame
    return series


def _overlaps(tests: dict[tuple[Cell, str], pd.DataFrame]) -> Overlaps:
    """Count overlaps of runs of long-lived machines, all tests of a size and region together."""
    together: dict[tuple[str, str], list[pd.DataFrame]] = {}
    for (cell, life), frame in tests.items():
        if life == "long":
            together.setdefault((cell.size, cell.region), []).append(frame)
    counts = [files.overlaps(frames) for frames in together.values()]
    return Overlaps(*(sum(numbers) for numbers in zip((0, 0, 0), *counts, strict=True)))


def _runs(dataset: Dataset, key: tuple[Cell, str], units: dict[str, int], notes: list[str]) -> pd.DataFrame:
    """Rates of one cell; counts the unit of the latencies beside them, which are not used otherwise."""
    paths = dataset.files[key]
    rows = files.read(paths[files.RATE], dataset.shown(paths[files.RATE]))
    frame = rows.drop_duplicates()
    if len(frame) < len(rows):
        notes.append(f"{key[0]}: {len(rows) - len(frame)} rows that stand twice")
    beside = paths.get(files.LATENCY)
    if beside is not None and "aio" in key[0].operation:
        shown = dataset.shown(beside)
        unit = files.latency_unit(frame, files.read(beside, shown), shown)
        units[unit] = units.get(unit, 0) + 1
    return frame


def _of_cell(series: dict[str, pd.DataFrame], rng: np.random.Generator) -> tuple[list[Spread], list[Spread]]:
    """Components and shares of one cell."""
    spreads: list[Spread] = []
    rates: list[Spread] = []
    if "long" in series:
        data = stats_noise.series(series["long"])
        spreads += stats_noise.long_components(data, rng)
        rates += stats_noise.long_shares(data)
    if "short" in series:
        data = stats_noise.series(series["short"], fresh=True)
        within = next((spread for spread in spreads if spread.name == "run"), None)
        spreads += stats_noise.fresh_components(data, rng, within)
        rates += stats_noise.fresh_shares(data, rng)
    finite, known = ([item for item in part if math.isfinite(item.value)] for part in (spreads, rates))
    return finite, known


def _levels(cell: Cell, series: dict[str, pd.DataFrame]) -> Iterator[Spread]:
    """Median rate, and what a burstable machine's credit leaves of the disk's limit."""
    rate = next(iter(series.values()))["rate"].to_numpy(float)
    yield Spread("median-iops", None, float(np.median(rate)), math.nan, math.nan, len(rate))
    if cell.operation != "seqread-64k-aio-qd64" or not cell.size.startswith("B"):
        return
    for life, word in (("long", "long"), ("short", "fresh")):
        if life in series:
            mb_s = series[life]["rate"].to_numpy(float) * 65536 / 1e6
            at_cap, at_floor = np.abs(mb_s / 203.9 - 1) < 0.01, (mb_s >= 51) & (mb_s <= 57)
            events = {"at-cap": at_cap, "at-floor": at_floor, "between": ~at_cap & ~at_floor}
            yield from (stats_noise.poisson(f"{name}-{word}", event) for name, event in events.items())


def _dated(frames: Iterable[pd.DataFrame]) -> dict[str, Any]:
    ends = [frame["end"] for frame in frames]
    first, last = min(end.min() for end in ends), max(end.max() for end in ends)
    return {
        "source": f"{NAME} ({PROVENANCE})",
        "licence": LICENCE,
        "measured_from": first.date(),
        "measured_to": last.date(),
        "read_on": date.today(),
        "note": "",
    }


def _components(cell: Cell, spreads: list[Spread], dated: dict[str, Any]) -> list[Component]:
    kind = _kind(cell, spreads)
    rows = []
    for spread in spreads:
        ends = (_rounded(spread.value), _rounded(spread.low), _rounded(spread.high))
        rows.append(Component(*cell, kind, spread.name, spread.hours, *ends, spread.n, **dated))
    return rows


def _kind(cell: Cell, spreads: list[Spread]) -> str:
    """What a cell shows: a limit where runs hardly vary, else what its load and place let it show."""
    run = {spread.name: spread.value for spread in spreads}
    if run.get("run", run.get("fresh-robust", math.inf)) < noise_series.ON_CAP_SD:
        return "cap"
    if "sync-buffered" in cell.operation:
        return "page cache"
    if "aio" in cell.operation:
        return "credit" if cell.size.startswith("B") else "cap"
    return "latency" if cell.place == "remote" else "latency, cached"


def _shares(cell: Cell, spreads: list[Spread], dated: dict[str, Any]) -> list[Share]:
    units = {"median-iops": "1/s", "skewness": "1", "excess-kurtosis": "1"}
    return [
        Share(
            *cell,
            spread.name,
            units.get(spread.name, "share"),
            _rounded(spread.value),
            None if math.isnan(spread.low) else _rounded(spread.low),
            None if math.isnan(spread.high) else _rounded(spread.high),
            spread.n,
            **dated,
        )
        for spread in spreads
    ]


def _rounded(value: float) -> float:
    """Four digits: no interval is that sharp; zero stays zero."""
    return 0.0 if abs(value) < 1e-9 else float(f"{value:.4g}")


# Beside the table


def compare(new: Iterable[Component | Share], old: Iterable[Component | Share]) -> pd.DataFrame:
    """Set what was computed beside the table; rows that one of them lacks have no value there.

    Returns columns cell, what, hours, computed, low, high, table, table_low, table_high, differs.
    """
    table = {_key(row): row for row in old}
    rows = []
    for row in new:
        computed, other = _numbers(row), table.get(_key(row))
        printed = _numbers(other) if other is not None else (math.nan,) * 3
        operation, place, size, region, what = row.key[:5]
        on_cap = isinstance(row, Component) and max(computed[0], printed[0]) < noise_series.ON_CAP_SD
        contradict = other is not None and not on_cap and stats_noise.differs(computed, printed)
        hours = row.hours if isinstance(row, Component) else None
        cell = str(Cell(operation, place, size, region))
        rows.append((cell, what, hours, *computed, *printed, contradict))
    names = ("computed", "low", "high", "table", "table_low", "table_high", "differs")
    return pd.DataFrame(rows, columns=["cell", "what", "hours", *names])


def _key(row: Component | Share) -> tuple[Any, ...]:
    return (type(row).__name__, *row.key)


def _numbers(row: Component | Share) -> tuple[float, float, float]:
    if isinstance(row, Component):
        return row.sd_log, row.ci_low_log, row.ci_high_log
    ends = (math.nan if end is None else end for end in (row.ci_low, row.ci_high))
    return (row.value, *ends)  # type: ignore[return-value]


# What is written and said


def write(made: Recomputed, differences: pd.DataFrame, folder: Path) -> None:
    """Write both tables, as `diskbook.facts.noise_series` reads them, and where they differ.

    Raises DiskbookError when nothing can be written there.
    """
    try:
        folder.mkdir(parents=True)
        for name, rows in ((noise_series.COMPONENTS, made.components), (noise_series.SHARES, made.shares)):
            with (folder / name).open("w", encoding="utf-8", newline="") as file:
                writer = csv.DictWriter(file, [item.name for item in fields(rows[0])], lineterminator="\n")
                writer.writeheader()
                writer.writerows(asdict(row) for row in rows)
        (folder / DIFFERENCES).write_text(csv_text(differences), "utf-8")
    except OSError as error:
        why = error.strerror or str(error)
        raise DiskbookError(f"cannot write to {visible(str(folder))}: {why}; choose another --name") from None


def text(made: Recomputed, differences: pd.DataFrame, folder: Path) -> str:
    """What was computed, what of the files is not as their page says, and where the table differs."""
    cells = len({row.key[:4] for row in made.components})
    known = differences[differences["table"].notna()]
    other = known[known["differs"]]
    spans = made.overlaps
    lines = [
        f"{NAME}, provenance {PROVENANCE}: {made.n_files} files, {made.n_runs:,} runs, {cells} cells",
        f"starttime is taken as the end of a run: as ends {spans.as_ends} of {spans.runs:,} runs of "
        f"long-lived machines overlap the run before, as starts {spans.as_starts} the next",
        *(f"msec holds {unit} in {n} files of the aio tests" for unit, n in made.units.items()),
        *(f"left out: {note}" for note in made.notes),
        NOT_COMPUTED,
        f"{len(known)} of {len(differences)} numbers stand in data/reference too; {len(other)} differ "
        "(neither value in the other's interval; by 10 % where there is none)",
        *(f"  {_difference(row)}" for row in other.head(MOST_LINES).to_dict("records")),
        *([f"  and {len(other) - MOST_LINES} more, in {DIFFERENCES}"] if len(other) > MOST_LINES else []),
        UNCHECKED,
        f"written: {visible(str(folder))}/{noise_series.COMPONENTS}, {noise_series.SHARES}, {DIFFERENCES}",
    ]
    return "\n".join(lines)


def _difference(row: dict[Any, Any]) -> str:
    hours = "" if row["hours"] is None or math.isnan(row["hours"]) else f" {row['hours']:g} h"
    form = ".3g"
    value = f"{row['computed']:{form}} here, {row['table']:{form}} in the table"
    if row["what"] in noise_series.WORDS:
        value = f"{percent(row['computed'])} here, {percent(row['table'])} in the table"
    return f"{row['cell']}: {row['what']}{hours}: {value}"
