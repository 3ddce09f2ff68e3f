"""Memory of blocks: a known series by hand, false alarms, power, and what the gate says of it."""

from __future__ import annotations

import math

import numpy as np
import pytest

from diskbook.stats.gates import data
from diskbook.stats.gates.data import memory_gate

N_RUNS = 1500


def wandering(phi: float, shape: tuple[int, ...], seed: int = 7) -> np.ndarray:
    """Autoregressive series of unit variance along the last axis."""
    steps = np.random.default_rng(seed).normal(size=shape)
    series = steps.copy()
    for block in range(1, shape[-1]):
        series[..., block] = phi * series[..., block - 1] + math.sqrt(1 - phi**2) * steps[..., block]
    return series


def share_seen(phi: float, replicates: int, blocks: int) -> float:
    runs = wandering(phi, (N_RUNS, replicates, blocks))
    return sum(data.memory_of_blocks(run).is_seen for run in runs) / N_RUNS


def test_by_hand() -> None:
    """Eight blocks that rise by one: squared steps 7, squares about the mean 42; C = 1 - 7/84."""
    rising = data.memory_of_blocks(np.arange(8.0)[None])
    assert rising.correlation == pytest.approx(1 - 7 / 84)
    assert data.memory_of_blocks(0.01 * np.arange(8.0)[None]).correlation == pytest.approx(1 - 7 / 84)
    assert rising.score == pytest.approx((1 - 7 / 84) / math.sqrt(6 / 63)) and rising.is_seen
    swinging = data.memory_of_blocks(np.array([[1.0, -1.0] * 4]))
    assert swinging.correlation < -0.5 and not swinging.is_seen


@pytest.mark.long
@pytest.mark.parametrize(("replicates", "blocks"), [(1, 8), (1, 10), (3, 5), (5, 10)])
def test_false_alarms_are_as_rare_as_said(replicates: int, blocks: int) -> None:
    assert share_seen(0.0, replicates, blocks) < 0.01 + 3 * math.sqrt(0.01 * 0.99 / N_RUNS)


@pytest.mark.long
@pytest.mark.parametrize(
    ("replicates", "blocks", "power"), [(1, 10, 0.31), (1, 20, 0.80), (3, 5, 0.18), (3, 10, 0.78)]
)
def test_power_is_as_said(replicates: int, blocks: int, power: float) -> None:
    assert share_seen(0.8, replicates, blocks) == pytest.approx(power, abs=0.04)


def test_few_blocks_show_nothing_and_that_is_said() -> None:
    gate = memory_gate(wandering(0.99, (1, 4)))
    assert gate.status == "not assessable" and "too few blocks" in gate.cause and gate.decides is None
    for odd in (np.zeros((0, 0)), np.full((3, 20), np.nan), np.ones((1, 30))):
        assert not data.memory_of_blocks(odd).is_assessable


def test_missing_blocks_are_left_out() -> None:
    series = np.insert(np.arange(8.0), 3, np.nan)
    assert data.memory_of_blocks(series[None]) == data.memory_of_blocks(np.arange(8.0)[None])


def test_the_gate_warns_and_decides_nothing() -> None:
    gate = memory_gate(wandering(0.9, (3, 20)))
    assert gate.status == "failed" and gate.decides is None
    assert (
        "for these hours, and may miss the lasting ratio" in gate.cause and "[design] spread" in gate.remedy
    )
    assert memory_gate(np.random.default_rng(1).normal(size=(3, 20))).status == "passed"
