"""Machines of a failed run are kept for a look only if that was asked for, and never beyond their expiry."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from azure.core.exceptions import HttpResponseError

from diskbook.design.vocabulary import Provenance
from diskbook.facts.errors import DiskbookError, Stopped, UsageError
from diskbook.measure.runs import debug, pipeline
from diskbook.measure.runs.begin import begin
from diskbook.results.run import Run
from support import SCENARIOS

FAILURE = DiskbookError("machine r1-vm1 cannot be reached")


class _Network(SimpleNamespace):
    """What is asked of the clients of a cloud: one machine, and its address."""

    def get(self, group: str, name: str) -> SimpleNamespace:
        assert (group, name) == ("g", "r1-vm1-ip")
        return SimpleNamespace(ip_address="198.51.100.9")

    def list(self, group: str) -> list[SimpleNamespace]:
        if self.broken:
            raise HttpResponseError("away")
        return [SimpleNamespace(name="r1-vm1", tags={})]


@pytest.fixture
def waited(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Seconds of the waits."""
    waits: list[float] = []
    monkeypatch.setattr(debug.time, "sleep", waits.append)
    return waits


def _run(tmp_path: Path, patch: pytest.MonkeyPatch, minutes: float | None, left: timedelta) -> Run:
    patch.setenv("DISKBOOK_RUNS", str(tmp_path))
    run = begin("debugged", str(SCENARIOS / "tiny.toml"))
    expires = (datetime.now(UTC) + left).isoformat("T", "seconds")
    run.update_manifest(resource_groups=[{"name": "g", "deleted_utc": None, "expires_utc": expires}])
    debug.note(run, minutes)
    return run


def _clients(
    patch: pytest.MonkeyPatch, provenance: Provenance, scale: float = 1.0, broken: bool = False
) -> list[str]:
    told: list[str] = []
    network = _Network(broken=broken)
    clients = SimpleNamespace(
        cloud=SimpleNamespace(time_scale=scale, provenance=provenance, admin_user="diskbook"),
        compute=SimpleNamespace(virtual_machines=network),
        network=SimpleNamespace(public_ip_addresses=network),
        tell=told.append,
    )
    patch.setattr(debug.connect, "clients_of", lambda run: clients)
    return told


def test_the_wait_says_until_when_what_it_costs_and_how_to_look(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, waited: list[float]
) -> None:
    run = _run(tmp_path, monkeypatch, 10, timedelta(hours=1))
    told = _clients(monkeypatch, Provenance.AZURE)
    debug.hold(run, FAILURE)
    assert waited == [600.0]
    first, second, third = told[0].splitlines()
    assert first == str(FAILURE)
    assert "Ctrl-C deletes them now. That costs about 0.0" in second and "USD for 10 min" in second
    assert "they shut down at" in second
    assert "-p 22 diskbook@198.51.100.9; or az vm run-command invoke -g g -n r1-vm1" in third


def test_the_wait_ends_with_the_expiry_and_is_scaled_on_the_emulator(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, waited: list[float]
) -> None:
    run = _run(tmp_path, monkeypatch, 60, timedelta(minutes=2))
    _clients(monkeypatch, Provenance.AZURE, broken=True)
    debug.hold(run, FAILURE)
    told = _clients(monkeypatch, Provenance.EMULATED, scale=0.01)
    debug.hold(run, FAILURE)
    assert 60 < waited[0] <= 120 and waited[1] == 36.0
    assert "On Azure that would cost" in told[0] and "az vm" not in told[0]


def test_nothing_is_kept_unasked_or_after_ctrl_c(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, waited: list[float]
) -> None:
    run = _run(tmp_path, monkeypatch, None, timedelta(hours=1))
    _clients(monkeypatch, Provenance.AZURE)
    debug.hold(run, FAILURE)
    debug.note(run, 10)
    monkeypatch.setattr(pipeline.stages, "teardown", lambda run: None)
    pipeline._tear_down(run, Stopped(2))
    pipeline._tear_down(run, None)
    assert waited == []


def test_a_wait_that_fails_keeps_nothing_standing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = _run(tmp_path, monkeypatch, 10, timedelta(hours=1))
    done: list[Any] = []

    def fail(run: Run) -> None:
        raise ValueError("unforeseen")

    monkeypatch.setattr(debug.connect, "clients_of", fail)
    monkeypatch.setattr(pipeline.stages, "teardown", done.append)
    pipeline._tear_down(run, FAILURE)
    assert done == [run]


def test_ctrl_c_ends_the_wait_and_the_teardown_follows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = _run(tmp_path, monkeypatch, 10, timedelta(hours=1))
    _clients(monkeypatch, Provenance.AZURE)
    done: list[Any] = []

    def stop(seconds: float) -> None:
        raise Stopped(2)

    monkeypatch.setattr(debug.time, "sleep", stop)
    monkeypatch.setattr(pipeline.stages, "teardown", done.append)
    pipeline._tear_down(run, FAILURE)
    assert done == [run]


@pytest.mark.parametrize("minutes", [0, -1, 61, float("nan")])
def test_a_time_that_is_none(minutes: float) -> None:
    with pytest.raises(UsageError, match="give more than 0, at most 60"):
        debug.check_minutes(minutes)
