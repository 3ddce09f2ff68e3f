"""Headline answers of many runs side by side, and as a map of place and hour; nothing is pooled or judged.

`compare` holds each run against a first one. Here runs of several scenarios, places and hours are shown
next to each other, each with its own ratio and interval, grouped by what they asked.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from diskbook.batch.campaign_map import HOURS, STARTS, campaign_map
from diskbook.design.vocabulary import WITHHELD, Scope, Verdict
from diskbook.facts import quantities
from diskbook.facts.errors import DiskbookError
from diskbook.facts.table_writers import Notes, capital, html_notes
from diskbook.report import figures
from diskbook.report.comparing import measured
from diskbook.report.comparing.tables import ratio_words
from diskbook.report.show import locations, sentences
from diskbook.report.show.html import Html, escaped, table
from diskbook.results.run import Run, open_run

HEADLINE = "headline"
Questions = dict[tuple[str, ...], list[tuple[str, Mapping[str, Any]]]]
"""By scenario and comparison what was asked by it so far, each in words."""
MOST_ROWS = 200
"""Answers that are shown one by one; more of them are summed up by place."""
COLUMNS = (
    *("run", "label", "scenario", "question", "place", "hour", "provenance", "verdict", "warnings"),
    *("scope", "nearest_zone", "ratio", "ci_low", "ci_high", "level", "n_replicates", "n_blocks"),
)
_AS_JUDGED = ("verdict", "warnings", *COLUMNS[COLUMNS.index("scope") :])
"""Columns that are as the run's own analysis has them."""


@dataclass(frozen=True)
class Answers:
    """Headline ratios of runs.

    - `rows`: a row a run and headline comparison (`COLUMNS`), question by question; `hour` is that of UTC in
      which the run was begun, and `ratio` NaN where it is refused.
    - `unread`: why a run is not among them, by its label.
    """

    rows: pd.DataFrame
    unread: Mapping[str, str]

    @cached_property
    def provenance(self) -> str:
        """Where the numbers come from."""
        return _provenance(self.rows)

    @cached_property
    def leading(self) -> list[str]:
        """Of each scenario the first headline comparison that any run has a ratio of, else its first."""
        chosen = []
        for _, of_scenario in self.rows.groupby("scenario", sort=False):
            known = of_scenario[of_scenario["ratio"].notna()]
            chosen.append(str((of_scenario if known.empty else known)["question"].iloc[0]))
        return chosen


def read(names: Mapping[str, str]) -> Answers:
    """Read the headline answers of finished runs.

    - `names`: labels of the runs, by name, folder or address. One that cannot be read is named, with the
      reason.
    """
    questions: Questions = {}
    rows: list[dict[str, Any]] = []
    opened, unread = _opened(names)
    known = _catalogued(list(opened.values()))
    for name, run in opened.items():
        label = names[name]
        try:
            item = known[run] if run in known else measured.of_folder(run)
            rows += [_row(item, label, row, questions) for row in _headlines(item)]
        except DiskbookError as error:
            unread[label] = str(error)
        except (KeyError, TypeError, ValueError) as error:
            unread[label] = f"its manifest or comparisons are damaged ({error!r})"
    frame = pd.DataFrame(rows, columns=list(COLUMNS))
    return Answers(frame.sort_values(["scenario", "question", "place"], kind="stable", key=_in_order), unread)


def _provenance(rows: pd.DataFrame) -> str:
    return "+".join(sorted(set(rows["provenance"])))


def _opened(names: Mapping[str, str]) -> tuple[dict[str, Run], dict[str, str]]:
    """Runs by their names, and why others cannot be opened, by their labels."""
    opened, unread = {}, {}
    for name, label in names.items():
        try:
            opened[name] = open_run(name)
        except DiskbookError as error:
            unread[label] = str(error)
    return opened, unread


def _catalogued(runs: Sequence[Run]) -> dict[Run, measured.Measured]:
    """Those that a catalogue has as they are; none where it cannot be read, since their folders can."""
    try:
        return measured.catalogued(runs)
    except DiskbookError:
        return {}


def _in_order(values: pd.Series) -> pd.Series:
    """Places by name; scenarios and questions as they were first met."""
    if values.name == "place":
        return values
    order = {value: number for number, value in enumerate(dict.fromkeys(values))}
    return values.map(order)


def _headlines(item: measured.Measured) -> list[dict[Any, Any]]:
    """Rows of the headline comparisons in the scenario's order, each in the scope that its answer has."""
    table = sentences.chosen(item.comparisons)
    rows = table[table["family"] == HEADLINE].to_dict("records")
    keys = [tuple(getattr(entry, name) for name in _NAMED) for entry in item.scenario.comparison]
    return sorted(rows, key=lambda row: keys.index(tuple(row[name] for name in _NAMED)))


_NAMED = ("arm", "base_arm", "workload", "metric")


def _row(
    item: measured.Measured,
    label: str,
    row: Mapping[Any, Any],
    questions: Questions,
) -> dict[str, Any]:
    manifest, emulator = item.manifest, item.manifest.get("emulator") or {}
    withheld = Verdict.of(row["verdict"]) in WITHHELD
    return {
        "run": item.name,
        "label": label or item.name,
        "scenario": item.scenario.name,
        "question": _question(item, row, questions),
        "place": locations.words(manifest["cloud"], item.scenario.region, emulator.get("profile")),
        "hour": int(str(manifest["created_utc"])[11:13]),
        "provenance": item.provenance,
        **{name: row[name] for name in _AS_JUDGED},
        **(dict.fromkeys(("ratio", "ci_low", "ci_high"), math.nan) if withheld else {}),
    }


def _question(
    item: measured.Measured,
    row: Mapping[Any, Any],
    questions: Questions,
) -> str:
    """The comparison in words; where an earlier run asked something else by it, with the difference."""
    key = tuple(str(row[name]) for name in measured.KEY)
    now = measured.of(item.scenario, item.manifest, row)
    known = questions.setdefault((item.scenario.name, *key), [])
    for words, question in known:
        if not measured.difference(question, now):
            return words
    words = measured.words(item.scenario, sentences.workload_words(item.scenario), key)
    if known:
        words = f"{words}; {measured.difference(known[0][1], now)}"
    known.append((words, now))
    return words


# Tables


def html(answers: Answers) -> Html:
    """Show every answer, scenario by scenario; of many the spread over the runs of each place."""
    if answers.rows.empty:
        return Html("<p>No run has finished with a headline comparison yet.</p>")
    notes = Notes()
    shown = _summed if len(answers.rows) > MOST_ROWS else _one_by_one
    parts = [
        table(shown(rows, notes), f"{scenario}: ratios of its headline comparisons ({_provenance(rows)})")
        for scenario, rows in answers.rows.groupby("scenario", sort=False)
    ]
    return Html("".join(parts) + html_notes(notes))


def _one_by_one(rows: pd.DataFrame, notes: Notes) -> pd.DataFrame:
    return pd.DataFrame(
        [
            {
                "Comparison": row["question"],
                "Run": row["label"],
                "Where": row["place"],
                "Ratio": f"{ratio_words(row)} {notes.mark(row['warnings'] or '')}".rstrip(),
                "Scope": Scope(row["scope"]).words(row["nearest_zone"] or ""),
                "n": f"{row['n_replicates']} x {row['n_blocks'] // max(1, row['n_replicates'])} blocks",
                "Verdict": row["verdict"],
            }
            for row in rows.to_dict("records")
        ]
    )


def _summed(rows: pd.DataFrame, notes: Notes) -> pd.DataFrame:
    """The lowest, the median and the highest ratio of each place, of runs as they are."""
    shown = []
    for (question, place), cell in rows.groupby(["question", "place"], sort=False):
        ratios = cell["ratio"].dropna()
        differing = cell["verdict"].map(Verdict.of).eq(Verdict.DIFFERENCE).sum()
        low, middle, high = np.quantile(ratios, [0, 0.5, 1]) if len(ratios) else [math.nan] * 3
        shown.append(
            {
                "Comparison": question,
                "Where": place,
                "Runs": len(cell),
                "With a ratio": len(ratios),
                "Lowest": _times(low),
                "Median": _times(middle),
                "Highest": _times(high),
                "Called a difference": int(differing),
            }
        )
    return pd.DataFrame(shown)


def _times(value: float) -> str:
    return "–" if math.isnan(value) else quantities.change(value)


def unread(answers: Answers) -> Html:
    """Name the finished runs that have no answer to show, with the reason; nothing where all have."""
    if not answers.unread:
        return Html("")
    items = "".join(f"<li>{escaped(name)}: {escaped(why)}</li>" for name, why in answers.unread.items())
    return Html(f"<p>Finished, and without an answer that could be read:</p><ul>{items}</ul>")


# The map


def mapped(answers: Answers, batch: str) -> Html:
    """Show the map of place and hour: of each scenario its leading headline comparison."""
    if answers.rows.empty:
        return Html("<p>There is no map: no run has finished with a headline comparison yet.</p>")
    return Html(figures.html(picture(answers, batch)))


def picture(answers: Answers, batch: str) -> figures.Picture:
    """Draw the map; there must be an answer."""
    panels = {name: cells(answers.rows[answers.rows["question"] == name]) for name in answers.leading}
    return campaign_map(panels, _title(list(panels.values())), batch, answers.provenance)


def cells(rows: pd.DataFrame) -> pd.DataFrame:
    """Cells of one comparison: of several runs the median of their ratios and of their intervals' halves."""
    halves = 100 * (np.sqrt(rows["ci_high"] / rows["ci_low"]) - 1)
    binned = rows.assign(hour=rows["hour"] // HOURS * HOURS, half_pct=halves)
    grouped = binned.groupby(["place", "hour"], sort=False)
    made = grouped.agg(n=("run", "size"), ratio=("ratio", "median"), half_pct=("half_pct", "median"))
    return made.reset_index()


def _title(panels: Sequence[pd.DataFrame]) -> str:
    """Title of the map, which states the finding."""
    possible = sum(len(STARTS) * frame["place"].nunique() for frame in panels)
    ratios = pd.concat([frame["ratio"] for frame in panels]).dropna()
    filled = sum(len(frame) for frame in panels)
    ends = dict.fromkeys(f"{100 * (ratio - 1):+.0f} %" for ratio in (ratios.min(), ratios.max()))
    span = f"{' to '.join(ends)} in" if len(ratios) else "no change in"
    return capital(f"{span} {filled} of {possible} cells; {possible - filled} are empty")
