"""Runs of a batch on a Dask cluster: one task a run, which is a separate process on its worker.

Dask decides which worker runs what, by its threads and the resources that it offers. It may also start a
task again whose worker was lost; the run's order is known then, and the batch decides again, with what it
has cost.
"""

import re
import time
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from diskbook.batch import dask_worker, process
from diskbook.batch.batch_run import Item
from diskbook.batch.dask_cluster import CORES, HOST, WORKERS_S, Cluster, Worker
from diskbook.batch.engine import Ending
from diskbook.batch.order import Order, new_start
from diskbook.facts.errors import UsageError

LOOK_S = 1.0
"""How often the scheduler is asked for its workers."""
_ANSWER_S = 30.0
_STOPPED = 128 + 15
_POLL_S = 0.1
_ON = {"emulator": "the emulator", "azure": "Azure", "inventory": "hosts of your own"}


class DaskTask:
    """A run that was given to the cluster."""

    def __init__(self, item: Item, start: str, future: Any, cluster: Cluster, log: Path) -> None:
        self.item, self._start, self._future, self._cluster, self._log = item, start, future, cluster, log
        self._is_stopped = False
        self._ended: Ending | None = None

    def ending(self) -> Ending | None:
        """How it ended; None while it goes on, or waits for a worker."""
        if self._ended is None:
            self._ended = self._ending()
        return self._ended

    @property
    def is_over(self) -> bool:
        """Whether its ending has been seen."""
        return self._ended is not None

    def _ending(self) -> Ending | None:
        state = self._future.status
        if not self._cluster.is_alive:
            raise self._cluster.gone()
        if state in ("pending", "lost"):  # lost: its worker went with what it answered, so Dask asks again
            return None
        if state == "finished":
            return self._finished()
        if state == "error":
            return _failed(self._future.exception(timeout=_ANSWER_S))
        if not self._is_stopped:  # nobody but the batch gives a run up, except when it was away
            return Ending(process.LOST, "the scheduler has forgotten it")
        return Ending(_STOPPED, "stopped before it began")

    def _finished(self) -> Ending | None:
        with self._cluster.in_words():
            try:
                status, text = self._future.result(timeout=_ANSWER_S)
            except TimeoutError:
                return None  # as above, just then
        self._log.parent.mkdir(parents=True, exist_ok=True)
        with self._log.open("a", encoding="utf-8") as file:
            file.write(text)
        lines = text.strip().splitlines()
        return Ending(status, lines[-1].strip() if lines else "")

    def stop(self) -> None:
        """Ask it to tear down and end."""
        self._is_stopped = True
        with self._cluster.in_words():
            runs_there = self._cluster.client.run(dask_worker.stop, self._start, on_error="ignore")
        if not any(runs_there.values()):
            self._future.cancel()


def _failed(error: BaseException) -> Ending:
    """How a task ended that Dask gave up, or that could not be begun."""
    if type(error).__name__ == "KilledWorker":
        return Ending(process.LOST, "its workers were lost, one after the other")
    words = str(error).splitlines()
    return Ending(1, f"its worker could not run it: {type(error).__name__}: {words[0] if words else ''}")


class DaskEngine:
    """Gives runs to a Dask cluster, as many at once as `jobs` and the workers' threads allow.

    A run on Azure takes a thread of a worker. An emulated one takes two of its cores besides for each
    replicate that is measured at once, and one on hosts of the user's own a worker's `host`.

    - `folder`: for the logs, one a run.
    - `store`: where runs are kept; None where the workers share this machine's folder of runs.
    - `jobs`: how many runs at most at once; None for what the workers take.

    Raises UsageError when there is no worker, or one cannot work: it names all such.
    """

    program: tuple[str, ...] = process.PROGRAM
    most_kills = 4
    """Machines of a cluster come and go, for no fault of the run."""
    waits = True

    def __init__(
        self, cluster: Cluster, folder: Path, store: str | None = None, jobs: int | None = None
    ) -> None:
        self._cluster, self._logs, self._store, self._jobs = cluster, folder / "logs", store, jobs
        self._challenge = dask_worker.challenge(store)
        self._tasks: list[DaskTask] = []
        self._workers: dict[str, Worker] = {}
        self._unfit: dict[str, str] = {}
        self._asked: set[str] = set()
        self._looked = 0.0
        self._await_workers()
        if self._unfit:
            raise UsageError("; ".join(f"worker {name} {why}" for name, why in self._unfit.items()))

    @property
    def lanes(self) -> int:
        """How many it runs at most at once."""
        self._look()
        threads = sum(worker.threads for worker in self._workers.values())
        return min(self._jobs or threads, threads)

    def check(self, items: Iterable[Item]) -> None:
        """Raise UsageError for a run that none of the workers could ever run."""
        for item in items:
            need = self._need(item)
            if not any(_offers(worker, need) for worker in self._workers.values()):
                what = ",".join(f"{name}={number:g}" for name, number in need.items())
                raise UsageError(
                    f"no worker can run '{item.label}', which is on {_ON[item.cloud]}: start one with "
                    f"--resources '{what}', or more"
                )

    def has_room(self, item: Item) -> bool:
        """Whether it would start that run at once, or as soon as Dask finds a worker with enough left."""
        self._look()
        self._tasks = [task for task in self._tasks if not task.is_over]
        if len(self._tasks) >= self.lanes:
            return False
        taken = Counter[str]()
        for task in self._tasks:
            taken.update(self._need(task.item))
        offered = self._offered()
        return all(taken[name] + number <= offered[name] for name, number in self._need(item).items())

    def start(self, item: Item, limit_usd: float | None) -> DaskTask:
        """Start a run, or resume it."""
        start = new_start()
        order = Order(item.name, item.asked, limit_usd, start, self._store, self._store is not None)
        with self._cluster.in_words():
            future = self._cluster.client.submit(
                dask_worker.run,
                self._challenge,
                self.program,
                start,
                order.text,
                key=f"{item.name}-{start}",
                resources=self._need(item),
                # Dask knows nothing of unfit ones: where there are any, it gets a list of the others.
                workers=sorted(self._workers) if self._unfit else None,
                pure=False,
            )
        log = self._logs / f"{item.name}.log"
        self._tasks.append(DaskTask(item, start, future, self._cluster, log))
        return self._tasks[-1]

    def close(self) -> None:
        self._cluster.close()

    def _need(self, item: Item) -> dict[str, int]:
        """Resources of a worker that a run takes."""
        most = max((int(worker.resources.get(CORES, 0)) for worker in self._workers.values()), default=0)
        if item.cloud == "azure":
            return {}
        if item.cloud == "emulator":
            return {CORES: 2 * max(1, min(most // 2, item.scenario.design.replicates))}
        # Processes of this machine are one host, of which nothing else may run then.
        return {HOST: 1} if self._cluster.cores is None else {CORES: self._cluster.cores}

    def _offered(self) -> Counter[str]:
        """Resources of all workers together; those of this machine share its cores."""
        offered = Counter[str]()
        for worker in self._workers.values():
            offered.update({name: int(number) for name, number in worker.resources.items()})
        if self._cluster.cores is not None:
            offered[CORES] = self._cluster.cores
        return offered

    def _await_workers(self) -> None:
        deadline = time.monotonic() + WORKERS_S
        while not self._asked:
            if time.monotonic() > deadline:
                raise UsageError(
                    f"the scheduler has had no worker for {WORKERS_S:.0f} s; start one: dask worker"
                )
            self._look(now=True)
            time.sleep(0 if self._asked else _POLL_S)

    def _look(self, now: bool = False) -> None:
        """Learn now and then which workers there are, and ask those that are new whether they can work."""
        if not now and time.monotonic() - self._looked < LOOK_S:
            return
        workers = self._cluster.workers()
        self._ask([workers[address] for address in workers if address not in self._asked])
        self._asked &= workers.keys()
        self._unfit = {address: why for address, why in self._unfit.items() if address in workers}
        self._workers = {
            address: worker
            for address, worker in workers.items()
            if address in self._asked and address not in self._unfit
        }
        self._looked = time.monotonic()

    def _ask(self, workers: list[Worker]) -> None:
        for worker in workers:
            answer = self._answer(worker.address)
            if isinstance(answer, OSError):  # it has just gone
                continue
            self._asked.add(worker.address)
            if answer:
                self._unfit[worker.address] = _why(answer)

    def _answer(self, address: str) -> str | Exception:
        """Why a worker cannot work: by its own word, by the error of asking it, or for lack of a proof."""
        client = self._cluster.client
        with self._cluster.in_words():
            try:
                answers = client.run(
                    dask_worker.fitness, self._challenge, workers=[address], on_error="return"
                )
            except AssertionError as error:  # Dask's own, of an error that cannot be sent
                return error
        answer = answers.get(address, OSError("it has gone"))
        if isinstance(answer, Exception):
            return answer
        reason, proof = answer if isinstance(answer, tuple) and len(answer) == 2 else ("", "")
        if reason or dask_worker.is_proof(proof, self._challenge, address):
            return str(reason)
        return "says that it is fit and cannot prove it: it lacks the signing secret of this batch"


def _offers(worker: Worker, need: Mapping[str, int]) -> bool:
    return all(worker.resources.get(name, 0) >= number for name, number in need.items())


def _why(answer: str | Exception) -> str:
    if isinstance(answer, str):
        return answer
    if lacks := re.search(r"No module named '([\w.]+)'", str(answer)):
        return f"lacks {lacks[1]}: install diskbook there as here, with its extra 'cluster'"
    return f"cannot be asked ({type(answer).__name__}: {str(answer).splitlines()[0] if str(answer) else ''})"
