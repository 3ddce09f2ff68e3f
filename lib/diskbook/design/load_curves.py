"""Loads at shares of a cap (`rate_of_cap`), made into loads of one rate each.

A cap is an arm's: the lowest documented limit of its disk and machine that needs no credit, in IOPS of the
load's block size (`caps.lasting_iops`). Arms of one cap share a load; where caps differ each cap has its own.
"""

from __future__ import annotations

from collections.abc import Iterator

from diskbook.design import caps
from diskbook.design.model import LONGEST_NAME, Scenario, Workload, depth_of_rate


def expand(scenario: Scenario) -> Scenario:
    """Replace each load at shares of a cap by loads at rates: "reads" by "reads-10", "reads-25" and so on.

    Where its arms have several caps their names say which: "reads-10-of-5000", with those arms alone.

    Raises
    ------
    ValueError
        With one sentence, where a cap is not known or the load says its rate in another way.
    """
    if not any(load.rate_of_cap for load in scenario.workload):
        return scenario
    loads = [made for load in scenario.workload for made in _expanded(scenario, load)]
    return scenario.model_copy(update={"workload": tuple(loads)})


def _expanded(scenario: Scenario, load: Workload) -> Iterator[Workload]:
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
            if len(name) > LONGEST_NAME:
                raise ValueError(f"{where} would make the name {name}, which is too long; shorten the load's")
            # Of several caps each has its arms; a single one leaves the load to those that it had.
            own = arms if len(arms_of) > 1 else load.arms
            rate = _whole(share * cap, load)
            jobs = (
                {}
                if load.model_fields_set & {"threads", "queue_depth"}
                else {"queue_depth": depth_of_rate(rate)}
            )
            yield load.model_copy(update={"name": name, "rate": rate, "rate_of_cap": (), "arms": own, **jobs})


def _by_cap(scenario: Scenario, load: Workload, where: str) -> dict[float, tuple[str, ...]]:
    """Names of the load's arms by their cap, in the order of the arms."""
    arms_of: dict[float, tuple[str, ...]] = {}
    for arm in scenario.arm:
        if not load.meets(arm.name):
            continue
        try:
            cap = caps.lasting_iops(scenario, arm, load)
        except ValueError as reason:
            raise ValueError(
                f"{where} needs a known cap, and {arm.name} {reason}; set rate, or take it out of arms"
            ) from None
        arms_of[cap] = (*arms_of.get(cap, ()), arm.name)
    return arms_of


def _whole(rate: float, load: Workload) -> float:
    """Rate of whole I/Os a second in each thread, as the tools hold it."""
    return float(max(1, round(rate / load.threads)) * load.threads)
