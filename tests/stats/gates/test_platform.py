"""What the platform reports as consumed decides, although the rate reaches no limit that is known."""

from __future__ import annotations

import pytest

from diskbook.design.model import Comparison
from diskbook.stats.compare import compare
from support import synthetic

ITEM = Comparison(arm="lrs-b-z1", base_arm="lrs-z1", workload="randwrite-qd1", pairing="same-machine")


@pytest.mark.long
@pytest.mark.parametrize(
    ("arm", "percent", "verdict", "status"),
    [
        ("lrs-b-z1", 100.0, "inconclusive", "not assessable"),
        ("lrs-z1", 99.5, "inconclusive", "not assessable"),
        ("lrs-z1", 80.0, "equivalent within 5 %", "passed"),
        ("lrs-z1", 160.0, "equivalent within 5 %", "passed"),  # a burst, which credit is judged by
        ("zrs-z1", 100.0, "equivalent within 5 %", "passed"),  # another arm
    ],
)
def test_a_limit_that_the_platform_reports_is_not_left_out(
    arm: str, percent: float, verdict: str, status: str
) -> None:
    trials, _, series = synthetic.tables(loads=(synthetic.WRITE,), provenance="azure")
    consumed = {(arm, "randwrite-qd1", "cap_vm_iops"): percent}
    found = compare(trials, [ITEM], series, {}, consumed_pct=consumed)
    row = found.table[found.table["scope"] == "these disks"].iloc[0]
    gate = found.gates[found.gates["gate"] == "cap"].iloc[0]
    assert (row["verdict"], gate["status"]) == (verdict, status)
    if status != "passed":
        named = (
            f"Uncached IOPS Consumed Percentage {percent:.0f} % of {arm}, though the rate reaches no limit"
        )
        assert named in row["warnings"] and row[["ratio", "ci_low"]].isna().all()
