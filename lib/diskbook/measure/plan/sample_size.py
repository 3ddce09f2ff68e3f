"""Plan a run before it is made: the time it takes, and how many replicates and blocks it needs.

Also names the comparisons that will get no verdict on latency, because no load of single I/Os can show a
queue, and proposes looks at which a run may stop early.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date, timedelta

import numpy as np

from diskbook.cost import budget
from diskbook.cost.durations import around_s
from diskbook.cost.estimate import another_replicate
from diskbook.design import schedule
from diskbook.design.model import Comparison, Scenario, Workload
from diskbook.design.vocabulary import Provenance
from diskbook.facts import noise_series
from diskbook.facts.catalog import OWN_DISK
from diskbook.facts.errors import UsageError
from diskbook.facts.quantities import many
from diskbook.facts.units import percent
from diskbook.report.analysis.prior_runs import MeasuredRatios, PriorRun
from diskbook.stats import expected, intervals, power, ratio_of_ratios
from diskbook.stats.gates.plan import constant_level, stopping
from diskbook.stats.power import Spread

BLOCKS = (2, 3, 5, 10)
MOST_REPLICATES = 99
SPREADS = {
    True: ("pair-core", "pair-with-slow-pairs"),
    False: ("separate-machines-core", "separate-machines-with-slow-pairs"),
}
"""Quantities of `data/reference/azure-noise-planning.csv`, by whether a comparison stays on one machine."""
LEAST_POWER = 0.8
"""Power that is planned for where none is named."""
LEAST_PAIRS = 5
"""Replicates that public measurements ask for at least: of fewer one slow pair of disks decides."""


@dataclass(frozen=True)
class Target:
    """Precision or power that a run is to reach; relative (0.015 is 1.5 %), None where not asked for.

    `between_runs` is how far the ratio of the ratios of two such runs is from 1. `looks` asks for looks at
    which a run may stop.
    """

    half_width: float | None = None
    effect: float | None = None
    power: float | None = None
    between_runs: float | None = None
    looks: bool = False

    @property
    def anything(self) -> bool:
        """Whether anything was asked for."""
        return self.half_width is not None or self.effect is not None


@dataclass(frozen=True)
class Evidence:
    """The spread of one headline comparison, and where it is known from.

    `least_replicates` and `least_blocks` (in all) are what a pilot measured: Stein's second stage has no
    less. `with_slow_pairs` is what public measurements make of the spread where slow pairs are in it.
    """

    label: str
    spread: Spread
    source: str
    least_replicates: int = 2
    least_blocks: int = 2
    with_slow_pairs: Spread | None = None


@dataclass(frozen=True)
class Need:
    """One way to reach the target; `usd` is its list price, None where that is not known."""

    blocks: int
    replicates: int
    trials: int
    replicate_s: float
    usd: float | None

    @property
    def total_s(self) -> float:
        """Time of all replicates one after another, in seconds."""
        return self.replicates * self.replicate_s


@dataclass(frozen=True)
class Needs:
    """Blocks in one replicate for "these disks"; for "disks like these" one way for each number of blocks."""

    these: Need
    like_these: tuple[Need, ...]

    @property
    def cheapest(self) -> Need:
        """The way that costs least; without prices, the one that takes the least time of machines."""
        return min(self.like_these, key=lambda need: (need.usd or 0.0, need.total_s, need.replicates))

    @property
    def fastest(self) -> Need:
        """The way that takes the least time with replicates in parallel."""
        return min(self.like_these, key=lambda need: (need.replicate_s, need.total_s))


def headline(scenario: Scenario) -> list[Comparison]:
    """Comparisons that the numbers are planned for; UsageError when the scenario names none."""
    items = [item for item in scenario.comparison if item.family == "headline"]
    if not items:
        raise UsageError(
            f"scenario {scenario.name} names no headline comparison to plan for; "
            'give one [[comparison]] family = "headline"'
        )
    return items


def is_on_one_machine(scenario: Scenario, item: Comparison) -> bool:
    """Tell whether a comparison's arms share their machine, as `stats.gates.design.pairing_of` has it."""
    machines = {scenario.arm_named(name).machine for name in (item.arm, item.base_arm)}
    return item.pairing != "replicate" and len(machines) == 1


def from_assumed(scenario: Scenario, sd_disk: float | None, sd_run: float | None) -> list[Evidence]:
    """Evidence from standard deviations that are given, else from public measurements of Azure.

    Those tell comparisons on one machine from comparisons between machines; their spread between pairs leaves
    slow pairs out, which `LEAST_PAIRS` and `with_slow_pairs` answer.
    """
    alone = [is_on_one_machine(scenario, item) for item in headline(scenario)]
    if sd_disk is not None or len(set(alone)) == 1:
        return [_assumed("every headline comparison", scenario, all(alone), sd_disk, sd_run)]
    kinds = {True: "headline comparisons on one machine", False: "headline comparisons between machines"}
    return [_assumed(label, scenario, kind, sd_disk, sd_run) for kind, label in kinds.items()]


def _assumed(
    label: str, scenario: Scenario, one_machine: bool, sd_disk: float | None, sd_run: float | None
) -> Evidence:
    pairs, slow = SPREADS[one_machine]
    disk = noise_series.planned(pairs) if sd_disk is None else sd_disk
    run = noise_series.planned("block-core") / math.sqrt(2) if sd_run is None else sd_run
    spread = power.assumed(disk, run, scenario.design.repeats)
    source = (
        f"s.d. between disk pairs {percent(disk)}, {_origin(sd_disk)}; "
        f"of one tool run {percent(run, '.2g')}, {_origin(sd_run)}"
    )
    if sd_disk is not None:
        return Evidence(label, spread, source)
    block = noise_series.planned("block-with-slow-runs") / math.sqrt(scenario.design.repeats)
    with_slow_pairs = Spread(noise_series.planned(slow), max(block, spread.sd_block))
    return Evidence(label, spread, source, LEAST_PAIRS, with_slow_pairs=with_slow_pairs)


def _origin(given: float | None) -> str:
    return "from public measurements of Azure" if given is None else "assumed"


def from_pilot(
    pilot: PriorRun, scenario: Scenario, sd_disk: float | None = None
) -> tuple[list[Evidence], list[str]]:
    """Evidence from a pilot run: one for each headline comparison that it supports, and notes on the others.

    A pilot of one replicate knows nothing about other disks: the s.d. between disk pairs is then the one that
    is given, else that of public measurements.

    Raises UsageError when the pilot supports none of them.
    """
    evidence, notes = [], []
    for measured in pilot.measured(headline(scenario)):
        try:
            pairs, _ = SPREADS[is_on_one_machine(scenario, measured.item)]
            evidence.append(_evidence(pilot, measured, sd_disk, pairs))
            if measured.strata:
                notes.append(_mixed(measured))
            if measured.hidden:
                notes.append(f"{measured.label}: {measured.hidden}; no number of replicates mends that")
        except ValueError as error:
            notes.append(f"left out: {measured.label}: {error}")
    if not evidence:
        reason = notes[0].removeprefix("left out: ")
        raise UsageError(f"--pilot {pilot.name}: no headline comparison can be planned from it: {reason}")
    return evidence, notes


def _mixed(measured: MeasuredRatios) -> str:
    return (
        f"{measured.label}: the pilot's replicates lie in {len(measured.strata)} strata "
        f"({' | '.join(measured.strata)}); the s.d. between disk pairs holds their difference, which "
        "replicates do not average: strata are judged apart, and each needs replicates of its own"
    )


def _evidence(pilot: PriorRun, measured: MeasuredRatios, sd_disk: float | None, pairs: str) -> Evidence:
    """Evidence of one comparison; `pairs` is the published spread that a single replicate leaves open."""
    if measured.refusal:
        raise ValueError(measured.refusal)
    values = measured.log_ratios
    spread, replicates = power.measured(values), values.index.get_level_values(0).nunique()
    source = f"pilot {pilot.name}: s.d. between blocks {percent(spread.sd_block)} (df {spread.df_block:.0f})"
    if replicates > 1:
        if sd_disk is not None:
            raise UsageError("--sd-disk: the pilot measures this spread; give one of the two")
        between = f"between disk pairs {percent(spread.sd_disk)} (df {spread.df_disk:.0f})"
    else:
        disk = noise_series.planned(pairs) if sd_disk is None else sd_disk
        spread = Spread(disk, spread.sd_block, math.inf, spread.df_block)
        why = "since the pilot has one replicate"
        between = f"between disk pairs {percent(disk)} {_origin(sd_disk)}, {why}"
    return Evidence(measured.label, spread, f"{source}, {between}", max(2, replicates), len(values))


def needs(scenario: Scenario, evidence: Iterable[Evidence], target: Target, family: int) -> Needs:
    """Replicates and blocks that reach the target for every comparison, in both scopes.

    The power is that of Holm's hardest step, at 5 % / `family` headline comparisons.
    """
    known = list(evidence)
    blocks = max(
        _number(target, family, item.spread.sd_block, item.spread.df_block, item.least_blocks)
        for item in known
    )
    ways = []
    for number in sorted({*BLOCKS, planned_blocks(scenario)} - {1}):
        replicates = max(
            _number(
                target, family, item.spread.sd_replicate(number), item.spread.df_disk, item.least_replicates
            )
            for item in known
        )
        ways.append(way_of(scenario, replicates, number))
    return Needs(way_of(scenario, 1, blocks), tuple(ways))


def for_two_runs(scenario: Scenario, evidence: Iterable[Evidence], target: Target) -> tuple[Need, ...]:
    """Replicates of each of two runs that find a ratio of ratios, at `level_of_two_runs`, by blocks."""
    known = list(evidence)
    alpha = level_of_two_runs(scenario)
    effect, chance = target.between_runs or 0.0, target.power or LEAST_POWER
    ways = []
    for blocks in sorted({*BLOCKS, planned_blocks(scenario)} - {1}):
        numbers = (
            power.for_two_runs(
                item.spread.sd_replicate(blocks),
                effect,
                chance,
                item.spread.df_disk,
                item.least_replicates,
                alpha,
            )
            for item in known
        )
        ways.append(way_of(scenario, max(numbers), blocks))
    return tuple(ways)


def level_of_two_runs(scenario: Scenario) -> float:
    """Return the level at which a headline comparison of two runs differs, whatever the others are."""
    headlines = np.array([item.family == "headline" for item in scenario.comparison])
    return float(ratio_of_ratios.hardest_levels(headlines)[headlines][0])


def replicates_with_slow_pairs(
    evidence: Iterable[Evidence], target: Target, family: int, blocks: int
) -> int | None:
    """Replicates of so many blocks that reach the target with slow pairs; None where no spread is public."""
    spreads = [item.with_slow_pairs for item in evidence if item.with_slow_pairs is not None]
    if not spreads or not target.anything:
        return None
    return max(_number(target, family, item.sd_replicate(blocks), math.inf, LEAST_PAIRS) for item in spreads)


def _number(target: Target, family: int, sd: float, df: float, least: int) -> int:
    """Values of this s.d. that reach the target, and at least `least`."""
    numbers = []
    if target.half_width is not None:
        numbers.append(power.for_half_width(sd, target.half_width, df, least))
    if target.effect is not None and target.power is not None:
        alpha = power.ALPHA / family
        numbers.append(power.for_power(sd, target.effect, target.power, df, least, alpha))
    return max(numbers)


def way_of(scenario: Scenario, replicates: int, blocks: int) -> Need:
    """Say what so many replicates and blocks take and cost."""
    changed = with_numbers(scenario, replicates, blocks)
    single = with_numbers(scenario, 1, blocks)
    seconds = schedule.seconds(single) + around_s(single) + expected.seconds(changed)
    own = any(disk.sku == OWN_DISK for disk in scenario.disk)
    each = None if own else another_replicate(changed, Provenance.AZURE).usd
    return Need(blocks, replicates, trials(changed), seconds, None if each is None else replicates * each)


def with_numbers(scenario: Scenario, replicates: int, blocks: int) -> Scenario:
    """Return the scenario with other numbers of replicates, and of blocks of its headline workloads."""
    names = {item.workload for item in headline(scenario)}
    workloads = tuple(
        item.model_copy(update={"blocks": blocks}) if item.name in names else item
        for item in scenario.workload
    )
    changed = scenario.design.model_copy(update={"replicates": replicates})
    return scenario.model_copy(update={"design": changed, "workload": workloads})


def planned_blocks(scenario: Scenario) -> int:
    """Blocks that the scenario has for its headline workloads; the fewest of them."""
    return min(scenario.workload_named(item.workload).blocks for item in headline(scenario))


def trials(scenario: Scenario) -> int:
    """Trials of a run, from its numbers."""
    times = scenario.design.repeats * scenario.design.replicates
    return times * sum(load.blocks for _, load in scenario.cells)


def missing_single_ios(scenario: Scenario) -> list[str]:
    """Say which comparisons of latency lack the same load at queue depth 1 in one of their arms.

    Without it nothing tells whether a limit that no table names makes the latency (`throttling.saturation`).
    """
    notes = []
    for item in scenario.comparison:
        load = scenario.workload_named(item.workload)
        if not item.metric.startswith("lat") or load.outstanding == 1:
            continue
        singles = [other for other in scenario.workload if other.outstanding == 1 and _alike(other, load)]
        lacking = [
            arm for arm in (item.arm, item.base_arm) if not any(single.meets(arm) for single in singles)
        ]
        if lacking:
            notes.append(
                f"{item.arm} / {item.base_arm}, {load.name}: without the same load at queue depth 1 on "
                f"{' and '.join(lacking)} nothing tells a queue from the disk, so no verdict on latency."
            )
    return notes


def _alike(load: Workload, other: Workload) -> bool:
    """Whether two loads are of one kind and block size, so that one may be judged by the other."""
    return (_kind(load), load.block_size) == (_kind(other), other.block_size)


def _kind(load: Workload) -> str:
    if load.sync == "fdatasync":
        return "commit"
    return {0: "read", 100: "write"}.get(load.write_pct, "read+write")


QUARTERS = 4
"""Looks that are proposed: after each quarter of the blocks or replicates."""

PARALLEL = (
    "Azure measures all replicates at the same time, so looks after replicates save nothing there; "
    'replicates = 1 with look_unit = "blocks" does'
)


def looks_text(scenario: Scenario, known: Sequence[Evidence], target: Target, family: int) -> str:
    """Propose looks for a wanted half-width, with blocks, dollars and power against one look.

    The widest spread of the `family` headline comparisons counts. UsageError without a half-width.
    """
    if target.half_width is None:
        raise UsageError("--looks needs the width that the last look is to have; add --half-width 2%")
    unit = "blocks" if scenario.design.replicates == 1 else "replicates"
    blocks = planned_blocks(scenario)
    spreads = [
        item.spread.sd_block if unit == "blocks" else item.spread.sd_replicate(blocks) for item in known
    ]
    sd, single = max(spreads), max(power.for_half_width(each, target.half_width) for each in spreads)
    looks = proposed_looks(sd, target.half_width, single)
    margin = min(item.margin for item in headline(scenario))
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


def proposed_looks(sd: float, half_width: float, single: int) -> tuple[int, ...]:
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


def spread_text(scenario: Scenario, known: Sequence[Evidence]) -> str:
    """Say whether blocks spread over hours or replicates without that cost less for the same width.

    Between blocks machines stand and are paid for; replicates pay for machines made and disks filled again.
    """
    design, blocks = scenario.design, planned_blocks(scenario)
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
    for number in sorted({*BLOCKS, blocks}):
        replicates = power.for_half_width(spread.sd_replicate(number), width)
        changed = with_numbers(at_once, replicates, number)
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
            with_numbers(paced, 1, n)
            if unit == "blocks"
            else with_numbers(paced, n, planned_blocks(scenario))
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
