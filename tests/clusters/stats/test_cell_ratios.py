"""Ratios cell by cell: paired by block, over replicates from two on, and nothing where an arm is missing."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest

from diskbook.clusters.stats.ratio_map import cell_ratios, log_ratios


def totals(replicates: int = 1, blocks: int = 4, ratio: float = 0.5) -> pd.DataFrame:
    """Trials of two arms whose common noise is far larger than their own."""
    rng = np.random.default_rng(1)
    rows = []
    for replicate in range(1, replicates + 1):
        for block in range(1, blocks + 1):
            common = 1000 * np.exp(rng.normal(0, 0.5))
            for arm, factor in (("a", ratio), ("b", 1.0)):
                iops = common * factor * np.exp(rng.normal(0, 0.002))
                rows.append({"arm": arm, "workload": "w", "kind": "write", "block_size_bytes": 4096,
                             "outstanding": 80, "replicate": replicate, "block": block, "iops": iops,
                             "lat_mean_ms": 80_000 / iops})  # fmt: skip
    return pd.DataFrame(rows)


@pytest.mark.parametrize("replicates", [1, 3])
def test_what_both_arms_share_cancels(replicates: int) -> None:
    (row,) = cell_ratios(totals(replicates), "a", "b").to_dict("records")
    assert row["ratio"] == pytest.approx(0.5, abs=0.003) and row["low"] < 0.5 < row["high"]
    assert row["high"] / row["low"] < 1.03
    assert row["ratio"] * row["latency_ratio"] == pytest.approx(1.0)
    assert (row["n_replicates"], row["n_blocks"]) == (replicates, 4 * replicates)


def test_one_block_has_no_interval_and_a_missing_arm_no_ratio() -> None:
    (row,) = cell_ratios(totals(blocks=1), "a", "b").to_dict("records")
    assert row["ratio"] == pytest.approx(0.5, abs=0.01) and math.isnan(row["low"])
    assert cell_ratios(totals(), "a", "c").empty and log_ratios(totals(), "c", "b").empty


def test_a_load_that_one_arm_lacks_is_left_out() -> None:
    rows = totals()
    rows = pd.concat([rows, rows[rows["arm"] == "b"].assign(workload="other")])
    assert cell_ratios(rows, "a", "b")["workload"].tolist() == ["w"]
