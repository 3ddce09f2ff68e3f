"""Stationarity: did a trial's rate change while it was measured? From its own samples.

Three questions, each compared with what autocorrelated noise does by itself: did one trial change between
its halves, did the rate of one fall off as when a burst credit runs out, did all trials of a cell change
together?

Noise is that of samples around the two levels that fit a trial best, so that a fall wherever it lies is no
part of it; its autocorrelation is the median over a cell's trials, corrected for what the fit takes away, and
its variance the larger of the trial's own and the cell's median. Means of n such samples are worth
n (1 - phi) / (1 + phi) independent ones (Zwiers and von Storch 1995, "Taking serial correlation into account
in tests of the mean"), which gives standard errors and degrees of freedom.

Simulated (AR(1), 60 samples, 1 to 20 trials a cell, CV 0.3 to 10 %, phi 0 to 0.8; `make coverage` has such
cells): a steady comparison is called invalid in at most 3 %. Seen in 95 % or more: a fall of 10 % in the
middle of all trials of an arm of 4 or more (CV up to 5 %, phi up to 0.6; of 20: up to 10 %, 0.8), or of one
trial of 4 or more (CV 3 %, phi 0.6, or 5 %, 0); and one credit that runs out anywhere in the middle four
fifths, with 4 trials or more (a fall of 36 %, as of a D8s_v5: CV up to 3 %, phi 0.8, or 5 %, 0.6; of 17 %,
as of a Standard SSD: CV 3 %, phi 0.6). At a CV of 10 % and phi 0.8 the halves of a steady trial differ by
7 %, so that a fall of 10 % in one trial is hidden whatever the test (seen in 3 to 10 %).
"""

import numpy as np
import pandas as pd
from scipy import special

from diskbook.design.series import Samples, samples

CHANGE, FAR = 0.05, 0.08
"""Least change between halves that is told, of a trial or of a cell's mean; and one that counts alone."""
FALL = 0.15
"""Least fall told as a level that was lost: documented bursts lie 17 % or more above their base."""
ALPHA = 0.01
"""Chance that a steady trial is told."""
ALPHA_TRIALS, ALPHA_CELL, ALPHA_FALL = 0.01, 0.005, 0.005
"""Chance that the trials of a steady comparison, its two cells, or its levels are called changed."""
MIN_SAMPLES = 20
MIN_SIDE, SIDE_SHARE = 5, 0.1
"""Least samples of a level, so that one odd sample at an end is none."""
MAX_PHI = 0.9
MIN_DF, DF_SHARE = 4.0, 0.7
"""Degrees of freedom: this share of the independent samples of a cell, as the tails simulated have it."""
SAMPLES_A_LOOK, MAX_LOOKS = 4.0, 30.0
"""Independent samples for each independent place where a fall may lie (maximum over places, simulated)."""


def rate_changed(series: pd.DataFrame | list[Samples] | None, cells: pd.Series | None = None) -> pd.DataFrame:
    """Say for every trial whether its rate changed, and for its cell whether all its trials changed together.

    A trial moved when the means of its halves differ by more than 5 %, and noise explains that in 1 trial of
    100. It is far out when they differ by more than 8 %, or its rate fell by 15 % or more from one level to
    another, and noise explains that in 1 of 100 comparisons of two such cells. A few small changes among many
    trials do no harm to their mean; one that is far out does. Under 20 samples nothing is said.

    - `series`: table `series` of a run: trial, direction, second, iops; or its `series.samples`. Reads and
      writes are added.
    - `cells`: cell of each trial, by its name; by default each is alone.

    Returns by trial: `n_samples`, `change` (second half / first half - 1), `moved` and `far` (bool),
    `cell_change` (mean change of the cell's trials, where these changed together; else NaN).
    """
    parts = [_levels(part) for part in samples(series)]
    columns = ["n_samples", "change", "moved", "far", "cell_change"]
    if not parts:
        kinds = ("int64", "float64", "bool", "bool", "float64")
        nothing = pd.Index([], dtype="str", name="trial")
        columns_of = zip(columns, kinds, strict=True)
        return pd.DataFrame({name: pd.Series(dtype=kind, index=nothing) for name, kind in columns_of})
    trials = pd.concat(parts)
    of_trial = trials.index if cells is None else cells.reindex(trials.index)
    trials["cell"] = pd.factorize(of_trial)[0]
    with np.errstate(all="ignore"):
        judged = _judged(trials)
    return judged[columns]


def _levels(part: Samples) -> pd.DataFrame:
    """Halves, the two levels that fit best, and the noise around these, of trials of one length.

    Around the best two levels, lag-1 correlation comes out at phi - (3.4 + 9 phi) / n, and the variance at
    exp(-3.3 (1 + phi) / (1 - phi) / n) of what it is (fitted to simulated trials of 20 to 600 samples, phi 0
    to 0.9: within 0.02, and 0.05 of the variance); the first is undone here, the second by `_judged`.
    """
    index, n = pd.Index(part.trial, name="trial"), part.iops.shape[1]
    if n < MIN_SAMPLES:
        return pd.DataFrame({"n_samples": n, "change": np.nan}, index=index)
    with np.errstate(all="ignore"):
        values = part.iops / part.iops.mean(axis=1, keepdims=True)
        halves = values[:, : n // 2].mean(axis=1), values[:, n - n // 2 :].mean(axis=1)
        left, before, after = _best_levels(values)
        second = np.arange(n) >= left[:, None]
        rest = values - np.where(second, after[:, None], before[:, None])
        squares = (rest**2).sum(axis=1)
        same = second[:, 1:] == second[:, :-1]
        lag = np.nan_to_num((rest[:, 1:] * rest[:, :-1] * same).sum(axis=1) / squares)
        columns = {
            "n_samples": n,
            "change": halves[1] / halves[0] - 1.0,
            "difference": (halves[1] - halves[0]) / (halves[0] + halves[1]) * 2,
            "left": left,
            "fall": before - after,
            "fall_share": 1 - after / before,
            "variance": squares / (n - 2),
            "phi": (n * lag + 3.4) / (n - 9),
        }
    return pd.DataFrame(columns, index=index)


def _best_levels(values: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Number of samples of the first of the two levels that leave the least squares, and both levels."""
    n = values.shape[1]
    side = max(MIN_SIDE, int(np.ceil(SIDE_SHARE * n)))
    left = np.arange(side, n - side + 1)
    sums = np.cumsum(values, axis=1)
    first, total = sums[:, left - 1], sums[:, -1:]
    before, after = first / left, (total - first) / (n - left)
    explained = (before - after) ** 2 * left * (n - left)
    best = np.where(np.isnan(explained), -np.inf, explained).argmax(axis=1)
    rows = np.arange(len(values))
    return left[best], before[rows, best], after[rows, best]


def _judged(trials: pd.DataFrame) -> pd.DataFrame:
    """Hold changes of trials and cells against the noise of the cell."""
    n = trials["n_samples"].to_numpy(float)
    trials = trials.reindex(columns=[*dict.fromkeys([*trials.columns, *_COLUMNS])])
    by_cell = trials.groupby("cell")
    of_cell = by_cell["change"].transform("count").to_numpy(float)
    phi = by_cell["phi"].transform("median").clip(0, MAX_PHI).to_numpy(float)
    ratio = (1 + phi) / (1 - phi)
    own = trials["variance"].to_numpy(float) * np.exp(3.3 * ratio / n)
    common = pd.Series(own, index=trials.index).groupby(trials["cell"]).transform("median").to_numpy(float)
    independent = n / ratio
    df = np.maximum(DF_SHARE * of_cell * independent, MIN_DF)
    noise = np.fmax(own, common)
    size = np.abs(trials["difference"])
    errors = size / np.sqrt(noise * _of_halves(phi, n // 2))
    moved = (size > CHANGE) & (errors > _bound(ALPHA, df))
    far = (size > FAR) & (errors > _bound(ALPHA_TRIALS / 2 / of_cell, df))
    left = trials["left"].to_numpy(float)
    steep = trials["fall"] / np.sqrt(noise * ratio * (1 / left + 1 / (n - left)))
    looks = np.clip(independent / SAMPLES_A_LOOK, 1, MAX_LOOKS)
    fell = (trials["fall_share"] >= FALL) & (steep > _bound(2 * ALPHA_FALL / 2 / of_cell / looks, df))
    together = _together(trials, common * _of_halves(phi, n // 2), df)
    return trials.assign(moved=moved | far | fell, far=far | fell, cell_change=together)


_COLUMNS = ("difference", "left", "fall", "fall_share", "variance", "phi")


def _together(trials: pd.DataFrame, variance: np.ndarray, df: np.ndarray) -> pd.Series:
    """Mean change of the cell of each trial; NaN where chance explains it, or with one trial."""
    by_cell = trials.groupby("cell")["difference"]
    m, mean = by_cell.transform("count"), by_cell.transform("mean")
    spread = np.fmax(by_cell.transform("var"), variance)
    beyond = np.abs(mean) > _bound(ALPHA_CELL / 2, df) * np.sqrt(spread / m)
    return mean.where(beyond & (np.abs(mean) > CHANGE) & (m > 1))


def _bound(alpha: float | np.ndarray, df: np.ndarray) -> np.ndarray:
    """Quantile of Student's t that noise passes, to either side, with this chance."""
    return np.asarray(special.stdtrit(df, 1 - alpha / 2))


def _of_halves(phi: np.ndarray, n: np.ndarray) -> np.ndarray:
    """Variance of the difference of two adjacent means of n AR(1) samples, for a variance of 1 (exact)."""
    mean = ((1 + phi) / (1 - phi) - 2 * phi * (1 - phi**n) / n / (1 - phi) ** 2) / n
    covariance = phi * (1 - phi**n) ** 2 / (1 - phi) ** 2 / n**2
    return np.asarray(2 * (mean - covariance))
