"""What a failover test measures: when each block was acknowledged, and how long each step took."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from diskbook.design.procedures import SILENCE_S
from diskbook.facts.errors import DiskbookError
from diskbook.facts.units import utc_text
from diskbook.hosts.device import Device
from diskbook.hosts.ssh import Connection
from diskbook.measure.bench import blocks
from diskbook.measure.bench.blocks import Blocks

INTERVAL_S = 0.005  # at most one write in so long: what RTO is exact to; the region lasts for five minutes
START_S = 60.0


class BlockWriter(threading.Thread):
    """Writes blocks from a machine, and keeps when each was acknowledged to us."""

    def __init__(self, connection: Connection, device: Device, series: Blocks) -> None:
        super().__init__(name="drill-writer", daemon=True)
        self._source = connection, device, series
        self.times: list[float] = []  # of block 0, 1, 2 ..., `time.monotonic()`
        self.told_to_end = False
        self.error: str | None = None

    def run(self) -> None:
        connection, device, series = self._source
        try:
            for row in series.follow(connection, device, "write", blocks.MAX_BLOCKS, INTERVAL_S):
                if "ack" in row:
                    self.times.append(time.monotonic())
                self.told_to_end |= "told_to_end" in row
                self.error = row.get("text", self.error)
        except Exception as error:
            self.error = str(error)

    @property
    def last(self) -> float:
        """When the last block was acknowledged."""
        return self.times[-1]

    def write_for(self, seconds: float) -> None:
        """Let it write; raises DiskbookError when it does not, or ends."""
        deadline = time.monotonic() + START_S
        while not self.times and self.is_alive() and time.monotonic() < deadline:
            time.sleep(0.01)
        self.join(seconds if self.times else 0)
        if not (self.times and self.is_alive()):
            raise DiskbookError(f"the writing machine wrote {len(self.times)} blocks, then: {self.error}")

    def wait_for_silence(self) -> float:
        """Return when it was noticed that no more acknowledgements come."""
        while self.is_alive() and time.monotonic() - self.last < SILENCE_S:
            self.join(0.01)
        return time.monotonic()

    def lines(self) -> bytes:
        """All acknowledgements, a JSON document a line, with the client's time."""
        ahead = time.time() - time.monotonic()
        rows = [
            {"ack": number, "time_utc": utc_text(at + ahead, "auto")} for number, at in enumerate(self.times)
        ]
        return b"".join(json.dumps(row).encode() + b"\n" for row in rows)


@dataclass
class StepClock:
    """Takes the time of each step: when it ended, with what the emulator's time scale had saved by then."""

    saved_s: Callable[[], float]
    ends: list[tuple[str, float, float]] = field(default_factory=list)
    extra_s: dict[str, float] = field(default_factory=dict)

    def mark(self, step: str, at: float | None = None) -> None:
        self.ends.append((step, time.monotonic() if at is None else at, self.saved_s()))

    def steps(self, start: float, saved_s: float) -> Iterator[dict[str, Any]]:
        """Length of each step since `start`, as run and unscaled; their sum is the time to the last end."""
        for step, end, saved in self.ends:
            real = max(0.0, end - start)
            unscaled = real + saved - saved_s + self.extra_s.get(step, 0.0)
            yield {"step": step, "real_s": round(real, 4), "unscaled_s": round(unscaled, 4)}
            start, saved_s = max(start, end), saved
