"""Faults between a client and a real server: nothing lost, nothing stored twice, a sentence where it ends."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from diskbook.base import paths
from diskbook.base.errors import DiskbookError
from diskbook.remote import address, lease, patience, push, record as records, verify
from diskbook.remote.address import Address
from diskbook.remote.contents import Folder
from diskbook.remote.lease import LeaseLostError
from diskbook.remote.objects import RemoteObjects
from diskbook.remote.patience import UnreachableError
from diskbook.store.run import Run, open_run
from support import azurite
from support.azurite import Answer, Fault, Proxy, Request, error
from support.stores import add_trial, contents, small_run

pytestmark = pytest.mark.emulator

Send = Callable[[], Answer]
_numbers = itertools.count(1)


@pytest.fixture
def proxy(server: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Proxy]:
    monkeypatch.setattr(paths, "CACHE", tmp_path / "cache")
    monkeypatch.setattr(patience, "_FIRST_WAIT_S", 0.02)
    with azurite.proxy(server) as between:
        monkeypatch.setenv(azurite.VARIABLE, azurite.connection_string(between.port))
        yield between


@pytest.fixture
def store() -> Address:
    return address.parse(f"abfs://runs/faults{next(_numbers)}")


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return small_run(tmp_path / "runs" / "lab-1")


def first(fault: Fault, *methods: str) -> Fault:
    """A fault of the first request of each kind for each object; all others go well."""
    seen: set[tuple[str, str]] = set()

    def of_some(request: Request, send_on: Send) -> Answer | None:
        known = (request.method, request.path) in seen
        seen.add((request.method, request.path))
        return send_on() if known or (methods and request.method not in methods) else fault(request, send_on)

    return of_some


def busy(request: Request, _: Send) -> Answer:
    answers = ((503, "ServerBusy"), (500, "InternalError"), (429, "TooManyRequests"))
    return error(*answers[len(request.path) % 3])


def lost_answer(_: Request, send_on: Send) -> None:
    """The server has done it, and nobody is told."""
    send_on()


def slow(_: Request, send_on: Send) -> Answer:
    time.sleep(0.03)
    return send_on()


def short_answer(_: Request, send_on: Send) -> Answer:
    """Half of what the server says."""
    status, headers, content = send_on()
    return status, headers | {"content-length": str(len(content) // 2)}, content[: len(content) // 2]


def damaged_answer(request: Request, send_on: Send) -> Answer:
    """A file with a byte that the way has changed."""
    status, headers, content = send_on()
    return status, headers, content[:-1] + b"?" if "/files/" in request.path else content


FAULTS: dict[str, Callable[[Proxy], Fault]] = {
    "503, 500 or 429": lambda proxy: first(busy),
    "409 and nothing there": lambda proxy: first(lambda *_: error(409, "BlobAlreadyExists"), "PUT"),
    "cut upload": lambda proxy: first(
        lambda request, _: proxy.send_on(request, len(request.body) // 2) and None, "PUT"
    ),
    "closed at once": lambda proxy: first(lambda *_: None),
    "lost answer": lambda proxy: first(lost_answer, "PUT"),
    "slow": lambda proxy: first(slow),
    "short answer": lambda proxy: first(short_answer, "GET"),
    "damaged on the way": lambda proxy: first(damaged_answer, "GET"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_run_goes_up_and_comes_back_through(name: str, proxy: Proxy, store: Address, run: Run) -> None:
    proxy.fault = FAULTS[name](proxy)
    push.push(run.folder, store)
    add_trial(run, 8)
    push.push(run.folder, store)
    copy = open_run(str(store / "lab-1"))
    assert contents(copy.folder) == contents(run.folder)
    proxy.fault = None
    result = next(iter(verify.verify(store)))
    assert (result.state, result.faults, result.unused) == ("whole", [], 0)
    log = lease.read(RemoteObjects(store / "lab-1"))
    assert log.state.token == 2
    assert len(log.objects.names(records.FOLDER)) == log.state.number == 6


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (
            error(503, "ServerBusy"),
            r"the store failed for 1 s \(last: 503 ServerBusy\); what is stored is whole",
        ),
        (None, r"the store failed for 1 s \(last: .*\); what is stored is whole"),
        (
            error(403, "AuthorizationPermissionMismatch"),
            "403 .*; ask for the role Storage Blob Data Contributor",
        ),
        (error(404, "ContainerNotFound"), "404 ContainerNotFound; make that container or bucket first"),
    ],
)
def test_a_store_that_fails_for_good_is_said_to(
    answer: Any, words: str, proxy: Proxy, store: Address, run: Run
) -> None:
    proxy.fault = lambda request, send_on: answer if request.method == "PUT" else send_on()
    with pytest.raises(DiskbookError, match=words) as failed:
        lease.claim(RemoteObjects(store / "lab-1", 1), 1)
    assert "\n" not in str(failed.value) and "devstore" not in str(failed.value)


def test_our_own_waits_are_the_only_ones(proxy: Proxy, store: Address) -> None:
    """The SDK would wait 15 s before it asked again."""
    proxy.fault = lambda *_: error(503, "ServerBusy")
    began = time.monotonic()
    with pytest.raises(UnreachableError):
        RemoteObjects(store, 1.0).names()
    assert time.monotonic() - began < 5 and len(proxy.seen) >= 3


def test_a_worker_that_is_cut_off_gives_the_run_up_and_another_goes_on(
    proxy: Proxy, server: int, store: Address, run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    hold = lease.claim(RemoteObjects(store / "lab-1", 0.3), 1.0)
    push.store_new(hold, Folder(run.folder))
    monkeypatch.setenv(azurite.VARIABLE, azurite.connection_string(server))
    proxy.fault = lambda *_: error(503, "ServerBusy")
    lost = ""
    for _ in range(20):
        time.sleep(0.1)
        try:
            hold.beat()
        except UnreachableError:
            try:
                hold.check()
            except LeaseLostError as gone:
                lost = str(gone)
                break
    assert "no sign of life could be shown for 1 s" in lost
    other = lease.claim(RemoteObjects(store / "lab-1"), 1.0)
    proxy.fault = None
    add_trial(run, 50)
    with pytest.raises(LeaseLostError):
        push.store_new(hold, Folder(run.folder))
    push.complete(other, Folder(run.folder))
    assert next(iter(verify.verify(store))).faults == []
