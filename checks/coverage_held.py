"""Coverage of ratios of held rates: a part of `make coverage`.

The truth is an open loop: each I/O is sent when it is due, to a disk that serves all at once and now and then
stands still. fio's jobs of one I/O are played on the same disk, logged as fio does, and read back by the
functions that the analysis uses. An interval is compared with the ratio of the open loop's typical trials.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from checks import coverage_rule
from diskbook.design.model import depth_of_rate
from diskbook.design.vocabulary import GateStatus
from diskbook.stats import intervals
from diskbook.stats.gates.tool import Offered, generator_gate
from diskbook.tools.fio import held_rate
from diskbook.tools.fio.log import Rows
from diskbook.tools.record import Direction, Load, Measurement

BLOCKS = 5
SERVICE_MS = 3.0
NOISE = 0.02  # of a trial as a whole, in logs
STALLS = 6  # in a trial, one in each sixth of it
MOST_REFUSED = 0.2
IOS = 8_000
LEAST_S = 3.0
P999 = 3.0902  # standard deviations
QUANTITIES = {"mean": "lat_mean_ms", "p99": "lat_p99_ms"}
_AT_ONCE = 100
TITLE = "held rates, these disks: truth, refused runs, coverage and half-width, of mean and p99"


class Arm(NamedTuple):
    """Share of the time in which the disk stands still, spread of single I/Os (in logs), and their mean."""

    stalls: float
    tail: float = 0.3
    service_ms: float = SERVICE_MS


class Cell(NamedTuple):
    """Two arms at a rate; whether a ratio of theirs must mostly be printed (alike stalls)."""

    kind: str
    rate: int
    arm: Arm
    base: Arm
    is_alike: bool = True

    @property
    def name(self) -> str:
        """Rate, and what the arms differ in."""
        return f"{self.rate:,} per second, {self.kind}"

    @property
    def size(self) -> str:
        """Replicates and blocks."""
        return f"1 x {BLOCKS}"


@dataclass(frozen=True)
class Row(coverage_rule.Row):
    """Coverage of one quantity: of the runs that the gate does not refuse."""

    truth: float
    refused: float
    coverage: float
    half_width: float

    @property
    def is_refused(self) -> bool:
        """Whether too few runs are printed to judge their coverage."""
        return self.refused > 1 - MOST_REFUSED

    @property
    def is_off(self) -> bool:
        """Whether it covers too little or too much, or is refused where it must not be."""
        printed = round((1 - self.refused) * self.n_runs)
        if self.cell.is_alike and self.refused > MOST_REFUSED:
            return True
        is_wrong = coverage_rule.is_short(self.coverage, printed) or coverage_rule.is_wide(
            self.coverage, printed
        )
        return is_wrong and not self.is_refused


def cells(*, quick: bool = False) -> Iterator[Cell]:
    """List all cells; the quick ones are those of one rate."""
    for rate in (500,) if quick else (100, 500, 5_000):
        yield Cell("no stalls", rate, Arm(0.0, service_ms=1.3 * SERVICE_MS), Arm(0.0))
        yield Cell("stalls alike", rate, Arm(0.035), Arm(0.03))
        yield Cell("three times the stalls", rate, Arm(0.03), Arm(0.01), is_alike=False)
        yield Cell("stalls beside none, the faster disk stalls", rate, Arm(0.04, 0.3, 2.0), Arm(0.0), False)
        yield Cell("unlike tails", rate, Arm(0.0, 1.0), Arm(0.0))


def measure(cell: Cell, n_runs: int, seed: int) -> list[Row]:
    """Simulate runs of one cell; "these disks", whose truth is the ratio of typical open-loop trials."""
    rng = np.random.default_rng([seed, cell.rate, len(cell.kind), round(1e3 * cell.arm.stalls)])
    played = [_trials(cell.rate, arm, n_runs * BLOCKS, rng) for arm in (cell.arm, cell.base)]
    truth, by_fio = (np.log(played[0][kind] / played[1][kind]) for kind in range(2))
    logs = by_fio.reshape(n_runs, BLOCKS, len(QUANTITIES))
    of_run = [np.log(part[1:]).reshape(3, n_runs, BLOCKS, -1).mean(axis=2) for part in played]
    rows = []
    for place, quantity in enumerate(QUANTITIES):
        interval = intervals.within_replicates(logs[:, None, :, place])
        half = (interval.high - interval.low) / 2
        runs = zip(*(part[:, :, place].T for part in of_run), half, strict=True)
        printed = np.array([_is_printed(cell, quantity, *run) for run in runs])
        true = float(truth[:, place].mean())
        numbers = coverage_rule.covered(interval, true, printed)
        claim = f"{quantity} from the intended start, these disks"
        rows.append(Row(cell, claim, n_runs, math.exp(true), 1 - float(printed.mean()), *numbers))
    return rows


def _is_printed(cell: Cell, quantity: str, of_arm: np.ndarray, of_base: np.ndarray, half: float) -> bool:
    """Whether the gate lets a run pass, of whose arms the logs of latency, least and rise are known."""
    period_ms, metric = 1000 * depth_of_rate(cell.rate) / cell.rate, QUANTITIES[quantity]
    offered = {
        (name, ""): Offered(period_ms, _mean_to(arm, P999), math.exp(rise), {metric: upper - least})
        for name, arm, (upper, least, rise) in (("a", cell.arm, of_arm), ("b", cell.base, of_base))
    }
    return generator_gate(("a", "b"), "", metric, offered, half).status is GateStatus.PASSED


def _mean_to(arm: Arm, deviations: float) -> float:
    """Latency so many standard deviations above the median of single I/Os."""
    return arm.service_ms * math.exp(arm.tail * (deviations - arm.tail / 2))


def _trials(rate: int, arm: Arm, n_trials: int, rng: np.random.Generator) -> np.ndarray:
    """Mean and p99 of every trial: open loop, found, least, and the rise at p99; [kind, trial, quantity]."""
    sizes = [min(_AT_ONCE, n_trials - first) for first in range(0, n_trials, _AT_ONCE)]
    parts: list[np.ndarray] = [_some(rate, arm, size, rng) for size in sizes]
    return np.concatenate(parts, axis=1)


def _some(rate: int, arm: Arm, size: int, rng: np.random.Generator) -> np.ndarray:
    jobs = depth_of_rate(rate)
    each = max(IOS, round(rate * LEAST_S)) // jobs
    runtime_ms = 1000 * each * jobs / rate
    due = 1000 / rate * np.arange(each * jobs).reshape(each, jobs)
    shape = (size, each, jobs)
    factor = np.exp(rng.normal(0, NOISE, size))[:, None, None]
    service = factor * arm.service_ms * np.exp(rng.normal(-(arm.tail**2) / 2, arm.tail, shape))
    stalls = _stalls(arm, runtime_ms, size, rng)
    open_ms = _end(due[None], service, stalls) - due
    truth = np.stack(
        [open_ms.mean(axis=(1, 2)), np.quantile(open_ms.reshape(size, -1), 0.99, axis=1)], axis=1
    )
    end = np.full((size, jobs), -np.inf)
    logged = []
    for place in range(each):
        sent = np.maximum(due[place], end)
        end = _end(sent, service[:, place], stalls)
        logged.append(np.stack([end - due[0], end - sent]))
    ended, own = np.moveaxis(np.array(logged), 0, -1)  # [trial, job, I/O]
    by_fio = [_read(*trial, rate / jobs, runtime_ms) for trial in zip(ended, own, strict=True)]
    return np.stack([truth, *np.moveaxis(np.array(by_fio), 1, 0)])


def _stalls(arm: Arm, runtime_ms: float, size: int, rng: np.random.Generator) -> list[np.ndarray]:
    """Begin and end of each stall of every trial, one after another, [begin or end, trial]."""
    if not arm.stalls:
        return []
    room = runtime_ms / STALLS
    lengths = arm.stalls * room * rng.uniform(0.5, 1.5, (STALLS, size))
    begins = room * np.arange(STALLS)[:, None] + rng.uniform(0, 1, (STALLS, size)) * (room - lengths)
    return list(np.stack([begins, begins + lengths], axis=1))


def _end(sent: np.ndarray, service: np.ndarray, stalls: list[np.ndarray]) -> np.ndarray:
    """When I/Os end that are sent then: while the disk stands still their time does too."""
    end: np.ndarray = sent + service
    for stall in stalls:
        begin, until = (part.reshape(-1, *[1] * (end.ndim - 1)) for part in stall)
        end = end + np.where((begin < end) & (until > sent), until - np.maximum(begin, sent), 0.0)
    return end


def _read(ended_ms: np.ndarray, own_ms: np.ndarray, rate: float, runtime_ms: float) -> np.ndarray:
    """Mean and p99 of a trial that fio logged so, the least, and the rise at p99 twice; [which, quantity]."""
    time_ms, own_ns = np.floor(ended_ms).astype(np.int64).ravel(), np.rint(1e6 * own_ms).astype(np.int64)
    rows = Rows(time_ms, own_ns.ravel(), np.zeros_like(time_ms), np.full_like(time_ms, 4096))
    load = Load(threads=len(own_ms), queue_depth=1, runtime_s=runtime_ms / 1000)
    part = Direction(own_ms.size, math.nan, math.nan, runtime_ms)
    measurement = Measurement("held", "", load, {"read": part}, rates={"read": rate})
    intended = held_rate.with_schedule(measurement, rows, runtime_ms / 1000).directions["read"].intended
    latency, least = (
        (intended.lat_mean_ms, intended.lat_p99_ms),
        (intended.mean_least_ms, intended.p99_least_ms),
    )
    return np.array([latency, least, (intended.p99_rise, intended.p99_rise)])
