"""Machines joined to one trial: rates of the common window, weighted means, merged histograms."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from diskbook.clusters.vmfleet import fleet
from diskbook.tools.record import Measurement, UnusableError, merge_bins, percentile_ns
from support import fleets
from support.fleets import Vm

FIRST, SECOND = "vm-two-way-1-node1-001", "vm-two-way-2-node2-001"


def joined(machines: Sequence[Vm], **expected: Any) -> Measurement:
    return fleet.join([fleets.machine_of(vm) for vm in machines], "trial", **expected)


def test_machines_that_measured_at_once_add_up() -> None:
    machines = fleets.fleet(4, spread_s=0.0)
    result = joined(machines, runtime_s=10, instances=4)
    assert {name: part.iops for name, part in result.directions.items()} == {"read": 1120, "write": 480}
    assert (result.directions["read"].ios, result.directions["read"].runtime_ms) == (11200, 10_000)
    assert result.directions["read"].bw_bytes == pytest.approx(1120 * 4096)
    assert (result.load.instances, result.load.threads, result.load.queue_depth) == (4, 2, 4)
    assert result.target == "two-way-1 + two-way-2" and result.name == "fleet of 4"
    assert [item.started_s for item in result.instances] == [0.0] * 4
    assert not any("at the same time" in flag for flag in result.flags)


def test_only_what_was_done_while_all_measured_counts() -> None:
    """Alone, the first has twice what it has beside the second: the sum of both own rates never was."""
    alone_first = Vm(FIRST, iops={"read": 110.0}, rates={"read": [200.0] + [100.0] * 9})
    alone_last = Vm(SECOND, iops={"read": 110.0}, rates={"read": [100.0] * 9 + [200.0]}, started_s=1.0)
    result = joined([alone_first, alone_last])
    assert result.directions["read"].iops == pytest.approx(200)
    assert sum(item.directions["read"].iops for item in result.instances) == pytest.approx(220)
    assert result.series["read"].iops == pytest.approx([200] * 9)
    assert result.directions["read"].runtime_ms == 9000
    assert any("at the same time for 90 %" in flag for flag in result.flags)


def test_means_are_weighted_by_ios_and_percentiles_are_of_all_ios_together() -> None:
    slow = Vm(SECOND, iops={"read": 100.0}, latency_ms=(80.0,))
    result = joined([Vm(FIRST, iops={"read": 900.0}, latency_ms=(10.0,)), slow])
    read = result.directions["read"]
    assert read.lat_mean_ms == pytest.approx(0.9 * 10 + 0.1 * 80)
    assert (read.lat_p50_ms, read.lat_p99_ms, read.lat_min_ms, read.lat_max_ms) == (10, 80, 10, 80)
    assert np.mean([item.directions["read"].lat_p99_ms for item in result.instances]) == 45  # no p99 at all
    assert read.bins == {10_000_000: 9000, 80_000_000: 1000}
    assert read.lat_stddev_ms == pytest.approx(21.0, abs=0.01)


@pytest.mark.long
@settings(max_examples=25, deadline=None)
@given(st.lists(st.tuples(st.integers(200, 3000), st.floats(1, 50)), min_size=1, max_size=5))
def test_percentiles_are_those_of_the_merged_histogram(rows: list[tuple[int, float]]) -> None:
    machines = [
        Vm(f"vm-v-n-{n:03d}", iops={"read": float(rate)}, latency_ms=(ms, 2 * ms, 5 * ms))
        for n, (rate, ms) in enumerate(rows, 1)
    ]
    result = joined(machines)
    merged = merge_bins([item.directions["read"].bins for item in result.instances])
    p50, p99 = percentile_ns(merged, 0.5, 0.99)
    read = result.directions["read"]
    assert (read.lat_p50_ms, read.lat_p99_ms) == pytest.approx((p50 / 1e6, p99 / 1e6))
    assert sum(read.bins.values()) == read.ios == 10 * sum(rate for rate, _ in rows)
    assert read.lat_min_ms <= read.lat_mean_ms <= read.lat_max_ms


def test_a_machine_without_a_histogram_leaves_none_for_all() -> None:
    first, second = map(fleets.machine_of, fleets.fleet(2))
    bare = {name: replace(part, bins={}) for name, part in second.measurement.directions.items()}
    result = fleet.join(
        [first, replace(second, measurement=replace(second.measurement, directions=bare))], "t"
    )
    assert not result.directions["read"].bins and math.isnan(result.directions["read"].lat_p99_ms)


def test_a_machine_that_only_read_counts_for_reads_alone() -> None:
    both = [Vm(FIRST), Vm(SECOND, iops={"read": 280.0})]
    result = joined(both)
    assert (result.directions["read"].iops, result.directions["write"].iops) == (560, 120)


def test_times_of_the_xml_alone_are_known_to_the_second() -> None:
    machines = [fleets.machine_of(vm, listed=False) for vm in fleets.fleet(3, spread_s=2.0)]
    result = fleet.join(machines, "trial")
    assert [item.started_s for item in result.instances] == [0, 2, 1]  # by name, not by time
    assert fleet.TO_THE_SECOND in result.flags
    untold = [replace(item, measurement=replace(item.measurement, started_utc=None)) for item in machines]
    assert fleet.NO_TIMES in fleet.join(untold, "trial").flags


def test_what_holds_for_some_machines_says_for_how_many() -> None:
    machines = [fleets.machine_of(vm) for vm in fleets.fleet(3)]
    machines[0] = replace(machines[0], measurement=replace(machines[0].measurement, flags=("odd",)))
    assert "odd (1 of 3 machines)" in fleet.join(machines, "trial").flags


def other(**load: Any) -> list[fleet.Machine]:
    first, second = map(fleets.machine_of, fleets.fleet(2))
    changed = replace(second.measurement, load=replace(second.measurement.load, **load))
    return [first, replace(second, measurement=changed)]


@pytest.mark.parametrize(
    ("machines", "expected", "named"),
    [
        ([], {}, "no result of a machine"),
        (other(), {"instances": 3}, "2 machines have a result, 3 were to measure"),
        (other(), {"runtime_s": 20}, "node1-001 measured for 10 s of 20 s"),
        (other(block_size_bytes=8192), {}, "different loads .block size 4096 and 8192"),
        (other(write_pct=0), {}, "share of writes 30 and 0"),
        (other(runtime_s=11.0), {}, "run time 10.0 and 11.0"),
        ([fleets.machine_of(Vm(FIRST))] * 2, {}, f"several results of {FIRST}"),
        ([replace(other()[0], version="2.2"), other()[1]], {}, "different versions of DiskSpd"),
        ([fleets.machine_of(vm) for vm in fleets.fleet(2, spread_s=6.0)], {}, "40 % of their run only"),
        ([fleets.machine_of(vm) for vm in fleets.fleet(2, spread_s=60.0)], {}, "0 % of their run only"),
    ],
)
def test_what_is_no_fleet_is_refused(
    machines: list[fleet.Machine], expected: dict[str, Any], named: str
) -> None:
    with pytest.raises(UnusableError, match=named):
        fleet.join(machines, "trial", **expected)
