"""A replicate that fails is deleted at once, unless it is kept or measured by hand."""

from __future__ import annotations

import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from diskbook.cloud.azure.teardown import LeftStandingError
from diskbook.facts.errors import DiskbookError, Stopped
from diskbook.measure.runs import pipeline, stages


class _Run(SimpleNamespace):
    """What is asked of a run here."""

    name = "r"


@pytest.fixture
def removed(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Numbers of the replicates that were deleted; measuring fails."""
    numbers: list[int] = []

    def fail(*parts: Any) -> None:
        raise DiskbookError("the machine is away")

    monkeypatch.setattr(stages, "_play", fail)
    monkeypatch.setattr(stages.connect, "clients_of", lambda run: SimpleNamespace(tell=lambda text: None))
    monkeypatch.setattr(
        stages.named_group, "remove_replicate", lambda clients, run, group, number: numbers.append(number)
    )
    return numbers


def _measured(stop: threading.Event, **manifest: Any) -> None:
    rows = [{"origin": 1, "replicate": number, "resource_group": "g"} for number in (1, 3)]
    run: Any = _Run(manifest={"replicates": rows, "resource_groups": [], **manifest})
    scenario: Any = None
    stages._measure_replicate(run, scenario, 1, [], stop)


@pytest.mark.parametrize(("manifest", "gone"), [({"kept": False}, [3]), ({"kept": True}, []), ({}, [])])
def test_the_machines_of_a_failed_replicate(
    removed: list[int], manifest: dict[str, Any], gone: list[int]
) -> None:
    """Its latest set, and at once: others may yet take minutes to end their trials."""
    stop = threading.Event()
    with pytest.raises(DiskbookError, match="the machine is away"):
        _measured(stop, **manifest)
    assert removed == gone and stop.is_set()


def test_a_deletion_that_fails_hides_no_failure(removed: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    lines: list[str] = []

    def fail(*parts: Any) -> None:
        raise DiskbookError("a lock")

    monkeypatch.setattr(stages.named_group, "remove_replicate", fail)
    monkeypatch.setattr(stages.connect, "clients_of", lambda run: SimpleNamespace(tell=lines.append))
    with pytest.raises(DiskbookError, match="the machine is away"):
        _measured(threading.Event(), kept=False)
    assert lines == ["the failed replicate 1 still stands (a lock); 'diskbook teardown r' deletes it"]


def test_a_replicate_does_not_begin_after_another_has_failed(removed: list[int]) -> None:
    stop = threading.Event()
    stop.set()
    _measured(stop, kept=False)
    assert removed == []


@pytest.mark.parametrize(
    ("failure", "first"),
    [
        (DiskbookError("no room"), "no room; and the teardown failed: "),
        (Stopped(2), "stopped by SIGINT; and the teardown failed: "),
        (DiskbookError("4-teardown stopped: g still exists"), "4-teardown stopped: "),
        (None, ""),
    ],
)
def test_a_teardown_that_fails_is_said_beside_what_failed_before(
    monkeypatch: pytest.MonkeyPatch, failure: BaseException | None, first: str, tmp_path: Path
) -> None:
    """Once, and with the status of what still stands."""

    def fail(run: Any) -> None:
        raise LeftStandingError("g still exists")

    monkeypatch.setattr(stages, "teardown", fail)
    run: Any = SimpleNamespace(folder=tmp_path)
    with pytest.raises(DiskbookError) as raised:
        pipeline._tear_down(run, failure)
    assert str(raised.value) == f"{first}g still exists" and raised.value.exit_code == 3
