"""One scenario over all its runs: for each comparison the range of its ratio, and its spread between runs.

Nothing is pooled: runs of another provenance, of one replicate instead of several, or whose zone-redundant
disks answer from elsewhere have separate rows, and what asked another question is left out and named.
"""

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from diskbook.design.model import Scenario
from diskbook.design.vocabulary import WITHHELD, Scope, Verdict
from diskbook.facts import neighbours, quantities, table_writers
from diskbook.facts.errors import UsageError, unknown
from diskbook.report.comparing import measured, pairs
from diskbook.report.comparing.compared import LEAST_RUNS, BetweenRuns
from diskbook.report.comparing.measured import KEY
from diskbook.report.show import sentences
from diskbook.results.run import scenario_of
from diskbook.stats import ratio_of_ratios

FAMILIES = ("headline", "exploratory", "control")
_RUNS = ["run", "provenance", "created_utc", "n_replicates", "scenario_json", "manifest_json"]
_ROWS = [
    *("run", *KEY, "scope", "ratio", "ci_low", "ci_high", "level", "pairing", "n_replicates", "n_blocks"),
    *("family", "verdict", "warnings", "nearest_zone", "lat_start", "df"),
]
_ASKED = ["question_of", *KEY, "pairing", "lat_start", "is_plain"]
_KIND = ["provenance", "scope", "stratum"]
_NOT_ASKED = ("replicates", "seed", "max_cost_usd", "evidence_s")
"""Settings of a design that make no other question, and are another number in every run."""


class Range(NamedTuple):
    """Median, smallest and largest ratio of several runs, with the runs of the last two."""

    median: float
    smallest: float
    smallest_run: str
    largest: float
    largest_run: str


@dataclass(frozen=True)
class OfRuns:
    """One comparison in all runs of a kind.

    - `key`, `family`, `words`: which it is.
    - `provenance`, `scope`, `stratum`: the kind of run: where its numbers are from, which disks they hold
      for, and where zone-redundant disks answer, if that is known.
    - `n_runs`, `n_withheld`: runs that have it, and those of them that have no ratio (a cap, a gate).
    - `verdicts`: runs by the verdict of their own analysis.
    - `range`: of the ratios; None where there is none.
    - `between`: spread between the runs; None of fewer than three.
    """

    key: tuple[str, ...]
    family: str
    words: str
    provenance: str
    scope: Scope
    stratum: str
    n_runs: int
    n_withheld: int
    verdicts: Mapping[str, int]
    range: Range | None
    between: BetweenRuns | None


class LeftOut(NamedTuple):
    """What runs asked that is another question, or runs that cannot be read."""

    n_runs: int
    what: str
    why: str


@dataclass(frozen=True)
class OverRuns:
    """A scenario over all its runs. Made by `compare`."""

    scenario: str
    n_runs: int
    n_replicates: int
    provenance: str
    first_day: str
    last_day: str
    rows: tuple[OfRuns, ...]
    left_out: tuple[LeftOut, ...]


def compare(scenario: str, place: str | None = None) -> OverRuns:
    """Compare a scenario over all its runs.

    - `place`: folder of runs, or address of a store; by default this user's folder.

    Raises UsageError when no run there is of that scenario, or none compares anything.
    """
    seen = neighbours.catalogue.view(place).tell()
    runs = seen.frame("runs", scenario, _RUNS)
    if runs.empty:
        known = set(seen.frame("runs", None, ["run"])["scenario"])
        if seen.left_out and not known:
            raise UsageError(f"no run there can be read ({next(iter(seen.left_out.values()))})")
        raise unknown("run of scenario", scenario, known)
    runs = runs.sort_values(["created_utc", "run"], kind="stable", ignore_index=True)
    rows = seen.frame("comparisons", scenario, _ROWS)
    if rows.empty:
        raise UsageError(f"no run of {scenario} has a comparison yet; 'diskbook report RUN' analyses one")
    questions = _Questions(runs)
    rows, left_out = questions.sorted_out(_in_scope(rows))
    rows["stratum"] = questions.strata(rows)
    rows["provenance"] = rows["run"].map(runs.set_index("run")["provenance"])
    days = [f"{day:%Y-%m-%d}" for day in runs["created_utc"].dropna()] or [""]
    return OverRuns(
        scenario=scenario,
        n_runs=len(runs),
        n_replicates=int(runs["n_replicates"].sum()),
        provenance="+".join(sorted(set(runs["provenance"]))),
        first_day=days[0],
        last_day=days[-1],
        rows=tuple(sorted(_groups(rows, questions), key=lambda row: FAMILIES.index(row.family))),
        left_out=(*left_out, *(LeftOut(1, f"run {name}", why) for name, why in seen.left_out.items())),
    )


def _in_scope(rows: pd.DataFrame) -> pd.DataFrame:
    """One row a comparison and run: for disks like these where there are several replicates (as `pairs`)."""
    several = rows["n_replicates"] > 1
    scope = rows["scope"]
    return rows[(several & (scope == Scope.LIKE_THESE)) | (~several & (scope == Scope.THESE))].copy()


class _Questions:
    """What the comparisons of many runs asked; each different one is looked at once."""

    def __init__(self, runs: pd.DataFrame) -> None:
        texts = dict.fromkeys(runs["scenario_json"])
        keys = {text: _question_text(text) for text in texts}
        newest = {keys[text]: text for text in texts}
        self._names = {key: number for number, key in enumerate(newest)}
        self._scenarios = [scenario_of(text, "a run") for text in newest.values()]
        self._of_run = {
            run: self._names[keys[text]] for run, text in zip(runs["run"], runs["scenario_json"], strict=True)
        }
        self._manifests = dict(zip(runs["run"], runs["manifest_json"], strict=True))
        self._places: dict[str, Mapping[str, Any]] = {}

    def scenario(self, run: str) -> Scenario:
        """A scenario that asks what a run's does."""
        return self._scenarios[self._of_run[run]]

    def sorted_out(self, rows: pd.DataFrame) -> tuple[pd.DataFrame, list[LeftOut]]:
        """Rows that asked what most runs did, comparison by comparison; and what the others asked."""
        rows["question_of"] = rows["run"].map(self._of_run)
        rows["is_plain"] = rows["warnings"].fillna("").str.contains(sentences.PLAIN_IN_BOTH, regex=False)
        kinds = rows.groupby(_ASKED, sort=False)
        rows["asked"] = kinds.ngroup()
        asked_by = [self._question(row) for row in kinds.head(1).to_dict("records")]
        texts = {number: json.dumps(question, default=str) for number, question in enumerate(asked_by)}
        rows["question"] = rows["asked"].map(texts)
        words = {text: asked_by[number] for number, text in texts.items()}
        counts = rows.groupby([*KEY, "question"], sort=False)["run"].nunique().rename("n").reset_index()
        most = counts.loc[counts.groupby(list(KEY), sort=False)["n"].idxmax(), [*KEY, "question"]]
        first = {_key(row): row["question"] for row in most.to_dict("records")}
        left_out = [
            LeftOut(
                row["n"],
                pairs.label(_key(row)),
                f"another question: {measured.difference(words[own], other)}",
            )
            for row in counts.to_dict("records")
            if (other := words[row["question"]]) != words[own := first[_key(row)]]
        ]
        return rows.merge(most, on=[*KEY, "question"]), left_out

    def _question(self, row: Mapping[Any, Any]) -> dict[str, Any]:
        manifest = json.loads(self._manifests[row["run"]])
        return measured.of(self.scenario(row["run"]), manifest, row)

    def strata(self, rows: pd.DataFrame) -> list[str]:
        """Where the zone-redundant disks of each row answer; "" where that is not known."""
        columns = zip(
            rows["run"], rows["nearest_zone"].fillna(""), rows["arm"], rows["base_arm"], strict=True
        )
        return [self._stratum(*row) if row[1] else "" for row in columns]

    def _stratum(self, run: str, nearest: str, arm: str, base_arm: str) -> str:
        if run not in self._places:
            self._places[run] = json.loads(self._manifests[run])
        row = {"nearest_zone": nearest, "arm": arm, "base_arm": base_arm}
        return pairs.stratum(self.scenario(run), self._places[run], row)


def _question_text(scenario_json: str) -> str:
    """A scenario's text without what is another number in every run and makes no other question."""
    content = json.loads(scenario_json)
    design = {key: value for key, value in content.get("design", {}).items() if key not in _NOT_ASKED}
    return json.dumps({**content, "design": design}, sort_keys=True)


def _key(row: Mapping[Any, Any]) -> tuple[str, ...]:
    return tuple(str(row[name]) for name in KEY)


def _groups(rows: pd.DataFrame, questions: _Questions) -> Iterator[OfRuns]:
    """A row a comparison and kind of run."""
    estimates = pairs.estimate_of(rows)
    rows = rows.assign(mean=estimates.mean, se=estimates.se, df=estimates.df)
    words = {text: Verdict.of(text) for text in rows["verdict"].unique()}
    verdicts = rows["verdict"].map(words)
    rows = rows.assign(word=verdicts.astype(str), held=verdicts.isin(list(WITHHELD)) | rows["ratio"].isna())
    loads: dict[int, Mapping[str, str]] = {}
    for _, of_kind in rows.groupby([*KEY, *_KIND], sort=False):
        scenario = questions.scenario(of_kind["run"].iloc[0])
        of_scenario = loads.setdefault(id(scenario), sentences.workload_words(scenario))
        yield _of_kind(scenario, of_scenario, of_kind)


def _of_kind(scenario: Scenario, loads: Mapping[str, str], rows: pd.DataFrame) -> OfRuns:
    newest = rows.iloc[-1].to_dict()
    key, scope = _key(newest), Scope(newest["scope"])
    shown = rows[~rows["held"]]
    return OfRuns(
        key=key,
        family=newest["family"],
        words=measured.words(scenario, loads, key),
        provenance=newest["provenance"],
        scope=scope,
        stratum=newest["stratum"],
        n_runs=len(rows),
        n_withheld=int(rows["held"].sum()),
        verdicts=dict(Counter(rows["word"]).most_common()),
        range=_range(shown) if len(shown) else None,
        between=_between(key, scope, shown, newest["family"]),
    )


def _range(rows: pd.DataFrame) -> Range:
    """Median and ends of the ratios that may be shown."""
    ratios, runs = rows["ratio"].to_numpy(float), rows["run"].to_numpy()
    low, high = int(ratios.argmin()), int(ratios.argmax())
    return Range(float(np.median(ratios)), float(ratios[low]), runs[low], float(ratios[high]), runs[high])


def _between(key: tuple[str, ...], scope: Scope, rows: pd.DataFrame, family: str) -> BetweenRuns | None:
    """Spread between runs, as of several that are compared with a first one (`compared.between`)."""
    usable = rows[np.isfinite(rows["mean"]) & np.isfinite(rows["se"])]
    if len(usable) < LEAST_RUNS:
        return None
    means, has_disks = usable["mean"].to_numpy(), scope is Scope.THESE
    if has_disks:
        spread: ratio_of_ratios.Spread = ratio_of_ratios.with_their_disks(means)
    else:
        spread = ratio_of_ratios.between_runs(means, usable["se"].to_numpy(), usable["df"].to_numpy())
    return BetweenRuns(key, family, spread, has_disks)


WIDTH = 80


def text(over: OverRuns) -> str:
    """All that `diskbook compare --scenario` prints."""
    parts = [_head(over), *("\n".join(_lines(row)) for row in over.rows), "\n".join(_left_out(over))]
    return table_writers.wrapped("\n\n".join(filter(None, parts)), WIDTH)


def _head(over: OverRuns) -> str:
    days = " to ".join(dict.fromkeys(filter(None, (over.first_day, over.last_day))))
    parts = [f"{_runs(over.n_runs)} ({over.provenance})", f"{over.n_replicates:,} replicates", days]
    return f"{over.scenario}: {', '.join(filter(None, parts))}"


def _lines(row: OfRuns) -> Iterator[str]:
    yield f"{row.words} ({row.family})"
    yield f"  {_runs(row.n_runs)}, {_kind(row)}: {ratios(row)}"
    yield f"  {_verdicts(row)}"
    if row.between is not None:
        yield f"  {row.between.words}"


def _runs(number: int) -> str:
    return f"{number:,} run{'s' * (number != 1)}"


def _kind(row: OfRuns) -> str:
    where = f", disks answer from {row.stratum}" if row.stratum else ""
    return f"{row.provenance}, {row.scope}{where}"


def ratios(row: OfRuns) -> str:
    """Median and ends of the ratios: "median +139 %, +131 % (run-a) to +152 % (run-b)"."""
    if row.range is None:
        return "no ratio"
    median, low, high = (
        quantities.change(value) for value in (row.range.median, row.range.smallest, row.range.largest)
    )
    return f"median {median}, {low} ({row.range.smallest_run}) to {high} ({row.range.largest_run})"


def _verdicts(row: OfRuns) -> str:
    listed = ", ".join(f"{word} {number:,}" for word, number in row.verdicts.items())
    return f"{listed}; {_runs(row.n_withheld)} without a ratio" if row.n_withheld else listed


def _left_out(over: OverRuns) -> Iterator[str]:
    if over.left_out:
        yield "not compared:"
    for item in over.left_out:
        yield f"  {_runs(item.n_runs)}, {item.what}: {item.why}"


def shown(over: OverRuns) -> table_writers.Table:
    """The rows as readers see them."""
    return table_writers.Table.of(
        [
            {
                "Comparison": f"{row.words} ({row.family})",
                "Runs": row.n_runs,
                "Of what": _kind(row),
                "Ratios": ratios(row),
                "Verdicts of the runs": _verdicts(row),
                "Spread between runs": "" if row.between is None else row.between.words,
            }
            for row in over.rows
        ]
    )


def markdown(over: OverRuns) -> str:
    """The same as Markdown."""
    parts = [f"**{_head(over)}**", table_writers.markdown(shown(over)), "\n".join(_left_out(over))]
    return "\n\n".join(filter(None, parts))


def csv(over: OverRuns) -> str:
    """All numbers as CSV."""
    return table_writers.as_csv(table_writers.Table.of([record(row) for row in over.rows]))


def record(row: OfRuns) -> dict[str, Any]:
    """All numbers of a row, for programs."""
    shown, spread = row.range, None if row.between is None else row.between.spread
    return {
        "family": row.family,
        **dict(zip(KEY, row.key, strict=True)),
        "provenance": row.provenance,
        "scope": str(row.scope),
        "stratum": row.stratum,
        "n_runs": row.n_runs,
        "n_without_ratio": row.n_withheld,
        "ratio_median": shown and shown.median,
        "ratio_smallest": shown and shown.smallest,
        "smallest_run": shown.smallest_run if shown else "",
        "ratio_largest": shown and shown.largest,
        "largest_run": shown.largest_run if shown else "",
        "log_sd": spread and spread.sd,
        "log_sd_low": spread and spread.low,
        "log_sd_high": spread and spread.high,
        "p": spread and spread.p,
        "has_disks": bool(row.between and row.between.has_disks),
    }
