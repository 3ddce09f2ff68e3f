"""Repeats of an import: which are replicates, blocks and repeats of a block, and whether they agree.

Other hosts or disks are replicates; the same disk at another time is another block; several measurements of
a cell in one of several sessions are repeats, whose mean is one number. Blocks of two arms are of one
session, never the k-th file of one and the k-th of the other, however far apart.
"""

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime
from itertools import pairwise

from diskbook.facts.units import utc_text
from diskbook.importing import agreement, layout
from diskbook.importing.pairing import Entry
from diskbook.tools.record import Measurement

UNLIKE = "results of this cell differ by more than their own spread explains"
_MOST_NAMED = 4


def is_first(flag: str) -> bool:
    """Whether a flag is to be read before any number: repeats that do not agree."""
    return flag.startswith(UNLIKE)


def assign(entries: Sequence[Entry]) -> tuple[str, ...]:
    """Give every entry, whose arm and workload are named, its replicate, block and repeat.

    Entries are in order of their files' names. Returns a sentence for each thing that a reader must know.
    """
    times = [_began(entry) for entry in entries]
    begins = [time for time in times if time is not None]
    sentences, on_word = _replicates(entries)
    if len(begins) == len(entries):
        return (*sentences, *_in_time(entries, begins, on_word))
    names = _named_blocks(entries) or _shared_names(entries)
    _by_name(entries, sorted(names, key=layout.natural))
    if max(map(len, _cells(entries).values()), default=0) > 1:
        how = "those of one name" if names else "the first of every cell, the second and so on"
        sentences.append(
            f"when repeats were measured is not told everywhere: {how} make a block; "
            "whether any ran at the same time, as clients of one trial, is not told either"
        )
    return tuple(sentences)


def add_flags(entries: Iterable[Entry], sentences: Sequence[str]) -> None:
    """Add sentences to the flags of every result."""
    for entry in entries:
        flags = (*entry.measurement.flags, *sentences)
        entry.measurement = replace(entry.measurement, flags=flags) if sentences else entry.measurement


def drop_doubles(entries: list[Entry], refused: list[str]) -> None:
    """Take out a measurement of which another file tells more in another format, as XML beside text."""
    places: dict[tuple[object, ...], int] = {}
    kept: list[Entry] = []
    for entry in entries:
        parts = entry.measurement.directions.items()
        ios = tuple(sorted((name, part.ios, round(part.iops)) for name, part in parts))
        place = places.setdefault((entry.arm, entry.workload["name"], ios), len(kept))
        other = kept[place] if place < len(kept) else entry
        if other is entry or other.format == entry.format or not all(part.ios > 0 for _, part in parts):
            kept.append(entry)
            continue
        is_better = _told(entry.measurement) > _told(other.measurement)
        kept[place], left = (entry, other) if is_better else (other, entry)
        shown, before = left.source.shown, kept[place].source.shown
        refused.append(f"{shown}: the same measurement as in {before}, in another format: it counts once")
    entries[:] = kept


def _told(measurement: Measurement) -> int:
    """How many kinds of facts a measurement has besides its totals."""
    parts = measurement.directions.values()
    bins = [fact for part in parts for fact in (part.bins, part.percentiles_ms)]
    return sum(map(bool, (measurement.series, measurement.options, *bins)))


def flag_unlike(entries: Iterable[Entry]) -> None:
    """Add a flag to every result of a cell whose results differ by more than their own spread explains."""
    for of_cell in _cells(entries).values():
        if sentence := _unlike(of_cell):
            add_flags(of_cell, [f"{UNLIKE}: {sentence}"])


def _unlike(of_cell: Sequence[Entry]) -> str:
    """How far results of a cell lie apart, by rate or else by latency; empty where they agree."""
    if len(of_cell) < 2:
        return ""
    cell = f"{of_cell[0].arm}, {of_cell[0].workload['name']}"
    rates = [_rate(entry) for entry in of_cell]
    errors = [_error(entry) for entry in of_cell]
    remedy = "look whether they are of one disk and load (--layout, --arms-by tell what is apart)"
    if agreement.disagree(rates, errors):
        return f"{cell}: {_span(rates, ',.0f')} IOPS in {len(rates)} results; {remedy}"
    latencies = [_latency(entry) for entry in of_cell]
    if agreement.disagree(latencies, errors):
        return f"{cell}: {_span(latencies, '.3g')} ms in {len(latencies)} results; {remedy}"
    return ""


def _span(values: Sequence[float], digits: str) -> str:
    known = [value for value in values if value > 0]
    return f"{min(known):{digits}} to {max(known):{digits}}"


def _rate(entry: Entry) -> float:
    return sum(part.iops for name, part in entry.measurement.directions.items() if name != "sync")


def _latency(entry: Entry) -> float:
    """Mean over reads and writes, by their number."""
    parts = [part for name, part in entry.measurement.directions.items() if name != "sync" and part.iops > 0]
    total = sum(part.iops for part in parts)
    return sum(part.iops * part.lat_mean_ms for part in parts) / total if total else math.nan


def _error(entry: Entry) -> float:
    """Relative standard error of the rate from the trial's series; NaN where it has none."""
    errors = [agreement.relative_error(part.iops) for part in entry.measurement.series.values()]
    return max((error for error in errors if not math.isnan(error)), default=math.nan)


def _cells(entries: Iterable[Entry]) -> dict[tuple[str, str], list[Entry]]:
    cells: dict[tuple[str, str], list[Entry]] = {}
    for entry in entries:
        cells.setdefault((entry.arm, entry.workload["name"]), []).append(entry)
    return cells


def _named(entries: Iterable[Entry]) -> bool:
    """Whether the user named several replicates."""
    return len({entry.meaning.replicate for entry in entries}) > 1


def _replicates(entries: Sequence[Entry]) -> tuple[list[str], bool]:
    """Number replicates, as named or by machine and disk; say so, and whether names alone tell them."""
    if not _named(entries):
        return _by_thing(entries), False
    hosts = {_host(entry) for entry in entries}
    things = {(entry.arm, entry.meaning.replicate): _thing(entry) for entry in entries}
    is_one = all(
        len({thing for (name, _), thing in things.items() if name == arm}) == 1
        for arm in {arm for arm, _ in things}
    )
    if is_one and "" not in hosts:
        for entry in entries:
            entry.meaning = replace(entry.meaning, replicate="", session=_joined(entry))
        where = ", ".join(sorted(hosts))
        return [f"what --layout calls replicates is one machine and disk ({where}): blocks"], False
    order = sorted({entry.meaning.replicate for entry in entries}, key=layout.natural)
    numbers = {name: number for number, name in enumerate(order, 1)}
    for entry in entries:
        entry.replicate = numbers[entry.meaning.replicate]
    unknown = " (the files do not tell machines apart)" if is_one else ""
    return [f"{len(order)} replicates, as --layout names them{unknown}"], is_one


def _joined(entry: Entry) -> str:
    return "/".join(filter(None, (entry.meaning.replicate, entry.meaning.session)))


def _by_thing(entries: Sequence[Entry]) -> list[str]:
    """Make the machines, or disks, that one cell has several of, its replicates; the user pooled them."""
    several = {
        cell: sorted({_thing(entry) for entry in of_cell} - {""}, key=layout.natural)
        for cell, of_cell in _cells(entries).items()
    }
    if all(len(things) < 2 for things in several.values()):
        return []
    shared = set.intersection(*(set(things) for things in several.values() if len(things) > 1))
    every = sorted({thing for things in several.values() for thing in things}, key=layout.natural)
    for (arm, load), of_cell in _cells(entries).items():
        order = every if shared else several[arm, load]
        for entry in of_cell:
            entry.replicate = order.index(_thing(entry)) + 1 if _thing(entry) else 1
    arms = sorted({arm for (arm, _), things in several.items() if len(things) > 1})
    most = max(map(len, several.values()))
    return [f"{', '.join(arms)}: up to {most} machines or disks in one arm, taken for its replicates"]


def _thing(entry: Entry) -> str:
    """Machine and disk of an entry: its host where one is told, and its target."""
    return f"{_host(entry)} {entry.measurement.target}".strip()


def _host(entry: Entry) -> str:
    host = entry.measurement.host
    return "" if host in ("localhost", "127.0.0.1", "::1") else host


def _began(entry: Entry) -> float | None:
    """When it was measured, as its tool or a date in its path says, in seconds; None where neither does.

    A table that names the blocks needs no times for them.
    """
    if entry.columns and entry.meaning.session:
        return None
    if entry.measurement.started_utc:
        try:
            return datetime.fromisoformat(entry.measurement.started_utc).timestamp()
        except (ValueError, OverflowError, OSError):
            return None
    return layout.second_of(entry.meaning.session) if entry.meaning.session else None


def _in_time(entries: Sequence[Entry], begins: Sequence[float], on_word: bool) -> list[str]:
    """Make sessions the blocks, and what was measured again in one of several, repeats.

    Replicates have blocks of their own; where nothing but a name says that they are some, and they lie in
    clusters, the clusters are the replicates.
    """
    order = sorted(range(len(entries)), key=begins.__getitem__)
    entries, begins = [entries[place] for place in order], [begins[place] for place in order]
    ends = [begin + _lasted_s(entry) for entry, begin in zip(entries, begins, strict=True)]
    numbers = _dated(entries) or agreement.sessions(begins, ends).tolist()
    days = _days(numbers, begins)
    if len(days) < 2:
        _by_name(entries, _shared_names(entries))
        return []
    if on_word and _most(entries, numbers) > 1 and not _overlap(entries, begins, ends):
        return _clusters_as_replicates(entries, numbers, days)
    for entry, number in zip(entries, numbers, strict=True):
        entry.block = number + 1
    if apart := _apart(entries, days):
        return apart
    again = _number_repeats(entries)
    return [*([_clustered(again, days)] if again > 1 else []), *_alone(entries)]


def _overlap(entries: Sequence[Entry], begins: Sequence[float], ends: Sequence[float]) -> bool:
    """Whether replicates were measured at the same time, and so are not one disk again; in order of time."""
    timed = zip(entries, begins, ends, strict=True)
    return any(
        begin < end and earlier.replicate != later.replicate
        for (earlier, _, end), (later, begin, _) in pairwise(timed)
    )


def _dated(entries: Sequence[Entry]) -> list[int]:
    """Number of each result's session, by folders that are named by date; none where not all are.

    A date is a session where several arms have it, or there is one arm; else a day is.
    """
    folders = ["/".join(part for part in entry.source.place if layout.second_of(part)) for entry in entries]
    arms: dict[str, set[str]] = {}
    for entry, folder in zip(entries, folders, strict=True):
        arms.setdefault(folder, set()).add(entry.arm)
    if "" in arms or len(arms) < 2:
        return []
    if max(map(len, arms.values())) == 1 < len(set().union(*arms.values())):
        folders = [str((layout.second_of(folder) or 0.0) // 86400) for folder in folders]
    order = {folder: number for number, folder in enumerate(dict.fromkeys(folders))}
    return [order[folder] for folder in folders]


def _alone(entries: Sequence[Entry]) -> list[str]:
    """Say which arms share no session with any other, so that nothing pairs them."""
    arms = _arms_of_blocks(entries)
    others = {name for names in arms.values() if len(names) > 1 for name in names}
    alone = sorted({entry.arm for entry in entries} - others) if others else []
    return (
        [f"{', '.join(alone)}: measured in no session with another arm, so without a ratio"] if alone else []
    )


def _arms_of_blocks(entries: Iterable[Entry]) -> dict[int, set[str]]:
    arms: dict[int, set[str]] = {}
    for entry in entries:
        arms.setdefault(entry.block, set()).add(entry.arm)
    return arms


def _most(entries: Sequence[Entry], numbers: Sequence[int]) -> int:
    """Measurements of a cell in one session, at most."""
    pairs = zip(entries, numbers, strict=True)
    counts = Counter((entry.arm, entry.workload["name"], number) for entry, number in pairs)
    return max(counts.values(), default=0)


def _clusters_as_replicates(
    entries: Sequence[Entry], numbers: Sequence[int], days: Sequence[str]
) -> list[str]:
    """Make clusters the replicates, and what a cell has several times in one, its blocks."""
    for entry, number in zip(entries, numbers, strict=True):
        entry.replicate = number + 1
    _by_name(entries, [])
    return [_clustered(max(entry.block for entry in entries), days, "replicate")]


def _days(numbers: Sequence[int], begins: Sequence[float]) -> list[str]:
    """When each session began, in words; trials in order of time."""
    first: dict[int, float] = {}
    for number, begin in zip(numbers, begins, strict=True):
        first.setdefault(number, begin)
    return [utc_text(begin, "minutes")[:16].replace("T", " ") for begin in first.values()]


def _clustered(most: int, days: Sequence[str], unit: str = "block") -> str:
    """Say that repeats lie in sessions, which are the units then."""
    return (
        f"repeats lie in {len(days)} sessions ({_listed(days)}), up to {most} of a cell in one: an interval "
        f"over all would be too narrow, so each session counts as one {unit}, by the mean of its repeats"
    )


def _apart(entries: Sequence[Entry], days: Sequence[str]) -> list[str]:
    """Where no session has two arms: one block, whose ratio has no interval; said."""
    arms = _arms_of_blocks(entries)
    if len({entry.arm for entry in entries}) < 2 or any(len(names) > 1 for names in arms.values()):
        return []
    for entry in entries:
        entry.block = 1
    _number_repeats(entries)
    by_replicate = max(entry.replicate for entry in entries) > 1
    return [
        f"no two arms were measured in one session ({_listed(days)}): nothing pairs their repeats, so "
        f"their ratio is that of their means{', by replicate' if by_replicate else ', without an interval'}"
    ]


def _number_repeats(entries: Sequence[Entry]) -> int:
    """Number what a cell has several times in one block; return the most."""
    counts: Counter[tuple[str, str, int, int]] = Counter()
    for entry in entries:
        key = entry.arm, entry.workload["name"], entry.replicate, entry.block
        counts[key] += 1
        entry.repeat = counts[key]
    return max(counts.values(), default=0)


def _by_name(entries: Sequence[Entry], names: Sequence[str]) -> None:
    """Blocks by these names of sessions; without any the first of a cell, the second, and so on."""
    if names:
        numbers = {name: number for number, name in enumerate(names, 1)}
        for entry in entries:
            entry.block = numbers[entry.meaning.session]
        _number_repeats(entries)
        return
    counts: Counter[tuple[str, str, int]] = Counter()
    for entry in entries:
        key = entry.arm, entry.workload["name"], entry.replicate
        counts[key] += 1
        entry.block = counts[key]


def _shared_names(entries: Sequence[Entry]) -> list[str]:
    """Names of sessions, in the order met, where there are several and every arm has them all; else none."""
    by_arm: dict[str, set[str]] = {}
    for entry in entries:
        by_arm.setdefault(entry.arm, set()).add(entry.meaning.session)
    kinds = list(by_arm.values())
    if not kinds or len(kinds[0]) < 2 or "" in kinds[0] or any(names != kinds[0] for names in kinds):
        return []
    return list(dict.fromkeys(entry.meaning.session for entry in entries))


def _named_blocks(entries: Sequence[Entry]) -> list[str]:
    """Blocks as a column of a table names them for every row; else none."""
    names = dict.fromkeys(entry.meaning.session for entry in entries if entry.columns)
    return list(names) if "" not in names else []


def _lasted_s(entry: Entry) -> float:
    return float(entry.workload.get("ramp_s", 0.0)) + float(entry.workload.get("runtime_s", 0.0))


def _listed(days: Sequence[str]) -> str:
    more = f" and {len(days) - _MOST_NAMED} more" if len(days) > _MOST_NAMED else ""
    return ", ".join(days[:_MOST_NAMED]) + more
