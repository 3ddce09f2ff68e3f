"""Time within a trial: its samples as arrays, warm-up (MSER-5), flat rates, and when a credit ran out.

Trials of one length are handled together, as an array [trial, sample]. Reads and writes are added, since
limits and credits are drawn on by both.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import pandas as pd

FLAT_CV = 0.003
FLAT_SAMPLES = 30
IOS_A_SAMPLE = 500
BATCH = 5
MIN_BATCHES = 4
STEP = 0.2
"""Least fall of a rate that is looked at as a credit running out: base limits lie far below burst limits."""
MIN_SIDE = 3


class Samples(NamedTuple):
    """Trials with the same number of samples: `trial` [t], `second` [t, n], `iops` [t, n]."""

    trial: np.ndarray
    second: np.ndarray
    iops: np.ndarray


def samples(series: pd.DataFrame | list[Samples] | None) -> list[Samples]:
    """Split a run's series into arrays, one for each number of samples, in order of time.

    - `series`: table `series` of a run (trial, direction, second, iops), or what this function returned.
    """
    if isinstance(series, list):
        return series
    if series is None or series.empty:
        return []
    counts = series["direction"].isin(["read", "write"]).to_numpy(bool)
    codes, names = pd.factorize(series["trial"][counts])
    second, iops = (series[name].to_numpy(float)[counts] for name in ("second", "iops"))
    follows = (codes[1:] > codes[:-1]) | ((codes[1:] == codes[:-1]) & (second[1:] > second[:-1]))
    if not follows.all():
        order = np.lexsort((second, codes))
        codes, second, iops = codes[order], second[order], iops[order]
    new = np.ones(len(codes), dtype=bool)
    new[1:] = (codes[1:] != codes[:-1]) | (second[1:] != second[:-1])
    starts = np.flatnonzero(new)
    codes, second = codes[starts], second[starts]
    iops = np.add.reduceat(iops, starts) if len(starts) else iops
    sizes = np.bincount(codes, minlength=len(names))
    first = np.concatenate([[0], np.cumsum(sizes)[:-1]]) if len(sizes) else sizes
    parts = []
    for length in np.unique(sizes):
        chosen = np.flatnonzero(sizes == length)
        where = first[chosen][:, None] + np.arange(length)
        parts.append(Samples(np.asarray(names)[chosen], second[where], iops[where]))
    return parts


def flat_trials(series: pd.DataFrame | list[Samples] | None) -> set[str]:
    """Trials whose one-second rate hardly moves (CV under 0.3 % over 30 samples or more): a cap's mark."""
    return {name for part, flat in _flatness(series) for name in part.trial[flat]}


def moving_trials(series: pd.DataFrame | list[Samples] | None) -> set[str]:
    """Trials whose one-second rate moves more than that: 99.8 % of real trials on a cap do not.

    Only with 500 I/Os a sample or more: of fewer, the odd I/O at its ends alone moves a rate.
    """
    moving: set[str] = set()
    for part, flat in _flatness(series):
        enough = (part.iops * _grain(part.second)).mean(axis=1) >= IOS_A_SAMPLE
        moving.update(part.trial[~flat & enough])
    return moving


def _flatness(series: pd.DataFrame | list[Samples] | None) -> Iterator[tuple[Samples, np.ndarray]]:
    """Trials of 30 samples or more, and whether their rate is flat, [trial]."""
    for part in samples(series):
        if part.iops.shape[1] >= FLAT_SAMPLES:
            with np.errstate(all="ignore"):
                yield part, part.iops.std(axis=1, ddof=1) < FLAT_CV * part.iops.mean(axis=1)


def diagnose(series: pd.DataFrame | list[Samples] | None) -> pd.DataFrame:
    """Say for each trial how much of its start MSER-5 would cut, and when its rate fell for good.

    Returns index trial; `n_samples`; `mser_cut_s` (NaN under 20 samples) and `mser_unsettled` (True where
    MSER-5 wants half of the trial cut: it never settled); `fell_at_s`, `rate_before`, `rate_after` (NaN where
    it did not fall).
    """
    parts = []
    for part in samples(series):
        cut, unsettled = mser(part.iops)
        start = part.second[:, :1]
        seconds = np.concatenate([start - _grain(part.second), part.second], axis=1)
        cut_s = np.take_along_axis(seconds, np.nan_to_num(cut).astype(int)[:, None], axis=1)[:, 0]
        columns = {
            "n_samples": part.iops.shape[1],
            "mser_cut_s": np.where(np.isnan(cut), np.nan, cut_s - seconds[:, 0]),
            "mser_unsettled": unsettled,
        }
        names = pd.Index(part.trial, name="trial")
        parts.append(pd.DataFrame(columns, index=names).join(falls(part)))
    order = ["n_samples", "mser_cut_s", "mser_unsettled", "fell_at_s", "rate_before", "rate_after"]
    empty = pd.DataFrame(columns=order, index=pd.Index([], name="trial"))
    return pd.concat(parts) if parts else empty


def mser(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """MSER-5: how many samples to cut from the start for the least standard error of the rest's mean.

    A diagnostic only. It sees warm-up, but no credit that runs out late: there it prefers to keep the burst.
    Means of 5 samples; the cut that minimises variance / number left, looked for in the first half, since the
    last few batches agree by chance. A minimum at the half says that the series never settled (White 1997,
    "An effective truncation heuristic for bias reduction in simulation output").

    - `values`: shape [trial, sample].

    Returns samples to cut (NaN with fewer than 20), and whether the minimum lay at the half.
    """
    n_batches = values.shape[1] // BATCH
    if n_batches < MIN_BATCHES:
        return np.full(len(values), np.nan), np.zeros(len(values), dtype=bool)
    batches = values[:, : n_batches * BATCH].reshape(len(values), n_batches, BATCH).mean(axis=2)
    left = np.arange(n_batches, 0, -1)
    tail = np.cumsum(batches[:, ::-1], axis=1)[:, ::-1]
    with np.errstate(all="ignore"):
        squares = np.cumsum(batches[:, ::-1] ** 2, axis=1)[:, ::-1]
        scores = (squares - tail**2 / left) / left**2
    best = scores[:, : n_batches // 2 + 1].argmin(axis=1)
    missing = np.isnan(values).any(axis=1)
    return np.where(missing, np.nan, best * float(BATCH)), ~missing & (best == n_batches // 2)


def falls(part: Samples) -> pd.DataFrame:
    """When the rate fell from one level to a lower one, as when a burst credit runs out.

    The one change point that leaves the least squares around two levels (each of 3 samples or more), told
    only where the second level is 20 % or more below the first and the step explains most of the spread
    (two thirds of the variance), so that noise and slow drift are not taken for it.

    Returns index trial; `fell_at_s` (second of the last sample before), `rate_before`, `rate_after`.
    """
    n = part.iops.shape[1]
    names = pd.Index(part.trial, name="trial")
    columns = ["fell_at_s", "rate_before", "rate_after"]
    if n < 2 * MIN_SIDE:
        return pd.DataFrame(np.nan, index=names, columns=columns)
    split = np.arange(MIN_SIDE, n - MIN_SIDE + 1)
    total = part.iops.sum(axis=1, keepdims=True)
    before = np.cumsum(part.iops, axis=1)[:, split - 1]
    with np.errstate(all="ignore"):
        explained = before**2 / split + (total - before) ** 2 / (n - split) - total**2 / n
        spread = ((part.iops - total / n) ** 2).sum(axis=1)
    best = np.where(np.isnan(explained), -np.inf, explained).argmax(axis=1)
    rows = np.arange(len(best))
    left = split[best]
    rates = before[rows, best] / left, (total[:, 0] - before[rows, best]) / (n - left)
    fell = (rates[1] < (1 - STEP) * rates[0]) & (explained[rows, best] > 2 / 3 * spread)
    levels = np.column_stack([part.second[rows, left - 1], *rates])
    return pd.DataFrame(np.where(fell[:, None], levels, np.nan), index=names, columns=columns)


def _grain(second: np.ndarray) -> np.ndarray:
    """Time between samples, [trial, 1]."""
    if second.shape[1] < 2:
        return np.ones((len(second), 1))
    steps = np.diff(second, axis=1)
    first: np.ndarray = steps[:, :1]
    return first if (steps == first).all() else np.asarray(np.median(steps, axis=1, keepdims=True))
