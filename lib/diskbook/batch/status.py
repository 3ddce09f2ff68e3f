"""How far each run of a batch is, and what it has cost, by its folder: a batch keeps no separate books."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from diskbook.batch.batch_run import Item, name_of_manifest
from diskbook.cloud.azure import expiry
from diskbook.design.vocabulary import Provenance
from diskbook.facts.errors import DiskbookError
from diskbook.facts.units import epoch
from diskbook.hosts import stage
from diskbook.measure.runs import stages
from diskbook.results import plan as plans, run as runs

REPORT = "report.html"


class State(StrEnum):
    """How far a run is."""

    NEW = "new"
    CUT = "cut short"
    FINISHED = "finished"


@dataclass(frozen=True)
class Standing:
    """What a run's folder says.

    - `replicates_left`: how many planned replicates are not complete: sets of machines to be paid for.
    - `spent_usd`: cost of the machines made so far, by its own estimates and clocks (`spent_usd`).
    - `estimated_usd`: what they were expected to cost, which the run holds against its limit.
    - `created`: whether anything was ever created: what forbids a run (no sign-in, no quota) is seen before
      that.
    - `left`: what still stands, in words.
    """

    state: State
    replicates_left: int
    spent_usd: float = 0.0
    created: bool = False
    estimated_usd: float = 0.0
    left: str = ""
    provenance: str = ""


def of(item: Item, run: runs.Run | None = None) -> Standing:
    """Look at the folder of a run.

    - `run`: its folder, or as much of it as is here; by default among the runs of this machine.

    Raises DiskbookError when the folder holds another run than the name says, or is damaged.
    """
    run = run or run_of(item)
    if not (run.folder / "manifest.json").exists():
        return Standing(State.NEW, item.scenario.design.replicates)
    try:
        return _of_begun(item, run, run.manifest)
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        raise DiskbookError(
            f"{run.folder}: its manifest, plan or ledger is damaged ({error!r}); restore it, or move "
            "the folder away and start the batch again"
        ) from None


def _of_begun(item: Item, run: runs.Run, manifest: Mapping[str, Any]) -> Standing:
    if name_of_manifest(manifest) != item.name:
        raise DiskbookError(
            f"{run.folder} holds another run than its name says; move it away, and start the batch again"
        )
    left = expiry.uptime_text(manifest) or stage.standing_text(manifest)
    is_done = stages.finished(run) and (run.folder / REPORT).exists() and not left
    return Standing(
        State.FINISHED if is_done else State.CUT,
        _replicates_left(run),
        spent_usd(manifest),
        bool(manifest["resource_groups"] or manifest["replicates"]),
        math.fsum(row["expected_usd"] for row in manifest.get("cost", [])),
        left,
        manifest["provenance"],
    )


def _replicates_left(run: runs.Run) -> int:
    """Replicates that are not complete; at least one while anything is left, such as a failover test."""
    if stages.finished(run):
        return 0
    return max(1, sum(bool(plans.remaining(run, number)) for number in stages.origins(run.scenario)))


def run_of(item: Item) -> runs.Run:
    """The run of an item, whether or not it has begun."""
    return runs.Run(runs.folder_of(item.name))


def spent_usd(manifest: Mapping[str, Any]) -> float:
    """What the machines of a run have cost, or would have on Azure where they were emulated, in USD.

    On Azure by the time that they stood, at the prices of the run's own estimate; what still stands costs
    what it may until it expires. Emulated machines stand for another time than real ones would, so their
    estimate counts.
    """
    ended = sorted(epoch(row["deleted_utc"]) for row in manifest["resource_groups"] if row["deleted_utc"])
    billed = manifest["provenance"] == Provenance.AZURE
    return math.fsum(
        _by_clock(row, ended) if billed else row["expected_usd"] for row in manifest.get("cost", [])
    )


def _by_clock(row: Mapping[str, Any], ended: list[float]) -> float:
    """Return what one set of machines cost, from its estimate to the first deletion after it."""
    made = epoch(row["utc"])
    deleted = next((time for time in ended if time >= made), None)
    if deleted is None:
        return float(row["worst_usd"])
    return math.fsum(_line(line, (deleted - made) / 3600) for line in row["rows"])


def _line(line: Mapping[str, Any], hours: float) -> float:
    usd, planned = line["usd"] or 0.0, line["hours"]
    if not planned:  # billed by use
        return float(usd)
    begun = float(planned).is_integer()  # disks and addresses are billed by the begun hour
    return float(usd) / planned * (math.ceil(hours) if begun else hours)
