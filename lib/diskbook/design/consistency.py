"""Check that the records of a scenario fit one another: names, references, pairings, states, tools, trials.

Loads may ask for a state of the disk or of its host cache only where that state can be made.

References are the names in a scenario that mean other entries of it.
"""

from diskbook.design.model import IMPORTED, Arm, Comparison, Scenario, Workload
from diskbook.facts import neighbours
from diskbook.facts.catalog import OWN_DISK
from diskbook.facts.errors import unknown


def check_states(scenario: Scenario) -> None:
    """Hold region, data and cache state of every load against what its arms measure.

    Not of imported results, which are as they are.

    Raises ValueError with one sentence on the first that cannot be had.
    """
    if scenario.scenario.article == IMPORTED:
        return
    for load in scenario.workload:
        _check_load(load)
    for arm, load in scenario.cells:
        _check_cell(scenario, arm, load)


def _check_load(load: Workload) -> None:
    where = f"[[workload]] {load.name}"
    if load.data == "compressible" and not load.write_pct:
        raise ValueError(
            f'{where}: data = "compressible", but it writes nothing; leave data out, or set write_pct'
        )
    if load.data == "compressible" and (load.verbatim is not None or load.is_fleet):
        raise ValueError(f"{where}: its line of DiskSpd says what is written (-Z); leave data out")
    if load.region == "unwritten" and load.verbatim is not None:
        raise ValueError(f"{where}: its line of DiskSpd says where it begins (-B); leave region out")
    if load.region == "unwritten" and load.cache_state != "any":
        raise ValueError(f"{where}: no cache holds what nobody wrote; leave cache_state or region out")


def _check_cell(scenario: Scenario, arm: Arm, load: Workload) -> None:
    """A place or a cache of one's own takes a disk that is attached by itself."""
    where = f"[[workload]] {load.name} on {arm.name}"
    asked = [
        f'{key} = "{value}"'
        for key, value, default in (
            ("region", load.region, "filled"),
            ("cache_state", load.cache_state, "any"),
        )
        if value != default
    ]
    if not asked:
        return
    disk = None if arm.volume else scenario.disk_named(arm.disk)
    if disk is None or disk.ephemeral or disk.sku == OWN_DISK:
        raise ValueError(
            f"{where}: {asked[0]} is for managed disks that arms measure by themselves; leave it out, or set "
            "arms to such"
        )
    if load.cache_state == "warm" and scenario.machine_named(arm.machine).os != "linux":
        raise ValueError(
            f'{where}: cache_state = "warm" is for Linux machines, where fio reads the working set'
        )


def refer(scenario: Scenario, where: str, **references: str) -> None:
    """Make sure that names, by kind of entry, are those of entries; ValueError with the nearest if not."""
    for kind, name in references.items():
        known = [item.name for item in getattr(scenario, kind)]
        if name not in known:
            raise ValueError(str(unknown(kind, name, known, where)))


MOST_TRIALS = 100_000
MOST_HEADLINES = 5
MOST_HOURS = 72.0
"""From the first block of a replicate to its last: machines shut themselves down then (`azure.expiry`)."""


def check(scenario: Scenario) -> None:
    """Hold the records of a scenario against one another.

    Raises ValueError with one sentence on the first that does not fit.
    """
    for kind in ("machine", "disk", "cluster", "volume", "arm", "workload", "check", "drill", "loss"):
        _unique(kind, [item.name for item in getattr(scenario, kind)])
    if scenario.has_clusters:
        neighbours.volume_rules.check(scenario)
    _check_arms(scenario)
    check_states(scenario)
    for item in scenario.comparison:
        _check_comparison(scenario, item)
    _check_tools(scenario)
    _check_partners(scenario)
    if sum(item.family == "headline" for item in scenario.comparison) > MOST_HEADLINES:
        raise ValueError(
            f"[[comparison]]: at most {MOST_HEADLINES} may be headline; call the others exploratory"
        )
    _check_looks(scenario)
    _check_spread(scenario)
    _check_number_of_trials(scenario)


def _check_looks(scenario: Scenario) -> None:
    """Looks come one after the other, the last at the end."""
    looks, unit, replicates = scenario.design.looks, scenario.design.look_unit, scenario.design.replicates
    last = scenario.most_blocks if unit == "blocks" else replicates
    if looks and (list(looks) != sorted(set(looks)) or looks[-1] != last):
        raise ValueError(
            f"[design] looks = {list(looks)}: write numbers of {unit} that grow, the last one that of "
            f"all, {last}"
        )
    if unit == "blocks" and not looks:
        raise ValueError(f'[design] look_unit = "blocks" without looks: write for example looks = [{last}]')
    if unit == "blocks" and replicates > 1:
        raise ValueError(
            f'[design] look_unit = "blocks": the verdict on {replicates} replicates rests on replicates, '
            "which blocks do not add to; write looks in replicates, or replicates = 1"
        )


def _check_spread(scenario: Scenario) -> None:
    """Blocks that are to be spread over hours must be several, and come to an end while machines stand."""
    design, hours, blocks = scenario.design, scenario.gap_h, scenario.most_blocks
    if design.spread is not None and design.hours_between_blocks:
        raise ValueError(
            "[design]: spread and hours_between_blocks both say how far apart blocks are; write spread alone"
        )
    where = f"[design] hours_between_blocks = {hours:g}"
    if design.spread is not None:
        where = f'[design] spread = "{design.spread}"'
    if hours and blocks < 2:
        raise ValueError(f"{where}: there is one block, and nothing to spread; plan blocks = 5 or more")
    if hours * (blocks - 1) > MOST_HOURS:
        raise ValueError(
            f"{where}: {blocks} blocks would take {hours * (blocks - 1):g} h, and machines stand for "
            f"{MOST_HOURS:g} h at most; take fewer hours, or fewer blocks and more replicates"
        )


def _unique(kind: str, names: list[str]) -> None:
    twice = {name for name in names if names.count(name) > 1}
    if twice:
        raise ValueError(f"[[{kind}]]: the name '{min(twice)}' is used twice; names must differ")


def _check_arms(scenario: Scenario) -> None:
    for arm in scenario.arm:
        measured = {"volume": arm.volume} if arm.volume else {"disk": arm.disk}
        refer(scenario, f"[[arm]] {arm.name}", **measured, machine=arm.machine)
    for load in scenario.workload:
        for name in load.arms:
            refer(scenario, f"[[workload]] {load.name}", arm=name)
    without = [arm.name for arm in scenario.arm if arm.placement is None]
    if 0 < len(without) < len(scenario.arm):
        raise ValueError(
            f"[[arm]] {without[0]}: other arms have a placement and this one has none; a block measures the "
            "arms of one placement, so give one to every arm, or to none"
        )


def _check_comparison(scenario: Scenario, item: Comparison) -> None:
    where = f"[[comparison]] {item.arm} / {item.base_arm}"
    refer(scenario, where, arm=item.arm, workload=item.workload)
    refer(scenario, where, arm=item.base_arm)
    for arm in (item.arm, item.base_arm):
        if not scenario.workload_named(item.workload).meets(arm):
            raise ValueError(f"{where}: {item.workload} is not offered to {arm}; add it to its arms")
    _check_pairing(scenario, item, where)
    _check_frequent_attach(scenario, item, where)


def _check_pairing(scenario: Scenario, item: Comparison, where: str) -> None:
    arm, base = scenario.arm_named(item.arm), scenario.arm_named(item.base_arm)
    if item.pairing == "same-machine" and arm.machine != base.machine:
        raise ValueError(
            f"{where}: pairing same-machine, but the arms are on {arm.machine} and {base.machine}; "
            "use same-disk or replicate"
        )
    if item.pairing == "same-disk" and (arm.disk, arm.volume) != (base.disk, base.volume):
        uses, base_uses = arm.disk or arm.volume, base.disk or base.volume
        raise ValueError(
            f"{where}: pairing same-disk, but the arms use {uses} and {base_uses}; "
            "use same-machine or replicate"
        )


def _check_frequent_attach(scenario: Scenario, item: Comparison, where: str) -> None:
    """A disk optimized for frequent attach lies elsewhere than others: it is compared with its like only."""
    arms = [scenario.arm_named(name) for name in (item.arm, item.base_arm)]
    first, second = (scenario.disk_of(arm) for arm in arms)
    if first.frequent_attach != second.frequent_attach:
        raise ValueError(
            f"{where}: of the disks {first.name} and {second.name} one alone has frequent_attach, and is "
            "another object (it does not follow its machine's fault domain); set it on both or none"
        )


def _check_tools(scenario: Scenario) -> None:
    for arm, load in scenario.cells:
        tools = scenario.machine_named(arm.machine).tools
        if load.tool not in ("any", *tools) and scenario.scenario.article != IMPORTED:
            has = " and ".join(tools)
            raise ValueError(
                f"[[workload]] {load.name}: the machine of {arm.name} has {has}, not {load.tool}; "
                "leave tool out, or set arms"
            )
        if load.ioengine != "libaio" and scenario.tool_of(arm, load) != "fio":
            raise ValueError(
                f"[[workload]] {load.name}: ioengine is fio's, and {arm.name} is measured with "
                f"{scenario.tool_of(arm, load)}; leave ioengine out, or set arms"
            )


def _check_partners(scenario: Scenario) -> None:
    for check in scenario.check:
        where = f"[[check]] {check.name}"
        refer(scenario, where, disk=check.disk, machine=check.machine)
        if check.kind != "attach-refused":
            if check.from_machine is None:
                raise ValueError(f"{where}: a {check.kind} check needs from_machine")
            refer(scenario, where, machine=check.from_machine)
    for drill in scenario.drill:
        where = f"[[drill]] {drill.name}"
        refer(scenario, where, disk=drill.disk, machine=drill.machine)
        refer(scenario, where, machine=drill.from_machine)


def _check_number_of_trials(scenario: Scenario) -> None:
    times = scenario.design.replicates * scenario.design.repeats * len(scenario.arm)
    trials = times * sum(load.blocks for load in scenario.workload)
    if trials > MOST_TRIALS:
        raise ValueError(
            f"[design]: replicates, repeats and blocks make {trials} trials; "
            f"at most {MOST_TRIALS}, take fewer"
        )
