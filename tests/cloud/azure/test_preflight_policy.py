"""What Azure Policy would refuse is said before anything is created, with what to change."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from azure.core.exceptions import HttpResponseError

from diskbook.cloud.azure import preflight, refusals
from diskbook.cloud.azure.clients import Clients, Cloud, StaticToken
from diskbook.design import scenario_file
from support.arm_plane import SUBSCRIPTION, TOKEN, World


@pytest.fixture
def clients(plane: World) -> Iterator[Clients]:
    yield Clients(Cloud("emulator", SUBSCRIPTION, StaticToken(TOKEN), plane.url, plane.ca, 0.0))
    assert plane.raw("PUT", "/diskbook/offer", json={}).status_code == 200
    plane.faults()


def _problems(plane: World, clients: Clients, policies: dict[str, Any], **settings: Any) -> list[str]:
    assert plane.raw("PUT", "/diskbook/offer", json={"policies": policies}).status_code == 200
    chosen = {key.replace("__", "."): value for key, value in settings.items()}
    return preflight.policy_problems(clients, scenario_file.load("zone-disks", "quick", chosen))


def test_a_tag_that_is_required_is_named_once(plane: World, clients: Clients) -> None:
    policies = {"tags": ["CostCenter"]}
    assert _problems(plane, clients, policies) == [
        "policy required-tags requires the tag 'CostCenter': give it with --tag 'CostCenter=VALUE'"
    ]
    assert _problems(plane, clients, policies, azure__tags={"costcenter": "4711"}) == []
    plane.group("policies")
    with pytest.raises(HttpResponseError) as caught:
        plane.disk("policies", "untagged")
    assert refusals.code(caught.value) == "RequestDisallowedByPolicy"
    assert "--tag KEY=VALUE" in refusals.with_advice(caught.value)


def test_regions_and_sizes_that_are_allowed_are_named(plane: World, clients: Clients) -> None:
    found = _problems(plane, clients, {"locations": ["northeurope", "eastus"], "sizes": ["Standard_D8as_v5"]})
    assert found == [
        "policy allowed-locations allows other regions (northeurope or eastus) than westeurope: --set "
        "scenario.region=REGION",
        "policy allowed-sizes does not allow size Standard_D4as_v4; it allows Standard_D8as_v5: --set "
        "machine.vm3.size=SIZE",
    ]


def test_a_named_group_is_asked_and_not_made(plane: World, clients: Clients) -> None:
    contents = preflight.contents(
        scenario_file.load("zone-disks", "quick", {"azure.resource_group": "theirs"}), "s"
    )
    assert not [content for content in contents if content.what == "resource groups"]
    assert _problems(plane, clients, {"tags": ["a"]}, azure__resource_group="theirs")


def test_who_may_not_ask_is_told_nothing(plane: World, clients: Clients) -> None:
    action = {"status": 403, "code": "AuthorizationFailed", "message": "No."}
    plane.faults({"match": {"path_regex": "/checkPolicyRestrictions$"}, "times": 0, "action": action})
    assert _problems(plane, clients, {"tags": ["a"]}) == []


def test_a_denial_without_details_is_passed_on() -> None:
    content = preflight.Content("network interfaces", "", "", {"type": "Microsoft.Network/networkInterfaces"})
    denial = {"policyInfo": {"policyAssignmentId": "/x/nsg-needed"}}
    said = preflight._sentence(content, "westeurope", denial, public=False)
    assert said == "policy nsg-needed refuses network interfaces as the run makes them; ask its owner"
