"""In a group that the user names only a run's signed resources go, one by one; the rest stays."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from diskbook.cloud.azure import named_group, witness
from diskbook.cloud.azure.clients import Clients
from diskbook.emulated.cloud import clients as emulator_clients
from diskbook.facts.errors import DiskbookError, UsageError
from diskbook.measure.runs import stages, sweep
from diskbook.results import session
from diskbook.results.run import Run
from diskbook_emulator import lifecycle
from support import SCENARIOS
from support.measuring import run_name

PREFIX = "dbk0123456789ab-"
WHERE = ("sub", "Theirs", PREFIX)


def _row(kind: str, name: str, tags: dict[str, str] | None = None) -> Any:
    return SimpleNamespace(id=f"/subscriptions/sub/resourceGroups/Theirs/{kind}/{name}", name=name, tags=tags)


def test_name_and_tags_together_tell_a_resource(tmp_path: Path) -> None:
    tags = {session.RUN_TAG: "r", **session.tags(Run(tmp_path / "r"), *WHERE)}
    assert named_group.is_own(_row("disks", f"{PREFIX}r1-zrs", tags), *WHERE)
    assert named_group.is_own(_row("schedules", f"shutdown-computevm-{PREFIX}r1-vm1", tags), *WHERE)
    assert named_group.is_own(_row("disks", f"{PREFIX}r1-vm1-os"), *WHERE)
    account = witness.account_name("sub", witness.home("Theirs", PREFIX), 2)
    assert named_group.is_own(_row("storageAccounts", account, tags), *WHERE)
    others = [
        _row("disks", "r1-zrs", tags),  # tags were copied
        _row("disks", f"{PREFIX}r1-zrs"),
        _row("disks", f"{PREFIX}r1-zrs", {**tags, session.RUN_TAG: "other"}),
        _row("disks", "dbk000000000000-r1-zrs", tags),
        _row("disks", "r1-vm1-os"),
        _row("storageAccounts", witness.account_name("sub", "Theirs", 2), tags),
    ]
    assert not [row.name for row in others if named_group.is_own(row, *WHERE)]
    assert not session.is_signed(tags, "sub", "Theirs")  # the group cannot be taken for a run's own
    assert not named_group.is_own(_row("disks", f"{PREFIX}r1-zrs", tags), "sub", "Mine", PREFIX)


@pytest.fixture
def theirs(shared: dict[str, Any], request: pytest.FixtureRequest) -> Iterator[tuple[Clients, str]]:
    """A group with a disk and a security group that have the names of a run's."""
    clients, group, place = (
        emulator_clients(shared["name"]),
        f"Theirs-{run_name(request)}",
        {"location": "westeurope"},
    )
    clients.resource.resource_groups.create_or_update(group, place)
    empty = {"creationData": {"createOption": "Empty"}, "diskSizeGB": 64}
    disk = {**place, "sku": {"name": "Premium_LRS"}, "properties": empty}
    clients.compute.disks.begin_create_or_update(group, "r1-lrs", disk).result()
    clients.network.network_security_groups.begin_create_or_update(group, "nsg", place).result()
    yield clients, group
    clients.resource.resource_groups.begin_delete(group).result()


def _names(clients: Clients, group: str) -> set[str]:
    return {row.name for row in clients.resource.resources.list_by_resource_group(group)}


def _provisioned(shared: dict[str, Any], group: str, name: str) -> Run:
    settings = {"azure.resource_group": group, "azure.tags": {"team": "storage"}}
    tiny = str(SCENARIOS / "tiny.toml")
    run = stages.begin(name, tiny, "emulator", overrides=settings, emulator=shared)
    stages.provision(run)
    return run


@pytest.mark.emulator
def test_teardown_takes_the_run_s_resources_and_nothing_else(
    shared: dict[str, Any], theirs: tuple[Clients, str], request: pytest.FixtureRequest
) -> None:
    clients, group = theirs
    run = _provisioned(shared, group, run_name(request))
    (row,) = run.manifest["resource_groups"]
    machine = clients.compute.virtual_machines.get(group, f"{row['prefix']}r1-vm1")
    assert machine.tags["team"] == "storage"
    disk = clients.compute.disks.get(group, "r1-lrs")
    disk.tags = dict(machine.tags)  # as a script that tags everything alike would
    clients.compute.disks.begin_create_or_update(group, "r1-lrs", disk).result()
    clients.resource.resource_groups.create_or_update(group, {"location": "westeurope", "tags": machine.tags})
    emulator = lifecycle.connect(shared["name"])
    refused = {"status": 403, "code": "AuthorizationFailed", "message": "No."}
    match = {"method": "DELETE", "path_regex": f"/disks/{row['prefix']}r1-lrs$"}
    lifecycle.plant(emulator, [{"match": match, "times": 0, "action": refused}])
    with pytest.raises(DiskbookError, match=rf"left of run {run.name}.*r1-lrs \(AuthorizationFailed"):
        stages.teardown(run)
    lifecycle.plant(emulator, [])
    assert run.manifest["resource_groups"][0]["deleted_utc"] is None
    stages.teardown(run)
    assert _names(clients, group) == {"r1-lrs", "nsg"} and run.manifest["resource_groups"][0]["deleted_utc"]


@pytest.mark.emulator
def test_a_sweep_takes_what_a_lost_run_has_in_the_group(
    shared: dict[str, Any], theirs: tuple[Clients, str], request: pytest.FixtureRequest
) -> None:
    clients, group = theirs
    run = _provisioned(shared, group, run_name(request))
    listed = sweep.find(None, shared["name"])
    assert not listed.goes  # used by hand: kept until it expires
    run.update_manifest(kept=False)
    with pytest.raises(UsageError, match="is not a run's and is never deleted"):
        sweep.find(None, shared["name"], group, with_foreign=True)
    listed = sweep.find(None, shared["name"])
    (part,) = [row for place in listed.places for row in place.groups if row.name == group]
    assert part.goes and "in an existing group, which stays" in part.state
    assert sweep.remove(listed, lambda text: None) == []
    assert _names(clients, group) == {"r1-lrs", "nsg"} and run.manifest["resource_groups"][0]["deleted_utc"]


@pytest.mark.emulator
def test_a_group_that_is_not_there_stops_the_run_before_anything_is_made(
    shared: dict[str, Any], request: pytest.FixtureRequest
) -> None:
    with pytest.raises(DiskbookError, match=r"^nothing was created: there is no resource group nowhere"):
        _provisioned(shared, "nowhere", run_name(request))
    assert Run(sweep.runs.folder_of(run_name(request))).manifest["resource_groups"] == []
