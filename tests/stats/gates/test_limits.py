"""Gates on limits: what credit says of two arms."""

from __future__ import annotations

from typing import Any

import pytest

from diskbook.stats.gates.limits import credit_gate
from diskbook.tables.vocabulary import CreditState, GateStatus


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
    ],
)
def test_credit_must_last_or_be_spent_alike_where_it_is_drawn(
    cells: list[dict[str, Any]], status: GateStatus
) -> None:
    assert credit_gate(cells).status == status
