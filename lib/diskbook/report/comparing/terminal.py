"""The comparison as text for a terminal of 80 columns."""

import math
import textwrap
from collections.abc import Iterator

from diskbook.facts import quantities
from diskbook.facts.table_writers import Notes
from diskbook.report.comparing import changed, tables
from diskbook.report.comparing.compared import Beside
from diskbook.report.comparing.pairs import Pair, label
from diskbook.results.manifest import origin

WIDTH = 80
LONGEST = 24
"""Letters of a value that stands beside others in one line."""


def brief(beside: Beside, outcome: tables.Outcome | None = None) -> str:
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
        "\n".join(_runs(beside)),
        _wrapped("", beside.remarks) if beside.remarks else "",
        "\n".join(row.rstrip() for row in rows) if beside.pairs else "",
        "\n".join(_left_out(beside)),
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
    words = tables.verdict_words(pair)
    change = words if words == tables.UNTOLD else quantities.change(pair.ratio[0])
    p = "" if pair.verdict is None else _p(pair.p_adjusted)
    who = f" [{_pair_name(pair)}]" * several
    return f"{name}{who}", old, new, change, p, tables.n_words(pair).removesuffix(" blocks")


def text(beside: Beside, outcome: tables.Outcome | None = None) -> str:
    """All that `diskbook compare -v` prints."""
    notes = Notes()
    sections = [
        "\n".join(_runs(beside)),
        "\n".join(_changes(beside)),
        *(
            "\n".join(_comparison(beside, key, notes))
            for key in dict.fromkeys(pair.key for pair in beside.pairs)
        ),
        "\n".join(_left_out(beside)),
        "\n".join(_wrapped(f"[{number}] ", note) for note, number in notes.items()),
        "" if outcome is None else _wrapped("", outcome.words),
    ]
    return "\n\n".join(filter(None, sections))


def _runs(beside: Beside) -> Iterator[str]:
    width = max(len(item.letter) for item in beside.runs)
    for item in beside.runs:
        whence = ", ".join(filter(None, [item.provenance, origin(item.manifest)]))
        yield _wrapped(f"{item.letter:<{width}}  ", f"{item.name} ({whence}), {changed.hours(item)}")


def _changes(beside: Beside) -> Iterator[str]:
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
    yield f"  {of_key[0].first:<{width}}{tables.ratio_words(of_key[0].ratios[0])}"
    for pair in of_key:
        yield f"  {pair.other:<{width}}{tables.ratio_words(pair.ratios[1])}"
        yield _judged(pair, width, notes)
    for item in beside.spreads:
        if item.key == key:
            yield _wrapped("  ", item.words, 4)


def _judged(pair: Pair, width: int, notes: Notes) -> str:
    p = "" if pair.verdict is None else f" (p {_p(pair.p_adjusted)})"
    marks = " ".join(notes.mark(note) for note in pair.notes)
    verdict = f"{tables.verdict_words(pair)}{p}, n {tables.n_words(pair)} {marks}".rstrip()
    line = f"  {_pair_name(pair):<{width}}{tables.ratio_of_ratios_words(pair)}"
    whole = f"{line}  {verdict}"
    return whole if len(whole) <= WIDTH else f"{line}\n  {'':<{width}}{verdict}"


def _p(value: float) -> str:
    return "<0.001" if value < 0.001 else f"{value:.2g}"


def _pair_name(pair: Pair) -> str:
    return f"{pair.other}/{pair.first}"


def _left_out(beside: Beside) -> Iterator[str]:
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
