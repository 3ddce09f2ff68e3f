"""Faults between a client and a real server: nothing lost, nothing stored twice, a sentence where it ends."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from checks import store_proxy
from checks.store_proxy import FAULTS, Proxy, error
from diskbook.batch.stores import address, lease, push, record as records, retries, verify
from diskbook.batch.stores.address import Address
from diskbook.batch.stores.contents import Folder
from diskbook.batch.stores.lease import LeaseLostError
from diskbook.batch.stores.objects import RemoteObjects
from diskbook.batch.stores.retries import UnreachableError
from diskbook.batch.stores.sync import keeping
from diskbook.facts import paths
from diskbook.facts.errors import DiskbookError
from diskbook.results.run import Run, open_run
from support import azurite
from support.emulated import soon
from support.stores import add_trial, contents, small_run

LONG_S = 1000.0
"""Added to when an owner was last seen, so that a busy machine takes nothing of its lease."""

pytestmark = pytest.mark.emulator

_numbers = itertools.count(1)


@pytest.fixture
def proxy(server: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Proxy]:
    monkeypatch.setattr(paths, "CACHE", tmp_path / "cache")
    monkeypatch.setattr(retries, "_FIRST_WAIT_S", 0.02)
    with store_proxy.proxy(server) as between:
        monkeypatch.setenv(azurite.VARIABLE, azurite.connection_string(between.port))
        yield between


@pytest.fixture
def store() -> Address:
    return address.parse(f"abfs://runs/faults{next(_numbers)}")


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return small_run(tmp_path / "runs" / "lab-1")


@pytest.mark.parametrize("name", FAULTS)
def test_a_run_goes_up_and_comes_back_through(name: str, proxy: Proxy, store: Address, run: Run) -> None:
    proxy.fault = FAULTS[name](proxy)
    push.push(run.folder, store)
    add_trial(run, 8)
    push.push(run.folder, store)
    copy = open_run(str(store / "lab-1"))
    assert contents(copy.folder) == contents(run.folder)
    assert proxy.struck
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
        RemoteObjects(store, 2.0).names()
    assert time.monotonic() - began < 14 and len(proxy.seen) >= 2


def test_a_worker_that_is_cut_off_gives_the_run_up_and_another_goes_on(
    proxy: Proxy, server: int, store: Address, run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    hold = lease.claim(RemoteObjects(store / "lab-1", 0.3), 10.0)
    hold._seen += LONG_S
    push.store_new(hold, Folder(run.folder))
    hold.lease_s = 1.0
    hold.beat()  # from here on
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
    other = lease.claim(RemoteObjects(store / "lab-1"), 10.0)
    other._seen += LONG_S
    proxy.fault = None
    add_trial(run, 50)
    with pytest.raises(LeaseLostError):
        push.store_new(hold, Folder(run.folder))
    push.complete(other, Folder(run.folder))
    assert next(iter(verify.verify(store))).faults == []


def test_a_run_whose_store_stays_away_is_stopped(proxy: Proxy, store: Address, run: Run) -> None:
    """Another may own it by now, and the run would not hear of that."""
    lost: list[str] = []
    with pytest.raises(LeaseLostError, match="no sign of life could be shown for 3 s"):
        with keeping(run.folder, store / "lab-1", lambda error: lost.append(str(error)), lambda: True, 3.0):
            proxy.fault = store_proxy.closed
            assert soon(lambda: lost)
    assert len(lost) == 1


def test_a_finished_run_that_the_store_lacks_says_how_it_gets_there(
    proxy: Proxy, store: Address, run: Run
) -> None:
    with pytest.raises(
        DiskbookError, match=rf"failed for 3 s .*; all of it is here: 'diskbook push lab-1 {store}'"
    ):
        with keeping(run.folder, store / "lab-1", print, lambda: True, 3.0):
            proxy.fault = store_proxy.closed
