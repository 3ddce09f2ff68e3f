"""Sweep: what it lists, what it deletes, and above all what it leaves alone. On real emulators."""

from __future__ import annotations

import io
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import psutil
import pytest

from diskbook.cli import main
from diskbook.cloud.azure import keys, named_group, requests, signin, teardown
from diskbook.cloud.azure.clients import Clients
from diskbook.design.model import Disk
from diskbook.facts.errors import DiskbookError, UsageError
from diskbook.measure.runs import overview, sweep, sweep as sweep_runs
from diskbook.results import run as runs, session
from diskbook.results.run import Run
from diskbook.results.session import RunState
from diskbook_emulator import lifecycle
from support import SCENARIOS, identity_endpoint
from support.arm_plane import SUBSCRIPTION, TOKEN, World
from support.emulated import leftovers, soon
from support.manifests import odd
from support.standing import (
    EMULATOR,
    REGION,
    a_cloud,
    a_group,
    a_place,
    a_run,
    diskbook,
    faults,
    groups,
    in_hours,
    name_of,
    signed,
    tags_of,
)

pytestmark = pytest.mark.emulator

DELETE = {"method": "DELETE", "path_regex": "/resourceGroups/[^/]+$"}


@pytest.fixture(scope="module")
def place() -> Iterator[Path]:
    with a_place() as folder:
        yield folder


@pytest.fixture(scope="module")
def emulator(place: Path) -> Clients:
    return a_cloud()


@pytest.fixture
def cloud(emulator: Clients) -> Iterator[Clients]:
    """An emulator without groups; run folders of the test go as well."""
    yield emulator
    faults(emulator)
    for name in groups(emulator):
        emulator.resource.resource_groups.begin_delete(name).result()
    for path in runs.runs_root().glob("*/manifest.json"):
        Run(path.parent).update_manifest(resource_groups=[])


def own(place: Path) -> Path:
    return place / "runs"


def listed(*words: str) -> dict[str, tuple[str, bool]]:
    """What a sweep says of each group: state, and whether it goes."""
    found = sweep_runs.find("emulator", *words)
    return {group.name: (group.state, group.goes) for place in found.places for group in place.groups}


def swept() -> tuple[list[str], list[str]]:
    """Sweep; return what it said, and what it says is left."""
    said: list[str] = []
    return said, sweep_runs.remove(sweep_runs.find("emulator", EMULATOR), said.append)


def command(*words: str, monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr(sys, "argv", ["diskbook", *words])
    with pytest.raises(SystemExit) as ended:
        main()
    return int(str(ended.value.code or 0))


# --- which groups go


ODD: list[tuple[dict[str, str], str]] = [
    ({}, "no tag diskbook-run"),
    ({"diskbook-run": "x"}, "no tag diskbook-owner"),
    (tags_of("x", owner=None), "no tag diskbook-owner"),
    (tags_of("x", scenario=None), "no tag diskbook-scenario"),
    (tags_of("x", expires=None), "no tag diskbook-expires"),
    (tags_of("x", expires=""), "no tag diskbook-expires"),
    (tags_of("x", expires="tomorrow"), "its tag diskbook-expires is not a time: 'tomorrow'"),
    (tags_of("x", expires="2020-01-01T00:00:00"), "its tag diskbook-expires is not a time"),
    (tags_of("../x", hours=-1), "its tag diskbook-run is not a name"),
    ({key.upper(): value for key, value in tags_of("x", -1).items()}, "no tag diskbook-run"),
]


def test_groups_whose_tags_are_not_all_ours_are_not_touched(cloud: Clients) -> None:
    problems = {f"diskbook-looks-like-ours-{n}": (tags, problem) for n, (tags, problem) in enumerate(ODD)}
    for name, (tags, _) in problems.items():
        a_group(cloud, name, tags, disks=0)
    seen = listed()
    for name, (_, problem) in problems.items():
        state, goes = seen[name]
        assert state.startswith(f"not touched: {problem}") and not goes
    assert swept() == ([], [])
    assert groups(cloud) == sorted(problems)


def test_groups_of_others_are_not_even_listed(cloud: Clients) -> None:
    a_group(cloud, "production", {"team": "payments"})
    a_group(cloud, "no-tags", {})
    assert listed() == {}
    assert swept() == ([], []) and groups(cloud) == ["no-tags", "production"]


ELSEWHERE = "not made by you on this computer: only 'diskbook sweep --delete --group {}' deletes it"


def test_what_has_expired_goes_where_it_was_made(cloud: Clients, place: Path) -> None:
    a_group(cloud, "ours", tags_of("mine", hours=-1, client=own(place)))
    assert listed() == {"ours": ("expired", True)}
    said, left = swept()
    assert left == [] and groups(cloud) == []
    assert "resource group ours is gone" in said


def test_what_was_made_elsewhere_stays_until_it_is_named(
    cloud: Clients, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    a_group(cloud, "unmarked", tags_of("theirs"))
    a_group(cloud, "marked", tags_of("theirs", hours=-40) | {"diskbook-client": "0123456789abcdef"})
    a_run("theirs", "unmarked", "marked", kept=False)  # the same name here says nothing about theirs
    stays = {"marked": f"expired, {ELSEWHERE.format('marked')}", "unmarked": ELSEWHERE.format("unmarked")}
    assert listed() == {name: (state, False) for name, state in stays.items()}
    assert swept() == ([], []) and groups(cloud) == ["marked", "unmarked"]
    where = ("sweep", "--emulator", EMULATOR, "--group")
    assert command(*where, "marked", monkeypatch=monkeypatch) == 3 and groups(cloud) == ["marked", "unmarked"]
    assert command(*where, "marked", "--delete", monkeypatch=monkeypatch) == 0
    assert groups(cloud) == ["unmarked"]


def test_a_name_that_is_no_run_s_group_is_told(cloud: Clients, place: Path) -> None:
    a_group(cloud, "production", {"team": "payments"})
    with pytest.raises(UsageError, match="no resource group production of a run; looked at: emulator"):
        sweep_runs.find(None, EMULATOR, "production")
    a_group(cloud, "half", {"diskbook-run": "x"})
    with pytest.raises(DiskbookError, match="half is not deleted from here: not touched: no tag"):
        sweep_runs.find(None, EMULATOR, "half")


def test_tags_that_were_copied_delete_nothing(cloud: Clients, place: Path) -> None:
    """Whoever may write tags can copy all of a group's: they are signed for that group only."""
    tags = tags_of("mine", hours=-1, client=own(place))
    tags |= signed(cloud.cloud.subscription, "ours", "mine")
    cloud.resource.resource_groups.create_or_update("theirs", {"location": REGION, "tags": tags})
    assert listed() == {"theirs": (f"expired, {ELSEWHERE.format('theirs')}", False)}
    assert swept() == ([], []) and groups(cloud) == ["theirs"]


def test_a_group_that_runs_were_told_to_use_is_never_deleted_whatever_its_tags(
    cloud: Clients, place: Path
) -> None:
    """Tags that were copied onto the user's group, and all that is in it is a run's."""
    tags = tags_of("mine", hours=-1, client=own(place))
    a_group(cloud, "theirs", tags)
    name = f"{named_group.new_prefix()}r1-zrs"
    body = requests.disk(Disk(name="d", sku="Premium_LRS", size_gib=64, zone="1"), REGION, tags)
    cloud.compute.disks.begin_create_or_update("theirs", name, body).result()
    with pytest.raises(DiskbookError, match="never deleted: runs were told to use it"):
        sweep_runs.find(None, EMULATOR, "theirs")
    assert groups(cloud) == ["theirs"]


def test_a_group_with_something_of_others_in_it_loses_what_is_ours(cloud: Clients, place: Path) -> None:
    a_group(cloud, "ours", tags_of("mine", hours=-1, client=own(place)))
    body = requests.disk(Disk(name="d", sku="Premium_LRS", size_gib=64, zone="1"), REGION, {"team": "x"})
    cloud.compute.disks.begin_create_or_update("ours", "payroll", body).result()
    others = "disks payroll without the tag of run mine"
    assert listed() == {"ours": (f"expired, in it {others}", True)}
    for _ in range(2):
        _, (left,) = swept()
        assert others in left and "--with-foreign" in left and groups(cloud) == ["ours"]
    assert listed() == {"ours": (f"expired, in it only {others}", True)}


def test_foreign_resources_go_once_a_person_has_confirmed_them_by_name(
    cloud: Clients, place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    a_group(cloud, "ours", tags_of("mine", hours=-1, client=own(place)))
    body = requests.disk(Disk(name="d", sku="Premium_LRS", size_gib=64, zone="1"), REGION, {"team": "x"})
    cloud.compute.disks.begin_create_or_update("ours", "payroll", body).result()
    words = ("sweep", "--emulator", EMULATOR, "--delete", "--group", "ours", "--with-foreign")
    for answer, status, left in (("n\n", 1, ["ours"]), ("y\n", 0, [])):
        monkeypatch.setattr(sys, "stdin", io.StringIO(answer))
        assert command(*words, monkeypatch=monkeypatch) == status
        assert "Delete ours with disks payroll?" in capsys.readouterr().out
        assert groups(cloud) == left
    assert command("sweep", "--with-foreign", monkeypatch=monkeypatch) == 2


def test_without_a_live_run_a_group_of_this_client_goes(cloud: Clients, place: Path) -> None:
    ended = name_of("ended")
    folder = a_run("ended", ended, kept=False)
    (folder.folder / "keys").mkdir()
    a_group(cloud, ended, tags_of("ended", client=own(place)), disks=2)
    a_group(cloud, "no-folder", tags_of("removed", client=own(place)))
    assert listed() == dict.fromkeys(("no-folder", ended), ("no live run", True))
    _, left = swept()
    assert left == [] and groups(cloud) == []
    assert folder.manifest["resource_groups"][0]["deleted_utc"]
    assert not (folder.folder / "keys").exists()


def test_a_live_run_keeps_its_group(cloud: Clients, place: Path) -> None:
    folder = a_run("alive", "of-alive", kept=False)
    a_group(cloud, "of-alive", tags_of("alive", client=own(place)))
    for hold in (session.session, Run.locked):  # of `diskbook run`, and of a stage
        with hold(folder):
            assert listed() == {"of-alive": ("live", False)}
            assert swept() == ([], []) and groups(cloud) == ["of-alive"]
    assert listed() == {"of-alive": ("no live run", True)}


@pytest.mark.parametrize("manifest", [{"kept": True}, {}])
def test_kept_runs_and_notebooks_by_hand_keep_theirs_until_they_expire(
    cloud: Clients, place: Path, manifest: dict[str, Any]
) -> None:
    name = f"kept-{len(manifest)}"
    a_run(name, "of-kept", **manifest)
    a_group(cloud, "of-kept", tags_of(name, client=own(place)))
    assert listed() == {"of-kept": ("kept until it expires", False)}
    assert swept() == ([], [])
    a_group(cloud, "of-kept", tags_of(name, hours=-1, client=own(place)), disks=0)
    assert swept()[1] == [] and groups(cloud) == []


def test_an_expired_group_does_not_take_a_younger_one_of_its_run_along(cloud: Clients, place: Path) -> None:
    folder = a_run("two-groups", "older", "younger", kept=True)
    a_group(cloud, "older", tags_of("two-groups", hours=-1, client=own(place)))
    a_group(cloud, "younger", tags_of("two-groups", client=own(place)))
    rows = folder.manifest["resource_groups"]
    folder.update_manifest(resource_groups=[{**rows[0], "expires_utc": in_hours(-1)}, rows[1]])
    assert swept()[1] == [] and groups(cloud) == ["younger"]


def test_a_damaged_manifest_keeps_its_group_until_it_expires(cloud: Clients, place: Path) -> None:
    folder = a_run("damaged", "of-damaged", kept=False)
    whole = (folder.folder / "manifest.json").read_text()
    (folder.folder / "manifest.json").write_text("{")
    try:
        a_group(cloud, "of-damaged", tags_of("damaged", client=own(place)))
        assert listed()["of-damaged"] == (
            "until it expires: the manifest of its run is damaged, was not written here, or is older than "
            "the newest; 'diskbook sweep --delete --group NAME' deletes it",
            False,
        )
        a_group(cloud, "of-damaged", tags_of("damaged", hours=-1, client=own(place)), disks=0)
        assert swept()[1] == [] and groups(cloud) == []
    finally:
        (folder.folder / "manifest.json").write_text(whole)


def test_an_older_manifest_deletes_no_group_that_was_kept(cloud: Clients, place: Path) -> None:
    group = name_of("kept-later")
    run = a_run("kept-later", kept=False)
    manifest = run.folder / "manifest.json"
    before = [manifest.read_bytes()]  # without a group
    row = {"name": group, "deleted_utc": None, "expires_utc": in_hours(12)}
    run.update_manifest(resource_groups=[row])
    before.append(manifest.read_bytes())
    session.record_kept(run, keep=True)
    a_group(cloud, group, tags_of("kept-later", client=own(place)))
    assert listed()[group] == ("kept until it expires", False)
    newest = manifest.read_bytes()
    for older in before:
        manifest.write_bytes(older)
        assert not listed()[group][1] and swept() == ([], [])
        with pytest.raises(DiskbookError, match="is older than the newest"):
            run.check_signed()
    assert groups(cloud) == [group]
    manifest.write_bytes(newest)
    assert listed()[group] == ("kept until it expires", False)
    manifest.write_bytes(before[0])
    assert sweep_runs.remove(sweep_runs.find(None, EMULATOR, group), print) == []  # a person named it
    assert groups(cloud) == []


@pytest.mark.parametrize("kept", [False, True])
def test_a_run_that_was_killed_after_the_deletion_of_its_group_is_settled(
    cloud: Clients, place: Path, kept: bool
) -> None:
    """Also one whose group somebody has deleted in the portal; while its group stands nothing is settled."""
    name = f"unclosed-{kept}".lower()
    run = a_run(name, f"of-{name}", kept=kept)
    (run.folder / "keys").mkdir()
    a_group(cloud, f"of-{name}", tags_of(name, client=own(place)), disks=0)
    assert not [one for one in sweep_runs.find("emulator").leftovers if name in one.text]
    assert overview.runs_table().standing[name].startswith("stands until ")
    cloud.resource.resource_groups.begin_delete(f"of-{name}").result()
    (found,) = [one for one in sweep_runs.find("emulator").leftovers if name in one.text]
    assert found.goes and "whose resource groups are gone" in found.text
    assert sweep_runs.remove(sweep_runs.find("emulator"), print) == []
    assert not (run.folder / "keys").exists() and overview.runs_table().standing[name] == ""
    assert not [one for one in sweep_runs.find("emulator").leftovers if name in one.text]


def test_a_run_that_hangs_on_beyond_its_expiry_loses_its_group(cloud: Clients, place: Path) -> None:
    folder = a_run("hangs", "of-hangs", kept=False)
    a_group(cloud, "of-hangs", tags_of("hangs", hours=-1, client=own(place)))
    with session.session(folder):
        assert swept()[1] == [] and groups(cloud) == []


def test_the_same_name_twice_is_not_the_same_run(cloud: Clients, place: Path) -> None:
    """An older run's group: its folder was removed, and the name used again."""
    folder = a_run("again", "new-group", kept=False)
    a_group(cloud, "old-group", tags_of("again", client=own(place)))
    with session.session(folder):
        assert listed() == {"old-group": ("no live run", True)}
    assert session.run_state(folder, "old-group") is RunState.ABSENT


# --- deleting


def test_tags_are_read_again_right_before_deletion(cloud: Clients, place: Path) -> None:
    a_group(cloud, "prolonged", tags_of("a", hours=-1, client=own(place)), disks=0)
    a_group(cloud, "adopted", tags_of("b", hours=-1, client=own(place)), disks=0)
    a_group(cloud, "gone", tags_of("c", hours=-1, client=own(place)), disks=0)
    found = sweep_runs.find("emulator", EMULATOR)
    assert found.goes == 3
    cloud.resource.resource_groups.create_or_update("prolonged", {"location": REGION, "tags": tags_of("a")})
    cloud.resource.resource_groups.create_or_update("adopted", {"location": REGION, "tags": {"team": "x"}})
    cloud.resource.resource_groups.begin_delete("gone").result()
    said: list[str] = []
    left = sweep_runs.remove(found, said.append)
    assert sorted(left) == [
        "resource group adopted was left alone: it is now not touched: no tag diskbook-run",
        f"resource group prolonged was left alone: it is now {ELSEWHERE.format('prolonged')}",
    ]
    assert said == ["resource group gone has gone meanwhile"]
    assert groups(cloud) == ["adopted", "prolonged"]


def test_a_run_resumed_meanwhile_keeps_its_group(cloud: Clients, place: Path) -> None:
    folder = a_run("resumed", "of-resumed", kept=False)
    a_group(cloud, "of-resumed", tags_of("resumed", client=own(place)))
    found = sweep_runs.find("emulator", EMULATOR)
    with session.session(folder):
        assert sweep_runs.remove(found, print) == ["resource group of-resumed was left alone: it is now live"]
    assert groups(cloud) == ["of-resumed"]


def test_groups_are_deleted_side_by_side_and_what_is_refused_is_told(cloud: Clients, place: Path) -> None:
    for number in range(4):
        a_group(cloud, f"old-{number}", tags_of(f"r{number}", hours=-1, client=own(place)), disks=1)
    locked = {"status": 409, "code": "ScopeLocked", "message": "locked: 'old-2'"}
    match = {"method": "DELETE", "path_regex": "/old-2(/|$)"}
    slow = {"match": {"operation": "group-delete"}, "times": 0, "action": {"delay_s": 400}}
    faults(cloud, {"match": match, "times": 0, "action": locked}, slow)
    began = datetime.now(UTC)
    said, left = swept()
    assert datetime.now(UTC) - began < timedelta(seconds=300)  # only that it ends
    (told,) = left
    assert "old-2: ScopeLocked" in told and "left: disks disk0; remove the lock" in told
    assert groups(cloud) == ["old-2"]
    starts = [said.index(f"deleting resource group old-{number}") for number in (0, 1, 3)]
    ends = [said.index(f"resource group old-{number} is gone") for number in (0, 1, 3)]
    assert max(starts) < min(ends)


def test_the_command_lists_by_default_and_tells_by_its_status(
    cloud: Clients, place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    where = ("sweep", "--cloud", "emulator")
    assert command(*where, monkeypatch=monkeypatch) == 0
    assert capsys.readouterr().out == f"nothing of ours: emulator {EMULATOR} (emulated)\n"
    a_group(cloud, "old", tags_of("x", hours=-2, client=own(place)), disks=3)
    a_group(cloud, "fresh", tags_of("y"), disks=0)
    assert command(*where, monkeypatch=monkeypatch) == 3
    told = capsys.readouterr().out
    assert f"emulator {EMULATOR} (emulated):" in told
    row = next(line for line in told.splitlines() if line.strip().startswith("old"))
    assert row.split()[1:5] == ["x", "somebody", "tests", "1"]
    assert "UTC, 2 h ago" in row and "3 disks" in row and row.endswith("expired: goes")
    assert "1 group to go: 'diskbook sweep --delete' deletes" in told
    assert groups(cloud) == ["fresh", "old"]
    faults(
        cloud, {"match": DELETE, "times": 0, "action": {"status": 409, "code": "ScopeLocked", "message": "."}}
    )
    assert command(*where, "--delete", monkeypatch=monkeypatch) == 3
    assert "left: delete resource group old: ScopeLocked" in capsys.readouterr().err
    faults(cloud)
    assert command(*where, "--delete", monkeypatch=monkeypatch) == 0
    assert capsys.readouterr().out.endswith("1 group deleted, and read back\n")
    assert groups(cloud) == ["fresh"]


def test_wrong_words_are_told(place: Path, emulator: Clients) -> None:
    with pytest.raises(UsageError, match="did you mean 'azure'"):
        sweep_runs.find("azur")
    with pytest.raises(UsageError, match="nobodys does not run"):
        sweep_runs.find(None, "nobodys")
    with pytest.raises(UsageError, match="leaves those out"):
        sweep_runs.find("azure", EMULATOR)


def test_a_client_is_a_folder_of_runs_on_one_computer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    mark = session.client_id(tmp_path / "a")
    assert mark == session.client_id(tmp_path / "a") != session.client_id(tmp_path / "b")
    with monkeypatch.context() as patch:
        patch.setattr("socket.gethostname", lambda: "another")
        assert session.client_id(tmp_path / "a") != mark
    (tmp_path / "b" / ".client").write_text("")
    assert session.known_client_id(tmp_path / "b") is None
    with pytest.raises(DiskbookError, match="is damaged: delete it"):
        session.client_id(tmp_path / "b")


def test_a_run_s_group_stays_its_own_when_the_computer_changes_its_name(
    cloud: Clients, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, change in (("renamed", "host"), ("forgotten", "client")):
        group = name_of(name)
        run = a_run(name, group, kept=False)
        a_group(cloud, group, tags_of(name, client=own(place)))
        keys.run_key(run.folder)
        with monkeypatch.context() as patch:
            if change == "host":
                patch.setattr("socket.gethostname", lambda: "another")
            else:
                (own(place) / ".client").unlink()
            assert listed()[group] == ("no live run", True)
            (run.folder / "keys").rename(run.folder / "k")
            assert not listed()[group][1]  # as in a copy, of a run that is worked on elsewhere
            (run.folder / "k").rename(run.folder / "keys")
            assert teardown.delete_group(cloud, run, group)
    assert groups(cloud) == []


def test_a_group_of_a_run_that_another_computer_works_on_stays(
    cloud: Clients, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    group = name_of("away")
    run = a_run("away", group, kept=False)
    a_group(cloud, group, tags_of("away", client=own(place)))
    with monkeypatch.context() as patch:
        patch.setattr("diskbook.results.session._computer", lambda: ["system-2", "boot-2"])
        with session.session(run):
            noted = (run.folder / ".session").read_text()
    assert noted == "system-2 boot-2" and (run.folder / ".session").read_text() == ""
    (run.folder / ".session").write_text(noted)  # as it stays when that computer goes off
    state, goes = listed()[group]
    assert "not made by you on this computer" in state and not goes
    (run.folder / ".session").write_text(f"{noted} {session._computer()[-1]}")
    assert listed()[group] == ("no live run", True)


def test_odd_run_folders_keep_no_other_run_s_group_standing(cloud: Clients, place: Path) -> None:
    group = name_of("expired")
    a_run("expired", group, kept=False)
    a_group(cloud, group, tags_of("expired", hours=-1, client=own(place)))
    names = odd(own(place))
    try:
        found = sweep_runs.find("emulator")
        assert [one.name for seen in found.places for one in seen.groups if one.goes] == [group]
        assert sweep_runs.remove(found, print) == []
        notes = "\n".join(sweep_runs.find().notes)
    finally:
        for name in names:
            shutil.rmtree(own(place) / name)
    assert groups(cloud) == []
    assert [name for name in names if name not in notes] == []


# --- Azure, by the same code


@pytest.fixture
def azure(plane: World, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    """A control plane that is Azure Resource Manager to the client, and somebody signed in to it."""
    with identity_endpoint.serve(TOKEN) as endpoint:
        identity_endpoint.use(monkeypatch, endpoint)
        monkeypatch.setenv("DISKBOOK_ARM_ENDPOINT", plane.url)
        monkeypatch.setenv("DISKBOOK_ARM_CA", str(plane.ca))
        monkeypatch.setenv("AZURE_SUBSCRIPTION_ID", SUBSCRIPTION)
        yield plane
    signin.credential.cache_clear()


def test_subscriptions_are_swept_as_emulators_are(azure: World, place: Path) -> None:
    made = azure.resource.resource_groups.create_or_update
    old = tags_of("r", hours=-1, client=own(place)) | signed(SUBSCRIPTION, "azure-old", "r")
    made("azure-old", {"location": REGION, "tags": old})
    made("azure-fresh", {"location": REGION, "tags": tags_of("r")})
    made("azure-others", {"location": REGION, "tags": {"team": "x"}})
    found = sweep_runs.find("azure")
    (seen,) = found.places
    assert seen.title == f"Azure, subscription {SUBSCRIPTION} at {azure.url} (emulated)"
    assert {group.name: group.goes for group in seen.groups} == {"azure-old": True, "azure-fresh": False}
    assert sweep_runs.remove(found, print) == []
    left = [one.name for one in azure.resource.resource_groups.list() if one.name.startswith("azure-")]
    assert sorted(left) == ["azure-fresh", "azure-others"]


def test_the_subscription_of_an_open_run_is_looked_at_too(
    azure: World, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    group = name_of("on-azure")
    used = {"subscription": SUBSCRIPTION, "endpoint": azure.url, "ssh_source": "203.0.113.7/32"}
    folder = a_run("on-azure", group, cloud="azure", emulator=None, azure=used, kept=False)
    tags = tags_of("on-azure", client=own(place)) | signed(SUBSCRIPTION, group, "on-azure")
    azure.resource.resource_groups.create_or_update(group, {"location": REGION, "tags": tags})
    monkeypatch.delenv("AZURE_SUBSCRIPTION_ID")
    monkeypatch.setenv("AZURE_CONFIG_DIR", str(place / "no-profile"))
    found = sweep_runs.find()
    states = {group.name: group.state for seen in found.places for group in seen.groups}
    assert states[group] == "no live run"
    assert [note for note in found.notes if note.startswith("not looked at: ")]
    assert sweep_runs.remove(found, print) == []
    assert folder.manifest["resource_groups"][0]["deleted_utc"]


def test_nobody_signed_in_is_a_note_unless_azure_was_asked_for(
    place: Path, emulator: Clients, monkeypatch: pytest.MonkeyPatch
) -> None:
    identity_endpoint.forget(monkeypatch)
    monkeypatch.setenv("AZURE_CONFIG_DIR", str(place / "no-profile"))
    with pytest.raises(UsageError, match="subscription"):
        sweep_runs.find("azure")
    (note,) = sweep_runs.find().notes
    assert note.startswith("not looked at: ")


# --- real programs, killed


def begun(name: str, *words: str) -> subprocess.Popen[str]:
    """Start a run and wait until its machines stand."""
    process = diskbook("run", str(SCENARIOS / "tiny.toml"), "--preset", "full", "--name", name, *words)
    ledger = runs.folder_of(name) / "ledger.jsonl"
    made = '"create machine"'
    assert soon(lambda: process.poll() is not None or (ledger.exists() and made in ledger.read_text()))
    assert process.poll() is None, process.communicate()
    return process


def killed(name: str, process: subprocess.Popen[str]) -> Run:
    """Kill the parent of a run, and wait until its stages have noticed."""
    folder = runs.open_run(name)
    assert session.is_worked_on(folder)
    process.kill()
    process.communicate()
    assert soon(lambda: not session.is_worked_on(folder))
    return folder


def test_a_killed_run_on_a_named_emulator_goes_by_sweep(
    cloud: Clients, place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    process = begun("lost", "--emulator", EMULATOR)
    (group,) = groups(cloud)
    assert group.startswith("diskbook-lost-1-") and listed()[group] == ("live", False)
    folder = killed("lost", process)
    assert listed() == {group: ("no live run", True)}
    assert command("sweep", monkeypatch=monkeypatch) == 3
    out = capsys.readouterr().out
    assert group in out and "1 machine, 2 disks" in out
    assert command("sweep", "--delete", monkeypatch=monkeypatch) == 0
    assert f"resource group {group} is gone" in capsys.readouterr().out
    assert groups(cloud) == []
    assert not (folder.folder / "keys").exists()
    assert all(row["deleted_utc"] for row in folder.manifest["resource_groups"])
    mine = lifecycle.connect(EMULATOR).folder
    assert soon(lambda: not list(mine.glob("vms/*")))
    assert command("sweep", monkeypatch=monkeypatch) == 0


def test_a_killed_run_on_its_own_emulator_leaves_a_record_and_a_key_only(place: Path) -> None:
    """Also of a job on a machine of an emulator nothing is left: test_lifecycle.py."""
    process = begun("alone")
    name = runs.open_run("alone").manifest["emulator"]["name"]
    machines = lifecycle.connect(name).folder
    folder = killed("alone", process)
    assert soon(lambda: name not in [row.name for row in lifecycle.status()] and not leftovers(machines))
    found = sweep_runs.find("emulator")
    assert [leftover.goes for leftover in found.leftovers if "run alone" in leftover.text] == [True]
    assert (folder.folder / "keys").exists()
    assert sweep_runs.remove(found, print) == []
    assert not (folder.folder / "keys").exists()
    assert all(row["deleted_utc"] for row in folder.manifest["resource_groups"])
    assert sweep_runs.find("emulator").goes == 0


def test_a_killed_emulator_goes_unless_a_run_may_go_on_with_it(place: Path) -> None:
    lifecycle.start("crashed", profile="quiet")
    server = psutil.Process(lifecycle.connect("crashed").pid)
    user = a_run("user", emulator={"name": "crashed", "own": False}, kept=True)
    user.update_manifest(resource_groups=[{"name": "g", "deleted_utc": None, "expires_utc": in_hours(1)}])
    server.send_signal(signal.SIGKILL)
    server.wait()

    def leftover() -> Any:
        assert soon(lambda: [row.state for row in lifecycle.status() if row.name == "crashed"] == ["dead"])
        return next(one for one in sweep_runs.find("emulator").leftovers if "emulator crashed" in one.text)

    assert not leftover().goes and "run user may resume it" in leftover().text
    user.update_manifest(kept=False)
    found = sweep_runs.find("emulator")
    assert leftover().goes and "goes   emulator crashed" in sweep.sweep_text(found)
    assert sweep_runs.remove(found, print) == []
    assert "crashed" not in [row.name for row in lifecycle.status()]


def test_a_dead_emulator_that_no_run_here_uses_stays_for_the_longest_lifetime(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lifecycle.start("foreign", profile="quiet")
    server = psutil.Process(lifecycle.connect("foreign").pid)
    server.kill()
    server.wait()
    assert soon(lambda: [row.state for row in lifecycle.status() if row.name == "foreign"] == ["dead"])
    (found,) = [one for one in sweep_runs.find("emulator").leftovers if "emulator foreign" in one.text]
    assert not found.goes
    config = lifecycle.status()[0].folder.parent / "foreign" / "config.json"
    os.utime(config, (0, 0))
    (found,) = [one for one in sweep_runs.find("emulator").leftovers if "emulator foreign" in one.text]
    assert found.goes
    found.remove()
    assert "foreign" not in [row.name for row in lifecycle.status()]


def test_temporary_folders_of_dead_processes_go(place: Path) -> None:
    dead = subprocess.Popen(["true"])
    dead.wait()
    gone = Path(os.environ["TMPDIR"]) / f"diskbook-scratch-{dead.pid}-x"
    stays = Path(os.environ["TMPDIR"]) / f"diskbook-scratch-{os.getpid()}-x"
    others = Path(os.environ["TMPDIR"]) / f"diskbook-scratch-{dead.pid}-y"
    gone.mkdir()
    stays.mkdir()
    if os.getuid() == 0:  # a link that somebody else made to a folder of ours
        others.symlink_to(stays)
        os.chown(others, 65534, 65534, follow_symlinks=False)
    try:
        found = sweep_runs.find("emulator")
        assert [str(gone) in leftover.text for leftover in found.leftovers] == [True]
        assert sweep_runs.remove(found, print) == []
        assert not gone.exists() and stays.exists()
    finally:
        others.unlink(missing_ok=True)
        stays.rmdir()
