"""Gates on limits: what credit and shares of limits say of two arms."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from diskbook.design.vocabulary import CreditState, GateStatus, Label
from diskbook.stats.gates.limits import cap_gate, credit_gate


def cell(*credit: CreditState, draws: bool = True) -> dict[str, Any]:
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


def test_a_share_that_is_not_known_hides_none_that_is_and_is_said() -> None:
    """In either order: `max` over a share of NaN gives whichever stands first."""
    known, unknown = ({"label": Label.BELOW_CAP, "share": share} for share in (0.3, np.nan))
    for arms, cells in ((("a", "b"), (known, unknown)), (("b", "a"), (unknown, known))):
        found = cap_gate(arms, cells, ["", ""])
        assert (found.status, found.decides) == (GateStatus.NOT_ASSESSABLE, None)
        assert found.cause == "no limit of b is known; at most 30 % of the other arm's"
    assert cap_gate(("a", "b"), (unknown, unknown), ["", ""]).cause == "no limit is known"
    assert cap_gate(("a", "b"), (known, known), ["", ""]).cause == "at most 30 % of any known limit"
