"""What a preset leaves out of a scenario's file: rows by name, and what is about them alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

KINDS = frozenset({"machine", "disk", "cluster", "volume", "arm", "workload", "check", "drill", "loss"})
Names = Sequence[Any]
"""Names as a file has them, which may be anything: nothing of it has been checked yet."""


def apply(raw: Mapping[str, Any], names: Mapping[str, Sequence[str]]) -> dict[str, Any]:
    """Take rows out of a file's tables, and with them comparisons and shares of workloads.

    Parameters
    ----------
    raw
        The file's tables; lists of tables are lists.
    names
        By kind of row, e.g. ``{"arm": ["s2d-3-zones"]}``. Losses of a volume go with it.

    Returns
    -------
    dict
        The tables without those rows, without the comparisons of those arms and workloads, and without the
        workloads that were for those arms only.
    """
    arms = names.get("arm", ())
    left = {kind: [row for row in rows if row.get("name") not in names[kind]] if kind in names else rows
            for kind, rows in raw.items()}  # fmt: skip
    gone = names.get("volume", ())
    if "loss" in left:
        left["loss"] = [row for row in left["loss"] if row.get("volume") not in gone]
    workloads = [_pruned(row, arms) for row in left.get("workload", [])]
    left["workload"] = [row for row in workloads if row is not None]
    there = _names(left["workload"])
    loads = [name for name in _names(raw.get("workload", [])) if name not in there]
    if "comparison" in left:
        left["comparison"] = [row for row in left["comparison"] if not _is_about(row, arms, loads)]
    return left


def _names(rows: Sequence[Mapping[str, Any]]) -> Names:
    return [row.get("name") for row in rows]


def _pruned(row: Mapping[str, Any], arms: Names) -> Mapping[str, Any] | None:
    """A workload without some of its arms; None where it had no others."""
    listed = row.get("arms")
    if not isinstance(listed, list) or not any(name in arms for name in listed):
        return row
    kept = [name for name in listed if name not in arms]
    return {**row, "arms": kept} if kept else None


def _is_about(comparison: Mapping[str, Any], arms: Names, loads: Names) -> bool:
    named = comparison.get("arm"), comparison.get("base_arm")
    return any(name in arms for name in named) or comparison.get("workload") in loads
