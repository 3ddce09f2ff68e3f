"""Machines of a fleet compared: how evenly they were served, how long all of them measured. Pure.

The trial is the unit of every ratio. Its machines share volumes, nodes and time, so they are no replicates of
each other: nothing here is an interval over machines.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import ndtr

from diskbook.clusters.vmfleet import fleet
from diskbook.design.totals import trial_keys

_FAIRNESS = (
    "direction",
    "machines",
    "iops_mean",
    "cv",
    "least_to_most",
    "window_share",
    "start_spread_s",
    "end_spread_s",
)
_BESIDE = (
    "iops",
    "iops_vmfleet",
    "lat_p50_ms",
    "p50_vmfleet_ms",
    "lat_p99_ms",
    "p99_vmfleet_ms",
    "p99_ratio",
)


def fairness(fleet: pd.DataFrame) -> pd.DataFrame:
    """Compare the machines of each trial with each other.

    - `fleet`: the run's table of that name.

    Returns one row a trial and direction: `machines`; mean of their IOPS, each over its own time, and the
    coefficient of variation between them (n - 1 in the denominator; NaN for one machine); `least_to_most`,
    the least rate by the greatest. `window_share` is the time in which all measured, by the longest run;
    `start_spread_s` and `end_spread_s` are from the first to the last. A machine that did none of a direction
    counts with 0.
    """
    keys = trial_keys(fleet)
    rows = [
        {**dict(zip(keys, trial, strict=True)), "direction": direction, **rates, **times}
        for trial, machines in fleet.groupby(keys, sort=False)
        for times in [_times(machines)]
        for direction, rates in _rates(machines)
    ]
    return pd.DataFrame(rows, columns=[*keys, *_FAIRNESS])


def beside_vmfleet(fleet: pd.DataFrame, trials: pd.DataFrame) -> pd.DataFrame:
    """Put what VMFleet would print of each trial beside what was measured.

    VMFleet (`ReduceRowResultToSummary` in VMFleet.psm1) adds up the IOPS of each machine's own time, and
    takes the plain mean of the machines' percentiles. A mean of p99s is no p99: one slow machine of four with
    p99s of 20, 20, 20 and 80 ms makes it 35 ms, where that of all I/Os together is 80 ms.

    - `fleet`, `trials`: the run's tables of these names.

    Returns one row a trial and direction: `iops` and percentiles of the trial (within the common window, and
    of the histograms together), VMFleet's beside, and `p99_ratio`, VMFleet's p99 by the trial's.
    """
    columns = {"iops": "iops_vmfleet", "lat_p50_ms": "p50_vmfleet_ms", "lat_p99_ms": "p99_vmfleet_ms"}
    keys = [*trial_keys(fleet, trials), "direction"]
    by_trial = fleet.groupby(keys, sort=False)
    theirs = pd.DataFrame(
        {
            columns["iops"]: by_trial["iops"].sum(),
            # A machine without a percentile makes the mean missing: without it that would be another mean.
            **{columns[key]: by_trial[key].agg(_plain_mean) for key in ("lat_p50_ms", "lat_p99_ms")},
        }
    )
    ours = trials[[*keys, *columns]].merge(theirs.reset_index(), on=keys, how="inner")
    return ours.assign(p99_ratio=ours["p99_vmfleet_ms"] / ours["lat_p99_ms"])[[*keys, *_BESIDE]]


def _plain_mean(values: pd.Series) -> float:
    return float(values.mean(skipna=False))


def _rates(machines: pd.DataFrame) -> Iterator[tuple[str, dict[str, Any]]]:
    """Rates of one trial's machines by direction."""
    every = machines["vm"].unique()
    for direction, part in machines.groupby("direction", sort=False):
        rates = part.set_index("vm")["iops"].reindex(every, fill_value=0.0).to_numpy(float)
        mean = rates.mean()
        yield (
            str(direction),
            {
                "machines": len(rates),
                "iops_mean": mean,
                "cv": rates.std(ddof=1) / mean if len(rates) > 1 and mean > 0 else np.nan,
                "least_to_most": rates.min() / rates.max() if rates.max() > 0 else np.nan,
            },
        )


def _times(machines: pd.DataFrame) -> dict[str, float]:
    """When one trial's machines measured."""
    times = machines.drop_duplicates("vm")
    started, runtime = times["started_s"].to_numpy(float), times["runtime_s"].to_numpy(float)
    return {
        "window_share": fleet.common(started.tolist(), runtime.tolist()).share,
        "start_spread_s": float(np.ptp(started)),
        "end_spread_s": float(np.ptp(started + runtime)),
    }


_DEVIATES = np.linspace(-12.0, 12.0, 4801)


def of_copies(copies: int, sigma: float) -> float:
    """Mean latency of the slowest of some copies, in means of one; `sigma` is the deviation of its log."""
    density = np.exp(-(_DEVIATES**2) / 2) / np.sqrt(2 * np.pi)
    latency = np.exp(sigma * _DEVIATES - sigma**2 / 2)
    return float(np.trapezoid(copies * latency * density * ndtr(_DEVIATES) ** (copies - 1), _DEVIATES))


def spread(lat_ms: np.ndarray, count: np.ndarray) -> float:
    """Standard deviation of the log of latency, from the bins of a histogram; NaN of nothing."""
    if not np.sum(count):
        return float("nan")
    logs = np.log(lat_ms)
    mean = np.average(logs, weights=count)
    return float(np.sqrt(np.average((logs - mean) ** 2, weights=count)))
