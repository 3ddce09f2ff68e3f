"""Control-plane-only runs on 1, 2, 4 and 8 Dask workers: `python -m checks.bench_workers`.

A run makes machine and disk on an emulator of its own, whose delays are Azure's at a scale, and deletes them;
nothing is measured. Each takes the processor for some seconds and waits the rest, so more workers help until
the cores are the limit. They are so for moments: runs that begin together import together. The table has the
seconds in which all cores were busy, and how near to linear a batch was without what they took (`besides`).
It also prints what the batch's own process takes a run: the loop, the table, the page and Dask's scheduler.
Ends with 1 where one of the two is worse than promised.
"""

import argparse
import io
import os
import resource
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import psutil

from diskbook.batch import dask_cluster, order as orders, summary
from diskbook.batch.batch_run import Asked, Item, item_of
from diskbook.batch.command import Seldom
from diskbook.batch.dask_engine import DaskEngine
from diskbook.batch.loop import Batch, Row
from diskbook.batch.matrix import Matrix
from diskbook.batch.price import Price
from diskbook.batch.progress import Table
from diskbook.batch.run_lookup import Here
from diskbook.batch.status import Standing, State
from diskbook.cloud import kinds
from diskbook.measure.runs import stages

WORKERS = (1, 2, 4, 8)
SCENARIO = "first-run"
SCALE = 0.1
RUNS_A_WORKER = 2
EMPTY_RUNS = 100
LEAST_EFFICIENCY = 0.8
MOST_COORDINATING_S = 0.05
FULL = 0.9
"""Share of the cores that is busy, above which they are the limit."""
LOOK_S = 0.5
_DONE = "done"
_CLOCKS = ("user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal")
"""Of the machine's cores, that add up to all time (Linux counts guests as users)."""


@dataclass(frozen=True)
class Timing:
    """One batch. `busy` is the share of the machine's cores that was busy: runs, their emulators, Dask.

    In `full_s` of its seconds they were the limit.
    """

    workers: int
    runs: int
    wall_s: float
    run_cpu_s: float
    busy: float
    full_s: float

    @property
    def per_minute(self) -> float:
        """Runs a minute."""
        return 60 * self.runs / self.wall_s


class Marked(Here):
    """Runs that are finished when they have left a mark; folders hold what they used of the processor."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def look(self, item: Item) -> Standing:
        """See `Shelf`."""
        done = (self.folder / f"{item.name}.{_DONE}").exists()
        return Standing(State.FINISHED, 0, provenance="emulated") if done else Standing(State.NEW, 1)

    def cpu_s(self) -> float:
        """Processor time of all runs together."""
        return sum(float(path.read_text()) for path in self.folder.glob(f"*.{_DONE}"))


def run_one(text: str, folder: Path, scale: float) -> None:
    """Create what a run needs, and delete it."""
    order = orders.read(text)
    if scale:
        run = stages.begin(
            str(folder / order.name),
            order.asked.scenario,
            "emulator",
            "quick",
            emulator={"time_scale": scale},
        )
        kinds.of(run).start(run, owner=True)
        try:
            stages.provision(run)
        finally:
            stages.teardown(run)
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    (folder / f"{order.name}.{_DONE}").write_text(str(sum(part.ru_utime + part.ru_stime for part in used)))


def play(workers: int, runs: int, scale: float) -> tuple[Timing, float]:
    """Run a batch on so many workers; its timing, and what the batch's own process took, in s."""
    program = ("-m", "checks.bench_workers", "--scale", str(scale), "--run")
    with tempfile.TemporaryDirectory(prefix="diskbook-bench-") as name:
        folder, cluster = Path(name), dask_cluster.here(workers, 1)
        try:
            engine = DaskEngine(cluster, folder)
            while engine.lanes < workers:
                time.sleep(0.1)
            engine.program = (*program, str(folder)) if scale else _mark(folder)
            shelf = Marked(folder)
            batch = Batch(_items(runs), engine, None, _free, shelf)
            began, began_cpu = time.monotonic(), time.process_time()
            with _watched() as shares:
                _run(batch, folder)
            wall_s, own_s = time.monotonic() - began, time.process_time() - began_cpu
        finally:
            cluster.close()
        if batch.exit_code:
            raise SystemExit(f"{[row.reason for row in batch.rows if row.reason][:1]}")
        cpu_s = shelf.cpu_s()
    full_s = wall_s * sum(share > FULL for share in shares) / len(shares)
    return Timing(workers, runs, wall_s, cpu_s / runs, sum(shares) / len(shares), full_s), own_s


@contextmanager
def _watched() -> Iterator[list[float]]:
    """Look at the cores while this is entered: the share of them that was busy, look by look."""
    shares: list[float] = []
    over = threading.Event()

    def watch() -> None:
        before = psutil.cpu_times()
        while not over.wait(LOOK_S) or not shares:
            after = psutil.cpu_times()
            shares.append(_busy(before, after))
            before = after

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        yield shares
    finally:
        over.set()
        watcher.join()


def _busy(before: Any, after: Any) -> float:
    """Share of the machine's cores that was busy between two looks at its clocks."""
    passed = {name: getattr(after, name) - getattr(before, name) for name in before._fields}
    everything = sum(passed[name] for name in _CLOCKS if name in passed)
    return 1 - (passed["idle"] + passed.get("iowait", 0.0)) / everything


def _mark(folder: Path) -> tuple[str, str]:
    """A run that does nothing, without a second for its imports."""
    return "-c", (
        "import json, pathlib, sys\n"
        f"path = pathlib.Path({str(folder)!r}, json.loads(sys.argv[1])['name'] + '.{_DONE}')\n"
        "path.write_text('0')"
    )


def _items(number: int) -> list[Item]:
    """Runs that take, as on Azure, none of a worker's cores: they measure nothing."""
    asked = [Asked(SCENARIO, cloud="azure", settings={"design.seed": n}) for n in range(1, number + 1)]
    return [item_of(each, f"seed {n}") for n, each in enumerate(asked, 1)]


def _free(item: Item, standing: Standing) -> Price:
    return Price(0.0, 0.0, 0.0)


def _run(batch: Batch, folder: Path) -> None:
    """Run it with table and page, as the command does."""
    table, matrix = Table(batch, io.StringIO()), Matrix("bench", tuple(row.item for row in batch.rows))
    written = Seldom(lambda: summary.write(matrix, batch, folder))

    def tell(event: str, row: Row) -> None:
        table.tell(event, row)
        if event:
            written.ask()

    batch.run(tell)


def head(scale: float) -> str:
    """First lines of the table."""
    names = f"{'workers':>7}{'runs':>6}{'wall s':>8}{'runs/min':>10}"
    names += f"{'of linear':>11}{'CPU s a run':>13}{'cores':>7}{'all busy s':>12}{'besides':>9}"
    what = f"Runs of {SCENARIO} that measure nothing (emulated, delays x {scale}) on {os.cpu_count()} cores"
    return f"{what}\n\n{names}"


def line(row: Timing, single: Timing) -> str:
    limit = "  the cores are the limit" if row.busy > FULL else ""
    return (
        f"{row.workers:>7}{row.runs:>6}{row.wall_s:>8.1f}{row.per_minute:>10.2f}"
        f"{efficiency(row, single):>11.2f}"
        f"{row.run_cpu_s:>13.1f}{row.busy:>7.0%}{row.full_s:>12.1f}{besides(row, single):>9.2f}{limit}"
    )


def efficiency(row: Timing, single: Timing) -> float:
    """Throughput as a share of so many times that of one worker."""
    return row.per_minute / (single.per_minute * row.workers / single.workers)


def besides(row: Timing, single: Timing) -> float:
    """The same without what the cores took: in a second in which all were busy, w workers on c cores got c/w.

    Where there are no more workers than cores, these take nothing.
    """
    taken_s = row.full_s * max(0.0, 1 - (os.cpu_count() or 1) / row.workers)
    return efficiency(replace(row, wall_s=row.wall_s - taken_s), single)


def status(rows: Sequence[Timing], coordinating_s: float) -> int:
    """Exit status: 1 where more workers help less than promised, or the batch itself takes too much."""
    slow = any(besides(row, rows[0]) < LEAST_EFFICIENCY and row.busy <= FULL for row in rows)
    return int(slow or coordinating_s > MOST_COORDINATING_S)


def main() -> None:
    """Measure and print, or be one of the runs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--workers", type=int, nargs="+", default=WORKERS)
    parser.add_argument("--scale", type=float, default=SCALE)
    parser.add_argument("--run", nargs=2, metavar=("FOLDER", "ORDER"), help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.run:
        with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
            run_one(asked.run[1], Path(asked.run[0]), asked.scale)
        return
    _, own_s = play(2, EMPTY_RUNS, 0.0)
    print(head(asked.scale), flush=True)
    rows: list[Timing] = []
    for number in asked.workers:
        rows.append(play(number, RUNS_A_WORKER * number, asked.scale)[0])
        print(line(rows[-1], rows[0]), flush=True)
    each_s = own_s / EMPTY_RUNS
    print(
        f"\nCoordinating {EMPTY_RUNS} empty runs took {1000 * each_s:.1f} ms of processor a run in the "
        f"batch's own process, scheduler and page included; allowed: {1000 * MOST_COORDINATING_S:.0f} ms.\n"
        f"Allowed: {LEAST_EFFICIENCY} of linear, without what cores took that were over {FULL:.0%} busy."
    )
    sys.exit(status(rows, each_s))


if __name__ == "__main__":
    main()
