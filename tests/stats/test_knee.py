"""Knees: latency, cap and knee as planted, the depth for 95 % off the curve, no interval from two blocks."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest

from diskbook.design.vocabulary import Label
from diskbook.stats import knee, limits
from support import s2d

DEPTHS = np.array([8.0, 32, 64, 96, 144])
ON_CAP = np.array([False, False, False, True, True])
BLOCK_CAPS = [20_000 * math.exp(log) for log in (-0.01, 0.0, 0.01)]


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


def two_arms(deepest: str) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Totals and cells of two arms at the same loads in three blocks.

    - `deepest`: label of our two deepest loads; the other arm is on a limit at each depth.
    """
    rows, cells = [], []
    for depth, iops in zip(DEPTHS, (2000.0, 8000, 16_000, 20_000, 20_000), strict=True):
        for block, cap in enumerate(BLOCK_CAPS, 1):
            rate = cap if iops == 20_000 else iops
            rows.append(("ours", f"d{depth:.0f}", block, depth, rate, max(4.0, 1000 * depth / rate)))
            rows.append(("other", f"d{depth:.0f}", block, depth, 500.0, 2 * depth))
        own = deepest if iops == 20_000 else Label.BELOW_CAP
        cells.append(("ours", f"d{depth:.0f}", own, "cap_disk_iops" if own == Label.CAPPED else ""))
        cells.append(("other", f"d{depth:.0f}", Label.CAPPED, "cap_vm_iops"))
    names = ["arm", "workload", "block", "outstanding", "iops", "lat_mean_ms"]
    totals = pd.DataFrame(rows, columns=names).assign(
        replicate=1, kind="read", block_size_bytes=4096, rate_offered=math.nan, runtime_s=30.0, ramp_s=5.0
    )
    labels = pd.DataFrame(cells, columns=["arm", "workload", "label", "limit"])
    return totals, labels.assign(share=labels["label"].eq(Label.CAPPED).astype(float))


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
    made = s2d.run(blocks=3)
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
    assert depth([2.0, 10, 20], np.array([8.0, 24, 72]), 19.0) > 24  # three times as deep is near enough
    assert math.isnan(depth([2.0, 10, 20], np.array([8.0, 24, 73]), 19.0))
    of_two_blocks = knee.depths_for(DEPTHS, np.array([[rates, rates[::-1]]]), np.array([[19_000.0, 19_000]]))
    assert of_two_blocks == pytest.approx(np.array([[depth(rates), math.nan]]), nan_ok=True)


@pytest.mark.parametrize(
    ("label", "share", "on_a_limit"),
    [
        (Label.CAPPED, 0.96, True),
        (Label.SATURATED, 0.5, True),
        (Label.NEAR_A_CAP, 1.0, True),
        (Label.NEAR_A_CAP, 0.99, False),
        (Label.BELOW_CAP, 1.02, False),
        (Label.UNASSESSED, 1.02, False),
    ],
)
def test_a_rate_is_that_of_a_limit_only_where_its_label_says_so(
    label: str, share: float, on_a_limit: bool
) -> None:
    """Also near a cap, from its nominal value on: limits let about 2 % more pass."""
    cells = pd.DataFrame({"label": [label], "share": [share]})
    assert knee.on_a_limit(cells).tolist() == [on_a_limit]


@pytest.mark.parametrize(("deepest", "caps"), [(Label.CAPPED, BLOCK_CAPS), (Label.BELOW_CAP, [math.nan] * 3)])
def test_the_cap_of_a_curve_in_each_block_is_that_of_its_own_arm(deepest: str, caps: list[float]) -> None:
    """A second arm that sits on a limit at the same loads says nothing about the first."""
    totals, cells = two_arms(deepest)
    found = knee.caps_by_block(totals[totals["arm"] == "ours"], cells)
    assert found.index.tolist() == [(1, 1), (1, 2), (1, 3)]
    assert found.tolist() == pytest.approx(caps, nan_ok=True)


def test_a_knee_and_its_interval_by_hand() -> None:
    """Logs of C x L in three blocks: s.d. 0.01 around log 80. t(0.975, 2) is 4.302653."""
    table = knee.knees(*two_arms(Label.CAPPED)).set_index("arm")
    ours, half_width = table.loc["ours"], 4.302653 * 0.01 / math.sqrt(3)
    assert ours["latency_ms"] == pytest.approx(4.0) and ours["cap_iops"] == pytest.approx(20_000)
    assert [ours["low"], ours["knee"], ours["high"]] == pytest.approx(
        [80 * math.exp(-half_width), 80, 80 * math.exp(half_width)], rel=1e-6
    )
    assert 64 < ours["depth_95_low"] < ours["depth_95"] < ours["depth_95_high"] < 96
    assert (ours["scope"], ours["limit"], ours["reason"]) == ("these disks", "cap_disk_iops", "")
    assert (ours["n_replicates"], ours["n_blocks"]) == (1, 3)
    assert table.loc["other", "reason"] == knee.NO_LATENCY and math.isnan(table.loc["other", "knee"])


def test_a_table_of_knees_allows_for_filling_pools_and_what_is_missing() -> None:
    totals, cells = two_arms(Label.CAPPED)

    def ours(totals: pd.DataFrame, cells: pd.DataFrame, *, pooled: bool = False) -> pd.DataFrame:
        table = knee.knees(totals, cells, pooled=pooled)
        return table[table["arm"] == "ours"].set_index("scope")

    plain = ours(totals, cells).loc["these disks"]
    # Without a ramp 4 ms of 2 s pass before the first I/O ends.
    filling = ours(totals.assign(ramp_s=0.0, runtime_s=2.0), cells).loc["these disks"]
    assert filling["cap_iops"] == pytest.approx(20_000 / (1 - 0.002))
    pooled = ours(totals, cells, pooled=True).loc["these disks"]
    assert pooled["high"] == pytest.approx(1.02 * plain["high"]) and pooled["low"] == plain["low"]
    assert ours(*two_arms(Label.BELOW_CAP)).loc["these disks", "reason"] == knee.NO_CAP
    two_replicates = ours(pd.concat([totals, totals.assign(replicate=2)]), cells)
    assert two_replicates.index.tolist() == ["these disks", "disks like these"]


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
