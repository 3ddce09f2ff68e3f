"""Windows machines: what is asked of Azure, and an emulated one from creation to the first sign-in."""

from __future__ import annotations

import base64
import itertools
import json
import string
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from azure.core.exceptions import HttpResponseError

from diskbook.cloud.azure import keys, requests
from diskbook.cloud.azure.keys import run_key
from diskbook.cloud.connect import clients_of
from diskbook.design import scenario_file
from diskbook.design.model import Machine
from diskbook.hosts import powershell
from diskbook.hosts.ssh import Connection, Host
from diskbook.measure.runs import stages
from diskbook.results.run import Run
from diskbook.tools.diskspd.command import INSTALL
from diskbook_emulator import lifecycle
from support.arm_plane import World, refused
from support.emulated import leftovers

SPEC = Machine(name="vm1", size="Standard_E16as_v5", zone="1", os="windows")
_numbers = itertools.count()

SCENARIO = """
[scenario]
title = "One of each"
article = "none"
analysis = "zone-disks"
question = "Does a Windows machine come up?"
region = "westeurope"

[[machine]]
name = "lin"
size = "Standard_D4as_v4"
zone = "1"

[[machine]]
name = "windows-server-machine"
size = "Standard_D4as_v4"
zone = "2"
os = "windows"

[[disk]]
name = "zrs"
sku = "Premium_ZRS"
size_gib = 64

[[arm]]
name = "zrs-z1"
disk = "zrs"
machine = "lin"

[[workload]]
name = "read-qd1"
block_size = "4K"
write_pct = 0
working_set_gib = 0.03125

[design]
seed = 3
"""


# --- what is asked of Azure


def _body(name: str = "r1-vm1") -> dict[str, Any]:
    return requests.machine(
        SPEC, "westeurope", {}, name=name, nic_id="/nic", user="diskbook", public_key="ssh-ed25519 AAAA me",
        host_key=keys.new_pair("host"), image_version="1.0.10",
    )  # fmt: skip


def test_machines_of_a_pool_get_datacenter_2025_and_others_what_they_had() -> None:
    parts = {
        "name": "r1-n1", "nic_id": "/nic", "user": "diskbook", "public_key": "ssh-ed25519 AAAA me",
        "host_key": keys.new_pair("host"), "image_version": "1.0.10",
    }  # fmt: skip
    pooled = requests.machine(SPEC, "westeurope", {}, **parts, pooled=True)["properties"]
    assert pooled["storageProfile"]["imageReference"]["sku"] == "2025-datacenter-g2"
    assert pooled["osProfile"]["computerName"] == "r1-n1"
    assert _body()["properties"]["storageProfile"]["imageReference"]["sku"] == "2022-datacenter-azure-edition"


def test_the_password_is_random_and_fit_for_azure() -> None:
    passwords = {_body()["properties"]["osProfile"]["adminPassword"] for _ in range(20)}
    assert len(passwords) == 20
    for password in passwords:
        assert 12 <= len(password) <= 123
        kinds = (string.ascii_lowercase, string.ascii_uppercase, string.digits)
        assert all(any(letter in kind for letter in password) for kind in kinds)


@pytest.mark.parametrize(
    "name", ["r1-vm1", "r12-windows-server-machine", "r1-a-very-long-name-", "r1-" + "x" * 40]
)
def test_the_computer_name_has_at_most_15_characters(name: str) -> None:
    found = requests.computer_name(name)
    assert 0 < len(found) <= 15 and not found.endswith("-") and found[0].isalpha()
    assert requests.computer_name(name) == found


def test_long_names_stay_different() -> None:
    names = [f"r{number}-windows-server" for number in range(1, 50)]
    assert len({requests.computer_name(name) for name in names}) == 49


def test_the_host_key_goes_with_protected_settings_only() -> None:
    pair = keys.new_pair("host")
    body = requests.windows_extension("westeurope", {"diskbook-run": "x"}, pair, "ssh-ed25519 AAAA me")
    protected = body["properties"].pop("protectedSettings")
    assert base64.b64encode(pair.private.encode()).decode() in protected["commandToExecute"]
    secret = pair.private.splitlines()[2]
    assert secret not in json.dumps(body) and secret not in requests.windows_setup_script()
    assert body["properties"]["typeHandlerVersion"] == "1.10" and body["properties"]["settings"] == {}
    assert len(protected["commandToExecute"]) < 8191  # of Windows' command interpreter


def test_the_script_checks_the_tool_before_it_opens_the_machine() -> None:
    script = requests.windows_setup_script()
    custom = base64.b64decode(_body()["properties"]["osProfile"]["customData"]).decode()
    assert custom.startswith(script) and "@" not in script.replace("@'", "").replace("'@", "")
    steps = [
        INSTALL.url,
        INSTALL.sha256,
        "Get-FileHash -Algorithm SHA256",
        "throw",
        "Expand-Archive",
        "Add-WindowsCapability",
        "ssh_host_ed25519_key') $HostKey",
        "administrators_authorized_keys') $AuthorizedKey",
        "PasswordAuthentication no",
        "Start-Service",
        "New-NetFirewallRule",
    ]
    start = script.index("# The tool first")
    places = [script.index(step, start if step == "throw" else 0) for step in steps]
    assert places == sorted(places)
    assert "icacls.exe $Path /inheritance:r" in script


# --- the emulated control plane


def _windows(plane: World, **profile: Any) -> tuple[str, Any]:
    group = plane.group(f"windows-{next(_numbers)}")
    body = _body()
    body["properties"]["networkProfile"]["networkInterfaces"][0]["id"] = plane.nic(group, "nic").id
    body["properties"]["osProfile"] |= profile
    vm = plane.compute.virtual_machines.begin_create_or_update(group, "r1-vm1", body).result()
    return group, vm


def _set_up(plane: World, group: str, body: dict[str, Any]) -> Any:
    extensions = plane.compute.virtual_machine_extensions
    return extensions.begin_create_or_update(group, "r1-vm1", powershell.EXTENSION, body).result()


def test_an_extension_is_run_and_keeps_its_secrets(plane: World) -> None:
    group, vm = _windows(plane)
    assert "adminPassword" not in str(vm.as_dict()) and vm.storage_profile.os_disk.os_type == "Windows"
    pair = keys.new_pair("host")
    made = _set_up(
        plane, group, requests.windows_extension("westeurope", {"a": "b"}, pair, "ssh-ed25519 AAAA me")
    )
    assert (made.provisioning_state, made.type_handler_version) == ("Succeeded", "1.10")
    shown = plane.compute.virtual_machine_extensions.get(group, "r1-vm1", powershell.EXTENSION)
    assert "protectedSettings" not in str(shown.as_dict()) and shown.tags == {"a": "b"}
    (call,) = [call for call in plane.backend.named("set_up") if call[0] == vm.id.lower()]
    assert call[1:] == (pair.private, ("ssh-ed25519 AAAA me",))

    plane.compute.virtual_machines.begin_restart(group, "r1-vm1").result()
    last = [call[0] for call in plane.backend.named("start_vm") if call[0].id == vm.id.lower()][-1]
    assert last.authorized_keys == ("ssh-ed25519 AAAA me",)
    plane.compute.virtual_machines.begin_delete(group, "r1-vm1").result()
    left = [one.name for one in plane.resource.resources.list_by_resource_group(group)]
    assert powershell.EXTENSION not in left


def test_an_extension_can_be_deleted(plane: World) -> None:
    group, _ = _windows(plane)
    _set_up(
        plane,
        group,
        requests.windows_extension("westeurope", {}, keys.new_pair("host"), "ssh-ed25519 AAAA me"),
    )
    extensions = plane.compute.virtual_machine_extensions
    assert [one.name for one in extensions.list(group, "r1-vm1").value] == [powershell.EXTENSION]
    extensions.begin_delete(group, "r1-vm1", powershell.EXTENSION).result()
    gone = refused(lambda: extensions.get(group, "r1-vm1", powershell.EXTENSION))
    assert gone[:2] == (404, "ResourceNotFound")


def test_another_checksum_fails_the_extension(plane: World) -> None:
    script = requests.windows_setup_script().replace(INSTALL.sha256, "0" * 64)
    group, vm = _windows(plane, customData=base64.b64encode(script.encode()).decode())
    body = requests.windows_extension("westeurope", {}, keys.new_pair("host"), "ssh-ed25519 AAAA me")
    with pytest.raises(HttpResponseError) as caught:
        _set_up(plane, group, body)
    assert caught.value.error.code == "VMExtensionProvisioningError"
    assert f"not {'0' * 64}; it was not unpacked" in caught.value.error.message
    assert vm.id.lower() not in [call[0] for call in plane.backend.named("set_up")]


def test_scripts_that_are_not_the_workbooks_own_are_not_played(plane: World) -> None:
    group, _ = _windows(plane, customData=base64.b64encode(b"Write-Host hello").decode())
    body = requests.windows_extension("westeurope", {}, keys.new_pair("host"), "ssh-ed25519 AAAA me")
    with pytest.raises(HttpResponseError, match="not the workbook's own"):
        _set_up(plane, group, body)
    body["properties"]["protectedSettings"] = {"commandToExecute": "format C:"}
    with pytest.raises(HttpResponseError, match="not the workbook's own"):
        _set_up(plane, group, body)


@pytest.mark.parametrize(
    ("profile", "told"),
    [
        ({"computerName": "more-than-15-characters"}, "15 characters"),
        ({"adminPassword": None}, "adminPassword"),
    ],
)
def test_windows_rules_are_kept(plane: World, profile: dict[str, Any], told: str) -> None:
    with pytest.raises(HttpResponseError, match=told):
        _windows(plane, **profile)


def test_linux_machines_take_no_windows_extension(plane: World) -> None:
    group = plane.group(f"windows-{next(_numbers)}")
    plane.vm(group, "r1-vm1")
    body = requests.windows_extension("westeurope", {}, keys.new_pair("host"), "ssh-ed25519 AAAA me")
    assert refused(lambda: _set_up(plane, group, body))[1] == "OperationNotAllowed"


# --- a run with an emulated Windows machine


@pytest.fixture(scope="module")
def run() -> Iterator[Run]:
    with (
        tempfile.TemporaryDirectory(prefix="diskbook-test-", dir="/tmp") as name,
        pytest.MonkeyPatch.context() as patch,
    ):
        patch.setenv("TMPDIR", name)
        patch.setenv("DISKBOOK_RUNS", f"{name}/runs")
        scenario = Path(name) / "both.toml"
        scenario.write_text(SCENARIO)
        assert scenario_file.load(str(scenario), "quick").machine[1].os == "windows"
        lifecycle.start("both", profile="quiet", time_scale=0.0, owner=True)
        made = stages.begin("both", str(scenario), "emulator", "quick", emulator={"name": "both"})
        stages.provision(made)
        yield made
        stages.teardown(made)
        lifecycle.stop("both")
        assert leftovers(Path(name)) == []


@pytest.mark.emulator
def test_a_windows_machine_is_provisioned_beside_a_linux_one(run: Run) -> None:
    (row,) = run.manifest["replicates"]
    machine = row["machines"]["windows-server-machine"]
    assert machine["os"] == "windows" and "emulated" in machine["kernel"]
    assert machine["tool_version"].startswith("diskspd 2.0.21 (emulated")
    assert (
        machine["read_back"]["image"] == "MicrosoftWindowsServer:WindowsServer:2022-datacenter-azure-edition"
    )
    assert len(machine["read_back"]["computer_name"]) <= 15
    assert row["machines"]["lin"]["tool_version"].startswith("fio-")
    assert {(pair["from"], pair["to"]) for pair in row["round_trips"]} == {("lin", "windows-server-machine")}
    text = json.dumps(run.manifest) + (run.folder / "ledger.jsonl").read_text()
    assert "PRIVATE KEY" not in text and "adminPassword" not in text


@pytest.mark.emulator
def test_it_has_the_host_key_of_the_extension_also_after_a_restart(run: Run) -> None:
    (row,) = run.manifest["replicates"]
    machine = row["machines"]["windows-server-machine"]
    host = Host(**machine["host"], private_key=run_key(run.folder))
    with Connection(host) as connection:
        assert connection.run(powershell.encoded(powershell.SETUP_FACTS)).status == 0
    clients = clients_of(run)
    group = run.manifest["resource_groups"][0]["name"]
    clients.compute.virtual_machines.begin_restart(group, machine["host"]["name"]).result()
    with Connection(host) as connection:
        assert connection.run(powershell.encoded(powershell.SETUP_FACTS)).status == 0


@pytest.mark.emulator
def test_its_powershell_answers_nothing_but_the_workbooks_scripts(run: Run) -> None:
    (row,) = run.manifest["replicates"]
    host = row["machines"]["windows-server-machine"]["host"]
    with Connection(Host(**host, private_key=run_key(run.folder))) as connection:
        output = connection.run(powershell.encoded("Get-Date"))
        assert output.status == 1 and b"knows only the scripts of diskbook" in output.stderr
        assert connection.run("command -v diskspd").status == 0
