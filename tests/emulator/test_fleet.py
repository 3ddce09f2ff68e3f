"""Fleets on emulated volumes: what comes back, what was played, and what is refused."""

from __future__ import annotations

import base64
import csv
import io
import json
import statistics
import tempfile
import threading
import zipfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from diskbook.clusters.powershell import steps
from diskbook.clusters.powershell.steps import StepFailed
from diskbook.facts.units import MIB
from diskbook.tools.diskspd import xml
from diskbook.tools.record import Measurement
from diskbook_emulator import processes
from support.disturbance import load_sensitive
from support.emulated import soon
from support.spaces import Spaces, machine, spaces, vm_id

pytestmark = pytest.mark.emulator

DRIVE_IOPS = 1500
NODES = ("r1-n1", "r1-n2")
OWNERS = {"two-way-1": 0, "two-way-2": 1, "nested": 0, "outside": 0, "inside": 0, "fresh": 0}
FILE = 32 * MIB
INSTANCES = 2
# No rotation, so that what the mirror holds does not change; drives of 1,500 IOPS.
PROFILE = """
extends = "quiet"
[volumes]
rotate_at = 0
[caps]
iops_factor = 1.0
[drives.s2d-azure]
iops = 1500
mb_s = 200
"""
SATURATED = "-b4K -t4 -o8 -r4K -w100 -B16M -f32M -Z20M -z1 -h -W1 -d2 -D -L -Rxml"
VOLUMES = {
    "two-way": ("two-way-1", "two-way-2"),
    "nested": ("nested",),
    "outside": ("outside",),
    "inside": ("inside",),
}
DISK_IOS = {"two-way": 2, "nested": 4, "outside": 8, "inside": 4}
"""I/Os of disks for each write: nested is two copies on each node, outside the mirror is parity in place."""
FILLING = "-b1M -t1 -o8 -w100 -s -Sh -W0 -g50000 -d{seconds} -Zr -Rxml"  # 48 MiB a second


@dataclass
class Played:
    """Results of a fleet, and what the disks of its volumes did meanwhile."""

    machines: dict[str, Measurement]
    times: dict[str, dict[str, str]]
    files: dict[str, str]
    disk_ios: int
    client_ios: int

    @property
    def iops(self) -> float:
        """All machines together."""
        return sum(part.iops for one in self.machines.values() for part in one.directions.values())

    def spread_s(self, which: str) -> float:
        moments = [datetime.fromisoformat(row[which]).timestamp() for row in self.times.values()]
        return max(moments) - min(moments)


class Rig:
    """Two nodes with a pool, volumes of all kinds on it, and a short way to run fleets there."""

    def __init__(self, made: Spaces) -> None:
        self.made = made
        self.paths: dict[str, str] = {}
        made.clustered()
        mirror, size = 16 * MIB, 4 * FILE
        self.volume("two-way-1", steps.striped("dbk", "two-way-1", size, 4, 2))
        self.volume("two-way-2", steps.striped("dbk", "two-way-2", size, 4, 2))
        self.volume("nested", steps.nested("dbk", "nested", size))
        self.volume("outside", steps.nested("dbk", "outside", mirror, size))
        self.volume("inside", steps.nested("dbk", "inside", size, size))
        self.volume("fresh", steps.nested("dbk", "fresh", mirror, size))

    def volume(self, name: str, request: steps.Volume) -> None:
        self.paths[name] = self.made.run("r1-n1", "volume", request)["path"]
        node = NODES[OWNERS[name]]
        self.made.run("r1-n1", "place", steps.Place(volume=name, node=node))

    def fleet(self, *names: str, fill: bool = False, **more: Any) -> steps.Fleet:
        root = "DiskbookFill" if fill else "ClusterStorage"
        volumes = [
            steps.FleetVolume(
                name=name, path=self.paths[name].replace("ClusterStorage", root), node=NODES[OWNERS[name]]
            )
            for name in names
        ]
        usual = {"volumes": volumes, "instances": INSTANCES, "file_bytes": FILE, "spec": "a1"}
        return steps.Fleet.model_validate({**usual, **more})

    def fill(self, *names: str) -> None:
        """Write all files in full; DiskSpd writes for a time, which on a busy machine may be too short."""
        for seconds in (1, 2, 4, 8, 16):
            played = self.play(*names, line=FILLING.format(seconds=seconds), fill=True, create=True)
            if all(one.directions["write"].ios * MIB >= FILE for one in played.machines.values()):
                return
        raise AssertionError(f"{names} are not written in full")

    def play(self, *names: str, line: str, **more: Any) -> Played:
        before = self.counts(names)
        answer = self.made.run("r1-n1", "fleet", self.fleet(*names, line=line, **more))
        grown = self.counts(names) - before
        with zipfile.ZipFile(io.BytesIO(base64.b64decode(answer["archive"]))) as packed:
            files = {name: packed.read(name).decode() for name in packed.namelist()}
        machines = {}
        for name, text in files.items():
            if name.endswith(".xml"):
                (measured,) = xml.parse(text, name).measurements
                machines[measured.host] = measured
        return Played(machines, json.loads(files["fleet.json"])["vms"], files, int(grown[0]), int(grown[1]))

    def counts(self, names: Sequence[str]) -> np.ndarray:
        """I/Os of the disks, and of clients."""
        host = self.made.backend._host
        records = [record for record in self.made.backend._book.spaces.there if record.name in names]
        totals = [host.volumes[record.number].file for record in records]
        return np.array(
            [sum(file.member_ios()[:, :2].sum() for file in totals),
             sum(file.node_ios()[:, :2].sum() for file in totals)]
        )  # fmt: skip


@pytest.fixture(scope="module")
def unwritten() -> Iterator[Rig]:
    """Volumes without files."""
    with tempfile.TemporaryDirectory(prefix="diskbook-test-", dir="/tmp") as name:
        profile = Path(name) / "planted.toml"
        profile.write_text(PROFILE)
        with spaces(nodes=2, profile=str(profile), size="Standard_D32s_v5") as made:
            yield Rig(made)


@pytest.fixture(scope="module")
def rig(unwritten: Rig) -> Rig:
    """The same, with all files written, but for those of `fresh`."""
    unwritten.fill(*VOLUMES["two-way"])
    unwritten.fill("nested", "outside", "inside")
    return unwritten


@pytest.fixture(scope="module")
def saturated(rig: Rig) -> dict[str, Played]:
    """Writes of 4K alone, behind what the mirror of `outside` holds."""
    line = SATURATED.replace("-W1", "-W0")
    return {
        kind: rig.play(*names, line=line if kind == "two-way" else line.replace("-d2", "-d1"))
        for kind, names in VOLUMES.items()
    }


# ---- what comes back ------------------------------------------------------------------------------------


def test_each_machine_has_a_result_as_diskspd_writes_it(saturated: dict[str, Played]) -> None:
    played = saturated["two-way"]
    names = {f"vm-two-way-{n}-{NODES[n - 1]}-{i:03}" for n in (1, 2) for i in (1, 2)}
    assert set(played.machines) == set(played.times) == names
    assert {f"result-b4t4o8w100pr-a1-{name}.xml" for name in names} < set(played.files)
    for name, measured in played.machines.items():
        number = name[-3:]
        assert measured.target == rf"C:\ClusterStorage\{played.times[name]['volume']}\vm-{number}.dat"
        assert (measured.load.threads, measured.load.queue_depth, measured.load.write_pct) == (4, 8, 100)
        assert measured.runtime_ms == 2000
        # A busy computer may end a machine's load so late that it has no series.
        assert [len(series.second) for series in measured.series.values()] in ([2], [])
        assert played.files[f"result-b4t4o8w100pr-a1-{name}.xml"].count("<Thread>") == 4
    assert any("write" in measured.series for measured in played.machines.values())


def test_vmfleets_tables_add_up(saturated: dict[str, Played]) -> None:
    played = saturated["two-way"]
    rows = list(csv.DictReader(io.StringIO(played.files["result-vm-a1.tsv"]), delimiter="\t"))
    (whole,) = csv.DictReader(io.StringIO(played.files["result.tsv"]), delimiter="\t")
    assert [row["Result"].startswith("result-b4t4o8w100pr-a1-vm-two-way") for row in rows] == [True] * 4
    assert float(whole["IOPS"]) == pytest.approx(played.iops, rel=0.001)
    assert sum(float(row["AverageWriteIOPS"]) for row in rows) == pytest.approx(played.iops, rel=0.001)
    assert (whole["VMCount"], float(whole["AverageReadIOPS"])) == ("4", 0)
    p99 = [float(row["WriteMilliseconds99"]) for row in rows]
    assert float(whole["WriteMilliseconds99"]) == pytest.approx(statistics.mean(p99), rel=0.001)


# ---- what was played ------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", VOLUMES)
def test_what_a_saturated_write_costs_is_what_the_kind_plants(
    saturated: dict[str, Played], kind: str
) -> None:
    """So the ratios to the two-way mirror are 0.50, 0.25 in place in parity, and 0.50 inside the mirror.

    By counts they are exact, whatever else runs, and none gets more than its drives allow.
    """
    played, disk_ios = saturated[kind], DISK_IOS[kind]
    assert 2 / (played.disk_ios / played.client_ios) == pytest.approx(2 / disk_ios, abs=0.01)
    assert played.iops < 1.05 * 8 * DRIVE_IOPS / disk_ios


@pytest.mark.measures
@pytest.mark.parametrize(("kind", "least"), [("two-way", 0.9), ("outside", 0.8)])
def test_saturated_writes_get_what_drives_allow_and_are_shared_alike(
    unwritten: Rig, kind: str, least: float
) -> None:
    """The part written in parity does not lie evenly on the drives: 0.91 of what they allow is usual."""
    unwritten.fill(*VOLUMES[kind])
    played = unwritten.play(*VOLUMES[kind], line=SATURATED.replace("-d2", "-d1"))
    rates = {name: one.directions["write"].iops for name, one in played.machines.items()}
    volumes = [sum(rates[name] for name in rates if name.startswith(f"vm-{of}-")) for of in VOLUMES[kind]]
    with load_sensitive():
        assert played.iops > least * 8 * DRIVE_IOPS / DISK_IOS[kind]
        assert min(volumes) > 0.85 * max(volumes) and min(rates.values()) > 0.75 * max(rates.values()), rates
        assert played.spread_s("started_utc") < 0.5 and played.spread_s("ended_utc") < 0.5


def test_only_a_full_write_warm_up_makes_reads_of_parity_real(rig: Rig) -> None:
    reads = "-b4K -t1 -o4 -r4K -w0 -z1 -Sh -W0 -d1 -L -Rxml"
    empty = rig.made.run("r1-n1", "fleet", rig.fleet("fresh", create=True, line=reads))
    assert empty["seconds"] > 1 and rig.counts(["fresh"])[0] == 0
    rig.fill("fresh")
    warm = rig.play("fresh", line=reads)
    assert warm.client_ios > 0 and warm.disk_ios == warm.client_ios


def test_counters_say_how_full_each_mirror_tier_is(rig: Rig, saturated: dict[str, Played]) -> None:
    asked = steps.Counters(paths=(r"\ReFS(*)\Fast Tier Data Fill Ratio",))
    samples = {row["instance"]: row["raw"] for row in rig.made.run("r1-n1", "counters", asked)["samples"]}
    assert samples["outside"] == 10_000 and 0 < samples["inside"] < 10_000 and samples["nested"] == 0
    tiers = {volume["name"]: volume["tiers"] for volume in rig.made.backend.truth()["volumes"]}
    assert tiers["nested"] is None and tiers["outside"]["mirror_fill"] == 1
    assert tiers["outside"]["in_place_bytes"] > 0 == tiers["inside"]["in_place_bytes"]


# ---- what is refused, and what ends it ------------------------------------------------------------------

SHORT = "-b4K -t1 -o2 -r4K -w0 -z1 -Sh -W0 -d1 -L -Rxml"


def test_what_cannot_be_opened_is_said_as_diskspd_says_it(rig: Rig) -> None:
    def refused(fleet: steps.Fleet) -> str:
        with pytest.raises(StepFailed) as error:
            rig.made.run("r1-n1", "fleet", fleet)
        return str(error.value)

    of = rig.fleet("nested", line=SHORT)
    nowhere = of.volumes[0].model_copy(update={"path": r"C:\ClusterStorage\none"})
    assert r"none\vm-001.dat [3]" in refused(of.model_copy(update={"volumes": (nowhere,)}))
    assert r"nested\vm-003.dat [2]" in refused(rig.fleet("nested", line=SHORT, instances=3))
    large = rig.fleet("nested", line=SHORT, create=True, file_bytes=8 * FILE)
    assert r"nested\vm-001.dat [112]" in refused(large)
    assert "take 32 I/Os of a thread" in refused(rig.fleet("nested", line=SHORT.replace("-o2", "-o64")))
    nobody = of.volumes[0].model_copy(update={"node": "r1-n9"})
    assert "Connecting to remote server r1-n9" in refused(of.model_copy(update={"volumes": (nobody,)}))
    key = rig.made.call("r1-n1", "fleet", of)
    assert key["error"]["message"].startswith("Access is denied.")


def test_files_are_where_they_were_when_the_emulator_comes_back(rig: Rig) -> None:
    rig.made.backend.close()
    rig.made.start()
    assert rig.play("nested", line=SHORT).client_ios > 0


def test_others_work_while_a_fleet_does_and_it_ends_with_its_node(rig: Rig) -> None:
    folder = rig.made.backend.folder(vm_id("r1-n1"))
    answers: list[Any] = []
    asked = steps.as_task("fleet", rig.fleet("nested", line=SHORT.replace("-d1", "-d60")), "dbk-cluster",
                          "Correct-Horse-7")  # fmt: skip
    running = threading.Thread(target=lambda: answers.append(rig.made.call("r1-n1", "task", asked)))
    running.start()
    assert soon(lambda: [process for process in processes.marked(folder) if process.name() == "fio"])
    assert rig.made.run("r1-n2", "counters", steps.Counters())["samples"]
    assert running.is_alive()  # for a minute
    rig.made.backend.stop_vm(vm_id("r1-n1"))
    running.join(20)
    assert answers == [None]  # killed with its machine: nothing is printed
    assert not processes.marked(folder) and not list((folder / "tmp").iterdir())
    rig.made.backend.start_vm(machine("r1-n1", "Standard_D32s_v5"))
