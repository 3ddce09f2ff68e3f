"""A made-up batch, half done: finished runs with the comparisons of a sample, a failed one, one to come."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd

from checks import many_runs
from diskbook.batch import summary
from diskbook.batch.batch_run import Asked, Item
from diskbook.batch.loop import Batch
from diskbook.batch.matrix import Matrix
from diskbook.batch.status import Standing, State
from diskbook.design import scenario_file
from diskbook.facts import paths
from support import few_runs
from support.batches import Played, priced

SCENARIO = "zone-disks"
NAME = "night"


def item(number: int, profile: str) -> Item:
    asked = Asked(SCENARIO, emulator_profile=profile, settings={"design.seed": number})
    return Item(
        f"{SCENARIO}-{number}", asked, scenario_file.load(SCENARIO, "quick"), f"{profile} seed={number}"
    )


def finished(root: Path, made: Item, hour: int, factor: float = 1.0, **manifest: Any) -> Path:
    """A finished run with the sample's comparisons, all ratios multiplied."""
    table = pd.read_csv(paths.RUNS / f"sample-{SCENARIO}" / "comparisons.csv", keep_default_na=False)
    for name in many_runs.RATIOS:
        table[name] = [f"{float(value) * factor:.6g}" if value else "" for value in table[name]]
    read = few_runs.manifest_of(f"sample-{SCENARIO}")
    read["emulator"]["profile"] = made.asked.emulator_profile
    return many_runs.write(root / made.name, read | manifest, table, (hour - 8) / 24)


def half_done(root: Path) -> tuple[Path, Batch, Matrix]:
    """Of five runs three are finished (two of them of one profile and hour), one failed, one is to come."""
    profiles = ("null", "null", "default", "null", "default")
    items = tuple(item(number, profile) for number, profile in enumerate(profiles, 1))
    batch = Batch(items, Played(), 10.0, priced(1.5))  # all of them are new
    for made, hour, factor in zip(items, (9, 10, 20), (1.0, 1.1, 1.4), strict=False):
        finished(root, made, hour, factor)
    for row in batch.rows[:3]:
        row.state, row.standing = "finished", Standing(State.FINISHED, 0, 0.5, True, 0.6, "", "emulated")
        batch.purse.settle(row.item.name, 0.5)
    batch.rows[3].state, batch.rows[3].reason = "failed", "its disk <broke>"
    return write(root, items, batch)


def write(root: Path, items: tuple[Item, ...], batch: Batch) -> tuple[Path, Batch, Matrix]:
    """Folder of the batch with its record, as `diskbook batch` leaves it."""
    folder, matrix = root / f"batch-{NAME}", Matrix(NAME, items)
    folder.mkdir()
    summary.write(matrix, batch, folder)
    return folder, batch, matrix
