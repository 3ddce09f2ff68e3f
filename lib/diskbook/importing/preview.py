"""What an import would make, before it is written: how paths were read, and arms x loads x repeats."""

from collections.abc import Mapping, Sequence
from typing import Any

from diskbook.facts.errors import visible
from diskbook.importing import repeats, run as importer
from diskbook.importing.pairing import Entry
from diskbook.importing.run import Planned
from diskbook.importing.scenario import Settings
from diskbook.results import run as runs

_MOST_LINES = 60


def plan(
    files: Sequence[str], name: str | None, options: Mapping[str, Any], dataset: str | None = None
) -> Planned:
    """Read files, or a public data set, and say what a run of them would hold; nothing is written.

    Raises UsageError, DiskbookError: see `run.plan`.
    """
    if dataset is None:
        return importer.plan(files, name or runs.new_name("imported"), Settings(**options))
    from diskbook.importing import public

    return public.plan(dataset, name or dataset)


def reading(planned: Planned) -> str:
    """Say how paths were read; empty where they say nothing but what the files are."""
    return "\n".join(map(visible, planned.reading))


def words(planned: Planned) -> str:
    """Say what would be imported: arms in full, their loads, and how often each was measured."""
    entries = planned.entries
    unlike = [flag for flag in planned.flags if repeats.is_first(flag)]
    loads = {entry.workload["name"] for entry in entries}
    lines = [
        *map(visible, planned.reading),
        f"{_counted(len(entries), 'measurement')} would be {_counted(len(planned.arms), 'arm')} x "
        f"{_counted(len(loads), 'load')}:",
        *first([line for arm in planned.arms for line in _of_arm(planned, arm)]),
        *_before_any_number(unlike),
        *listed("know of them", [flag for flag in planned.flags if flag not in unlike]),
        *listed("not used", planned.refused),
        "nothing was written (--dry-run)",
    ]
    return "\n".join(lines)


def _before_any_number(unlike: Sequence[str]) -> list[str]:
    """Remarks to be read first, uncut; only then their heading is imported, and pandas with it."""
    if not unlike:
        return []
    from diskbook.report.show import caveats

    return [f"{caveats.HEAD}:", *(f"  {flag}" for flag in unlike)]


def _of_arm(planned: Planned, arm: str) -> list[str]:
    """An arm with its targets and hosts, and a line for each of its loads."""
    full = planned.manifest["imported"]["arms"][arm]
    where = [", ".join(full[kind]) for kind in ("hosts", "targets") if full[kind]]
    by_load: dict[str, list[Entry]] = {}
    for entry in planned.entries:
        if entry.arm == arm:
            by_load.setdefault(entry.workload["name"], []).append(entry)
    return [
        f"  {arm}: {' '.join(where) or full['words']}",
        *(f"    {load}: {_times(of_cell)}" for load, of_cell in by_load.items()),
    ]


def _times(of_cell: Sequence[Entry]) -> str:
    """How often a cell was measured, e.g. "6 = 1 replicate x 2 blocks x 3 repeats"."""
    blocks: dict[int, set[int]] = {}
    for entry in of_cell:
        blocks.setdefault(entry.replicate, set()).add(entry.block)
    repeats = max(entry.repeat for entry in of_cell)
    parts = ((len(blocks), "replicate"), (max(map(len, blocks.values())), "block"), (repeats, "repeat"))
    return f"{len(of_cell)} = " + " x ".join(_counted(*part) for part in parts)


def _counted(number: int, what: str) -> str:
    return f"{number} {what}{'s' * (number != 1)}"


def first(lines: Sequence[str], most: int = _MOST_LINES) -> list[str]:
    """Return the first lines, and how many more there are."""
    more = [f"  and {len(lines) - most} more"] if len(lines) > most else []
    return [*lines[:most], *more]


def listed(head: str, sentences: Sequence[str], most: int = _MOST_LINES) -> list[str]:
    """List sentences below a heading; nothing where there are none."""
    return [f"{head}:", *first([f"  {sentence}" for sentence in sentences], most)] if sentences else []
