"""Closed or open by the protocol, as text and as folded tables: for reports, commands and imports."""

from collections.abc import Sequence

import pandas as pd

from diskbook.facts.table_writers import capital
from diskbook.report.show.analysed import Analysed
from diskbook.report.show.html import Html, escaped, folded, table
from diskbook.report.show.tables import METRICS, listed
from diskbook.stats.protocol import POINTS, VERSION, Conformance, Finding, named

PAGE = "docs/reference/protocol.md"
_Missing = tuple[str, str, str]
"""Title of a point, why it is missing, and what to do."""


def counted(items: Sequence[Conformance], kind: str = "comparison") -> str:
    """Say how many comparisons of a run are closed, and how many open."""
    if not items:
        return f"no {kind} is named, so nothing is closed or open by protocol {VERSION}"
    closed, number = sum(item.is_closed for item in items), len(items)
    provenance = "+".join(sorted({item.provenance for item in items}))
    whole = f"{closed} of {number} {kind}{'s' * (number != 1)} closed, {number - closed} open"
    return f"by protocol {VERSION}: {whole} ({provenance})"


def summary(items: Sequence[Conformance], kind: str = "comparison") -> str:
    """Count closed and open comparisons, with what all open ones lack."""
    lacking = [{finding.point.number for finding in item.missing} for item in items if not item.is_closed]
    shared = set.intersection(*lacking) if lacking else set()
    first = next((item for item in items if not item.is_closed), None)
    if first is None or not shared:
        return counted(items, kind)
    common = [finding for finding in first.missing if finding.point.number in shared]
    who = "all that are open lack" if len(lacking) > 1 else "what is open lacks"
    return f"{counted(items, kind)}; {who} {named(common)}"


def text(items: Sequence[Conformance]) -> str:
    """List what comparisons lack, by number, with remedies; what all open ones lack is listed once, first."""
    lacking = {item: [_missing(finding) for finding in item.missing] for item in items}
    is_open = [points for points in lacking.values() if points]
    shared = [point for point in is_open[0] if all(point in points for points in is_open)] if is_open else []
    groups: dict[tuple[_Missing, ...], list[Conformance]] = {}
    for item, points in lacking.items():
        groups.setdefault(tuple(points), []).append(item)
    if len(groups) < 2 or len(is_open) < 2 or not shared:
        shared = []
    head = "\n".join([f"all {len(is_open)} that are open lack", *_lines(shared)]) if shared else ""
    return "\n\n".join(filter(None, [head, *(_group(*group, shared) for group in groups.items())]))


def protocol(a: Analysed) -> Html:
    """Show which comparisons are closed by the protocol, and what the open ones lack, with remedies."""
    items, labels, words = a.protocol, a.labels, a.words
    if not items:
        return Html(f"<p>{escaped(capital(counted(items)))}.</p>")
    rows = [
        {
            "Family": item.family,
            "Load": words[item.workload],
            "Arms": _arms(item, labels),
            "Standing": item.standing,
            "Points missing": ", ".join(str(finding.point.number) for finding in item.missing),
        }
        for item in items
    ]
    standing = table(rows, capital(counted(items)))
    demands = [{"Point": point.title, "What must hold": point.demands} for point in POINTS]
    every = folded(f"The points of protocol {VERSION} ({PAGE})", table(demands))
    return Html(
        standing + folded("What is missing, and what would mend it", _lacking(items, labels, words)) + every
    )


def _lacking(items: Sequence[Conformance], labels: dict[str, str], words: dict[str, str]) -> Html:
    names: dict[tuple[int, _Missing], list[str]] = {}
    for item in items:
        for finding in item.missing:
            key = finding.point.number, _missing(finding)
            names.setdefault(key, []).append(f"{_arms(item, labels)}, {words[item.workload]}")
    rows = [
        {"Point": title, "Why": why, "Do": remedy, "Comparisons": listed(pd.Series(of))}
        for (_, (title, why, remedy)), of in sorted(names.items(), key=lambda pair: pair[0])
    ]
    return table(rows) if rows else Html("<p>Nothing.</p>")


def _missing(finding: Finding) -> _Missing:
    return finding.point.title, finding.answer.why, finding.answer.remedy


def _group(points: Sequence[_Missing], members: Sequence[Conformance], shared: Sequence[_Missing]) -> str:
    """Comparisons that lack the same, and what that is beside what all lack."""
    heads = [f"{item.family}: {_name(item)}: {_standing(item)}" for item in members]
    own = [point for point in points if point not in shared]
    nothing = "  nothing besides" if points else "  every point that applies is met"
    return "\n".join([*heads, *(_lines(own) or [nothing])])


def _lines(points: Sequence[_Missing]) -> list[str]:
    return [f"  {title}: {why}\n    do: {remedy}" for title, why, remedy in points]


def _standing(item: Conformance) -> str:
    number = len(item.missing)
    return item.standing + (f", {number} point{'s' * (number != 1)} missing" if number else "")


def _name(item: Conformance) -> str:
    return f"{item.arm} / {item.base_arm}, {item.workload}, {METRICS.get(item.metric, item.metric)}"


def _arms(item: Conformance, labels: dict[str, str]) -> str:
    return f"{labels[item.arm]} / {labels[item.base_arm]}"
