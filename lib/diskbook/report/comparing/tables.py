"""The comparison as tables: for HTML, Markdown and CSV."""

import json
import math
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from diskbook.design.vocabulary import Scope, Verdict
from diskbook.facts import quantities, table_writers
from diskbook.facts.errors import UsageError
from diskbook.facts.files import write_atomic
from diskbook.facts.table_writers import Notes
from diskbook.facts.units import percent
from diskbook.report.comparing import compared
from diskbook.report.comparing.compared import Beside
from diskbook.report.comparing.pairs import Pair, Row, label
from diskbook.report.show.html import Html
from diskbook.results.manifest import origin

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
            "Measured": compared.hours(item),
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


BENCH_UNIT = "times the first run"


def write_bench_json(beside: Beside, path: Path) -> str:
    """Write the ratio of ratios of each latency, and say what was left out.

    A value is this run's change between the arms over the first run's: 1.02 is 2 % slower. Rates are left
    out, since more of them is better, and so is what has no ratio.

    Raises UsageError when there are not two runs, whose names would tell the values apart.
    """
    if len(beside.runs) != 2:
        raise UsageError("--bench-json takes two runs: the base, and the one that is judged")
    latencies = [pair for pair in beside.pairs if pair.key[-1].startswith("lat")]
    rows = []
    for pair in latencies:
        ratio, low, high = pair.ratio
        if math.isnan(ratio):
            continue
        half = "" if math.isnan(low) else f"± {(high - low) / 2:.4g}"
        extra = "; ".join([pair.words or "no verdict", *pair.notes])
        rows.append(
            {
                "name": label(pair.key),
                "unit": BENCH_UNIT,
                "value": float(f"{ratio:.6g}"),
                "range": half,
                "extra": extra,
            }
        )
    write_atomic(path, json.dumps(rows, indent=2, ensure_ascii=False) + "\n")
    rates, refused = len(beside.pairs) - len(latencies), len(latencies) - len(rows)
    return (
        f"{path}: {len(rows)} latencies; left out: {rates} rates, of which more is better, and {refused} "
        "latencies without a ratio"
    )


WIDTH = 80
LONGEST = 24
"""Letters of a value that stands beside others in one line."""


def brief(beside: Beside, outcome: Outcome | None = None) -> str:
    """What `diskbook compare` prints: the runs, and one line per comparison as benchstat has it."""
    several = len({pair.other for pair in beside.pairs}) > 1
    first = beside.runs[0].letter
    head = ("comparison", first, "other" if several else beside.runs[-1].letter, "change", "p", "n")
    lines = [head, *(_line(pair, several=several) for pair in beside.pairs)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    rows = [
        "  ".join(cell.rjust(width) if n else cell.ljust(width) for n, (cell, width) in enumerate(pairs))
        for pairs in (list(zip(line, widths, strict=True)) for line in lines)
    ]
    changes = quantities.many(len([row for row in beside.changes if row.kind != "hour"]), "setting")
    notes = {note for pair in beside.pairs for note in pair.notes}
    last = f"{changes} changed; {quantities.many(len(notes), 'note')} on these lines: -v shows them"
    sections = [
        "\n".join(_run_lines(beside)),
        _wrapped("", beside.remarks) if beside.remarks else "",
        "\n".join(row.rstrip() for row in rows) if beside.pairs else "",
        "\n".join(_left_out_lines(beside)),
        last,
        "" if outcome is None else _wrapped("", outcome.words),
    ]
    return "\n\n".join(filter(None, sections))


def _line(pair: Pair, *, several: bool) -> tuple[str, ...]:
    """Name, old and new change of the arms, change between the runs, p and n of one comparison."""
    direction = f" ({pair.key[3]})"
    name = label(pair.key).replace(direction, "" if pair.key[3] in pair.key[2] else direction)
    old, new = (
        "refused" if math.isnan(row["ratio"]) else quantities.change(row["ratio"]) for row in pair.ratios
    )
    words = verdict_words(pair)
    change = words if words == UNTOLD else quantities.change(pair.ratio[0])
    p = "" if pair.verdict is None else _p(pair.p_adjusted)
    who = f" [{_pair_name(pair)}]" * several
    return f"{name}{who}", old, new, change, p, n_words(pair).removesuffix(" blocks")


def text(beside: Beside, outcome: Outcome | None = None) -> str:
    """All that `diskbook compare -v` prints."""
    notes = Notes()
    sections = [
        "\n".join(_run_lines(beside)),
        "\n".join(_change_lines(beside)),
        *(
            "\n".join(_comparison(beside, key, notes))
            for key in dict.fromkeys(pair.key for pair in beside.pairs)
        ),
        "\n".join(_left_out_lines(beside)),
        "\n".join(_wrapped(f"[{number}] ", note) for note, number in notes.items()),
        "" if outcome is None else _wrapped("", outcome.words),
    ]
    return "\n\n".join(filter(None, sections))


def _run_lines(beside: Beside) -> Iterator[str]:
    width = max(len(item.letter) for item in beside.runs)
    for item in beside.runs:
        whence = ", ".join(filter(None, [item.provenance, origin(item.manifest)]))
        yield _wrapped(f"{item.letter:<{width}}  ", f"{item.name} ({whence}), {compared.hours(item)}")


def _change_lines(beside: Beside) -> Iterator[str]:
    if beside.remarks:
        yield _wrapped("", beside.remarks)
    yield (
        "what changed:"
        if [row for row in beside.changes if row.kind != "hour"]
        else "what changed: nothing that the manifests tell"
    )
    for row in beside.changes:
        if row.kind == "hour":  # it stands above
            continue
        if all(len(value) <= LONGEST for value in row.values) and len(row.values) == 2:
            yield _wrapped(f"  {row.what}: ", " -> ".join(row.values), 4)
            continue
        by_value: dict[str, list[str]] = {}
        for item, value in zip(beside.runs, row.values, strict=True):
            by_value.setdefault(value, []).append(item.letter)
        listed = "; ".join(f"{' '.join(letters)} {value}" for value, letters in by_value.items())
        yield _wrapped(f"  {row.what}: ", listed, 4)


def _comparison(beside: Beside, key: tuple[str, ...], notes: Notes) -> Iterator[str]:
    """One comparison: each run's ratio, and below it what it is to the first."""
    of_key = [pair for pair in beside.pairs if pair.key == key]
    yield _wrapped("", f"{beside.words(key)} ({of_key[0].family})", 2)
    width = max(len(_pair_name(pair)) for pair in of_key) + 2
    yield f"  {of_key[0].first:<{width}}{ratio_words(of_key[0].ratios[0])}"
    for pair in of_key:
        yield f"  {pair.other:<{width}}{ratio_words(pair.ratios[1])}"
        yield _judged(pair, width, notes)
    for item in beside.spreads:
        if item.key == key:
            yield _wrapped("  ", item.words, 4)


def _judged(pair: Pair, width: int, notes: Notes) -> str:
    p = "" if pair.verdict is None else f" (p {_p(pair.p_adjusted)})"
    marks = " ".join(notes.mark(note) for note in pair.notes)
    verdict = f"{verdict_words(pair)}{p}, n {n_words(pair)} {marks}".rstrip()
    line = f"  {_pair_name(pair):<{width}}{ratio_of_ratios_words(pair)}"
    whole = f"{line}  {verdict}"
    return whole if len(whole) <= WIDTH else f"{line}\n  {'':<{width}}{verdict}"


def _p(value: float) -> str:
    return "<0.001" if value < 0.001 else f"{value:.2g}"


def _pair_name(pair: Pair) -> str:
    return f"{pair.other}/{pair.first}"


def _left_out_lines(beside: Beside) -> Iterator[str]:
    if beside.left_out:
        yield "not compared:"
    for item in beside.left_out:
        yield _wrapped("  ", f"{item.run}, {item.what}: {item.why}", 4)


def _wrapped(head: str, words: str, indent: int | None = None) -> str:
    return textwrap.fill(
        words,
        WIDTH,
        initial_indent=head,
        subsequent_indent=" " * (len(head) if indent is None else indent),
        break_long_words=False,
        break_on_hyphens=False,
    )
