"""What a run would take, before anything is made."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd

from diskbook.cost.estimate import Estimate
from diskbook.design import scenario_file, schedule
from diskbook.design.model import Scenario
from diskbook.measure.plan import cost, sample_size, terminal


@dataclass(frozen=True, repr=False)
class PlanResult:
    """What a run would take. Made by `plan`.

    Attributes
    ----------
    text
        All of it in words, as `diskbook plan` prints it.
    needs
        One row a way to reach the wanted precision or power: replicates, blocks, hours.
    costs
        One row a thing that costs money: expected and at worst, in USD.
    n_trials, trials_s, expected_usd
        Number of trials, their time in seconds, and the expected price.
    """

    text: str
    needs: pd.DataFrame = field(compare=False)
    costs: pd.DataFrame = field(compare=False)
    n_trials: int
    trials_s: float
    expected_usd: float | None

    def __repr__(self) -> str:
        return self.text


def plan(
    scenario: str | Path,
    preset: str = "standard",
    *,
    half_width: str | None = None,
    effect: str | None = None,
    power: str | None = None,
    pilot: str | None = None,
    settings: dict[str, Any] | None = None,
) -> PlanResult:
    """Plan a run without making anything: design, time, price, and what a wanted precision needs.

    Parameters
    ----------
    scenario, preset
        Name or file of a scenario, and its preset: "quick", "standard" or "full".
    half_width, effect, power
        Wanted half-width of the interval, difference to find and probability of finding it, as "2%".
    pilot
        Run to take the spread from; by default published values.
    settings
        Keys of the scenario that win over the preset, e.g. {"design.replicates": 5}.

    Raises
    ------
    UsageError
        When there is no such scenario or run, or a percentage is none.
    """
    chosen = scenario_file.load(str(scenario), preset, settings or {})
    target, sources = (
        terminal.target_of(half_width, power, effect),
        terminal.sources_of(pilot, (), None, None),
    )
    creation = cost.creation(chosen)
    command = f"diskbook run {scenario} --preset {preset}"
    words = terminal.plan_text(chosen, target, sources, command, creation.sections)
    return PlanResult(
        words,
        _needs(chosen, target, sources),
        _costs(creation.estimate),
        sample_size.trials(chosen),
        schedule.seconds(chosen),
        creation.estimate.usd,
    )


def _needs(scenario: Scenario, target: sample_size.Target, sources: terminal.Sources) -> pd.DataFrame:
    if not target.anything:
        return pd.DataFrame()
    known, _ = terminal.evidence(scenario, sources)
    ways = sample_size.needs(scenario, known, target, len(sample_size.headline(scenario))).like_these
    names = ["n_blocks", "n_replicates", "n_trials", "total_s", "usd"]
    rows = [(way.blocks, way.replicates, way.trials, way.total_s, way.usd) for way in ways]
    return pd.DataFrame(rows, columns=names)


def _costs(estimate: Estimate) -> pd.DataFrame:
    names = ["what", "count", "hours", "expected_usd", "at_worst_usd"]
    rows = [(line.what, line.count, line.hours, line.usd, line.worst_usd) for line in estimate.lines]
    return pd.DataFrame(rows, columns=names)
