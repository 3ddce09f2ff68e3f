"""Gates on limits: a cell on a cap or in a queue, and burst credit, tell of the limit and not of the disk."""

import math
from collections.abc import Iterable, Mapping, Sequence

from diskbook.design.vocabulary import CreditState, Label, Verdict
from diskbook.facts.metrics import METRICS
from diskbook.stats.gates import Cell, Gate, distinct, failed, farthest, not_assessable, passed
from diskbook.stats.limits import CONSUMED, SHOWS_A_CAP
from diskbook.stats.platform import BURSTS
from diskbook.stats.saturation import LIMIT_LIKE

CAP = "cap"
SATURATION = "saturation"
CREDIT = "burst credit"
NOTHING_SHOWS = "nothing shows whether these single I/Os sit on a limit"
OPEN_QUEUE = "whether a disk or a queue is measured is not known"


def cap_gate(arms: Sequence[str], labels: Sequence[Cell], words: Sequence[str]) -> Gate:
    """A cell on a cap says nothing about the disk: its latency is outstanding / cap.

    - `arms`, `labels`, `words`: name, row of `limits.label_cells`, and limit in words ("" below caps) of both
      cells.
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
        remedy = f"{SHOWS_A_CAP} would tell"
        return not_assessable(CAP, cause, remedy, Verdict.INCONCLUSIVE)
    unknown = [arm for arm, cell, _ in cells if math.isnan(cell["share"])]
    if len(unknown) == len(cells):
        return not_assessable(CAP, "no limit is known")
    share = f"at most {100 * farthest(label['share'] for label in labels):.0f} %"
    if unknown:
        return not_assessable(CAP, f"no limit of {unknown[0]} is known; {share} of the other arm's")
    if any(label["label"] == Label.LIMIT_NOT_KNOWN for label in labels):
        return not_assessable(CAP, f"no limit of the machine is known; {share} of the disk's")
    return passed(CAP, f"{share} of any known limit")


def saturation_gate(arms: Sequence[str], labels: Sequence[Cell], apart: str = "") -> Gate:
    """A cell that waits in a queue says nothing about the disk, whether or not its limit is in any table.

    - `arms`, `labels`: name, and row of `limits.label_cells`, of both cells.
    - `apart`: that their ratio is not that of their single I/Os, in words (`apart_words`); "" where it may
      be.
    """
    cells = list(zip(arms, labels, strict=True))
    saturated = [(arm, cell) for arm, cell in cells if cell["label"] == Label.SATURATED]
    if saturated:
        why = " and ".join(dict.fromkeys(f"{arm} ({cell['evidence']})" for arm, cell in saturated))
        cause = f"saturated by a limit that is not known: {why}, so that latency is that of a queue"
        remedy = "measure at queue depth 1, or hold a lower rate; 'diskbook why' lists what may limit it"
        return failed(SATURATION, cause, remedy, Verdict.SATURATED)
    unassessed = [(arm, cell) for arm, cell in cells if cell["label"] == Label.UNASSESSED]
    if unassessed:
        why = " and ".join(f"{arm} ({cell['evidence']})" for arm, cell in unassessed)
        cause = f"{OPEN_QUEUE} of {why}"
        like_a_limit = any(LIMIT_LIKE in cell["evidence"] for _, cell in unassessed)
        depth = "twice the depth" if like_a_limit else "queue depth 1"
        remedy = f"measure the same load at {depth} as well"
        return not_assessable(SATURATION, cause, remedy, Verdict.INCONCLUSIVE)
    if apart:
        remedy = "measure the same load at twice the depth as well, or at queue depth 1 alone"
        return not_assessable(SATURATION, apart, remedy, Verdict.INCONCLUSIVE)
    return _no_queue(labels)


def _no_queue(labels: Sequence[Cell]) -> Gate:
    """Say of cells without a queue what shows that."""
    if any(cell["label"] in (Label.CAPPED, Label.NEAR_A_CAP) for cell in labels):
        return passed(SATURATION, "no queue but that of a known limit")
    if any(cell["outstanding"] == 1 and not cell["shown"] for cell in labels):
        return not_assessable(SATURATION, NOTHING_SHOWS, "measure the same load at queue depth 2 as well")
    most = farthest(cell["in_flight"] / cell["needed"] for cell in labels if cell["needed"] > 0)
    if math.isnan(most):
        return passed(SATURATION, "single I/Os: nothing queues behind them")
    return passed(SATURATION, f"at most {most:.1f} times the I/Os in flight that the rate needs")


def is_open(cell: Cell) -> bool:
    """Whether a deep cell is on no limit that is known, and no other load shows that it is on none."""
    known = cell and cell["label"] not in (Label.CAPPED, Label.NEAR_A_CAP)
    return bool(known and cell["closed"] and cell["outstanding"] > 1 and not cell["shown"])


def apart_words(difference: tuple[float, float, float], single: str) -> str:
    """Say how far a ratio at depth lies from that of single I/Os (`view.apart_at_depth`)."""
    middle, low, high = (f"{math.expm1(value):+.1%}" for value in difference)
    ratios = f"the ratio at this depth is {middle} ({low} to {high}) from that of {single}"
    return f"{LIMIT_LIKE}: {ratios}, as when a limit holds an arm, or as arms that slow with depth unlike"


def credit_gate(cells: Sequence[Cell]) -> Gate:
    """Where any is drawn, burst credit must be known, and must last or be spent alike in all trials.

    How much is left does not change a rate as long as some is, so partial counts as full (see `credit`). An
    arm on which nothing bursts has no state that could differ from the other's. States that are known to
    differ count, whatever is not known of other trials.
    """
    if not any(cell["draws_credit"] is True or cell["draws_credit"] == 1 for cell in cells):
        return passed(CREDIT, "no trial ran above a base limit, so none drew credit")
    by_cell = [
        {CreditState.FULL if state == CreditState.PARTIAL else state for state in distinct(cell["credit"])}
        for cell in cells
    ]
    known = [of_cell - {CreditState.UNKNOWN} for of_cell in by_cell]
    states = set.union(*(of_cell for of_cell in known if of_cell != {CreditState.NONE}), set())
    remedy = "report burst and base apart, or wait for refill"
    if states == {CreditState.DRAINED}:
        cause = "credit ran out within trials, which are a mixture of burst and base"
        return failed(CREDIT, cause, remedy)
    if len(states) > 1:
        return failed(CREDIT, f"credit differed between trials ({', '.join(sorted(states))})", remedy)
    if not states or not all(by_cell) or known != by_cell:
        remedy = "fetch the credit metrics, or turn bursting off"
        cause = "credit was drawn and its state is not known"
        return not_assessable(CREDIT, cause, remedy, Verdict.INCONCLUSIVE)
    if states == {CreditState.FULL}:
        return passed(CREDIT, "credit lasted throughout every trial that draws on it")
    return passed(CREDIT, f"credit was {states.pop()} in every trial that draws on it")


def without_interval(findings: Iterable[Gate]) -> str:
    """Say why a ratio of rates has no interval: a cap that may bind, or credit that may have lasted or not.

    Trials that reach a limit now and then are cut off above: their interval holds the truth in 76 % only; and
    two equal arms of unlike credit differed in 150 of 150 pairs.
    """
    open_ = (gate for gate in findings if gate.name in (CAP, CREDIT) and gate.decides is Verdict.INCONCLUSIVE)
    return next((gate.words for gate in open_), "")


_NAMES = {metric.limit: metric.name for metric in METRICS if not metric.credit}


def platform_gate(
    arms: Sequence[str], labels: Sequence[Cell], consumed_pct: Mapping[tuple[str, str, str], float]
) -> Gate | None:
    """A cell below all limits we know, of which the platform reports one as consumed, may sit on it.

    - `arms`, `labels`: name, and row of `limits.label_cells`, of both cells.
    - `consumed_pct`: as for `limits.label_cells`. Above `BURSTS` it tells of a burst, and of no limit.

    Returns None where the platform reports nothing of the kind.
    """
    below = (Label.BELOW_CAP, Label.LIMIT_NOT_KNOWN)
    reported = [
        f"{_NAMES[limit]} {consumed_pct[arm, cell['workload'], limit]:.0f} % of {arm}"
        for arm, cell in zip(arms, labels, strict=True)
        for limit in _NAMES
        if cell["label"] in below
        and CONSUMED <= consumed_pct.get((arm, cell["workload"], limit), 0.0) <= BURSTS
    ]
    if not reported:
        return None
    cause = f"the platform reports {' and '.join(reported)}, though the rate reaches no limit that is known"
    remedy = "compare the limits of this run with those of the machine and the disk, or offer a lower rate"
    return not_assessable(CAP, cause, remedy, Verdict.INCONCLUSIVE)
