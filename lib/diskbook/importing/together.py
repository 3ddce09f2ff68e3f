"""What ran at the same time on one target is one trial of many clients, as a sweep of a fleet is."""

import re
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from diskbook.importing import fleets, kubestr, loads
from diskbook.importing.pairing import Entry

_SHARE = 0.5
"""Part of the shorter of two trials in which both ran, above which they ran at the same time."""
_CLIENTS = 3
"""Folders of one stem from which they are taken for clients, not arms."""
_ID = re.compile(
    r"(?:[-_.]?\d{1,6}|[-_.](?:[a-z]|(?=[a-z]*\d)[a-z0-9]{4,10}|[bcdfghjklmnpqrstvwxz2-9]{5}))$", re.I
)
_ALL_ID = re.compile(r"(?=.*\d[a-z])[a-z0-9]{4,10}", re.IGNORECASE)


def name_clients(entries: Sequence[Entry]) -> None:
    """Take folders of clients for no arms: those of one stem, or of one storage class, that ran together."""
    groups: dict[tuple[object, ...], list[Entry]] = {}
    for entry in entries:
        arm, target = entry.meaning.arm, entry.measurement.target
        shared = entry.format == kubestr.FORMAT or "://" in target
        stem = "" if shared or not arm else _stem(arm[-1])
        if arm and not entry.measurement.host and stem != arm[-1]:
            key = (*arm[:-1], stem, target, entry.tool, *sorted(map(str, entry.workload.items())))
            groups.setdefault(key, []).append(entry)
    for of_stem in groups.values():
        for same in _at_once(of_stem):
            if len({entry.meaning.arm for entry in same}) >= _CLIENTS:
                for entry in same:
                    first, last = entry.meaning.arm[:-1], _stem(entry.meaning.arm[-1])
                    is_part = last and last != entry.meaning.arm[-1]
                    entry.meaning = replace(entry.meaning, arm=(*first, last) if is_part else first)


def _stem(word: str) -> str:
    """Take the number or the made-up letters of a client from its name; nothing is left where it is one."""
    return "" if _ALL_ID.fullmatch(word) else _ID.sub("", word)


def join_clients(entries: list[Entry]) -> None:
    """Make one trial of results of one arm, load and target that ran at the same time, in several files."""
    cells: dict[tuple[object, ...], list[Entry]] = {}
    for entry in entries:
        measurement = entry.measurement
        if not entry.meaning.replicate and not measurement.instances and entry.part is not None:
            key = (entry.arm, measurement.target, measurement.host, entry.tool, entry.workload["name"])
            cells.setdefault(key, []).append(entry)
    for of_cell in cells.values():
        for same in _at_once(of_cell):
            if len({entry.source.path for entry in same}) == len(same) > 1:
                _join(same, entries)


def _join(same: Sequence[Entry], entries: list[Entry]) -> None:
    first = same[0]
    clients = {entry.source.shown: entry for entry in same}
    first.machines = {name: entry.source for name, entry in clients.items()}
    first.parts = {name: entry.part or 0 for name, entry in clients.items()}
    measured = {name: entry.measurement for name, entry in clients.items()}
    first.measurement, first.part, first.logs = fleets.together(measured, first.measurement.name), None, {}
    first.workload, _ = loads.workload(first.measurement, first.tool)
    left = {id(entry) for entry in same[1:]}
    entries[:] = [entry for entry in entries if id(entry) not in left]


def across(entries: Sequence[Entry]) -> list[str]:
    """Say which arms were measured at the same time, so that they may be clients of one disk."""
    by_load: dict[tuple[str, str], list[Entry]] = {}
    for entry in entries:
        if not entry.measurement.host:
            by_load.setdefault((entry.workload["name"], entry.measurement.target), []).append(entry)
    arms = {
        tuple(sorted({entry.arm for entry in same}))
        for of_load in by_load.values()
        for same in _at_once(of_load)
    }
    return [
        f"{', '.join(names)}: measured at the same time; where they share a disk or a storage class they are "
        "clients of one trial, and no arms (--layout with {_} for their folder joins them)"
        for names in sorted(arms)
        if len(names) > 1
    ]


def _at_once(entries: Sequence[Entry]) -> list[list[Entry]]:
    """Groups of results each of which ran at the same time as the first of its group; unknown times alone."""
    timed = sorted(((_began(entry), entry) for entry in entries if _began(entry)), key=lambda pair: pair[0])
    groups: list[list[Entry]] = []
    end = 0.0
    for begin, entry in timed:
        took = max(entry.measurement.runtime_ms / 1000, 1.0)
        if groups and end - begin > _SHARE * min(took, groups[-1][0].measurement.runtime_ms / 1000):
            groups[-1].append(entry)
        else:
            groups.append([entry])
            end = begin + took
    return groups


def _began(entry: Entry) -> float:
    """When it began, in seconds since 1970; 0 where that is not told."""
    try:
        return datetime.fromisoformat(entry.measurement.started_utc or "").timestamp()
    except (ValueError, OverflowError, OSError):
        return 0.0
