"""What `diskbook plan` prints."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from diskbook.cost import durations
from diskbook.cost.durations import OWN_DISK_MB_S, fill_s, overwrite_s
from diskbook.design import arm_words, attachments, schedule
from diskbook.design.model import LEAST_EVIDENCE_S, Arm, Scenario, Workload
from diskbook.design.vocabulary import Provenance, Scope
from diskbook.facts import arm as arm_facts, disk_options, neighbours, noise_series, table_writers
from diskbook.facts.catalog import OWN_DISK
from diskbook.facts.errors import UsageError
from diskbook.facts.quantities import many
from diskbook.facts.table_writers import Table
from diskbook.facts.units import KIB, duration, parse_percent, percent
from diskbook.measure.plan import sample_size
from diskbook.measure.plan.sample_size import Evidence, Need, Needs, Target
from diskbook.report.analysis import companion_files
from diskbook.report.analysis.prior_runs import PriorRun, history_of, open_prior_run
from diskbook.report.show import sentences
from diskbook.stats import expected, intervals, power, prior_runs, ratio_of_ratios
from diskbook.tools import registry
from diskbook.tools.protocol import OVERWRITE_BLOCK_BYTES

DAY_S = 86_400.0
UNKNOWN_DISKS = (
    "Public measurements are of one kind (Standard_D8s_v5, Premium SSD v2, 8 KiB reads, one at a time); "
    "the s.d. between other disk pairs is unknown: a pilot of 5 replicates x 3 blocks must measure it "
    "(--pilot RUN)."
)
SLOW_PAIRS = {
    (noise_series.LATENCY, "remote", noise_series.PLANNED_SIZE, region, "slow-pairs-10")
    for region in ("eastus", "westus2")
}
FIXED = "These numbers are fixed before the run: a run that stops when it is significant proves nothing."


@dataclass(frozen=True)
class Sources:
    """Where the spread is known from: a pilot, a history, or assumed s.d. (shares; None for the default)."""

    pilot: PriorRun | None = None
    history: tuple[PriorRun, ...] = ()
    sd_disk: float | None = None
    sd_run: float | None = None


def plan_text(
    scenario: Scenario, target: Target, sources: Sources, command: str, creation: Sequence[str] = ()
) -> str:
    """All that `diskbook plan` prints; `command` is the run that numbers are suggested for."""
    unjudged = [*companion_files.missing(scenario), *sample_size.missing_single_ios(scenario)]
    parts = ["\n".join([_design(scenario), *unjudged]), _time(scenario), *creation]
    if (
        any(item.family == "headline" for item in scenario.comparison)
        or target.anything
        or target.between_runs
        or target.looks
    ):
        family = len(sample_size.headline(scenario))
        known, notes = evidence(scenario, sources)
        parts.append(
            _now(scenario, known, notes + _slow_pairs(scenario, known, target, family), family, target)
        )
        if target.anything:
            needed = sample_size.needs(scenario, known, target, family)
            table = _needs(scenario, needed, target, family)
            parts.append(f"{table}\n{_commands(scenario, needed, command)}")
            parts.append(FIXED)
        if target.looks:
            parts.append(sample_size.looks_text(scenario, known, target, family))
        if scenario.gap_h and not _is_own(scenario):
            parts.append(sample_size.spread_text(scenario, known))
        if target.between_runs is not None:
            parts.append(
                _two_runs(scenario, sample_size.for_two_runs(scenario, known, target), target, command)
            )
    if sources.history:
        parts.append(_history(scenario, sources.history, target))
    return "\n\n".join(parts)


def evidence(scenario: Scenario, sources: Sources) -> tuple[list[Evidence], list[str]]:
    """The spread of the headline comparisons, and what has to be known of it; UsageError if unsupported."""
    pilot = sources.pilot
    if pilot is None:
        return sample_size.from_assumed(scenario, sources.sd_disk, sources.sd_run), [UNKNOWN_DISKS]
    if sources.sd_run is not None:
        raise UsageError("--sd-run: the pilot measures this spread; give one of the two")
    known, notes = sample_size.from_pilot(pilot, scenario, sources.sd_disk)
    notes += _differences(scenario, pilot)
    if pilot.manifest["provenance"] != Provenance.AZURE:
        notes.append(
            f"The pilot is {pilot.manifest['provenance']}: its spread is that of its disks, not of Azure's."
        )
    if any(math.isinf(item.spread.df_disk) for item in known):
        notes.append(UNKNOWN_DISKS)
    return known, notes


def _slow_pairs(scenario: Scenario, known: Sequence[Evidence], target: Target, family: int) -> list[str]:
    """Say what a slow pair of disks would do to the plan, where it stands on public measurements."""
    spreads = [item.with_slow_pairs for item in known if item.with_slow_pairs is not None]
    if not spreads:
        return []
    replicates, blocks = scenario.design.replicates, sample_size.planned_blocks(scenario)
    shares = [row.value for row in noise_series.shares() if row.key in SLOW_PAIRS]
    sd = max(item.sd_disk for item in spreads)
    text = (
        f"Of fresh pairs {100 * min(shares):.1f} to {100 * max(shares):.1f} % are over 10 % slower than the "
        f"day's median, often several in a row; with them the s.d. between pairs is {percent(sd)}"
    )
    if replicates > 1:
        half = max(power.half_width_of(item.sd_replicate(blocks), replicates) for item in spreads)
        text += f", so that {replicates} replicates give {_width(half)} in {percent(power.ASSURANCE)} of runs"
    number = sample_size.replicates_with_slow_pairs(known, target, family, blocks)
    if number is not None:
        text += f", and it takes {number} replicates x {many(blocks, 'block')}"
    return [
        f"{text}. Plan {sample_size.LEAST_PAIRS} pairs or more, spread over hours.",
        f"{noise_series.attribution(noise_series.planning().values())}.",
    ]


def _differences(scenario: Scenario, pilot: PriorRun) -> list[str]:
    """Say where the pilot offered another load, since its spread is that of its own."""
    notes = []
    for name in dict.fromkeys(item.workload for item in sample_size.headline(scenario)):
        now = scenario.workload_named(name)
        for load in pilot.scenario.workload:
            keys = [key for key in ("block_size", "write_pct", "outstanding", "ramp_s", "runtime_s")
                    if load.name == name and getattr(load, key) != getattr(now, key)]  # fmt: skip
            values = ", ".join(f"{key} {getattr(load, key):g}, here {getattr(now, key):g}" for key in keys)
            notes += [f"The pilot's {name} differs ({values}): its spread may, too."] if keys else []
    if pilot.scenario.design.repeats != scenario.design.repeats:
        notes.append(
            f"The pilot had {pilot.scenario.design.repeats} repeats in a block, this design has others."
        )
    return notes


def _design(scenario: Scenario) -> str:
    numbers = scenario.design
    order = "all arms once, in random order"
    if numbers.repeats > 1:
        order = f"all arms {numbers.repeats} times, in random order and then its reverse"
    arms, loads = (max(len(item.name) for item in items) for items in (scenario.arm, scenario.workload))
    of_what = "on hosts of your own" if _is_own(scenario) else "of fresh machines and disks"
    lines = [
        f"{scenario.name}, preset {scenario.preset}: {scenario.scenario.title}",
        f"{many(numbers.replicates, 'replicate')} {of_what}, "
        f"{sample_size.trials(scenario)} trials in an order drawn from seed {numbers.seed}; "
        f"each block has {order}",
        "arms:",
    ]
    for arm in scenario.arm:
        lines.append(f"  {arm.name:<{arms}}  {_arm(scenario, arm)}")
    lines.append("workloads:")
    for item in scenario.workload:
        lines.append(f"  {item.name:<{loads}}  {_load(item)}")
        lines += [f"  {'':<{loads}}  {words}" for words in sentences.of_workload(item)]
    first = dict.fromkeys(trial.arm for trial in schedule.plan(scenario)[0].trials)
    lines.append(f"order of arms in the first block: {', '.join(first)}")
    if numbers.looks:
        after = ", ".join(map(str, numbers.looks))
        lines.append(f"looks after {after} {numbers.look_unit}: the run stops once the headlines are decided")
    if numbers.look_unit == "replicates" and len(numbers.looks) > 1 and not _is_own(scenario):
        lines.append(f"  {sample_size.PARALLEL}")
    lines.append(_state(scenario))
    return "\n".join(lines)


def _state(scenario: Scenario) -> str:
    """What is done to the disks before the first trial, and how long it takes, or why not."""
    fill = f"before the first trial: fill in order, about {duration(sum(fill_s(scenario).values()))}"
    if scenario.design.no_overwrite:
        return f"{fill}; not written over: {scenario.design.no_overwrite}"
    seconds = sum(overwrite_s(scenario).values())
    if not seconds:
        return f"{fill}; fleets write their files in full before each block instead"
    block = OVERWRITE_BLOCK_BYTES // KIB
    return f"{fill}, then write over once at random ({block} KiB), about {duration(seconds)} on Azure"


def _arm(scenario: Scenario, arm: Arm) -> str:
    """What an arm measures, and from where."""
    machine, disk = scenario.machine_named(arm.machine), scenario.disk_of(arm)
    zone = f", zone {machine.zone}" if machine.zone else ""
    tool = registry.TOOLS[scenario.tool_of(arm)]
    named = "" if tool.name == registry.USUAL else f", {tool.title}"
    if disk.sku == OWN_DISK:
        return f"{disk.sku} {disk.name} on {machine.name} ({machine.size})"
    what = f"{disk.sku} {disk.size_gib} GiB"
    if arm.volume:
        what = _volumes(scenario, arm)
    return f"{what} on {machine.name} ({machine.size}{zone}{named})"


def _volumes(scenario: Scenario, arm: Arm) -> str:
    """The volume of an arm, or all those of its entry, and how its load lies to their owners."""
    volume = scenario.volume_named(arm.volume)
    shape, names = arm_words.shape(scenario, volume), scenario.members_of(volume)
    if not arm.aligned:
        away = ", machines on the node after each owner,"
    else:
        away = f", owned by {arm.owner}," if arm_words.is_remote(arm) else ""
    return f"volume{'s' * (len(names) > 1)} {', '.join(names)} ({shape}){away}"


def _is_own(scenario: Scenario) -> bool:
    """Whether machines and disks are the user's own."""
    return any(disk.sku == OWN_DISK for disk in scenario.disk)


def _load(item: Workload) -> str:
    kind = {0: "reads", 100: "writes"}.get(item.write_pct, f"{item.write_pct} % writes")
    rate = f", {item.rate:g} IOPS offered" if item.rate else ""
    depth = f"{item.outstanding} outstanding"
    depth += f" ({item.instances} machines x {item.threads} x {item.queue_depth})" if item.is_fleet else ""
    sync = f", {item.sync}" if item.sync else ""
    state = f", {item.working_set_gib:g} GiB that nobody wrote to" if item.region == "unwritten" else ""
    state += ", data that compress" if item.data == "compressible" and item.write_pct else ""
    state += f", host cache {item.cache_state}" if item.cache_state != "any" else ""
    return (
        f"{item.pattern} {kind} of {item.block_size} bytes, {depth}{rate}{sync}{state}; "
        f"{many(item.blocks, 'block')} of {item.ramp_s:g} s ramp + {item.runtime_s:g} s"
    )


def _time(scenario: Scenario) -> str:
    trials_s, replicates = schedule.seconds(scenario), scenario.design.replicates
    around_s, alone_s = sample_size.around_s(scenario), expected.seconds(scenario)
    total = duration(trials_s + replicates * (around_s + alone_s))
    waiting_s = schedule.waiting_s(scenario)
    hours = scenario.gap_h
    waits = f", {duration(waiting_s)} of waiting, blocks {hours:g} h apart" if waiting_s else ""
    if _is_own(scenario):
        filling = (
            f"filling files about {duration(around_s - waiting_s)} (at {OWN_DISK_MB_S:.0f} MB/s, a guess)"
        )
        return f"time: trials {duration(trials_s)}; {filling}{waits}; {total} in all"
    text = (
        f"time: trials {duration(trials_s)}; machines, disks, prefill, moves and teardown about "
        f"{duration(around_s - waiting_s)} a replicate on Azure{waits}; {total} in all"
    )
    if replicates > 1:
        text += f", {duration(trials_s / replicates + around_s + alone_s)} with replicates in parallel"
    text += "\n  (on the emulator trials take as long, the rest a small part of it)"
    calls = _calls(scenario, trials_s / replicates + around_s + alone_s)
    return "\n".join([text, *_evidence_trials(scenario), *_attaches(scenario), *calls])


def _evidence_trials(scenario: Scenario) -> list[str]:
    """Say which cells are measured once more for the platform's metrics, or that Azure would give none."""
    seconds, longest_s = scenario.design.evidence_s, max(load.runtime_s for load in scenario.workload)
    if not seconds and longest_s < LEAST_EVIDENCE_S:
        short = f"trials take {longest_s:g} s at most, so Azure, with one value a minute, would give none"
        return [f"  no evidence trials for the platform's metrics: {short}"]
    chosen = expected.of(scenario).cells
    return [
        f"  evidence trials for the platform's metrics, of which Azure has one a minute: {len(chosen)} of "
        f"{len(scenario.cells)} cells, those that may sit on a limit, once for {seconds:g} s; last of all, "
        "so that nothing lacks the credit that they draw, and in no comparison; about "
        f"{duration(expected.seconds(scenario))} a replicate"
    ] * bool(seconds)


def _attaches(scenario: Scenario) -> list[str]:
    """How often disks are reattached in the blocks of a replicate, and how long it takes; if they are."""
    times, visits = durations.attached_anew(scenario)
    if not times:
        return _moves(scenario)
    names = " and ".join(", ".join(sorted(group)) for group in attachments.cycled(scenario))
    settle_s, settling_s = scenario.design.settle_s, durations.settling_s(scenario)
    settles = f"{settle_s:g} s to settle" if settle_s else "no time to settle (design.settle_s = 0)"
    cycle_s = arm_facts.DELAYS_S["disk-attach"] + arm_facts.DELAYS_S["disk-detach"]
    text = (
        f"  attached again: {names}, each equally often in a block, {times:.0f} times a replicate, with "
        f"{settles}; about {duration(times * cycle_s + settling_s)} of that time"
    )
    if not settle_s:
        return [f"{text}; attach effect not checked", *_moves(scenario)]
    return [
        text,
        f"  settling takes about {duration(settling_s)} a replicate; meanwhile each of {visits:.0f} visits "
        "begins with one trial right after the attach, to check for an attach effect",
        *_moves(scenario),
    ]


def _moves(scenario: Scenario) -> list[str]:
    """Say which disks move between groups of blocks, in what order, and what that saves; if any do."""
    between, settle_s = attachments.moved_between(scenario), scenario.design.settle_s
    if len(schedule.placements(scenario)) < 2 or not between:
        return []
    arms = tuple(arm.model_copy(update={"placement": None}) for arm in scenario.arm)
    within, calls = (
        sum(durations.moves(item)) for item in (scenario.model_copy(update={"arm": arms}), scenario)
    )
    settled_s = durations.settled_groups(scenario) * settle_s
    settles = (
        f"{settle_s:g} s to settle after each move, {duration(settled_s)} in all"
        if settle_s
        else ("no time to settle (design.settle_s = 0)")
    )
    return [
        f"  moved between groups of blocks: {', '.join(sorted(between))}, with {settles}; in replicate 1 "
        f"{', '.join(schedule.placement_groups(scenario))}",
        f"  that takes {calls:.0f} attach and detach calls per replicate; moves in every block would take "
        f"{within:.0f}",
    ]


def _losses(scenario: Scenario) -> list[str]:
    """Say how many losses a replicate plays, and which members they take away; if any."""
    taken = neighbours.volume_rules.all_taken_away(scenario) if scenario.loss else ()
    nodes = sum(len(loss.nodes) for loss in taken)
    disks = sum(len(disks) for loss in taken for disks in loss.disks.values())
    return [
        f"  losses: {len(scenario.loss)} a replicate, in {many(len(taken), 'step')}, since volumes of a pool "
        f"lose the same members together; nodes are switched off {many(nodes, 'time')}, disks are taken away "
        f"{many(disks, 'time')}, and all come back"
    ] * bool(taken)


def _calls(scenario: Scenario, replicate_s: float) -> list[str]:
    """How many attach and detach calls a run makes, how often a day one disk is detached, and the bucket."""
    calls, share = durations.attach_calls(scenario), min(1.0, DAY_S / replicate_s)
    parts = calls.pools, calls.blocks, calls.drills, calls.losses
    names = "pools", "blocks", "failover tests", "losses"
    purposes = [f"{number:.0f} for {name}" for number, name in zip(parts, names, strict=True) if number]
    a_day = calls.total * share * scenario.design.replicates
    return [
        *_losses(scenario),
        f"  attach and detach calls: {calls.total:.0f} a replicate ({', '.join(purposes)}), {a_day:.0f} on a "
        f"day with replicates in parallel; {_detaches(scenario, calls.detached, share)}",
        _bucket(calls.total / replicate_s),
    ]


def _bucket(calls_per_s: float) -> str:
    """Compare a rate of attach and detach calls with Azure's buckets of them."""
    rates = arm_facts.POLICIES["AttachDetachVMDisks"]
    buckets = [
        f"{rate.capacity:,} per {of} (refilled by {rate.refill} a minute)"
        for rate, of in ((rates.resource, "machine"), (rates.subscription, "subscription and region"))
        if rate is not None
    ]
    return (
        f"  that is {calls_per_s * arm_facts.MINUTE_S:.2g} a minute on average; Azure's buckets allow "
        f"{' and '.join(buckets)}"
    )


def _detaches(scenario: Scenario, detached: Mapping[str, float], share: float) -> str:
    """Say how often a day the disk is detached that is detached most."""
    most = max(detached, key=lambda name: detached[name], default=None)
    if most is None or not detached[most]:
        return "no disk is detached"
    times, limit = detached[most] * share, disk_options.FREQUENT_A_DAY
    disk = next(disk for disk, _ in scenario.made_disks() if disk.name == most)
    frequent = f"frequent by Azure's word, more than {limit} a day" if times > limit else f"{limit} or fewer"
    return (
        f"{most} is detached {times:.0f} times a day ({frequent}; its frequent_attach is "
        f"{'on' if disk.frequent_attach else 'off'})"
    )


def _now(
    scenario: Scenario, known: Sequence[Evidence], notes: Iterable[str], family: int, target: Target
) -> str:
    replicates, blocks = scenario.design.replicates, sample_size.planned_blocks(scenario)
    design = f"{many(replicates, 'replicate')} x {many(blocks, 'block')}"
    lines = [f"as it stands, {design} (widths that {percent(power.ASSURANCE)} of runs keep):"]
    for item in known:
        lines += [f"  {item.label} ({item.source})"]
        lines += [f"    {text}" for text in _expected(item, replicates, blocks, family, target)]
    return "\n".join([*lines, *(f"  {note}" for note in notes)])


def _expected(item: Evidence, replicates: int, blocks: int, family: int, target: Target) -> list[str]:
    these = power.half_width_within(item.spread.sd_block, replicates, blocks, item.spread.df_block)
    texts = [f"{Scope.THESE.words()}: {_width(these)}"]
    if replicates == 1:
        return [*texts, "disks like these: refused with one replicate"]
    sd = item.spread.sd_replicate(blocks)
    text = f"disks like these: {_width(power.half_width_of(sd, replicates, df_pilot=item.spread.df_disk))}"
    if target.effect is not None:
        chance = power.power_of(sd, target.effect, replicates, power.ALPHA / family)
        text += f"; finds {percent(target.effect)} with {100 * chance:.0f} % probability"
    return [*texts, text]


def _needs(scenario: Scenario, needs: Needs, target: Target, family: int) -> str:
    asked = (
        []
        if target.half_width is None
        else [f"±{percent(target.half_width)} (95 %, in {percent(power.ASSURANCE)} of runs)"]
    )
    if target.effect is not None and target.power is not None:
        level = f"5 %/{family}, Holm's hardest step" if family > 1 else "5 %"
        asked.append(
            f"{percent(target.power)} power for a difference of {percent(target.effect)} (at {level})"
        )
    lines = [
        f"needed for {' and '.join(asked)}:",
        *_needed_of_these(scenario, needs.these),
        "  disks like these:",
        _ways(needs.like_these),
    ]
    return "\n".join(lines)


def _two_runs(scenario: Scenario, ways: Sequence[Need], target: Target, command: str) -> str:
    """How large each of two runs must be for their comparison."""
    ratio, chance = 1 + (target.between_runs or 0.0), target.power or sample_size.LEAST_POWER
    cheapest = min(ways, key=lambda need: (need.total_s, need.replicates))
    lines = [
        f"needed of each of two runs, to find a ratio of their ratios of {ratio:g} with {percent(chance)} "
        "power (diskbook compare, disks like these):",
        _ways(ways),
        _price(scenario, cheapest),
        _command(scenario, cheapest, command, "least time of machines"),
    ]
    return "\n".join(lines)


def _price(scenario: Scenario, need: Need) -> str:
    """What it costs that the two runs may spread unlike."""
    level = 1 - sample_size.level_of_two_runs(scenario)
    unlike, alike = (intervals.quantile(level, times * (need.replicates - 1)) for times in (1, 2))
    return (
        f"  two runs may spread unlike: with {need.replicates} replicates each, a difference is "
        f"{unlike:.1f} standard errors or more, in place of {alike:.1f} for runs known to spread alike; "
        f"below {ratio_of_ratios.LEAST_REPLICATES} replicates there is no verdict"
    )


def _needed_of_these(scenario: Scenario, need: Need) -> list[str]:
    """Blocks for these disks; none for arms on two machines, which blocks never tell apart."""
    alone = {sample_size.is_on_one_machine(scenario, item) for item in sample_size.headline(scenario)}
    scope, kind = Scope.THESE.words(), " (comparisons on one machine)" * (len(alone) > 1)
    number = f"{many(need.blocks, 'block')} in one replicate"
    blocks = f"  {scope}{kind}: {number}, {need.trials} trials, {duration(need.total_s)}"
    replicates = (
        f"  {scope} (comparisons between machines): no number of blocks, which repeat what sets the machines "
        "apart; replicates do it, for disks like these"
    )
    return [blocks] * (True in alone) + [replicates] * (False in alone)


def _ways(ways: Sequence[Need]) -> str:
    """Ways to reach it, a row each."""
    beyond = "(more than a scenario may have)"
    rows = [
        {
            "blocks": way.blocks,
            "replicates": way.replicates,
            "trials": way.trials,
            "one after another": duration(way.total_s),
            "in parallel": duration(way.replicate_s),
            "USD": "" if way.usd is None else f"{way.usd:.2f}",
            "": beyond if way.replicates > sample_size.MOST_REPLICATES else "",
        }
        for way in ways
    ]
    return table_writers.text(Table.of(rows, right=("one after another", "in parallel", "USD")), indent=4)


def _commands(scenario: Scenario, needs: Needs, command: str) -> str:
    """The run of the cheapest way, and that of the fastest where it is another."""
    cheapest, fastest = needs.cheapest, needs.fastest
    first = "least time of machines" if cheapest.usd is None else "cheapest"
    if fastest == cheapest:
        first += ", and fastest in parallel"
    lines = [_command(scenario, cheapest, command, first)]
    if fastest != cheapest:
        lines.append(_command(scenario, fastest, command, "fastest in parallel"))
    return "\n".join(dict.fromkeys(lines))


def _command(scenario: Scenario, need: Need, command: str, which: str) -> str:
    if need.replicates > sample_size.MOST_REPLICATES:
        return (
            f"No design of {sample_size.MOST_REPLICATES} replicates or fewer reaches that; "
            "ask for less, or make runs longer."
        )
    names = dict.fromkeys(item.workload for item in sample_size.headline(scenario))
    settings = [f"--set design.replicates={need.replicates}"]
    settings += [f"--set workload.{name}.blocks={need.blocks}" for name in names]
    return f"{which}: {command} {' '.join(settings)}"


def _history(scenario: Scenario, runs: Sequence[PriorRun], target: Target) -> str:
    names = ", ".join(run.name for run in runs)
    kept = f"widths that {percent(power.ASSURANCE)} of runs keep"
    lines = [f"with the history of {names} ({runs[0].manifest['provenance']}), disks like these ({kept}):"]
    for (item, direction), prior in history_of(runs, scenario, sample_size.headline(scenario)).items():
        spread = f"s.d. between replicates {percent(math.sqrt(prior.variance))}"
        lines.append(
            f"  {item.arm} / {item.base_arm}, {item.workload} ({direction}): {spread}, "
            f"{many(prior.df, 'degree')} of freedom"
        )
        lines += [f"    {_saving(n, prior, target)}" for n in range(2, prior_runs.MOST_REPLICATES + 1)]
    lines.append(
        f"  The history counts {prior_runs.ALLOWANCE:g} times its s.d.; a run that is clearly noisier has "
        "its own interval. Coverage is simulated: for a run as noisy as its history, and for one "
        f"{prior_runs.TOLERATED:g} times as noisy."
    )
    return "\n".join(lines)


def _saving(n: int, prior: prior_runs.Prior, target: Target) -> str:
    plain, with_it = prior_runs.expected_half_widths(n, prior)
    dfs = tuple(past.df for past in prior.pasts)
    held = [100 * prior_runs.coverage(n, dfs, factor)[1] for factor in (1.0, prior_runs.TOLERATED)]
    if with_it >= plain or min(held) < 100 * prior_runs.LEAST_COVERAGE:
        return f"{n} replicates: ±{percent(plain)}; the history saves nothing"
    enough = " (enough)" if target.half_width is not None and with_it <= target.half_width else ""
    covers = f"coverage {held[0]:.1f} % and {held[1]:.1f} %"
    return f"{n} replicates: ±{percent(with_it)} instead of ±{percent(plain)}{enough}, {covers}"


def target_of(
    half_width: str | None,
    chance: str | None,
    effect: str | None,
    between_runs: str | None = None,
    looks: bool = False,
) -> Target:
    """Read the options of a target; UsageError for no percentage, or a power without an effect to find."""
    if chance is not None and effect is None and between_runs is None:
        raise UsageError("--power needs the difference to find; add for example --effect 2%")
    width = None if half_width is None else parse_percent(half_width, "--half-width")
    between = None if between_runs is None else parse_percent(between_runs, "--between-runs")
    if effect is None and between is None:
        return Target(width, looks=looks)
    found_by = parse_percent(chance or "80%", "--power")
    return Target(
        width, None if effect is None else parse_percent(effect, "--effect"), found_by, between, looks
    )


def sources_of(
    pilot: str | None, past_runs: Sequence[str], sd_disk: str | None, sd_run: str | None
) -> Sources:
    """Open the runs and read the percentages given; UsageError or DiskbookError when one is none."""
    shares = [
        None if text is None else parse_percent(text, option, zero=zero)
        for text, option, zero in ((sd_disk, "--sd-disk", True), (sd_run, "--sd-run", False))
    ]
    earlier = tuple(open_prior_run(name) for name in past_runs)
    return Sources(None if pilot is None else open_prior_run(pilot), earlier, *shares)


def _width(half: float) -> str:
    return "no interval: 2 blocks or more" if math.isnan(half) else f"±{percent(half)}"
