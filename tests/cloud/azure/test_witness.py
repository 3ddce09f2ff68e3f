"""The cloud witness of two nodes: a storage account, read back and refused, and a key that nobody keeps."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from diskbook.cloud.azure import inventory, provision, readback, requests, witness
from diskbook.cloud.azure.clients import Clients, Cloud, StaticToken
from diskbook.cloud.azure.create import Maker, Place
from diskbook.design import scenario_tables
from diskbook.design.model import Scenario
from diskbook.facts.errors import DiskbookError
from diskbook.results.run import Run
from support import s2d
from support.arm_plane import SUBSCRIPTION, TOKEN, World, world

GROUP = "diskbook-w-1-0123abcd"
TAGS = {"diskbook-run": "w"}


@pytest.fixture
def plane(tmp_path: Path) -> Iterator[World]:
    with world(tmp_path / "plane") as made:
        made.group(GROUP)
        yield made


def clients_at(plane: World) -> Clients:
    cloud = Cloud(
        "emulator", SUBSCRIPTION, StaticToken(TOKEN), endpoint=plane.url, ca=plane.ca, time_scale=0.0
    )
    return Clients(cloud)


def maker_at(plane: World, folder: Path) -> Maker:
    run = folder / "w"
    run.mkdir()
    return Maker(clients_at(plane), Run(run), Place(GROUP, "westeurope", TAGS), {})


def entry_of(maker: Maker) -> dict[str, Any]:
    return {"resource_group": GROUP, "witness": maker.witness(1, "LRS")}


def two_nodes(*zones: str) -> Scenario:
    raw = copy.deepcopy(s2d.raw())
    raw["cluster"][0] |= {"nodes": ["n1", "n2"], "witness": "cloud"}
    raw["volume"][2]["kind"] = "two-way"
    for machine, zone in zip(raw["machine"][1:3], zones, strict=False):
        machine["zone"] = zone
    return scenario_tables.from_dict(raw, "two.toml")


def test_a_witness_is_made_and_read_back(plane: World, tmp_path: Path) -> None:
    maker = maker_at(plane, tmp_path)
    row = maker.witness(1, "LRS")
    assert row["account"] == witness.account_name(SUBSCRIPTION, GROUP, 1)
    assert row["endpoint"] == "core.windows.net"
    assert row["id"].endswith(f"/providers/microsoft.storage/storageaccounts/{row['account']}")
    assert row["read_back"] == {
        "kind": "StorageV2",
        "sku": "Standard_LRS",
        "public_blobs": False,
        "keys_allowed": True,
        "https_only": True,
        "minimum_tls": "TLS1_2",
    }
    assert maker.witness(1, "LRS") == row  # again: the same one
    (event,) = {event["name"] for event in maker.run.ledger()}
    assert event == "create storage account"


def test_it_is_the_runs_own_and_goes_with_the_group(plane: World, tmp_path: Path) -> None:
    maker = maker_at(plane, tmp_path)
    maker.witness(1, "LRS")
    rows = inventory.contents(maker.clients, GROUP)
    assert inventory.foreign(rows, "w") == [] and inventory.counted(rows) == "1 other"
    plane.resource.resource_groups.begin_delete(GROUP).result()
    assert list(maker.clients.storage.storage_accounts.list()) == []


@pytest.mark.parametrize(
    ("group", "number"), [(GROUP, 1), (GROUP, 99), ("diskbook-" + "x" * 60 + "-1-00000000", 1)]
)
def test_a_name_is_one_that_azure_takes_and_always_the_same(group: str, number: int) -> None:
    name = witness.account_name(SUBSCRIPTION, group, number)
    assert 3 <= len(name) <= 24 and name.isalnum() and name == name.lower()
    assert name == witness.account_name(SUBSCRIPTION.upper(), group.upper(), number)
    assert name != witness.account_name(SUBSCRIPTION, group, number + 1)
    assert name != witness.account_name(SUBSCRIPTION, f"{group}1", number)


def test_the_key_is_asked_for_and_written_down_nowhere(plane: World, tmp_path: Path) -> None:
    maker = maker_at(plane, tmp_path)
    entry = entry_of(maker)
    key = witness.key(maker.clients, entry)
    assert len(key) == 88 and key == witness.key(clients_at(plane), entry)
    written = [path.read_text("utf-8") for path in (tmp_path / "w").rglob("*") if path.is_file()]
    assert written and not [text for text in [*written, repr(entry), repr(maker)] if key in text]


def test_a_key_that_is_refused_is_one_sentence(plane: World, tmp_path: Path) -> None:
    maker = maker_at(plane, tmp_path)
    entry = entry_of(maker)
    code = "KeyBasedAuthenticationNotPermitted"
    plane.faults(
        {
            "match": {"path_regex": "/listKeys"},
            "times": 0,
            "action": {"status": 403, "code": code, "message": "No."},
        }
    )
    with pytest.raises(DiskbookError) as caught:
        witness.key(maker.clients, entry)
    assert str(caught.value) == (
        f"key of the witness {entry['witness']['account']}: {code}: No. A policy forbids keys of storage "
        "accounts, which a witness needs; take three nodes, which need no witness, or another subscription"
    )


def test_a_name_that_is_taken_stops_the_run_in_one_sentence(plane: World, tmp_path: Path) -> None:
    maker, other = maker_at(plane, tmp_path), plane.group("another")
    name = witness.account_name(SUBSCRIPTION, GROUP, 1)
    body = requests.witness("westeurope", {}, "LRS")
    maker.clients.storage.storage_accounts.begin_create(other, name, body).result()
    with pytest.raises(DiskbookError, match=f"create storage account {name}: StorageAccountAlreadyTaken: .*"):
        maker.witness(1, "LRS")


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"sku": {"name": "Standard_GRS"}}, "sku was to be Standard_LRS, but Azure says Standard_GRS"),
        (
            {"properties": {"allowBlobPublicAccess": True}},
            "public_blobs was to be False, but Azure says True",
        ),
        (
            {"properties": {"allowSharedKeyAccess": False}},
            "keys_allowed was to be True, but Azure says False",
        ),
    ],
)
def test_an_account_that_is_not_what_was_asked_for_stops_the_run(
    plane: World, tmp_path: Path, change: dict[str, Any], text: str
) -> None:
    maker = maker_at(plane, tmp_path)
    made = maker.witness(1, "LRS")
    store = plane.app.state.plane.store
    account = store.get(made["id"])
    properties = change.pop("properties", {})
    account.body |= change
    account.properties.update(properties)
    shown = maker.clients.storage.storage_accounts.get_properties(GROUP, made["account"])
    with pytest.raises(DiskbookError, match=text):
        readback.check_witness(requests.witness("westeurope", TAGS, "LRS"), shown)


def test_an_address_of_another_cloud_gives_its_endpoint() -> None:
    assert witness.endpoint_of("https://dbk1.blob.core.chinacloudapi.cn/") == "core.chinacloudapi.cn"
    with pytest.raises(DiskbookError, match="which is not an address of Azure's"):
        witness.endpoint_of("https://example.org/")


def test_only_two_nodes_have_one_and_across_zones_it_is_zone_redundant() -> None:
    assert s2d.scenario().witness_redundancy is None
    assert two_nodes().witness_redundancy == "LRS"
    assert two_nodes("1", "2").witness_redundancy == "ZRS"


def steps_of(scenario: Scenario) -> dict[str, tuple[str, ...]]:
    place = Place("group", scenario.region, {})
    maker = Maker(Clients(Cloud("emulator", "none", None)), Run(Path("none")), place, {})
    return {name: step.needs for name, step in provision.steps(maker, scenario, [1, 2]).items()}


def test_a_witness_is_a_step_of_its_replicate() -> None:
    assert not [name for name in steps_of(s2d.scenario()) if "witness" in name]
    steps = steps_of(two_nodes())
    assert steps["witness r1"] == () and "witness r2" in steps["replicate 2"]
    assert len([name for name in steps if name.startswith("disk r1-p30-n")]) == 8
    assert "disk r1-p30-8-server-8" in steps["replicate 1"]
