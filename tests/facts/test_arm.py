"""Versions of Azure's APIs that exist, and the names of properties that it knows."""

from __future__ import annotations

import pytest

from checks import arm_properties
from diskbook.cloud.azure import clients, expiry, offers, preflight, signin
from diskbook.facts import arm


@pytest.mark.parametrize(
    ("kind", "version"),
    [
        ("Microsoft.Compute/skus", offers.SKUS_API),
        ("Microsoft.DevTestLab/schedules", expiry.API),
        ("Microsoft.Network/bastionHosts", preflight.NETWORK_API),
        ("Microsoft.Resources", clients.LOCATIONS_API),
        ("Microsoft.Resources", signin.SUBSCRIPTIONS_API),
    ],
)
def test_the_versions_that_our_requests_name_exist(kind: str, version: str) -> None:
    assert version in arm.api_versions(kind)


def test_a_kind_without_a_list_has_its_parents_or_its_providers() -> None:
    machines = arm.api_versions("Microsoft.Compute/virtualMachines")
    assert arm.api_versions("microsoft.compute/virtualmachines/extensions") == machines
    assert {*machines, "2026-03-02"} <= set(arm.api_versions("Microsoft.Compute/locations/usages"))
    assert arm.api_versions("Microsoft.PolicyInsights/checkPolicyRestrictions") == ()


def test_the_names_of_properties_are_those_of_the_sdk() -> None:
    assert arm_properties.TABLE.read_text("utf-8") == arm_properties.table(), (
        "run `python -m checks.arm_properties` after a new release of the SDK"
    )
