"""A scenario on hosts of one's own: what needs Azure is named, and every disk has one place."""

from __future__ import annotations

from typing import Any

import pytest

from diskbook.design import scenario_file, scenario_tables
from diskbook.design.model import Scenario
from diskbook.facts.catalog import OWN_DISK, OWN_HOST
from diskbook.facts.errors import UsageError
from diskbook.hosts import hosts_file
from diskbook.hosts.hosts_file import OwnHost
from support import SCENARIOS
from support.own_hosts import OWN


def own(name: str = OWN, **overrides: Any) -> Scenario:
    return hosts_file.as_own(scenario_file.load(name, "quick", overrides))


def two_disks() -> Scenario:
    """A scenario with two disks on one machine."""
    raw = scenario_file.load(OWN, "quick").model_dump(mode="json")
    raw["disk"].append({**raw["disk"][0], "name": "other"})
    raw["arm"].append({**raw["arm"][0], "name": "other", "disk": "other"})
    return hosts_file.as_own(scenario_tables.from_dict(raw, "two"))


def host(**keys: Any) -> OwnHost:
    return OwnHost.model_validate({"name": "here", **keys})


def test_nothing_of_azure_is_left_in_the_scenario() -> None:
    made = own()
    assert {machine.size for machine in made.machine} == {OWN_HOST}
    assert {(disk.sku, disk.zone) for disk in made.disk} == {(OWN_DISK, None)}
    assert scenario_tables.from_dict(made.model_dump(mode="json"), "again") == made
    assert own("local-disk").analysis_notebook == "3-analyse-local-disk"


@pytest.mark.parametrize(
    ("scenario", "overrides", "sentence"),
    [
        ("s2d-azure", {}, "[[volume]] ss4 is a volume on a pool of disks"),
        ("zone-disks", {}, "[[check]] lrs-attach-other-zone is a check of what Azure attaches"),
        ("disk-options", {}, "[[disk]] "),
        ("tool-check", {}, "[[machine]] windows runs Windows, and hosts of your own run Linux"),
        (str(SCENARIOS / "local.toml"), {}, "is the OS disk of an Azure machine"),
        (OWN, {"disk.disk.cache": "ReadOnly"}, "has a host cache (ReadOnly), which is Azure's"),
        (OWN, {"disk.disk.size_gib": 1024, "disk.disk.bursting": True}, "has the option bursting"),
        (OWN, {"design.replicates": 2}, "2 replicates take fresh machines and disks each time"),
    ],
)
def test_what_needs_azure_is_named(scenario: str, overrides: dict[str, Any], sentence: str) -> None:
    with pytest.raises(UsageError) as refused:
        own(scenario, **overrides)
    text = str(refused.value)
    assert "cannot be measured on hosts of your own" in text and "\n" not in text
    assert sentence in text or (scenario == "s2d-azure" and "is a volume on a pool" in text)


def test_a_disk_seen_from_two_machines_stays_with_neither() -> None:
    raw = scenario_file.load(OWN, "quick").model_dump(mode="json")
    raw["machine"].append({**raw["machine"][0], "name": "there"})
    raw["arm"].append({**raw["arm"][0], "name": "far", "machine": "there"})
    with pytest.raises(UsageError, match="disk is seen from here and there, and a disk of your own stays"):
        hosts_file.as_own(scenario_tables.from_dict(raw, "two"))


def test_the_only_place_stands_for_the_only_disk() -> None:
    made = hosts_file.placed(own(), [host(paths=["/data"])], "f")
    assert made["hosts"]["here"]["places"] == {"disk": {"path": "/data"}}
    assert len(made["token"]) == 2 * hosts_file.TOKEN_BYTES
    by_role = hosts_file.placed(own(), [host(name="rack-7", role="here", devices=["/dev/sdx"])], "f")
    assert by_role["hosts"]["here"]["places"] == {"disk": {"device": "/dev/sdx", "allow_destroy": False}}


@pytest.mark.parametrize(
    ("keys", "sentence"),
    [
        ({"paths": ["/a"]}, '/a does not say which disk it stands for; write { disk = "disk", path = "/a" }'),
        ({"paths": [{"path": "/a", "disk": "dsk"}]}, "there is no disk 'dsk'; did you mean 'disk'?"),
        ({"paths": [{"path": "/a", "disk": "disk"}]}, "nothing stands for disk other; add it to paths"),
        (
            {"paths": [{"path": "/a", "disk": "disk"}, {"path": "/b", "disk": "disk"}]},
            "two places stand for disk disk; leave one out",
        ),
    ],
)
def test_every_disk_has_one_place(keys: dict[str, Any], sentence: str) -> None:
    with pytest.raises(UsageError) as refused:
        hosts_file.placed(two_disks(), [host(**keys)], "hosts.toml")
    assert sentence in str(refused.value) and "hosts.toml: [[host]] here" in str(refused.value)


def test_a_machine_without_a_host_is_named_and_a_spare_host_is_left_alone() -> None:
    spare = host(name="spare", paths=["/a"])
    with pytest.raises(UsageError, match=r"f: no \[\[host\]\] stands for here of scenario own; give a host"):
        hosts_file.placed(own(), [spare], "f")
    assert set(hosts_file.placed(own(), [spare, host(paths=["/a"])], "f")["hosts"]) == {"here"}
