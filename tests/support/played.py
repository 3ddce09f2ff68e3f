"""What the emulator played in a run, by its truth.json, beside what the tool saw.

A busy machine adds to every latency that a tool sees, and takes from every rate, by any amount. The latencies
that the disk drew in the same trials are free of that: what is to be found exactly is computed from them, and
of what the tool saw is asked what no load can undo.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pandas as pd

from diskbook.report.analysis.run import Analysis
from diskbook.results.tables import Tables

Truth = Mapping[str, Any]
EARLY_MS = 1.1
"""An I/O ends at most so much earlier than drawn: what the disk takes off for late wake-ups (played.h)."""
SLACK = 1.03
"""What is added to one arm may differ from what is added to the other by so much of a latency."""


def drawn_ms(trials: pd.DataFrame, truth: Truth) -> pd.Series:
    """Mean latency that the disk drew in each trial; NaN in rows that are neither reads nor writes."""
    realised = {row["trial"]: row["realised"] for row in truth["trials"] if row["matched"]}
    keys = zip(trials["trial"], trials["direction"], strict=True)
    means = [realised.get(trial, {}).get(f"{direction}_mean_ms") for trial, direction in keys]
    return pd.Series(means, trials.index, dtype=float)


def single(trials: pd.DataFrame) -> pd.Series:
    """Which rows are reads or writes one at a time: nothing queues there, and no cap adds to a latency."""
    return trials["direction"].isin(["read", "write"]) & (trials["outstanding"] == 1)


def added_ms(trials: pd.DataFrame, truth: Truth) -> pd.Series:
    """What single I/Os took beyond what was drawn for them in that very trial; a row a trial."""
    rows = trials[single(trials)]
    return rows["lat_mean_ms"] - drawn_ms(rows, truth)


def as_drawn(tables: Tables, truth: Truth) -> Tables:
    """The tables as a machine would have measured them that adds nothing to single I/Os."""
    trials, drawn = tables.trials.copy(), drawn_ms(tables.trials, truth)
    rows = single(trials) & drawn.notna()
    longer = trials.loc[rows, "lat_mean_ms"] / drawn[rows]
    trials.loc[rows, "lat_mean_ms"] = drawn[rows]
    for rate in ("iops", "throughput_mb_s"):
        trials.loc[rows, rate] *= longer
    return replace(tables, trials=trials)


def analysis_as_drawn(analysis: Analysis, truth: Truth) -> Analysis:
    """The analysis of the tables of `as_drawn`."""
    return replace(analysis, tables=as_drawn(analysis.tables, truth))


def as_seen(ratio: float, base_ms: float, trials: pd.DataFrame, truth: Truth) -> tuple[float, float]:
    """Where a planted ratio may be seen, least and most: as it is, or with what was added to both latencies.

    What is added to both draws a ratio towards 1, and never beyond. It is the median of all single I/Os, so
    arms that are swapped, or a wait that only one of them has, do not explain themselves.
    """
    added = float(added_ms(trials, truth).median())
    seen = (ratio * base_ms + added) / (base_ms + added)
    return min(ratio, seen) / SLACK, max(ratio, seen) * SLACK
