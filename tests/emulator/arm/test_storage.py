"""Storage accounts on the control plane, by the unmodified client: what the witness of a cluster needs."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import pytest
from azure.core.exceptions import ResourceNotFoundError
from azure.mgmt.storage import StorageManagementClient

from support.arm_plane import LOCATION, World, held_operations, refused, world
from support.emulated import soon

BODY: dict[str, Any] = {
    "location": LOCATION,
    "kind": "StorageV2",
    "sku": {"name": "Standard_LRS"},
    "tags": {"run": "r"},
    "properties": {"minimumTlsVersion": "TLS1_2", "allowBlobPublicAccess": False},
}


def accounts(plane: World) -> Any:
    return plane.client(StorageManagementClient).storage_accounts


def keys_of(plane: World, group: str, name: str) -> dict[str, str]:
    rows = accounts(plane).list_keys(group, name, expand=None).keys_property
    return {row.key_name: row.value for row in rows}


def test_an_account_is_made_shown_and_listed(plane: World) -> None:
    group = plane.group("accounts")
    made = accounts(plane).begin_create(group, "dbk0123abc", BODY).result()
    assert (made.name, made.kind, made.sku.name, made.sku.tier) == (
        "dbk0123abc",
        "StorageV2",
        "Standard_LRS",
        "Standard",
    )
    shown = accounts(plane).get_properties(group, "dbk0123abc")
    assert shown.provisioning_state == "Succeeded" and shown.minimum_tls_version == "TLS1_2"
    assert shown.primary_endpoints.blob == "https://dbk0123abc.blob.core.windows.net/"
    assert [row.name for row in accounts(plane).list_by_resource_group(group)] == ["dbk0123abc"]
    assert "dbk0123abc" in [row.name for row in accounts(plane).list()]
    (row,) = plane.resource.resources.list_by_resource_group(group)
    assert row.type == "Microsoft.Storage/storageAccounts" and row.tags == {"run": "r"}


def test_creation_takes_its_time(tmp_path: Path) -> None:
    with held_operations() as goes_on, world(tmp_path) as made:
        group = made.group("g")
        with held_operations():
            poller = accounts(made).begin_create(group, "dbk1", BODY)
            status, code, _ = refused(lambda: keys_of(made, group, "dbk1"))
        assert (status, code) == (409, "StorageAccountIsNotProvisioned")
        goes_on.set()
        assert poller.result().name == "dbk1"
        assert made.slept  # between polls
        assert len(keys_of(made, group, "dbk1")) == 2


def test_keys_are_long_random_kept_and_shown_nowhere_else(tmp_path: Path) -> None:
    with world(tmp_path) as made:
        group = made.group("g")
        for name in ("dbk1", "dbk2"):
            accounts(made).begin_create(group, name, BODY).result()
        keys = {name: keys_of(made, group, name) for name in ("dbk1", "dbk2")}
        assert list(keys["dbk1"]) == ["key1", "key2"]
        values = {value for each in keys.values() for value in each.values()}
        assert len(values) == 4 and {len(base64.b64decode(value)) for value in values} == {64}
        again = accounts(made).begin_create(group, "dbk1", {**BODY, "tags": {"run": "s"}}).result()
        assert again.tags == {"run": "s"} and keys_of(made, group, "dbk1") == keys["dbk1"]
        lists = ("/resources?api-version=2025-04-01",
                 "/providers/Microsoft.Storage/storageAccounts?api-version=2026-04-01")  # fmt: skip
        texts = [made.raw("GET", f"{made.app.state.plane.root}{path}").text for path in lists]
        assert all("dbk1" in text for text in texts)
        texts.append(made.raw("GET", "/diskbook/operations").text)
        assert not [text for text in texts for value in values if value in text]
        made.stop()
        made.serve()
        assert keys_of(made, group, "dbk1") == keys["dbk1"]


def test_creation_goes_on_after_a_restart(tmp_path: Path) -> None:
    with held_operations() as goes_on, world(tmp_path) as made:
        group = made.group("g")
        accounts(made).begin_create(group, "dbk1", BODY)
        made.stop()
        made.serve()
        assert accounts(made).get_properties(group, "dbk1").provisioning_state == "Creating"
        goes_on.set()
        assert soon(lambda: accounts(made).get_properties(group, "dbk1").provisioning_state == "Succeeded")


@pytest.mark.parametrize("name", ["ab", "Dbk1", "dbk-1", "d" * 25])
def test_a_name_has_3_to_24_small_letters_and_digits(plane: World, name: str) -> None:
    group = plane.group("names")
    path = f"{plane.app.state.plane.group_id(group)}/providers/Microsoft.Storage/storageAccounts/{name}"
    answer = plane.raw("PUT", f"{path}?api-version=2026-04-01", json=BODY)
    assert answer.status_code == 400
    error = answer.json()["error"]
    assert error["code"] == "AccountNameInvalid" and "between 3 and 24" in error["message"]


def test_a_name_is_the_worlds(plane: World) -> None:
    accounts(plane).begin_create(plane.group("first"), "dbktaken", BODY).result()
    other = plane.group("second")
    status, code, message = refused(lambda: accounts(plane).begin_create(other, "dbktaken", BODY))
    assert (status, code) == (409, "StorageAccountAlreadyTaken") and "dbktaken is already taken" in message


@pytest.mark.parametrize("change", [{"kind": "Tape"}, {"sku": {"name": "Standard_XYZ"}}, {"sku": None}])
def test_kind_and_sku_are_checked(plane: World, change: dict[str, Any]) -> None:
    group = plane.group("kinds")
    path = f"{plane.app.state.plane.group_id(group)}/providers/Microsoft.Storage/storageAccounts/dbkkind"
    answer = plane.raw("PUT", f"{path}?api-version=2026-04-01", json={**BODY, **change})
    assert answer.json()["error"]["code"] == "InvalidValuesForRequestParameters"


def test_a_failed_creation_leaves_nothing(tmp_path: Path) -> None:
    with world(tmp_path) as made:
        group = made.group("g")
        made.faults(
            {
                "match": {"operation": "storage-account"},
                "action": {"operation_failed": {"code": "C", "message": "m"}},
            }
        )
        status, code, _ = refused(lambda: accounts(made).begin_create(group, "dbk1", BODY).result())
        assert (status, code) == (409, "C")
        with pytest.raises(ResourceNotFoundError):
            accounts(made).get_properties(group, "dbk1")


def test_an_account_goes_by_itself_or_with_its_group(plane: World) -> None:
    group = plane.group("going")
    for name in ("dbkone", "dbktwo"):
        accounts(plane).begin_create(group, name, BODY).result()
    accounts(plane).delete(group, "dbkone")
    accounts(plane).delete(group, "dbkone")  # 204
    with pytest.raises(ResourceNotFoundError):
        keys_of(plane, group, "dbkone")
    plane.resource.resource_groups.begin_delete(group).result()
    assert "dbktwo" not in [row.name for row in accounts(plane).list()]
