"""Comparisons of a run that an analyst asks for, whether the scenario named them or not."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from diskbook.api.comparison import EXPLORATORY, ComparisonResult, of_row
from diskbook.design.model import Comparison
from diskbook.design.vocabulary import Scope, Verdict
from diskbook.facts.errors import DiskbookError, UsageError, unknown
from diskbook.report.analysis import cell
from diskbook.report.analysis.run import Analysis
from diskbook.report.comparing import measured
from diskbook.report.show import headlines, lead as lead_words, sentences

DEFAULT_MARGIN = 0.05


@dataclass
class Asked:
    """A comparison that was asked for, in the form that `stats.compare` takes."""

    arm: str
    base_arm: str
    workload: str
    metric: str
    pairing: str
    family: str = "exploratory"
    margin: float = DEFAULT_MARGIN
    as_delivered: bool = False


def compare(
    a: Analysis, arms: Sequence[str], base: str, workload: str, metric: str, direction: str | None, left: str
) -> list[ComparisonResult]:
    """Compare arms with one base arm, as one family.

    Parameters
    ----------
    a
        The analysed run.
    arms, base, workload, metric, direction
        What is compared; without a direction the only one that the workload has.
    left
        What was left out of the run before, in words; "" where nothing was.

    Raises
    ------
    UsageError
        When the run has no such arm, workload, metric or direction, or a workload has two directions.
    """
    way = _direction(a, [*arms, base], workload, metric, direction)
    if not left and len(arms) == 1 and _is_named(a, arms[0], base, workload, metric):
        return [_result(a, a.compared, (arms[0], base, workload, metric), way, "")]
    items = [Asked(arm, base, workload, metric, _pairing(a, arm, base)) for arm in arms]
    compared = a.compare(items)
    why = "; ".join(filter(None, [EXPLORATORY, left]))
    return [_result(a, compared, (arm, base, workload, metric), way, why) for arm in arms]


def lead(a: Analysis, left: str) -> ComparisonResult | None:
    """Return the headline comparison that answers the question; None where none was named."""
    row = headlines.of(a.comparisons, a.scenario).lead
    if row is None:
        return None
    key = ([row["arm"]], row["base_arm"], row["workload"], row["metric"], row["direction"])
    return compare(a, *key, left)[0]


def metrics(trials: pd.DataFrame) -> list[str]:
    """Names of the metrics that trials have values of."""
    names = [
        name
        for name in map(str, trials)
        if name in lead_words.UNITS or (name.startswith("lat_") and name.endswith("_ms"))
    ]
    return [name for name in names if trials[name].notna().any()]


def identity(a: Analysis) -> tuple[str, str]:
    """What makes a run itself, wherever its folder lies, and also under the name of a bundle."""
    return a.scenario.name, str(a.manifest.get("created_utc"))


def asked_otherwise(a: Analysis, other: Analysis, *asked: str) -> str:
    """Say the first thing in which two runs asked different questions; "" where they asked the same.

    Parameters
    ----------
    a, other
        Two analysed runs.
    asked
        Arm, base arm and workload to compare with each other; by default all comparisons named in both.
    """
    keys = [asked] if asked else sorted(_named_keys(a) & _named_keys(other))
    if not keys:
        return "they have no comparison in common"
    for key in keys:
        difference = measured.difference(_question(a, key), _question(other, key))
        if difference:
            return difference
    return ""


def _named_keys(a: Analysis) -> set[tuple[str, ...]]:
    return {(item.arm, item.base_arm, item.workload) for item in a.scenario.comparison}


def _question(a: Analysis, key: tuple[str, ...]) -> dict[str, Any]:
    """What a comparison of a run asks: kinds of disks, their places, and the load."""
    arm, base, workload = key
    pairing: Any = _pairing(a, arm, base)
    item = Comparison(arm=arm, base_arm=base, workload=workload, pairing=pairing)
    everything = cell.of(a.scenario, item, a.manifest)
    return {name: value for name, value in everything.items() if name in measured.ASKED}


def _direction(a: Analysis, arms: Sequence[str], workload: str, metric: str, direction: str | None) -> str:
    """Check all names; return the direction to compare."""
    where, trials = f"run {a.run.name}", a.trials[a.trials["status"] == "ok"]
    for arm in arms:
        _check("arm", arm, {*trials["arm"], *(item.name for item in a.scenario.arm)}, where)
    _check("workload", workload, {*trials["workload"], *a.words}, where)
    for arm in dict.fromkeys(arms):
        if not ((trials["arm"] == arm) & (trials["workload"] == workload)).any():
            raise UsageError(f"{where}: arm '{arm}' has no finished trial of workload '{workload}'")
    of_load = trials[trials["workload"] == workload]
    _check("metric", metric, metrics(of_load), where)
    ways = sorted(set(of_load["direction"]))
    if direction is None and len(ways) > 1:
        raise UsageError(
            f"{where}: workload '{workload}' has {' and '.join(ways)}; say which by direction='{ways[0]}'"
        )
    return ways[0] if direction is None else _check("direction", direction, ways, where)


def _check(kind: str, value: str, known: Any, where: str) -> str:
    if value not in known:
        raise unknown(kind, value, known, where)
    return value


def _is_named(a: Analysis, arm: str, base: str, workload: str, metric: str) -> bool:
    asked = (arm, base, workload, metric)
    return any(
        (item.arm, item.base_arm, item.workload, item.metric) == asked for item in a.scenario.comparison
    )


def _pairing(a: Analysis, arm: str, base: str) -> str:
    """How two arms are paired: as the scenario says of them, else by the machines that measured them."""
    for item in a.scenario.comparison:
        if {item.arm, item.base_arm} == {arm, base}:
            return str(item.pairing)
    machines = a.trials.groupby("arm")["machine_id"].agg(set)
    same = machines[arm] == machines[base] and all(machines[arm])
    return "same-machine" if same else "replicate"


def _result(
    a: Analysis, compared: Any, key: tuple[str, str, str, str], direction: str, why: str
) -> ComparisonResult:
    arm, base, workload, metric = key
    columns = ["arm", "base_arm", "workload", "metric"]
    of_key = compared.table[(compared.table[columns] == list(key)).all(axis=1)]
    rows = {row["scope"]: row for row in of_key[of_key["direction"] == direction].to_dict("records")}
    if not rows:
        raise DiskbookError(
            f"{a.run.name}: {arm} and {base} have no trials of {workload}, {direction}, in common"
        )
    estimates = {scope: of_row(row, _reason(row)) for scope, row in rows.items()}
    logs = lead_words.blocks(a.trials, arm, base, workload, direction, metric)
    value, base_value = lead_words.of_blocks(logs)
    gates = compared.gates[(compared.gates[columns] == list(key)).all(axis=1)]
    return ComparisonResult(
        run=a.run.name,
        arm=arm,
        base_arm=base,
        workload=workload,
        direction=direction,
        metric=metric,
        unit=lead_words.UNITS.get(metric, "ms"),
        value=value,
        base_value=base_value,
        these_disks=estimates[Scope.THESE],
        disks_like_these=estimates[Scope.LIKE_THESE],
        gates=gates.drop(columns=columns).reset_index(drop=True),
        blocks=_blocks(logs),
        exploratory=why,
        provenance=a.provenance,
    )


def _reason(row: Mapping[Any, Any]) -> str:
    """First reason of a row that supports no difference, or that has no interval."""
    decided = Verdict.of(row["verdict"]) in (Verdict.DIFFERENCE, Verdict.EQUIVALENT)
    return "" if decided and not math.isnan(row["ci_low"]) else sentences.first_reason(row)


def _blocks(logs: pd.DataFrame) -> pd.DataFrame:
    """Values of both arms and their log ratio, one row per replicate and block."""
    return logs[["replicate", "block"]].assign(
        value=np.exp(logs["log_value"]),
        base_value=np.exp(logs["log_base_value"]),
        log_ratio=logs["log_value"] - logs["log_base_value"],
    )
