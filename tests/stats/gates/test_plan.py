"""Nothing is judged before all is measured that was planned."""

from __future__ import annotations

import dataclasses

import pandas as pd
import pytest

from diskbook.design.vocabulary import GateStatus, Verdict
from diskbook.stats.compare import Compared, compare
from diskbook.stats.gates.plan import PLAN, Plan, plan_gate
from support import synthetic

WHOLE = Plan(planned=4, complete=4)
HALF = Plan(planned=4, complete=2)


def compared(plan: Plan | None) -> Compared:
    trials, _, series = synthetic.tables()
    items = synthetic.every_block().comparison
    return compare(trials, items, series, {}, plan=plan)


@pytest.mark.long
def test_an_unfinished_run_shows_intervals_and_no_verdict() -> None:
    whole, half = compared(WHOLE).table, compared(HALF).table
    judged = {Verdict.of(words) for words in whole["verdict"]}
    assert {Verdict.DIFFERENCE, Verdict.EQUIVALENT} <= judged and Verdict.INTERIM not in judged
    assert {Verdict.of(words) for words in half["verdict"]} <= {
        Verdict.INTERIM,
        Verdict.CAPPED,
        Verdict.INVALID,
    }
    assert half["ci_low"].equals(whole["ci_low"]) and half["ci_high"].equals(whole["ci_high"])
    interim = half[half["verdict"] == Verdict.INTERIM]
    assert interim["warnings"].str.contains("2 of 4 planned blocks are complete: finish the run").all()
    assert interim["p_adjusted"].isna().all()


def test_a_planned_look_is_judged_at_its_own_level() -> None:
    look = Plan(planned=20, complete=10, whole=5, looks=(5, 10))
    assert not look.is_interim and look.alpha < 0.03
    assert set(compared(look).table["level"]) == {1 - look.alpha}
    assert dataclasses.replace(look, whole=6).is_interim
    assert dataclasses.replace(look, whole=0).is_interim  # a replicate more has begun
    assert plan_gate(look).cause.endswith(f"a look that was planned, judged at a level of {look.alpha:.3f}")


@pytest.mark.parametrize(
    ("plan", "status", "words"),
    [
        (None, GateStatus.NOT_ASSESSABLE, "nothing says what was planned"),
        (WHOLE, GateStatus.PASSED, "all planned blocks are complete"),
        (
            dataclasses.replace(WHOLE, written=False),
            GateStatus.PASSED,
            "by the scenario: no plan was written",
        ),
        (dataclasses.replace(WHOLE, changed=True), GateStatus.FAILED, "not those that were planned"),
        (HALF, GateStatus.NOT_ASSESSABLE, "2 of 4 planned blocks"),
    ],
)
def test_what_the_gate_says(plan: Plan | None, status: GateStatus, words: str) -> None:
    gate = plan_gate(plan)
    assert gate.name == PLAN and gate.status is status and words in gate.cause
    assert gate.decides is (Verdict.INTERIM if plan == HALF else None)


def test_what_others_measured_is_never_interim() -> None:
    assert Verdict.INTERIM not in set(compared(None).table["verdict"])


def test_a_family_that_was_relabelled_is_noticed_in_every_row() -> None:
    table = compared(dataclasses.replace(WHOLE, changed=True)).table
    assert table["warnings"].str.contains("families or margins are not those that were planned").all()


@pytest.mark.long
def test_a_block_that_was_cut_short_and_repeated_elsewhere_is_no_gap() -> None:
    trials, _, series = synthetic.tables()
    cut = trials[trials["block"] == 1].assign(replicate=2, status="incomplete_block")
    cut["trial"] = cut["trial"] + "-cut"
    items = synthetic.every_block().comparison
    both = compare(pd.concat([trials, cut], ignore_index=True), items, series, {}, plan=WHOLE).table
    assert list(both["verdict"]) == list(compared(WHOLE).table["verdict"])
    assert not both["warnings"].str.contains("to fill the gaps").any()
