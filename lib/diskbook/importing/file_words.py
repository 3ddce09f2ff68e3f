"""Arms that only the names of files tell: "lrs_1.json" and "zrs_1.json" of one target in one folder."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from diskbook.importing import layout

_MOST = 6
_PARTS = re.compile(r"[-_. ]+")
_OF_TOOLS = re.compile(
    r"fio|diskspd|results?|out(put)?|logs?|tests?|bench(mark)?|data|report|disk|storage|perf|json|xml|te?xt|csv"
    r"|normal|terse|plus|\w?\d*|[0-9a-f]{6,}",
    re.IGNORECASE,
)


_LOADS = ("rand", "random", "seq", "sequential", "bs", "iops", "lat", "qd", "depth")


class Place(NamedTuple):
    """Where a result lies: all that tells arms apart without its name; its file's name, and its load."""

    arm: tuple[object, ...]
    name: str
    load: str


def guess(places: Sequence[Place]) -> list[str]:
    """Words of files' names that tell arms apart, "" where they do not.

    They do where results of one place have two to six kinds of words, and each kind was measured with all of
    the loads: names of loads, dates, numbers of runs and what every result is called are no words.

    Parameters
    ----------
    places
        Of every result.
    """
    by_arm: dict[tuple[object, ...], list[int]] = {}
    for number, place in enumerate(places):
        by_arm.setdefault(place.arm, []).append(number)
    words = [words_of(place.name) for place in places]
    for same in by_arm.values():
        if not _tell([words[number] for number in same], [places[number].load for number in same]):
            for number in same:
                words[number] = ""
    return words


def words_of(name: str) -> str:
    """What is left of a file's name without ending, dates, numbers, loads, and what any result is called."""
    parts = _PARTS.split(layout.split_token(layout.without_ending(name))[0])
    return "-".join(part for part in parts if part and not _OF_TOOLS.fullmatch(part) and not _is_load(part))


def _is_load(part: str) -> bool:
    return layout.is_load(part) or part.lower() in (
        "rand",
        "random",
        "seq",
        "sequential",
        "bs",
        "iops",
        "lat",
    )


def _tell(words: Sequence[str], loads: Iterable[str]) -> bool:
    loads_of: dict[str, set[str]] = {}
    for text, load in zip(words, loads, strict=True):
        loads_of.setdefault(text, set()).add(load)
    all_loads = set().union(*loads_of.values())
    return (
        "" not in loads_of and 2 <= len(loads_of) <= _MOST and all(map(all_loads.__eq__, loads_of.values()))
    )
