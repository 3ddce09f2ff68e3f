"""What a reader meets first: the answer on one screen, how sure it is, and what it does not say."""

import math
import re
from collections.abc import Iterable

import pandas as pd

from diskbook.design import totals
from diskbook.design.vocabulary import Provenance, Scope, Verdict
from diskbook.facts import quantities
from diskbook.facts.table_writers import capital
from diskbook.report import figures
from diskbook.report.show import headlines, lead, locations, sentences, tables
from diskbook.report.show.analysed import Analysed
from diskbook.report.show.html import Html, escaped, table
from diskbook.results import manifest as manifests, plan as plans
from diskbook.stats.protocol import KEYS

MOST_BARS = 6
_NUMBER = re.compile(r"[-+±]?\d[\d.,]*")
_WATCHED = "Others measured this. Settings in force and other load on the machines are not known."
_OF_PROVENANCE = {
    Provenance.EMULATED: "Azure's disks: the emulator plays latencies and limits of its profile.",
    Provenance.INVENTORY: "Azure: the hosts are the user's own.",
    Provenance.IMPORTED: _WATCHED,
}


def screen(a: Analysed) -> Html:
    """Show question, answer, a small picture of the arms, where and when it was measured, and the scope."""
    row = headlines.of(a.comparisons, a.scenario).lead
    where = [locations.region(a), locations.ran_on(a), manifests.origin(a.manifest)]
    facts = ", ".join(filter(None, [f"Run {a.run.name}", f"{locations.dates(a)} UTC", *where]))
    parts = [
        f'<p class="question">{escaped(a.scenario.scenario.question)}</p>',
        f'<p class="card-answer">{escaped(capital(a.headline))}.{_other_direction(a)}</p>',
        _bars(row, a) if row is not None else "",
        f'<p class="facts">{escaped(facts)}</p>',
        f'<p class="facts">{escaped(locations.scope(row, a))}</p>',
    ]
    return Html(f'<section class="card" aria-label="Answer">{"".join(parts)}</section>')


def _other_direction(a: Analysed) -> str:
    """What the other half of a mixed load shows, where the answer is about one."""
    lines = headlines.of(a.comparisons, a.scenario)
    same = [row for row in lines.others if lines.lead and all(row[key] == lines.lead[key] for key in KEYS)]
    return escaped("".join(f" The same load's {row['direction']}s: {lead.found(row)}." for row in same))


def _bars(row: sentences.Row, a: Analysed) -> str:
    """A bar per arm of the headlines with the load and metric of the one that leads."""
    rows = headlines.of(a.comparisons, a.scenario).rows
    values: dict[str, float] = {}
    for other in (row, *rows):
        if all(other[key] == row[key] for key in ("workload", "direction", "metric")):
            pair = lead.levels_of_row(other, a.trials)
            values |= dict(zip((other["arm"], other["base_arm"]), pair, strict=True))
    known = [name for name in a.labels if not math.isnan(values.get(name, math.nan))][:MOST_BARS]
    unit, most = lead.UNITS.get(row["metric"], "ms"), max((values[name] for name in known), default=1)
    numbers = [(a.labels[name], lead.number(values[name], unit), values[name] / most) for name in known]
    bars = "".join(
        f'<span>{escaped(label)}</span><i><b style="width:{100 * share:.1f}%"></b></i><span>{text}</span>'
        for label, text, share in numbers
    )
    metric = "rate" if row["metric"] in lead.UNITS else "latency"
    described = f"{_load(row, a)}, {metric}: " + ", ".join(f"{x} {y}" for x, y, _ in numbers)
    return f'<div class="bars" role="img" aria-label="{escaped(described)}">{bars}</div>' * bool(known)


def figure(picture: figures.Picture) -> Html:
    """Show a figure with its caption and its alt text."""
    return Html(figures.html(picture))


def sure(a: Analysed) -> Html:
    """Say in three lines how far the answer can be trusted."""
    lines = headlines.of(a.comparisons, a.scenario)
    checks = sentences.gates_in_words(a.gates)
    first = "No comparison was named before the run." if lines.lead is None else _rests_on(lines.lead, a)
    return tables.bullets([first, _floor(a), f"{'; '.join(checks)}." if checks else "No check was made."])


def _rests_on(row: sentences.Row, a: Analysed) -> str:
    """Numbers of replicates and blocks, how far they agree, and whether the order was fixed before."""
    blocks = lead.blocks(a.trials, *(str(row[key]) for key in lead.COMPARED_BY))
    by = "replicate" if row["n_replicates"] > 1 else "block"
    logs = (blocks["log_value"] - blocks["log_base_value"]).groupby(blocks[by]).mean()
    numbers = (
        f"{quantities.many(row['n_replicates'], 'replicate')}, {quantities.many(row['n_blocks'], 'block')}"
    )
    if len(logs):
        ends = [quantities.change(math.exp(end)) for end in (logs.min(), logs.max())]
        numbers += f"; per {by} the change is {' to '.join(dict.fromkeys(ends))}"
    before = headlines.undecided_before(headlines.of(a.comparisons, a.scenario)).removeprefix("; ")
    early = capital(plans.early_stop(a.run))
    return ". ".join(filter(None, [capital(numbers), capital(before), early, _order(a)]))


def _floor(a: Analysed) -> str:
    """How far two disks of one kind differ, by the first control comparison that has an interval."""
    controls = sentences.chosen(a.comparisons[a.comparisons["family"] == "control"]).to_dict("records")
    row = next((row for row in controls if not math.isnan(row["ci_low"])), None)
    if row is None:
        return "How far two disks of one kind differ is not known: no control comparison has a number."
    return (
        f"Two disks of one kind differ by {lead.change_words(row)} under {_load(row, a)}: {row['verdict']}."
    )


def _load(row: sentences.Row, a: Analysed) -> str:
    return totals.of_direction(a.words[row["workload"]], row["direction"])


def _order(a: Analysed) -> str:
    """Say whether the order of the headlines was fixed before the run."""
    if a.provenance == Provenance.IMPORTED or not a.run.ledger() or not plans.is_written(a.run):
        return "No plan shows that the headlines and their order were fixed before the run."
    if plans.is_scenario_changed(a.run):
        return "The scenario is not the one that was planned."
    return "The hashed plan fixed the headlines and their order before the run."


def not_said(a: Analysed) -> Html:
    """Say in three lines what must not be concluded."""
    row = headlines.of(a.comparisons, a.scenario).lead
    items = [words for kind, words in _OF_PROVENANCE.items() if kind in a.provenance]
    items += locations.data_set(a).get("notes", [])[:2]
    if row is None or row["scope"] != Scope.LIKE_THESE:
        items.append("Other disks of the kind: the interval is that of these disks in these hours.")
    items += ["Other disk sizes, machine sizes, loads, regions and hours."]
    standing = lead.standings(a)
    if row is not None and len(items) < 3:
        place = headlines.of(a.comparisons, a.scenario).place
        items.append(f"A finding by the protocol: {standing[place].partition(';')[0]}.")
    if len(items) < 3:
        items.append("Applications: the tool keeps its queue full, or its rate even.")
    return tables.bullets(items[:3])


def headline_table(a: Analysed) -> Html:
    """Show headline comparisons and controls with both values; below, why any is refused or undecided."""
    rows = headlines.ordered(_of_question(a.comparisons), a.scenario).to_dict("records")
    if not rows:
        return Html("<p>No comparison was measured.</p>")
    reasons = list(_reasons(rows, a))
    return Html(table([_shown(row, a) for row in rows]) + (tables.bullets(reasons) if reasons else ""))


def _of_question(comparisons: pd.DataFrame) -> pd.DataFrame:
    """Headlines and controls, and decided rates where no headline is one; all where none was named."""
    is_rate, is_headline = comparisons["metric"].isin(lead.UNITS), comparisons["family"] == "headline"
    is_decided = comparisons["verdict"].map(Verdict.of).isin(headlines.DECIDED)
    rates = (is_rate & is_decided) if not (is_rate & is_headline).any() else is_headline
    named = comparisons[is_headline | (comparisons["family"] == "control") | rates]
    return named if is_headline.any() else comparisons


def _shown(row: sentences.Row, a: Analysed) -> dict[str, str]:
    """One comparison as a row: both values, the change, and what it supports."""
    value, base_value = lead.levels_text(row, a.trials)
    family = "" if row["family"] == "headline" else f"{row['family']}: "
    return {
        "Arms": f"{a.labels[row['arm']]} / {a.labels[row['base_arm']]}",
        "Load": _load(row, a),
        "First": value,
        "Second": base_value,
        "Change": "refused" if math.isnan(row["ratio"]) else lead.change_words(row),
        "Verdict": f"{family}{row['verdict']}",
    }


def _reasons(rows: Iterable[sentences.Row], a: Analysed) -> Iterable[str]:
    """Warnings of headlines, the same one once, with the first of its comparisons and how many more."""
    groups: dict[str, list[tuple[sentences.Row, str]]] = {}
    for row in rows:
        reason = sentences.first_reason(row)
        if reason:
            bare = reason.replace(a.labels[row["arm"]], "").replace(a.labels[row["base_arm"]], "")
            groups.setdefault(_NUMBER.sub("#", bare), []).append((row, reason))
    for (row, reason), *more in groups.values():
        others = f", and {quantities.many(len(more), 'other')}" if more else ""
        arms = f"{a.labels[row['arm']]} / {a.labels[row['base_arm']]}"
        yield f"{arms}, {_load(row, a)}{others}: {reason}."
