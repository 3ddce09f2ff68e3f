"""The answer of a run in one sentence: both values with their units, and the change with its interval."""

import math
import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

import numpy as np
import pandas as pd

from diskbook.design.model import Scenario, Workload
from diskbook.design.vocabulary import WITHHELD, Verdict
from diskbook.facts import quantities
from diskbook.report.show import headlines, locations, sentences
from diskbook.report.show.analysed import Analysed
from diskbook.stats import ratios
from diskbook.stats.protocol import KEYS

UNITS = {"iops": "IOPS", "throughput_mb_s": "MB/s"}
"""Units of metrics that are rates; all others are latencies in ms."""
COMPARED_BY = ("arm", "base_arm", "workload", "direction", "metric")


def number(value: float, unit: str) -> str:
    """Write a value with its unit, with about three digits: "3.19 ms", "5,020 IOPS"."""
    if math.isnan(value):
        return "not measured"
    digits = 0 if abs(value) >= 100 else 1 if abs(value) >= 10 else 2 if abs(value) >= 1 else 3
    return f"{value:,.{digits}f} {unit}"


def blocks(
    trials: pd.DataFrame, arm: str, base: str, workload: str, direction: str, metric: str
) -> pd.DataFrame:
    """List the log values of each replicate and block that measured both arms, one row per block."""
    means = ratios.log_means(trials, metric)
    columns = [(arm, workload, direction), (base, workload, direction)]
    both = means.reindex(columns=pd.MultiIndex.from_tuples(columns, names=means.columns.names)).dropna()
    return pd.DataFrame(both.to_numpy(), both.index, ["log_value", "log_base_value"]).reset_index()


def of_blocks(blocks: pd.DataFrame) -> tuple[float, float]:
    """Return the geometric means of both arms over blocks; replicates weigh alike."""
    means = blocks.groupby("replicate")[["log_value", "log_base_value"]].mean().mean()
    return float(np.exp(means["log_value"])), float(np.exp(means["log_base_value"]))


def levels_of_row(row: sentences.Row, trials: pd.DataFrame) -> tuple[float, float]:
    """Return the values of both arms of a comparison; NaN where no block measured both."""
    return of_blocks(blocks(trials, *(str(row[key]) for key in COMPARED_BY)))


def levels_text(row: sentences.Row, trials: pd.DataFrame) -> tuple[str, str]:
    """Write the values of both arms with their unit."""
    unit = UNITS.get(row["metric"], "ms")
    value, base_value = levels_of_row(row, trials)
    return number(value, unit), number(base_value, unit)


MOST_WORDS = 25
_WORD = re.compile(r"[A-Za-z0-9][\w'.,/^-]*")
_BRACKETS = re.compile(r"\(([^(),]*)[^()]*\)")


def words(sentence: str) -> int:
    """Count the words and numbers of a sentence."""
    return len(_WORD.findall(sentence))


def sentence(a: Analysed) -> str:
    """Answer the question of a run: its first decided headline, or what became of the first."""
    row = headlines.of(a.comparisons, a.scenario).lead
    if row is None:
        return headlines.said_of(a.provenance, headlines.without(a.comparisons, a.scenario))
    return of_row(row, a)


def of_row(row: sentences.Row, a: Analysed) -> str:
    """Say one comparison with both values, as fully as its words allow."""
    end = found(row)
    for start in _starts(row, a):
        whole = headlines.said_of(a.provenance, f"{start}: {end}")
        if words(whole) <= MOST_WORDS:
            break
    return whole


def _starts(row: sentences.Row, a: Analysed) -> Iterator[str]:
    """What was measured with both values, fullest first: whole labels, short ones, without place or depth."""
    load = a.scenario.workload_named(row["workload"])
    arm, base, place = _arms(a.labels[row["arm"]], a.labels[row["base_arm"]])
    brief = _brief(arm), _brief(base)
    if brief[0] == brief[1]:
        brief = arm.partition(" (")[0], base.partition(" (")[0]
    for names, where, is_whole in (
        ((arm, base), place, True),
        (brief, place, True),
        (brief, "", True),
        (brief, "", False),
    ):
        yield _both(row, a, load, names, where, is_whole=is_whole)


def _both(
    row: sentences.Row, a: Analysed, load: Workload, names: tuple[str, str], where: str, *, is_whole: bool
) -> str:
    what, is_one = _load(load, row, is_whole=is_whole)
    is_rate = row["metric"] in UNITS
    verb = ("reaches" if is_one else "reach") if is_rate else ("takes" if is_one else "take")
    if row["metric"] in ("lat_p50_ms", "lat_p99_ms"):
        verb, what = "is", f"{row['metric'][4:7]} of {what}"
    if Verdict.of(row["verdict"]) in WITHHELD or (math.isnan(row["ratio"]) and not is_rate):
        return f"no answer for {what}{where} on {names[0]} and {names[1]}"
    value, base_value = levels_text(row, a.trials)
    first, second = (name if name.startswith("from ") else f"on {name}" for name in names)
    return f"{what}{where} {verb} {value} {first} and {base_value} {second}"


def found(row: sentences.Row) -> str:
    """The change with its interval, and what it supports."""
    verdict, change = Verdict.of(row["verdict"]), change_words(row)
    if verdict in WITHHELD or math.isnan(row["ratio"]):
        return str(row["verdict"])
    if verdict is Verdict.DIFFERENCE:
        return change
    if verdict is Verdict.EQUIVALENT:
        return f"equal, {change}"
    if verdict in (Verdict.CAPPED, Verdict.SATURATED):
        return f"limits, not disks, {change}"
    return f"{row['verdict']}, {change}"


def change_words(row: sentences.Row) -> str:
    """Write the change of a comparison with its interval: "+146 % (95 % CI 138 to 155 %)"."""
    return quantities.change(row["ratio"], row["ci_low"], row["ci_high"], row["level"])


def _load(load: Workload, row: sentences.Row, *, is_whole: bool) -> tuple[str, bool]:
    """What a row measured, and whether it is singular: "one 4K write", "4K reads with 8 in flight".

    Of a mixed load it is one direction: "one 4K read among 30 % writes".
    """
    is_plain, direction = sentences.is_plain(row), row["direction"]
    name = "commit" if load.sync == "fdatasync" and not is_plain else direction
    plain = "plain " if is_plain else ""
    size = f"{plain}{load.block_size // 1024}K"
    others = {"read": f"{load.write_pct} % writes", "write": f"{100 - load.write_pct} % reads"}
    among = f" among {others[direction]}" if 0 < load.write_pct < 100 and direction in others else ""
    if load.rate is None and load.outstanding == 1:
        return f"one {size} {name}{among}", True
    more = f" with {load.outstanding} in flight" if load.rate is None else f" at {load.rate:,.0f} IOPS"
    return f"{size} {name}s{among}{more * is_whole}", False


def _arms(arm: str, base: str) -> tuple[str, str, str]:
    """Names of both arms, and the place they share: "ZRS", "LRS", " from zone 1"."""
    (first, _, place), (second, _, other) = (label.rpartition(", zone ") for label in (arm, base))
    if first and second and place == other:
        return first, second, f" from zone {place}"
    return arm.replace(", zone", " from zone"), base.replace(", zone", " from zone"), ""


def _brief(name: str) -> str:
    """What tells a name from others: what is in its brackets, behind its comma, or its zone."""
    bracket, (_, zone, number) = _BRACKETS.search(name), name.rpartition(" from zone ")
    if zone:
        return f"from zone {number}"
    return bracket[1] if bracket else name.rpartition(", ")[2]


class Parts(NamedTuple):
    """A comparison as the parts of a sentence: "one 4K write from zone 1", "on ZRS", "on LRS"."""

    what: str
    is_one: bool
    first: str
    second: str


def parts(row: sentences.Row, scenario: Scenario, labels: Mapping[str, str]) -> Parts:
    """Take a comparison apart, with short names."""
    load = scenario.workload_named(row["workload"])
    arm, base, place = _arms(labels[row["arm"]], labels[row["base_arm"]])
    names = _brief(arm), _brief(base)
    if names[0] == names[1]:
        names = arm, base
    what, is_one = _load(load, row, is_whole=True)
    if row["metric"] in ("lat_p50_ms", "lat_p99_ms"):
        what = f"{row['metric'][4:7]} of {what}"
    first, second = (name if name.startswith("from ") else f"on {name}" for name in names)
    return Parts(what + place, is_one, first, second)


def claim(row: sentences.Row, scenario: Scenario, labels: Mapping[str, str]) -> str:
    """Say what one comparison found as a title does, without values and intervals."""
    what, is_one, first, second = parts(row, scenario, labels)
    is_rate, verdict = row["metric"] in UNITS, Verdict.of(row["verdict"])
    take = ("reaches" if is_one else "reach") if is_rate else ("takes" if is_one else "take")
    unit = UNITS.get(row["metric"], "")
    if verdict is Verdict.DIFFERENCE:
        more, less = (f"more {unit}", f"fewer {unit}") if is_rate else ("longer", "less time")
        return f"{what} {take} {quantities.changed(row['ratio'], more, less)} {first} than {second}"
    if verdict is Verdict.EQUIVALENT:
        same = f"the same {unit}" if is_rate else "the same time"
        return f"{what} {take} {same} {first} and {second}, {row['verdict'].removeprefix(f'{verdict} ')}"
    if verdict is Verdict.INCONCLUSIVE:
        return f"no clear difference for {what}, {first} or {second}"
    return f"no answer for {what} {first} and {second}: {row['verdict']}"


def answers(a: Analysed) -> list[str]:
    """Say every headline comparison, in the order of the scenario's file, one sentence each."""
    lines = headlines.answers(a.comparisons, a.scenario)
    return [locations.with_physical_zones(line, a.trials) for line in lines]


def standings(a: Analysed) -> list[str]:
    """Say of every answer, in the same order, whether it is closed by the protocol, and what it lacks."""
    words = {(item.arm, item.base_arm, item.workload, item.metric): item.words for item in a.protocol}
    rows = headlines.of(a.comparisons, a.scenario).rows
    return [words[tuple(row[key] for key in KEYS)] for row in rows]


def comparison_in_words(
    a: Analysed, arm: str, base_arm: str, workload: str, metric: str = "lat_mean_ms"
) -> str:
    """Say one comparison in a sentence; "not compared" where the scenario names no such one."""
    rows = sentences.chosen(a.comparisons)
    for column, value in (("arm", arm), ("base_arm", base_arm), ("workload", workload), ("metric", metric)):
        rows = rows[rows[column] == value]
    return sentences.sentence(rows.iloc[0].to_dict(), a.scenario) if len(rows) else "not compared"


def arms_in_words(a: Analysed, arm: str, base_arm: str) -> list[str]:
    """Say every comparison of two arms, one sentence each."""
    items = [item for item in a.scenario.comparison if (item.arm, item.base_arm) == (arm, base_arm)]
    lines = [comparison_in_words(a, arm, base_arm, item.workload, item.metric) for item in items]
    return lines or ["not compared in this run"]
