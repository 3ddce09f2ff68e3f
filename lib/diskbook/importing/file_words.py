"""Arms that only the names of files tell: "lrs_1.json" and "zrs_1.json" of one target in one folder."""

import itertools
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from diskbook.importing import layout

_MOST = 6
_PARTS = re.compile(r"[-_. ]+")
_OF_TOOLS = re.compile(
    r"fio|diskspd|results?|out(put)?|logs?|tests?|bench(mark)?|data|report|disk|storage|perf|json|xml|te?xt|csv"
    r"|normal|terse|plus|(?![pes][1-8][05]$)\w?\d*|[0-9a-f]{6,}",  # P30 is a disk's tier
    re.IGNORECASE,
)


_LOADS = ("rand", "random", "seq", "sequential", "bs", "iops", "lat", "qd", "depth", "bw", "load", "mix")


class Place(NamedTuple):
    """Where a result lies: all that tells arms apart without its name; its file's name, and its load."""

    arm: tuple[object, ...]
    name: str
    load: str


def guess(places: Sequence[Place]) -> list[str]:
    """Words of files' names that tell arms apart, "" where there are none.

    Names of loads, dates, numbers of runs and what every result is called are not words. A word tells arms
    apart where results of one place and load differ by it, and it comes again (in another load, or another
    result), or few words do. It then names all results of the place that have it.
    """
    by_arm: dict[tuple[object, ...], list[int]] = {}
    for number, place in enumerate(places):
        by_arm.setdefault(place.arm, []).append(number)
    words = [""] * len(places)
    for same in by_arm.values():
        parts = [words_of(places[number].name) for number in same]
        telling = _telling(parts, [places[number].load for number in same])
        for number, own in zip(same, parts, strict=True):
            words[number] = "-".join(part for part in own if part in telling)
    return words


def _telling(parts: Sequence[tuple[str, ...]], loads: Iterable[str]) -> set[str]:
    """Words that some results of a load have, and others of the same load have not."""
    by_load: dict[str, list[frozenset[str]]] = {}
    for own, load in zip(parts, loads, strict=True):
        by_load.setdefault(load, []).append(frozenset(own))
    telling = set()
    for kinds in by_load.values():
        telling |= set().union(*kinds) - frozenset.intersection(*kinds)
    arms = Counter("-".join(part for part in own if part in telling) for own in parts)
    is_series = len(arms) <= _MOST or min(arms.values()) > 1
    return telling if is_series else {part for part in telling if sum(part in own for own in parts) > 1}


def words_of(name: str) -> tuple[str, ...]:
    """What is left of a file's name without ending, dates, numbers, loads, and what any result is called."""
    parts = _PARTS.split(layout.split_token(layout.without_ending(name))[0])
    return tuple(part for part in parts if part and not _OF_TOOLS.fullmatch(part) and not _is_load(part))


def layout_of(names: Mapping[str, str]) -> str:
    """Pattern of file names that picks the words given of each; "" where none does."""
    marks = sorted({mark for name in names for mark in "-_." if mark in layout.without_ending(name)})
    for before, mark, after in itertools.product(range(4), marks, ("*", "{_}.*")):
        start = f"{{_}}{mark}" * before
        for pattern in (f"{start}{{arm}}{mark}{after}", f"{start}{{arm}}.*"):
            parsed = layout.parse(pattern)
            read = {name: parsed.read((name,), 1) for name in names}
            if all(meaning and meaning.arm == (names[name],) for name, meaning in read.items()):
                return pattern
    return ""


def _is_load(part: str) -> bool:
    return layout.is_load(part) or part.lower() in _LOADS
