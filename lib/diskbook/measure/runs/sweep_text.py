"""The report of a sweep as text."""

from __future__ import annotations

from datetime import UTC, datetime

from diskbook.cloud.azure.expiry import span
from diskbook.cloud.azure.sweep import Group
from diskbook.facts import table_writers
from diskbook.facts.table_writers import Table
from diskbook.measure.runs.sweep import Place, SweepReport


def text_of(report: SweepReport) -> str:
    """Write a report as text: a table a cloud, then the rest."""
    parts = [_place_text(place) for place in report.places if place.groups]
    empty = [place.title for place in report.places if not place.groups]
    if empty:
        parts.append(f"nothing of ours: {', '.join(empty)}")
    if report.leftovers:
        lines = [
            f"  {'goes ' if leftover.goes else 'stays'}  {leftover.text}" for leftover in report.leftovers
        ]
        parts.append("\n".join(["on this computer:", *lines]))
    return "\n".join([*parts, *report.notes]) or "nothing was looked at: no emulator runs"


def _place_text(place: Place) -> str:
    return f"{place.title}:\n{table_writers.text(Table.of(list(map(_row, place.groups))), indent=2)}"


def _row(group: Group) -> dict[str, str]:
    label, now = group.label, datetime.now(UTC)
    row = {"group": group.name, **dict.fromkeys(("run", "owner", "scenario", "age", "expires"), "-")}
    last = {"holds": group.holds, "state": group.state}
    if label is None:
        return row | last
    left_s = (label.expires - now).total_seconds()
    when = f"in {span(left_s)}" if left_s > 0 else f"{span(-left_s)} ago"
    return {
        "group": group.name,
        "run": label.run,
        "owner": label.owner,
        "scenario": label.scenario,
        "age": span((now - label.created).total_seconds()) if label.created else "?",
        "expires": f"{label.expires.astimezone(UTC):%Y-%m-%d %H:%M} UTC, {when}",
        "holds": group.holds,
        "state": f"{group.state}: goes" if group.goes else group.state,
    }


def foreign_question(report: SweepReport) -> str:
    """Ask whether one group goes with its foreign resources, which the question names."""
    (group,) = (group for place in report.places for group in place.groups)
    return f"Delete {group.name} with {', '.join(group.foreign) or 'no foreign resources'}?"


def going(report: SweepReport) -> str:
    """Count what goes: "2 groups, 1 other"."""
    groups = sum(group.goes for place in report.places for group in place.groups)
    others = report.goes - groups
    parts = [f"{groups} {'group' if groups == 1 else 'groups'}"] if groups else []
    return ", ".join([*parts, *([f"{others} on this computer"] if others else [])])
