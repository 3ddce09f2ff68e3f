"""Ephemeral OS disks: refused where they cannot be, measured behind their own limits, filled again."""

from __future__ import annotations

import json
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from diskbook.cloud.azure import requests
from diskbook.cost import estimate, plan_sections
from diskbook.design import scenario_file
from diskbook.design.model import Scenario
from diskbook.facts.errors import DiskbookError, UsageError
from diskbook.facts.prices import from_table, table
from diskbook.hosts import disks
from diskbook.hosts.device import Device
from diskbook.hosts.disks import OsDisk
from diskbook.hosts.ssh import Output
from diskbook.measure.bench.rig import Rig
from diskbook.measure.bench.steps import prefill
from diskbook.report.analysis import disk_options
from diskbook.report.analysis.run import Analysis, analyse
from diskbook.results.run import Run
from diskbook.tools import fio
from diskbook.tools.protocol import Job
from support import SCENARIOS, emulated, played
from support.disturbance import load_sensitive

LOCAL = str(SCENARIOS / "local.toml")
MIB = 2**20


# --- what a scenario may ask for


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"disk.os.zone": "1"}, "[[disk]] os: zone: an EphemeralOS disk has no such setting; leave zone out"),
        ({"disk.os.cache": "ReadOnly"}, "cache: an EphemeralOS disk has no such setting"),
        ({"disk.os.size_gib": 20}, "size_gib: the system and a working set of 0.03125 GiB need 30 GiB"),
        ({"disk.os.size_gib": 400}, "Standard_E4ads_v5 holds an OS disk of up to 150 GiB, not 400"),
        ({"all_workloads.working_set_gib": 60}, "a working set of 60 GiB need 76 GiB; make it larger"),
        ({"machine.vm.size": "Standard_E2as_v5"}, "Standard_E2as_v5 has neither local disk nor cache"),
        ({"machine.vm.os": "windows"}, "machine vm runs Windows; its OS disk is not measured"),
        ({"disk.lrs.sku": "EphemeralOS", "disk.lrs.zone": None}, "machine vm has one OS disk already"),
    ],
)
def test_what_cannot_be_is_refused(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError) as caught:
        scenario_file.load(LOCAL, "quick", changes)
    assert said in str(caught.value)


@pytest.mark.parametrize(
    "table",
    [
        '[[check]]\nkind = "attach-refused"',
        '[[check]]\nkind = "data-intact"\nfrom_machine = "vm"',
        '[[drill]]\nkind = "cold"\nfailure = "stop"\nfrom_machine = "vm"',
    ],
)
def test_it_takes_part_in_no_check_and_no_drill(tmp_path: Path, table: str) -> None:
    more = f'{table}\nname = "moved"\ndisk = "os"\nmachine = "vm"\n'
    (tmp_path / "own.toml").write_text(f"{Path(LOCAL).read_text()}\n{more}")
    with pytest.raises(UsageError, match="the disk of 'moved' is to be attached, and an OS disk stays"):
        scenario_file.load(str(tmp_path / "own.toml"), "quick")


@pytest.fixture
def scenario() -> Scenario:
    return scenario_file.load(LOCAL, "quick")


def test_the_machine_is_asked_for_with_it(scenario: Scenario) -> None:
    spec = scenario.os_disk_of("vm")
    assert spec is not None and [disk.name for disk in scenario.data_disks] == ["lrs"]
    asked = requests._os_disk(scenario.machine_named("vm"), spec)
    assert asked["diffDiskSettings"] == {"option": "Local", "placement": "ResourceDisk"}
    assert (asked["diskSizeGB"], asked["caching"], asked["deleteOption"]) == (64, "ReadOnly", "Delete")
    larger = spec.model_copy(update={"size_gib": 90})
    cached = scenario.machine_named("vm").model_copy(update={"size": "Standard_DS2_v2"})
    assert requests._os_disk(cached, larger.model_copy(update={"size_gib": 80}))["diffDiskSettings"] == {
        "option": "Local",
        "placement": "CacheDisk",  # its local disk has 14 GiB, its cache 86
    }


def test_it_costs_nothing_beside_its_machine(scenario: Scenario) -> None:
    prices = from_table(scenario.region, estimate.meters(scenario), table())
    assert estimate.month(scenario.disk_named("os"), prices) == 0
    what = [item.what for item in estimate.items(scenario)]
    assert not any(name.startswith("OS disk") for name in what) and "disk P30 (Premium_LRS)" in what
    ordinary = [arm for arm in scenario.arm if arm.disk != "os"]
    without = scenario.model_copy(update={"arm": tuple(ordinary)})
    assert "OS disk E4 (StandardSSD_LRS)" in [item.what for item in estimate.items(without)]


def test_the_plan_says_what_limits_it_and_that_it_stays_billed(scenario: Scenario) -> None:
    assert plan_sections.lowest(scenario, scenario.arm_named("ephemeral")) == (
        "4 KiB: 19,000 IOPS (VM, local disk)"
    )
    assert "local disk of Standard_E4ads_v5  19,000 IOPS, 250 MB/s" in plan_sections.limits(scenario)
    prices = from_table(scenario.region, estimate.meters(scenario), table())
    said = plan_sections.created(scenario, estimate.estimate(scenario, prices, 12))
    assert "1 x Standard_E4ads_v5 with an ephemeral OS disk" in said
    assert "cannot be deallocated: it is billed until teardown" in said


# --- measured, emulated


@pytest.fixture(scope="module")
def measured() -> Iterator[tuple[Analysis, dict[str, Any]]]:
    with emulated.own_place():
        folder = emulated.measured("local", LOCAL, "quiet")
        yield analyse(folder), json.loads((folder.folder / "truth.json").read_text())


@pytest.mark.alone
def test_its_limit_is_the_machines_own(measured: tuple[Analysis, dict[str, Any]]) -> None:
    a, _ = measured
    found = disk_options.predictions(a).set_index(["arm", "workload"])
    rate = found.loc[("ephemeral", "max-read-iops")]
    assert (rate["by"], rate["predicted_iops"]) == ("cap_vm_cached_iops", 19000)
    assert rate["ratio"] < 1.05
    assert found.loc[("lrs-plain", "max-read-iops"), "by"] == "cap_disk_iops"
    trials = a.trials.set_index("arm")
    assert trials.loc["ephemeral", ["cap_disk_iops", "cap_vm_iops", "lun"]].isna().all(axis=None)
    assert set(trials.loc["ephemeral", "credit_state"]) == {"none"}
    assert trials.loc["lrs-plain", "cap_vm_cached_iops"].isna().all()
    with load_sensitive():
        assert rate["ratio"] > 0.6  # by a data disk's limit it would be 0.34 or less


@pytest.mark.alone
def test_its_planted_latency_is_found(measured: tuple[Analysis, dict[str, Any]]) -> None:
    a, truth = measured
    single = a.trials[a.trials["workload"] == "access-time"]
    means = played.drawn_ms(single, truth).groupby(single["arm"]).mean()
    assert means["ephemeral"] == pytest.approx(0.12, rel=0.15)
    assert means["lrs-plain"] == pytest.approx(2.2, rel=0.15)


@pytest.mark.alone
def test_the_run_tells_what_it_is(measured: tuple[Analysis, dict[str, Any]]) -> None:
    a, _ = measured
    (replicate,) = a.manifest["replicates"]
    assert replicate["disks"]["os"]["read_back"] == {
        "sku": "EphemeralOS", "size_gib": 64, "zone": "1", "placement": "ResourceDisk",
    }  # fmt: skip
    events = a.run.ledger()
    (expiry,) = [event for event in events if event["event"] == "expiry"]
    assert "no machine with an ephemeral OS disk" in expiry["note"] and expiry["deallocated_utc"] is None
    assert [event["disk"] for event in events if event["event"] in ("attached", "marked")] == ["lrs", "lrs"]
    costs = disk_options.costs(a).set_index("Drive")
    assert costs.loc[a.labels["ephemeral"], "USD per month at that rate"] == 0
    assert costs.loc[a.labels["ephemeral"], "Note"] == "comes with the machine, and goes with it"
    assert a.labels["ephemeral"].startswith("ephemeral OS disk")


# --- as a file on a Linux machine


@dataclass
class Local:
    """This computer in place of an Azure machine; `sudo` is left out."""

    @dataclass
    class _Host:
        name: str = "vm"

    host: Any = None

    def run(self, command: str, **_: Any) -> Output:
        done = subprocess.run(["bash", "-c", f'sudo() {{ shift; "$@"; }}; {command}'], capture_output=True)
        return Output(done.returncode, done.stdout, done.stderr)

    def check(self, command: str, **options: Any) -> bytes:
        output = self.run(command, **options)
        assert output.status == 0, output.stderr
        return output.stdout


@pytest.fixture
def here() -> Any:
    return Local(Local._Host())


@pytest.fixture
def folder() -> Iterator[str]:
    """A folder on a disk, where /tmp may be memory, which takes no direct I/O everywhere."""
    with tempfile.TemporaryDirectory(dir="/var/tmp") as name:
        yield name


@pytest.mark.emulator
def test_a_file_on_the_os_disk_is_measured(here: Any, folder: str) -> None:
    found = disks.find(here, 8 * MIB, f"{folder}/measured", system=folder)
    assert found.held_bytes == 0 and found.device.needs_root and found.device.engine == "libaio"
    filled = subprocess.run(fio.prefill_command(8 * MIB, found.device.for_prefill).argv, capture_output=True)
    assert filled.returncode == 0, filled.stderr
    again = disks.find(here, 8 * MIB, f"{folder}/measured", system=folder)
    assert again.held_bytes == 8 * MIB and again.device == found.device
    content = Path(found.device.target).read_bytes()
    assert len(content) == 8 * MIB and content.count(0) < 0.02 * len(content)


@pytest.mark.emulator
def test_no_room_and_another_disk_are_refused(here: Any, folder: str) -> None:
    with pytest.raises(DiskbookError, match="make the OS disk larger"):
        disks.find(here, 2**60, folder, system=folder)
    with pytest.raises(DiskbookError, match="not on the OS disk"):
        disks.find(here, MIB, "/dev/shm")


def test_an_empty_one_is_filled_again(
    scenario: Scenario, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Azure moves a machine to another host where its own fails; its OS disk is new then."""
    replicate = {"replicate": 1, "machines": {}, "disks": {"os": {"id": "os"}}}
    state = {"prefilled": {"os"}, "overwritten": {"os"}}
    rig = Rig(Run(tmp_path), scenario, replicate, None, None, **state)  # type: ignore[arg-type]
    held = {"bytes": 32 * MIB}
    device = Device("libaio", "/x", "/x", 32 * MIB)
    monkeypatch.setattr(disks, "find", lambda *_: OsDisk(device, held["bytes"]))
    monkeypatch.setattr(rig, "connection", lambda _: None)
    fills: list[str] = []

    def write(rig: Rig, machine: str, disk: str, device: Device, what: str, needed: int) -> Job:
        fills.append(f"{what} {disk}")
        return Job(())

    monkeypatch.setattr("diskbook.measure.bench.steps._write", write)
    prefill(rig, "os", "vm")
    assert fills == []
    held["bytes"] = 0
    rig.forget("os")
    prefill(rig, "os", "vm")
    assert fills == ["prefill os", "overwrite os"] and "os" in rig.prefilled & rig.overwritten
