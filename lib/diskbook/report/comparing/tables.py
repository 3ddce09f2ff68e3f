"""The comparison as tables: for HTML, Markdown and CSV."""

import math
from typing import Any, NamedTuple

from diskbook.design.vocabulary import Scope, Verdict
from diskbook.facts import quantities, table_writers
from diskbook.facts.units import percent
from diskbook.report.comparing import changed
from diskbook.report.comparing.compared import Beside
from diskbook.report.comparing.pairs import Pair, Row, label
from diskbook.report.show.html import Html

NONE_WORSE, WORSE, NOT_TOLD = 0, 3, 4


class Outcome(NamedTuple):
    """The exit status, and why in a sentence."""

    exit_code: int
    words: str


def judge(beside: Beside, share: float) -> Outcome:
    """Tell whether any interval lies wholly on the worse side: latency up or rate down by more than a share.

    A comparison that gets no verdict (one replicate, a cap, an interim run) tells nothing, whatever its
    numbers are. Not to tell counts for headline comparisons; where there are none, for all.

    - `share`: e.g. 0.05; the worse side of a rate begins at 1 / 1.05, so that both are alike in logs.

    Returns 3 when one is worse, else 4 when one cannot be determined, else 0.
    """
    worse = [pair for pair in beside.pairs if pair.verdict is not None and _is_worse(pair, share)]
    if worse:
        return Outcome(WORSE, f"worse by more than {percent(share)}: {_listed(worse)}")
    headline = [pair for pair in beside.pairs if pair.family == "headline"]
    untold = [pair for pair in headline or beside.pairs if pair.verdict is None]
    if untold or beside.left_out:
        names = "; ".join(
            filter(None, [_listed(untold), *(f"{item.run}: {item.what}" for item in beside.left_out)])
        )
        return Outcome(NOT_TOLD, f"cannot be determined for {names}")
    return Outcome(NONE_WORSE, f"no interval lies beyond {percent(share)} on the worse side")


def _is_worse(pair: Pair, share: float) -> bool:
    bound = math.log1p(share)
    if pair.key[-1].startswith("lat"):
        return bool(pair.estimate.low > bound)
    return bool(pair.estimate.high < -bound)


def _listed(pairs: list[Pair]) -> str:
    return "; ".join(f"{label(pair.key)} ({pair.other} / {pair.first})" for pair in pairs)


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


def shown(beside: Beside) -> table_writers.Table:
    """The comparisons as readers see them; notes are footnotes."""
    several, notes = len(beside.runs) > 2, table_writers.Notes()
    rows = [
        {
            "Comparison": f"{beside.words(pair.key)} ({pair.family})",
            **({"Runs": f"{pair.other} / {pair.first}"} if several else {}),
            (f"{pair.first}: its change"): ratio_words(pair.ratios[0]),
            ("Change of the other" if several else f"{pair.other}: its change"): ratio_words(pair.ratios[1]),
            ("Other / first" if several else f"{pair.other} / {pair.first}"): ratio_of_ratios_words(pair),
            "Verdict": f"{verdict_words(pair)} {' '.join(notes.mark(note) for note in pair.notes)}".strip(),
            "n": n_words(pair),
        }
        for pair in beside.pairs
    ]
    caption = f"Changes, each run against {beside.runs[0].name} ({beside.provenance})"
    return table_writers.Table.of(rows, caption, notes)


def ratio_words(row: Row) -> str:
    """A run's own ratio with its interval."""
    if math.isnan(row["ratio"]):
        return "refused"
    return quantities.change(row["ratio"], row["ci_low"], row["ci_high"], row["level"])


def ratio_of_ratios_words(pair: Pair) -> str:
    """The ratio of ratios with its interval, and with its scope where that is these disks."""
    if math.isnan(pair.ratio[0]):
        return "none"
    words = quantities.change(*pair.ratio, pair.level)
    return f"{words}, {Scope.THESE}" if pair.scope is Scope.THESE else words


def verdict_words(pair: Pair) -> str:
    """The verdict; `~` where nothing can be determined."""
    if pair.verdict in (None, Verdict.INCONCLUSIVE):
        return UNTOLD
    return pair.words


def n_words(pair: Pair) -> str:
    """Replicates of both runs; blocks where one has a single replicate."""
    name = "n_replicates" if pair.scope is Scope.LIKE_THESE else "n_blocks"
    numbers = "+".join(str(int(row[name])) for row in pair.ratios)
    return numbers if pair.scope is Scope.LIKE_THESE else f"{numbers} blocks"


def runs_table(beside: Beside) -> list[dict[str, Any]]:
    """The runs with their letters."""
    return [
        {
            "": item.letter,
            "Run": item.name,
            "Provenance": item.provenance,
            "Measured": changed.hours(item),
            "Replicates": len(item.manifest["replicates"]),
        }
        for item in beside.runs
    ]


def _changes(beside: Beside) -> table_writers.Table:
    """What changed, a column a run."""
    letters = [item.letter for item in beside.runs]
    rows = [
        {"Kind": row.kind, "What": row.what, **dict(zip(letters, row.values, strict=True))}
        for row in beside.changes
    ]
    return table_writers.Table.of(rows, f"What changed ({beside.provenance})")


def _spreads(beside: Beside) -> table_writers.Table:
    """Spread between runs, comparison by comparison."""
    rows = [
        {"Comparison": beside.words(item.key), "Spread between runs": item.words} for item in beside.spreads
    ]
    return table_writers.Table.of(rows, f"Spread between runs ({beside.provenance})")


def _left_out(beside: Beside) -> table_writers.Table:
    """What was not compared."""
    rows = [{"Run": item.run, "What": item.what, "Why": item.why} for item in beside.left_out]
    return table_writers.Table.of(rows, "Not compared")


def html(beside: Beside) -> Html:
    """The table of comparisons with its footnotes."""
    return Html(table_writers.html(shown(beside)))


def changes(beside: Beside) -> Html:
    """Show what changed, or that nothing did."""
    note = f"<p>{table_writers.escaped(beside.remarks)}.</p>" if beside.remarks else ""
    return Html(note + _or(_changes(beside), "Nothing that the manifests tell."))


def spreads(beside: Beside) -> Html:
    """Show the spread between runs, or why there is none."""
    return _or(_spreads(beside), "A spread between runs needs three that have an interval of one comparison.")


def left_out(beside: Beside) -> Html:
    """Show what was not compared, or that all was."""
    return _or(_left_out(beside), "Nothing.")


def _or(table: table_writers.Table, nothing: str) -> Html:
    """Show a table, or what it means that it has no rows."""
    return Html(table_writers.html(table) if table.rows else f"<p>{nothing}</p>")


def markdown(beside: Beside, outcome: Outcome | None = None) -> str:
    """The whole comparison as Markdown."""
    parts = [
        f"**{beside.provenance}**",
        table_writers.markdown(table_writers.Table.of(runs_table(beside))),
        beside.remarks,
        *(table_writers.markdown(table) for table in (_changes(beside), shown(beside), _spreads(beside))),
        table_writers.markdown(_left_out(beside)),
        "" if outcome is None else outcome.words,
    ]
    return "\n\n".join(filter(None, parts))


def csv(beside: Beside) -> str:
    """All numbers as CSV."""
    return table_writers.as_csv(table_writers.Table.of(records(beside)))
