"""A run with a simple volume and a mirror: steps killed half-way, an owner that moves, no secret kept."""

from __future__ import annotations

import contextlib
import json
import threading
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from diskbook.cloud import connect, kinds
from diskbook.cloud.azure import witness
from diskbook.clusters.measure import node_steps
from diskbook.clusters.powershell.steps import StepFailed
from diskbook.measure.runs import stages
from diskbook.results import tables
from diskbook.results.run import Run
from diskbook_emulator import lifecycle
from support.measuring import QUIET, begin, events, place
from support.secrets import contents, spilt

__all__ = ["place"]

pytestmark = pytest.mark.whole

KILLED = [("prepare", "n2$", 2), ("cluster", "n1$", 1), ("enable", "single$", 1), ("volume", "n1$", 1)]
MOST_BYTES = 2**20  # of files that are looked into


@dataclass
class Lived:
    """A run to its end: what failed on the way, and all that could be seen of it from outside."""

    run: Run
    failures: list[str] = field(default_factory=list)
    seen: list[tuple[Any, bytes]] = field(default_factory=list)
    secrets: dict[str, bytes] = field(default_factory=dict)
    measured: list[dict[str, Any]] = field(default_factory=list)
    measured_again: list[dict[str, Any]] = field(default_factory=list)


def faults() -> list[dict[str, Any]]:
    """Each step of making is killed once after some of its changes, and so is a move of the volume."""
    killed = [
        {"match": {"step": step, "machine_regex": machine}, "times": 1, "action": {"killed_after": changes}}
        for step, machine, changes in KILLED
    ]
    move = {"match": {"step": "place"}, "after": 1, "times": 1, "action": {"killed_after": 1}}
    return [*killed, move]


@contextlib.contextmanager
def watched(seen: list[tuple[Any, bytes]]) -> Iterator[None]:
    """Note the command lines of all processes while the body runs: of each at its first few looks."""
    done = threading.Event()
    lines: set[bytes] = set()
    looks = Counter[str]()

    def look() -> None:
        while not done.wait(0.1):
            for process in Path("/proc").iterdir():
                looks[process.name] += process.name.isdigit()
                if 0 < looks[process.name] < 6:
                    with contextlib.suppress(OSError):
                        lines.add((process / "cmdline").read_bytes())

    thread = threading.Thread(target=look)
    thread.start()
    yield
    done.set()
    thread.join()
    seen += [(f"command line {line[:40]!r}", line) for line in lines]


def files(folder: Path) -> Iterator[tuple[Any, bytes]]:
    """Small files of the emulator: its state, its logs, what lies on machines."""
    for path in sorted(folder.rglob("*")):
        with contextlib.suppress(OSError):
            if path.is_file() and path.stat().st_size <= MOST_BYTES:
                yield path, path.read_bytes()


@pytest.fixture(scope="module")
def lived(place: Path) -> Lived:
    run = begin("spaces", QUIET, "spaces")
    made = Lived(run)
    kinds.of(run).start(run, owner=True)
    emulator = lifecycle.connect(run.manifest["emulator"]["name"])
    try:
        stages.provision(run)
        lifecycle.plant(emulator, faults())
        with watched(made.seen):
            for _ in range(len(KILLED) + 1):
                try:
                    stages.benchmark(run)
                    break
                except StepFailed as failure:
                    made.failures.append(str(failure))
        made.measured = run.ledger()
        stages.provision(run)
        stages.benchmark(run)
        made.measured_again = run.ledger()
        made.secrets["password of the cluster"] = node_steps.password(run.folder).encode()
        key = witness.key(connect.clients_of(run), run.manifest["replicates"][0])
        made.secrets["key of the witness"] = key.encode()
        made.seen += [*contents(run.folder), *files(emulator.folder)]
    finally:
        stages.teardown(run)
    return made


def test_a_step_that_was_killed_is_told_and_done_again_by_a_resumed_run(lived: Lived) -> None:
    beginnings = {f"r1-{machine[:-1]}: step {step} gave no answer" for step, machine, _ in KILLED}
    recorded = [event["error"] for event in events(lived.run, "step", ok=False)]
    assert {error.partition(" that can")[0] for error in recorded[:-1]} == beginnings
    assert len(recorded) == len(KILLED) + 1 and "step place" in recorded[-1]
    assert set(lived.failures) <= set(recorded)  # of two that fail side by side one is raised
    assert lived.measured_again == lived.measured  # and nothing is repeated in the end


def test_volumes_are_what_was_asked_for(lived: Lived) -> None:
    row = lived.run.manifest["replicates"][0]
    simple, mirror = row["volumes"]["simple"], row["volumes"]["mirror"]
    shape = [(part["copies"], part["columns"], part["interleave_bytes"]) for part in mirror["parts"]]
    assert (mirror["kind"], shape) == ("two-way", [(2, 2, 256 * 1024)])
    assert mirror["footprint_bytes"] >= 2 * mirror["size_bytes"]
    assert (simple["nodes"], simple["path"]) == (["single"], "S:\\")
    assert row["pools"]["p10-s2d"]["block_cache_mb"] == 0
    assert len(row["pools"]["p10-s2d"]["disks"]) == 4
    assert row["clusters"]["s2d"]["validation"]["files"][0]["path"].endswith(".htm.gz")


def test_every_arm_is_measured_at_its_owner_and_a_failed_move_fails_its_trial(lived: Lived) -> None:
    trials = tables.build(lived.run).trials
    failed = trials[trials["status"] == "failed"]
    assert failed["error"].str.contains("step place gave no answer that can be read").tolist() == [True]
    assert set(failed["volume"]) == {"mirror"}
    done = trials[trials["status"] == "ok"]
    assert len(done) == 4 and set(done["site"]) == {"s2d-azure"}
    places = done.drop_duplicates("arm").set_index("arm")[["volume", "owner"]].T.to_dict("list")
    assert places == {"alone": ["simple", "single"], "owner": ["mirror", "n1"], "remote": ["mirror", "n2"]}
    assert done["disk_id"].str.match(r"^[^/]+/r1-(simple|mirror)$").all() and done["lun"].isna().all()
    (filled,) = events(lived.run, "prefill", volume="mirror")
    assert filled["caps_lifted"] and filled["bytes"] == 64 * 2**20


def test_counters_show_the_copies_of_what_was_written(lived: Lived) -> None:
    built = tables.build(lived.run)
    ok = built.trials[(built.trials["status"] == "ok") & (built.trials["volume"] == "mirror")]
    assert set(built.counters["trial"]) == set(ok["trial"])
    assert set(built.counters["machine"]) == {"n1", "n2"}
    (trial,) = ok.loc[(ok["arm"] == "owner") & (ok["workload"] == "write-qd4"), "trial"]
    rows = built.counters[built.counters["trial"] == trial]
    total = (rows["after"] - rows["before"]).groupby([rows["counter"], rows["machine"]]).sum()
    written = total["Cluster CSVFS\\Write Bytes/sec", "n1"]
    assert written >= 4096 * ok.set_index("trial")["ios"][trial]
    assert total["Network Interface\\Bytes Sent/sec", "n1"] == pytest.approx(written, rel=0.01)


def test_no_password_and_no_key_is_kept_or_shown(lived: Lived) -> None:
    assert len(lived.seen) > 100 and any("diskspd" in str(where) for where, _ in lived.seen)
    assert len(lived.secrets) == 2
    # Azure itself keeps the key of a storage account, and so does the emulated one.
    by_azure = [(where, text) for where, text in lived.seen if "arm.sqlite" in str(where)]
    others = [row for row in lived.seen if row not in by_azure]
    assert by_azure and not spilt(by_azure, {"password": lived.secrets["password of the cluster"]})
    assert not spilt(others, lived.secrets)
    assert not spilt([*contents(lived.run.folder)], lived.secrets)
    assert not (lived.run.folder / "keys").exists()


def test_a_run_is_read_again_from_its_files(lived: Lived, tmp_path: Path) -> None:
    built = tables.build(lived.run)
    tables.write(built, tmp_path)
    again = tables.read(tmp_path)
    assert again.counters.equals(built.counters) and again.trials.equals(built.trials)
    entry = events(lived.run, "trial", volume="mirror", status="ok")[0]["files"]["counters"]
    assert json.loads(json.dumps(entry))["path"].endswith(".counters.json.gz")
