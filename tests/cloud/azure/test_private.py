"""Private networks on a real emulator: no public address, one way in, and the company's own left alone."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil
import pytest
from azure.core.exceptions import HttpResponseError

from diskbook.cloud.azure import private, requests
from diskbook.cloud.connect import clients_of
from diskbook.design import scenario_file
from diskbook.emulated.cloud import clients as emulator_clients
from diskbook.facts.errors import DiskbookError
from diskbook.facts.paths import SSH_CONFIG
from diskbook.hosts.ssh import Connection
from diskbook.measure.runs import stages
from diskbook.results.run import Run
from diskbook_emulator import lifecycle
from diskbook_emulator.jump import ALIAS
from support import SCENARIOS
from support.emulated import leftovers, soon

pytestmark = pytest.mark.emulator

TINY = str(SCENARIOS / "tiny.toml")
CORP, NET, BASTION = "corp-network", "corp-westeurope", "corp-bastion-westeurope"
JUMP = {"jump_host": ALIAS}
BY_TUNNEL = {"bastion": BASTION}


@pytest.fixture(scope="module")
def corp() -> Iterator[lifecycle.Connection]:
    """An emulator of a company that allows no public addresses; nothing is left of it and its runs."""
    with (
        tempfile.TemporaryDirectory(prefix="diskbook-test-", dir="/tmp") as name,
        pytest.MonkeyPatch.context() as patch,
    ):
        patch.setenv("TMPDIR", name)
        patch.setenv("DISKBOOK_RUNS", f"{name}/runs")
        started = lifecycle.start("corp", profile="private", time_scale=0.0, owner=True)
        patch.setenv(SSH_CONFIG, str(started.folder / "jump" / "ssh_config"))
        patch.setenv("PATH", f"{started.folder / 'jump' / 'cli'}:{os.environ['PATH']}")
        yield started
        lifecycle.stop("corp")
        assert leftovers(Path(name)) == []


def settings(way_in: dict[str, str], **more: str) -> dict[str, Any]:
    keys = {"kind": "private", "subnet": f"{NET}/machines", "resource_group": CORP, **way_in, **more}
    return {f"network.{key}": value for key, value in keys.items()}


def problems(corp: lifecycle.Connection, overrides: dict[str, Any], replicates: int = 1) -> list[str]:
    scenario = scenario_file.load(TINY, "quick", overrides)
    return private.problems(emulator_clients("corp"), scenario, replicates)


def standing(corp: lifecycle.Connection) -> list[Any]:
    """All that the company has, as Azure shows it."""
    clients = emulator_clients("corp")
    network = clients.network.virtual_networks.get(CORP, NET).as_dict()
    return [network, *(row.id for row in clients.resource.resources.list_by_resource_group(CORP))]


def tunnels() -> list[psutil.Process]:
    rows = psutil.Process().children(recursive=True)
    return [row for row in rows if any("tunnel_guard" in word for word in row.cmdline())]


@pytest.mark.parametrize("way_in", [JUMP, BY_TUNNEL], ids=["jump-host", "tunnel"])
def test_a_run_without_public_addresses(corp: lifecycle.Connection, way_in: dict[str, str]) -> None:
    """Provisioned, one command over SSH, torn down; nothing of the company's is changed."""
    before = standing(corp)
    run = stages.begin(
        next(iter(way_in)).replace("_", "-"), TINY, "emulator", "quick", settings(way_in), {"name": "corp"}
    )
    try:
        stages.provision(run)
        _check_entry(run)
        _check_command(run)
        assert stages.running_machines(run, clients_of(run), 1) is not None  # and a resumed run goes on
    finally:
        stages.teardown(run)
    assert standing(corp) == before
    assert soon(lambda: tunnels() == [])
    assert (corp.folder / "jump" / "map").read_text() == ""


def _check_entry(run: Run) -> None:
    """What was made, by Azure's word."""
    (row,) = run.manifest["replicates"]
    machine, group = row["machines"]["vm1"], row["resource_group"]
    assert machine["network"]["public_address"] is None
    assert machine["network"]["subnet"].endswith(f"/virtualnetworks/{NET}/subnets/machines")
    host = machine["host"]
    assert (host["address"], host["port"]) == (machine["network"]["private_address"], 22)
    clients = clients_of(run)
    kinds = [item.type for item in clients.resource.resources.list_by_resource_group(group)]
    assert "Microsoft.Network/publicIPAddresses" not in kinds
    assert "Microsoft.Network/virtualNetworks" not in kinds
    (rule,) = clients.network.network_security_groups.get(group, "nsg").security_rules
    assert (rule.source_address_prefix, rule.destination_port_range) == ("VirtualNetwork", "22")


def _check_command(run: Run) -> None:
    (row,) = run.manifest["replicates"]
    host = private.host_of(row["machines"]["vm1"], run.folder)
    with Connection(host) as connection:
        assert connection.run("echo here").stdout == b"here\n"
        connection._transport().close()  # as when the network goes
        assert connection.run("echo again").stdout == b"again\n"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("diskbook.hosts.private_access.RECONNECT_S", 0.1)
        with (
            Connection(replace(host, route=None)) as straight,
            pytest.raises(DiskbookError, match=r"cannot be reached|not the one"),
        ):
            straight.run("true")


def test_a_public_run_is_refused_before_anything_is_created(corp: lifecycle.Connection) -> None:
    run = stages.begin("public", TINY, "emulator", "quick", {}, {"name": "corp"})
    with pytest.raises(DiskbookError, match=r"^nothing was created: policy no-public-a"):
        stages.provision(run)
    assert run.manifest["resource_groups"] == []
    stages.teardown(run)


def test_policy_refuses_public_addresses_and_interfaces_with_them(corp: lifecycle.Connection) -> None:
    clients = emulator_clients("corp")
    common = {"location": "westeurope"}
    subnet = clients.network.subnets.get(CORP, NET, "machines").id
    clients.resource.resource_groups.create_or_update("mine", common)
    group = clients.network.network_security_groups.begin_create_or_update("mine", "nsg", common).result().id
    network = clients.network
    asked = requests.interface(subnet, f"{group}-ip", group)
    for create, body in (
        (network.public_ip_addresses.begin_create_or_update, requests.public_address("1")),
        (network.network_interfaces.begin_create_or_update, {"properties": asked}),
    ):
        with pytest.raises(HttpResponseError) as caught:
            create("mine", "r1-vm1", {**common, **body})
        assert caught.value.status_code == 403
        assert caught.value.error.code == "RequestDisallowedByPolicy"
        assert caught.value.error.message.startswith(
            "Resource 'r1-vm1' was disallowed by policy. Policy identifiers: '[{\"policyAssignment\":{"
        )
        assert caught.value.error.additional_info[0].type == "PolicyViolation"
    clients.resource.resource_groups.begin_delete("mine").result()


def test_what_stands_in_the_way_is_one_sentence_each(corp: lifecycle.Connection) -> None:
    assert problems(corp, settings(JUMP)) == problems(corp, settings(BY_TUNNEL)) == []
    for changes, words in (
        (settings(JUMP, subnet=f"{NET}/none"), "there is no subnet none in network corp-westeurope"),
        (settings(JUMP, subnet="none/machines"), "there is no subnet machines in network none"),
        (settings(JUMP, subnet="corp-eastus/machines"), "network corp-eastus is in eastus, and machines of"),
        (settings({"jump_host": "me@127.0.0.1:1"}), "jump host me@127.0.0.1:1 cannot be reached"),
        (settings({"bastion": "none"}), "there is no Bastion none in group corp-network"),
    ):
        (sentence,) = problems(corp, changes)
        assert words in sentence and "\n" not in sentence
    (sentence,) = problems(corp, settings(JUMP), 124)
    assert "needs 124 addresses at a time and subnet machines has 123 of 123 free" in sentence


def test_without_the_azure_cli_a_tunnel_is_refused(
    corp: lifecycle.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    (sentence,) = problems(corp, settings(BY_TUNNEL))
    assert "there is no program 'az' here; install it" in sentence


def test_another_subscriptions_subnet_is_refused(corp: lifecycle.Connection) -> None:
    other = "00000000-0000-0000-0000-00000000000a"
    subnet = (
        f"/subscriptions/{other}/resourceGroups/{CORP}/providers/Microsoft.Network/virtualNetworks/{NET}"
        "/subnets/machines"
    )
    (sentence,) = problems(corp, settings(JUMP, subnet=subnet))
    assert f"run with --subscription {other}" in sentence
