"""Gates on limits: a cell on a cap, and burst credit, tell of the limit and not of the disk."""

from __future__ import annotations

import math
from collections.abc import Sequence

from diskbook.stats.gates import Cell, Gate, distinct, failed, not_assessable, passed
from diskbook.tables.vocabulary import CreditState, Label, Verdict

CAP = "cap"
CREDIT = "burst credit"


def cap_gate(arms: Sequence[str], labels: Sequence[Cell], words: Sequence[str]) -> Gate:
    """A cell on a cap says nothing about the disk: its latency is outstanding / cap.

    Parameters
    ----------
    arms, labels, words
        Name, row of `limits.label_cells`, and limit in words ("" below caps) of both cells.
    """
    cells = list(zip(arms, labels, words, strict=True))
    capped = [(arm, limit) for arm, cell, limit in cells if cell["label"] == Label.CAPPED]
    if capped:
        where = " and ".join(f"{arm} sits on its {limit}" for arm, limit in capped)
        if len(capped) == 2 and words[0] == words[1]:
            where = f"both arms sit on the {words[0]}"
        outstanding = labels[0]["outstanding"]
        cause = f"{where}, so that latency is {outstanding:.0f} outstanding / cap whatever the disk"
        remedy = "measure at queue depth 1, or hold the rate below the cap"
        return failed(CAP, cause, remedy, Verdict.CAPPED)
    near = [
        f"{arm} at {100 * cell['share']:.0f} % of its {limit}"
        for arm, cell, limit in cells
        if cell["label"] == Label.NEAR_A_CAP
    ]
    if near:
        cause = f"{' and '.join(near)}, which may or may not bind"
        remedy = "measure a second depth, or 30 s and more, to tell"
        return not_assessable(CAP, cause, remedy, Verdict.INCONCLUSIVE)
    share = max(float(label["share"]) for label in labels)
    if math.isnan(share):
        return not_assessable(CAP, "no limit is known")
    return passed(CAP, f"at most {100 * share:.0f} % of any known limit")


def credit_gate(cells: Sequence[Cell]) -> Gate:
    """Where any is drawn, burst credit must be known, and must last or be spent alike in all trials.

    How much is left does not change a rate as long as some is, so partial counts as full (see `credit`).
    """
    if not any(cell["draws_credit"] is True or cell["draws_credit"] == 1 for cell in cells):
        return passed(CREDIT, "no trial ran above a base limit, so none drew credit")
    by_cell = [
        {CreditState.FULL if state == CreditState.PARTIAL else state for state in distinct(cell["credit"])}
        for cell in cells
    ]
    if any(not states or CreditState.UNKNOWN in states for states in by_cell):
        remedy = "fetch the credit metrics, or turn bursting off"
        return not_assessable(CREDIT, "credit was drawn and its state is not known", remedy)
    states = set.union(*by_cell)
    if states == {CreditState.FULL}:
        return passed(CREDIT, "credit lasted throughout every trial of both arms")
    if len(states) == 1 and CreditState.DRAINED not in states:
        return passed(CREDIT, f"credit was {states.pop()} in every trial of both arms")
    cause = f"credit differed between trials ({', '.join(sorted(states))})"
    if states == {CreditState.DRAINED}:
        cause = "credit ran out within trials, which are a mixture of burst and base"
    return failed(CREDIT, cause, "report burst and base apart, or wait for refill")
