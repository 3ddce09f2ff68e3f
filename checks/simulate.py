"""Simulated measurements with a known truth, many runs at once, for `checks.coverage`.

A run is the hierarchy that is measured: machine -> disk pair -> block -> trial -> seconds. Values are logs of
mean latency. Machine, block and drift are common to both arms (they share the machine and the hour); the
disk pair and everything below it are not.

Seconds are not drawn one by one. A trial enters an analysis as its mean alone; the log of a mean of many
samples with a small spread is normal to first order, with the standard deviation that autocorrelation leaves
it (`sd_of_mean`); what the second order adds (half the variance, 0.1 % at most here) is the same in both
arms and cancels in their ratio. Spikes do not vanish like that, so they are counted for each trial and added.
"""

import math
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from diskbook.design.grid import mean_over_repeats
from diskbook.design.vocabulary import Provenance

SECONDS = 60
"""Samples a trial, one a second."""
SPIKE = 3.0
"""Latency of a second with a spike, as a multiple of the others: 3.3 % of the mean of a trial of 60 s."""
NEAREST_MS = (2.2, 3.2, 4.3)
"""Mean read latencies of a zone-redundant disk by the zone it answers from, seen from one machine, in ms."""
BASE_MS = 2.2
BASE, ARM = 0, 1


@dataclass(frozen=True)
class Level:
    """Noise: standard deviations of logs.

    - `machine`, `disk`, `block`, `trial`, `second`: of machines, of the ratio of a disk pair, of blocks, of
      trials, and of seconds within a trial.
    - `phi`: autocorrelation of one second with the next.
    - `spike`, `noisy`: chance of a second with a spike, and of a trial that is slower by a factor from 1 to
      `noisy_up_to`.
    - `drift`: of the change from the first trial on a machine to the last.
    - `one_sided`: whether only the arm, not its base, has noisy trials.
    - `first_machine`: times as much noise as others that the trials of the first replicate have.
    """

    name: str
    machine: float
    disk: float
    block: float
    trial: float
    second: float
    phi: float
    spike: float
    noisy: float
    noisy_up_to: float
    drift: float
    one_sided: bool = False
    first_machine: float = 1.0

    @property
    def noisy_mean(self) -> float:
        """What noisy trials add to the mean log: chance x mean of log U(1, up to)."""
        top = self.noisy_up_to
        return self.noisy * (top * math.log(top) / (top - 1) - 1) if top > 1 else 0.0


LEVELS = (
    Level("A shared", 0.03, 0.00, 0.02, 0.008, 0.03, 0.6, 0.001, 0.00, 1.0, 0.02),
    Level("B mild", 0.05, 0.01, 0.02, 0.012, 0.03, 0.6, 0.001, 0.01, 1.2, 0.02),
    Level("C strong", 0.10, 0.03, 0.03, 0.020, 0.05, 0.7, 0.001, 0.01, 1.2, 0.03),
    Level("D outliers", 0.05, 0.01, 0.02, 0.015, 0.05, 0.6, 0.003, 0.05, 1.5, 0.03),
)
ONE_SIDED = replace(LEVELS[3], name="D one-sided", one_sided=True)
RARE_SLOW = replace(
    LEVELS[1], name="B mild, 1 % of one arm up to 3 times slower", noisy_up_to=3.0, one_sided=True
)
OFTEN_SLOW = replace(RARE_SLOW, name="B mild, 5 % of one arm up to 3 times slower", noisy=0.05)
UNEQUAL = replace(LEVELS[1], name="B mild, one machine 5 times noisier", first_machine=5.0)


@dataclass(frozen=True)
class Design:
    """Numbers of replicates, blocks and repeats, and the trials that fail.

    - `failed`: share of the trials of both arms that fail, at random.
    - `slow_lost`, `slow_repeated`: share of the arm's trials, the slowest by their own noise, that fail for
      good, or that fail and are repeated until one is not as slow.
    """

    replicates: int
    blocks: int
    repeats: int = 2
    failed: float = 0.0
    slow_lost: float = 0.0
    slow_repeated: float = 0.0


@dataclass(frozen=True)
class Truth:
    """What is planted: overhead of the arm over its base, and whether a hidden zone answers its reads."""

    overhead: float = 0.02
    hidden_zone: bool = False


@dataclass(frozen=True)
class Simulated:
    """Simulated runs of one design.

    - `log_latency`: shape [run, replicate, block, repeat, arm], arms in the order (base, arm); log of the
      mean latency in ms; NaN for a failed trial.
    - `position`: place of the trial in its block, from 0; shape as `log_latency`.
    - `pair`: true log ratio of each replicate's own disks, shape [run, replicate].
    - `nearest`: zone each replicate answers from, numbered from 0, shape [run, replicate].
    - `population`: true mean log ratio of all disks of the kind; by nearest zone in `by_zone`.
    - `repeated`: whether the trial stands in for one that failed; shape as `log_latency`.
    """

    log_latency: np.ndarray
    position: np.ndarray
    pair: np.ndarray
    nearest: np.ndarray
    population: float
    by_zone: np.ndarray
    repeated: np.ndarray


def simulate(level: Level, design: Design, truth: Truth, n_runs: int, rng: np.random.Generator) -> Simulated:
    """Draw runs of a design.

    The true ratio is that of geometric means over trials: noisy trials of one arm alone are part of it.
    """
    per_replicate = (n_runs, design.replicates)
    shape = (*per_replicate, design.blocks, design.repeats, 2)
    by_zone = math.log1p(truth.overhead) + np.zeros(len(NEAREST_MS))
    if truth.hidden_zone:
        by_zone += np.log(np.array(NEAREST_MS) / BASE_MS)
    by_zone += level.noisy_mean if level.one_sided else 0.0
    nearest = rng.integers(0, len(NEAREST_MS), per_replicate)
    pair = by_zone[nearest] + rng.normal(0, level.disk, per_replicate)
    position = _positions(shape, rng)
    common = rng.normal(0, level.machine, per_replicate)[..., None] + rng.normal(0, level.block, shape[:3])
    noise, slow, repeated = _selected(_trial_noise(level, shape, rng), design, rng)
    values = math.log(BASE_MS) + common[..., None, None] + noise
    values += _drift(level, position, rng)
    values[..., ARM] += (pair - (level.noisy_mean if level.one_sided else 0.0))[..., None, None]
    if design.failed:
        values[rng.random(shape) < design.failed] = np.nan
    values[slow] = np.nan
    return Simulated(values, position, pair, nearest, float(by_zone.mean()), by_zone, repeated)


def sd_of_mean(sd: float, phi: float, n: int) -> float:
    """Standard deviation of the mean of n samples with first-order autocorrelation phi (AR(1)), exactly."""
    lags = np.arange(1, n)
    return sd * math.sqrt((1 + 2 * float(((1 - lags / n) * phi**lags).sum())) / n)


def ar1(sd: float, phi: float, shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
    """First-order autocorrelated noise over the last axis, stationary from its first sample on."""
    values = rng.normal(0, sd, shape)
    values[..., 1:] *= math.sqrt(1 - phi**2)
    for place in range(1, shape[-1]):
        values[..., place] += phi * values[..., place - 1]
    return values


def block_log_ratios(log_latency: np.ndarray) -> np.ndarray:
    """Log ratio arm / base of each block, shape [..., block]: the difference of means over repeats.

    NaN where an arm has no finished trial in the block.
    """
    means = mean_over_repeats(np.swapaxes(log_latency, -1, -2))
    difference: np.ndarray = means[..., ARM] - means[..., BASE]
    return difference


def trials(simulated: Simulated, run: int, workload: str = "randread-qd1") -> pd.DataFrame:
    """One simulated run as a table of trials, arms "base" and "arm": 4 KiB reads, depth 1, no limit near."""
    # Long: a table of trials, column by column.
    values = simulated.log_latency[run]
    replicate, block, repeat, arm = (index.ravel() for index in np.indices(values.shape))
    position, finished = simulated.position[run].ravel(), ~np.isnan(values.ravel())
    lat_mean_ms = np.exp(values.ravel())
    per_block = 2 * values.shape[2]
    minutes = (replicate * values.shape[1] + block) * per_block + position
    table = pd.DataFrame(
        {
            "replicate": replicate + 1,
            "block": block + 1,
            "repeat": repeat + 1,
            "position": position + 1,
            "trial": [f"{workload}-{number}" for number in range(values.size)],
            "arm": np.array(["base", "arm"])[arm],
            "workload": workload,
            "direction": "read",
            "provenance": Provenance.EMULATED,
            "attempt": 1,
            "status": np.where(finished, "ok", "failed"),
            "machine_id": [f"machine-{number}" for number in replicate],
            "disk_id": [f"disk-{number}-{which}" for number, which in zip(replicate, arm, strict=True)],
            "physical_zone": "az1",
            "credit_state": "full",
            "started_utc": pd.Timestamp("2026-01-01", tz="UTC") + pd.to_timedelta(minutes, unit="min"),
            "runtime_s": float(SECONDS),
            "outstanding": 1,
            "block_size_bytes": 4096,
            "rate_offered": np.nan,
            "lat_mean_ms": lat_mean_ms,
            "iops": 1000 / lat_mean_ms,
            "throughput_mb_s": 4.096 / lat_mean_ms,
        }
    )
    table["attempt"] += simulated.repeated[run].ravel()
    first = table[table["attempt"] == 2].assign(attempt=1, status="failed", lat_mean_ms=np.nan)
    first["trial"] += "-failed"
    order = ["replicate", "block", "position", "attempt"]
    return pd.concat([table, first]).sort_values(order, ignore_index=True)


def _positions(shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
    """Places within the block: a random order of the arms, then its reverse, and so on in turn."""
    first = rng.integers(0, 2, shape[:3])[..., None, None]
    repeat, arm = np.arange(shape[3])[:, None], np.arange(2)
    places: np.ndarray = 2 * repeat + (first + repeat + arm) % 2
    return places


def _trial_noise(level: Level, shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
    """Noise of trials: their own, what their seconds leave, spikes, and trials that are noisy as a whole."""
    noise = rng.normal(0, math.hypot(level.trial, sd_of_mean(level.second, level.phi, SECONDS)), shape)
    noise[:, :1] *= level.first_machine
    spikes = rng.binomial(SECONDS, level.spike, shape)
    noise += np.log1p(spikes * ((SPIKE - 1) / SECONDS))
    if level.noisy:
        noisy = rng.random(shape) < level.noisy
        if level.one_sided:
            noisy[..., BASE] = False
        noise[noisy] += np.log(rng.uniform(1, level.noisy_up_to, int(noisy.sum())))
    return noise


def _selected(
    noise: np.ndarray, design: Design, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Noise with the arm's slow trials repeated, which of them are lost, and which were repeated."""
    lost, repeated = np.zeros((2, *noise.shape), dtype=bool)
    of_arm = noise[..., ARM]
    if design.slow_lost:
        lost[..., ARM] = of_arm > np.quantile(of_arm, 1 - design.slow_lost)
    if design.slow_repeated:
        slow = repeated[..., ARM] = of_arm > np.quantile(of_arm, 1 - design.slow_repeated)
        of_arm[slow] = rng.choice(of_arm[~slow], int(slow.sum()))
    return noise, lost, repeated


def _drift(level: Level, position: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Linear drift over a machine's trials, around their middle."""
    n_runs, replicates, blocks, repeats, arms = position.shape
    place = np.arange(blocks)[:, None, None] * (repeats * arms) + position
    share = place / max(1, blocks * repeats * arms - 1) - 0.5
    size = rng.normal(0, level.drift, (n_runs, replicates))
    drift: np.ndarray = size[..., None, None, None] * share
    return drift
