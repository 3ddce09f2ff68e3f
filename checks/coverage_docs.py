"""What `make coverage` found, as tables for docs/explanation/coverage.md."""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from checks import (
    coverage_attach,
    coverage_cells,
    coverage_held,
    coverage_knee,
    coverage_limits,
    coverage_looks,
    coverage_noise,
    coverage_outlooks,
    coverage_percentiles,
    coverage_runs,
    coverage_stationarity,
)
from checks.coverage_rule import OFTEN_REFUSED
from diskbook.design.vocabulary import Scope
from diskbook.facts import files
from diskbook.facts.errors import UsageError
from diskbook.stats.knee import UNEVEN

BEGIN, END = "<!-- written by make coverage: begin -->", "<!-- written by make coverage: end -->"
HEADS = (
    *("Condition", "Claim", "Coverage, %", "Worst design", "Designs judged"),
    *("Refused, %", "Flagged, %", "Equal arms differ, %", "Said of it"),
)
SUMMARY_HEADS = (
    *("Table", "Claim", "Worst, %", "Worst cell", "Cells", "All cells, %"),
    *("Without known limits, %", "Equal arms differ, at most %"),
)
LIMITED = "known limit: "


class Line(NamedTuple):
    """What one claim covers under one condition, over all designs that were simulated.

    - `coverages`: of the designs that are judged.
    - `refused`, `flagged`: shares of runs, by design.
    - `words`: what is said where it covers too little or too much, and why runs are refused.
    - `designs`: of each of `coverages`: replicates x blocks, or what else its size is.
    - `false`: shares of runs of equal arms that show a difference, by design.
    """

    condition: str
    claim: str
    coverages: Sequence[float]
    refused: Sequence[float]
    flagged: Sequence[float]
    words: str
    designs: Sequence[str] = ()
    false: Sequence[float] = ()

    @property
    def worst(self) -> float:
        """Lowest coverage; infinite where no design is judged."""
        return min(self.coverages, default=math.inf)

    @property
    def worst_design(self) -> str:
        """Design of the lowest coverage."""
        return self.designs[self.coverages.index(self.worst)] if self.coverages else ""


def of_cells(rows: Iterable[coverage_cells.Row]) -> Iterator[Line]:
    """A line a condition and scope; one replicate, which says nothing about other disks, counts nowhere."""
    kept = [row for row in rows if not _says_nothing(row)]
    for (name, scope), here in _by(kept, lambda row: (row.condition.name, row.scope)).items():
        judged = [row for row in here if row.status not in ("refused", "flagged")]
        refused, flagged = [row.refused for row in here], [row.flagged for row in here]
        false = [row.false_positive for row in judged]
        coverages = [row.coverage for row in judged]
        yield Line(name, scope, coverages, refused, flagged, _words(here), _sizes(judged), false)
        if here[0].condition.slow_lost or here[0].condition.slow_repeated:
            yield _of_bounds((name, scope), here)


def _of_bounds(place: tuple[str, str], rows: Sequence[coverage_cells.Row]) -> Line:
    """Intervals with the bound on what losses that differ by arm may have done."""
    name, scope = place
    bounded = [row for row in rows if not math.isnan(row.coverage_bound)]
    words = f"intervals that are flagged cover {_range([row.coverage_flagged for row in rows])} % without it"
    coverages = [row.coverage_bound for row in bounded]
    return Line(name, f"{scope}, with the bound on losses", coverages, [], [], words, _sizes(bounded))


def _sizes(rows: Iterable[coverage_cells.Row]) -> list[str]:
    return [f"{row.design.replicates} x {row.design.blocks}" for row in rows]


def _says_nothing(row: coverage_cells.Row) -> bool:
    return row.scope == Scope.LIKE_THESE and row.design.replicates == 1


def _words(rows: Sequence[coverage_cells.Row]) -> str:
    condition = rows[0].condition
    words = []
    if any(row.status == "FAILED" for row in rows):
        words.append("FAILED")
    if any(row.status == "known limit" for row in rows):
        words.append(f"known limit: {condition.known_limit}")
    wide = [row.why_wide for row in rows if row.status == "conservative" and row.why_wide]
    words += [f"conservative: {why}" for why in dict.fromkeys(wide)]
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
    for name, here in _by(rows, lambda row: row.cell.name).items():
        words = _marks(here, coverage_percentiles.KNOWN_LIMIT)
        apart = [row.apart for row in here]
        claim = "percentile ratio of a typical trial, these disks"
        sizes = [f"{row.cell.replicates} x {row.cell.blocks}" for row in here]
        yield Line(name, claim, [row.coverage for row in here], [], apart, "; ".join(words), sizes)


def of_noise(rows: Iterable[coverage_noise.Row]) -> Iterator[Line]:
    """A line a noise of real machines and claim."""
    kept = [row for row in rows if not row.is_refused]
    for (name, scope), here in _by(kept, lambda row: (row.cell.condition.name, row.scope)).items():
        words = _marks(here, coverage_noise.KNOWN_LIMIT)
        if scope == coverage_noise.HOURS and any(row.is_conservative for row in here):
            words.append(f"conservative: {coverage_noise.CONSERVATIVE}")
        sizes = [f"{row.cell.replicates} x {row.cell.blocks}" for row in here]
        yield Line(name, scope, [row.coverage for row in here], [], [], "; ".join(words), sizes)


def of_held(rows: Iterable[coverage_held.Row]) -> Iterator[Line]:
    """A line a cell and quantity of held rates."""
    for row in rows:
        name = f"{row.cell.rate:,} per second, {row.cell.name}"
        words = ["FAILED"] * row.is_off + [f"truth {row.truth:.3f}, half-width {row.half_width:.1%}"]
        claim = f"{row.quantity} from the intended start, these disks"
        judged = [] if row.is_refused else [row.coverage]
        design = f"1 x {coverage_held.BLOCKS}"
        yield Line(name, claim, judged, [row.refused], [], "; ".join(words), [design] * len(judged))


def of_knees(rows: Iterable[coverage_knee.Row]) -> Iterator[Line]:
    """A line a noise and number of blocks, over caps and numbers of depths."""
    for place, here in _by(rows, lambda row: row.cell.condition).items():
        judged = [row for row in here if not row.is_refused]
        widest = max((row.half_width for row in judged), default=math.nan)
        words = ["FAILED"] * any(row.is_off for row in here)
        words += [f"half-width at most {widest:.1%}"] if judged else ["too few blocks for an interval"]
        words += [f"{LIMITED}{coverage_knee.KNOWN_LIMIT}"] * any(row.is_known_limit for row in here)
        words += [f"allows for {UNEVEN:.0%} that uneven load costs"] * (here[0].cell.disks > 1)
        refused, coverages = [row.refused for row in here], [row.coverage for row in judged]
        sizes = [row.cell.size for row in judged]
        yield Line(place, "knee, these disks", coverages, refused, [], "; ".join(words), sizes)


def of_runs(rows: Iterable[coverage_runs.Row]) -> Iterator[Line]:
    """A line a condition of runs beside runs, over their sizes."""
    for name, here in _by(rows, lambda row: row.cell.name).items():
        is_pair = math.isnan(here[0].cell.spread)
        claim = "ratio of ratios, disks like these" if is_pair else "spread between runs"
        sizes = ["+".join(map(str, row.cell.replicates)) for row in here]
        false = [] if here[0].cell.planted or not is_pair else [row.shown for row in here]
        yield Line(name, claim, [row.coverage for row in here], [], [], _words_of_runs(here), sizes, false)


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
    for (name, claim), here in _by(rows, lambda row: (row.cell.level.name, row.cell.claim)).items():
        words = _marks(here, coverage_outlooks.KNOWN_LIMIT)
        sizes = [f"{row.cell.n} then {row.cell.more}" for row in here]
        yield Line(name, claim, [row.kept for row in here], [], [], "; ".join(words), sizes)


def _by(rows: Iterable[Any], key: Callable[[Any], Any]) -> dict[Any, list[Any]]:
    """Rows by what they have in common, in the order in which that first comes."""
    groups: dict[Any, list[Any]] = {}
    for row in rows:
        groups.setdefault(key(row), []).append(row)
    return groups


def _marks(rows: Sequence[Any], known_limit: str) -> list[str]:
    """Words on rows that are off, and on those that cover too little by a known limit."""
    limited = [f"{LIMITED}{known_limit}"] * any(row.is_known_limit for row in rows)
    return ["FAILED"] * any(row.is_off for row in rows) + limited


def table(lines: Iterable[Line]) -> str:
    """Lines as a Markdown table, the worst one first."""
    rows = []
    for line in sorted(lines, key=lambda line: line.worst):
        covered = _range(line.coverages), line.worst_design, str(len(line.coverages))
        false = _range(line.false) if line.false else ""
        shares = _most(line.refused), _most(line.flagged), false
        rows.append((line.condition, line.claim, *covered, *shares, line.words))
    return _markdown(HEADS, rows)


def _markdown(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    return "\n".join(f"| {' | '.join(row)} |" for row in [heads, ["---"] * len(heads), *rows])


def summary(tables: Mapping[str, Sequence[Line]]) -> str:
    """One line per table and claim: its worst cell, and what it covers, as a Markdown table."""
    rows = []
    for name, lines in tables.items():
        for claim in dict.fromkeys(line.claim for line in lines):
            here = [line for line in lines if line.claim == claim and line.coverages]
            if here:
                rows.append((name, claim, here))
    rows.sort(key=lambda row: min(line.worst for line in row[2]))
    return _markdown(SUMMARY_HEADS, [(*place, *_summed_up(here)) for *place, here in rows])


def _summed_up(lines: Sequence[Line]) -> Iterator[str]:
    """Cells of one claim: the worst one, the range of all, and of those without a known limit."""
    worst = min(lines, key=lambda line: line.worst)
    yield f"{100 * worst.worst:.1f}"
    yield f"{worst.condition}, {worst.worst_design}"
    yield str(sum(len(line.coverages) for line in lines))
    yield _range([share for line in lines for share in line.coverages])
    open_to = [line for line in lines if LIMITED not in line.words]
    yield _range([share for line in open_to for share in line.coverages]) if open_to else "no such cell"
    false = [share for line in lines for share in line.false if not math.isnan(share)]
    yield f"{100 * max(false):.1f}" if false else ""


def gates_and_limits(
    stationarity: Iterable[coverage_stationarity.Row], limits: Iterable[coverage_limits.Row]
) -> str:
    """Say how many alarms and verdicts are false at most, and what is refused, as a list."""
    listed = list(limits)
    alarm = max(stationarity, key=lambda row: row.alarms, default=None)
    lines = []
    if alarm is not None:
        noise = f"CV of seconds {alarm.cell.cv:.1%}, autocorrelation {alarm.cell.phi:g}"
        lines.append(f"Steady trials are called unsteady in at most {100 * alarm.alarms:.1f} % ({noise}).")
    if listed:
        worst = max(listed, key=lambda row: row.false)
        where = f"{worst.cell.place}, {worst.cell.times:g} times below".removesuffix(", nan times below")
        decided = [row.decided for row in listed if row.cell.times >= coverage_limits.DUE]
        alike = [row.refused for row in listed if row.cell.place.startswith("none, slow alike")]
        unlike = [row.refused for row in listed if row.cell.place == "none, slow unlike"]
        lines += [
            f"Hidden limits: false verdicts in at most {100 * worst.false:.1f} % of comparisons of a cell "
            f"({where}). Where a limit of 1.1 times or more moves the ratio by more than 2.5 %, "
            f"{_range(decided)} % get a verdict.",
            f"Without a limit {_range(alike)} % are refused where both arms slow alike with depth, and "
            f"{_range(unlike)} % where one slows 5 % more.",
        ]
    return "\n".join(f"- {line}" for line in lines)


def of_stationarity(rows: Iterable[coverage_stationarity.Row]) -> str:
    """Alarms without cause, and falls seen where they are due, as a Markdown table."""
    falls = coverage_stationarity.FALLS
    heads = ("CV of seconds", "phi", "Trials an arm", "Steady, %", *(f"{fall.name}, %" for fall in falls))
    cells = []
    for row in sorted(rows, key=lambda row: -row.alarms):
        seen = [
            f"{100 * row.seen[fall]:.0f}{'' if fall.is_due(row.cell) else ' (not due)'}" for fall in falls
        ]
        noise = f"{row.cell.cv:.1%}", f"{row.cell.phi:g}", str(row.cell.trials), f"{100 * row.alarms:.1f}"
        cells.append((*noise, *seen))
    return _markdown(heads, cells)


def of_limits(rows: Iterable[coverage_limits.Row]) -> str:
    """What the analysis says of planted limits, as a Markdown table: a line a limit, over designs."""
    heads = ("Limit on", "Times below", "False, %", "Decided where moved, %", "Refused, %", "In ms, %")
    by_limit = _by(rows, lambda row: (row.cell.place, f"{row.cell.times:g}".replace("nan", "")))
    lines = []
    for limit, here in sorted(by_limit.items(), key=lambda item: -_falsest(item[1])):
        shares = ([getattr(row, name) for row in here] for name in ("false", "decided", "refused", "latency"))
        lines.append((*limit, *("" if all(map(math.isnan, share)) else _range(share) for share in shares)))
    return _markdown(heads, lines)


def _falsest(rows: Iterable[coverage_limits.Row]) -> float:
    """Largest share of false verdicts, and of undue ones."""
    return max(share for row in rows for share in (row.false, row.decided) if not math.isnan(share))


def of_attach(rows: Iterable[coverage_attach.Row]) -> str:
    """What is said of disks that are slow after an attach, as a table: a line an effect and noise."""
    heads = ("Slow after an attach", "Noise", "False, %", "Silent, %", "Depends, %", "Open, %", "Marks")
    lines = []
    for (planted, noise), here in _by(rows, lambda row: (row.cell.planted, row.cell.noise)).items():
        words = _marks(here, coverage_attach.KNOWN_LIMIT)
        parts = ([getattr(row, name) for row in here] for name in ("false", "silent", "depends", "open"))
        lines.append((planted.name, f"{noise:.1%}", *map(_range, parts), "; ".join(words)))
    return _markdown(heads, lines)


def _range(shares: Sequence[float]) -> str:
    known = [100 * share for share in shares if not math.isnan(share)]
    return f"{min(known):.1f} to {max(known):.1f}" if known else "none printed"


def _most(shares: Sequence[float]) -> str:
    return f"{100 * min(shares):.0f} to {100 * max(shares):.0f}" if shares else ""


def of_looks(rows: Iterable[coverage_looks.Row]) -> str:
    """What runs that stop at planned looks find, as a table: a line a design and effect."""
    heads = (
        *("Looks after blocks", "Headlines", "Effect, s.d.", "False alarms, %", "Coverage, %"),
        *("Naive interval covers, %", "Width / naive", "Blocks"),
    )
    lines = [
        (
            ", ".join(map(str, row.cell.looks)),
            str(row.cell.headlines),
            f"{row.cell.effect:g}",
            "" if math.isnan(row.false) else f"{100 * row.false:.1f}",
            *(f"{100 * share:.1f}" for share in (row.covers, row.naive_covers)),
            *(f"{row.width_ratio:.2f}", f"{row.blocks:.1f}"),
        )
        for row in rows
    ]
    return _markdown(heads, lines)


def write(
    path: Path,
    rows: Sequence[coverage_cells.Row],
    percentiles: Iterable[coverage_percentiles.Row],
    stationarity: Iterable[coverage_stationarity.Row],
    noise: Iterable[coverage_noise.Row],
    held: Iterable[coverage_held.Row],
    knees: Iterable[coverage_knee.Row],
    runs: Iterable[coverage_runs.Row],
    outlooks: Iterable[coverage_outlooks.Row],
    limits: Iterable[coverage_limits.Row],
    attach: Iterable[coverage_attach.Row],
    looks: Iterable[coverage_looks.Row],
) -> None:
    """Put tables into a document, between its two marks, with their summary first.

    Raises UsageError when there is no such document, or it has no such marks.
    """
    of_lines = {
        "Ratios": list(of_cells(rows)),
        "Ratios under the noise of real machines": list(of_noise(noise)),
        "Held rates": list(of_held(held)),
        "Percentile ratios": list(of_percentiles(percentiles)),
        "Knees of curves over depths": list(of_knees(knees)),
        "Runs beside runs": list(of_runs(runs)),
        "Outlooks: share of runs in which a width that is said with 80 % comes true": list(
            of_outlooks(outlooks)
        ),
    }
    steady, planted = list(stationarity), list(limits)
    tables = {
        "Worst cells first": f"{summary(of_lines)}\n\n{gates_and_limits(steady, planted)}",
        **{name: table(lines) for name, lines in of_lines.items()},
        "The gate of stationarity": of_stationarity(steady),
        "Hidden limits": of_limits(planted),
        "Attach effects": of_attach(attach),
        "Planned looks": of_looks(looks),
    }
    text = "\n\n".join(f"### {head}\n\n{body}" for head, body in tables.items())
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
