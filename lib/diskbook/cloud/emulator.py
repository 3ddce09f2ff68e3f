"""Start and stop the emulator of a run, and keep the truth that it played.

An emulator that the user named is used and left running.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from diskbook.cloud import connect
from diskbook.design.schedule import Block
from diskbook.facts.errors import DiskbookError
from diskbook.facts.units import epoch
from diskbook.results.run import Run
from diskbook_emulator import lifecycle, truth


def start(run: Run, *, owner: bool) -> None:
    """Start the run's own emulator unless it runs.

    Parameters
    ----------
    run
        The run.
    owner
        The emulator ends with this process, however that ends.

    Raises
    ------
    UsageError
        When the run uses an emulator that the user named, and that one does not run.
    """
    emulator, name = run.manifest["emulator"], connect.emulator_name(run)
    if name is None or connect.emulator_state(name) == "running":
        return
    if not emulator["own"]:
        connect.check_emulator_runs(name)
    settings = {key: emulator[key] for key in ("profile", "seed", "time_scale")}
    lifecycle.start(name, **settings, owner=owner)


def is_there(run: Run) -> bool:
    """Whether anything of the run's own emulator is there, running or dead."""
    name = connect.emulator_name(run)
    return name is not None and run.manifest["emulator"]["own"] and connect.emulator_state(name) != "absent"


def is_gone(run: Run) -> bool:
    """Whether the emulator is gone, and all it held; one that the user named may have kept its state."""
    name = connect.emulator_name(run)
    return name is not None and (run.manifest["emulator"]["own"] or connect.emulator_state(name) == "absent")


def stop(run: Run) -> None:
    """Stop the run's own emulator, and remove what it has left."""
    name = connect.emulator_name(run)
    if name is not None and is_there(run):
        lifecycle.stop(name)


def with_its_clock(run: Run, replicate: Mapping[str, Any], blocks: Iterable[Block]) -> Iterable[Block]:
    """Have the noise clock of an emulated replicate set on before each of its blocks.

    Only where the profile has hours between blocks, as the manifest says; else the blocks come as they are.
    """
    emulator = run.manifest.get("emulator") or {}
    return _clocked(run, replicate, blocks) if emulator.get("hours_between_blocks") else blocks


def _clocked(run: Run, replicate: Mapping[str, Any], blocks: Iterable[Block]) -> Iterator[Block]:
    name, machines = str(connect.emulator_name(run)), [row["id"] for row in replicate["machines"].values()]
    for block in blocks:
        try:
            lifecycle.begin_block(lifecycle.connect(name), machines, block.round)
        except OSError as error:
            raise DiskbookError(f"the noise clock of emulator {name} cannot be set on: {error}") from error
        yield block


def keep_truth(run: Run) -> None:
    """Write what the emulator planted and played to truth.json, for tests; no analysis may read it."""
    name = connect.emulator_name(run)
    if name is None:
        return
    windows = [_window(event) for event in run.ledger() if event["event"] == "trial"]
    played = truth.build_truth(lifecycle.read_truth(lifecycle.connect(name)), windows)
    earlier = run.folder / "truth.json"
    if earlier.exists():
        played = truth.merge(json.loads(earlier.read_text("utf-8")), played)
    run.write("truth.json", json.dumps(played, separators=(",", ":")) + "\n")


def _window(event: dict[str, Any]) -> truth.TrialWindow:
    started, ended = (epoch(event[key]) for key in ("started_utc", "ended_utc"))
    return truth.TrialWindow(event["trial"], event["machine_id"], event["disk_id"], started, ended)
