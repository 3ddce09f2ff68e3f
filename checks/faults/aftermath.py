"""What a run has left when it is over: nothing but its results, and these whole."""

import gzip
import hashlib
import os
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import psutil

from checks.faults.scene import EMULATOR, OWN_PLACE, Scene, line_of
from diskbook.cloud import kinds
from diskbook.cloud.azure.clients import Clients
from diskbook.cloud.azure.teardown import LeftStandingError
from diskbook.results import plan as plans, tables
from diskbook.results.run import Run
from diskbook.stats import evidence
from diskbook_emulator import lifecycle
from diskbook_emulator.types import Json

STAND_INS = "diskbook_emulator.stand_ins"  # one process per emulator, which waits for calls
PATIENCE_S = 60.0  # what has lost its parent takes a moment to end


def left_over(scene: Scene) -> list[str]:
    """Resources, processes, folders and keys that should be gone, given a moment to go."""
    deadline = time.monotonic() + PATIENCE_S
    while (left := _left_over(scene)) and time.monotonic() < deadline:
        time.sleep(0.5)
    return left


def _left_over(scene: Scene) -> list[str]:
    left = [f"resource group {name}" for name in groups(scene)]
    left += [f"emulator {row.name} {row.state}" for row in lifecycle.status() if row.name != EMULATOR]
    left += [f"process {line[:160]}" for line in _processes(scene)]
    left += [f"{path} on a host" for path in _on_hosts(scene)]
    kept = {"own", "own.image", "runs", "out", "err", "matplotlib", f"diskbook-{os.getuid()}", *scene.places}
    left += [f"folder {path.name}" for path in scene.folder.iterdir() if path.name not in kept]
    if (scene.run.folder / "keys").exists():
        left.append("keys")
    return left


def _on_hosts(scene: Scene) -> list[Path]:
    """What lies in the folders of hosts of one's own that the run has made."""
    return sorted((scene.folder / "own" / OWN_PLACE).glob("diskbook-*"))


def clients() -> Clients:
    """Make the clients of the emulator that was started by hand."""
    (by_hand,) = kinds.get("emulator").find(must=True, only=EMULATOR).places.values()
    return by_hand


def groups(scene: Scene) -> list[str]:
    """Resource groups on the emulator that was started by hand."""
    if not scene.named:
        return []
    groups = clients().resource.resource_groups
    return [group.name for group in groups.list()]


def other_than(scene: Scene, names: Sequence[str], status: int, sentence: str) -> list[str]:
    """Compare what stands in the run's group, and what was said of it, with what must stand."""
    resources = clients().resource.resources
    standing = sorted(row.name for group in groups(scene) for row in resources.list_by_resource_group(group))
    wrong = [f"{standing} stand, not {list(names)}"] if standing != sorted(names) else []
    if status != LeftStandingError.exit_code or not all(
        text in sentence for text in (*names, "--with-foreign", "az group delete")
    ):
        wrong.append(f"it ended with {status} and said: {sentence}")
    return wrong


def _processes(scene: Scene) -> list[str]:
    """Command lines of what still runs of the scene, but for the named emulator without any machine."""
    spared = {os.getpid(), scene.store.pid if scene.store else None}
    if scene.named:
        server = psutil.Process(lifecycle.connect(EMULATOR).pid)
        warm = (child.pid for child in server.children() if STAND_INS in line_of(child))
        spared |= {server.pid, *warm, *(watchdog.pid for watchdog in _watchdogs(scene.folder))}
    left, own = [], str(scene.folder / "own" / "host" / "sshd_config")
    for process in psutil.process_iter():
        if process.pid not in spared and own not in line_of(process) and _belongs(process, str(scene.folder)):
            left.append(line_of(process))
    return left


def _watchdogs(folder: Path) -> list[psutil.Process]:
    return [
        process
        for process in psutil.process_iter()
        if "diskbook-watchdog" in line_of(process) and str(folder) in line_of(process)
    ]


def _belongs(process: psutil.Process, folder: str) -> bool:
    try:
        if process.status() == psutil.STATUS_ZOMBIE:
            return False
        here = process.environ().get("TMPDIR", "") == folder
        return here or folder in line_of(process) or process.cwd().startswith(folder)
    except (psutil.Error, OSError):
        return False


def lost_or_repeated(run: Run, before: list[Json]) -> list[str]:
    """Compare the ledger with the plan, with what it was when the run was cut, and with the raw files.

    - `run`: the run, complete.
    - `before`: its ledger when it was cut; empty where it never was.
    """
    events = run.ledger()
    wrong = [] if events[: len(before)] == before else ["earlier lines of the ledger have changed"]
    changed = _raw(run, events)
    return wrong + (changed or _against_plan(run, events))  # no tables can be made of changed files


def _against_plan(run: Run, events: list[Json]) -> list[str]:
    """Every planned block complete exactly once, with every trial in it; all else flagged."""
    origin = {row["replicate"]: row["origin"] for row in run.manifest["replicates"]}
    complete = Counter(
        (origin.get(event["replicate"]), event["block"])
        for event in events
        if event["event"] == "block" and event["status"] == "complete"
    )
    planned = plans.blocks_of(run)
    wrong = [
        f"block {block.block} is complete {count} times"
        for block in planned
        if (count := complete[block.replicate, block.block]) != 1
    ]
    built = tables.build(run)
    table = evidence.with_trials_for(built.trials, built.evidence)
    # The table counts blocks within a placement; the ledger has the number that the plan gives them.
    place_of = {
        event["trial"]: (event["block"], event["position"]) for event in events if event["event"] == "trial"
    }
    measured = Counter(
        (origin[row.replicate], *place_of.get(row.trial, (row.block, row.position)))
        for row in table[table.status == "ok"].drop_duplicates("trial").itertuples()
    )
    expected = Counter(
        (block.replicate, block.block, trial.position) for block in planned for trial in block.trials
    )
    wrong += [f"trial {key} was measured {measured[key]} times" for key in expected if measured[key] != 1]
    ended = {event["trial"] for event in events if event["event"] == "trial"}
    wrong += [] if ended == set(table.trial) else ["the tables lack trials of the ledger"]
    twice = [name for name, count in Counter(table.drop_duplicates("trial").trial).items() if count > 1]
    return wrong + [f"trial {name} is there twice" for name in twice]


def _raw(run: Run, events: list[Json]) -> list[str]:
    """Raw files against the hashes in the ledger."""
    wrong = []
    for event in events:
        for entry in (event.get("files") or {}).values() if event["event"] == "trial" else ():
            content = gzip.decompress((run.folder / entry["path"]).read_bytes())
            if hashlib.sha256(content).hexdigest() != entry["sha256"]:
                wrong.append(f"{entry['path']} has changed")
    return wrong
