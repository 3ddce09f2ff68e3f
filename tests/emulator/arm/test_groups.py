"""The control plane's groups, network, locations, SKUs and its front door, through the Azure clients."""

from __future__ import annotations

import stat

import pytest
import requests
from azure.core.exceptions import ClientAuthenticationError, ResourceNotFoundError
from azure.core.rest import HttpRequest
from azure.mgmt.resource.resources import ResourceManagementClient
from cryptography import x509

from diskbook.facts import catalog
from support.arm_plane import HOST, LOCATION, SUBSCRIPTION, TOKEN, World, refused, world

API, DISKS_API = "api-version=2025-04-01", "api-version=2026-03-02"
ROOT = f"/subscriptions/{SUBSCRIPTION}/resourceGroups"


def test_a_group_is_made_once_and_found_by_its_tag(plane: World) -> None:
    groups = plane.resource.resource_groups
    body = {"location": LOCATION, "tags": {"run-id": "one"}}
    path = f"/subscriptions/{SUBSCRIPTION}/resourceGroups/by-tag?{API}"
    assert plane.raw("PUT", path, json=body).status_code == 201
    assert plane.raw("PUT", path, json=body).status_code == 200
    groups.create_or_update("other-tag", {"location": LOCATION, "tags": {"run-id": "two"}})
    found = groups.list(filter="tagName eq 'run-id' and tagValue eq 'one'")
    assert [one.name for one in found] == ["by-tag"]
    assert {one.name for one in groups.list(filter="tagName eq 'run-id'")} == {"by-tag", "other-tag"}
    assert groups.get("BY-TAG").name == "by-tag"


def test_existence_is_told_by_head(plane: World) -> None:
    plane.group("is-here")
    assert plane.resource.resource_groups.check_existence("is-here") is True
    assert plane.resource.resource_groups.check_existence("is-not") is False
    code = refused(lambda: plane.resource.resource_groups.get("is-not"))
    assert code == (404, "ResourceGroupNotFound", "Resource group 'is-not' could not be found.")


def test_deleting_a_group_takes_all_along_and_is_polled_by_location(plane: World) -> None:
    group = plane.group("cascade")
    disk = plane.disk(group, "data", zones=["1"])
    plane.vm(group, "vm")
    plane.attach(group, "vm", disk.id)
    plane.slept.clear()
    plane.resource.resource_groups.begin_delete(group).result()
    assert set(plane.slept) <= {15}
    assert not plane.resource.resource_groups.check_existence(group)
    key = f"/subscriptions/{SUBSCRIPTION}/resourceGroups/{group}".lower()
    assert any(call[0].startswith(key) for call in plane.backend.named("delete_vm"))
    assert any(
        call[0].endswith("/cascade/providers/microsoft.compute/disks/data")
        for call in plane.backend.named("delete_disk")
    )
    assert refused(lambda: plane.compute.disks.get(group, "data"))[1] == "ResourceGroupNotFound"


def test_the_deletion_of_a_group_answers_as_recorded(plane: World) -> None:
    group = plane.group("deleted")
    answer = plane.raw("DELETE", f"/subscriptions/{SUBSCRIPTION}/resourcegroups/{group}?{API}")
    assert (answer.status_code, answer.content, answer.headers["Retry-After"]) == (202, b"", "15")
    assert "Azure-AsyncOperation" not in answer.headers
    poll = answer.headers["Location"].removeprefix(plane.url)
    assert "/operationresults/" in poll
    answer = plane.raw("GET", poll)
    while answer.status_code == 202:
        assert (answer.content, answer.headers["Retry-After"]) == (b"", "15")
        assert answer.headers["Location"].endswith(poll)
        answer = plane.raw("GET", poll)
    assert (answer.status_code, answer.content) == (200, b"")


def test_a_group_stays_while_a_machine_elsewhere_has_its_disk(plane: World) -> None:
    disk = plane.disk(plane.group("holds-disk"), "data", zones=["1"])
    vm = plane.vm(plane.group("holds-vm"), "vm")
    plane.attach("holds-vm", "vm", disk.id)
    status, code, message = refused(
        lambda: plane.resource.resource_groups.begin_delete("holds-disk").result()
    )
    assert (status, code) == (409, "OperationNotAllowed")
    assert message == f"Disk data is attached to VM {vm.id}."
    assert plane.compute.disks.get("holds-disk", "data").managed_by == vm.id


def test_resources_are_listed_by_tag_and_deleted_by_id(plane: World) -> None:
    group = plane.group("by-id")
    disk = plane.disk(group, "data")
    plane.compute.disks.begin_update(group, "data", {"tags": {"run-id": "by-id"}}).result()
    resources = plane.resource.resources
    found = list(resources.list(filter="tagName eq 'run-id' and tagValue eq 'by-id'"))
    assert [one.id for one in found] == [disk.id]
    resources.begin_delete_by_id(disk.id, api_version="2026-03-02").result()
    assert list(resources.list_by_resource_group(group)) == []


def test_network_resources_answer_as_recorded(plane: World) -> None:
    group = plane.group("net")
    path = f"{ROOT}/{group}/providers/Microsoft.Network/virtualNetworks/v?api-version=2026-03-01"
    answer = plane.raw("PUT", path, json={"location": LOCATION, "properties": {}})
    assert answer.status_code == 201
    assert answer.headers["Retry-After"] == "3"
    assert (
        f"/providers/Microsoft.Network/locations/{LOCATION}/operations/"
        in answer.headers["Azure-AsyncOperation"]
    )
    assert answer.json()["etag"].startswith('W/"')
    nic = plane.nic(group, "nic", accelerated=True)
    assert nic.provisioning_state == "Succeeded"
    assert nic.enable_accelerated_networking is True
    assert nic.ip_configurations[0].private_ip_address == "10.0.0.4"
    assert plane.nic(group, "nic2").ip_configurations[0].private_ip_address == "10.0.0.5"


def test_rules_subnets_and_lists_of_the_network(plane: World) -> None:
    group = plane.group("net-parts")
    rule = {
        "name": "ssh",
        "properties": {"priority": 100, "access": "Allow", "direction": "Inbound", "protocol": "Tcp"},
    }
    body = {"location": LOCATION, "properties": {"securityRules": [rule]}}
    made = plane.network.network_security_groups.begin_create_or_update(group, "nsg", body).result()
    assert made.security_rules[0].id.endswith("/networkSecurityGroups/nsg/securityRules/ssh")
    plane.nic(group, "nic")
    subnets = plane.network.subnets
    subnets.begin_create_or_update(
        group, "vnet", "second", {"properties": {"addressPrefix": "10.0.1.0/24"}}
    ).result()
    assert [one.name for one in subnets.list(group, "vnet")] == ["default", "second"]
    subnets.begin_delete(group, "vnet", "second").result()
    assert [one.name for one in subnets.list(group, "vnet")] == ["default"]
    assert [one.name for one in plane.network.network_interfaces.list(group)] == ["nic"]
    assert refused(lambda: plane.network.network_security_groups.get(group, "x"))[1] == "ResourceNotFound"


def test_network_resources_in_use_stay(plane: World) -> None:
    group = plane.group("net-use")
    plane.nic(group, "nic")
    network = plane.network
    assert refused(lambda: network.virtual_networks.begin_delete(group, "vnet"))[1].startswith("InUse")
    address = refused(lambda: network.public_ip_addresses.begin_delete(group, "nic-ip"))
    assert address[:2] == (400, "PublicIPAddressCannotBeDeleted")
    network.network_interfaces.begin_delete(group, "nic").result()
    network.public_ip_addresses.begin_delete(group, "nic-ip").result()
    network.virtual_networks.begin_delete(group, "vnet").result()
    assert list(plane.resource.resources.list_by_resource_group(group)) == []


def test_zone_mappings_are_drawn_from_the_seed(plane: World, tmp_path) -> None:
    def zones(of: World) -> dict[str, str]:
        request = HttpRequest("GET", f"/subscriptions/{SUBSCRIPTION}/locations?api-version=2022-12-01")
        rows = of.resource.send_request(request).json()["value"]
        west = next(row for row in rows if row["name"] == LOCATION)
        return {row["logicalZone"]: row["physicalZone"] for row in west["availabilityZoneMappings"]}

    here = zones(plane)
    assert sorted(here) == ["1", "2", "3"]
    assert set(here.values()) == {"westeurope-az1", "westeurope-az2", "westeurope-az3"}
    with world(tmp_path, seed=2) as other:
        assert zones(other) != here
    assert zones(plane) == here


@pytest.mark.long
def test_skus_come_from_the_tables_as_strings(plane: World) -> None:
    rows = list(plane.compute.resource_skus.list(filter="location eq 'westeurope'"))
    assert {row.locations[0] for row in rows} == {"westeurope"}
    vm = next(row for row in rows if row.name == "Standard_D4as_v4")
    values = {one.name: one.value for one in vm.capabilities}
    assert values["UncachedDiskIOPS"] == "6400"
    assert values["UncachedDiskBytesPerSecond"] == "96000000"
    assert values["MaxDataDiskCount"] == "8"
    assert sorted(vm.location_info[0].zones) == ["1", "2", "3"]
    p30 = next(row for row in rows if (row.name, row.size) == ("Premium_ZRS", "P30"))
    values = {one.name: one.value for one in p30.capabilities}
    assert values["MaxIOps"] == "5000" and values["MaxBandwidthMBps"] == "200"
    assert values["MinSizeGiB"] == "512" and values["MaxSizeGiB"] == "1024"
    assert values["MaxValueOfMaxShares"] == "5" and "MaxBurstIops" not in values
    assert p30.location_info[0].zones == []
    p1 = next(row for row in rows if (row.name, row.size) == ("Premium_LRS", "P1"))
    values = {one.name: one.value for one in p1.capabilities}
    assert (values["BurstCreditBucketSizeInIO"], values["BurstCreditBucketSizeInGiB"]) == ("6084000", "255")
    skus = f"/subscriptions/{SUBSCRIPTION}/providers/Microsoft.Compute/skus?api-version=2021-07-01"
    west_us = plane.raw("GET", f"{skus}&$filter=location eq 'westus'").json()["value"]
    assert west_us and not [row for row in west_us if row["name"].endswith("_ZRS")]


def test_quota_is_listed_with_its_use(plane: World) -> None:
    before = {row.name.value: row.current_value for row in plane.compute.usage.list(LOCATION)}
    plane.vm(plane.group("usage"), "vm")
    after = {row.name.value: (row.current_value, row.limit) for row in plane.compute.usage.list(LOCATION)}
    assert after["cores"] == (before["cores"] + 4, 350)
    assert after["standardDASv4Family"][0] == before["standardDASv4Family"] + 4


def test_only_the_token_opens(plane: World) -> None:
    other = plane.client(ResourceManagementClient, token="another")
    with pytest.raises(ClientAuthenticationError) as caught:
        list(other.resource_groups.list())
    assert caught.value.error.code == "InvalidAuthenticationToken"
    assert plane.raw("GET", f"/subscriptions/{SUBSCRIPTION}?{API}", headers={}).status_code == 401
    assert plane.raw("GET", "/diskbook/status", headers={}).status_code == 401
    assert plane.raw("GET", "/diskbook/status").json()["provenance"] == "emulated"


def test_api_version_must_be_there_and_exist(plane: World) -> None:
    path = f"/subscriptions/{SUBSCRIPTION}/resourcegroups"
    answer = plane.raw("GET", path)
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "MissingApiVersionParameter")
    answer = plane.raw("GET", f"{path}?api-version=1999-01-01")
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "InvalidApiVersionParameter")
    assert plane.raw("GET", f"{path}?{API}").status_code == 200
    strange = plane.raw("GET", f"/subscriptions/another/resourcegroups?{API}").json()
    assert strange["error"]["code"] == "SubscriptionNotFound"
    strange = plane.raw("GET", f"/subscriptions/{SUBSCRIPTION}/nothing?{API}").json()
    assert strange["error"]["code"] == "InvalidResourceType"


def test_ids_may_be_spelled_in_any_case(plane: World) -> None:
    group = plane.group("Mixed-Case")
    plane.disk(group, "Data")
    group_path = f"/SUBSCRIPTIONS/{SUBSCRIPTION.upper()}/resourcegroups/mixed-case"
    path = f"{group_path}/PROVIDERS/microsoft.compute/DISKS/dATA?{DISKS_API}"
    assert plane.raw("GET", path).json()["name"] == "Data"


def test_every_answer_carries_azures_headers_and_says_emulated(plane: World) -> None:
    group = plane.group("headers")
    plane.disk(group, "d")
    path = f"{ROOT}/{group}/providers/Microsoft.Compute/disks/d?{DISKS_API}"
    headers = plane.raw("GET", path).headers
    assert headers["x-ms-ratelimit-remaining-resource"].startswith("Microsoft.Compute/LowCostGet3Min;")
    assert headers["x-ms-request-id"] and headers["x-diskbook-provenance"] == "emulated"
    gone = plane.raw("GET", path.replace("/d?", "/x?"))
    assert gone.headers["x-ms-failure-cause"] == "gateway"
    assert gone.json() == {
        "error": {
            "code": "ResourceNotFound",
            "message": "The Resource 'Microsoft.Compute/disks/x' under resource group 'headers' "
            "was not found.",
        }
    }


def test_certificates_are_for_the_address_and_keys_are_private(plane: World) -> None:
    cert = x509.load_pem_x509_certificate(plane.cert.read_bytes())
    names = cert.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert [str(one) for one in names.get_values_for_type(x509.IPAddress)] == [HOST]
    assert names.get_values_for_type(x509.DNSName) == ["localhost"]
    assert stat.S_IMODE(plane.key.stat().st_mode) == 0o600
    assert stat.S_IMODE((plane.folder / "state.sqlite").stat().st_mode) == 0o600
    with pytest.raises(requests.exceptions.SSLError):
        requests.get(plane.url, timeout=5, headers={"Authorization": f"Bearer {TOKEN}"})


def test_a_location_nobody_knows_is_refused(plane: World) -> None:
    code = refused(
        lambda: plane.resource.resource_groups.create_or_update("nowhere", {"location": "atlantis"})
    )
    assert code[:2] == (400, "LocationNotAvailableForResourceType")
    with pytest.raises(ResourceNotFoundError):
        plane.resource.resource_groups.get("nowhere")


def test_catalogue_rows_name_source_and_date() -> None:
    rows = [*catalog.disk_tiers(), *catalog.vm_sizes().values(), *catalog.regions().values()]
    assert all(
        row.source and row.read_on.startswith("2026-") for row in (*rows, *catalog.flexible_skus().values())
    )
