"""Knees: latency, cap and knee as planted, the depth for 95 % off the curve, no interval from two blocks."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest

from diskbook.stats import knee, limits
from support import s2d

DEPTHS = np.array([8.0, 32, 64, 96, 144])
ON_CAP = np.array([False, False, False, True, True])


def curve(latency_ms: float = 4.0, cap: float = 20_000.0, corner: float = 12.0) -> np.ndarray:
    return cap / (1 + (cap * latency_ms / 1000 / DEPTHS) ** corner) ** (1 / corner)


def read(*rates: np.ndarray) -> knee.Curves:
    iops = np.array(rates)
    return knee.curves(DEPTHS, iops, 1000 * DEPTHS / iops, ON_CAP)


def depth(rates: list[float], outstanding: np.ndarray = DEPTHS, target: float = 19_000) -> float:
    return float(knee.depths_for(outstanding, np.array([rates]), np.array([target]))[0])


def knees(made: s2d.MadeUp) -> pd.DataFrame:
    table = knee.knees(limits.trial_totals(made.trials), limits.label_cells(made.trials))
    return table.set_index(["arm", "kind", "block_size_bytes"])


def test_latency_and_cap_of_a_curve_meet_at_its_knee() -> None:
    planted = read(curve(), curve(4.4))
    assert planted.latency_ms == pytest.approx([4.0, 4.4], rel=1e-3)
    assert planted.cap_iops == pytest.approx(20_000, rel=0.002)
    assert np.exp(planted.log_knees) == pytest.approx([80, 88], rel=0.01)


def test_a_cap_is_told_without_the_time_in_which_the_queue_fills() -> None:
    """4 ms of a second pass before the first I/O ends; a ramp takes that out of what is counted."""
    rates = np.array([curve()])
    filled = knee.curves(DEPTHS, rates * (1 - 0.004), 1000 * DEPTHS / rates, ON_CAP, 1 / 1000)
    assert filled.cap_iops == pytest.approx(read(curve()).cap_iops, rel=1e-4)


@pytest.mark.long
def test_the_upper_end_of_a_volumes_knee_allows_for_disks_that_chance_loads_unevenly() -> None:
    made = s2d.run()
    of_disk, of_pool = (
        knee.knees(limits.trial_totals(made.trials), limits.label_cells(made.trials), pooled=pooled)
        for pooled in (False, True)
    )
    same = ["knee", "low", "cap_iops", "cap_iops_low", "depth_95_high"]
    pd.testing.assert_frame_equal(of_pool[same], of_disk[same])
    for high in ("high", "cap_iops_high"):
        ratio = (of_pool[high] / of_disk[high]).dropna()
        assert len(ratio) and ratio.to_numpy() == pytest.approx(1 + knee.UNEVEN)


def test_what_lies_between_half_and_the_cap_moves_neither() -> None:
    """A prototype lost 10 % at the corner; a fitted min() would follow it."""
    blunt = read(curve(corner=6.6))
    assert np.exp(blunt.log_knees) == pytest.approx([80], rel=0.03)


def test_the_depth_for_95_percent_is_read_off_the_curve() -> None:
    rates = [2000.0, 8000, 16_000, 19_500, 20_000]
    assert 64 < depth(rates) < 96
    assert depth(rates, 2 * DEPTHS) == pytest.approx(2 * depth(rates))
    assert depth([2000.0, 8000, 16_000, 19_500, 18_000]) == pytest.approx(
        depth(rates)
    )  # a dip is no way back
    assert depth([10.0, 20], np.array([8.0, 16]), 19.0) == pytest.approx(15.2)
    assert math.isnan(depth(rates, target=21_000)) and math.isnan(depth(rates, target=1000))
    assert math.isnan(depth(rates, target=math.nan))


def test_what_is_missing_is_missing() -> None:
    lost = curve()
    lost[3:] = math.nan
    assert np.isnan(read(lost, lost).log_knees).all()
    rates = curve()[None]
    free = knee.curves(DEPTHS, rates, 1000 * DEPTHS / rates, np.ones(5, bool))
    assert np.isfinite(free.cap_iops).all()
    deep = knee.curves(DEPTHS[3:], rates[:, 3:], 1000 * DEPTHS[3:] / rates[:, 3:], ON_CAP[3:])
    assert np.isnan(deep.latency_ms).all()


@pytest.mark.long
def test_planted_knees_are_found() -> None:
    made = s2d.run()
    table = knees(made)
    assert set(table["scope"]) == {"these disks"}
    for arm, kind, kib, load in (
        ("ss-4", "read", 4, "read-4k-t12"),
        ("ss-4", "write", 64, "write-64k-t12"),
        ("s2d-3", "write", 4, "write-4k-t12"),
        ("s2d-3", "write", 64, "write-64k-t12"),
    ):
        spec, item = made.scenario.arm_named(arm), made.scenario.workload_named(load)
        setups = s2d.volume_setups.documented(made.scenario)
        planted = s2d.cap(setups[arm], item, made.truth) * s2d.single_ms(spec, item, made.truth) / 1000
        row = table.loc[(arm, kind, kib * 1024)]
        assert row["low"] * 0.99 < planted < row["high"] * 1.01  # five blocks of one draw
        assert row["knee"] == pytest.approx(planted, rel=0.05) and row["reason"] == ""
        assert row["high"] / row["low"] < 1.1**2 and row["depth_95"] > row["knee"]
    eight = table.loc[("ss-8", "read", 4096)]
    assert math.isnan(eight["knee"]) and eight["reason"] == knee.NO_CAP


@pytest.mark.long
def test_two_blocks_give_no_interval_and_say_so() -> None:
    row = knees(s2d.run(blocks=2)).loc[("ss-4", "write", 4096)]
    assert row["knee"] == pytest.approx(82.2, rel=0.1) and row["n_blocks"] == 2
    assert math.isnan(row["low"]) and math.isnan(row["depth_95_high"]) and row["reason"] == knee.FEW_BLOCKS


@pytest.mark.long
def test_several_replicates_speak_of_disks_like_these() -> None:
    table = knees(s2d.run(replicates=3, blocks=2))
    rows = table.loc[("ss-4", "write", 4096)].set_index("scope")
    assert list(rows.index) == ["these disks", "disks like these"]
    assert (rows["n_replicates"] == 3).all() and rows[["low", "high"]].notna().all(axis=None)
