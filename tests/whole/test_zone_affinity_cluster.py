"""diskbook zone-affinity on emulated machines in three zones, and a workload that moves between them."""

from __future__ import annotations

import itertools
import json
import os
import shlex
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from diskbook import cli
from diskbook.cloud.connect import clients_of
from diskbook.measure.bench import trials as bench_trials
from diskbook.measure.bench.rig import Rig
from diskbook.measure.runs import stages
from diskbook.zone_affinity import verdict
from diskbook.zone_affinity.probe import Probe
from diskbook.zone_affinity.verdict import HOME, REMOTE, UNCLEAR, Lesson
from diskbook_emulator import lifecycle
from support import SCENARIOS, emulated
from support.disturbance import load_sensitive

pytestmark = [pytest.mark.whole, pytest.mark.measures]

AFFINITY = str(SCENARIOS / "affinity.toml")
READ_MS = {"home": 10.0, "other-a": 20.0, "other-b": 30.0}
"""Planted: reads from node2, node3 and node1; long ones, to which a busy computer adds little."""
PROFILE = 'extends = "quiet"\n[zones]\nhome = "2"\n' + "".join(
    f'[[latency]]\nsku = "Premium_ZRS"\nsite = "shared-zrs"\nop = "read"\n'
    f'zone_relation = "{relation}"\nmean_ms = {mean}\nsigma = 0.05\n'
    for relation, mean in READ_MS.items()
)
PLANTED_MS = {"node1": READ_MS["other-b"], "node2": READ_MS["home"], "node3": READ_MS["other-a"]}
ADDED_MS = 4.5
"""Most that NBD, fio and a slow computer add to a read; 1.9 ms was seen."""
SIZE_GIB = 0.0625
SECONDS = 0.5
STEADY_S = 3


class Cluster:
    """Three machines, node1 to node3, in zones 1 to 3; they share a disk that answers from zone 2."""

    def __init__(self, rig: Rig, place: Path) -> None:
        self.rig, self.place = rig, place
        self.zones, self.state = place / "zones.json", place / "state.json"
        self.numbers = itertools.count()

    def via(self, node: str) -> str:
        """Command of an operator's that reaches a machine."""
        host = self.rig.connection(node).host
        known = self.place / f"{node}.known"
        known.write_text(f"[{host.address}]:{host.port} {host.host_key}\n")
        options = f"-o UserKnownHostsFile={known} -o IdentitiesOnly=yes -o BatchMode=yes"
        return f"ssh -F none {options} -p {host.port} -i {host.private_key} {host.user}@{host.address}"

    def probe(self, node: str) -> Probe:
        """Reads from a machine."""
        return Probe(self.rig.device("zrs", node).target, SECONDS, SIZE_GIB, self.via(node))

    def look(self, node: str, *options: str) -> Result:
        """Run the command for a workload on a machine."""
        probe = self.probe(node)
        reads = ["--device", probe.device, "--seconds", str(SECONDS), "--size-gib", str(SIZE_GIB)]
        where = ["--via", probe.via, "--zone", node[-1], "--baseline", str(self.zones)]
        remembered = ["--state", str(self.state)]
        return CliRunner().invoke(cli.cli, ["zone-affinity", *reads, *where, *remembered, *options])

    def workload(self, node: str, *options: str) -> str:
        """Have a workload sit on a machine; the name of its job."""
        device, name = self.rig.device("zrs", node), f"workload{next(self.numbers)}"
        load = [
            "--name=w",
            "--ioengine=nbd",
            f"--uri={device.target}",
            "--bs=8k",
            "--size=64m",
            "--rw=randrw",
        ]
        argv = ["fio", "--output-format=json", "--output=said", *load, "--time_based", *options]
        self.rig.connection(node).start_job(name, argv)
        return name

    def felt_ms(self, node: str, workload: str) -> float:
        """Wait for the end of a workload; the median latency of its reads, which late ones do not move."""
        left = self.rig.connection(node).finish_job(workload, ["said"], limit_s=30)
        reads = json.loads(left["said"])["jobs"][0]["read"]
        return float(reads["clat_ns"]["percentile"]["50.000000"]) / 1e6


@pytest.fixture(scope="module")
def lessons() -> dict[str, Lesson]:
    """What was said when the zones were learned, by zone."""
    return {}


@pytest.fixture(scope="module")
def cluster(lessons: dict[str, Lesson]) -> Iterator[Cluster]:
    """The machines, their disk filled, and its zones learned from all of them at once."""
    with emulated.own_place():
        place = Path(os.environ["TMPDIR"])
        (place / "home2.toml").write_text(PROFILE)
        lifecycle.start("affinity", profile=str(place / "home2.toml"), time_scale=0.0, owner=True)
        folder = stages.begin("affinity", AFFINITY, "emulator", "quick", emulator={"name": "affinity"})
        stages.provision(folder)
        (row,) = folder.manifest["replicates"]
        clients, scenario = clients_of(folder), folder.scenario
        rig = Rig.of(clients, folder, scenario, row, threading.Event())
        try:
            found = Cluster(rig, place)
            bench_trials.prefill(rig, "zrs", "node1")
            probes = {node: found.probe(node) for node in ("node1", "node2", "node3")}
            with ThreadPoolExecutor() as pool:
                learned = [
                    pool.submit(verdict.learn, probe, node[-1], found.zones) for node, probe in probes.items()
                ]
                lessons.update({one.result().zone: one.result() for one in learned})
            yield found
        finally:
            rig.close()
            stages.teardown(folder)
            lifecycle.stop("affinity")


def assert_as_planted(latencies_ms: dict[str, float]) -> None:
    """Latencies of reads by machine: at least the planted one, and at most ADDED_MS more."""
    assert latencies_ms.keys() == PLANTED_MS.keys()
    for node, planted_ms in PLANTED_MS.items():
        assert 0.95 * planted_ms < latencies_ms[node] < planted_ms + ADDED_MS, latencies_ms


def test_the_zone_that_was_planted_is_learned(cluster: Cluster, lessons: dict[str, Lesson]) -> None:
    (last,) = [one for one in lessons.values() if len(one.zones) == 3]
    rows = last.zones.set_index("zone")
    assert last.line.startswith("emulated: learned zone ")
    with load_sensitive():
        assert rows["verdict"].to_dict() == {"1": "farther", "2": "nearest", "3": "farther"}
        assert_as_planted({f"node{zone}": lat_ms for zone, lat_ms in rows["lat_ms"].items()})
        for zone in "13":
            row = rows.loc[zone]
            assert row["ratio"] == pytest.approx(row["lat_ms"] / rows["lat_ms"]["2"], rel=0.02)
            assert 1 < row["ci_low"] < row["ratio"] < row["ci_high"]
        assert "the disk answers from zone 2, as latency has it: the next of the 3 zones known" in last.line
        assert json.loads(last.as_json)["clear"]


def test_moves_of_a_workload_are_told(cluster: Cluster) -> None:
    told, own = [], {}
    for node in ("node1", "node2", "node3"):
        workload = cluster.workload(node, "--rate_iops=40", f"--runtime={STEADY_S}")
        result = cluster.look(node, "--json")
        own[node] = cluster.felt_ms(node, workload)
        found = json.loads(result.output)
        assert result.output.count("\n") == 1 and found["exit_code"] == result.exit_code
        assert found["emulated"] and found["place"] == f"zone {node[-1]}"
        told.append((found["verdict"], result.exit_code, found["changed"]))
    with load_sensitive():
        assert told == [(REMOTE, 10, ""), (HOME, 0, "it moved back"), (REMOTE, 10, "it moved away")]
        # The workload itself feels it.
        assert_as_planted(own)


def test_on_the_machine_itself_a_disk_on_its_cap_is_not_taken_for_a_remote_zone(cluster: Cluster) -> None:
    cluster.workload("node2", "--iodepth=32", "--numjobs=2", "--runtime=60")
    device = cluster.probe("node2").device
    reads = ["--device", device, "--seconds", str(SECONDS), "--size-gib", str(SIZE_GIB)]
    known = ["--baseline", str(cluster.zones)]
    main = [sys.executable, "-c", "from diskbook.cli import main; main()"]
    where = shlex.quote(os.pathsep.join(sys.path))
    done = cluster.rig.connection("node2").run(
        f"PYTHONPATH={where} {shlex.join([*main, 'zone-affinity', *reads, *known])}"
    )
    assert done.status == 11, done
    said = done.stdout.decode()
    assert said.startswith(f"emulated: {UNCLEAR}: reads from ") and "busy, or throttled" in said


def test_a_machine_that_cannot_be_reached(cluster: Cluster) -> None:
    probe = cluster.probe("node1")
    nowhere = probe.via.replace("-p ", "-p 1 -o Port=")
    words = ["--device", probe.device, "--via", nowhere, "--baseline", str(cluster.zones)]
    error = CliRunner().invoke(cli.cli, ["zone-affinity", *words]).exception
    assert "cannot be read: ssh: connect to host" in str(error) and "\n" not in str(error)
