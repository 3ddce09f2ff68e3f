"""The answers of an analysed run, one sentence per comparison."""

from __future__ import annotations

from diskbook.report.show import headlines, locations, sentences
from diskbook.report.show.analysed import Analysed
from diskbook.stats.protocol import KEYS


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
