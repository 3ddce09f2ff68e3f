"""From profile and seed to numbers: deterministic draws of the planned size, and the right limits."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from diskbook_emulator.model import Model
from diskbook_emulator.profile import Attach, Caps, Noise, Profile, Single, Wander, load_profile
from diskbook_emulator.types import DiskSpec, Limits, VmSpec

ZRS = DiskSpec("/disks/a", "a", "Premium_ZRS", 1024, None, 1, 5000, 200, False, False, None)
VM = VmSpec("/vms/a", "a", "Standard_D4as_v4", "1", "linux", "user", (), "")


def nominal(**noise: float) -> Profile:
    return replace(load_profile("quiet"), noise=Noise(**noise), caps=Caps())


def test_the_same_seed_and_ids_give_the_same_numbers_and_others_do_not() -> None:
    profile = load_profile("default")
    first = Model(profile, 7).export_model(VM, ZRS, "None", 0)
    assert first == Model(profile, 7).export_model(VM, ZRS, "None", 0)
    assert first.log_factor != Model(profile, 8).export_model(VM, ZRS, "None", 0).log_factor
    other = Model(profile, 7).export_model(VM, replace(ZRS, id="/disks/b"), "None", 0)
    assert first.log_factor != other.log_factor


def test_ids_differing_in_case_are_the_same_entity() -> None:
    model = Model(load_profile("default"), 7)
    assert model.machine_log("/VMs/A") == model.machine_log("/vms/a")


@pytest.mark.long
@pytest.mark.parametrize("shared", [0.3, 1.0])
@pytest.mark.parametrize("level", [{"second": 0.03}, {"block": 0.02, "block_s": 30.0}, {"drift": 0.02}])
def test_machine_and_disk_share_the_noise_of_seconds_as_planted(
    level: dict[str, float], shared: float
) -> None:
    """Correlation over pairs of disks of one machine, and over machines of one disk, at one second each."""
    model = Model(nominal(**level, shared=shared), 3)
    logs = np.array(
        [
            [model.second_log(f"/vms/{vm}", f"/disks/{disk}", 1) for disk in (f"{vm}-a", f"{vm}-b", "shared")]
            for vm in range(150)
        ]
    )
    assert logs.std() == pytest.approx(next(iter(level.values())), rel=0.1)
    at = logs[:, :, ::450].transpose(1, 0, 2).reshape(3, -1)
    assert np.corrcoef(at[0], at[1])[0, 1] == pytest.approx(shared, abs=0.1)
    # A disk that two machines share has the same noise of its own at both.
    own = logs[::2, 2] - logs[::2, 2].mean(axis=-1, keepdims=True)
    between = [np.corrcoef(one, two)[0, 1] for one, two in pairwise(own)]
    assert np.mean(between) == pytest.approx(1 - shared, abs=0.12)


def test_disks_of_one_machine_are_equal_at_any_time_where_all_noise_is_its() -> None:
    """The null profile: an A/A comparison within one machine holds in each second."""
    model = Model(load_profile("null"), 7)
    one, two = (model.export_model(VM, replace(ZRS, id=name), "None", 0) for name in ("/disks/a", "/disks/b"))
    assert one.second_log == two.second_log
    assert one.trial_log != two.trial_log
    elsewhere = model.export_model(replace(VM, id="/vms/b"), ZRS, "None", 0)
    assert elsewhere.second_log != one.second_log


def test_attaching_again_draws_new_trials() -> None:
    model = Model(load_profile("default"), 7)
    first, second = (model.export_model(VM, ZRS, "None", times) for times in (0, 1))
    assert first.trial_log != second.trial_log


def test_home_zones_follow_the_seed_and_all_occur() -> None:
    model = Model(load_profile("default"), 7)
    homes = [model.home_zone(replace(ZRS, id=f"/disks/{number}")) for number in range(60)]
    assert set(homes) == {"1", "2", "3"}
    assert homes == [model.home_zone(replace(ZRS, id=f"/disks/{number}")) for number in range(60)]
    assert model.home_zone(replace(ZRS, sku="Premium_LRS", zone="3")) is None


@pytest.mark.parametrize(
    ("home", "relations"),
    [
        ("1", ["home", "other-a", "other-b"]),
        ("2", ["other-b", "home", "other-a"]),
        ("3", ["other-a", "other-b", "home"]),
    ],
)
def test_zone_relations_go_round_from_the_home_zone(home: str, relations: list[str]) -> None:
    model = Model(replace(load_profile("quiet"), home_zone=home), 1)
    assert [model.zone_relation(replace(VM, zone=zone), ZRS) for zone in "123"] == relations
    assert model.zone_relation(replace(VM, zone=None), ZRS) == "home"


def test_constants_have_the_planned_spread() -> None:
    model = Model(nominal(machine=0.05, disk=0.01), 3)
    machines = [model.machine_log(f"/vms/{number}") for number in range(400)]
    disks = [model.disk_log(f"/disks/{number}") for number in range(400)]
    assert np.std(machines) == pytest.approx(0.05, rel=0.15)
    assert np.std(disks) == pytest.approx(0.01, rel=0.15)


def test_trials_have_the_planned_spread() -> None:
    trials = Model(nominal(trial=0.012), 3).export_model(VM, ZRS, "None", 0).trial_log
    assert np.std(trials) == pytest.approx(0.012, rel=0.15)


@pytest.mark.parametrize(
    ("noise", "neighbours", "tolerance"),
    [
        ({"second": 0.03, "phi": 0.6}, 0.6, 0.1),
        ({"block": 0.02, "block_s": 30.0}, 0.99, 0.02),
        ({"drift": 0.02}, 1.0, 0.001),
    ],
)
def test_seconds_have_the_planned_spread_and_memory(
    noise: dict[str, float], neighbours: float, tolerance: float
) -> None:
    model = Model(nominal(**noise), 3)
    tables = [
        np.array(model.export_model(replace(VM, id=f"/vms/{number}"), ZRS, "None", 0).second_log)
        for number in range(20)
    ]
    spread = next(value for key, value in noise.items() if key not in {"phi", "block_s"})
    assert np.sqrt(np.mean(np.square(tables))) == pytest.approx(spread, rel=0.1)
    pairs = [np.corrcoef(table[:-1], table[1:])[0, 1] for table in tables]
    assert np.mean(pairs) == pytest.approx(neighbours, abs=tolerance)


def test_what_is_planted_in_single_disks_is_theirs_alone() -> None:
    """By the names that the disks of a run have: its replicate, and the name in the scenario."""
    disks = {
        "r2-*": Single(caps_factor=0.3),
        "*-zrs": Single(rise_a_minute=0.2, stall_every_s=20, stall_factor=400.0),
    }
    model = Model(replace(nominal(), disks=disks), 1)
    held, rising, plain = (
        replace(ZRS, id=f"/disks/{name}", name=name) for name in ("r2-zrs", "r1-zrs", "r1-lrs")
    )
    assert [model.disk_limits(disk).iops for disk in (held, rising, plain)] == [1500, 5000, 5000]
    assert model.disk_limits(held).mb_s == 60
    logs = np.array(model.second_log(VM.id, rising.id, 1))
    assert logs[61] == pytest.approx(math.log(1.2) * 61 / 60)
    assert logs[80] - logs[81] == pytest.approx(math.log(400), abs=0.01) and logs[79] < logs[81]
    assert model.second_log(VM.id, plain.id, 1) == model.second_log(VM.id, held.id, 1) == (0.0,)


def test_an_attach_slows_all_disks_or_those_of_one_kind() -> None:
    quiet = Model(load_profile("quiet"), 7).export_model(VM, ZRS, "None", 0)
    for sku, slow in ((None, [1.5, 1.5]), ("Premium_ZRS", [1.5, 1.0])):
        profile = replace(nominal(), attach=Attach(slow_s=20.0, factor=1.5, sku=sku))
        played = [Model(profile, 1).fresh(quiet, kind, 100.0) for kind in ("Premium_ZRS", "Premium_LRS")]
        assert [math.exp(export.fresh_log) for export in played] == pytest.approx(slow)
        assert played[0].fresh_until_s == 120.0


def test_without_noise_nothing_varies() -> None:
    export = Model(load_profile("quiet"), 7).export_model(VM, ZRS, "None", 0)
    assert (export.log_factor, export.second_log, export.trial_log) == (0.0, (0.0,), (0.0,))


def test_on_demand_bursting_has_no_credit() -> None:
    model = Model(nominal(), 1)
    assert model.disk_limits(replace(ZRS, bursting=True)) == Limits(30000, 1000)


def test_credit_bursting_of_a_small_disk_holds_thirty_minutes() -> None:
    limits = Model(nominal(), 1).disk_limits(replace(ZRS, size_gib=128, iops=500, mb_s=100))
    assert (limits.iops, limits.burst_iops) == (500, 3500)
    assert limits.credit_ios == 3000 * 1800


def test_a_shared_disk_does_not_burst() -> None:
    limits = Model(nominal(), 1).disk_limits(replace(ZRS, size_gib=128, iops=500, mb_s=100, max_shares=2))
    assert limits.burst_iops is None


def test_performance_plus_and_provisioned_limits() -> None:
    model = Model(nominal(), 1)
    plus = model.disk_limits(replace(ZRS, performance_plus=True))
    assert (plus.iops, plus.mb_s) == (8000, 300)
    v2 = model.disk_limits(replace(ZRS, sku="PremiumV2_LRS", zone="1", iops=40000, mb_s=1200))
    assert (v2.iops, v2.mb_s) == (40000, 1200)


def test_a_machine_bursts_with_credit_for_thirty_minutes() -> None:
    uncached, _ = Model(nominal(), 1).vm_limits(replace(VM, size="Standard_E16as_v5"))
    assert (uncached.iops, uncached.burst_iops) == (25600, 40000)
    assert (uncached.mb_s, uncached.burst_mb_s) == (384, 800)
    assert uncached.credit_mb == pytest.approx(748_800)  # 749 GB


def test_the_caps_factor_scales_limits_and_credit() -> None:
    profile = replace(nominal(), caps=replace(nominal().caps, iops_factor=1.02))
    uncached, _ = Model(profile, 1).vm_limits(replace(VM, size="Standard_E16as_v5"))
    assert uncached.iops == pytest.approx(25600 * 1.02)
    assert uncached.credit_ios == pytest.approx(14400 * 1800 * 1.02)


@pytest.mark.parametrize(("caching", "writes"), [("ReadOnly", False), ("ReadWrite", True)])
def test_a_host_cache_answers_hits(caching: str, writes: bool) -> None:
    export = Model(nominal(), 1).export_model(replace(VM, size="Standard_E16as_v5"), ZRS, caching, 0)
    assert export.cache is not None
    assert (export.cache.hit.mean_ms, export.cache.writes) == (0.079, writes)
    assert Model(nominal(), 1).export_model(VM, ZRS, "None", 0).cache is None


WANDERING = replace(
    load_profile("quiet"),
    noise=Noise(
        wander=(Wander(2.0, 0.1),), shared=0.5, shifts_a_month=50.0, hours_between_blocks=3.0, block=0.01
    ),
)


def test_slow_moves_depend_on_seed_entity_and_block_alone() -> None:
    model = Model(WANDERING, 7)
    few, many = model.machine_moves("/vms/a", 3), Model(WANDERING, 7).machine_moves("/vms/a", 9)
    assert many[:3] == few and len(set(many)) == 9
    assert model.machine_moves("/vms/b", 3) != few != model.disk_moves("/vms/a", 3)
    fourth = model.export_model(VM, ZRS, "None", 0, block=4)
    moved = model.machine_moves(VM.id, 9)[3] + model.disk_moves(ZRS.id, 9)[3]
    assert fourth.log_factor == pytest.approx(moved)
    assert fourth == Model(WANDERING, 7).export_model(VM, ZRS, "None", 0, block=4)
    assert fourth.second_log != model.export_model(VM, ZRS, "None", 0, block=5).second_log


def test_without_hours_between_blocks_nothing_moves_from_block_to_block() -> None:
    model = Model(replace(WANDERING, noise=replace(WANDERING.noise, hours_between_blocks=0.0)), 7)
    first, fifth = (model.export_model(VM, ZRS, "None", 0, block=block) for block in (1, 5))
    assert first == fifth and first.log_factor != 0


def test_a_machine_adds_microseconds_to_every_latency() -> None:
    model = Model(nominal(machine_us=50.0), 3)
    added = [model.machine_us(f"/vms/{number}") for number in range(400)]
    assert np.std(added) == pytest.approx(50, rel=0.15)
    vm = replace(VM, size="Standard_E16as_v5")
    export, added_ms = model.export_model(vm, ZRS, "ReadOnly", 0), model.machine_us(vm.id) / 1000
    assert export.cache is not None and export.log_factor == 0
    assert {row.offset_ms for row in (export.read, export.write)} == {added_ms}
    fast = next(f"/vms/{number}" for number in range(400) if added[number] < -60)
    hit = model.export_model(replace(vm, id=fast), ZRS, "ReadOnly", 0).cache
    assert hit is not None and hit.hit.offset_ms == pytest.approx(-0.079 / 2)  # no I/O takes no time


def test_slow_disks_of_successive_replicates_come_in_clusters() -> None:
    model = Model(nominal(slow_pairs=0.2, slow_pair_next=0.6, slow_pair_factor=0.8), 3)
    names = [[f"/disks/r{number}-{letter}" for number in range(1, 41)] for letter in "abcdefghij"]
    slow = np.array([[model.slow_disk_log(name) for name in row] for row in names])
    assert (slow > 0).mean() == pytest.approx(0.2, abs=0.07)
    assert (slow[:, 1:][slow[:, :-1] > 0] > 0).mean() == pytest.approx(0.6, abs=0.12)
    assert slow.max() == pytest.approx(np.log(1 / 0.8))
    name = names[0][int(np.argmax(slow[0]))]
    assert model.pair_log("/vms/a", name) - model.disk_log(name) == pytest.approx(np.log(1 / 0.8))
    assert model.slow_machine_log("/vms/a") == Model(nominal(), 3).slow_disk_log(name) == 0.0


def test_slow_runs_are_drawn_for_trials_and_leave_the_others_as_they_are() -> None:
    usual = np.array(Model(nominal(trial=0.004), 3).export_model(VM, ZRS, "None", 0).trial_log)
    model = Model(nominal(trial=0.004, slow_runs=0.1, slow_run_up_to=3.0), 3)
    added = np.array(model.export_model(VM, ZRS, "None", 0).trial_log) - usual
    assert (added > np.log(1.1) - 1e-9).mean() == pytest.approx(0.1, abs=0.04)
    assert np.isclose(added, 0).mean() > 0.85 and added.max() <= np.log(3) + 1e-9


def test_a_burstable_machine_has_its_documented_limits_and_credit() -> None:
    vm = replace(VM, size="Standard_B8ms")
    uncached, _ = Model(load_profile("azure-noise-2024-burstable"), 1).vm_limits(vm)
    assert (uncached.mb_s, uncached.burst_mb_s) == (pytest.approx(51), pytest.approx(204))  # 51 to 57 seen
    spent = replace(load_profile("azure-noise-2024-burstable"), noise=Noise(credit_empty=1.0))
    empty, _ = Model(spent, 1).vm_limits(vm)
    assert (empty.credit_ios, empty.credit_mb) == (0, 0) and uncached.credit_mb > 0


def test_a_disk_is_slow_after_an_attach_where_that_is_planted() -> None:
    profile = load_profile("quiet")
    plain = Model(profile, 7).export_model(VM, ZRS, "None", 0)
    assert Model(profile, 7).fresh(plain, "Premium_ZRS", 100.0).fresh_log == 0.0
    planted = Model(replace(profile, attach=Attach(60.0, 1.5)), 7).fresh(plain, "Premium_ZRS", 100.0)
    assert (planted.fresh_log, planted.fresh_until_s) == (pytest.approx(math.log(1.5)), 160.0)
