"""Whether two runs asked the same question, by comparison: only then is there a ratio of their ratios."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from diskbook.design.arm_words import label
from diskbook.design.model import Comparison, Scenario, Workload
from diskbook.report.analysis import cell
from diskbook.report.show import sentences
from diskbook.report.show.tables import METRICS

KEY = ("arm", "base_arm", "workload", "direction", "metric")
"""Columns that name a comparison in one direction."""
HOW = frozenset({"tool", "working_set_gib", "ramp_s", "runtime_s", "blocks", "ioengine"})
"""Fields of a workload that are how it is measured, not what is asked; they stand among what changed."""
_ARMS = frozenset(
    f"{role}: {what}"
    for role in ("arm", "base arm")
    for what in ("sku of the disk", "kind of the volume", "load away from the owner", "nodes")
)
_LOADS = frozenset(f"workload: {name}" for name in Workload.model_fields if name not in HOW)
_ZONES = "pattern of zones (disk and machine of the arm, of the base arm)"
ASKED = frozenset({"metric", "pairing", _ZONES}) | _ARMS | _LOADS
"""What of a cell (`analysis.cell.of`) is the question: kinds of disks, their places, and the load."""


def of(scenario: Scenario, manifest: Mapping[str, Any], row: Mapping[Any, Any]) -> dict[str, Any]:
    """What a comparison of a run asked, in words and values."""
    named = next(matching(scenario, [row[name] for name in KEY]))
    everything = cell.of(scenario, named, manifest)
    question = {key: value for key, value in everything.items() if key in ASKED}
    writes = "plain" if sentences.is_plain(row) else "as asked for"
    return question | {
        "pairing": row["pairing"],
        "latency counts from": row.get("lat_start", ""),
        "writes": writes,
    }


def difference(first: Mapping[str, Any], other: Mapping[str, Any]) -> str:
    """Say the first thing in which two questions differ; empty where they are one."""
    for key in dict.fromkeys((*first, *other)):
        if first.get(key) != other.get(key):
            return f"{key} is {_shown(other.get(key))}, not {_shown(first.get(key))}"
    return ""


def words(scenario: Scenario, loads: Mapping[str, str], key: Sequence[str]) -> str:
    """A comparison in words: "4K random write, depth 1: ZRS, zone 1 / LRS, zone 1, mean latency".

    Parameters
    ----------
    scenario, loads
        A scenario that has it, and its workloads in words (`sentences.workload_words`).
    key
        The comparison (`KEY`).
    """
    arm, base, load, _, metric = key
    return f"{loads[load]}: {label(scenario, arm)} / {label(scenario, base)}, {METRICS.get(metric, metric)}"


def matching(scenario: Scenario, key: Sequence[str]) -> Iterator[Comparison]:
    """Comparisons of a scenario that a key names."""
    named = dict(zip(KEY, key, strict=True))
    for item in scenario.comparison:
        if all(getattr(item, name) == named[name] for name in ("arm", "base_arm", "workload", "metric")):
            yield item


def _shown(value: Any) -> str:
    return "none" if value in (None, "") else str(value)
