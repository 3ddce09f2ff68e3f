"""What should set a rate: the lowest of the limits in force, the offered rate, and concurrency."""

from __future__ import annotations

import math
from typing import Any

import pandas as pd
import pytest

from diskbook.stats import expected

P30 = {"cap_disk_iops": 5000.0, "cap_disk_mb_s": 200.0}
BURSTING = {**P30, "cap_disk_burst_iops": 30_000.0, "cap_disk_burst_mb_s": 1000.0}
E16 = {
    "cap_vm_iops": 25_600.0,
    "cap_vm_mb_s": 384.0,
    "cap_vm_burst_iops": 40_000.0,
    "cap_vm_burst_mb_s": 800.0,
}


def trial(**changes: Any) -> dict[str, Any]:
    row = {
        "trial": "t", "arm": "a", "workload": "deep", "direction": "write", "status": "ok", "attempt": 1,
        "replicate": 1, "block": 1, "position": 1, "machine_id": "m", "disk_id": "d", "physical_zone": "z",
        "credit_state": "full", "runtime_s": 30.0, "outstanding": 512, "block_size_bytes": 4096,
        "rate_offered": math.nan, "iops": 5100.0, "lat_mean_ms": 100.4, "throughput_mb_s": math.nan,
    }  # fmt: skip
    return {**row, **changes}


def one(*rows: dict[str, Any], on_demand: tuple[str, ...] = ()) -> pd.Series:
    found = expected.predicted(pd.DataFrame(list(rows)), on_demand)
    return found.set_index("workload").loc["deep"]


def test_the_disks_own_limit_binds_a_plain_disk() -> None:
    row = one(trial(**P30, **E16))
    assert (row["by"], row["predicted_iops"]) == ("cap_disk_iops", 5000)
    assert row["ratio"] == pytest.approx(1.02)


@pytest.mark.parametrize(
    ("size", "state", "by", "value"),
    [
        (4096, "full", "cap_disk_burst_iops", 30_000),
        (131_072, "full", "cap_vm_burst_mb_s", 800e6 / 131_072),
        (4096, "empty", "cap_vm_iops", 25_600),
        (131_072, "empty", "cap_vm_mb_s", 384e6 / 131_072),
    ],
)
def test_an_on_demand_disk_meets_the_machines_limit_when_its_credit_is_spent(
    size: int, state: str, by: str, value: float
) -> None:
    row = one(trial(**BURSTING, **E16, block_size_bytes=size, credit_state=state), on_demand=("a",))
    assert (row["by"], row["predicted_iops"]) == (by, pytest.approx(value))
    assert row["predicted_mb_s"] == pytest.approx(value * size / 1e6)


def test_a_credit_disk_falls_to_its_base() -> None:
    assert one(trial(**BURSTING, **E16, credit_state="empty"))["by"] == "cap_disk_iops"
    assert one(trial(**BURSTING, **E16, credit_state="partial"))["by"] == "cap_disk_burst_iops"


def test_a_credit_that_ran_out_within_the_trial_predicts_nothing() -> None:
    row = one(trial(**BURSTING, **E16, credit_state="drained"))
    assert row["by"] == "unknown" and math.isnan(row["predicted_iops"])
    assert row["limit_iops"] == 30_000


def test_few_in_flight_bind_before_any_limit() -> None:
    single = trial(trial="s", workload="single", outstanding=1, iops=500.0, lat_mean_ms=2.0, **P30)
    row = one(trial(outstanding=4, iops=1990.0, lat_mean_ms=2.01, **P30), single)
    assert (row["by"], row["predicted_iops"]) == ("concurrency", pytest.approx(2000))
    assert (row["limit"], row["limit_iops"]) == ("cap_disk_iops", 5000)


def test_a_read_has_the_latency_of_reads() -> None:
    single = trial(trial="s", workload="single", direction="read", outstanding=1, lat_mean_ms=2.0)
    assert one(trial(), single)["by"] == "unknown"


def test_cached_reads_meet_the_cached_limit_only() -> None:
    cached = {"cap_vm_cached_iops": 32_000.0, "cap_vm_cached_mb_s": 400.0}
    read = one(trial(direction="read", iops=32_718.0, **P30, **E16, **cached))
    assert (read["by"], read["ratio"]) == ("cap_vm_cached_iops", pytest.approx(1.0224, abs=1e-3))
    assert one(trial(**P30, **E16, **cached))["by"] == "cap_disk_iops"


def test_an_offered_rate_binds_below_the_cap() -> None:
    row = one(trial(rate_offered=4000.0, iops=4000.0, lat_mean_ms=2.0, **P30))
    assert (row["by"], row["ratio"]) == ("offered", 1.0)


def test_nothing_known_and_nothing_measured() -> None:
    assert one(trial())["by"] == "unknown"
    nothing = expected.predicted(pd.DataFrame([trial(status="failed")]))
    assert nothing.empty and list(nothing.columns) == expected.PREDICTED_COLUMNS
