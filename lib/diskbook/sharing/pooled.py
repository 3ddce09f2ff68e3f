"""Several runs of one question taken together: these runs, and runs like these."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from diskbook.api import comparison, explore
from diskbook.api.comparison import ComparisonResult, ScopeEstimate
from diskbook.api.results import RunResults, open_run
from diskbook.design.vocabulary import Provenance
from diskbook.facts.errors import UsageError
from diskbook.facts.quantities import many
from diskbook.report.analysis.run import Analysis
from diskbook.results.manifest import origin
from diskbook.stats import intervals
from diskbook.stats.intervals import LEVEL, Interval

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FEWEST_RUNS = 3
"""Runs from which on something is said of other runs: two give one degree of freedom."""


@dataclass(frozen=True, repr=False)
class PooledComparison:
    """Two arms compared over several runs.

    Attributes
    ----------
    these_runs
        Mean of the runs' means; its error comes from the replicates within runs, pooled.
    runs_like_these
        The same mean; its error comes from the spread between runs (Student's t, from 3 runs on).
    runs
        One row a run: `run`, `ratio`, `n_replicates`, and `low`, `high` of the run alone (NaN without).
    components
        One row per component of the spread: `component`, `n`, `sd_pct`, and `why` it is not told.
    leave_one_out
        The change over runs like these without each run (`left_out`), with its interval and verdict.
    would_change
        What would change the answer, in sentences.
    left_out
        Runs whose number is withheld, each with its reason.
    exploratory
        Why this is no finding that was planned; "" where every run named the comparison.
    """

    arm: str
    base_arm: str
    workload: str
    direction: str
    metric: str
    these_runs: comparison.ScopeEstimate
    runs_like_these: comparison.ScopeEstimate
    runs: pd.DataFrame = field(compare=False)
    components: pd.DataFrame = field(compare=False)
    leave_one_out: pd.DataFrame = field(compare=False)
    would_change: tuple[str, ...]
    left_out: tuple[str, ...]
    exploratory: str
    provenance: str

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw a forest plot: the change of every run and of each scope, with intervals.

        Parameters
        ----------
        ax
            Axes to draw into; by default new ones.
        """
        table = self.runs.to_dict("records")
        rows = {str(row["run"]): np.array([100 * (row["ratio"] - 1)]) for row in table}
        ranges = [(100 * (row["low"] - 1), 100 * (row["high"] - 1)) for row in table]
        scopes = self.these_runs, self.runs_like_these
        return comparison.changes(rows, scopes, self._name, self.provenance, ax, ranges)

    @property
    def _name(self) -> str:
        return comparison.compared(self.arm, self.base_arm, self.workload, self.direction, self.metric)

    def __repr__(self) -> str:
        scopes = "; ".join(
            f"{part.scope}: {part.text}" if part.has_interval else f"{part.scope}: {part.reason}"
            for part in (self.these_runs, self.runs_like_these)
        )
        marks = comparison.remarks(*self.left_out, self.exploratory, comparison.source_words(self.provenance))
        return f"{self._name}, {len(self.runs)} runs: {scopes}{marks}"

    def _repr_html_(self) -> str:
        facts = {
            part.scope.capitalize(): part.text if part.has_interval else f"{part.text}: {part.reason}"
            for part in (self.these_runs, self.runs_like_these)
        }
        facts |= {"Runs": ", ".join(self.runs["run"]), "Left out": "; ".join(self.left_out)}
        marks = filter(None, [self.exploratory, comparison.source_words(self.provenance)])
        return comparison.box(self._name, facts, "; ".join(marks))


class PooledRuns:
    """Several runs taken together. Made by `pool`."""

    def __init__(self, runs: Sequence[RunResults]) -> None:
        self._runs = tuple(runs)

    @property
    def names(self) -> list[str]:
        """Names of the runs."""
        return [run.name for run in self._runs]

    @property
    def trials(self) -> pd.DataFrame:
        """Trials of all runs; column `run` says of which."""
        return pd.concat([run.trials.assign(run=run.name) for run in self._runs], ignore_index=True)

    def compare(
        self,
        arm: str,
        base_arm: str,
        *,
        workload: str,
        metric: str = "lat_mean_ms",
        direction: str | None = None,
    ) -> PooledComparison:
        """Compare two arms in every run, and take the runs together.

        Takes what `RunResults.compare` does. A run whose number the gates withhold is left out and named.

        Raises
        ------
        UsageError
            When a run lacks an arm or a workload, or fewer than two runs have a number.
        """
        kwargs = {"workload": workload, "metric": metric, "direction": direction}
        items = [run.compare(arm, base_arm, **kwargs) for run in self._runs]  # type: ignore[arg-type]
        for other in self._runs[1:]:
            _refuse_other_question(self._runs[0], other, arm, base_arm, workload)
        analyses = {id(item): run.analysis for item, run in zip(items, self._runs, strict=True)}
        kept = [item for item in items if not math.isnan(item.change_pct)]
        left_out = tuple(
            f"{item.run} left out, {item.verdict}: {item.reason}" for item in items if item not in kept
        )
        if len(kept) < 2:
            raise UsageError(f"pool: fewer than two runs have a number; {'; '.join(left_out)}")
        # Numbered, since runs of several folders may have one name.
        parts = [labelled(item, analyses[id(item)]) for item in kept]
        blocks = pd.concat([part.assign(run=number) for number, part in enumerate(parts)])
        return _pooled(kept, left_out, blocks)

    def __repr__(self) -> str:
        return f"<{len(self._runs)} runs pooled: {', '.join(self.names)}>"


def pool(runs: Iterable[RunResults | str | Path]) -> PooledRuns:
    """Take runs of one question together.

    Parameters
    ----------
    runs
        Opened runs, or names or folders of runs. A run that is there twice counts once, also as a copy
        under another name.

    Raises
    ------
    UsageError
        When there are fewer than two runs, they asked different things, or emulated ones stand beside
        measured ones.
    """
    opened = [run if isinstance(run, RunResults) else open_run(run) for run in runs]
    kept = [opened[place] for place in distinct([run.analysis for run in opened])]
    if len(kept) < 2:
        raise UsageError("pool needs two runs or more; a run that is there twice counts once")
    emulated = {Provenance.EMULATED in run.provenance for run in kept}
    if len(emulated) > 1:
        raise UsageError("pool: emulated runs say nothing about Azure; pool them without measured ones")
    for other in kept[1:]:
        _refuse_other_question(kept[0], other)
    return PooledRuns(kept)


def headlines(names: Sequence[str]) -> Iterator[str]:
    """Write each headline comparison of runs pooled, in the order of the first; refusals as well."""
    pooled, rows = pool(names), open_run(names[0]).comparisons
    keys = ["arm", "base_arm", "workload", "direction", "metric"]
    for arm, base, *load in rows.loc[rows["family"] == "headline", keys].drop_duplicates().to_numpy():
        try:
            result = pooled.compare(arm, base, **dict(zip(keys[2:], load, strict=True)))
            yield repr(result)
            yield from (f"  {line}" for line in _lines(result))
        except UsageError as error:  # the gates withhold its numbers
            yield f"{arm} / {base}, {load[0]}: {error}"
    for run in pooled._runs:
        if shared := origin(run.analysis.manifest):
            yield f"{run.name}: {shared}"


def _lines(result: PooledComparison) -> Iterator[str]:
    """Write what a pooled comparison rests on: its runs, components, and what would change it."""
    for row in result.runs.to_dict("records"):
        change, low, high = (100 * (row[name] - 1) for name in ("ratio", "low", "high"))
        reach = "" if math.isnan(low) else f" ({low:+.1f} to {high:+.1f} %)"
        yield f"run {row['run']}: {change:+.1f} %{reach}, {many(row['n_replicates'], 'replicate')}"
    for row in result.components.to_dict("records"):
        spread = f"s.d. {row['sd_pct']:.2g} %, {row['n']} of them"
        yield f"spread between {row['component']}s: {row['why'] or spread}"
    yield from result.would_change


def _refuse_other_question(first: RunResults, other: RunResults, *asked: str) -> None:
    difference = explore.asked_otherwise(first.analysis, other.analysis, *asked)
    if difference:
        raise UsageError(f"pool: run {other.name} asked something else than {first.name}: {difference}")


def _pooled(
    items: Sequence[comparison.ComparisonResult], left_out: tuple[str, ...], blocks: pd.DataFrame
) -> PooledComparison:
    means = [item.blocks.groupby("replicate")["log_ratio"].mean().to_numpy() for item in items]
    first = items[0]
    runs = pd.DataFrame(
        {
            "run": [item.run for item in items],
            "ratio": [math.exp(of_run.mean()) for of_run in means],
            "n_replicates": [len(of_run) for of_run in means],
            "low": [item.scope.low for item in items],
            "high": [item.scope.high for item in items],
        }
    )
    general = runs_like_these(means)
    without = leave_one_out(list(runs["run"]), means, runs_like_these)
    return PooledComparison(
        arm=first.arm,
        base_arm=first.base_arm,
        workload=first.workload,
        direction=first.direction,
        metric=first.metric,
        these_runs=these_runs(means),
        runs_like_these=general,
        runs=runs,
        components=components(blocks),
        leave_one_out=without,
        would_change=tuple(would_change(general, means, without)),
        left_out=left_out,
        exploratory=next((item.exploratory for item in items if item.exploratory), ""),
        provenance="+".join(sorted({item.provenance for item in items})),
    )


def these_runs(means: Sequence[np.ndarray], level: float = LEVEL) -> comparison.ScopeEstimate:
    """Estimate the mean of these very runs.

    Parameters
    ----------
    means
        Mean log ratios of the replicates, an array a run.
    level
        Level of the interval.

    Notes
    -----
    The variance between replicates is pooled within runs, with sum(n_i - 1) degrees of freedom; the mean of
    k run means has the variance s^2 / k^2 * sum(1 / n_i).
    """
    numbers = np.array([len(of_run) for of_run in means])
    df = int((numbers - 1).sum())
    mean = np.mean([of_run.mean() for of_run in means])
    squares = sum(float(((of_run - of_run.mean()) ** 2).sum()) for of_run in means)
    se = math.sqrt(squares / df * (1 / numbers).sum()) / len(means) if df else math.nan
    interval = intervals.student(np.asarray(mean), np.asarray(se), np.asarray(df or math.nan), level)
    return _estimate("these runs", interval, level, int(numbers.sum()), "no run has two replicates")


def runs_like_these(means: Sequence[np.ndarray], level: float = LEVEL) -> comparison.ScopeEstimate:
    """Estimate the mean of runs of the same kind: Student's t over run means, from 3 runs on.

    Takes what `these_runs` does.
    """
    of_runs = np.array([of_run.mean() for of_run in means])
    interval, reason = intervals.t_interval(of_runs, level), "all runs gave the same ratio"
    if len(of_runs) < FEWEST_RUNS:
        nothing, reason = np.asarray(math.nan), f"fewer than {FEWEST_RUNS} runs say nothing about others"
        interval = interval._replace(low=nothing, high=nothing)
    return _estimate("runs like these", interval, level, len(of_runs), reason)


def _estimate(scope: str, interval: Interval, level: float, n: int, reason: str) -> comparison.ScopeEstimate:
    ratio, low, high = (float(np.exp(part)) for part in (interval.mean, interval.low, interval.high))
    has_interval = not math.isnan(low)
    leaves_out_1 = has_interval and (low > 1 or high < 1)
    verdict = "difference" if leaves_out_1 else "inconclusive"
    return comparison.ScopeEstimate(
        scope, ratio, low, high, level, verdict, "" if has_interval else reason, n
    )


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
