"""What Azure refuses in any request, beyond the rows of the table of its rules."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from checks.azure_requests import MACHINE, Request, attach, disk, get, network, nsg
from support.arm_app import Plane


@pytest.fixture(scope="module")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Plane]:
    made = Plane(tmp_path_factory.mktemp("requests"))
    made.begin("g")
    yield made
    made.close()


def refusal(plane: Plane, request: Request) -> tuple[str, str]:
    status, answer = plane.send(request)
    assert status == 400, answer
    error = answer["error"]
    return error["code"], (error.get("details") or [error])[0]["message"]


@pytest.mark.parametrize(
    ("request_", "path"),
    [
        (Request("PATCH", "disks/d", {}, {"properties.size": 5}), "properties.size"),
        (attach(cache="None"), "dataDisksToAttach[0].cache"),
        (Request("PUT", "virtualMachines/vm/extensions/e", {}, {"properties.kind": "x"}), "properties.kind"),
        (Request("PUT", "virtualNetworks/net/subnets/t", {}, {"properties.prefix": "10.0.1.0/24"}),
         "properties.prefix"),
    ],
)  # fmt: skip
def test_unknown_names_are_refused_wherever_they_are(plane: Plane, request_: Request, path: str) -> None:
    code, message = refusal(plane, request_)
    assert code in ("BadRequest", "InvalidRequestFormat") and message.endswith(f"Path '{path}'.")


def test_names_in_other_cases_and_settings_of_the_users_own_are_taken(plane: Plane) -> None:
    rows = {
        "properties": {"securityRules": [{"name": "r", "properties": {"PRIORITY": 100, "priority": 100}}]}
    }
    assert plane.send(Request("PUT", "networkSecurityGroups/o", {"location": "westeurope", **rows}))[0] == 201
    assert plane.send(network())[0] == 201 and plane.send(nsg())[0] == 201
    status, answer = plane.send(
        Request(
            "PUT", "virtualMachines/none/extensions/e", {"properties": {"settings": {"any": {"thing": 1}}}}
        )
    )
    assert (status, answer["error"]["code"]) == (404, "ResourceNotFound")


def test_what_is_shown_can_be_sent_back(plane: Plane) -> None:
    plane.begin("back")
    for request in (*MACHINE, nsg(), disk(), attach()):
        assert plane.send(request)[0] < 300
    for path in ("disks/d", "virtualMachines/vm", "virtualNetworks/net", "publicIPAddresses/ip",
                 "networkInterfaces/nic", "networkSecurityGroups/nsg"):  # fmt: skip
        shown = plane.send(get(path))[1]
        status, answer = plane.send(Request("PUT", path, shown))
        assert status < 300, (path, answer)
    plane.begin("again")


@pytest.mark.parametrize("tags", [["a"], "a", {"a": {"b": "c"}}])
def test_tags_are_texts_by_name(plane: Plane, tags: Any) -> None:
    assert refusal(plane, disk(tags=tags))[0] == "InvalidRequestContent"


def test_a_body_is_an_object(plane: Plane) -> None:
    status, answer = plane.call("PUT", f"{plane.group}/providers/x/y/z", "api-version=1", [1])
    assert status in (400, 404)
    path = f"{plane.group}/providers/Microsoft.Compute/disks/d"
    status, answer = plane.call("PUT", path, "api-version=2026-03-02", [1])
    assert (status, answer["error"]["code"]) == (400, "InvalidRequestContent")


def test_a_storage_account_takes_names_of_tags_up_to_128_characters(plane: Plane) -> None:
    path = f"{plane.group}/providers/Microsoft.Storage/storageAccounts/dbk1"
    body = {"location": "westeurope", "kind": "StorageV2", "sku": {"name": "Standard_LRS"}}
    for length, status in ((129, 400), (128, 202)):
        answer = plane.call("PUT", path, "api-version=2026-04-01", {**body, "tags": {"t" * length: ""}})
        assert answer[0] == status, answer
