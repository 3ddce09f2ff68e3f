"""Token buckets, alone and by Azure's clock, and what a client meets when one is empty."""

from __future__ import annotations

from pathlib import Path

import pytest

from diskbook.facts.arm import DELAYS_S, POLICIES
from diskbook_emulator.arm.errors import ArmError
from diskbook_emulator.arm.gateway import Buckets, Charge, charge, window
from support.arm_plane import SUBSCRIPTION, world

ROOT = f"/subscriptions/{SUBSCRIPTION}"
COMPUTE = f"{ROOT}/resourceGroups/g/providers/Microsoft.Compute"
MACHINE = f"{COMPUTE}/virtualMachines/vm"


class Clock:
    """A clock that is set by hand."""

    def __init__(self) -> None:
        self.s = 1000.0

    def __call__(self) -> float:
        return self.s


def _throttled(buckets: Buckets, charged: Charge, times: int) -> int:
    """Ask so many times; return how often it was refused."""
    refused = 0
    for _ in range(times):
        try:
            buckets.take(charged)
        except ArmError as error:
            assert error.status == 429
            refused += 1
    return refused


@pytest.mark.parametrize(
    ("method", "path", "group"),
    [
        ("PUT", MACHINE, "PutVM"),
        ("PATCH", MACHINE, "UpdateVM"),
        ("DELETE", MACHINE, "DeleteVM"),
        ("GET", MACHINE, "LowCostGet"),
        ("GET", f"{MACHINE}/instanceView", "LowCostGet"),
        ("POST", f"{MACHINE}/attachDetachDataDisks", "AttachDetachVMDisks"),
        ("POST", f"{MACHINE}/start", "UpdateVM"),
        ("POST", f"{MACHINE}/deallocate", "DeleteVM"),
        ("PUT", f"{MACHINE}/extensions/setup", "UpdateVM"),
        ("DELETE", f"{MACHINE}/extensions/setup", "UpdateVM"),
        ("GET", f"{COMPUTE}/virtualMachines", "HighCostGet"),
        ("GET", f"{ROOT}/providers/Microsoft.Compute/locations/l/operations/1", "GetOperation"),
    ],
)
def test_requests_about_machines_are_charged_as_documented(method: str, path: str, group: str) -> None:
    charged = charge(method, path)
    assert charged is not None and charged.group == group
    if POLICIES[group].resource is not None:
        assert charged.resource == (path.lower() if group == "GetOperation" else MACHINE.lower())


def test_disks_and_other_providers_have_no_buckets() -> None:
    for path in (f"{COMPUTE}/disks/d", f"{ROOT}/providers/Microsoft.Compute/locations/l/DiskOperations/1"):
        assert charge("GET", path) is None and window("GET", path)
    network = f"{ROOT}/providers/Microsoft.Network/locations/l/operations/1"
    assert charge("GET", network) is None and window("GET", network) is None


def test_a_bucket_is_emptied_and_refilled_as_microsofts_page_counts_it() -> None:
    """Requests by minute, and of them throttled ones, from the example of "Compute throttling limits"."""
    clock = Clock()
    buckets, update = Buckets(1.0, now=clock), Charge("UpdateVM", "vm")
    refused = []
    assert "UpdateVMResource;11" in buckets.take(update)  # made full, a minute before the example begins
    clock.s += 60
    for requests in (0, 8, 0, 13, 5, 0):
        refused.append(_throttled(buckets, update, requests))
        clock.s += 60
    assert refused == [0, 0, 0, 1, 1, 0]
    assert "UpdateVMResource;7" in buckets.take(update)  # 4 of the sixth minute, 4 of this one, less this


def test_each_operation_has_its_own_bucket_and_the_subscription_one_for_all() -> None:
    buckets = Buckets(1.0, now=Clock())
    first, second = (Charge("GetOperation", name) for name in "ab")
    buckets.take(first)
    assert buckets.take(first) == (
        "Microsoft.Compute/GetOperationSubscriptionMaximum;14998,Microsoft.Compute/GetOperationResource;43"
    )
    assert buckets.take(second) == (
        "Microsoft.Compute/GetOperationSubscriptionMaximum;14997,Microsoft.Compute/GetOperationResource;44"
    )


def test_the_refusal_says_when_there_will_be_tokens() -> None:
    clock = Clock()
    buckets, get = Buckets(1.0, now=clock), Charge("LowCostGet", "vm")
    assert _throttled(buckets, get, 36) == 0
    clock.s += 42.5
    with pytest.raises(ArmError) as caught:
        buckets.take(get)
    error = caught.value
    assert (error.status, error.headers["Retry-After"]) == (429, "18")
    assert error.headers["x-ms-ratelimit-remaining-resource"] == "Microsoft.Compute/LowCostGetResource;0"
    clock.s += 17.5
    assert _throttled(buckets, get, 13) == 1
    assert _throttled(buckets, Charge("LowCostGet", "another"), 36) == 0


def test_buckets_are_refilled_by_the_emulators_clock() -> None:
    clock = Clock()
    buckets, update = Buckets(0.01, now=clock), Charge("UpdateVM", "vm")
    assert _throttled(buckets, update, 13) == 1
    clock.s += 0.6
    assert _throttled(buckets, update, 5) == 1
    timeless = Buckets(0.0, now=clock)
    assert _throttled(timeless, update, 100) == 0


def test_a_share_of_the_buckets_is_whole_and_never_nothing() -> None:
    assert _throttled(Buckets(1.0, lambda group: 0.25, Clock()), Charge("UpdateVM", "vm"), 5) == 2
    assert _throttled(Buckets(1.0, lambda group: 0.01, Clock()), Charge("UpdateVM", "vm"), 5) == 4


def test_the_control_plane_throttles_by_default(tmp_path: Path) -> None:
    with world(tmp_path, time_scale=1.0, delays_s=dict.fromkeys(DELAYS_S, 0.0)) as made:
        made.group("g")
        answers = [made.raw("GET", f"{MACHINE}?api-version=2026-04-01") for _ in range(37)]
        assert [answer.status_code for answer in answers] == [404] * 36 + [429]
        assert answers[0].headers["x-ms-ratelimit-remaining-resource"].endswith("LowCostGetResource;35")
        assert 0 < int(answers[-1].headers["Retry-After"]) <= 60
        assert answers[-1].json()["error"]["details"][0]["target"] == "LowCostGetResource"
        made.faults({"match": {"bucket": "DeleteVM"}, "action": {"bucket_share": 0.25}})
        answers = [made.raw("DELETE", f"{MACHINE}?api-version=2026-04-01") for _ in range(5)]
        assert [answer.status_code for answer in answers] == [204, 204, 204, 429, 429]
        assert made.raw("GET", "/diskbook/faults").json()["value"][0]["seen"] == 2
