"""What a preset leaves out of a scenario's file: rows by name, and what is about them alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

KINDS = frozenset({"machine", "disk", "cluster", "volume", "arm", "workload", "check", "drill"})


def apply(raw: Mapping[str, Any], names: Mapping[str, Sequence[str]]) -> dict[str, Any]:
    """Take rows out of a file's tables, and with them comparisons and shares of workloads.

    Parameters
    ----------
    raw
        The file's tables; lists of tables are lists.
    names
        By kind of row, e.g. ``{"arm": ["s2d-3-zones"]}``.

    Returns
    -------
    dict
        The tables without those rows, without the comparisons of those arms and workloads, and without the
        workloads that were for those arms only.
    """
    gone = {kind: set(names.get(kind, ())) for kind in KINDS}
    left = {
        kind: [row for row in rows if row.get("name") not in gone[kind]] if kind in KINDS else rows
        for kind, rows in raw.items()
    }
    workloads = [_pruned(row, gone["arm"]) for row in left.get("workload", [])]
    left["workload"] = [row for row in workloads if row is not None]
    gone["workload"] |= {row.get("name") for row in raw.get("workload", [])} - {
        row.get("name") for row in left["workload"]
    }
    if "comparison" in left:
        left["comparison"] = [row for row in left["comparison"] if not _is_about(row, gone)]
    return left


def _pruned(row: Mapping[str, Any], arms: set[str]) -> Mapping[str, Any] | None:
    """A workload without some of its arms; None where it had no others."""
    kept = [name for name in row.get("arms", []) if name not in arms]
    if not row.get("arms") or len(kept) == len(row["arms"]):
        return row
    return {**row, "arms": kept} if kept else None


def _is_about(comparison: Mapping[str, Any], gone: Mapping[str, set[str]]) -> bool:
    arms = {comparison.get("arm"), comparison.get("base_arm")}
    return bool(arms & gone["arm"]) or comparison.get("workload") in gone["workload"]
