"""The comparison as rows: for HTML, Markdown, CSV and JSON."""

from __future__ import annotations

import math
from typing import Any

import pandas as pd

from diskbook.design.vocabulary import Scope, Verdict
from diskbook.facts import quantities
from diskbook.facts.digits import csv_text
from diskbook.report.comparing import changed
from diskbook.report.comparing.compared import Beside
from diskbook.report.comparing.fail_over import Outcome
from diskbook.report.comparing.markdown import markdown_table
from diskbook.report.comparing.pairs import Pair, Row
from diskbook.report.show import documents
from diskbook.report.show.html import Html, escaped, table
from diskbook.report.show.tables import footnotes, mark

UNTOLD = "~"


def records(beside: Beside) -> list[dict[str, Any]]:
    """A row a comparison and run, with all numbers."""
    names = {item.letter: item.name for item in beside.runs}
    return [
        {
            "family": pair.family,
            **dict(zip(("arm", "base_arm", "workload", "direction", "metric"), pair.key, strict=True)),
            "first_run": names[pair.first],
            "run": names[pair.other],
            "scope": str(pair.scope),
            **_of_run(pair.ratios[0], "first_"),
            **_of_run(pair.ratios[1], ""),
            **dict(zip(("ratio_of_ratios", "low", "high"), pair.ratio, strict=True)),
            "level": pair.level,
            "p": pair.p,
            "p_adjusted": pair.p_adjusted,
            "verdict": pair.words,
            "notes": "; ".join(pair.notes),
            "provenance": beside.provenance,
        }
        for pair in beside.pairs
    ]


def _of_run(row: Row, prefix: str) -> dict[str, Any]:
    columns = {"ratio": "ratio", "ci_low": "ratio_low", "ci_high": "ratio_high"}
    numbers = {f"{prefix}{shown}": row[name] for name, shown in columns.items()}
    return numbers | {f"{prefix}{name}": int(row[name]) for name in ("n_replicates", "n_blocks")}


def shown(beside: Beside, notes: dict[str, int]) -> pd.DataFrame:
    """The rows as readers see them; notes are footnotes."""
    several = len(beside.runs) > 2
    rows = [
        {
            "Comparison": f"{beside.words(pair.key)} ({pair.family})",
            **({"Runs": f"{pair.other} / {pair.first}"} if several else {}),
            (f"{pair.first}: its ratio"): ratio_words(pair.ratios[0]),
            ("Ratio of the other" if several else f"{pair.other}: its ratio"): ratio_words(pair.ratios[1]),
            ("Ratio of ratios" if several else f"{pair.other} / {pair.first}"): ratio_of_ratios_words(pair),
            "Verdict": f"{verdict_words(pair)} {' '.join(mark(note, notes) for note in pair.notes)}".strip(),
            "n": n_words(pair),
        }
        for pair in beside.pairs
    ]
    return pd.DataFrame(rows)


def ratio_words(row: Row) -> str:
    """A run's own ratio with its interval."""
    if math.isnan(row["ratio"]):
        return "refused"
    return quantities.ratio(row["ratio"], row["ci_low"], row["ci_high"], row["level"])


def ratio_of_ratios_words(pair: Pair) -> str:
    """The ratio of ratios with its interval, and with its scope where that is these disks."""
    if math.isnan(pair.ratio[0]):
        return "none"
    words = quantities.ratio(*pair.ratio, pair.level)
    return f"{words}, {Scope.THESE}" if pair.scope is Scope.THESE else words


def verdict_words(pair: Pair) -> str:
    """The verdict; `~` where nothing can be told."""
    if pair.verdict in (None, Verdict.INCONCLUSIVE):
        return UNTOLD
    return pair.words


def n_words(pair: Pair) -> str:
    """Replicates of both runs; blocks where one has a single replicate."""
    name = "n_replicates" if pair.scope is Scope.LIKE_THESE else "n_blocks"
    numbers = "+".join(str(int(row[name])) for row in pair.ratios)
    return numbers if pair.scope is Scope.LIKE_THESE else f"{numbers} blocks"


def runs_table(beside: Beside) -> pd.DataFrame:
    """The runs with their letters."""
    return pd.DataFrame(
        [
            {
                "": item.letter,
                "Run": item.name,
                "Provenance": item.provenance,
                "Measured": changed.hours(item),
                "Replicates": len(item.manifest["replicates"]),
            }
            for item in beside.runs
        ]
    )


def changes_table(beside: Beside) -> pd.DataFrame:
    """What changed, a column a run."""
    letters = [item.letter for item in beside.runs]
    rows = [
        {"Kind": row.kind, "What": row.what, **dict(zip(letters, row.values, strict=True))}
        for row in beside.changes
    ]
    return pd.DataFrame(rows, columns=["Kind", "What", *letters])


def spreads_table(beside: Beside) -> pd.DataFrame:
    """Spread between runs, comparison by comparison."""
    rows = [
        {"Comparison": beside.words(item.key), "Spread between runs": item.words} for item in beside.spreads
    ]
    return pd.DataFrame(rows, columns=["Comparison", "Spread between runs"])


def left_out_table(beside: Beside) -> pd.DataFrame:
    """What was not compared."""
    rows = [{"Run": item.run, "What": item.what, "Why": item.why} for item in beside.left_out]
    return pd.DataFrame(rows, columns=["Run", "What", "Why"])


def html(beside: Beside) -> Html:
    """The table of comparisons with its footnotes."""
    notes: dict[str, int] = {}
    caption = f"Ratios of ratios, each run against {beside.runs[0].name} ({beside.provenance})"
    return Html(table(shown(beside, notes), caption) + footnotes(notes))


def changes(beside: Beside) -> Html:
    """Show what changed, or that nothing did."""
    frame = changes_table(beside)
    note = f"<p>{escaped(beside.copies)}.</p>" if beside.copies else ""
    if frame.empty:
        return Html(f"{note}<p>Nothing that the manifests tell.</p>")
    return Html(note + table(frame, f"What changed ({beside.provenance})"))


def spreads(beside: Beside) -> Html:
    """Show the spread between runs, or why there is none."""
    frame = spreads_table(beside)
    if frame.empty:
        return Html("<p>A spread between runs needs three that have an interval of one comparison.</p>")
    return table(frame, f"Spread between runs ({beside.provenance})")


def left_out(beside: Beside) -> Html:
    """Show what was not compared, or that all was."""
    frame = left_out_table(beside)
    return Html("<p>Nothing.</p>") if frame.empty else table(frame, "Not compared")


def markdown(beside: Beside, outcome: Outcome | None = None) -> str:
    """The whole comparison as Markdown."""
    notes: dict[str, int] = {}
    compared = markdown_table(shown(beside, notes))
    parts = [
        f"**{beside.provenance}**",
        markdown_table(runs_table(beside)),
        beside.copies,
        f"What changed:\n\n{markdown_table(changes_table(beside))}",
        compared,
        "\n".join(f"{number}. {note}" for note, number in notes.items()),
        markdown_table(spreads_table(beside)),
        f"Not compared:\n\n{markdown_table(left_out_table(beside))}" if beside.left_out else "",
        "" if outcome is None else outcome.words,
    ]
    return "\n\n".join(filter(None, parts))


def csv(beside: Beside) -> str:
    """All numbers as CSV."""
    return csv_text(pd.DataFrame(records(beside)))


def as_json(beside: Beside, outcome: Outcome | None = None) -> str:
    """All numbers as one document of JSON; what is not there is null."""
    names = [item.name for item in beside.runs]
    content = {
        "provenance": beside.provenance,
        "runs": runs_table(beside).rename(columns={"": "letter"}).to_dict("records"),
        "changed": [
            {"kind": row.kind, "what": row.what, "values": dict(zip(names, row.values, strict=True))}
            for row in beside.changes
        ],
        "comparisons": records(beside),
        "between_runs": [
            {
                **dict(zip(("arm", "base_arm", "workload", "direction", "metric"), item.key, strict=True)),
                **item.spread._asdict(),
                "has_disks": item.has_disks,
            }
            for item in beside.spreads
        ],
        "left_out": left_out_table(beside).rename(columns=str.lower).to_dict("records"),
        "fail_over": None if outcome is None else outcome._asdict(),
    }
    return documents.Compare.model_validate(content).text
