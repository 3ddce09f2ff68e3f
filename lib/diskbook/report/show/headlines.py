"""Which headline answers a scenario's question: the first decided one, in the order fixed before the run.

The order is that of the scenario's `[[comparison]]` tables, which are part of the hashed plan. Difference and
equivalence decide alike; who could choose the order afterwards would lead with what pleases.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd

from diskbook.design import schema
from diskbook.design.model import Scenario
from diskbook.design.vocabulary import Provenance, Verdict
from diskbook.facts.errors import DiskbookError, visible
from diskbook.facts.table_writers import capital
from diskbook.report.show import sentences
from diskbook.results.run import HEADLINE_FILE, Run
from diskbook.results.tables import read_csv

EMULATED = "On the emulator, "
"""How a sentence begins that may be copied out of an emulated run."""
DECIDED = (Verdict.DIFFERENCE, Verdict.EQUIVALENT)
NOTHING_NAMED = "no headline: the scenario compares nothing; the report shows what each cell reached"
NOTHING_MEASURED = "no headline: nothing was measured that the scenario compares"
_NAMES = ["arm", "base_arm", "workload", "metric"]


@dataclass(frozen=True)
class Headlines:
    """Headline comparisons of a run, in the order fixed before it.

    - `rows`: one a comparison and direction (`sentences.chosen`).
    - `place`: of the one that leads: the first that is decided, else the first.
    """

    rows: tuple[sentences.Row, ...]
    place: int

    @property
    def lead(self) -> sentences.Row | None:
        """The headline that answers; None where there are none."""
        return self.rows[self.place] if self.rows else None

    @property
    def before(self) -> tuple[sentences.Row, ...]:
        """Those that came before it in the order, none of which is decided."""
        return self.rows[: self.place]

    @property
    def others(self) -> tuple[sentences.Row, ...]:
        """All but the one that leads, in order."""
        return self.rows[: self.place] + self.rows[self.place + 1 :]


def of(comparisons: pd.DataFrame, scenario: Scenario) -> Headlines:
    """Put the headline comparisons of a run into the scenario's order, and pick the one that leads."""
    rows = ordered(comparisons[comparisons["family"] == "headline"], scenario).to_dict("records")
    decided = [number for number, row in enumerate(rows) if is_decided(row)]
    return Headlines(tuple(rows), decided[0] if decided else 0)


def ordered(comparisons: pd.DataFrame, scenario: Scenario) -> pd.DataFrame:
    """Chosen rows of comparisons in the order of the scenario's file."""
    rows = sentences.chosen(comparisons)
    order = {tuple(getattr(item, name) for name in _NAMES): n for n, item in enumerate(scenario.comparison)}
    places = [order.get(tuple(row), len(order)) for row in rows[_NAMES].to_numpy()]
    return rows.iloc[pd.Series(places, dtype=int).argsort(kind="stable")]


def is_decided(row: sentences.Row) -> bool:
    """Whether a comparison ended in a difference or an equivalence."""
    return Verdict.of(row["verdict"]) in DECIDED


def headline(comparisons: pd.DataFrame, scenario: Scenario) -> str:
    """Answer in one sentence, with interval and scope, and how many before it in the order are not decided.

    Where no headline is decided the first one leads, as inconclusive. Reasons are left to `answers`.
    """
    lines = of(comparisons, scenario)
    if lines.lead is None:
        words = without(comparisons, scenario)
        return said_of(str(comparisons["provenance"].iloc[0]), words) if len(comparisons) else words
    row = lines.lead
    brief = sentences.sentence(row, scenario, brief=True)
    if is_decided(row):
        return said_of(row["provenance"], f"{brief}{undecided_before(lines)}")
    return said_of(row["provenance"], f"inconclusive: {brief}{_none_decided(lines)}")


def said_of(provenance: str, sentence: str) -> str:
    """Begin a sentence with its source, if that is the emulator."""
    return f"{EMULATED}{sentence}" if Provenance.EMULATED in provenance else capital(sentence)


def answers(comparisons: pd.DataFrame, scenario: Scenario) -> list[str]:
    """All headline comparisons in their order, one sentence each, with the reasons of what is not decided."""
    rows = of(comparisons, scenario).rows
    return [f"{row['provenance']}: {sentences.sentence(row, scenario)}" for row in rows]


def without(comparisons: pd.DataFrame, scenario: Scenario) -> str:
    """Say that no headline was named, and what was compared all the same."""
    rows = sentences.chosen(comparisons).to_dict("records")
    if not rows:
        return NOTHING_MEASURED if scenario.comparison else NOTHING_NAMED
    number = f"{len(rows)} comparison{'s' * (len(rows) != 1)} to explore"
    return f"no headline was named before the run; {number} ({_verdicts(rows)})"


def undecided_before(lines: Headlines) -> str:
    """Say how many headlines come before the one that leads; "" for none."""
    if not lines.before:
        return ""
    number = len(lines.before)
    which = "the headline" if number == 1 else f"the {number} headlines"
    return f"; {which} before it {'is' if number == 1 else 'are'} not decided ({_verdicts(lines.before)})"


def _none_decided(lines: Headlines) -> str:
    number = len(lines.rows)
    return f"; none of the {number} headlines is decided ({_verdicts(lines.rows)})" if number > 1 else ""


def _verdicts(rows: Sequence[sentences.Row]) -> str:
    """Count verdicts: "2 capped, 1 inconclusive"."""
    counts = Counter(str(Verdict.of(row["verdict"])) for row in rows)
    return ", ".join(f"{number} {verdict}" for verdict, number in counts.items())


COMPARISONS = "comparisons.csv"


def read_answer(run: Run) -> str:
    """Answer of an analysed run in one sentence, as its analysis wrote it, else from its comparisons.csv.

    Raises DiskbookError when the run has not been analysed, or what the analysis wrote is damaged.
    """
    table = read_comparisons(run)
    own = run.folder / HEADLINE_FILE
    if own.exists():
        return visible(own.read_text("utf-8", errors="replace").strip())
    return headline(table, run.scenario)


def read_comparisons(run: Run) -> pd.DataFrame:
    """Read comparisons.csv of an analysed run, and check that it is about the run's scenario.

    Returns `schema.COMPARISONS`.

    Raises DiskbookError when it is missing or damaged, or names what the scenario or this version does not
    have.
    """
    path = run.folder / COMPARISONS
    if not path.exists():
        raise DiskbookError(f"{path} is missing; run the analysis notebook on {run.name}")
    table, scenario = read_csv(schema.COMPARISONS, path), run.scenario
    arms, loads = {item.name for item in scenario.arm}, {item.name for item in scenario.workload}
    kinds = table["verdict"].str.split(" within ").str[0]
    named = {"arm": (table["arm"], arms), "base_arm": (table["base_arm"], arms)}
    named |= {"workload": (table["workload"], loads), "verdict": (kinds, set(Verdict))}
    for column, (values, known) in named.items():
        if foreign := sorted(set(values) - known):
            raise DiskbookError(
                f"{path}, column '{column}': {foreign[0]!r} is none of {', '.join(sorted(known))}; "
                f"{schema.COMPARISONS.remedy}"
            )
    return table
