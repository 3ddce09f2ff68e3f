"""Expiry: how long machines may stand, what ends them, and what becomes of a run that outlives its own."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from threading import Event
from typing import Any

import pytest
import yaml
from azure.core.rest import HttpRequest

from diskbook.cli import main
from diskbook.cloud.azure import expiry, keys, requests
from diskbook.cloud.azure.clients import Clients
from diskbook.design import scenario_file, schedule
from diskbook.facts.errors import DiskbookError, UsageError
from diskbook.measure.bench.rig import Rig
from diskbook.measure.bench.trials import measure
from diskbook.measure.runs import overview, stages, sweep
from diskbook.results import plan as plans
from diskbook.results.run import Run
from diskbook_emulator import machine
from support import SCENARIOS
from support.emulated import soon
from support.measuring import held_job, hold, meanwhile
from support.standing import EMULATOR, a_cloud, a_place, faults, groups

NOON = datetime(2026, 11, 20, 12, 0, 30, tzinfo=UTC)


@pytest.fixture(scope="module")
def place() -> Iterator[Path]:
    with a_place() as folder:
        yield folder


@pytest.fixture(scope="module")
def emulator(place: Path) -> Clients:
    return a_cloud()


@pytest.fixture
def cloud(emulator: Clients) -> Iterator[Clients]:
    yield emulator
    faults(emulator)
    clock(emulator, 0)
    for name in groups(emulator):
        emulator.resource.resource_groups.begin_delete(name).result()


def clock(cloud: Clients, hours: float, rate: float = 1) -> None:
    """Set the clock by which the emulator's machines shut down: ahead, and so many times as fast."""
    request = HttpRequest("PUT", "/diskbook/clock", json={"ahead_s": hours * 3600, "rate": rate})
    cloud.resource.send_request(request).raise_for_status()


def begin(name: str, set_: dict[str, Any] | None = None, preset: str = "quick", **manifest: Any) -> Run:
    tiny = str(SCENARIOS / "tiny.toml")
    run = stages.begin(name, tiny, "emulator", preset, set_ or {}, emulator={"name": EMULATOR})
    run.update_manifest(**manifest)
    return run


def power(cloud: Clients, run: Run) -> str:
    """Power state of the run's first machine."""
    group, _, name = run.manifest["replicates"][-1]["machines"]["vm1"]["id"].rsplit("/", 8)[-5::2]
    view = cloud.compute.virtual_machines.instance_view(group, name)
    return next(row.code for row in view.statuses if row.code.startswith("PowerState/")).split("/")[1]


def events(run: Run, kind: str) -> list[dict[str, Any]]:
    return [event for event in run.ledger() if event["event"] == kind]


def measure_first_block(cloud: Clients, run: Run) -> None:
    scenario = run.scenario
    rig = Rig.of(cloud, run, scenario, run.manifest["replicates"][0], Event())
    try:
        measure(rig, plans.remaining(run, 1)[:1])
    finally:
        rig.close()


# --- times


def test_waits_between_blocks_must_end_before_the_machines_do() -> None:
    """Two blocks 13 h apart on machines that stand for 12 h; an emulator plays them in seconds."""
    path, hours = str(SCENARIOS / "tiny.toml"), {"design.hours_between_blocks": 13}
    spread, near = (scenario_file.load(path, "standard", set_) for set_ in (hours, {}))
    manifest: dict[str, Any] = {"expires_h": 12}
    with pytest.raises(
        UsageError, match=r"trials alone and the waits between blocks take 13 h, .*--expires 17"
    ):
        expiry.check_fits(manifest, spread, schedule.plan(spread), 1)
    expiry.check_fits(manifest, near, schedule.plan(near), 1)
    expiry.check_fits({**manifest, "emulator": {"time_scale": 0.01}}, spread, schedule.plan(spread), 1)
    expiry.check_fits(manifest, spread, schedule.plan(spread)[1:], 1)  # nothing is after the last block


@pytest.mark.parametrize("hours", [1, 12, 72])
def test_lifetimes_that_are_taken(hours: float) -> None:
    assert expiry.check_hours(hours) == hours


@pytest.mark.parametrize("hours", [0, -1, 0.99, 72.1, float("nan"), float("inf")])
def test_lifetimes_that_are_not(
    hours: float, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["diskbook", "run", "zone-disks", "--expires", str(hours)])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    assert "give 1 to 72 hours" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("hours", "at"),
    [
        (12, "2026-11-21T00:01"),  # seconds are rounded up: never before the tag says
        (0, "2026-11-20T12:32"),  # half an hour from now at the earliest, or it might come tomorrow
        (23.9, "2026-11-21T11:55"),
        (24, None),  # a daily time: its first one would be today
        (72, None),
    ],
)
def test_azures_daily_shutdown_never_comes_early(hours: float, at: str | None) -> None:
    found = expiry.shutdown_time(NOON + timedelta(hours=hours), NOON)
    assert (found.isoformat("T", "minutes")[:16] if found else None) == at


def test_linux_and_windows_are_told_the_time() -> None:
    config = yaml.safe_load(keys.cloud_init(keys.new_pair("vm"), "2026-11-21T01:40:00.250000+00:00"))
    (timer, service, _) = config["write_files"]
    assert "OnCalendar=2026-11-21 01:50:01 UTC\n" in timer["content"]
    assert "systemctl poweroff" in service["content"]
    assert ["systemctl", "enable", "--now", "diskbook-expiry.timer"] in config["runcmd"]
    assert "systemctl mask --now apt-daily.timer" in config["runcmd"][-1][-1]
    script = requests.windows_setup_script("2026-11-21T01:40:00+00:00")
    assert f"FromUnixTimeSeconds({datetime(2026, 11, 21, 1, 50, tzinfo=UTC).timestamp():.0f})" in script
    assert "shutdown.exe" in script and "shutdown.exe" not in requests.windows_setup_script()


@pytest.mark.parametrize(
    "text", ["", "#!/bin/sh\n", "#cloud-config\n[", "#cloud-config\n{}\n", "#cloud-config\n"]
)
def test_user_data_without_a_timer_shut_nothing_down(text: str) -> None:
    assert machine.shutdown_at(text) is None


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.4, "0 s"), (59, "59 s"), (60, "1 min"), (5400, "2 h"), (86400, "24 h"), (200000, "2 days")],
)
def test_time_spans(seconds: float, text: str) -> None:
    assert expiry.span(seconds) == text


@pytest.mark.emulator
def test_more_than_fits_is_refused_before_anything_is_made(cloud: Clients) -> None:
    run = begin("longer", {"all_workloads.runtime_s": 3600}, expires_h=1)
    with pytest.raises(UsageError, match=r"^the trials alone take 2 h, but .* after 1 h: give --expires 4$"):
        stages.provision(run)
    assert groups(cloud) == [] and run.manifest["resource_groups"] == []


# --- machines


@pytest.mark.emulator
def test_machines_are_deallocated_at_expiry_and_the_run_goes_on_with_new_ones(
    cloud: Clients,
) -> None:
    run = begin("outlived", preset="standard", kept=True)
    stages.provision(run)
    (row,) = run.manifest["resource_groups"]
    tag = cloud.resource.resource_groups.get(row["name"]).tags["diskbook-expires"]
    assert row["expires_utc"] == tag
    left = datetime.fromisoformat(tag) - datetime.now(UTC)
    assert timedelta(hours=11, minutes=58) < left <= timedelta(hours=12)
    (told,) = events(run, "expiry")
    assert (told["machine"], told["expires_utc"]) == ("r1-vm1", tag)
    assert (
        told["note"].startswith("Azure deallocates it at ") and "disks and address cost until" in told["note"]
    )
    assert datetime.fromisoformat(told["deallocated_utc"]) >= datetime.fromisoformat(tag)
    assert overview.runs_table().standing["outlived"].startswith("stands until ")
    measure_first_block(cloud, run)

    clock(cloud, 11.9)
    assert power(cloud, run) == "running"
    clock(cloud, 12.05)
    assert soon(lambda: power(cloud, run) == "deallocated")

    gone = (datetime.now(UTC) - timedelta(seconds=1)).isoformat("T", "seconds")
    run.update_manifest(resource_groups=[{**row, "expires_utc": gone}])
    assert "expired" in overview.runs_table().standing["outlived"]
    clock(cloud, 0)
    with pytest.raises(DiskbookError, match="are gone; make new ones"):
        stages.benchmark(run)
    stages.provision(run)
    stages.benchmark(run)
    assert stages.finished(run)
    assert [(row["replicate"], row["origin"]) for row in run.manifest["replicates"]] == [(1, 1), (2, 1)]
    assert {(event["replicate"], event["block"]) for event in events(run, "trial")} == {(1, 1), (2, 2)}
    (found,) = events(run, "expired")
    assert (found["machine"], found["power"], found["billed"]) == ("r1-vm1", "deallocated", False)
    old, new = run.manifest["resource_groups"]
    assert old["deleted_utc"] and not new["deleted_utc"]
    assert groups(cloud) == [new["name"]]
    stages.teardown(run)
    assert groups(cloud) == [] and overview.runs_table().standing["outlived"] == ""


@pytest.mark.emulator
def test_expiry_in_the_middle_of_a_trial_stops_the_run_and_starts_no_machine_again(
    cloud: Clients, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("diskbook.hosts.private_access.RECONNECT_S", 1.0)
    run = begin("midway", preset="full", kept=True)
    stages.provision(run)
    (row,) = run.manifest["resource_groups"]
    hold(run, "r1-b02-p001-*")

    def expire() -> None:
        held_job(run, "r1-b02-p001-*")
        gone = (datetime.now(UTC) - timedelta(seconds=1)).isoformat("T", "seconds")
        run.update_manifest(resource_groups=[{**row, "expires_utc": gone}])
        clock(cloud, 12.1)

    told = r"has expired, so its machines have shut down; .* makes new ones"
    with meanwhile(expire), pytest.raises(DiskbookError, match=told):
        stages.benchmark(run)
    assert soon(lambda: power(cloud, run) == "deallocated")
    stages.teardown(run)


@pytest.mark.emulator
def test_the_shortest_lifetime_ends_in_a_machine_that_costs_no_more(cloud: Clients) -> None:
    """An hour on a clock that goes 720 times as fast: 5 s, and the machine's own timer never comes first."""
    run = begin("short", kept=False, expires_h=expiry.LEAST_H)
    stages.provision(run)
    (told,) = events(run, "expiry")
    assert told["deallocated_utc"]
    clock(cloud, 0, rate=720)
    assert soon(lambda: power(cloud, run) != "running")
    assert soon(lambda: power(cloud, run) == "deallocated")
    (row,) = run.manifest["resource_groups"]
    group = cloud.resource.resource_groups.get(row["name"])
    gone = (datetime.now(UTC) - timedelta(seconds=1)).isoformat("T", "seconds")
    run.update_manifest(resource_groups=[{**row, "expires_utc": gone}])
    cloud.resource.resource_groups.update(row["name"], {"tags": {**group.tags, "diskbook-expires": gone}})
    assert expiry.is_past(run.manifest)
    states = {group.name: group.state for place in sweep.find("emulator").places for group in place.groups}
    assert states == {row["name"]: "expired"}
    assert sweep.remove(sweep.find("emulator"), print) == []
    (found,) = events(run, "expired")
    assert (found["power"], found["billed"]) == ("deallocated", False)
    assert groups(cloud) == []
    assert all(row["deleted_utc"] for row in run.manifest["resource_groups"])


@pytest.mark.emulator
def test_more_than_a_day_is_left_to_the_machines_own_timer(cloud: Clients) -> None:
    run = begin("long", expires_h=30.0)
    stages.provision(run)
    (told,) = events(run, "expiry")
    assert told["deallocated_utc"] is None and "would come too early" in told["note"]
    clock(cloud, 29.9)
    assert power(cloud, run) == "running"
    clock(cloud, 30.1)
    assert power(cloud, run) == "running"  # its own timer comes ten minutes later
    clock(cloud, 30.2)
    assert soon(lambda: power(cloud, run) == "stopped")
    (row,) = run.manifest["resource_groups"]
    run.update_manifest(resource_groups=[{**row, "expires_utc": "2026-01-01T00:00:00+00:00"}])
    stages.teardown(run)
    (found,) = events(run, "expired")
    assert (found["power"], found["billed"]) == ("stopped", True)


@pytest.mark.emulator
def test_a_refused_schedule_is_told_and_the_machine_stops_itself(cloud: Clients) -> None:
    refusal = {"status": 403, "code": "AuthorizationFailed", "message": "no right to write schedules"}
    faults(cloud, {"match": {"method": "PUT", "path_regex": "/schedules/"}, "times": 0, "action": refusal})
    run = begin("refused")
    stages.provision(run)
    (told,) = events(run, "expiry")
    assert told["deallocated_utc"] is None
    assert "AuthorizationFailed: no right to write schedules" in told["note"]
    clock(cloud, 12.2)
    assert soon(lambda: power(cloud, run) == "stopped")
    stages.teardown(run)
