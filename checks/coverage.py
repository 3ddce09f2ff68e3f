"""Check the intervals against simulated truth: `python -m checks.coverage`.

Simulates designs with a known overhead, puts them through the functions that the analysis uses, and prints
how many intervals cover the truth, how wide they are, and how often they see a difference where there is
none. `!` marks what is not as it is to be, `?` a known limit. Exit status 1 when intervals that are printed
without a flag cover less than 93 %, or without a reason more than 98 %, by more than three standard errors of
the simulation; or when nothing says why a condition is refused in more than 20 % of runs. `--docs FILE`
writes the tables of docs/explanation/coverage.md.
"""

import argparse
import contextlib
import functools
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

from checks import (
    coverage_attach,
    coverage_cells,
    coverage_docs,
    coverage_held,
    coverage_knee,
    coverage_limits,
    coverage_looks,
    coverage_noise,
    coverage_outlooks,
    coverage_percentiles,
    coverage_runs,
    coverage_stationarity,
)
from checks.coverage_rule import Row
from diskbook.facts.errors import UsageError


class Part(NamedTuple):
    """A part of the check: where its cells are, and simulated runs of each.

    The module has `cells`, `measure` and `TITLE`.
    """

    module: ModuleType
    runs: int
    quick_runs: int


RATIOS = "Ratios"
PARTS = {
    RATIOS: Part(coverage_cells, 10_000, 4_000),
    "Ratios under the noise of real machines": Part(coverage_noise, 4_000, 500),
    "Held rates": Part(coverage_held, 400, 80),
    "Percentile ratios": Part(coverage_percentiles, 1_000, 200),
    "Knees of curves over depths": Part(coverage_knee, 4_000, 2_000),
    "Runs beside runs": Part(coverage_runs, 4_000, 500),
    "Outlooks: share of runs in which a width that is said with 80 % comes true": Part(
        coverage_outlooks, 4_000, 500
    ),
    "The gate of stationarity": Part(coverage_stationarity, 1_000, 200),
    "Hidden limits": Part(coverage_limits, 160, 40),
    "Attach effects": Part(coverage_attach, 1_000, 200),
    "Planned looks": Part(coverage_looks, 4_000, 1_000),
}


@contextlib.contextmanager
def _mapping(jobs: int) -> Iterator[Callable[..., Iterable[list[Row]]]]:
    """`map`, over as many processes."""
    with contextlib.ExitStack() as stack:
        yield stack.enter_context(ProcessPoolExecutor(jobs)).map if jobs > 1 else map


def run_part(module: ModuleType, n_runs: int, *, quick: bool, seed: int, jobs: int) -> list[Row]:
    """Simulate the cells of a part; prints its table."""
    measure = functools.partial(module.measure, n_runs=n_runs, seed=seed)
    with _mapping(jobs) as mapped:
        rows = [row for rows in mapped(measure, list(module.cells(quick=quick))) for row in rows]
    print(coverage_docs.printed(module.TITLE, rows), end="\n\n", flush=True)
    return rows


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the check and print it; 1 when a cell is not as the rule has it (see above)."""
    parser = argparse.ArgumentParser(prog="python -m checks.coverage", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer designs, and fewer runs of each")
    parser.add_argument(
        "--runs", type=int, help="simulated runs of each design (default: as many as it takes)"
    )
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=2, help="processes (default 2)")
    parser.add_argument("--docs", type=Path, help="document to write the tables into")
    options = parser.parse_args(arguments)
    if options.docs:
        try:
            coverage_docs.around(options.docs)  # rather than after minutes of simulation
        except UsageError as error:
            parser.error(str(error))
    began = time.monotonic()
    rows: dict[str, list[Row]] = {}
    print(f"seed {options.seed}\n")
    for name, part in PARTS.items():
        n_runs = options.runs or (part.quick_runs if options.quick else part.runs)
        rows[name] = run_part(part.module, n_runs, quick=options.quick, seed=options.seed, jobs=options.jobs)
    failed = conclusion(rows)
    print(f"{sum(map(len, rows.values())):,} cells in {time.monotonic() - began:.0f} s")
    if options.docs:
        coverage_docs.write(options.docs, rows)
    return int(failed)


def conclusion(rows: Mapping[str, Sequence[Row]]) -> bool:
    """Print what was found, in short; whether anything is not as it is to be."""
    print(coverage_docs.summary(rows))
    unsaid = coverage_cells.without_reason(rows.get(RATIOS, []))
    for name in unsaid:
        print(f"FAILED: nothing says why {name} is refused so often")
    off = {name: sum(row.is_off for row in of_part) for name, of_part in rows.items()}
    for name, number in off.items():
        print(f"{name}: {number} of {len(rows[name])} cells are not as they are to be")
    return bool(unsaid) or any(off.values())


if __name__ == "__main__":
    sys.exit(main())
