"""The documents that commands print with --json, made of what the commands compute."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from diskbook.cli import documents

if TYPE_CHECKING:
    from diskbook.cloud.azure.sweep import Group
    from diskbook.cost.estimate import Estimate
    from diskbook.design.model import Scenario
    from diskbook.measure.doctor import Check
    from diskbook.measure.plan.sample_size import Target
    from diskbook.measure.plan.terminal import Sources
    from diskbook.measure.runs.outcome import Outcome
    from diskbook.measure.runs.sweep import SweepReport
    from diskbook.report.analysis.why_text import Diagnosed
    from diskbook.report.comparing.compared import Beside
    from diskbook.report.comparing.over_runs import OverRuns
    from diskbook.report.comparing.tables import Outcome as FailOver
    from diskbook.stats.diagnosis import Finding


def overview() -> documents.Overview:
    """List what there is: scenarios, profiles and runs."""
    from diskbook.measure.runs import overview as runs_overview

    rows = [{"scenario": name, **row} for name, row in runs_overview.scenarios().to_dict("index").items()]
    runs, unreadable = runs_overview.run_rows()
    content = {"scenarios": rows, "profiles": runs_overview.profiles(), "runs": runs}
    return documents.Overview.model_validate({**content, "unreadable": unreadable})


def plan(
    scenario: Scenario, target: Target, sources: Sources, estimate: Estimate | None, words: str
) -> documents.Plan:
    """Make the document of a plan; `words` are printed without --json, own hosts have no estimate."""
    from diskbook.design import schedule
    from diskbook.measure.plan import sample_size

    costs = estimate.lines if estimate else ()
    return documents.Plan(
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
        costs=list(map(documents.CostRow.model_validate, costs)),
        needs=_needs(scenario, target, sources),
        words=words,
    )


def _needs(scenario: Scenario, target: Target, sources: Sources) -> list[documents.NeedRow]:
    from diskbook.measure.plan import sample_size, terminal

    if not target.anything:
        return []
    known, _ = terminal.evidence(scenario, sources)
    ways = sample_size.needs(scenario, known, target, len(sample_size.headline(scenario))).like_these
    return list(map(documents.NeedRow.model_validate, ways))


def doctor(subject: str, checks: Sequence[Check]) -> documents.Doctor:
    """Make the document of what the doctor looked at."""
    from diskbook.measure.doctor import all_ok

    rows = list(map(documents.CheckRow.model_validate, checks))
    return documents.Doctor(of=subject, ok=all_ok(checks), checks=rows)


def why(diagnosed: Diagnosed) -> documents.Why:
    """Make the document of what holds the cells of a run."""
    cells = {(row["arm"], row["workload"]): row for row in diagnosed.cells.to_dict("records")}
    return documents.Why(
        run=diagnosed.analysis.run.name,
        provenance=diagnosed.analysis.provenance,
        doubts=list(diagnosed.doubts),
        cells=[_cell(finding, cells[finding.arm, finding.workload]) for finding in diagnosed.findings],
    )


def _cell(finding: Finding, cell: Mapping[Hashable, Any]) -> documents.CellRow:
    return documents.CellRow(
        arm=finding.arm,
        workload=finding.workload,
        verdict=finding.verdict,
        cause=finding.cause,
        remedy=finding.remedy,
        iops=float(cell["iops"]),
        mb_s=float(cell["mb_s"]),
        lat_mean_ms=float(cell["lat_mean_ms"]),
        platform=str(cell["platform"]),
    )


def protocol(name: str, arm: str | None = None, workload: str | None = None) -> documents.Protocol:
    """Say what each comparison of a run lacks of the protocol; see `why_text.protocol_of_run`."""
    from diskbook.report.analysis import why_text
    from diskbook.report.analysis.run import analyse

    a = analyse(name)
    rows = list(map(documents.ComparisonRow.model_validate, why_text.comparisons(a, arm, workload)))
    return documents.Protocol(run=a.run.name, provenance=a.provenance, comparisons=rows)


def report(outcome: Outcome) -> documents.Report:
    """Make the document of what a run ended in."""
    from diskbook.report.show import headlines

    rows = headlines.read_comparisons(outcome.run)[list(documents.Judged.model_fields)].to_dict("records")
    return documents.Report(
        run=outcome.run.name,
        provenance=outcome.run.manifest["provenance"],
        answer=outcome.headline,
        protocol=outcome.protocol,
        report=str(outcome.report),
        comparisons=[documents.Judged.model_validate(row) for row in rows],
    )


def sweep(report: SweepReport, not_deleted: Sequence[str] = ()) -> documents.Sweep:
    """Make the document of a sweep as it was listed, with a sentence for each thing not deleted."""
    return documents.Sweep(
        groups=[_group(place.title, group) for place in report.places for group in place.groups],
        here=list(map(documents.LeftoverRow.model_validate, report.leftovers)),
        notes=list(report.notes),
        n_to_go=report.goes,
        not_deleted=list(not_deleted),
    )


def _group(cloud: str, group: Group) -> documents.GroupRow:
    from datetime import UTC

    label = group.label
    return documents.GroupRow(
        cloud=cloud,
        group=group.name,
        run=label.run if label else "",
        expires_utc=label.expires.astimezone(UTC).isoformat() if label else "",
        holds=group.holds,
        state=group.state,
        goes=group.goes,
    )


def compare(beside: Beside, outcome: FailOver | None = None) -> documents.Compare:
    """Make the document of runs compared with the first of them; what is not there is null."""
    from diskbook.report.comparing import tables

    names = [item.name for item in beside.runs]
    content = {
        "provenance": beside.provenance,
        "runs": [{head or "letter": cell for head, cell in row.items()} for row in tables.runs_table(beside)],
        "changed": [
            {"kind": row.kind, "what": row.what, "values": dict(zip(names, row.values, strict=True))}
            for row in beside.changes
        ],
        "comparisons": tables.records(beside),
        "between_runs": [
            {
                **dict(zip(("arm", "base_arm", "workload", "direction", "metric"), item.key, strict=True)),
                **item.spread._asdict(),
                "has_disks": item.has_disks,
            }
            for item in beside.spreads
        ],
        "left_out": beside.left_out,
        "fail_over": outcome,
    }
    return documents.Compare.model_validate(content)


def compare_runs(over: OverRuns) -> documents.CompareRuns:
    """Make the document of one scenario over all its runs."""
    from diskbook.report.comparing import over_runs

    return documents.CompareRuns(
        scenario=over.scenario,
        provenance=over.provenance,
        n_runs=over.n_runs,
        n_replicates=over.n_replicates,
        first_day_utc=over.first_day,
        last_day_utc=over.last_day,
        comparisons=[
            documents.OverRunsRow(**over_runs.record(row), verdicts=dict(row.verdicts)) for row in over.rows
        ],
        left_out=list(map(documents.LeftOutRuns.model_validate, over.left_out)),
    )
