"""Workloads made from a scenario: sweeps over grids, rates at shares of a cap, and probes.

A sweep with `instances` is of fleets; they do not show in the names of its loads, which are each machine's.

Sweeps of one grid for several groups of arms give workloads of one name, which are one workload for all of
them: that is what their ratios are made of.

Loads at shares of a cap (`rate_of_cap`) become loads of one rate each.

A cap is an arm's: the lowest documented limit of its disk and machine that needs no credit, in IOPS of the
load's block size (`lasting_iops`). Arms of one cap share a load; where caps differ each cap has its own.

Probes are short loads. They show that no limit holds the single I/Os that are compared.

A limit below the rate of a single I/O looks like a slow disk, until two I/Os in flight give no higher rate.
"""

from collections.abc import Iterator, Mapping
from typing import Annotated, Any

from pydantic import BeforeValidator, ConfigDict, Field

from diskbook.design import model
from diskbook.facts import catalog, disk_options
from diskbook.facts.units import KIB, MB

_BlockSize = Annotated[int, BeforeValidator(model.block_bytes), Field(gt=0)]
_Axis = Field(strict=False, min_length=1, max_length=20)


class Sweep(model.Record):
    """A grid of loads. Its other keys are those of each workload; they are checked there."""

    model_config = ConfigDict(frozen=True, extra="allow", strict=True)

    name: model.Name
    threads: Annotated[tuple[Annotated[int, Field(ge=1, le=64)], ...], _Axis]
    block_sizes: Annotated[tuple[_BlockSize, ...], _Axis]
    write_pcts: Annotated[tuple[Annotated[int, Field(ge=0, le=100)], ...], _Axis] = (0, 100)
    queue_depth: Annotated[int, Field(ge=1, le=1024)] = 1
    arms: Annotated[tuple[str, ...], Field(strict=False)] = ()


class Sweeps(model.Record):
    """All sweeps of a file."""

    sweep: tuple[Sweep, ...] = Field(default=(), strict=False)


def workloads(raw: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Make the workloads of a file's sweeps, as rows of the file.

    - `raw`: the file's tables; only `sweep` is read.

    Returns in the order of the sweeps, each name once.

    Raises ValueError: also as pydantic's ValidationError: where a sweep is not what it must be, or where two
    give loads of one name that differ in more than their arms.
    """
    rows: dict[str, dict[str, Any]] = {}
    for sweep in Sweeps.model_validate({"sweep": raw.get("sweep", [])}).sweep:
        for row in _rows(sweep):
            earlier = rows.setdefault(row["name"], row)
            if earlier is row:
                continue
            if any(earlier.get(key) != row.get(key) for key in (earlier.keys() | row.keys()) - {"arms"}):
                raise ValueError(
                    f"[[sweep]] {sweep.name}: {row['name']} is a load of an earlier sweep, which differs in "
                    "more than arms; give both the same keys"
                )
            arms = dict.fromkeys([*earlier["arms"], *row["arms"]]) if earlier["arms"] and row["arms"] else ()
            rows[row["name"]] = {**earlier, "arms": list(arms)}
    return list(rows.values())


def _rows(sweep: Sweep) -> Iterator[dict[str, Any]]:
    common = {**(sweep.model_extra or {}), "queue_depth": sweep.queue_depth, "arms": list(sweep.arms)}
    for block in sweep.block_sizes:
        for write_pct in sweep.write_pcts:
            for threads in sweep.threads:
                load = {"block_size": block, "write_pct": write_pct, "threads": threads}
                yield {**common, **load, "name": _name(block, write_pct, threads, sweep.queue_depth)}


def _name(block: int, write_pct: int, threads: int, depth: int) -> str:
    """Name a load for what it is, e.g. "read-4k-12x8": threads x outstanding of each."""
    kind = {0: "read", 100: "write"}.get(write_pct, f"write{write_pct}")
    size = f"{block // KIB}k" if block % KIB == 0 else str(block)
    return f"{kind}-{size}-{threads}x{depth}"


def disk_caps(scenario: model.Scenario, arm: model.Arm) -> dict[str, float | None]:
    """Base limits of an arm's disk and machine, as columns of trials; a disk of the user's own has none."""
    disk = scenario.disk_named(arm.disk)
    size = catalog.find_vm_size(scenario.machine_named(arm.machine).size)
    if disk.sku == catalog.OWN_DISK:
        return {}
    cached = disk.ephemeral or disk.cache != "None"
    values: dict[str, float | None] = {}
    if size is not None and cached:
        values |= {"cap_vm_cached_iops": size.cached_iops, "cap_vm_cached_mb_s": size.cached_mb_s}
    if disk.ephemeral:
        return values
    own = disk_options.limits(disk)
    values |= {"cap_disk_iops": own.iops, "cap_disk_mb_s": own.mb_s}
    if size is not None:
        values |= {"cap_vm_iops": size.uncached_iops, "cap_vm_mb_s": size.uncached_mb_s}
    return values


def lasting_iops(scenario: model.Scenario, arm: model.Arm, load: model.Workload) -> float:
    """Return the lowest documented limit of a cell that needs no credit, in IOPS of its block size.

    What bursts on demand lasts as long as it is paid for, so a disk's limit is then that of the burst.

    Raises ValueError with the reason in half a sentence, where no table tells it.
    """
    if arm.volume:
        raise ValueError("measures a volume, whose cap depends on its kind, its nodes and what is read")
    disk, values = scenario.disk_named(arm.disk), disk_caps(scenario, arm)
    if disk.cache != "None":
        raise ValueError("has a host cache, so its cap depends on what the cache answers")
    if disk.sku == catalog.OWN_DISK:
        raise ValueError("is a disk of your own, which has no documented cap")
    if not disk.ephemeral:
        values |= zip(("cap_disk_iops", "cap_disk_mb_s"), disk_options.limits(disk).lasting, strict=True)
    size = scenario.machine_named(arm.machine).size
    whose = "cap_vm_cached" if disk.ephemeral else "cap_vm"
    if not values.get(f"{whose}_iops"):
        raise ValueError(f"is on {size}, whose cap is in no table")
    rates = [
        value * (MB / load.block_size_bytes if column.endswith("mb_s") else 1.0)
        for column, value in values.items()
        if value
    ]
    return min(rates)


def expand_shares(scenario: model.Scenario) -> model.Scenario:
    """Replace each load at shares of a cap by loads at rates: "reads" by "reads-10", "reads-25" and so on.

    Where its arms have several caps their names say which: "reads-10-of-5000", with those arms alone.

    Raises ValueError with one sentence, where a cap is not known or the load says its rate in another way.
    """
    if not any(load.rate_of_cap for load in scenario.workload):
        return scenario
    loads = [made for load in scenario.workload for made in _expanded(scenario, load)]
    return scenario.model_copy(update={"workload": tuple(loads)})


def _expanded(scenario: model.Scenario, load: model.Workload) -> Iterator[model.Workload]:
    if not load.rate_of_cap:
        yield load
        return
    where = f"[[workload]] {load.name}: rate_of_cap"
    if load.verbatim is not None or load.rate is not None:
        other = "verbatim says the rate" if load.verbatim is not None else "rate says it in IOPS"
        raise ValueError(f"{where} stands beside a rate: {other}; keep one of both")
    arms_of = _by_cap(scenario, load, where)
    for cap, arms in arms_of.items():
        for share in load.rate_of_cap:
            name = f"{load.name}-{100 * share:g}".replace(".", "-")
            name += f"-of-{cap:.0f}" if len(arms_of) > 1 else ""
            if len(name) > model.LONGEST_NAME:
                raise ValueError(f"{where} would make the name {name}, which is too long; shorten the load's")
            # Of several caps each has its arms; a single one leaves the load to those that it had.
            own = arms if len(arms_of) > 1 else load.arms
            rate = _whole(share * cap, load)
            jobs = (
                {}
                if load.model_fields_set & {"threads", "queue_depth"}
                else {"queue_depth": model.depth_of_rate(rate)}
            )
            yield load.model_copy(update={"name": name, "rate": rate, "rate_of_cap": (), "arms": own, **jobs})


def _by_cap(scenario: model.Scenario, load: model.Workload, where: str) -> dict[float, tuple[str, ...]]:
    """Names of the load's arms by their cap, in the order of the arms."""
    arms_of: dict[float, tuple[str, ...]] = {}
    for arm in scenario.arm:
        if not load.meets(arm.name):
            continue
        try:
            cap = lasting_iops(scenario, arm, load)
        except ValueError as reason:
            raise ValueError(
                f"{where} needs a known cap, and {arm.name} {reason}; set rate, or take it out of arms"
            ) from None
        arms_of[cap] = (*arms_of.get(cap, ()), arm.name)
    return arms_of


def _whole(rate: float, load: model.Workload) -> float:
    """Rate of whole I/Os a second in each thread, as the tools hold it."""
    return float(max(1, round(rate / load.threads)) * load.threads)


PROBE_SUFFIX = "-probe"


def expand_probes(scenario: model.Scenario) -> model.Scenario:
    """Add a load of two I/Os in flight to each load of single I/Os that is compared and has no deeper one.

    It is measured in the first block, for `design.probe_s`, by the compared arms that have no deeper load of
    its kind and block size. Without `design.probe_s` none is added.
    """
    probes = tuple(_probes(scenario)) if scenario.design.probe_s else ()
    return scenario.model_copy(update={"workload": (*scenario.workload, *probes)}) if probes else scenario


def _probes(scenario: model.Scenario) -> Iterator[model.Workload]:
    deeper = [load for load in scenario.workload if load.outstanding > 1 and load.rate is None]
    known = {(_kind(load), arm.name) for load in deeper for arm in scenario.arm if load.meets(arm.name)}
    for load in scenario.workload:
        compared = {
            arm
            for item in scenario.comparison
            if item.workload == load.name and item.metric.startswith("lat")
            for arm in (item.arm, item.base_arm)
        }
        arms = tuple(
            arm.name
            for arm in scenario.arm
            if arm.name in compared and load.meets(arm.name) and (_kind(load), arm.name) not in known
        )
        if arms and _can_be_probed(load):
            known |= {(_kind(load), arm) for arm in arms}
            yield _probe(load, arms, scenario.design.probe_s)


def _kind(load: model.Workload) -> tuple[int, int, bool]:
    """What loads have in common that one limit may hold."""
    return load.block_size, load.write_pct, load.sync == "fdatasync"


def _can_be_probed(load: model.Workload) -> bool:
    """Whether it is a closed loop of single I/Os that another trial repeats, whatever came before it."""
    again = load.region == "filled" and load.cache_state == "any" and load.verbatim is None
    return again and load.outstanding == 1 and load.rate is None and not load.is_fleet


def _probe(load: model.Workload, arms: tuple[str, ...], seconds: float) -> model.Workload:
    """Two I/Os of a load in flight; commits in a thread each, since a sync waits for all of its own."""
    two = {"threads": 2} if load.sync == "fdatasync" else {"queue_depth": 2}
    name = load.name[: model.LONGEST_NAME - len(PROBE_SUFFIX)].rstrip("-") + PROBE_SUFFIX
    return load.model_copy(update={**two, "name": name, "arms": arms, "blocks": 1, "runtime_s": seconds})
