"""One scenario over all its runs: as text, Markdown and CSV."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from diskbook.facts import quantities, table_writers
from diskbook.facts.table_writers import Table, wrapped
from diskbook.report.comparing.over_runs import OfRuns, OverRuns
from diskbook.report.comparing.same_question import KEY

WIDTH = 80


def text(over: OverRuns) -> str:
    """All that `diskbook compare --scenario` prints."""
    parts = [_head(over), *("\n".join(_lines(row)) for row in over.rows), "\n".join(_left_out(over))]
    return wrapped("\n\n".join(filter(None, parts)), WIDTH)


def _head(over: OverRuns) -> str:
    days = " to ".join(dict.fromkeys(filter(None, (over.first_day, over.last_day))))
    parts = [f"{_runs(over.n_runs)} ({over.provenance})", f"{over.n_replicates:,} replicates", days]
    return f"{over.scenario}: {', '.join(filter(None, parts))}"


def _lines(row: OfRuns) -> Iterator[str]:
    yield f"{row.words} ({row.family})"
    yield f"  {_runs(row.n_runs)}, {_kind(row)}: {ratios(row)}"
    yield f"  {_verdicts(row)}"
    if row.between is not None:
        yield f"  {row.between.words}"


def _runs(number: int) -> str:
    return f"{number:,} run{'s' * (number != 1)}"


def _kind(row: OfRuns) -> str:
    where = f", disks answer from {row.stratum}" if row.stratum else ""
    return f"{row.provenance}, {row.scope}{where}"


def ratios(row: OfRuns) -> str:
    """Median and ends of the ratios: "median +139 %, +131 % (run-a) to +152 % (run-b)"."""
    if row.range is None:
        return "no ratio"
    median, low, high = (
        quantities.change(value) for value in (row.range.median, row.range.smallest, row.range.largest)
    )
    return f"median {median}, {low} ({row.range.smallest_run}) to {high} ({row.range.largest_run})"


def _verdicts(row: OfRuns) -> str:
    listed = ", ".join(f"{word} {number:,}" for word, number in row.verdicts.items())
    return f"{listed}; {_runs(row.n_withheld)} without a ratio" if row.n_withheld else listed


def _left_out(over: OverRuns) -> Iterator[str]:
    if over.left_out:
        yield "not compared:"
    for item in over.left_out:
        yield f"  {_runs(item.n_runs)}, {item.what}: {item.why}"


def shown(over: OverRuns) -> Table:
    """The rows as readers see them."""
    return Table.of(
        [
            {
                "Comparison": f"{row.words} ({row.family})",
                "Runs": row.n_runs,
                "Of what": _kind(row),
                "Ratios": ratios(row),
                "Verdicts of the runs": _verdicts(row),
                "Spread between runs": "" if row.between is None else row.between.words,
            }
            for row in over.rows
        ]
    )


def markdown(over: OverRuns) -> str:
    """The same as Markdown."""
    parts = [f"**{_head(over)}**", table_writers.markdown(shown(over)), "\n".join(_left_out(over))]
    return "\n\n".join(filter(None, parts))


def csv(over: OverRuns) -> str:
    """All numbers as CSV."""
    return table_writers.as_csv(Table.of([record(row) for row in over.rows]))


def record(row: OfRuns) -> dict[str, Any]:
    """All numbers of a row, for programs."""
    shown, spread = row.range, None if row.between is None else row.between.spread
    return {
        "family": row.family,
        **dict(zip(KEY, row.key, strict=True)),
        "provenance": row.provenance,
        "scope": str(row.scope),
        "stratum": row.stratum,
        "n_runs": row.n_runs,
        "n_without_ratio": row.n_withheld,
        "ratio_median": shown and shown.median,
        "ratio_smallest": shown and shown.smallest,
        "smallest_run": shown.smallest_run if shown else "",
        "ratio_largest": shown and shown.largest,
        "largest_run": shown.largest_run if shown else "",
        "log_sd": spread and spread.sd,
        "log_sd_low": spread and spread.low,
        "log_sd_high": spread and spread.high,
        "p": spread and spread.p,
        "has_disks": bool(row.between and row.between.has_disks),
    }
