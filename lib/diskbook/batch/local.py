"""Runs of a batch on this machine: each a separate process, which ends when the batch's does."""

import os
import subprocess
from pathlib import Path

from diskbook.batch import process
from diskbook.batch.batch_run import Item
from diskbook.batch.engine import JOBS, Ending
from diskbook.batch.order import Order, new_start
from diskbook.measure.runs import stages


class LocalTask:
    """A run in a process of its own."""

    def __init__(self, item: Item, started: subprocess.Popen[bytes], log: Path) -> None:
        self.item = item
        self._process = started
        self._log = log

    @property
    def pid(self) -> int:
        """Number of its process."""
        return self._process.pid

    def ending(self) -> Ending | None:
        """How it ended; None while it goes on."""
        status = self._process.poll()
        return None if status is None else Ending(status, process.last_line(self._log))

    def stop(self) -> None:
        """Ask it to tear down and end."""
        process.terminate(self._process)


class LocalEngine:
    """Starts processes here, as many at once as `jobs` and the processor's cores allow.

    A run on Azure takes none of the cores. An emulated one takes two for each replicate that is measured at
    once (`stages.at_once`), and one on hosts of the user's own takes all: nothing may disturb it.

    - `folder`: for the logs, one a run.
    - `jobs`: how many runs at most at once.
    - `cores`: how many there are.
    - `store`: where runs are kept besides, if anywhere.
    """

    program: tuple[str, ...] = process.PROGRAM
    waits = False
    most_kills = 2
    """A run that was killed is resumed once: memory may have run out, or somebody meant another one."""

    def __init__(
        self, folder: Path, jobs: int | None = None, cores: int | None = None, store: str | None = None
    ) -> None:
        self.lanes = jobs or JOBS
        self._store = store
        self._logs = folder / "logs"
        self._slots = max(1, (cores or os.cpu_count() or 1) // 2)
        self._tasks: list[LocalTask] = []

    def has_room(self, item: Item) -> bool:
        """Whether it would start that run at once."""
        self._tasks = [task for task in self._tasks if task.ending() is None]
        taken = sum(self._share(task.item) for task in self._tasks)
        return len(self._tasks) < self.lanes and taken + self._share(item) <= self._slots

    def start(self, item: Item, limit_usd: float | None) -> LocalTask:
        """Start a run, or resume it."""
        self._logs.mkdir(parents=True, exist_ok=True)
        order = Order(item.name, item.asked, limit_usd, new_start(), self._store)
        log = self._logs / f"{item.name}.log"
        with log.open("ab") as output:
            started = process.start(self.program, order.text, output)
        self._tasks.append(LocalTask(item, started, log))
        return self._tasks[-1]

    def _share(self, item: Item) -> int:
        """Pairs of cores that a run takes."""
        if item.cloud == "azure":
            return 0
        replicates = item.scenario.design.replicates
        if item.cloud == "inventory":
            return self._slots
        return min(self._slots, stages.at_once("emulator", replicates))
