"""Check the intervals against simulated truth: `python -m checks.coverage`.

Simulates designs with a known overhead, puts them through the functions that the analysis uses, and prints
for each scope how many intervals cover the truth, how wide they are, and how often they see a difference
where there is none. Exit status 1 when intervals that are printed without a flag cover less than 93 %, or
without a reason more than 98 %, by more than three standard errors of the simulation; or when nothing says
why a condition is refused in more than 20 % of runs. `--docs FILE` writes the tables of
docs/explanation/coverage.md.
"""

import argparse
import contextlib
import functools
import math
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

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
    coverage_rule,
    coverage_runs,
    coverage_stationarity,
)
from checks.coverage_cells import Condition, Methods, Row
from checks.simulate import Design
from diskbook.design.vocabulary import Scope
from diskbook.facts.errors import UsageError


class Grid(NamedTuple):
    """Numbers of replicates and blocks that are simulated, and runs of each design."""

    replicates: tuple[int, ...]
    blocks: tuple[int, ...]
    runs: int


FULL = Grid((1, 2, 3, 5, 10), (2, 3, 5, 10), 10_000)
QUICK = Grid((1, 3), (2, 5), 4_000)


class Part(NamedTuple):
    """A part with cells of its own: where they are, and simulated runs of each."""

    module: ModuleType
    runs: int
    quick_runs: int


PARTS = {
    "percentile ratios": Part(coverage_percentiles, 1_000, 200),
    "stationarity": Part(coverage_stationarity, 1_000, 200),
    "noise of real machines": Part(coverage_noise, 4_000, 500),
    "held rates": Part(coverage_held, 400, 80),
    "knees": Part(coverage_knee, 4_000, 2_000),
    "runs beside runs": Part(coverage_runs, 4_000, 500),
    "outlooks": Part(coverage_outlooks, 4_000, 500),
    "hidden limits": Part(coverage_limits, 160, 40),
    "attach effects": Part(coverage_attach, 1_000, 200),
    "planned looks": Part(coverage_looks, 4_000, 1_000),
}

LEGEND = """\
Each cell: coverage of nominal 95 % intervals in %, median half-width in %, false positives in % where there
is no difference. Marks: ! under 93 % or, without a reason, over 98 %, by more than three standard errors of
the simulation (FAILED), + above 97 % (conservative), ? under 93 % where nothing in the data can show it
(known limit). Per cent of the runs: r refused, f flagged by a gate (neither is judged; in brackets the
coverage where nearly all are flagged, and that with the bound shown for losses that differ by arm, which is
judged), n printed with the warning of one-sided noise.
"""
MARKS = {"FAILED": " !", "conservative": " +", "known limit": " ?"}
JUDGED = ("ok", "conservative", "FAILED")
WIDTH = 36


def table(rows: Sequence[Row]) -> str:
    """One condition as a table: scopes and replicates down, blocks across."""
    blocks = sorted({row.design.blocks for row in rows})
    heads = "".join(f"{f'{number} blocks':{WIDTH}}" for number in blocks)
    lines = [rows[0].condition.name, f"  {'scope':18}{'replicates':12}{heads}"]
    cells = {(row.scope, row.design.replicates, row.design.blocks): cell(row) for row in rows}
    for scope, replicates in dict.fromkeys(
        (row.scope, row.design.replicates) for row in sorted(rows, key=_place)
    ):
        across = "".join(f"{cells[scope, replicates, number]:{WIDTH}}" for number in blocks)
        lines.append(f"  {scope:18}{replicates:<12}{across}")
    return "\n".join(line.rstrip() for line in lines)


def cell(row: Row) -> str:
    """One cell of the table: "95.1 ±1.52 4.9", with its marks."""
    if row.status == "refused":
        return "refused"
    if row.status == "flagged":
        bound = "" if math.isnan(row.coverage_bound) else f", bound {100 * row.coverage_bound:.1f}"
        return f"flagged by gate ({100 * row.coverage_flagged:.1f}{bound})"
    numbers = f"{100 * row.coverage:5.1f} ±{100 * row.half_width:.2f} {100 * row.false_positive:.1f}"
    shares = [("r", row.refused), ("f", row.flagged), ("n", row.noisy)]
    withheld = "".join(f" {letter}{100 * share:.0f}" for letter, share in shares if share >= 0.01)
    return numbers + MARKS.get(row.status, "") + withheld


def summary(rows: Sequence[Row]) -> str:
    """Say in a few lines what the check found; what falls short is named."""
    lines = []
    for scope in dict.fromkeys(row.scope for row in rows):
        cells = [row for row in rows if row.scope == scope and not row.condition.known_limit]
        judged = [row for row in cells if row.status in JUDGED]
        if judged:
            lines.append(_range(scope, judged))
    lines += _known_limits(rows)
    lines += [f"FAILED: {_named(row)}" for row in rows if row.status == "FAILED"]
    lines += [
        f"FAILED: nothing says why {name} is refused so often" for name in coverage_docs.without_reason(rows)
    ]
    failed = sum(row.status == "FAILED" for row in rows)
    low, high = 100 * coverage_rule.LOWEST, 100 * coverage_rule.HIGHEST
    bounds = f"under {low:.0f} % or, without a reason, over {high:.0f} %"
    lines.append(f"FAILED: {failed} cells {bounds}" if failed else f"passed: no cell {bounds}")
    return "\n".join(lines)


def _range(scope: str, rows: Sequence[Row]) -> str:
    coverages = [100 * row.coverage for row in rows]
    wrong = 100 * max(row.false_positive for row in rows)
    conservative = sum(row.status == "conservative" for row in rows)
    return (
        f"{scope}: coverage {min(coverages):.1f} to {max(coverages):.1f} % in {len(rows)} cells "
        f"({conservative} conservative), false positives at most {wrong:.1f} %"
    )


def _known_limits(rows: Sequence[Row]) -> list[str]:
    """One line a condition and scope: how many cells fall short, the worst, and why no gate can help."""
    lines = []
    short = [row for row in rows if row.status == "known limit"]
    for condition, scope in dict.fromkeys((row.condition, row.scope) for row in short):
        here = [row for row in short if (row.condition, row.scope) == (condition, scope)]
        worst = min(here, key=lambda row: row.coverage)
        quiet = f", {100 * worst.coverage_quiet:.1f} % where no gate warns" if worst.noisy else ""
        words = f"{len(here)} cells under 93 %, lowest {_named(worst)}{quiet}; {condition.known_limit}"
        lines.append(f"known limit: {words}")
    return lines


def _named(row: Row) -> str:
    design = f"{row.design.replicates} replicates x {row.design.blocks} blocks"
    return f"{row.condition.name}, {design}, {row.scope}: {100 * row.coverage:.1f} %"


def _place(row: Row) -> tuple[bool, int]:
    return row.scope == Scope.THESE, row.design.replicates


@contextlib.contextmanager
def _mapping(jobs: int) -> Iterator[Callable[..., Iterable[Any]]]:
    """`map`, over as many processes."""
    with contextlib.ExitStack() as stack:
        yield stack.enter_context(ProcessPoolExecutor(jobs)).map if jobs > 1 else map


def run(grid: Grid, seed: int, jobs: int, methods: Methods) -> list[Row]:
    """Simulate every condition in every design of the grid; prints each table when it is done."""
    part = functools.partial(_condition, grid=grid, seed=seed, methods=methods)
    rows: list[Row] = []
    with _mapping(jobs) as mapped:
        for part_rows in mapped(part, list(coverage_cells.conditions())):
            print(table(part_rows), end="\n\n", flush=True)
            rows += part_rows
    return rows


def run_part(part: Part, quick: bool, seed: int, jobs: int) -> list[Any]:
    """Simulate the cells of a part; prints its table."""
    measure = functools.partial(
        part.module.measure, n_runs=part.quick_runs if quick else part.runs, seed=seed
    )
    with _mapping(jobs) as mapped:
        rows = [row for rows in mapped(measure, list(part.module.cells(quick=quick))) for row in rows]
    title, text = getattr(part.module, "TITLE", ""), getattr(part.module, "text", None)
    print(text(rows) if text else coverage_rule.table(title, rows), end="\n\n", flush=True)
    return rows


def _condition(condition: Condition, grid: Grid, seed: int, methods: Methods) -> list[Row]:
    sizes = [(replicates, blocks) for replicates in grid.replicates for blocks in grid.blocks]
    lost = (condition.failed, condition.slow_lost, condition.slow_repeated)
    designs = [Design(*size, condition.repeats, *lost) for size in sizes]
    return [
        row
        for design in designs
        for row in coverage_cells.measure(condition, design, grid.runs, seed, methods)
    ]


def main(arguments: Sequence[str] | None = None, methods: Methods = coverage_cells.ANALYSIS) -> int:
    """Run the check and print it; 1 when a cell is not as the rule has it (see above)."""
    parser = argparse.ArgumentParser(prog="python -m checks.coverage", description=__doc__)
    parser.add_argument("--quick", action="store_true", help=f"fewer designs, {QUICK.runs:,} runs of each")
    parser.add_argument("--runs", type=int, help=f"simulated runs of each design (default {FULL.runs:,})")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=2, help="processes (default 2)")
    parser.add_argument("--docs", type=Path, help="document to write the tables into")
    options = parser.parse_args(arguments)
    if options.docs:
        try:
            coverage_docs.around(options.docs)  # rather than after minutes of simulation
        except UsageError as error:
            parser.error(str(error))
    grid, began = QUICK if options.quick else FULL, time.monotonic()
    grid = grid._replace(runs=options.runs or grid.runs)
    print(f"{grid.runs:,} simulated runs a design, seed {options.seed}\n{LEGEND}")
    rows = run(grid, options.seed, options.jobs, methods)
    parts = {name: run_part(part, options.quick, options.seed, options.jobs) for name, part in PARTS.items()}
    print(summary(rows))
    off = {name: sum(row.is_off for row in of_part) for name, of_part in parts.items()}
    for name, of_part in parts.items():
        print(f"{name}: {off[name]} of {len(of_part)} cells are not as they are to be")
    n_cells = len(rows) + sum(map(len, parts.values()))
    print(f"{n_cells:,} cells in {time.monotonic() - began:.0f} s")
    if options.docs:
        coverage_docs.write(options.docs, rows, *parts.values())
    failed = any(row.status == "FAILED" for row in rows) or coverage_docs.without_reason(rows)
    return int(bool(failed) or any(off.values()))


if __name__ == "__main__":
    sys.exit(main())
