"""What `diskbook plan` says of stopping early, and of blocks that are spread over hours."""

import math
from collections.abc import Sequence
from datetime import date, timedelta

import numpy as np

from diskbook.cost import budget
from diskbook.design.model import Scenario
from diskbook.facts.errors import UsageError
from diskbook.facts.quantities import many
from diskbook.facts.units import percent
from diskbook.measure.plan import sample_size
from diskbook.measure.plan.sample_size import Evidence, Target
from diskbook.stats import intervals, power
from diskbook.stats.gates.plan import constant_level, stopping

QUARTERS = 4
"""Looks that are proposed: after each quarter of the blocks or replicates."""

PARALLEL = (
    "Azure measures all replicates at the same time, so looks after replicates save nothing there; "
    'replicates = 1 with look_unit = "blocks" does'
)


def text(scenario: Scenario, known: Sequence[Evidence], target: Target, family: int) -> str:
    """Propose looks for a wanted half-width, with blocks, dollars and power against one look.

    The widest spread of the `family` headline comparisons counts. UsageError without a half-width.
    """
    if target.half_width is None:
        raise UsageError("--looks needs the width that the last look is to have; add --half-width 2%")
    unit = "blocks" if scenario.design.replicates == 1 else "replicates"
    blocks = sample_size.planned_blocks(scenario)
    spreads = [
        item.spread.sd_block if unit == "blocks" else item.spread.sd_replicate(blocks) for item in known
    ]
    sd, single = max(spreads), max(power.for_half_width(each, target.half_width) for each in spreads)
    looks = proposed(sd, target.half_width, single)
    margin = min(item.margin for item in sample_size.headline(scenario))
    effect = target.effect or margin
    level = constant_level(looks)
    parallel = unit == "replicates"
    lines = [
        f"looks for ±{percent(target.half_width)} at the last: looks = {list(looks)}, "
        f'look_unit = "{unit}", each at a level of {level:.4f} (one look: {single} {unit})',
    ]
    for change in (0.0, effect, 2 * effect):
        shift, band = math.log1p(change) / sd, math.log1p(margin) / sd
        stops, decided = stopping(looks, shift, band, family)
        _, at_once = stopping((single,), shift, band, family)
        paid = looks[-1] if parallel else stops
        usd, at_once_usd = (_usd(scenario, unit, number) for number in (paid, single))
        lines.append(
            f"  true change {percent(change)}: stops after {stops:.1f} {unit} on average, {usd:.2f} USD, "
            f"{100 * decided:.0f} % decided; one look {at_once_usd:.2f} USD, {100 * at_once:.0f} %"
        )
    lines.append(f"  decided: a difference, or equivalence within {percent(margin)}")
    return "\n".join(lines + [f"  {PARALLEL}"] * parallel)


def proposed(sd: float, half_width: float, single: int) -> tuple[int, ...]:
    """Return looks after each quarter, of which the last keeps the half-width as a single look does.

    `sd` is the standard deviation of a block's or a replicate's log ratio.
    """
    quarter = max(2, math.ceil(single / QUARTERS))
    while True:
        looks = tuple(quarter * turn for turn in range(1, QUARTERS + 1))
        n = looks[-1]
        levels = np.array([1 - constant_level(looks), intervals.LEVEL])
        wider, usual = intervals.quantile(levels, n - 1)
        if math.expm1(float(wider / usual) * math.log1p(power.half_width_of(sd, n))) <= half_width:
            return looks
        quarter += 1


def of_spread(scenario: Scenario, known: Sequence[Evidence]) -> str:
    """Say whether blocks spread over hours or replicates without that cost less for the same width.

    Between blocks machines stand and are paid for; replicates pay for machines made and disks filled again.
    """
    design, blocks = scenario.design, sample_size.planned_blocks(scenario)
    item = max(known, key=lambda each: each.spread.sd_replicate(blocks))
    sd, spread = item.spread.sd_replicate(blocks), item.spread
    several = design.replicates > 1
    width = (
        power.half_width_of(sd, design.replicates)
        if several
        else power.half_width_of(spread.sd_block, blocks)
    )
    at_once = _apart(scenario, 0.0)
    ways = []
    for number in sorted({*sample_size.BLOCKS, blocks}):
        replicates = power.for_half_width(spread.sd_replicate(number), width)
        changed = sample_size.with_numbers(at_once, replicates, number)
        ways.append(
            (_estimated(changed), f"{many(replicates, 'replicate')} of {many(number, 'block')} at once")
        )
    usd, words = min(ways)
    spread_usd = _estimated(scenario)
    less = "the spread blocks" if spread_usd < usd else "replicates"
    return (
        f"±{percent(width)} costs {spread_usd:.2f} USD with blocks {scenario.gap_h:g} h apart, and {usd:.2f} "
        f"USD with {words}: {less} cost less" + ("" if several else "; replicates speak of disks like these")
    )


def _usd(scenario: Scenario, unit: str, number: float) -> float:
    """Cost of a run that stops after so many blocks or replicates, linear between whole numbers."""
    paced, low, share = _apart(scenario, scenario.gap_h), math.floor(number), number % 1
    costs = [
        _estimated(
            sample_size.with_numbers(paced, 1, n)
            if unit == "blocks"
            else sample_size.with_numbers(paced, n, sample_size.planned_blocks(scenario))
        )
        for n in (low, low + (share > 0))
    ]
    return costs[0] + share * (costs[-1] - costs[0])


def _apart(scenario: Scenario, hours: float) -> Scenario:
    """Return the scenario with so many hours between its blocks, however many these are."""
    design = scenario.design.model_copy(update={"hours_between_blocks": hours, "spread": None})
    return scenario.model_copy(update={"design": design})


def _estimated(scenario: Scenario) -> float:
    """Return the expected cost in USD, by the dated table of prices."""
    return budget.estimated(scenario, None, timedelta(), date.today()).usd
