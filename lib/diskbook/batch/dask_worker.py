"""What a Dask worker is asked to do for a batch: say whether it may, run a run in a process, and stop it.

Imported on workers by name, so it stands on little, and on Dask not at all before a task runs.
"""

import functools
import hashlib
import secrets
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import diskbook
from diskbook.batch import process
from diskbook.batch.stores import address as addresses
from diskbook.batch.stores.objects import open_objects
from diskbook.facts import client
from diskbook.facts.errors import DiskbookError

PURPOSE, PROOF = "batch", "worker of a batch"
MOST_LOG = 100_000
"""Characters of a run's log that the batch gets, from its end."""
_POLL_S = 0.2
_ASKED_TO_END = 128 + 15
_RUNNING = ("init", "running", "paused", "closing_gracefully")

_processes: dict[str, subprocess.Popen[bytes]] = {}
_ended: set[str] = set()  # starts that were stopped, some before they began here


@dataclass(frozen=True)
class Challenge:
    """What a worker has to be like: the batch's own code, its store, and the secret that signed this nonce.

    The signature is an HMAC of random digits: it tells nobody the secret. A worker answers with another one
    (`fitness`).
    """

    code: str
    nonce: str
    signature: str
    store: str | None


def challenge(store: str | None) -> Challenge:
    nonce = secrets.token_hex(16)
    return Challenge(code(), nonce, client.sign(PURPOSE, nonce), store)


@functools.cache
def code() -> str:
    """Version of diskbook, with a digest of its code: a clone may be between two versions."""
    digest, root = hashlib.sha256(), Path(diskbook.__file__).parent
    for path in sorted(root.rglob("*.py")):
        digest.update(f"{path.relative_to(root)}\n".encode() + path.read_bytes())
    return f"{diskbook.__version__} {digest.hexdigest()[:12]}"


def unfit(asked: Challenge) -> str:
    """Why this worker cannot run runs of a batch; empty where it can."""
    if code() != asked.code:
        return f"has another diskbook ({code()}, not {asked.code})"
    try:
        if not client.is_signed(asked.signature, PURPOSE, asked.nonce):
            return f"has another signing secret, or none ({client.home() / 'secret'})"
        if asked.store is not None:
            open_objects(addresses.parse(asked.store))
    except DiskbookError as error:
        return f"cannot work: {error}"
    return ""


def fitness(asked: Challenge, dask_worker: Any) -> tuple[str, str]:
    """Return why this worker is unfit, and its proof that it is fit; one of them is empty.

    - `asked`: the challenge of the batch.
    - `dask_worker`: this worker; Dask passes it by that name.
    """
    reason = unfit(asked)
    return reason, "" if reason else client.sign(PROOF, asked.nonce, dask_worker.contact_address, code())


def is_proof(proof: str, asked: Challenge, address: str) -> bool:
    """Whether a proof was made for this challenge, with this client's secret, by the worker at an address."""
    return client.is_signed(proof, PROOF, asked.nonce, address, asked.code)


def run(asked: Challenge, program: Sequence[str], start: str, order: str) -> tuple[int, str]:
    """Run a run in a process of its own, for as long as the batch wants it.

    Returns exit status as `Ending` has it, and the end of its log.
    """
    address, is_wanted = _place()
    if reason := unfit(asked):  # it came after the batch had looked at the others
        return process.HELD, f"worker {address} {reason}"
    with tempfile.TemporaryFile() as log:
        if start in _ended:
            return _ASKED_TO_END, "stopped before it began"
        _processes[start] = started = process.start(program, order, log)
        try:
            return _outlast(started, is_wanted), _end_of(log)
        finally:
            del _processes[start]


def _outlast(started: subprocess.Popen[bytes], is_wanted: Callable[[], bool]) -> int:
    """Wait for a run to end; when the batch or the scheduler has gone, have it tear down."""
    is_told = False
    while True:
        try:
            return started.wait(_POLL_S)
        except subprocess.TimeoutExpired:
            if not is_told and not is_wanted():
                is_told = True
                process.terminate(started)


def _place() -> tuple[str, Callable[[], bool]]:
    """Address of the worker that this task runs on, and whether the task is wanted still."""
    from distributed import get_worker

    worker = get_worker()
    key = worker.get_current_task()

    def is_wanted() -> bool:
        task = worker.state.tasks.get(key)
        return task is not None and task.state != "cancelled" and worker.status.name in _RUNNING

    return worker.address, is_wanted


def _end_of(log: IO[bytes]) -> str:
    size = log.seek(0, 2)
    log.seek(max(0, size - MOST_LOG))
    return log.read().decode("utf-8", "replace")


def stop(start: str) -> bool:
    """Ask a run to tear down and end, now or when it would begin; whether it runs here."""
    _ended.add(start)
    started = _processes.get(start)
    if started is not None:
        process.terminate(started)
    return started is not None
