"""What a run is about to do, how long that takes and what it costs, said before it begins."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date

from diskbook.cloud.azure import expiry
from diskbook.cost import budget, durations
from diskbook.design import schedule
from diskbook.facts.quantities import many
from diskbook.facts.units import duration
from diskbook.measure.runs import stages
from diskbook.results import plan as plans
from diskbook.results.run import Run
from diskbook.stats import expected

NOTEBOOK_S = 15.0
"""Roughly what a stage takes apart from its work: a kernel starts, and its tables are drawn."""


def text(run: Run, *, keep: bool = False) -> str:
    """Say what a run does from here to its end, how long that takes, and what it costs."""
    planned, left = count_trials(run)
    if not left:
        return "everything is measured: analyse it and write the report"
    of_all = f" of {planned:,}" if left < planned else ""
    end = "keep the machines" if keep else "delete everything again"
    work = [_made(run), f"measure {left:,}{of_all} trials", "analyse them", end]
    time = duration(sum(stage_seconds(run).values()))
    return f"it will {', '.join(work)}\nit takes about {time}; {_cost(run)}"


def count_trials(run: Run) -> tuple[int, int]:
    """Count the planned trials, and those of them in blocks that are not complete."""
    blocks = plans.blocks_of(run)
    left = [block for origin in stages.origins(run.scenario) for block in plans.remaining(run, origin)]
    return sum(len(block.trials) for block in blocks), sum(len(block.trials) for block in left)


def stage_seconds(run: Run) -> Mapping[str, float]:
    """Expect how long each stage takes, in seconds, by the number that its notebook's name begins with."""
    scenario, manifest, (planned, left) = run.scenario, run.manifest, count_trials(run)
    parallel = stages.at_once(manifest["cloud"], scenario.design.replicates)
    share = left / planned / parallel if planned else 0.0
    waiting_s = schedule.waiting_s(scenario) * share * scenario.design.replicates
    around_s = (durations.around_s(scenario) - schedule.waiting_s(scenario)) * scenario.design.replicates
    around_s *= share * (manifest.get("emulator") or {}).get("time_scale", 1.0)
    trials_s = (schedule.seconds(scenario) + expected.seconds(scenario)) * share
    return {
        "1": NOTEBOOK_S + around_s / 2,
        "2": NOTEBOOK_S + around_s / 2 + waiting_s + trials_s,
        "3": 2 * NOTEBOOK_S,
        "4": NOTEBOOK_S,
    }


def _made(run: Run) -> str:
    """Say what is created first."""
    scenario = run.scenario
    if run.manifest["cloud"] == "inventory":
        return "write test files on the hosts"
    machines, disks = (len(part) * scenario.design.replicates for part in (scenario.machine, scenario.disk))
    return f"create {many(machines, 'machine')} and {many(disks, 'disk')}"


def _cost(run: Run) -> str:
    """Say what it costs, by the dated price table: no price list is asked before the run's own check."""
    manifest = run.manifest
    if manifest["cloud"] == "inventory":
        return "it costs nothing"
    estimate = budget.estimated(run.scenario, None, expiry.lifetime(manifest), date.today())
    usd = f"about {estimate.usd:.2f} USD"
    if manifest["cloud"] == "emulator":
        return f"it costs nothing (on Azure {usd})"
    return f"it costs {usd} ({estimate.source}), and current prices are checked before anything is created"
