"""Recorded shapes of Azure's answers, replayed at the transport to the workbook's own clients.

That they keep to the SDK's models is judged as everywhere in these tests (`support/strict.py`).
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from azure.core.exceptions import AzureError, HttpResponseError

from diskbook.cloud.azure import offers, refusals
from diskbook.cloud.azure.clients import Clients, Cloud, StaticToken
from support.arm_plane import SUBSCRIPTION
from support.replay import RECORDED, recorded, replayed

ATTACH = {"dataDisksToAttach": [{"diskId": "/subscriptions/s/d", "lun": 0, "caching": "None"}]}
PLACE = {"location": "westeurope"}
DISK = {**PLACE, "properties": {"creationData": {"createOption": "Empty"}}}


@pytest.fixture
def told() -> list[str]:
    """What the clients say to the user."""
    return []


@pytest.fixture
def clients(told: list[str]) -> Clients:
    """Clients for Azure that wait no time."""
    return Clients(Cloud("azure", SUBSCRIPTION, StaticToken("token"), time_scale=0.0), tell=told.append)


def _attach(clients: Clients) -> Any:
    change = clients.compute.virtual_machines.begin_attach_detach_data_disks
    return change("g", "vm", ATTACH).result()


@pytest.mark.parametrize("name", sorted(path.stem for path in RECORDED.glob("*.json")))
def test_each_file_says_what_it_is_and_where_from(name: str) -> None:
    document = json.loads((RECORDED / f"{name}.json").read_text())
    assert document["about"] and document["source"]


def test_an_attach_is_taken_as_answered_in_2026(clients: Clients) -> None:
    with replayed(recorded("attach-200")) as wire:
        _attach(clients)
    assert wire.bodies[0] == ATTACH
    assert clients.waited_s == 2  # two polls found it in progress, a second each
    assert clients.requests["GET operations"] == 3


def test_an_attach_is_taken_as_answered_before(clients: Clients) -> None:
    with replayed(recorded("attach-202")):
        profile = _attach(clients)
    assert profile.data_disks[0].disk_size_gb == 1024 and clients.requests["GET operations"] == 3


def test_an_empty_bucket_is_waited_for_and_told(clients: Clients, told: list[str]) -> None:
    with replayed(recorded("attach-throttled")):
        _attach(clients)
    assert told == ["Azure asks to wait 43 s (throttled: AttachDetachVMDisksResource)"]
    assert clients.waited_s == 43


def test_a_disk_is_made_and_a_failed_one_says_why(clients: Clients) -> None:
    create = clients.compute.disks.begin_create_or_update
    with replayed(recorded("disk-202")):
        made = create("g", "d", DISK).result()
    assert (made.disk_iops_read_write, made.tier, made.unique_id[:8]) == (5000, "P30", "cf8c35db")
    with replayed(recorded("disk-failed")), pytest.raises(HttpResponseError) as caught:
        create("g", "d", DISK).result()
    assert refusals.with_advice(caught.value) == (
        "AllocationFailed: Allocation failed. Read more at https://aka.ms/allocation. Azure has no room for "
        "this size now: choose another size, zone or region, or try again later"
    )


def test_a_machine_and_a_network_are_made(clients: Clients) -> None:
    with replayed(recorded("machine-201")):
        made = clients.compute.virtual_machines.begin_create_or_update("g", "vm", PLACE).result()
    assert made.storage_profile.image_reference.exact_version == "24.04.202602100"
    assert (made.provisioning_state, made.etag, made.zones) == ("Succeeded", '"2"', ["1"])
    assert clients.waited_s == 2 + 2  # the first poll named 50 s, of which our pace is a twentieth
    with replayed(recorded("network-201")):
        made = clients.network.virtual_networks.begin_create_or_update("g", "net", PLACE).result()
    assert made.address_space.address_prefixes == ["10.0.0.0/16"]


def test_a_group_is_deleted(clients: Clients) -> None:
    with replayed(recorded("group-deletion")):
        clients.resource.resource_groups.begin_delete("g").result()
    assert clients.requests == {"DELETE resourceGroups": 1, "GET operations": 2}


def test_refusals_are_said_with_what_to_do(clients: Clients) -> None:
    disks, machines = clients.compute.disks, clients.compute.virtual_machines
    calls = [
        lambda: machines.begin_create_or_update("g", "vm", PLACE),
        lambda: machines.begin_create_or_update("g", "vm", PLACE),
        lambda: disks.begin_create_or_update("g", "d", DISK),
        lambda: disks.begin_delete("g", "d"),
        lambda: disks.get("g", "d"),
        lambda: disks.begin_create_or_update("g", "d", DISK),
    ]
    said = []
    with replayed(recorded("errors")):
        for call in calls:
            with pytest.raises(AzureError) as caught:
                call()
            said.append(refusals.with_advice(caught.value))
    assert [line.partition(":")[0] for line in said] == [
        "SkuNotAvailable",
        "OperationNotAllowed",
        "BadRequest",
        "OperationNotAllowed",
        "ResourceNotFound",
        "AuthorizationFailed",
    ]
    assert [line.rpartition(". ")[2].partition(" ")[0] for line in (said[0], said[1], said[5])] == [
        "Azure",
        "The",
        "The",
    ]


def test_rows_of_the_skus_api_are_read(clients: Clients) -> None:
    with replayed(recorded("skus")):
        size = offers.measured_sizes(clients, "westeurope", {"Standard_D4as_v4"})["Standard_D4as_v4"]
    assert (size.limits["iops"], size.limits["mb_s"], size.accelerated_networking) == (6400, 96, True)
    with replayed(recorded("skus")):
        region = offers.ask(clients, "westeurope", quotas=False)
    offer = region.sizes["standard_d4as_v4"]
    assert (offer.zones, offer.ultra_zones) == ({"1", "3"}, {"1", "3"})
    disk = region.disk("Premium_ZRS", "P30")
    assert disk is not None and disk.number("MaxIOps") == 5000 and disk.everywhere
