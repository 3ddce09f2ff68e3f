"""What the platform reports as consumed decides, although the rate reaches no limit that is known."""

from __future__ import annotations

import pytest

from diskbook.design.model import Comparison
from diskbook.design.vocabulary import GateStatus, Label, Verdict
from diskbook.stats.compare import compare
from diskbook.stats.gates.limits import platform_gate
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


@pytest.mark.parametrize(
    ("label", "percent", "names_it"),
    [
        (Label.BELOW_CAP, 98.9, False),
        (Label.BELOW_CAP, 99.0, True),
        (Label.LIMIT_NOT_KNOWN, 105.0, True),
        (Label.BELOW_CAP, 105.1, False),
        (Label.CAPPED, 100.0, False),
    ],
)
def test_a_limit_is_named_from_99_percent_on_and_not_in_a_burst(
    label: str, percent: float, names_it: bool
) -> None:
    cells = [{"workload": "w", "label": label}, {"workload": "w", "label": Label.BELOW_CAP}]
    found = platform_gate(("a", "b"), cells, {("a", "w", "cap_disk_iops"): percent})
    assert (found is not None) is names_it
    if found:
        assert (found.status, found.decides) == (GateStatus.NOT_ASSESSABLE, Verdict.INCONCLUSIVE)
        assert f"Consumed Percentage {percent:.0f} % of a, though" in found.cause
