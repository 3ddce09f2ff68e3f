"""Teardown on a real emulator: refused, failed, slow, interrupted; and what is said of what is left."""

from __future__ import annotations

import base64
import json
import multiprocessing
import os
import re
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from azure.core.rest import HttpRequest
from click.testing import CliRunner

from diskbook.batch.stores import address, lease, push
from diskbook.batch.stores.objects import open_objects
from diskbook.cli import cli
from diskbook.cloud.azure import inventory, keys, requests, teardown
from diskbook.cloud.azure.clients import Clients
from diskbook.cloud.azure.teardown import LeftStandingError
from diskbook.design.model import Disk
from diskbook.facts.errors import DiskbookError
from diskbook.measure.runs import stages
from diskbook.results import session
from diskbook.results.run import Run
from support.emulated import soon
from support.standing import a_cloud, a_group, a_place, a_run, faults, groups, name_of, tags_of

pytestmark = pytest.mark.emulator

DELETE = {"method": "DELETE", "path_regex": "/resourceGroups/[^/]+$"}
LOCKED = {
    "status": 409,
    "code": "ScopeLocked",
    "message": "The scope 'g' cannot perform delete operation because following scope(s) are locked: 'g'.",
}
BUSY = {"status": 409, "code": "AnotherOperationInProgress", "message": "Another operation is in progress."}
BLOCKED = {
    "operation_failed": {
        "code": "ResourceGroupDeletionBlocked",
        "message": "Deletion of resource group 'g' failed as resources with identifiers "
        "'Microsoft.Compute/disks/disk0' could not be deleted.",
    }
}


@pytest.fixture(scope="module")
def place() -> Iterator[Path]:
    with a_place() as folder:
        yield folder


@pytest.fixture(scope="module")
def cloud(place: Path) -> Clients:
    return a_cloud()


@pytest.fixture
def standing(cloud: Clients) -> Iterator[Run]:
    """A run with one group that holds two disks; all is gone in the end."""
    name = f"run-{os.urandom(3).hex()}"
    run = a_run(name, name_of(name))
    a_group(cloud, name_of(name), tags_of(name, client=run.folder.parent), disks=2)
    yield run
    faults(cloud)
    for left in groups(cloud):
        cloud.resource.resource_groups.begin_delete(left).result()


def group_of(run: Run) -> str:
    return str(run.manifest["resource_groups"][0]["name"])


def deletions(cloud: Clients, run: Run) -> int:
    """How many deletions of the run's group the control plane has begun."""
    answer = cloud.resource.send_request(HttpRequest("GET", "/diskbook/operations"))
    rows = answer.json()["value"]
    return sum(row["kind"] == "group-delete" and row["target"].endswith(group_of(run)) for row in rows)


def test_a_group_goes_and_is_said_to_go(cloud: Clients, standing: Run) -> None:
    (standing.folder / "keys").mkdir()
    said: list[str] = []
    stages.teardown(standing, said.append)
    assert groups(cloud) == []
    assert said == [f"deleting resource group {group_of(standing)}"]
    assert [event["text"] for event in standing.ledger() if event["event"] == "deletion"] == said
    assert standing.manifest["resource_groups"][0]["deleted_utc"]
    assert not (standing.folder / "keys").exists()
    stages.teardown(standing, said.append)
    assert len(said) == 1


def test_what_may_be_deleted_goes_where_the_group_may_not(cloud: Clients, standing: Run) -> None:
    forbidden = {"status": 403, "code": "AuthorizationFailed", "message": "No."}
    one = {"method": "DELETE", "path_regex": "/disks/disk1$"}
    faults(cloud, *({"match": match, "times": 0, "action": forbidden} for match in (DELETE, one)))
    with pytest.raises(LeftStandingError, match=r"AuthorizationFailed: No.*; left: disks disk1; ") as told:
        stages.teardown(standing)
    assert told.value.exit_code == 3
    group = group_of(standing)
    assert [row.name for row in cloud.resource.resources.list_by_resource_group(group)] == ["disk1"]


def test_a_lock_is_named_with_what_it_keeps(cloud: Clients, standing: Run) -> None:
    everything = {"method": "DELETE", "path_regex": "/resource[gG]roups/"}
    faults(cloud, {"match": everything, "times": 0, "action": LOCKED})
    with pytest.raises(LeftStandingError) as told:
        stages.teardown(standing)
    assert "ScopeLocked: The scope 'g' cannot" in str(told.value)
    assert "left: disks disk0, disks disk1; remove the lock" in str(told.value)
    assert f"'diskbook teardown {standing.name}'" in str(told.value) and "\n" not in str(told.value)
    assert groups(cloud) == [group_of(standing)]
    assert not standing.manifest["resource_groups"][0]["deleted_utc"]
    faults(cloud)
    stages.teardown(standing)
    assert groups(cloud) == []


def test_an_operation_in_the_way_is_waited_for(cloud: Clients, standing: Run) -> None:
    faults(cloud, {"match": DELETE, "times": 3, "action": BUSY})
    stages.teardown(standing)
    assert groups(cloud) == []


def test_a_conflict_that_lasts_is_told(cloud: Clients, standing: Run) -> None:
    faults(cloud, {"match": DELETE, "times": 0, "action": BUSY})
    with pytest.raises(DiskbookError, match=r"AnotherOperationInProgress.*left: disks disk0.*tries again"):
        stages.teardown(standing)


def test_a_deletion_that_failed_is_tried_once_more(cloud: Clients, standing: Run) -> None:
    faults(cloud, {"match": {"operation": "group-delete"}, "times": 1, "action": BLOCKED})
    stages.teardown(standing)
    assert groups(cloud) == [] and deletions(cloud, standing) == 2


def test_a_deletion_that_fails_names_what_is_left(cloud: Clients, standing: Run) -> None:
    faults(cloud, {"match": {"operation": "group-delete"}, "times": 0, "action": BLOCKED})
    with pytest.raises(DiskbookError) as told:
        stages.teardown(standing)
    assert "ResourceGroupDeletionBlocked: Deletion of resource group 'g' failed" in str(told.value)
    assert "left: disks disk0, disks disk1;" in str(told.value)
    assert deletions(cloud, standing) == 2


def test_a_slow_deletion_says_so_and_is_left_to_azure(
    cloud: Clients, standing: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow = {"match": {"operation": "group-delete"}, "times": 1, "action": {"delay_s": 8000}}  # 8 s
    faults(cloud, slow)
    monkeypatch.setattr(teardown, "NEWS_S", 0.5)
    monkeypatch.setattr(teardown, "PATIENCE_S", 3.5)
    said: list[str] = []
    with pytest.raises(DiskbookError, match=r"still being deleted.*goes on without us: 'diskbook teardown"):
        stages.teardown(standing, said.append)
    assert "is being deleted since 0 min" in said[1]
    token = standing.manifest["resource_groups"][0]["deletion"]
    assert b"earer" not in base64.b64decode(token)  # no access token in a manifest
    monkeypatch.undo()
    stages.teardown(standing, said.append)
    assert said[-1].endswith("is being deleted already; waiting for it")
    assert groups(cloud) == [] and deletions(cloud, standing) == 1
    assert standing.manifest["resource_groups"][0]["deletion"] is None


def test_a_killed_teardown_is_taken_up(cloud: Clients, standing: Run) -> None:
    faults(cloud, {"match": {"operation": "group-delete"}, "times": 1, "action": {"delay_s": 6000}})
    child = multiprocessing.get_context("fork").Process(target=_tear_down, args=(standing,))
    child.start()
    assert soon(lambda: standing.manifest["resource_groups"][0].get("deletion"))
    child.kill()
    child.join()
    assert child.exitcode == -signal.SIGKILL and groups(cloud) == [group_of(standing)]
    stages.teardown(standing)
    assert groups(cloud) == [] and deletions(cloud, standing) == 1


def _tear_down(run: Run) -> None:
    stages.teardown(run)


@pytest.mark.parametrize("token", ["no token", "foreign"])
def test_a_token_that_leads_nowhere_or_elsewhere_is_not_followed(
    cloud: Clients, standing: Run, token: str
) -> None:
    """A manifest may come from anybody, and our access token goes wherever a poll goes."""
    if token == "foreign":
        headers = {"Location": "https://127.0.0.9:9/steal"}
        document = {"version": 1, "data": {"response": {"headers": headers, "status_code": 202}}}
        token = base64.b64encode(json.dumps(document).encode()).decode()
    assert not teardown._polls_this_cloud(token, cloud)
    slow = {"match": {"operation": "group-delete"}, "times": 1, "action": {"delay_s": 200}}
    faults(cloud, slow)
    cloud.resource.resource_groups.begin_delete(group_of(standing))
    rows = standing.manifest["resource_groups"]
    standing.update_manifest(resource_groups=[{**rows[0], "deletion": token}])
    stages.teardown(standing)
    assert groups(cloud) == []


def test_a_group_that_goes_between_two_looks_is_gone(
    cloud: Clients, standing: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    find = inventory.find_group

    def found_and_deleted(clients: Clients, group: str) -> Any:
        found = find(clients, group)
        if found is not None:
            clients.resource.resource_groups.begin_delete(group).result()
        return found

    monkeypatch.setattr(inventory, "find_group", found_and_deleted)
    stages.teardown(standing)
    assert groups(cloud) == []


def test_what_lies_elsewhere_is_told_and_left(
    cloud: Clients, standing: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    tags = {"diskbook-run": standing.name}
    a_group(cloud, "of-others", {"team": "others"}, disks=0)
    body: dict[str, Any] = {
        "location": "westeurope",
        "sku": {"name": "Premium_LRS"},
        "tags": tags,
        "properties": {"creationData": {"createOption": "Empty"}, "diskSizeGB": 64},
    }
    cloud.compute.disks.begin_create_or_update("of-others", "stray", body).result()
    stages.teardown(standing)
    assert re.search(r"outside of its resource groups, .* \S+/disks/stray;", capsys.readouterr().out)
    assert groups(cloud) == ["of-others"]
    assert standing.manifest["resource_groups"][0]["deleted_utc"]
    assert cloud.compute.disks.get("of-others", "stray").name == "stray"


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"diskbook-run": "another"}, "it is not tagged with run "),
        ({"diskbook-client": "0123456789abcdef"}, "it was not made by you on this computer"),
        ({"diskbook-signature": "0" * 64}, "it was not made by you on this computer"),
    ],
)
def test_a_group_of_somebody_else_is_left_alone(
    cloud: Clients, standing: Run, changed: dict[str, str], reason: str
) -> None:
    group = group_of(standing)
    tags = dict(cloud.resource.resource_groups.get(group).tags) | changed
    cloud.resource.resource_groups.create_or_update(group, {"location": "westeurope", "tags": tags})
    with pytest.raises(DiskbookError, match=rf"{group} was left alone, it is not ours: {reason}"):
        stages.teardown(standing)
    assert groups(cloud) == [group]


def retag(cloud: Clients, run: Run, **changed: str) -> None:
    group = group_of(run)
    tags = {**cloud.resource.resource_groups.get(group).tags, **changed}
    cloud.resource.resource_groups.create_or_update(group, {"location": "westeurope", "tags": tags})


def test_a_machine_with_the_same_secret_deletes_what_another_made_while_it_owns_the_run_in_a_store(
    cloud: Clients, standing: Run
) -> None:
    retag(cloud, standing, **{"diskbook-client": "0123456789abcdef"})
    with pytest.raises(DiskbookError, match="not ours"):
        stages.teardown(standing)
    with session.held(standing):
        stages.teardown(standing)
    assert groups(cloud) == []


def test_a_second_machine_tears_down_by_the_run_s_address(
    cloud: Clients, standing: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = address.parse(f"file://{tmp_path}/store")
    push.push(standing.folder, store, whole=False)
    monkeypatch.setenv("DISKBOOK_RUNS", str(tmp_path / "runs"))
    done = CliRunner().invoke(cli, ["teardown", str(store / standing.name)])
    assert done.exit_code == 0 and "no resources of this run are left" in done.output, done.output
    assert groups(cloud) == []
    assert '"stage": "teardown"' in lease.read(open_objects(store / standing.name)).state.tail


def test_to_own_a_run_in_a_store_is_not_enough_without_the_secret(cloud: Clients, standing: Run) -> None:
    retag(cloud, standing, **{"diskbook-signature": "0" * 64})
    with session.held(standing), pytest.raises(DiskbookError, match="not made by you"):
        stages.teardown(standing)
    assert groups(cloud) == [group_of(standing)]


def test_machines_whose_key_is_elsewhere_are_deleted_before_new_ones_are_made(
    cloud: Clients, standing: Run
) -> None:
    key = keys.run_key(standing.folder)
    stages._drop_unreachable(standing, cloud)
    assert groups(cloud) == [group_of(standing)]
    key.unlink()
    stages._drop_unreachable(standing, cloud)
    assert groups(cloud) == [] and standing.manifest["resource_groups"][0]["deleted_utc"]


def test_a_group_by_another_name_is_left_alone(cloud: Clients, standing: Run) -> None:
    run = a_run(f"{standing.name}-2", "production")
    a_group(cloud, "production", tags_of(run.name, client=run.folder.parent))
    with pytest.raises(DiskbookError, match="its name is not one of run"):
        stages.teardown(run)
    assert "production" in groups(cloud)


def add_disk(cloud: Clients, group: str, name: str) -> None:
    body = requests.disk(
        Disk(name="d", sku="Premium_LRS", size_gib=64, zone="1"), "westeurope", {"team": "x"}
    )
    cloud.compute.disks.begin_create_or_update(group, name, body).result()


def held(cloud: Clients, group: str) -> list[str]:
    """Names of the disks in a group."""
    return [str(row.name) for row in cloud.compute.disks.list_by_resource_group(group)]


def test_a_disk_of_somebody_else_keeps_its_group_and_no_disk_of_the_run(
    cloud: Clients, standing: Run
) -> None:
    group = group_of(standing)
    add_disk(cloud, group, "payroll")
    add_disk(cloud, group, requests.os_disk_name("r1-vm1"))  # its machine is gone
    why = f"{group} still stands .* disks payroll without .*; the run's own are deleted.* 'az group delete"
    for _ in range(2):
        with pytest.raises(DiskbookError, match=why) as refused:
            stages.teardown(standing)
        assert refused.value.exit_code == 3 and held(cloud, group) == ["payroll"]


def test_a_disk_that_may_not_be_deleted_keeps_no_other_standing(cloud: Clients, standing: Run) -> None:
    group = group_of(standing)
    add_disk(cloud, group, "payroll")
    forbidden = {"status": 403, "code": "AuthorizationFailed", "message": "You may not."}
    faults(cloud, {"match": {"method": "DELETE", "path_regex": "/disks/disk0$"}, "action": forbidden})
    with pytest.raises(DiskbookError, match=r"could not be deleted: disks disk0 \(.*You may not"):
        stages.teardown(standing)
    assert held(cloud, group) == ["disk0", "payroll"]


def test_a_run_folder_that_was_changed_deletes_nothing(cloud: Clients, standing: Run) -> None:
    path = standing.folder / "manifest.json"
    written = path.read_text()
    path.write_text(written.replace('"quick"', '"standard"'))
    with pytest.raises(DiskbookError, match=r"was not begun by you .* nothing is created, sent or deleted"):
        stages.teardown(standing)
    assert groups(cloud) == [group_of(standing)]
    standing.update_manifest(kept=True)  # what was not signed is not signed by a change
    assert not standing.is_signed
    path.write_text(written)
    stages.teardown(standing)
    assert groups(cloud) == []
