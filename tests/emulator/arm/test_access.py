"""Role and registered providers of the emulated subscription: refused as Azure does, and set back."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from diskbook_emulator.arm import access
from support.arm_plane import SUBSCRIPTION, World

SUB = f"/subscriptions/{SUBSCRIPTION}"
GROUP = f"{SUB}/resourceGroups/access"
API = {"api-version": "2024-03-01"}


@pytest.fixture(autouse=True)
def as_it_was(plane: World) -> Iterator[None]:
    yield
    plane.raw("PUT", "/diskbook/offer", json={})


def _offer(plane: World, **offer: Any) -> int:
    return plane.raw("PUT", "/diskbook/offer", json=offer).status_code


@pytest.mark.long
def test_a_reader_reads_and_writes_nothing(plane: World) -> None:
    assert _offer(plane, role="Reader") == 200
    assert plane.raw("GET", SUB, params=API).status_code == 200
    answer = plane.raw("PUT", GROUP, params=API, json={"location": "westeurope"})
    assert answer.status_code == 403
    error = answer.json()["error"]
    assert error["code"] == "AuthorizationFailed"
    assert "action 'Microsoft.Resources/subscriptions/resourceGroups/write'" in error["message"]
    assert _offer(plane, role="none") == 200 and plane.raw("GET", SUB, params=API).status_code == 403
    assert _offer(plane, role="King") == 400


def test_a_provider_is_refused_until_it_is_registered(plane: World) -> None:
    path = f"{GROUP}/providers/Microsoft.Compute/disks/d"
    plane.group("access")
    assert _offer(plane, unregistered=["Microsoft.Compute"]) == 200
    answer = plane.raw("PUT", path, params=API, json={})
    assert answer.status_code == 409
    error = answer.json()["error"]
    assert error["code"] == "MissingSubscriptionRegistration"
    assert error["details"][0]["target"] == "Microsoft.Compute"
    about = f"{SUB}/providers/Microsoft.Compute"
    assert plane.raw("GET", about, params=API).json()["registrationState"] == "NotRegistered"
    assert plane.raw("POST", f"{about}/register", params=API).json()["registrationState"] == "Registering"
    assert plane.raw("GET", about, params=API).json()["registrationState"] == "Registered"
    assert plane.raw("PUT", path, params=API, json={}).json()["error"]["code"] != error["code"]


@pytest.mark.parametrize(
    ("method", "path", "action"),
    [
        ("GET", SUB, "Microsoft.Resources/subscriptions/read"),
        ("DELETE", GROUP, "Microsoft.Resources/subscriptions/resourceGroups/delete"),
        ("PUT", f"{GROUP}/providers/Microsoft.Compute/disks/d", "Microsoft.Compute/disks/write"),
        (
            "POST",
            f"{GROUP}/providers/Microsoft.Compute/virtualMachines/v/start",
            "Microsoft.Compute/virtualMachines/start/action",
        ),
        (
            "PUT",
            f"{GROUP}/providers/Microsoft.Network/virtualNetworks/n/subnets/s",
            "Microsoft.Network/virtualNetworks/subnets/write",
        ),
        ("POST", f"{SUB}/providers/Microsoft.Compute/register", "Microsoft.Compute/register/action"),
        ("POST", f"{SUB}/metrics:getBatch", "Microsoft.Insights/metrics/read"),
        ("GET", "/diskbook/status", ""),
    ],
)
def test_the_action_of_a_request(method: str, path: str, action: str) -> None:
    assert access.action_of(method, path) == action
