"""What a batch shows while it runs: a table that grows by a line with each start and ending."""

import sys
import time
from collections.abc import Callable
from datetime import datetime
from typing import TextIO

from tqdm import tqdm

from diskbook.batch.loop import CUT, FAILED, FINISHED, RUNNING, SKIPPED, UNPAID, WAITING, Batch, Row
from diskbook.facts.units import duration

_COLUMNS = "{time:<8}  {event:<10} {running:>4} {waiting:>5} {done:>5} {failed:>6} {usd:>9} {left:>7}  {run}"
_NAMES = ("time", "event", "running", "waiting", "done", "failed", "usd", "left", "run")
_HEAD = {name: name for name in _NAMES} | {"running": "runs", "waiting": "waits", "usd": "USD"}
_EVERY_S = 1.0


class Table:
    """Writes the table: the same lines on a terminal and in a log; a terminal has a last line that moves.

    - `stream`: where to; standard error where the answer is JSON.
    """

    def __init__(
        self, batch: Batch, stream: TextIO | None = None, now: Callable[[], datetime] | None = None
    ) -> None:
        self._batch, self._stream = batch, stream or sys.stdout
        self._now = now or datetime.now
        moves = self._stream.isatty()
        self._bar = tqdm(total=0, bar_format="{desc}", leave=False, file=self._stream) if moves else None
        self._shown = 0.0
        self._say(_COLUMNS.format(**_HEAD).rstrip())

    def tell(self, event: str, row: Row) -> None:
        """Show an event of a run; without one, what is running."""
        if event:
            self._say(self._line(event, row))
            if row.reason and row.state in (FAILED, SKIPPED, UNPAID, WAITING):
                self._say(f"{'':<8}  {row.item.name}: {row.reason}")
        elif self._bar is not None and time.monotonic() - self._shown > _EVERY_S:
            self._shown = time.monotonic()
            self._bar.set_description_str(self._under_way())

    def close(self) -> None:
        """Take the line that moves away."""
        if self._bar is not None:
            self._bar.close()

    def _line(self, event: str, row: Row) -> str:
        batch = self._batch
        took = f" ({duration(row.seconds)})" if row.state in (FINISHED, FAILED, CUT) else ""
        return _COLUMNS.format(
            time=f"{self._now():%H:%M:%S}",
            event=event,
            running=batch.count(RUNNING),
            waiting=batch.count(WAITING, CUT),
            done=batch.count(FINISHED),
            failed=batch.count(FAILED, SKIPPED),
            usd=f"{batch.purse.spent:.2f}",
            left=duration(batch.left_s),
            run=f"{row.item.label}{took}",
        )

    def _under_way(self) -> str:
        running = [row for row in self._batch.rows if row.state == RUNNING]
        now = time.monotonic()
        words = [f"{row.item.name} {duration(now - (row.begun or now))}" for row in running]
        verb = "ending" if self._batch.stopped else "running"
        return f"{verb}: {', '.join(words)}; about {duration(self._batch.left_s)} left"

    def _say(self, text: str) -> None:
        tqdm.write(text, file=self._stream)
        self._stream.flush()
