"""What `make coverage` found, as tables for docs/coverage.md."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from diskbook.base import files
from diskbook.base.errors import UsageError
from diskbook.selftest import (
    coverage_cells,
    coverage_knee,
    coverage_limits,
    coverage_noise,
    coverage_outlooks,
    coverage_percentiles,
    coverage_runs,
    coverage_stationarity,
)
from diskbook.selftest.coverage_rule import OFTEN_REFUSED
from diskbook.tables.vocabulary import Scope

BEGIN, END = "<!-- written by make coverage: begin -->", "<!-- written by make coverage: end -->"
HEADS = ("Condition", "Claim", "Coverage, %", "Designs judged", "Refused, %", "Flagged, %", "Said of it")


class Line(NamedTuple):
    """What one claim covers under one condition, over all designs that were simulated.

    Attributes
    ----------
    coverages
        Of the designs that are judged.
    refused, flagged
        Shares of runs, by design.
    words
        What is said where it covers too little or too much, and why runs are refused.
    """

    condition: str
    claim: str
    coverages: Sequence[float]
    refused: Sequence[float]
    flagged: Sequence[float]
    words: str


def of_cells(rows: Iterable[coverage_cells.Row]) -> Iterator[Line]:
    """A line a condition and scope; one replicate, which says nothing of other disks, counts nowhere."""
    kept = [row for row in rows if not _says_nothing(row)]
    for place in dict.fromkeys((row.condition.name, row.scope) for row in kept):
        here = [row for row in kept if (row.condition.name, row.scope) == place]
        judged = [row.coverage for row in here if row.status not in ("refused", "flagged")]
        shares = [row.refused for row in here], [row.flagged for row in here]
        yield Line(*place, judged, *shares, _words(here))


def _says_nothing(row: coverage_cells.Row) -> bool:
    return row.scope == Scope.LIKE_THESE and row.design.replicates == 1


def _words(rows: Sequence[coverage_cells.Row]) -> str:
    condition = rows[0].condition
    words = []
    if any(row.status == "FAILED" for row in rows):
        words.append("FAILED")
    if any(row.status == "known limit" for row in rows):
        words.append(f"known limit: {condition.known_limit}")
    if any(row.status == "conservative" for row in rows) and condition.conservative:
        words.append(f"conservative: {condition.conservative}")
    if _is_often_refused(rows):
        words.append(condition.refused or "NO REASON GIVEN")
    return "; ".join(words)


def _is_often_refused(rows: Iterable[coverage_cells.Row]) -> bool:
    return any(row.refused + row.flagged > OFTEN_REFUSED for row in rows if not _says_nothing(row))


def without_reason(rows: Sequence[coverage_cells.Row]) -> list[str]:
    """Conditions of which many runs are refused or flagged, and nothing says why."""
    refused = [row for row in rows if _is_often_refused([row]) and not row.condition.refused]
    return list(dict.fromkeys(row.condition.name for row in refused))


def of_percentiles(rows: Iterable[coverage_percentiles.Row]) -> Iterator[Line]:
    """A line a percentile and noise."""
    for name, group in itertools.groupby(rows, key=lambda row: row.cell.name):
        here = list(group)
        words = ["FAILED"] * any(row.is_off for row in here)
        if any(row.is_known_limit for row in here):
            words.append(f"known limit: {coverage_percentiles.KNOWN_LIMIT}")
        apart = [row.apart for row in here]
        claim = "percentile ratio of a typical trial, these disks"
        yield Line(name, claim, [row.coverage for row in here], [], apart, "; ".join(words))


def of_noise(rows: Iterable[coverage_noise.Row]) -> Iterator[Line]:
    """A line a noise of real machines and claim."""
    kept = [row for row in rows if not row.is_refused]
    for name, scope in dict.fromkeys((row.cell.condition.name, row.scope) for row in kept):
        here = [row for row in kept if (row.cell.condition.name, row.scope) == (name, scope)]
        words = ["FAILED"] * any(row.is_off for row in here)
        if any(row.is_known_limit for row in here):
            words.append(f"known limit: {coverage_noise.KNOWN_LIMIT}")
        if scope == coverage_noise.HOURS and any(row.is_conservative for row in here):
            words.append(f"conservative: {coverage_noise.CONSERVATIVE}")
        yield Line(name, scope, [row.coverage for row in here], [], [], "; ".join(words))


def of_knees(rows: Iterable[coverage_knee.Row]) -> Iterator[Line]:
    """A line a noise and number of blocks, over caps and numbers of depths."""
    listed = list(rows)
    for blocks, block, trial in dict.fromkeys(row.cell[1:4] for row in listed):
        here = [row for row in listed if row.cell[1:4] == (blocks, block, trial)]
        judged = [row for row in here if not row.is_refused]
        widest = max((row.half_width for row in judged), default=math.nan)
        words = ["FAILED"] * any(row.is_off for row in here)
        words += [f"half-width at most {widest:.1%}"] if judged else ["too few blocks for an interval"]
        name = f"{blocks} blocks ±{block:.1%}, trials ±{trial:.1%}"
        refused = [row.refused for row in here]
        yield Line(name, "knee, these disks", [row.coverage for row in judged], refused, [], "; ".join(words))


def of_runs(rows: Iterable[coverage_runs.Row]) -> Iterator[Line]:
    """A line a condition of runs beside runs, over their sizes."""
    listed = list(rows)
    for name in dict.fromkeys(row.cell.name for row in listed):
        here = [row for row in listed if row.cell.name == name]
        is_pair = math.isnan(here[0].cell.spread)
        claim = "ratio of ratios, disks like these" if is_pair else "spread between runs"
        yield Line(name, claim, [row.coverage for row in here], [], [], _words_of_runs(here))


def _words_of_runs(rows: Sequence[coverage_runs.Row]) -> str:
    cell, unjudged = rows[0].cell, [row.cell for row in rows if row.cell.is_unjudged]
    words = ["FAILED"] * any(row.is_off for row in rows)
    shown, family = _range([row.shown for row in rows]), _range([row.family for row in rows])
    if cell.planted:
        return "; ".join([*words, f"found in {shown} % with {cell.replicates[0]} replicates, as plan names"])
    if not math.isnan(cell.spread):
        return "; ".join(
            [*words, *[f"a spread is shown in {shown} % where there is none"] * (not cell.spread)]
        )
    words.append(f"a difference is shown in {shown} % of pairs; of seven comparisons, in {family} %")
    if unjudged:
        listed = ", ".join("+".join(map(str, item.replicates)) for item in unjudged)
        words.append(f"no verdict in {len(unjudged)} of {len(rows)} designs: {listed}")
    return "; ".join(words)


def of_outlooks(rows: Iterable[coverage_outlooks.Row]) -> Iterator[Line]:
    """A line a noise and kind of outlook, with the share of runs in which it came true."""
    listed = list(rows)
    for name, claim in dict.fromkeys((row.cell.level.name, row.cell.claim) for row in listed):
        here = [row for row in listed if (row.cell.level.name, row.cell.claim) == (name, claim)]
        words = ["FAILED"] * any(row.is_off for row in here)
        if any(row.is_known_limit for row in here):
            words.append(f"known limit: {coverage_outlooks.KNOWN_LIMIT}")
        yield Line(name, claim, [row.kept for row in here], [], [], "; ".join(words))


def table(lines: Iterable[Line]) -> str:
    """Lines as a Markdown table."""
    rows = [HEADS, tuple("---" for _ in HEADS)]
    for line in lines:
        number = str(len(line.coverages))
        shares = _range(line.coverages), number, _most(line.refused), _most(line.flagged)
        rows.append((line.condition, line.claim, *shares, line.words))
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def of_stationarity(rows: Iterable[coverage_stationarity.Row]) -> str:
    """Alarms without cause, and falls seen where they are due, as a Markdown table."""
    falls = coverage_stationarity.FALLS
    heads = ("CV of seconds", "phi", "Trials an arm", "Steady, %", *(f"{fall.name}, %" for fall in falls))
    cells = [heads, tuple("---" for _ in heads)]
    for row in rows:
        seen = [
            f"{100 * row.seen[fall]:.0f}{'' if fall.is_due(row.cell) else ' (not due)'}" for fall in falls
        ]
        noise = f"{row.cell.cv:.1%}", f"{row.cell.phi:g}", str(row.cell.trials), f"{100 * row.alarms:.1f}"
        cells.append((*noise, *seen))
    return "\n".join(f"| {' | '.join(row)} |" for row in cells)


def of_limits(rows: Iterable[coverage_limits.Row]) -> str:
    """What the analysis says of planted limits, as a Markdown table: a line a limit, over designs."""
    heads = ("Limit on", "Times below", "False, %", "Decided where moved, %", "Refused, %", "In ms, %")
    by_limit: dict[tuple[str, str], list[coverage_limits.Row]] = {}
    for row in rows:
        times = "" if math.isnan(row.cell.times) else f"{row.cell.times:g}"
        by_limit.setdefault((row.cell.place, times), []).append(row)
    lines = [heads, tuple("---" for _ in heads)]
    for limit, here in by_limit.items():
        shares = ([getattr(row, name) for row in here] for name in ("false", "decided", "refused", "latency"))
        lines.append((*limit, *("" if all(map(math.isnan, share)) else _range(share) for share in shares)))
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _range(shares: Sequence[float]) -> str:
    known = [100 * share for share in shares if not math.isnan(share)]
    return f"{min(known):.1f} to {max(known):.1f}" if known else "none printed"


def _most(shares: Sequence[float]) -> str:
    return f"{100 * min(shares):.0f} to {100 * max(shares):.0f}" if shares else ""


def write(
    path: Path,
    rows: Sequence[coverage_cells.Row],
    percentiles: Iterable[coverage_percentiles.Row],
    stationarity: Iterable[coverage_stationarity.Row],
    noise: Iterable[coverage_noise.Row],
    knees: Iterable[coverage_knee.Row],
    runs: Iterable[coverage_runs.Row],
    outlooks: Iterable[coverage_outlooks.Row],
    limits: Iterable[coverage_limits.Row],
) -> None:
    """Put tables into a document, between its two marks.

    Raises
    ------
    UsageError
        When there is no such document, or it has no such marks.
    """
    before, after = around(path)
    tables = {
        "Ratios": table(of_cells(rows)),
        "Ratios under the noise of real machines": table(of_noise(noise)),
        "Percentile ratios": table(of_percentiles(percentiles)),
        "The gate of stationarity": of_stationarity(stationarity),
        "Knees of curves over depths": table(of_knees(knees)),
        "Runs beside runs": table(of_runs(runs)),
        "Outlooks: share of runs in which a width that is said with 80 % comes true": table(
            of_outlooks(outlooks)
        ),
        "Hidden limits": of_limits(limits),
    }
    text = "\n\n".join(f"### {head}\n\n{body}" for head, body in tables.items())
    files.write_atomic(path, f"{before}{BEGIN}\n\n{text}\n\n{END}{after}")


def around(path: Path) -> tuple[str, str]:
    """Text of a document before and after its two marks.

    Raises
    ------
    UsageError
        When there is no such document, or it has no such marks.
    """
    try:
        before, begin, rest = path.read_text("utf-8").partition(BEGIN)
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} cannot be read ({error}): name the document with the marks.") from None
    _, end, after = rest.partition(END)
    if not (begin and end):
        raise UsageError(f"{path} has no lines '{BEGIN}' and '{END}': put them where the tables belong.")
    return before, after
