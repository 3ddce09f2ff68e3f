"""What a pooled comparison rests on: components of its spread, single runs, what would change the answer."""

import math
from collections.abc import Callable, Iterator, Sequence

import numpy as np
import pandas as pd

from diskbook.api import explore
from diskbook.api.comparison import ComparisonResult
from diskbook.api.scope import ScopeEstimate
from diskbook.report.analysis.run import Analysis
from diskbook.stats import intervals

LEVELS = ("region", "day", "run", "machine", "disk pair", "block")
"""Components of the spread, from the outermost to the innermost."""
SAME = 0.5
"""Share of a run's trials that another one has as well, from which on both are one run."""
MOST_RUNS = 99
Pooling = Callable[[Sequence[np.ndarray]], ScopeEstimate]


def distinct(analyses: Sequence[Analysis]) -> list[int]:
    """Places of runs that are there once: of copies, whatever their names, the one with most trials."""
    seen = [_contents(a) for a in analyses]
    kept: list[int] = []
    for place in sorted(range(len(seen)), key=lambda number: -len(seen[number])):
        names = explore.identity(analyses[place])
        is_known = (
            names == explore.identity(analyses[other])
            or len(seen[place] & seen[other]) > SAME * len(seen[place])
            for other in kept
        )
        if not any(is_known):
            kept.append(place)
    return sorted(kept)


def _contents(a: Analysis) -> frozenset[tuple[object, ...]]:
    """What each trial of a run measured, and when."""
    columns = ["started_utc", "arm", "workload", "direction", "lat_mean_ms", "iops"]
    return frozenset(a.trials[columns].astype(str).itertuples(index=False, name=None))


def labelled(item: ComparisonResult, a: Analysis) -> pd.DataFrame:
    """Return the log ratios of a run's blocks, each with where and when it was measured (`LEVELS`)."""
    trials = a.trials[a.trials["arm"].isin([item.arm, item.base_arm])]
    of_each = trials.groupby("replicate")[["machine_id", "disk_id"]].agg(_together)
    place = of_each.reindex(item.blocks["replicate"]).reset_index(drop=True).fillna("")
    day = str(a.trials["started_utc"].min())[:10]
    pair = place["disk_id"] + " " + item.blocks["replicate"].astype(str).to_numpy()
    labels = {"region": a.scenario.region or "", "day": "" if day == "NaT" else day, "run": item.run}
    return item.blocks.reset_index(drop=True).assign(
        **labels, machine=place["machine_id"], **{"disk pair": pair}
    )


def _together(ids: pd.Series) -> str:
    return "+".join(sorted(set(map(str, ids))))


def components(blocks: pd.DataFrame) -> pd.DataFrame:
    """Estimate the standard deviation of each component of the spread, where the design can tell it.

    Parameters
    ----------
    blocks
        Log ratios of blocks with their labels (`labelled`).

    Returns
    -------
    pandas.DataFrame
        One row per component: `component`, `n` levels, `sd_pct` (NaN where it is not told), and `why` not.

    Notes
    -----
    Method of moments on unweighted means, from the blocks outwards: the variance between the means of a
    level holds that of what lies below it, divided by how much of that there is, which is taken off.
    """
    rows, means, below = [], blocks.assign(mean=blocks["log_ratio"]), 0.0
    for place in range(len(LEVELS) - 1, -1, -1):
        level, outer = LEVELS[place], list(LEVELS[:place])
        number = len(means[[*outer, level]].drop_duplicates())
        why = _not_told(means, outer, level)
        sd = math.nan
        if not why:
            groups = means.groupby(outer)["mean"] if outer else means.assign(all=0).groupby("all")["mean"]
            sizes, squares = groups.size(), groups.var(ddof=1) * (groups.size() - 1)
            total = float(squares.sum()) / float((sizes - 1).sum())
            sd, below = math.sqrt(max(0.0, total - below)), total
        rows.append((level, number, 100 * math.expm1(sd), why))
        inner = means.groupby(outer)["mean"] if outer else means.assign(all=0).groupby("all")["mean"]
        below *= float((1 / inner.size()).mean())
        means = inner.mean().reset_index()
    return pd.DataFrame(rows[::-1], columns=["component", "n", "sd_pct", "why"])


def _not_told(means: pd.DataFrame, outer: list[str], level: str) -> str:
    """Say why a component is not told apart; "" where it is."""
    if (means[level] == "").all():
        return f"nothing says which {level} it was"
    if means[level].nunique() == 1 and level in ("region", "day"):
        return f"all runs have one {level}"
    sizes = means.groupby(outer).size() if outer else pd.Series([len(means)])
    if (sizes > 1).any():
        return ""
    return f"each {outer[-1]} has one {level}, so that its spread is part of that between {outer[-1]}s"


def leave_one_out(runs: Sequence[str], means: Sequence[np.ndarray], pooled: Pooling) -> pd.DataFrame:
    """Pool all runs but one, for each of them: `left_out`, `change_pct`, `low_pct`, `high_pct`, `verdict`."""
    rows = []
    for place, name in enumerate(runs):
        rest = pooled([*means[:place], *means[place + 1 :]])
        rows.append(
            (name, rest.change_pct, *rest.ci_pct, rest.verdict if rest.has_interval else "no interval")
        )
    return pd.DataFrame(rows, columns=["left_out", "change_pct", "low_pct", "high_pct", "verdict"])


def would_change(
    estimate: ScopeEstimate, means: Sequence[np.ndarray], left_out: pd.DataFrame
) -> Iterator[str]:
    """Say what would change the answer: a run less, a run more, or how many runs it takes to have one.

    Parameters
    ----------
    estimate
        For runs like these.
    means, left_out
        Mean log ratios of the replicates by run, and the table of `leave_one_out`.
    """
    if not estimate.has_interval:
        yield f"no answer for runs like these yet: {estimate.reason}"
        return
    alone = left_out[left_out["verdict"] != estimate.verdict]
    for row in alone.to_dict("records"):
        reach = "" if math.isnan(row["low_pct"]) else f" ({row['low_pct']:+.1f} to {row['high_pct']:+.1f} %)"
        yield f"without {row['left_out']} it is: {row['verdict']}{reach}"
    if alone.empty:
        yield f"no single run decides: without any one of them it is {estimate.verdict} as well"
    of_runs = np.array([of_run.mean() for of_run in means])
    if estimate.verdict == "difference":
        yield _one_more(of_runs)
    else:
        yield _more_runs(of_runs)


def _one_more(of_runs: np.ndarray) -> str:
    """Say how far off one more run would have to be for the interval to hold no change."""
    sign = math.copysign(1.0, of_runs.mean())
    for share in np.arange(0.0, 20.0, 0.02):
        new = of_runs.mean() - sign * share * abs(of_runs.mean())
        interval = intervals.t_interval(np.append(of_runs, new))
        if interval.low <= 0 <= interval.high:
            side = "or less" if sign > 0 else "or more"
            return f"one more run of {100 * math.expm1(new):+.1f} % {side} would make it inconclusive"
    return "no one more run would change it"


def _more_runs(of_runs: np.ndarray) -> str:
    """Say how many runs of this spread find a change as large as that which these show."""
    mean, sd = abs(float(of_runs.mean())), float(of_runs.std(ddof=1))
    for n in range(len(of_runs), MOST_RUNS + 1):
        if float(intervals.quantile(intervals.LEVEL, n - 1)) * sd / math.sqrt(n) < mean:
            return f"a change of {100 * math.expm1(mean):.1f} % takes about {n} runs of this spread to show"
    return f"a change as small as these runs show takes more than {MOST_RUNS} runs of this spread to show"
