"""How long thousands of runs take to be compared, listed, and joined by one more: `make bench-scale`.

The runs are synthetic (`many_runs.catalogued`): the rows of a sample with other numbers, through the
catalogue's own writer, all of one scenario, so that every run is read. Each command is a process of its own,
whose largest memory the system tells. Ends with 1 when a limit is missed. Limits are for a quiet machine.
"""

import itertools
import math
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from checks import many_runs
from diskbook.batch.catalogue import join
from diskbook.results.run import Run

RUNS, TRIALS_OF_RUN, BINS_OF_TRIAL = (100, 1_000, 10_000), 100, 200
MOST_S, MOST_GIB, MOST_EXPONENT = 10.0, 4.0, 1.1
JOIN_FACTOR, JOIN_S = 1.5, 0.05
"""A join among the most runs may take so many times as long as among the fewest, and so much more."""
_JOINS = 7


@dataclass(frozen=True)
class Seen:
    """What a size of the catalogue takes: comparing its scenario over all runs, and one more run to join."""

    runs: int
    compare_s: float
    compare_gib: float
    list_s: float
    join_s: float


def main() -> int:
    """Measure and print; 1 where a limit is missed."""
    with tempfile.TemporaryDirectory(prefix="diskbook-scale-") as scratch:
        seen = list(_measured(Path(scratch) / "runs"))
    checks = list(_checks(seen))
    for words, is_kept in checks:
        print(f"{words}{'' if is_kept else '   missed'}")
    return int(not all(is_kept for _, is_kept in checks))


def _measured(folder: Path) -> Iterator[Seen]:
    """Grow the catalogue and measure at each size; print as it goes."""
    print(f"{'runs':>7}{'trials':>11}{'bins':>13}{'compare s':>11}{'GiB':>6}{'list s':>8}{'join s':>8}")
    made, began = 0, time.monotonic()
    for number in RUNS:
        many_runs.catalogued(folder, range(made, number), TRIALS_OF_RUN, BINS_OF_TRIAL)
        made = number
        compare_s, gib = many_runs.seconds_and_gib(["compare", "--scenario", "zone-disks", "--json"], folder)
        list_s, _ = many_runs.seconds_and_gib(["list"], folder)
        seen = Seen(number, compare_s, gib, list_s, _join_s(folder))
        trials = number * TRIALS_OF_RUN
        print(
            f"{number:>7,}{trials:>11,}{trials * BINS_OF_TRIAL:>13,}{compare_s:>11.2f}{gib:>6.2f}"
            f"{list_s:>8.2f}{seen.join_s:>8.3f}",
            flush=True,
        )
        yield seen
    size = sum(path.stat().st_size for path in (folder / ".catalogue").rglob("*.parquet"))
    print(
        f"catalogue of {size / 1e9:.2f} GB; all of it made and measured in {time.monotonic() - began:.0f} s"
    )


def _join_s(folder: Path) -> float:
    """Seconds in which one more run joins: a copy of a sample, again and again."""
    run = Run(folder / "one-more")
    shutil.copytree(many_runs.SAMPLES[-1], run.folder)
    times = []
    for _ in range(_JOINS):
        began = time.monotonic()
        join.join(run)
        times.append(time.monotonic() - began)
    shutil.rmtree(run.folder)
    return statistics.median(times)


def _checks(seen: Sequence[Seen]) -> Iterator[tuple[str, bool]]:
    """What was promised, each with whether it is kept."""
    few, most = seen[0], seen[-1]
    yield (
        f"{most.runs:,} runs compared in {most.compare_s:.2f} s, at most {MOST_S:g} s",
        most.compare_s <= MOST_S,
    )
    yield f"within {most.compare_gib:.2f} GiB, at most {MOST_GIB:g} GiB", most.compare_gib <= MOST_GIB
    for first, last in (*itertools.pairwise(seen), (few, most)):
        exponent = math.log(last.compare_s / first.compare_s) / math.log(last.runs / first.runs)
        yield (
            f"from {first.runs:,} to {last.runs:,} runs s grow as runs to the power of {exponent:.2f}, at "
            f"most {MOST_EXPONENT:g}",
            exponent <= MOST_EXPONENT,
        )
    bound = JOIN_FACTOR * few.join_s + JOIN_S
    yield (
        f"a run joins {most.runs:,} in {most.join_s:.3f} s and {few.runs:,} in {few.join_s:.3f} s, at most "
        f"{bound:.3f} s",
        most.join_s <= bound,
    )


if __name__ == "__main__":
    sys.exit(main())
