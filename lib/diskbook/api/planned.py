"""What a run would take, before anything is made."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd

from diskbook.design import scenario_file
from diskbook.measure.plan import cost, document, text


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
    target, sources = text.target_of(half_width, power, effect), text.sources_of(pilot, (), None, None)
    creation = cost.creation(chosen)
    command = f"diskbook run {scenario} --preset {preset}"
    words = text.plan_text(chosen, target, sources, command, creation.sections)
    numbers = document.document(chosen, target, sources, creation.estimate, words)
    return PlanResult(
        words,
        pd.DataFrame([row.model_dump() for row in numbers.needs]),
        pd.DataFrame([row.model_dump() for row in numbers.costs]),
        numbers.n_trials,
        numbers.trials_s,
        numbers.expected_usd,
    )
