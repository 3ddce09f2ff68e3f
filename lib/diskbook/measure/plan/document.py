"""`diskbook plan --json`: the plan's numbers."""

from __future__ import annotations

from diskbook.cost.estimate import Estimate
from diskbook.design import schedule
from diskbook.design.model import Scenario
from diskbook.measure.plan import sample_size, text as plan_text
from diskbook.measure.plan.sample_size import Target
from diskbook.measure.plan.text import Sources
from diskbook.report.show.documents import CostRow, NeedRow, Plan


def document(
    scenario: Scenario, target: Target, sources: Sources, estimate: Estimate | None, words: str
) -> Plan:
    """The plan as a record.

    Parameters
    ----------
    scenario, target, sources
        As for `plan.text.plan_text`.
    estimate
        What it costs; None on hosts of one's own.
    words
        What is printed without --json.
    """
    return Plan(
        scenario=scenario.name,
        preset=scenario.preset,
        region=scenario.region,
        n_replicates=scenario.design.replicates,
        n_trials=sample_size.trials(scenario),
        trials_s=schedule.seconds(scenario),
        around_s=sample_size.around_s(scenario),
        expected_usd=estimate.usd if estimate else None,
        at_worst_usd=estimate.worst_usd if estimate else None,
        prices=estimate.source if estimate else "",
        costs=[
            CostRow(
                what=line.what,
                count=line.count,
                hours=line.hours,
                expected_usd=line.usd,
                at_worst_usd=line.worst_usd,
            )
            for line in (estimate.lines if estimate else ())
        ],
        needs=_needs(scenario, target, sources),
        words=words,
    )


def _needs(scenario: Scenario, target: Target, sources: Sources) -> list[NeedRow]:
    if not target.anything:
        return []
    known, _ = plan_text.evidence(scenario, sources)
    ways = sample_size.needs(scenario, known, target, len(sample_size.headline(scenario))).like_these
    return [
        NeedRow(n_blocks=way.blocks, n_replicates=way.replicates, n_trials=way.trials, total_s=way.total_s)
        for way in ways
    ]
