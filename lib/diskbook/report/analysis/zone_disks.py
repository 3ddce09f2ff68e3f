"""The analysis of `zone-disks`: does zone redundancy cost latency, from each zone, and does it cost IOPS?"""

from __future__ import annotations

import math
from collections.abc import Sequence

from diskbook.design.vocabulary import WITHHELD, Label, Verdict
from diskbook.facts import quantities
from diskbook.report.analysis.run import Analysis
from diskbook.report.figures import Picture
from diskbook.report.show import headlines, locations, sentences
from diskbook.report.show.sentences import Row

COSTS, SAVES, EQUAL, OPEN = "costs", "saves", "equal", "open"
"""What a comparison says of zone redundancy: a difference for the worse or the better, none, or nothing."""
_LIMIT_SETS = ", which sets the rate"


def pictures(a: Analysis) -> tuple[Picture, ...]:
    """Figures of this analysis, in the order of the notebook."""
    return (a.ratios, a.all_trials, a.percentile_plot)


def headline(a: Analysis) -> str:
    """Answer both parts of the question with yes or no and the reason; "" for runs without placements.

    Runs that were begun before zones had an LRS disk each compare ZRS in one zone only, and keep the answer
    that all scenarios have.
    """
    if not any(arm.placement for arm in a.scenario.arm):
        return ""
    rows = headlines.ordered(a.comparisons, a.scenario).to_dict("records")
    latency = [row for row in rows if row["family"] == "headline"]
    rates = [row for row in rows if row["metric"] == "iops"]
    if not latency:
        return ""
    text = (
        f"{a.provenance}: does zone redundancy cost latency? {_latency(latency, a)}. "
        f"Does it cost IOPS? {_iops(rates, a)}"
    )
    return locations.with_physical_zones(text, a.trials)


def _latency(rows: Sequence[Row], a: Analysis) -> str:
    """Say yes where any load takes longer, no where none does, and each load's ratio to LRS by zone."""
    findings = [_finding(row) for row in rows]
    answer = next(
        (word for finding, word in ((COSTS, "Yes"), (OPEN, "Not decided")) if finding in findings), "No"
    )
    by_load: dict[str, list[str]] = {}
    for row, finding in zip(rows, findings, strict=True):
        by_load.setdefault(_load(row, a), []).append(_clause(row, finding, a))
    loads = [f"{load}: {'; '.join(of)}" for load, of in by_load.items()]
    return f"{answer}, against LRS on the same machine. {'. '.join(loads)}"


def _iops(rows: Sequence[Row], a: Analysis) -> str:
    """Say yes where any rate is lower, no where all are decided and none is; with the limit that sets it."""
    findings = [_finding(row) for row in rows]
    if not rows:
        return "Not measured"
    if COSTS in findings:
        lower = [_rate(row, a) for row, finding in zip(rows, findings, strict=True) if finding == COSTS]
        return f"Yes: the rate is lower with {'; '.join(lower)}"
    if OPEN in findings:
        lacking = [_rate(row, a) for row, finding in zip(rows, findings, strict=True) if finding == OPEN]
        return f"Not decided for {'; '.join(lacking)}"
    limits = {limit for row in rows for limit in _limits(row)}
    why = (
        f", because the {limits.pop()} sets it for both" if len(limits) == 1 and _all_capped(rows, a) else ""
    )
    return f"No: the rate at depth is that of LRS{why} ({'; '.join(_rate(row, a) for row in rows)})"


def _finding(row: Row) -> str:
    verdict, is_rate = Verdict.of(row["verdict"]), not str(row["metric"]).startswith("lat")
    if verdict is Verdict.EQUIVALENT:
        return EQUAL
    if verdict is not Verdict.DIFFERENCE:
        return OPEN
    return COSTS if (row["ratio"] < 1) == is_rate else SAVES


def _clause(row: Row, finding: str, a: Analysis) -> str:
    """Ratio of one zone with its interval, e.g. "2.46 times, 95 % CI 2.35 to 2.59, from zone 1"."""
    zone = f"from zone {_zone(row, a)}"
    if finding == OPEN:
        return f"not decided {zone}: {row['verdict']}"
    same = f"the same {zone}, " if finding == EQUAL else ""
    return f"{same}{_ratio(row)}" + (f", {zone}" if finding != EQUAL else "")


def _rate(row: Row, a: Analysis) -> str:
    load = a.scenario.workload_named(row["workload"])
    kind = "writes" if load.write_pct else "reads"
    return f"{kind} from zone {_zone(row, a)}, {_ratio(row)}"


def _ratio(row: Row) -> str:
    if math.isnan(row["ratio"]) or Verdict.of(row["verdict"]) in WITHHELD:
        return str(row["verdict"])
    return quantities.ratio(row["ratio"], row["ci_low"], row["ci_high"], row["level"])


def _load(row: Row, a: Analysis) -> str:
    load = a.scenario.workload_named(row["workload"])
    return sentences.load_words(load).capitalize()


def _zone(row: Row, a: Analysis) -> str:
    return a.scenario.machine_named(a.scenario.arm_named(row["arm"]).machine).zone or "not known"


def _limits(row: Row) -> list[str]:
    """The limit that both arms of a rate sit on, in words; none where no limit sets both rates."""
    notes = [part for part in str(row["warnings"]).split("; ") if part.endswith(_LIMIT_SETS)]
    both = "both arms sit on the "
    return [part.removeprefix(both).removesuffix(_LIMIT_SETS) for part in notes if part.startswith(both)]


def _all_capped(rows: Sequence[Row], a: Analysis) -> bool:
    """Whether every arm of these comparisons sits on a limit that is known."""
    capped = a.cells[a.cells["label"] == Label.CAPPED]
    there = set(capped[["arm", "workload"]].itertuples(index=False, name=None))
    return all((row[role], row["workload"]) in there for row in rows for role in ("arm", "base_arm"))
