"""The plan of a run as it was before the first trial: plan.json, and its hash in the ledger.

What was planned decides when a comparison may be judged: who looks early and stops when the answer pleases
finds differences where there are none.
"""

import hashlib
import json
from collections import Counter
from dataclasses import dataclass
from itertools import takewhile
from typing import Any

from diskbook.design import attachments, schedule
from diskbook.design.schedule import Block, PlannedTrial
from diskbook.facts.errors import DiskbookError
from diskbook.results.run import Run
from diskbook.stats import expected
from diskbook.stats.gates.plan import constant_level
from diskbook.stats.ratios import ALPHA

FILE, SCHEMA = "plan.json", 1


@dataclass(frozen=True)
class Progress:
    """How much of a plan is done.

    - `planned`, `complete`: numbers of blocks; one that failed for good is not complete.
    - `whole`: planned replicates that are complete, where no other is begun; else 0. Blocks where looks count
      these.
    """

    planned: int
    complete: int
    whole: int


def write(run: Run) -> None:
    """Draw the plan of a run and write it, before its first trial."""
    blocks = [
        {
            "replicate": block.replicate,
            "block": block.block,
            "trials": [
                [trial.repeat, trial.arm, trial.workload, *[True] * trial.early] for trial in block.trials
            ],
            **({"round": block.round} if block.trials[0].round else {}),
            **({"evidence": True} if block.evidence else {}),
        }
        for block in [*attachments.plan_after_attach(run.scenario), *expected.blocks(run.scenario)]
    ]
    content = {"schema": SCHEMA, "run": run.name, "scenario_sha256": _scenario_hash(run), **_looks(run)}
    content["blocks"] = blocks
    text = json.dumps(content, separators=(",", ":")) + "\n"
    run.write(FILE, text)
    run.append("plan", sha256=hashlib.sha256(text.encode()).hexdigest(), blocks=len(blocks))


def _looks(run: Run) -> dict[str, Any]:
    """The planned looks, and the level at which each is judged, by Holm's steps over the headlines."""
    scenario = run.scenario
    design, family = scenario.design, [item for item in scenario.comparison if item.family == "headline"]
    if not design.looks:
        return {}
    levels = [round(constant_level(design.looks, ALPHA / left), 6) for left in range(len(family), 0, -1)]
    return {"looks": {"unit": design.look_unit, "after": design.looks, "levels": levels}}


def blocks_of(run: Run) -> list[Block]:
    """Planned blocks of a run, in the order of execution.

    A run that was begun before there were plans keeps the order it began with.

    Raises DiskbookError when the plan is missing, or is not the one that the run began with.
    """
    content = _read(run)
    if content is None:
        return schedule.plan(run.scenario, balanced=False)
    return [_block(row) for row in content["blocks"]]


def complete_blocks(run: Run) -> set[tuple[int, int]]:
    """Planned replicate and number of each block that the ledger says is complete, on whichever machines."""
    origins = {row["replicate"]: row.get("origin", row["replicate"]) for row in run.manifest["replicates"]}
    return {
        (origins[event["replicate"]], event["block"])
        for event in run.ledger()
        if event["event"] == "block" and event["status"] == "complete" and event["replicate"] in origins
    }


def remaining(run: Run, replicate: int) -> list[Block]:
    """Blocks of a planned replicate still to be measured, in order; evidence alone once a look stopped it."""
    complete, is_stopped = complete_blocks(run), stopped_at(run) is not None
    return [
        block
        for block in blocks_of(run)
        if block.replicate == replicate
        and (replicate, block.block) not in complete
        and (block.evidence or not is_stopped)
    ]


def stopped_at(run: Run) -> dict[str, Any] | None:
    """Ledger's entry of the planned look at which the run stopped, all being decided; None before that."""
    return next((event for event in run.ledger() if event["event"] == "look" and event["stops"]), None)


def early_stop(run: Run) -> str:
    """Say at which planned look the run stopped, and what that saved; empty where it did not stop early."""
    stop = stopped_at(run)
    return "" if stop is None else str(stop["text"])


def progress(run: Run) -> Progress:
    """How much of the plan is done, by the ledger; trials for evidence are not part of it."""
    complete = complete_blocks(run)
    planned = [block for block in blocks_of(run) if not block.evidence]
    rounds = {(block.replicate, block.block): block.round for block in planned}
    in_blocks = run.scenario.design.look_unit == "blocks"
    unit = {place: rounds[place] if in_blocks else place[0] for place in rounds}
    done = Counter(unit[place] for place in complete & rounds.keys())
    of_each = Counter(unit.values())
    is_whole = all(done[each] == of_each[each] for each in done)
    return Progress(len(planned), sum(done.values()), len(done) if is_whole else 0)


def is_written(run: Run) -> bool:
    """Whether the plan was written down before the first trial."""
    return _read(run) is not None


def is_scenario_changed(run: Run) -> bool:
    """Whether the recorded scenario (its arms, families, margins) is not the one that was planned."""
    content = _read(run)
    return content is not None and content["scenario_sha256"] != _scenario_hash(run)


def _read(run: Run) -> dict[str, Any] | None:
    """The last plan that was written before a trial, None for a run begun before there were plans."""
    before = takewhile(lambda event: event["event"] != "trial", run.ledger())
    written = [event["sha256"] for event in before if event["event"] == "plan"][-1:]
    path = run.folder / FILE
    if not written and not path.exists():
        return None
    text = path.read_bytes() if path.exists() else b""
    if [hashlib.sha256(text).hexdigest()] != written:
        raise DiskbookError(f"{path} is not the plan that the run began with; restore it")
    content: dict[str, Any] = json.loads(text)
    return content


def _block(row: dict[str, Any]) -> Block:
    replicate, block = row["replicate"], row["block"]
    evidence = row.get("evidence", False)
    number = row.get("round", 0)
    trials = tuple(
        PlannedTrial(replicate, block, repeat, position, arm, workload, evidence, bool(is_early), number)
        for position, (repeat, arm, workload, *is_early) in enumerate(row["trials"], 1)
    )
    return Block(replicate, block, trials)


def _scenario_hash(run: Run) -> str:
    text = json.dumps(run.manifest["scenario"], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()
