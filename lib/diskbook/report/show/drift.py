"""Sentences on time: what changed within trials, and from block to block over the run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

from diskbook.design.series import diagnose
from diskbook.facts import quantities
from diskbook.stats.drift import COMMON, DriftVerdict, drift


def sentences(
    trials: pd.DataFrame, series: pd.DataFrame, labels: Mapping[str, str], words: Mapping[str, str]
) -> list[str]:
    """Say how steady trials and run were; arms and workloads by their names in words."""
    return [*within(diagnose(series)), *over_run(drift(trials), labels, words)]


def within(trials: pd.DataFrame) -> list[str]:
    """Say how many trials fell for good, as when credit runs out, and how many MSER-5 calls unsettled."""
    if trials.empty:
        return ["no trial kept a series: what happened within trials is not known"]
    fell, assessable = trials[trials["fell_at_s"].notna()], trials[trials["mser_cut_s"].notna()]
    unsettled = int(assessable["mser_unsettled"].sum())
    lines = [f"in none of {len(trials)} trials did the rate fall for good (a credit that runs out would)"]
    if len(fell):
        first = fell.sort_values("fell_at_s").iloc[0]
        lines = [
            f"in {len(fell)} of {len(trials)} trials the rate fell for good, soonest after "
            f"{first['fell_at_s']:.0f} s, from {first['rate_before']:,.0f} to {first['rate_after']:,.0f} "
            "IOPS: a credit may have run out"
        ]
    if unsettled:
        lines.append(
            f"{unsettled} of the {len(assessable)} trials long enough to judge look unsettled for half of "
            "their time (MSER-5, a diagnostic of warm-up); nothing is dropped for it"
        )
    return lines


def over_run(slopes: pd.DataFrame, labels: Mapping[str, str], words: Mapping[str, str]) -> list[str]:
    """Say what drifted from block to block: with all arms, which does no harm, or alone."""
    known = slopes[slopes["verdict"] != DriftVerdict.NOT_ASSESSABLE]
    if known.empty:
        return ["drift over the run is not assessable: that takes 3 blocks"]
    common, own = known[known["arm"] == COMMON], known[known["arm"] != COMMON]
    lines = [
        f"{words[row['workload']]}: all arms together {_slope(row)}" for row in common.to_dict("records")
    ]
    moved = own[own["verdict"] == DriftVerdict.DRIFTS].to_dict("records")
    names = "; ".join(f"{labels[row['arm']]}, {words[row['workload']]} {_slope(row)}" for row in moved)
    lines.append(
        f"{len(moved)} of {len(own)} slopes of single arms exclude zero (5 in 100 do by chance)"
        + (f": {names}" if names else "")
    )
    return lines


def _slope(row: Mapping[Any, Any]) -> str:
    """Change a block with its interval, e.g. "+0.3 % a block, 95 % CI -1.6 to +2.3"."""
    change, low, high = (100 * row[name] for name in ("change_per_block", "ci_low", "ci_high"))
    return quantities.with_interval(f"{change:+.1f} % a block", low, high, "+.1f")
