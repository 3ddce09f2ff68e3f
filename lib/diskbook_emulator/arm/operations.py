"""Long-running operations: the answer comes at once, the work is done in a thread, the client polls."""

import logging
import threading
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from diskbook_emulator.arm import ids
from diskbook_emulator.arm.errors import ArmError
from diskbook_emulator.arm.faults import Faults
from diskbook_emulator.arm.settings import Settings
from diskbook_emulator.arm.state import Store
from diskbook_emulator.types import Json

log = logging.getLogger(__name__)
CLOSE_S = 10.0


def azure_time(moment: datetime | None = None) -> str:
    """Write a time as Azure does, with seven fractional digits: 2023-11-06T03:53:55.0744425+00:00."""
    moment = moment or datetime.now(UTC)
    return f"{moment:%Y-%m-%dT%H:%M:%S.%f}0+00:00"


def nothing() -> None:
    """Do nothing: the effect of an operation without a physical side."""


def settled(error: ArmError | None) -> None:
    """Change nothing when an operation ends."""


@dataclass
class Work:
    """What an operation does.

    `effect` is the physical side (calls of the backend), run without the store's lock but one at a time for
    each id in `targets`. `settle` follows under the lock with None or the error, and updates the state.
    """

    effect: Callable[[], None] = nothing
    settle: Callable[[ArmError | None], None] = settled
    targets: tuple[str, ...] = field(default=())


class Operations:
    """Runs operations and keeps their records."""

    def __init__(self, settings: Settings, store: Store, faults: Faults) -> None:
        self._settings = settings
        self._store = store
        self._faults = faults
        self._threads: set[threading.Thread] = set()
        self._stop = threading.Event()
        self._locks: dict[str, threading.Lock] = {}

    def start(self, kind: str, target: str, work: Work, output: str | None = None) -> str:
        """Begin an operation and return its id.

        - `kind`: name of its delay, e.g. "disk-attach".
        - `target`: id of the resource it is about.
        - `output`: id of a resource that is its result.
        """
        op_id = str(uuid.uuid4())
        fault = self._faults.operation(kind)
        delay_s = self._settings.delay_s(kind) + (fault.delay_s if fault else 0.0)
        body: Json = {
            "id": op_id,
            "kind": kind,
            "target": target,
            "status": "InProgress",
            "started_utc": azure_time(),
            "delay_s": delay_s,
            "output": output,
            "ends": fault.ends if fault else "Failed",
            "polls": 0,
        }
        self._store.save_operation(op_id, body)
        self._spawn(body, work, fault.error if fault else None)
        return op_id

    def resume(self, body: Json, work: Work) -> None:
        """Take an operation up again that a restart has cut off; its time begins again."""
        self._spawn(body, work, None)

    def _spawn(self, body: Json, work: Work, error: ArmError | None) -> None:
        # A daemon thread each: an operation of hours never holds up the end of the process.
        def run() -> None:
            self._run(body, work, error)
            self._threads.discard(thread)

        thread = threading.Thread(target=run, name=f"arm-{body['kind']}", daemon=True)
        self._threads.add(thread)
        thread.start()

    def _run(self, body: Json, work: Work, error: ArmError | None) -> None:
        began = time.monotonic()
        try:
            error = error or self._effect(work)
            body["effect_s"] = round(time.monotonic() - began, 6)
            rest_s = body["delay_s"] * self._settings.time_scale - (time.monotonic() - began)
            if rest_s > 0 and self._stop.wait(rest_s):
                return
            self._finish(body, work, error, began)
        except Exception:
            log.exception("operation %s on %s", body["kind"], body["target"])
            self._end(
                body, ArmError(500, "InternalExecutionError", "An internal execution error occurred."), began
            )

    def _effect(self, work: Work) -> ArmError | None:
        locks = [self._lock(target) for target in sorted({ids.key(target) for target in work.targets})]
        for lock in locks:
            lock.acquire()
        try:
            work.effect()
        except ArmError as error:
            return error
        except (OSError, RuntimeError) as error:
            return ArmError(500, "InternalExecutionError", str(error))
        except Exception as error:  # the state must be settled whatever the backend does
            log.exception("backend failed on %s", ", ".join(work.targets))
            return ArmError(500, "InternalExecutionError", f"{type(error).__name__}: {error}")
        finally:
            for lock in reversed(locks):
                lock.release()
        return None

    def _lock(self, target: str) -> threading.Lock:
        with self._store.lock:
            return self._locks.setdefault(target, threading.Lock())

    def _finish(self, body: Json, work: Work, error: ArmError | None, began: float) -> None:
        with self._store.lock:
            try:
                work.settle(error)
            except ArmError as late:
                error = error or late
            self._end(body, error, began)

    def _end(self, body: Json, error: ArmError | None, began: float) -> None:
        ended = datetime.now(UTC)
        real_s = time.monotonic() - began
        body["ended_utc"] = azure_time(ended)
        body["real_s"] = round(real_s, 6)
        body["unscaled_s"] = body["delay_s"]
        started = ended - timedelta(seconds=real_s)
        body["unscaled_ended_utc"] = azure_time(started + timedelta(seconds=body["delay_s"]))
        body["status"] = body.get("ends", "Failed") if error else "Succeeded"
        if error:
            body["error"] = error.inner()
        self._store.save_operation(body["id"], body)

    def unfinished(self) -> list[Json]:
        return [body for body in self._store.operations.values() if body["status"] == "InProgress"]

    def abandon(self, body: Json, message: str) -> None:
        """Mark an operation that can no longer end as failed."""
        self._end(body, ArmError(500, "InternalExecutionError", message), time.monotonic())

    def close(self) -> None:
        """End the waiting, and give work under way a moment to end; what has not ended is taken up later."""
        self._stop.set()
        deadline = time.monotonic() + CLOSE_S
        for thread in list(self._threads):
            thread.join(max(0.0, deadline - time.monotonic()))
