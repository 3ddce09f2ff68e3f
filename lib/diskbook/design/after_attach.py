"""Trials right after an attach, to compare with those after settling: is the disk the same in both?

A disk settles for `design.settle_s` after an attach, and its trials come then. Before them one trial of a
compared load is measured right after the attach. The disk settles meanwhile, so it costs little time. It has
the status "early": the gate "attachment" alone reads it, and no comparison, interval or figure has it.
"""

from __future__ import annotations

from dataclasses import replace

from diskbook.design import attachments, schedule
from diskbook.design.model import Scenario, Workload
from diskbook.design.schedule import Block, PlannedTrial


def plan(scenario: Scenario) -> list[Block]:
    """Plan a run (`schedule.plan`) with a trial right after the attaches of each visit (`added`)."""
    return [added(scenario, block) for block in schedule.plan(scenario)]


def added(scenario: Scenario, block: Block) -> Block:
    """Begin each visit of a disk that is attached anew with one trial more, right after the attach.

    The compared loads have it in turn over blocks and repeats, all arms the same one, so that each arm of a
    comparison has as many. There is none without a time to settle (`design.settle_s`).
    """
    if not scenario.design.settle_s:
        return block
    visits, there = attachments.cycles(scenario, block), {trial.workload for trial in block.trials}
    loads = [load for load in checked(scenario) if load.name in there]
    trials: list[PlannedTrial] = []
    for trial in block.trials:
        turn = (trial.replicate + trial.block) * scenario.design.repeats + trial.repeat
        if trial.position in visits and loads and (load := loads[turn % len(loads)]).meets(trial.arm):
            trials.append(replace(trial, workload=load.name, early=True))
        trials.append(trial)
    numbered = (replace(trial, position=position) for position, trial in enumerate(trials, 1))
    return replace(block, trials=tuple(numbered))


def checked(scenario: Scenario) -> list[Workload]:
    """Loads that are measured right after an attach: those of headlines, else those of comparisons."""
    compared = {item.workload for item in scenario.comparison}
    headline = {item.workload for item in scenario.comparison if item.family == "headline"}
    names = headline or compared
    return [load for load in scenario.workload if load.name in names and load.cache_state == "any"]


def trial_s(scenario: Scenario, start_s: float = 0.6) -> float:
    """Time of the longest trial right after an attach, in seconds; 0 where there is none."""
    loads = checked(scenario) if scenario.design.settle_s else []
    return max((load.ramp_s + load.runtime_s + start_s for load in loads), default=0.0)
