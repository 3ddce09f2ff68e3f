"""Which failures of a run will repeat, and in which other runs."""

import re
from dataclasses import dataclass, field

from diskbook.batch.batch_run import Item

Scope = tuple[str, ...]


@dataclass(frozen=True)
class Failure:
    """Why a run failed, in its own sentence, and whether anything had been created by then."""

    item: Item
    sentence: str
    created: bool


@dataclass
class Reasons:
    """Failures so far, and the runs that these speak for.

    - Where nothing could be created (nobody is signed in, a size, a quota or a program is missing), runs on
      the same cloud, in the same region, with the same machines and disks meet the same.
    - Where two runs failed in the same words, numbers and their own names apart, so will others: on the same
      cloud where nothing could be created, else of the same scenario there.
    """

    _scopes: dict[Scope, Failure] = field(default_factory=dict)
    _seen: set[Scope] = field(default_factory=set)

    def add(self, failure: Failure) -> None:
        item = failure.item
        if not failure.created:
            self._scopes.setdefault(_setting(item), failure)
        wide = _wide(item, failure.created)
        words = (*wide, masked(failure.sentence, item.name))
        if words in self._seen:
            self._scopes.setdefault(wide, failure)
        self._seen.add(words)

    def against(self, item: Item) -> Failure | None:
        """The failure that a run which has not started would repeat, if any."""
        if not self._scopes:  # of thousands of waiting runs each is asked about at each look
            return None
        for scope in (_setting(item), _wide(item, True), _wide(item, False)):
            if scope in self._scopes:
                return self._scopes[scope]
        return None


def masked(sentence: str, name: str) -> str:
    """A failure's sentence without what differs from run to run: its name, ids and numbers."""
    return re.sub(r"\b[0-9a-f]{8,}\b|\d+(\.\d+)?", "#", sentence.replace(name, "RUN"))


def _setting(item: Item) -> Scope:
    """What is asked of a cloud: where, and which machines and disks."""
    scenario = item.scenario
    parts = scenario.model_dump_json(include={"machine", "disk", "network", "azure"})
    return ("setting", item.cloud, scenario.region, item.asked.emulator_profile or "", parts)


def _wide(item: Item, created: bool) -> Scope:
    return ("scenario", item.cloud, item.scenario.name) if created else ("cloud", item.cloud)
