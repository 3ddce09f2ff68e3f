"""Steps in parallel as far as they can be, and the longest chain; when the next poll is due."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from graphlib import CycleError
from typing import Any

import pytest
from hypothesis import given, strategies as st

from diskbook.cloud.azure.clients import PollingPolicy, poll_interval_s
from diskbook.cloud.azure.provision import Step, longest_chain, run_steps


def test_steps_get_what_they_need_and_nothing_else() -> None:
    seen: dict[str, Mapping[str, Any]] = {}

    def note(name: str) -> Step:
        needs = {"c": ("a", "b"), "d": ("c",)}.get(name, ())

        def action(has: Mapping[str, Any]) -> str:
            seen[name] = dict(has)
            return name.upper()

        return Step(action, needs)

    ended: list[str] = []
    found = run_steps({name: note(name) for name in "dcba"}, lambda name, result: ended.append(name + result))
    assert found == {"a": "A", "b": "B", "c": "C", "d": "D"}
    assert seen == {"a": {}, "b": {}, "c": {"a": "A", "b": "B"}, "d": {"c": "C"}}
    assert ended[2:] == ["cC", "dD"] and sorted(ended[:2]) == ["aA", "bB"]


def test_steps_that_do_not_need_one_another_run_side_by_side() -> None:
    together = threading.Barrier(3, timeout=60)  # passed only when all three are under way
    steps = {name: Step(lambda _: together.wait()) for name in ("disk", "network", "address")}
    assert sorted(run_steps(steps).values()) == [0, 1, 2]


def test_after_a_failure_nothing_is_begun_and_what_runs_is_waited_for() -> None:
    failed, ended, begun = threading.Event(), [], []

    def fail(_: Any) -> None:
        failed.set()
        raise RuntimeError("no room")

    def slow(_: Any) -> None:
        failed.wait(10)
        ended.append("slow")

    steps = {
        "bad": Step(fail),
        "slow": Step(slow),
        "after bad": Step(lambda _: begun.append("after bad"), ("bad",)),
        "after slow": Step(lambda _: begun.append("after slow"), ("slow",)),
    }
    with pytest.raises(RuntimeError, match="no room"):
        run_steps(steps)
    assert ended == ["slow"] and begun == []


def test_a_circle_is_refused() -> None:
    with pytest.raises(CycleError):
        run_steps({"a": Step(print, ("b",)), "b": Step(print, ("a",))})


def test_the_longest_chain_is_found() -> None:
    needs = {"net": (), "nsg": (), "ip": (), "nic": ("net", "nsg", "ip"), "vm": ("nic",), "disk": ()}
    took_s = {"net": 3.0, "nsg": 2.0, "ip": 2.0, "nic": 0.5, "vm": 168.0, "disk": 0.5}
    assert longest_chain(needs, took_s) == (171.5, ["net", "nic", "vm"])
    assert longest_chain({}, {}) == (0.0, [])


@given(st.floats(min_value=0.5, max_value=3600))
def test_an_end_is_noticed_within_a_second_or_a_twentieth(took_s: float) -> None:
    asked_s, polls = 0.0, 1
    while asked_s < took_s:
        asked_s, polls = asked_s + poll_interval_s(asked_s), polls + 1
    assert asked_s - took_s <= max(1.0, 0.05 * took_s) + 0.5  # waits are whole seconds
    assert polls <= 140


class _Exchange:
    """Request and response as a policy sees them."""

    def __init__(self, url: str, method: str = "GET", status: int = 200, asked: str = "50") -> None:
        self.http_request = self
        self.http_response = self
        self.url, self.method, self.status_code = url, method, status
        self.headers = {"Retry-After": asked}


_COMPUTE = "https://a/subscriptions/s/providers/Microsoft.Compute/locations/l"


@pytest.mark.parametrize(
    ("exchange", "wanted"),
    [
        (_Exchange(f"{_COMPUTE}/operations/1?t=x"), "2"),
        (_Exchange(f"{_COMPUTE}/DiskOperations/1", asked="2"), "1"),
        (_Exchange("https://a/subscriptions/s/operationresults/eyJ", asked="15"), "1"),
        (_Exchange("https://a/subscriptions/s/operationresults/eyJ", status=429), "50"),
        (_Exchange("https://a/subscriptions/s/resourceGroups/operations/providers/M.C/disks/d"), "50"),
        (_Exchange(f"{_COMPUTE}/operations/1", method="PUT"), "50"),
    ],
)
def test_only_answers_to_polls_get_our_pace(exchange: _Exchange, wanted: str) -> None:
    PollingPolicy().on_response(exchange, exchange)
    assert exchange.headers["Retry-After"] == wanted


def test_the_pace_slows_down_with_each_operation() -> None:
    pace, waits = PollingPolicy(), []
    for _ in range(60):
        # As recorded: Azure names 50 s at first, and nothing later on.
        exchange = _Exchange(f"{_COMPUTE}/operations/1", asked="" if waits else "50")
        pace.on_response(exchange, exchange)
        waits.append(int(exchange.headers["Retry-After"]))
    other = _Exchange(f"{_COMPUTE}/operations/2", asked="10")
    pace.on_response(other, other)
    assert waits == sorted(waits) and waits[0] == 2 and waits[-1] > 5
    # Polls of a machine that takes 168 s, the last of which finds it ended.
    assert next(number for number in range(60) if sum(waits[:number]) >= 168) + 1 == 51
    assert other.headers["Retry-After"] == "1"
