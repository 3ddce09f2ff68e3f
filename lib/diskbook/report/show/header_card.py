"""The header card: what a run answers in a sentence and up to three numbers, and what limits that."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from diskbook.design.vocabulary import WITHHELD, Provenance, Scope, Verdict
from diskbook.facts import quantities
from diskbook.facts.table_writers import capital
from diskbook.report.show import answers, headlines, locations, sentences
from diskbook.report.show.analysed import Analysed
from diskbook.report.show.headlines import Headlines
from diskbook.report.show.html import EMULATED, OWN_HARDWARE, Html, escaped
from diskbook.report.show.sentences import Row
from diskbook.results import plan as plans

MOST_NUMBERS = 3
_WATCHED = (
    "Others measured this: what settings were in force, and what else ran beside it, nobody here watched."
)
_OF_PROVENANCE = {
    Provenance.EMULATED: EMULATED.removeprefix("EMULATED. "),
    Provenance.INVENTORY: OWN_HARDWARE,
    Provenance.IMPORTED: _WATCHED,
}


def card(a: Analysed, lead: str = "") -> Html:
    """Show the answer of a run with its numbers, its scope and what it ran on; folded, what limits it.

    Parameters
    ----------
    a
        The analysed run.
    lead
        A table of the scenario's own that stands right below the answer, as HTML.
    """
    lines = headlines.of(a.comparisons, a.scenario)
    parts = [
        f'<p class="card-answer">{escaped(capital(_with_zones(a.headline, a)))}.</p>',
        lead,
        _numbers(lines, a),
        f'<p class="card-scope">{escaped(scope(lines.lead, a))}</p>',
        _facts(a),
        _folded([_with_zones(reason, a) for reason in reasons(lines, a)]),
    ]
    return Html(f'<section class="card" aria-label="Answer">{"".join(parts)}</section>')


def _with_zones(text: str, a: Analysed) -> str:
    return locations.with_physical_zones(text, a.trials)


def scope(row: Row | None, a: Analysed) -> str:
    """Say in plain words what the leading headline speaks of."""
    if row is None:
        return "No headline was named before the run: what stands below is to explore, not to conclude from."
    where = "" if a.provenance == Provenance.INVENTORY else f", in {a.scenario.region}"
    words = _with_zones(sentences.scope_words(row, a.scenario), a)
    if row["scope"] == Scope.LIKE_THESE:
        return (
            f"It holds for {words}, by {row['n_replicates']} replicates, each with machines and disks of its "
            f"own{where}; not for other sizes, loads or regions."
        )
    if row["n_replicates"] > 1:
        return f"It holds for {words}{where}: there is no interval for other disks of the kind."
    return f"It holds for {words}{where}: with one replicate nothing is known of other disks of the kind."


def reasons(lines: Headlines, a: Analysed) -> list[str]:
    """Say why one may not conclude more than the answer: provenance, scope, doubts, what is not decided."""
    items = [words for kind, words in _OF_PROVENANCE.items() if kind in a.provenance]
    if lines.lead is not None:
        items += [*_of_lead(lines.lead, a), *(_not_decided(row, a) for row in lines.others if _is_open(row))]
        items += [f"Closed or open: {answers.standings(a)[lines.place]}", _order(a)]
    return [*items, *(f"Checks: {line}" for line in sentences.gates_in_words(a.gates)[1:])]


def _of_lead(row: Row, a: Analysed) -> Iterable[str]:
    """What limits the leading headline itself: its warnings, and how far two disks of one kind differ."""
    if row["warnings"]:
        yield row["warnings"]
    floor = a.comparisons[a.comparisons["workload"] == row["workload"]]
    if (floor["family"] == "control").any():
        yield from (f"Noise floor: {line}" for line in sentences.noise_floor(floor, a.scenario))


def _is_open(row: Row) -> bool:
    return not headlines.is_decided(row)


def _not_decided(row: Row, a: Analysed) -> str:
    first, brief = sentences.first_reason(row), sentences.sentence(row, a.scenario, brief=True)
    is_given = first.partition(sentences.SO)[0] in brief
    why = "" if is_given else f"; {first}"
    return f"Not decided ({row['verdict']}): {brief}{why}"


def _order(a: Analysed) -> str:
    """Say whether the order of the headlines was fixed before the run."""
    if a.provenance == Provenance.IMPORTED or not a.run.ledger() or not plans.is_written(a.run):
        return "No plan shows that the headlines and their order were fixed before the run."
    if plans.is_scenario_changed(a.run):
        return "The scenario is not the one that was planned: its order of headlines was not fixed before."
    return "Headlines and their order were fixed before the run, in its hashed plan; the first decided leads."


def _numbers(lines: Headlines, a: Analysed) -> str:
    """Up to three headlines that have an interval, the leading one first, then decided ones."""
    rows = [row for row in (lines.lead, *sorted(lines.others, key=_is_open)) if row and _has_interval(row)]
    items = "".join(_number(row, a) for row in rows[:MOST_NUMBERS])
    return f'<ul class="card-numbers">{items}</ul>' if items else ""


def _has_interval(row: Row) -> bool:
    return not math.isnan(row["ci_low"]) and Verdict.of(row["verdict"]) not in WITHHELD


def _number(row: Row, a: Analysed) -> str:
    times, interval = quantities.change_parts(row["ratio"], row["ci_low"], row["ci_high"], row["level"])
    intervals = "; ".join(filter(None, [interval, sentences.difference_words(row)]))
    arms = f"{sentences.measured(row, a.scenario)}, to {a.labels[row['base_arm']]}: {row['verdict']}"
    arms = _with_zones(arms, a)
    return (
        f"<li><b>{escaped(times)}</b> <span>{escaped(intervals)}</span> "
        f"<small>{escaped(capital(arms))}</small></li>"
    )


def _facts(a: Analysed) -> str:
    facts = {"Run": a.run.name, "Date (UTC)": dates(a), "Region": a.scenario.region}
    facts |= {"Preset": a.scenario.preset, "Ran on": ran_on(a)}
    if a.provenance == Provenance.INVENTORY:
        del facts["Region"]
    rows = "".join(f"<div><dt>{name}</dt><dd>{escaped(value)}</dd></div>" for name, value in facts.items())
    return f'<dl class="card-facts">{rows}</dl>'


def ran_on(a: Analysed) -> str:
    """Say what a run ran on: the emulator with its profile, Azure's machines, or hosts of others."""
    played = a.manifest.get("emulator") or {}
    if a.provenance == Provenance.EMULATED:
        return (
            f"emulated: profile {played.get('profile', 'not known')}, seed {played.get('seed', 'not known')}"
        )
    if a.provenance == Provenance.INVENTORY:
        return "hosts of the user's own"
    if a.provenance == Provenance.IMPORTED:
        return "machines of others (imported)"
    return f"Azure: {', '.join(dict.fromkeys(machine.size for machine in a.scenario.machine))}"


def dates(a: Analysed) -> str:
    """Say when a run was measured, first to last trial, the day once where it is one."""
    if a.trials.empty:
        return "nothing measured"
    first, last = a.trials["started_utc"].min(), a.trials["started_utc"].max()
    day = "" if first.date() == last.date() else f"{last:%Y-%m-%d} "
    return f"{first:%Y-%m-%d %H:%M} to {day}{last:%H:%M}"


def _folded(items: Sequence[str]) -> str:
    rows = "".join(f"<li>{escaped(capital(item))}</li>" for item in items)
    return (
        '<details class="card-more"><summary>Why you may not conclude more</summary>'
        f"<ul>{rows}</ul></details>"
    )
