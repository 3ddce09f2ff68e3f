"""What speaks against the numbers of a run: one sentence per kind, with how often, where and what to do."""

from collections.abc import Mapping, Sequence

from diskbook.facts.table_writers import capital
from diskbook.report.show import facts
from diskbook.report.show.analysed import Analysed
from diskbook.report.show.html import Html, escaped, folded, table
from diskbook.stats.plausibility import Doubt, Kind

HEAD = "look at these before any number"
_MOST_NAMED = 2


def sentences(items: Sequence[Doubt], n_trials: int) -> list[str]:
    """Say each kind of doubt once, worst kind first; nothing where there is none.

    - `items`: from `stats.compare.Compared`.
    - `n_trials`: finished trials of the run.
    """
    return [_sentence(kind, of_kind, n_trials) for kind, of_kind in _by_kind(items).items()]


def doubts(a: Analysed) -> Html:
    """Say what speaks against the numbers of any measurement, at the top of a report; folded, each cell."""
    items = a.compared.doubts
    if not items:
        return Html("")
    lines = sentences(items, facts.n_trials(a))
    listed = "".join(f"<li>{escaped(capital(line))}</li>" for line in lines)
    head = f'<div class="doubts" role="note"><p><b>{capital(HEAD)} below.</b></p>'
    return Html(f"{head}<ul>{listed}</ul></div>{folded('Cell by cell', _cells(items, a.labels, a.words))}")


def _by_kind(items: Sequence[Doubt]) -> dict[Kind, list[Doubt]]:
    by_kind = {kind: [item for item in items if item.kind is kind] for kind in Kind}
    return {kind: of_kind for kind, of_kind in by_kind.items() if of_kind}


def _sentence(kind: Kind, items: Sequence[Doubt], n_trials: int) -> str:
    by_words: dict[str, list[str]] = {}
    for item in items:
        by_words.setdefault(item.words, []).append(f"{item.arm}, {item.workload}")
    named = [f"{places[0]}: {words}" for words, places in list(by_words.items())[:_MOST_NAMED]]
    more = ["..."] if len(by_words) > _MOST_NAMED else []
    return f"{kind}, {_count(items, n_trials)}: {'; '.join([*named, *more])}. What helps: {kind.remedy}"


def _count(items: Sequence[Doubt], n_trials: int) -> str:
    trials = {item.trial for item in items} - {""}
    if trials:
        return f"{len(trials):,} of {n_trials:,} measurement{'s' * (n_trials != 1)}"
    cells = {(item.arm, item.workload) for item in items}
    return f"{len(cells):,} cell{'s' * (len(cells) != 1)}"


def _cells(items: Sequence[Doubt], labels: Mapping[str, str], words: Mapping[str, str]) -> Html:
    """One row a cell and kind, with the first of its measurements in words."""
    cells: dict[tuple[str, str, Kind], list[Doubt]] = {}
    for item in items:
        cells.setdefault((item.arm, item.workload, item.kind), []).append(item)
    rows = [
        {
            "Arm": labels[arm],
            "Load": words[workload],
            "Doubt": str(kind),
            "Measurements": len(of_cell) if of_cell[0].trial else "",
            "What was seen": of_cell[0].words,
        }
        for (arm, workload, kind), of_cell in cells.items()
    ]
    return table(rows, "What speaks against the numbers, by cell")
