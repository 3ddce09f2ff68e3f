"""What `make coverage` found, as tables for the terminal and for docs/explanation/coverage.md."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import pandas as pd

from checks import markdown
from checks.coverage_rule import Row
from diskbook.facts import files
from diskbook.facts.errors import UsageError

BEGIN, END = "<!-- written by make coverage: begin -->", "<!-- written by make coverage: end -->"
OF_ALL = ("refused", "flagged")
"""Shares of all designs; the others are of those that are judged."""
SUMMARY_HEADS = (
    *("Table", "Claim", "Worst, %", "Worst cell", "Cells", "All cells, %"),
    *("Without known limits, %", "Falsely different, at most %"),
)


def printed(title: str, rows: Sequence[Row]) -> str:
    """A line per row; ` ?` marks a known limit, ` !` what is off."""
    places = ({"condition": row.cell.name, "claim": row.claim, "design": row.cell.size} for row in rows)
    frame = pd.DataFrame([{**place, **row.shares()} for place, row in zip(places, rows, strict=True)])
    head, *lines = frame.to_string(index=False, float_format="%.4g").splitlines()
    marks = (" ?" * row.is_known_limit + " !" * row.is_off for row in rows)
    return "\n".join([title, head, *map("".join, zip(lines, marks, strict=True))])


def table(rows: Sequence[Row]) -> str:
    """A line per condition and claim: its shares over all designs, the line of the lowest coverage first."""
    names = list(rows[0].shares())
    heads = ("Condition", "Claim", *(f"{name.capitalize()}, %" for name in names), "Worst design", "Designs")
    lines = []
    for here in sorted(_lines(rows), key=_lowest):
        judged = [row for row in here if not row.is_refused]
        spans = [_span(row.shares()[name] for row in (here if name in OF_ALL else judged)) for name in names]
        remarks = dict.fromkeys(sentence for row in here for sentence in row.said())
        worst = _worst(judged).cell.size if judged else ""
        lines.append((here[0].cell.name, here[0].claim, *spans, worst, str(len(judged)), "; ".join(remarks)))
    return markdown((*heads, "Said of it"), lines)


def summary(tables: Mapping[str, Sequence[Row]]) -> str:
    """One line per table and claim: its worst cell, and what it covers, as a Markdown table."""
    summed_up = []
    for name, rows in tables.items():
        for claim in dict.fromkeys(row.claim for row in rows):
            lines = [here for here in _lines(rows) if here[0].claim == claim]
            judged = [row for here in lines for row in here if not row.is_refused]
            if judged:
                summed_up.append((_lowest(judged), (name, claim, *_summed_up(lines, judged))))
    return markdown(SUMMARY_HEADS, [line for _, line in sorted(summed_up)])


def _summed_up(lines: Sequence[Sequence[Row]], judged: Sequence[Row]) -> Iterator[str]:
    """Cells of one claim: the worst one, the range of all, and of those without a known limit."""
    worst = _worst(judged)
    yield f"{100 * _coverage(worst):.1f}" if math.isfinite(_coverage(worst)) else ""
    yield f"{worst.cell.name}, {worst.cell.size}"
    yield str(len(judged))
    yield _span(map(_coverage, judged))
    open_to = [here for here in lines if not any(row.is_known_limit for row in here)]
    yield _span(_coverage(row) for here in open_to for row in here if not row.is_refused)
    false = [_false(row) for row in judged if not math.isnan(_false(row))]
    yield f"{100 * max(false):.1f}" if false else ""


def _lines(rows: Iterable[Row]) -> list[list[Row]]:
    """Rows of one condition and claim together."""
    groups: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        groups.setdefault((row.cell.name, row.claim), []).append(row)
    return list(groups.values())


def _coverage(row: Row) -> float:
    """Its coverage; infinite where it has none."""
    coverage = row.shares().get("coverage", math.nan)
    return math.inf if math.isnan(coverage) else coverage


def _false(row: Row) -> float:
    return row.shares().get("false", math.nan)


def _worst(rows: Iterable[Row]) -> Row:
    """The row of the lowest coverage; among equal ones, of the most false verdicts."""
    return min(rows, key=lambda row: (_coverage(row), -_false(row) if _false(row) > 0 else 0.0))


def _lowest(rows: Iterable[Row]) -> float:
    return min((_coverage(row) for row in rows if not row.is_refused), default=math.inf)


def _span(shares: Iterable[float]) -> str:
    """The least and the largest of some shares, in %."""
    known = [100 * share for share in shares if math.isfinite(share)]
    return f"{min(known):.1f} to {max(known):.1f}" if known else ""


def write(path: Path, tables: Mapping[str, Sequence[Row]]) -> None:
    """Put tables into a document, between its two marks, with their summary first.

    Raises UsageError when there is no such document, or it has no such marks.
    """
    made = {"Worst cells first": summary(tables), **{name: table(rows) for name, rows in tables.items()}}
    text = "\n\n".join(f"### {head}\n\n{body}" for head, body in made.items())
    before, after = around(path)
    files.write_atomic(path, f"{before}{BEGIN}\n\n{text}\n\n{END}{after}")


def around(path: Path) -> tuple[str, str]:
    """Text of a document before and after its two marks.

    Raises UsageError when there is no such document, or it has no such marks.
    """
    try:
        before, begin, rest = path.read_text("utf-8").partition(BEGIN)
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} cannot be read ({error}): name the document with the marks.") from None
    _, end, after = rest.partition(END)
    if not (begin and end):
        raise UsageError(f"{path} has no lines '{BEGIN}' and '{END}': put them where the tables belong.")
    return before, after
