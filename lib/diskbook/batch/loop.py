"""The loop of a batch: starts what there is room and money for, takes down what ended, and ends cleanly."""

import contextlib
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from diskbook.batch import run_lookup
from diskbook.batch.batch_run import Item
from diskbook.batch.engine import Ending, Engine, EngineLostError, Task
from diskbook.batch.price import Price, Pricing
from diskbook.batch.process import HELD, LOST
from diskbook.batch.quota import Quotas
from diskbook.batch.reasons import Failure, Reasons
from diskbook.batch.spending_limit import Purse
from diskbook.batch.status import Standing, State
from diskbook.cost.estimate import MARGIN
from diskbook.facts.errors import DiskbookError

POLL_S = 0.1
RESCAN_S = 1.0
"""How often all waiting runs are gone through where nothing has ended: workers come, and leases end."""
HELD_S = 20.0
"""A run that another works on is tried again after that: a third of a lease."""

FAILED, SKIPPED, UNPAID, WAITING, RUNNING = "failed", "not tried", "over limit", "waiting", "running"
FINISHED = str(State.FINISHED)
CUT = str(State.CUT)


@dataclass
class Row:
    """How one run of the batch stands: its state in a word, why, and what it takes and took."""

    item: Item
    standing: Standing
    price: Price
    state: str = WAITING
    reason: str = ""
    seconds: float = 0.0
    kills: int = 0
    begun: float | None = None
    answer: str = ""
    is_stopping: bool = False
    not_before: float = 0.0
    task: Task | None = field(default=None, repr=False)


Tell = Callable[[str, Row], None]


class Batch:
    """Runs the items of a batch.

    - `limit_usd`: for all together; None where nothing binds.
    - `price`: what is still to be paid for one of them (`price.pricing`).
    - `shelf`: where its runs are looked for, by default among those of this machine.
    - `quotas`: vCPUs that runs on Azure may take at once.
    """

    def __init__(
        self,
        items: Sequence[Item],
        engine: Engine,
        limit_usd: float | None,
        price: Pricing,
        shelf: run_lookup.Shelf | None = None,
        quotas: Quotas | None = None,
    ) -> None:
        self.engine, self._price, self.shelf = engine, price, shelf or run_lookup.Here()
        looks = run_lookup.looks(self.shelf, items)
        self.rows = [self._row(*pair) for pair in zip(items, looks, strict=True)]
        self._quotas = quotas or Quotas({})
        self.purse = Purse(limit_usd, {row.item.name: row.standing.spent_usd for row in self.rows})
        self._reasons = Reasons()
        self._stopped: int | None = None
        self._running: list[Row] = []
        self._scan_at = 0.0

    def run(self, tell: Tell) -> None:
        """Run all that can be run; after SIGINT, SIGTERM or SIGHUP end what runs, and return.

        - `tell`: is told of each start and ending, and with "" of each look around.

        Raises EngineLostError when the engine is gone; what it ran is cut short then.
        """
        with self._signals():
            try:
                while self._turn(tell):
                    time.sleep(POLL_S)
            except EngineLostError:
                for row in self._running:
                    row.task, row.state, row.reason = None, CUT, ""
                self._running = []
                raise

    def _turn(self, tell: Tell) -> bool:
        """Look around once; whether there is anything to wait for."""
        self._collect(tell)
        if self._stopped is not None:
            self._end_all()
        elif time.monotonic() >= self._scan_at:
            self._scan_at = time.monotonic() + RESCAN_S
            self._start(tell)
        if self._running:
            tell("", self._running[0])
        return bool(self._running) or (self._stopped is None and self._is_patient)

    @property
    def _is_patient(self) -> bool:
        """Whether a run can start later: another works on it still, or there are no workers just now."""
        return any(row.state == WAITING and (row.not_before or self.engine.waits) for row in self.rows)

    @property
    def stopped(self) -> int | None:
        """The signal that ended it early."""
        return self._stopped

    @property
    def exit_code(self) -> int:
        """0 all finished, 1 some failed, 3 stopped with runs left: by a signal, or by the limit."""
        states = {row.state for row in self.rows}
        if states & {WAITING, CUT, UNPAID}:
            return 3
        return 1 if states & {FAILED, SKIPPED} else 0

    def count(self, *states: str) -> int:
        """How many runs are in one of these states."""
        return sum(row.state in states for row in self.rows)

    @property
    def left_s(self) -> float:
        """Time that is left, roughly: planned times, corrected by how long the finished ones took."""
        ended = [row for row in self.rows if row.seconds and row.state == FINISHED]
        planned = sum(row.price.seconds for row in ended)
        pace = sum(row.seconds for row in ended) / planned if planned else 1.0
        now = time.monotonic()
        left = [row.price.seconds * pace for row in self.rows if row.state == WAITING]
        under_way = [
            max(0.0, row.price.seconds * pace - (now - row.begun))
            for row in self.rows
            if row.state == RUNNING and row.begun is not None
        ]
        lanes = max(1, len(under_way))
        return max([(sum(left) + sum(under_way)) / lanes, *under_way])

    # --- one look around

    def _row(self, item: Item, standing: Standing | DiskbookError) -> Row:
        if isinstance(standing, DiskbookError):  # a damaged folder is that run's failure alone
            nothing = Standing(State.NEW, 0)
            return Row(item, nothing, Price(0.0, 0.0, 0.0), FAILED, str(standing))
        state = FINISHED if standing.state == State.FINISHED else WAITING
        return Row(item, standing, self._price(item, standing), state)

    def _start(self, tell: Tell) -> None:
        """Start waiting runs in order, while there is room; what is too dear lets cheaper ones pass."""
        now = time.monotonic()
        for row in self.rows:
            if len(self._running) >= self.engine.lanes:
                return
            if row.state == WAITING and row.not_before <= now and self._may_start(row, tell):
                # The run holds its own estimates, with the margin, against it: earlier sessions count too.
                limit = None if self.purse.limit is None else row.price.limit_usd
                before = row.standing.estimated_usd * MARGIN
                row.task = self.engine.start(row.item, None if limit is None else limit + before)
                row.state, row.begun, row.not_before = RUNNING, time.monotonic(), 0.0
                self._running.append(row)
                self._quotas.take(row.item)
                tell("goes on" if row.standing.state == State.CUT else "starts", row)

    def _may_start(self, row: Row, tell: Tell) -> bool:
        like = self._reasons.against(row.item)
        if like is not None:
            row.state, row.reason = SKIPPED, f"it would fail as {like.item.name} did: {like.sentence}"
            tell(SKIPPED, row)
            return False
        if not self.purse.could_ever(row.price.limit_usd):
            row.state = UNPAID
            row.reason = (
                f"it may take {row.price.limit_usd:.2f} USD, and of the limit of {self.purse.limit:g} USD "
                f"{max(0.0, self.purse.free + self.purse.reserved):.2f} are left"
            )
            tell(UNPAID, row)
            return False
        has_room = self._quotas.has_room(row.item) and self.engine.has_room(row.item)
        return has_room and self.purse.reserve(row.item.name, row.price.limit_usd)

    def _end_all(self) -> None:
        """Ask each run once to tear down and end."""
        for row in self._running:
            if row.task is not None and not row.is_stopping:
                row.is_stopping = True
                row.task.stop()

    def _collect(self, tell: Tell) -> None:
        for row in list(self._running):
            ending = row.task.ending() if row.task else None
            if ending is not None:
                row.task, self._scan_at = None, 0.0
                self._running.remove(row)
                self._quotas.give_back(row.item)
                self._settle(row, ending)
                again = "waits" if row.not_before else "killed"
                tell(again if row.state == WAITING else row.state, row)

    def _settle(self, row: Row, ending: Ending) -> None:
        """Take down how a run ended, by its folder first: only that is evidence."""
        row.seconds += time.monotonic() - (row.begun or time.monotonic())
        try:
            row.standing = self.shelf.look(row.item)
        except DiskbookError as error:
            ending = Ending(1, str(error))
        self.purse.settle(row.item.name, row.standing.spent_usd)
        if ending.status in (0, LOST) and row.standing.state == State.FINISHED:
            row.state, row.reason = FINISHED, ""
            return
        row.price = self._price(row.item, row.standing)
        if self._stopped is not None:
            row.state, row.reason = CUT, ""
        elif ending.status == HELD:
            row.state, row.reason, row.not_before = WAITING, ending.words, time.monotonic() + HELD_S
        elif ending.status < 0 or ending.status > 128:
            self._killed(row, ending)
        else:
            row.state, row.reason = FAILED, ending.words
            self._reasons.add(Failure(row.item, ending.words, row.standing.created))

    def _killed(self, row: Row, ending: Ending) -> None:
        """A run was ended by somebody else: it goes on as often as the engine is patient."""
        number = -ending.status if ending.status < 0 else ending.status - 128
        row.kills += 1
        words = ending.words if ending.status == LOST else ""
        row.reason = words or f"it was ended by {signal.Signals(number).name}"
        row.state = WAITING if row.kills < self.engine.most_kills else FAILED

    @contextlib.contextmanager
    def _signals(self) -> Iterator[None]:
        """Have signals end the batch at the next look around; a second one changes nothing."""

        def stop(number: int, frame: Any) -> None:
            self._stopped = self._stopped or number

        numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
        before = {number: signal.signal(number, stop) for number in numbers}
        try:
            yield
        finally:
            for number, earlier in before.items():
                signal.signal(number, earlier)
