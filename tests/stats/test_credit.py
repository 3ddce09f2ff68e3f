"""Burst credit by bookkeeping: buckets drain and refill, one of a machine is shared by its disks."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pytest

from diskbook.stats import credit
from diskbook.stats.credit import Bucket, Credit

BEGAN = datetime(2026, 11, 20, 8, tzinfo=UTC)
NO_BURST = {"iops": 5000, "mb_s": 200, "burst_iops": None, "burst_mb_s": None}
E16 = {"iops": 25600, "mb_s": 384, "burst_iops": 40000, "burst_mb_s": 800}
P20 = {"iops": 2300, "mb_s": 150, "burst_iops": 3500, "burst_mb_s": 170}


def when(minutes: float) -> str:
    return (BEGAN + timedelta(minutes=minutes)).isoformat()


def manifest(vm: dict[str, Any], *disks: dict[str, Any], **options: Any) -> dict[str, Any]:
    """Two machines of one kind, and disks a, b ... with these limits."""
    named = dict(zip("abc", disks, strict=False))
    return {
        "scenario": {"disk": [{"name": name, **options} for name in named], "check": []},
        "replicates": [
            {
                "replicate": 1,
                "machines": {"vm1": {"limits": vm}, "vm2": {"limits": vm}},
                "disks": {name: {"limits": limits} for name, limits in named.items()},
            }
        ],
    }


class Ledger:
    """A ledger in the making, with what each trial demanded."""

    def __init__(self) -> None:
        self.events: list[dict[str, Any]] = []
        self.demands: dict[str, tuple[float, float, float]] = {}

    def trial(
        self,
        minute: float,
        rate: tuple[float, float] | None,
        minutes: float = 1.0,
        disk: str = "a",
        machine: str = "vm1",
    ) -> str:
        """Add a trial at these IOPS and MB/s; None for an attempt that failed. Return its name."""
        name = f"t{len(self.events)}"
        place = {"replicate": 1, "disk": disk, "machine": machine, "workload": "load"}
        times = {"started_utc": when(minute), "ended_utc": when(minute + minutes)}
        self.events.append({"event": "trial", "trial": name, **place, **times})
        if rate:
            self.demands[name] = (60.0 * minutes, *rate)
        return name

    def follow(self, made: dict[str, Any]) -> dict[str, Credit]:
        return credit.trial_credits(made, self.events, self.demands)


def states(found: dict[str, Credit]) -> list[str]:
    return [one.state for one in found.values()]


def test_a_bucket_drains_in_half_an_hour_and_refills_at_the_base_rate() -> None:
    bucket = Bucket(120.0, 3500.0)
    assert bucket.capacity == 6_084_000  # as resource SKUs list it for P1 to P3
    bucket.idle_until(0.0)
    bucket.draw(900.0, 3500.0, 3500.0)
    assert bucket.shares() == (0.5, 0.5)
    bucket.draw(1800.0, 3500.0, 3500.0)
    assert bucket.shares() == (0.0, 0.0)
    bucket.at = 2700.0
    bucket.idle_until(2700.0 + 3600.0)
    assert bucket.left == [120.0 * 3600, 120.0 * 3600]
    bucket.idle_until(2700.0 + 24 * 3600)
    assert bucket.shares() == (1.0, 1.0)  # less than a day


@pytest.mark.parametrize(
    ("demand", "seconds", "drawn"),
    [
        ([200.0, 50.0], [10.0, 20.0], 1000.0),  # refilled to the last I/O before it repeats
        ([150.0, 50.0, 200.0], [10.0, 40.0, 10.0], 1500.0),  # the end of a round and the start of the next
        ([100.0], [60.0], 0.0),
        ([40.0, 90.0], [10.0, 10.0], 0.0),
        ([101.0], [60.0], math.inf),
        ([200.0, 50.0], [10.0, 19.0], math.inf),
    ],
)
def test_a_demand_that_repeats_draws_at_most_what_it_asks_above_the_base(
    demand: list[float], seconds: list[float], drawn: float
) -> None:
    """The base is 100 I/Os a second. A mean above it empties any bucket."""
    assert credit.most_drawn(np.array(demand), np.array(seconds), 100.0) == drawn


def test_without_any_burst_limit_there_is_no_credit() -> None:
    ledger = Ledger()
    ledger.trial(0, (5000.0, 20.0))
    assert ledger.follow(manifest(NO_BURST, NO_BURST)) == {"t0": Credit("none")}


def test_a_fresh_machine_that_stays_below_its_base_has_a_full_bucket() -> None:
    ledger = Ledger()
    for minute in range(0, 600, 2):
        ledger.trial(minute, (5100.0, 20.9))
    found = ledger.follow(manifest(E16, NO_BURST))
    assert set(found.values()) == {Credit("full", 1.0)}


def test_two_disks_of_a_machine_draw_from_one_bucket() -> None:
    """749 GB on an E16as_v5: 30 trials of a minute at 800 MB/s, whichever disk they are on."""
    ledger = Ledger()
    for minute in range(40):
        ledger.trial(minute, (6400.0, 800.0 if minute < 30 else 384.0), disk="ab"[minute % 2])
    found = ledger.follow(manifest(E16, NO_BURST, NO_BURST))
    assert states(found) == ["full", *["partial"] * 28, "drained", *["empty"] * 10]
    assert found["t15"].left_share == pytest.approx(0.5)
    assert found["t35"].left_share == 0.0


def test_another_machine_has_a_bucket_of_its_own() -> None:
    ledger = Ledger()
    for minute in range(30):
        ledger.trial(minute, (6400.0, 800.0))
    ledger.trial(31, (6400.0, 800.0), machine="vm2")
    assert list(ledger.follow(manifest(E16, NO_BURST)).values())[-1] == Credit("full", 1.0)


def test_a_disk_takes_its_own_bucket_along_to_another_machine() -> None:
    ledger = Ledger()
    ledger.trial(0, (3500.0, 14.3), minutes=15)
    moved = ledger.trial(15, (3500.0, 14.3), machine="vm2")
    other = ledger.trial(16, (3500.0, 14.3), machine="vm2", disk="b")
    found = ledger.follow(manifest(NO_BURST, P20, P20))
    assert found[moved] == Credit("partial", pytest.approx(0.5))
    assert found[other] == Credit("full", 1.0)


def test_waiting_refills() -> None:
    ledger = Ledger()
    ledger.trial(0, (3500.0, 14.3), minutes=30)
    soon = ledger.trial(30, (2300.0, 9.4))
    later = ledger.trial(31 + 5, (3500.0, 14.3))
    found = ledger.follow(manifest(NO_BURST, P20))
    assert found[soon].state == "empty"
    assert found[later] == Credit("partial", pytest.approx(5 * 60 * 2300 / (1200 * 1800)))


def test_the_bucket_of_bytes_says_nothing_of_a_trial_of_small_blocks() -> None:
    ledger = Ledger()
    ledger.trial(0, (6400.0, 800.0), minutes=30)
    ledger.trial(30, (40000.0, 163.8))
    found = ledger.follow(manifest(E16, NO_BURST))
    assert found["t1"] == Credit("full", 1.0)


def test_credit_that_runs_out_within_a_trial_is_said() -> None:
    ledger = Ledger()
    ledger.trial(0, (3500.0, 14.3), minutes=29)
    mixed = ledger.trial(29, (2700.0, 11.1), minutes=3)  # a minute of burst, two at base
    assert ledger.follow(manifest(NO_BURST, P20))[mixed].state == "drained"


def test_a_failed_attempt_may_have_drawn_anything() -> None:
    ledger = Ledger()
    ledger.trial(0, None, minutes=15)
    half = ledger.trial(15, (3500.0, 14.3))
    ledger.trial(16, None, minutes=30)
    none = ledger.trial(46, (2900.0, 11.0))
    found = ledger.follow(manifest(NO_BURST, P20))
    assert found[half] == Credit("partial", pytest.approx(0.5))
    assert found[none].state == "unknown"


def test_what_a_host_cache_may_have_answered_is_not_counted_for_sure() -> None:
    ledger = Ledger()
    ledger.trial(0, (3500.0, 14.3), minutes=30)
    after = ledger.trial(30, (3500.0, 14.3))
    found = ledger.follow(manifest(NO_BURST, P20, cache="ReadOnly"))
    assert found[after].state == "unknown"


def test_on_demand_bursting_has_no_credit_to_run_out_of() -> None:
    ledger = Ledger()
    ledger.trial(0, (30000.0, 122.9), minutes=600)
    on_demand = {**NO_BURST, "burst_iops": 30000, "burst_mb_s": 1000}
    assert ledger.follow(manifest(NO_BURST, on_demand, bursting=True)) == {"t0": Credit("none")}


def test_a_bucket_of_unknown_size_makes_the_credit_unknown() -> None:
    ledger = Ledger()
    ledger.trial(0, (100.0, 1.0))
    found = ledger.follow(manifest({**E16, "iops": None}, NO_BURST))
    assert found == {"t0": Credit("unknown")}


@pytest.mark.parametrize(("lifted", "left"), [(True, 1.0), (False, 0.9)])
def test_a_prefill_draws_unless_caps_were_lifted(lifted: bool, left: float) -> None:
    """540 GB in 1,800 s on a disk of 270 MB/s: 30 MB/s above its base are a tenth of 300 above it."""
    p_like = {"iops": 5000, "mb_s": 270, "burst_iops": None, "burst_mb_s": 570}
    ledger = Ledger()
    prefill = {"event": "prefill", "replicate": 1, "disk": "a", "time_utc": when(30), "real_s": 1800.0}
    ledger.events.append({**prefill, "bytes": 540_000_000_000, "caps_lifted": lifted})
    ledger.trial(30, (70.0, 290.0))
    assert ledger.follow(manifest(NO_BURST, p_like))["t1"].left_share == pytest.approx(left)


def test_a_working_set_is_written_over_in_the_blocks_that_its_event_names() -> None:
    """64 KiB 5,400 times a second for 30 min: 400 of the 4,000 above the base."""
    p_like = {"iops": 5000, "mb_s": 750, "burst_iops": 9000, "burst_mb_s": None}
    ledger = Ledger()
    over = {"event": "overwrite", "replicate": 1, "disk": "a", "time_utc": when(30), "real_s": 1800.0}
    ledger.events.append({**over, "bytes": 5400 * 1800 * 65536, "block_bytes": 65536, "caps_lifted": False})
    ledger.trial(30, (8000.0, 33.0))
    assert ledger.follow(manifest(NO_BURST, p_like))["t1"].left_share == pytest.approx(0.9)


def test_a_check_draws_on_both_machines_it_used() -> None:
    made = manifest(E16, NO_BURST)
    made["scenario"]["check"] = [{"name": "intact", "disk": "a", "machine": "vm2", "from_machine": "vm1"}]
    ledger = Ledger()
    finding = {"event": "finding", "name": "intact", "replicate": 1, "time_utc": when(15), "real_s": 900.0}
    ledger.events.append(finding)
    names = [ledger.trial(15, (30000.0, 122.0), machine=machine) for machine in ("vm1", "vm2")]
    found = ledger.follow(made)
    assert [found[name] for name in names] == [Credit("partial", pytest.approx(0.5))] * 2


@pytest.mark.parametrize(("cloud", "state"), [("emulator", "drained"), ("azure", "full")])
def test_an_emulated_bucket_may_be_smaller_than_azures(cloud: str, state: str) -> None:
    ledger, found = Ledger(), manifest(NO_BURST, P20)
    scaled = {**found["scenario"], "scenario": {"emulated_credit_scale": 0.001}}  # lasts 1.8 s
    mixed = ledger.trial(0, (2700.0, 11.1), minutes=0.1)
    assert ledger.follow({**found, "cloud": cloud, "scenario": scaled})[mixed].state == state
