"""Batches for tests: items of a small scenario, and an engine that plays runs and the folders they leave."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from diskbook.batch.batch_run import Asked, Item, item_of
from diskbook.batch.engine import Ending
from diskbook.batch.price import Price
from diskbook.batch.run_lookup import Here
from diskbook.batch.status import Standing, State
from diskbook.results.run import Run
from support import SCENARIOS

TINY = str(SCENARIOS / "tiny.toml")


def an_item(cloud: str = "emulator", scenario: str = TINY, **settings: Any) -> Item:
    """A run of the small scenario; settings have `__` for their points."""
    dotted = {key.replace("__", "."): value for key, value in settings.items()}
    return item_of(
        Asked(scenario, cloud=cloud, settings=dotted), " ".join(f"{k}={v}" for k, v in dotted.items())
    )


def items(number: int, **more: Any) -> list[Item]:
    """Different runs of it."""
    return [an_item(design__seed=seed, **more) for seed in range(1, number + 1)]


class PlayedTask:
    """A run that ends at the look after its start, or when it is stopped."""

    def __init__(self, engine: Played, item: Item) -> None:
        self.item, self._engine, self._looks, self._is_stopped = item, engine, 0, False

    def ending(self) -> Ending | None:
        self._looks += 1
        if self._is_stopped:
            return self._engine.end(self.item, Ending(143, "stopped by SIGTERM"))
        return self._engine.end(self.item, self._engine.ending_of(self.item)) if self._looks > 1 else None

    def stop(self) -> None:
        self._is_stopped = True
        self._engine.stops.append(self.item.name)


class Looks:
    """A shelf that says of each run what a test says."""

    def __init__(self, look: Callable[[Item], Standing]) -> None:
        self.look = look

    def run_of(self, item: Item) -> Run:
        return Here().run_of(item)


class Played(Here):
    """An engine whose runs end as a test says, and the folders that these would leave."""

    most_kills, waits = 2, False

    def __init__(
        self,
        endings: Callable[[Item, int], Ending] = lambda item, times: Ending(0),
        room: int = 2,
        spent: float = 1.0,
        created: bool = True,
    ) -> None:
        self.lanes, self._endings, self._spent, self._created = room, endings, spent, created
        self.starts: list[tuple[str, float | None]] = []
        self.stops: list[str] = []
        self.states: dict[str, Standing] = {}
        self.running = 0
        self.most = 0

    def has_room(self, item: Item) -> bool:
        return self.running < self.lanes

    def start(self, item: Item, limit_usd: float | None) -> PlayedTask:
        self.starts.append((item.name, limit_usd))
        self.running += 1
        self.most = max(self.most, self.running)
        return PlayedTask(self, item)

    def ending_of(self, item: Item) -> Ending:
        return self._endings(item, [name for name, _ in self.starts].count(item.name))

    def end(self, item: Item, ending: Ending) -> Ending:
        self.running -= 1
        state = State.FINISHED if ending.status == 0 else State.CUT if self._created else State.NEW
        self.states[item.name] = Standing(state, 0, self._spent, self._created)
        return ending

    def look(self, item: Item) -> Standing:
        return self.states.get(item.name, Standing(State.NEW, 1))


def priced(usd: float = 2.0, each: Mapping[str, float] | None = None) -> Callable[[Item, Standing], Price]:
    """Prices of runs that have not finished."""

    def price(item: Item, standing: Standing) -> Price:
        cost = 0.0 if standing.state == State.FINISHED else (each or {}).get(item.name, usd)
        return Price(cost / 1.5, cost, 10.0)

    return price
