"""Words of loads that read alike, told apart by what differs: threads, part of the disk, or their names."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from diskbook.design.model import Workload

_FACTS: tuple[Callable[[Workload], str], ...] = (
    lambda item: f"{item.threads} thread{'s' * (item.threads > 1)}",
    lambda item: f"of {_size(item.working_set_gib)}",
    lambda item: f"region {item.region}",
    lambda item: f"{item.data} data",
    lambda item: item.ioengine,
    lambda item: f"cache {item.cache_state}",
)


def apart(words: Mapping[str, str], loads: Sequence[Workload]) -> dict[str, str]:
    """Add to words that several loads share what tells these apart; where no fact does, their names.

    Parameters
    ----------
    words
        Of every load, by its name.
    loads
        All of them.
    """
    alike: dict[str, list[Workload]] = {}
    for item in loads:
        alike.setdefault(words[item.name], []).append(item)
    facts = {item.name: _telling(same, item) for same in alike.values() for item in same if len(same) > 1}
    return {name: _with(text, facts.get(name, ())) for name, text in words.items()}


def _telling(same: Sequence[Workload], item: Workload) -> list[str]:
    """Facts of a load that others of the same words do not share, or its name."""
    different = [fact for fact in _FACTS if len({fact(other) for other in same}) > 1]
    own = [fact(item) for fact in different]
    if sum([fact(other) for fact in different] == own for other in same) > 1:
        own.append(item.name)
    return own


def _with(text: str, facts: Sequence[str]) -> str:
    return ", ".join([text, *filter(None, facts)])


def _size(gib: float) -> str:
    return f"{gib:,.4g} GiB" if gib >= 1 else f"{gib * 1024:.4g} MiB"
