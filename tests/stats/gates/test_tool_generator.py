"""The gate on how a rate was offered: lateness must be the disk's alone."""

from __future__ import annotations

import math

import pandas as pd
import pytest

from diskbook.design.vocabulary import GateStatus, Verdict
from diskbook.stats.gates import tool
from diskbook.stats.gates.tool import Offered, generator_gate

LAT = "lat_mean_ms"


def rows(**changes: object) -> pd.DataFrame:
    held = {"arm": "a", "workload": "held", "direction": "read", "block_size_bytes": 4096, "outstanding": 40}
    held |= {
        "rate_offered": 1000.0,
        "lat_p999_ms": 500.0,
        "lat_p99_least_ms": 9.0,
        "lat_p99_intended_ms": 9.0,
        "lat_p99_rise": 1.2,
    }
    held |= {"lat_mean_intended_ms": 3.3, "lat_mean_least_ms": 3.0, **changes}
    single = {**held, "workload": "single", "outstanding": 1, "rate_offered": math.nan, "lat_p999_ms": 8.0}
    return pd.DataFrame([held, held | {"arm": "b"}, single, single | {"arm": "b", "lat_p999_ms": 12.0}])


def decided(cells: tool.Cells, half: float = 0.05) -> Verdict | None:
    return generator_gate(("a", "b"), "held", LAT, cells, half).decides


def test_single_ios_say_how_slow_an_arm_is() -> None:
    cells = tool.offered(rows())
    assert [cells[arm, "held"].slow_ms for arm in "ab"] == [8.0, 12.0]  # not the stalls of the held rate
    assert cells["a", "held"].period_ms == 40.0
    assert cells["a", "held"].may_add[LAT] == pytest.approx(math.log(1.1))
    assert decided(cells) is None  # both arms alike


def test_too_few_jobs_for_the_slower_arm_are_refused() -> None:
    cells = tool.offered(rows(outstanding=10))
    gate = generator_gate(("a", "b"), "held", LAT, cells, 0.05)
    assert gate.decides is Verdict.INVALID
    assert gate.cause.startswith("each job had 10 ms for an I/O, and one in a thousand took over 12 ms")


@pytest.mark.parametrize(("half", "verdict"), [(0.05, Verdict.INVALID), (0.5, None)])
def test_a_queue_that_moves_the_ratio_by_much_of_its_interval_is_refused(half, verdict) -> None:
    cells = {(arm, "held"): Offered(40.0, 9.0, 1.2, {LAT: added}) for arm, added in (("a", 0.1), ("b", 0.0))}
    assert decided(cells, half) is verdict
    assert generator_gate(("a", "b"), "held", "lat_p50_ms", cells, half).decides is None


@pytest.mark.parametrize("lacks", [["lat_mean_least_ms"], ["lat_mean_least_ms", "lat_mean_intended_ms"]])
def test_lower_bounds_and_older_runs_say_how_their_rate_was_offered(lacks: list[str]) -> None:
    cells = tool.offered(rows().drop(columns=lacks))
    gate = generator_gate(("a", "b"), "held", LAT, cells, 0.05)
    assert gate.status is GateStatus.NOT_ASSESSABLE and gate.decides is None
    assert "leave out what the generator held back" in gate.cause and gate.remedy.startswith(
        "measure again with fio"
    )
    assert generator_gate(("a", "b"), "held", "iops", cells, 0.05).status is GateStatus.PASSED
    assert generator_gate(("a", "b"), "single", LAT, cells, 0.05).status is GateStatus.PASSED


def test_a_99th_percentile_at_the_edge_of_stalls_is_refused_and_its_mean_is_not() -> None:
    cells = tool.offered(rows(lat_p99_rise=16.0))
    gate = generator_gate(("a", "b"), "held", "lat_p99_ms", cells, 0.5)
    assert gate.decides is Verdict.INCONCLUSIVE and "rise 16 times" in gate.cause
    assert decided(cells) is None
