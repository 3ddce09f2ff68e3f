"""Planned looks at a run: it stops at the first one at which every headline that can be decided is decided.

What gates withhold (capped, invalid, not assessable) more blocks would not decide, so it holds nothing up.
"""

from collections.abc import Iterable, Iterator
from datetime import date

from diskbook.cloud.azure import expiry
from diskbook.cost import budget, estimate
from diskbook.design.model import Scenario
from diskbook.design.schedule import Block
from diskbook.design.vocabulary import Scope, Verdict
from diskbook.facts.quantities import many
from diskbook.facts.units import duration
from diskbook.report.analysis.computed import computed
from diskbook.results import plan as plans
from diskbook.results.run import Run


def until_decided(run: Run, blocks: Iterable[Block]) -> Iterator[Block]:
    """Yield blocks until a planned look finds everything decided; each look goes into the ledger."""
    for block in blocks:
        if _is_decided(run):
            return
        yield block


def _is_decided(run: Run) -> bool:
    """Whether the run stops here: at a look that it has come to, or at an earlier one."""
    design, whole = run.scenario.design, plans.progress(run).whole
    if plans.stopped_at(run) is not None:
        return True
    if whole not in design.looks[:-1]:
        return False
    left = undecided(run)
    if left is None:
        return False
    what = f"look after {whole} of {design.looks[-1]} {design.look_unit}"
    if left:
        text = f"{what}: not decided yet: {', '.join(left)}"
    else:
        text = f"{what}: every headline that can be decided is decided, so the run stops; {saved(run, whole)}"
    run.append("look", unit=design.look_unit, number=whole, stops=not left, text=text)
    return not left


def undecided(run: Run) -> list[str] | None:
    """Name the headline comparisons that more measuring may decide; None where a run has no headline.

    Blocks decide for the very disks measured, replicates for disks like these.
    """
    table = computed(run).compared.table
    scope = Scope.THESE if run.scenario.design.look_unit == "blocks" else Scope.LIKE_THESE
    rows = table[(table["family"] == "headline") & (table["scope"] == scope)]
    if rows.empty:
        return None
    is_open = rows["verdict"].map(Verdict.of) == Verdict.INCONCLUSIVE
    rows = rows[is_open & rows["p_adjusted"].notna()]
    return [f"{row.arm} / {row.base_arm}, {row.workload} ({row.direction})" for row in rows.itertuples()]


def saved(run: Run, number: int) -> str:
    """Say what a run saves that stops after so many blocks or replicates, in hours and dollars."""
    scenario, design = run.scenario, run.scenario.design
    short, left = cut_at(scenario, number), many(design.looks[-1] - number, design.look_unit[:-1])
    seconds, at_stop_s = (part.design.replicates * estimate.life_s(part) for part in (scenario, short))
    words = f"this saves {left} and {duration(seconds - at_stop_s)} of the machines"
    if run.manifest["cloud"] == "inventory":
        return words
    life = expiry.lifetime(run.manifest)
    usd, at_stop = (budget.estimated(part, None, life, date.today()).usd for part in (scenario, short))
    where = " (on Azure)" if run.manifest["cloud"] == "emulator" else ""
    return f"{words}, about {usd - at_stop:.2f} USD{where}"


def cut_at(scenario: Scenario, number: int) -> Scenario:
    """Return the scenario as a run measures it that stops at the look after so many blocks or replicates."""
    if scenario.design.look_unit == "replicates":
        design = scenario.design.model_copy(update={"replicates": number})
        return scenario.model_copy(update={"design": design})
    design = scenario.design.model_copy(update={"hours_between_blocks": scenario.gap_h, "spread": None})
    loads = tuple(load.model_copy(update={"blocks": min(load.blocks, number)}) for load in scenario.workload)
    return scenario.model_copy(update={"design": design, "workload": loads})
