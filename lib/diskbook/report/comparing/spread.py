"""The spread between three runs and more, comparison by comparison: a separate estimate."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from diskbook.design.vocabulary import Scope
from diskbook.report.comparing.pairs import Pair, estimate_of
from diskbook.stats import ratio_of_ratios, ratios
from diskbook.stats.ratio_of_ratios import Spread

LEAST_RUNS = 3


@dataclass(frozen=True)
class BetweenRuns:
    """Spread of one comparison over runs; `has_disks` where that of their disks is in it."""

    key: tuple[str, ...]
    family: str
    spread: Spread
    has_disks: bool

    @property
    def words(self) -> str:
        """The spread in words, and what it may be due to."""
        if self.has_disks:
            return f"{self.brief}: that of their disks is in it, since runs have one replicate"
        p = "<0.001" if self.spread.p < 0.001 else f"{self.spread.p:.2g}"
        how_much = "more" if self.spread.p < ratios.ALPHA else "no more"
        return f"{self.brief}: {how_much} than their replicates explain (p {p})"

    @property
    def brief(self) -> str:
        """The spread alone: "s.d. between 4 runs 9.8 %, 95 % CI 5.3 to 42 %"."""
        sd, low, high = (_percent(value) for value in self.spread[:3])
        return f"s.d. between {self.spread.n_runs} runs {sd} %, 95 % CI {low} to {high} %"


def _percent(log_sd: float) -> str:
    """A standard deviation of logs in percent, with two digits, without its unit."""
    share = 100 * math.expm1(log_sd)
    return f"{share:.2g}" if share < 10 else f"{share:.0f}"


def between(pairs: Sequence[Pair]) -> Iterator[BetweenRuns]:
    """Estimate the spread of every comparison that three runs or more have with an interval."""
    for key in dict.fromkeys(pair.key for pair in pairs):
        of_key = [pair for pair in pairs if pair.key == key]
        usable = [pair for pair in of_key if np.isfinite(pair.estimate.low)]
        if len(usable) + 1 < LEAST_RUNS:
            continue
        has_disks = any(pair.scope is Scope.THESE for pair in usable)
        rows = [usable[0].ratios[0], *(pair.ratios[1] for pair in usable)]
        estimates = [estimate_of(row) for row in rows]
        means = np.array([part.mean for part in estimates])
        if has_disks:
            spread = ratio_of_ratios.with_their_disks(means)
        else:
            errors, df = np.array([(part.se, part.df) for part in estimates]).T
            spread = ratio_of_ratios.between_runs(means, errors, df)
        yield BetweenRuns(key, of_key[0].family, spread, has_disks)
