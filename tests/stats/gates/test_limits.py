"""Gates on limits: what credit and shares of limits say of two arms."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from diskbook.design.vocabulary import CreditState, GateStatus, Label, Verdict
from diskbook.stats.gates.limits import cap_gate, credit_gate, saturation_gate


def cell(*credit: CreditState, draws: bool | np.bool | float = True) -> dict[str, Any]:
    return {"draws_credit": draws, "credit": credit}


NONE, FULL, PARTIAL = CreditState.NONE, CreditState.FULL, CreditState.PARTIAL
EMPTY, DRAINED, UNKNOWN = CreditState.EMPTY, CreditState.DRAINED, CreditState.UNKNOWN


@pytest.mark.parametrize(
    ("cells", "status"),
    [
        ([cell(FULL), cell(FULL, PARTIAL)], GateStatus.PASSED),
        ([cell(FULL), cell(NONE)], GateStatus.PASSED),  # a size that bursts beside one that does not
        ([cell(EMPTY), cell(NONE)], GateStatus.PASSED),
        ([cell(FULL), cell(EMPTY)], GateStatus.FAILED),
        ([cell(FULL, EMPTY), cell(NONE)], GateStatus.FAILED),
        # As a table has it: a truth value of numpy, or a number where some cells have none.
        ([cell(FULL, draws=np.True_), cell(EMPTY, draws=np.False_)], GateStatus.FAILED),
        ([cell(FULL, draws=1.0), cell(EMPTY, draws=math.nan)], GateStatus.FAILED),
        ([cell(FULL), cell(FULL, NONE)], GateStatus.FAILED),
        ([cell(DRAINED), cell(NONE)], GateStatus.FAILED),
        ([cell(FULL), cell(UNKNOWN)], GateStatus.NOT_ASSESSABLE),
        ([cell(EMPTY, draws=False), cell(FULL, draws=False)], GateStatus.PASSED),
        # What is known to differ counts, whatever is not known beside it.
        ([cell(FULL, EMPTY), cell(UNKNOWN)], GateStatus.FAILED),
        ([cell(FULL, UNKNOWN), cell(EMPTY)], GateStatus.FAILED),
        ([cell(DRAINED), cell(UNKNOWN)], GateStatus.FAILED),
        ([cell(FULL, EMPTY), cell()], GateStatus.FAILED),
        ([cell(FULL, UNKNOWN), cell(FULL)], GateStatus.NOT_ASSESSABLE),
        ([cell(NONE, UNKNOWN), cell(FULL)], GateStatus.NOT_ASSESSABLE),
        ([cell(FULL), cell()], GateStatus.NOT_ASSESSABLE),
        # Credit was drawn, and all states say that nothing bursts.
        ([cell(NONE), cell(NONE)], GateStatus.NOT_ASSESSABLE),
        ([cell(), cell()], GateStatus.NOT_ASSESSABLE),
    ],
)
def test_credit_must_last_or_be_spent_alike_where_it_is_drawn(
    cells: list[dict[str, Any]], status: GateStatus
) -> None:
    found = credit_gate(cells)
    assert found.status == status and "()" not in found.cause
    assert credit_gate(cells[::-1]) == found


def test_credit_that_was_spent_is_not_said_to_have_lasted() -> None:
    spent, lasted = (credit_gate([cell(state), cell(NONE)]).cause for state in (EMPTY, PARTIAL))
    assert spent == "credit was empty in every trial that draws on it"
    assert lasted == "credit lasted throughout every trial that draws on it"


def test_a_share_that_is_not_known_hides_none_that_is_and_is_said() -> None:
    """In either order: `max` over a share of NaN gives whichever stands first."""
    known, unknown = ({"label": Label.BELOW_CAP, "share": share} for share in (0.3, np.nan))
    for arms, cells in ((("a", "b"), (known, unknown)), (("b", "a"), (unknown, known))):
        found = cap_gate(arms, cells, ["", ""])
        assert (found.status, found.decides) == (GateStatus.NOT_ASSESSABLE, None)
        assert found.cause == "no limit of b is known; at most 30 % of the other arm's"
    assert cap_gate(("a", "b"), (unknown, unknown), ["", ""]).cause == "no limit is known"
    assert cap_gate(("a", "b"), (known, known), ["", ""]).cause == "at most 30 % of any known limit"


@pytest.mark.parametrize(
    ("words", "cause"),
    [
        (["limit of 9", "limit of 9"], "both arms sit on the limit of 9"),
        (["limit of 9", "limit of 8"], "a sits on its limit of 9 and b sits on its limit of 8"),
        (["", "limit of 9"], "b sits on its limit of 9"),
    ],
)
def test_a_cap_of_either_arm_decides_and_is_named(words: list[str], cause: str) -> None:
    labels = [Label.CAPPED if word else Label.BELOW_CAP for word in words]
    cells = [{"label": label, "share": 1.0, "outstanding": 64} for label in labels]
    found = cap_gate(("a", "b"), cells, words)
    assert (found.status, found.decides) == (GateStatus.FAILED, Verdict.CAPPED)
    assert found.cause == f"{cause}, so that latency is 64 outstanding / cap whatever the disk"


@pytest.mark.parametrize(
    ("outstanding", "shown", "status", "cause"),
    [
        (1, False, GateStatus.NOT_ASSESSABLE, "nothing shows whether these single I/Os sit on a limit"),
        (1, True, GateStatus.PASSED, "at most 1.6 times the I/Os in flight that the rate needs"),
        (8, False, GateStatus.PASSED, "at most 1.6 times the I/Os in flight that the rate needs"),
    ],
)
def test_single_ios_need_another_load_that_shows_no_limit(
    outstanding: int, shown: bool, status: GateStatus, cause: str
) -> None:
    """The other arm runs 8 I/Os, of which its rate needs 5."""
    deep = {"label": Label.BELOW_CAP, "outstanding": 8, "shown": False, "in_flight": 8.0, "needed": 5.0}
    cell = {**deep, "outstanding": outstanding, "shown": shown, "in_flight": 1.0, "needed": np.nan}
    found = saturation_gate(("a", "b"), [cell, deep])
    assert (found.status, found.decides, found.cause) == (status, None, cause)
