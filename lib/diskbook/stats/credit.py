"""Burst credit by bookkeeping: what a run itself drew from the buckets of its machines and disks. Pure.

A machine or disk that can burst has two buckets, of I/Os and of bytes. Microsoft's rules ("Managed disk
bursting", 2025-01-14): both start full, and hold 30 minutes at the highest rate; what runs above the base
draws, what runs below it refills; the buckets are independent of each other. All disks of a machine draw from
the machine's own, and a volume draws from those of all that keep its copies. Inferred: a bucket holds
(burst - base) x 30 minutes, as resource SKUs list it for P1.

Not counted, since nothing here knows it: the disk of the operating system, and what came before any trial.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

import numpy as np

from diskbook.design.vocabulary import CreditState
from diskbook.facts.catalog import EPHEMERAL
from diskbook.facts.units import MB, MIB, epoch

BURST_S = 30 * 60
UNITS = ("iops", "mb_s")
LITTLE = 0.01
"""Share of a bucket that counts for nothing: 18 s of burst."""
MATERIAL = 0.05
"""Share of a trial at the burst rate from which on its mean is a mixture of burst and base."""
BEARS = 0.95
"""Share of a base limit from which on its bucket bears on a trial."""

_WORST = (CreditState.FULL, CreditState.PARTIAL, CreditState.EMPTY, CreditState.DRAINED, CreditState.UNKNOWN)

Event = Mapping[str, Any]
Demands = Mapping[str, tuple[float, float, float]]


class Part(NamedTuple):
    """A machine or disk that a load draws on, with bounds of its share of the load."""

    kind: Literal["machines", "disks"]
    name: str
    low: float = 1.0
    high: float = 1.0


Parts = Callable[[Event], Sequence[Part]]


def one_disk(event: Event) -> Sequence[Part]:
    """Parts of an event that concerns one disk: the whole load is its machine's, and its own."""
    return Part("machines", event["machine"]), Part("disks", event["disk"])


@dataclass(frozen=True)
class Credit:
    """Credit at hand in one trial.

    - `state`: what was at hand.
    - `left_share`: least share of any bucket that was left when the trial began; None where it is not known.
    """

    state: CreditState
    left_share: float | None = None


@dataclass
class Bucket:
    """One bucket over time, as bounds, since the rate of some work is not known; starts full.

    `base` and `burst` in I/Os or MB a second; `seconds`: how long it lasts at the burst rate.
    """

    base: float
    burst: float
    seconds: float = BURST_S
    at: float | None = None
    left: list[float] = field(init=False)

    def __post_init__(self) -> None:
        self.left = [self.capacity, self.capacity]

    @property
    def capacity(self) -> float:
        """I/Os or MB of credit when full."""
        return (self.burst - self.base) * self.seconds

    def shares(self) -> tuple[float, float]:
        """Least and greatest share of the bucket that is left."""
        return self.left[0] / self.capacity, self.left[1] / self.capacity

    def idle_until(self, time_s: float) -> None:
        """Refill until then, at the base rate."""
        if self.at is not None and time_s > self.at:
            self.draw(time_s - self.at, 0.0, 0.0)
        self.at = time_s if self.at is None else max(self.at, time_s)

    def draw(self, seconds: float, low: float, high: float) -> None:
        """Work for some time at a rate between these bounds, a second."""
        for position, rate in enumerate((min(high, self.burst), low)):
            left = self.left[position] - (rate - self.base) * seconds
            self.left[position] = min(max(left, 0.0), self.capacity)


@dataclass(frozen=True)
class _Work:
    """What loaded a machine and a disk: when, how long, bounds of the rate in I/Os and MB a second."""

    start_s: float
    seconds: float
    low: tuple[float, float]
    high: tuple[float, float]


def most_drawn(demand: np.ndarray, seconds: np.ndarray, base: float) -> float:
    """Credit that a demand draws at most from a full bucket, in I/Os or MB, if it repeats for ever.

    What a bucket lacks is a walk that never goes below nothing; two rounds of it show its highest point.

    - `demand`, `seconds`: rate and length of each part of the demand.
    - `base`: rate above which it draws and below which it refills. A mean above it draws infinite credit.
    """
    # Sums of products, not dot products: these start threads, which cost more than they save.
    if float((demand * seconds).sum()) > base * float(seconds.sum()) * (1 + 1e-9):
        return float("inf")
    level = np.cumsum(np.tile((demand - base) * seconds, 2))
    return max(0.0, float((level - np.minimum(np.minimum.accumulate(level), 0.0)).max()))


_ANY = (float("inf"), float("inf"))
_NOTHING = (0.0, 0.0)


def trial_credits(
    manifest: Mapping[str, Any], events: Iterable[Event], demands: Demands, parts: Parts = one_disk
) -> dict[str, Credit]:
    """Follow the buckets through a run's ledger.

    - `manifest`, `events`: of the run. Prefills and random passes that lifted no cap, checks and failed
      attempts draw as well.
    - `demands`: of each finished trial: seconds with its ramp, mean IOPS and mean MB/s (10^6 bytes), reads
      and writes added.
    - `parts`: what an event's load draws on: its machine and disk, or those that keep a volume.

    Returns trial name to the credit it had.
    """
    books = _Books(manifest)
    by_trial: dict[str, Credit] = {}
    filled: dict[tuple[int, str], list[tuple[Event, _Work]]] = {}
    for event in events:
        if event["event"] == "trial":
            place = event["replicate"], _target(event)
            for filling, work in filled.pop(place, ()):  # the machine is that of the disk's next trial
                books.work(event["replicate"], parts({**filling, "machine": event["machine"]}), work)
            work = _trial_work(event, demands.get(event["trial"]))
            by_trial[event["trial"]] = books.trial(event["replicate"], parts(event), work)
        elif event["event"] in ("prefill", "overwrite") and not event.get("caps_lifted", True):
            if event.get("volume"):  # which draws on all its nodes, whatever comes next
                books.work(event["replicate"], parts(event), _prefill(event))
            else:
                place = event["replicate"], _target(event)
                filled.setdefault(place, []).append((event, _prefill(event)))
        elif event["event"] == "finding" and event.get("real_s"):
            for machine, disk in books.checked.get(event["name"], ()):
                drawn = one_disk({"machine": machine, "disk": disk})
                books.work(event["replicate"], drawn, _ended(event, _NOTHING, _ANY))
    return by_trial


def _target(event: Event) -> str:
    """Name of what an event filled or measured: a disk, or a volume."""
    return str(event.get("disk") or event.get("volume"))


class _Books:
    """The buckets of all machines and disks of a run."""

    def __init__(self, manifest: Mapping[str, Any]) -> None:
        scenario = manifest["scenario"]
        disks = scenario.get("disk", ())
        self.checked = {
            item["name"]: [(machine, item["disk"]) for machine in (item.get("from_machine"), item["machine"])]
            for item in scenario.get("check", ())
            if item.get("from_machine")
        }
        # An ephemeral OS disk is limited with the host cache, and draws on none of these buckets.
        self._local = {item["name"] for item in disks if item.get("sku") == EPHEMERAL}
        self._cached = {item["name"] for item in disks if item.get("cache", "None") != "None"}
        on_demand = {item["name"] for item in disks if item.get("bursting")}  # without limit, and billed
        lasts_s = _lasts_s(manifest)
        self._buckets: dict[tuple[int, str, str], list[Bucket | None]] = {}
        for row in manifest["replicates"]:
            for kind in ("machines", "disks"):
                for name, item in row[kind].items():
                    if kind == "machines" or name not in on_demand:
                        self._buckets[row["replicate"], kind, name] = _buckets(item["limits"], lasts_s)
        self._unknown = {
            (row["replicate"], kind, name)
            for row in manifest["replicates"]
            for kind in ("machines", "disks")
            for name, item in row[kind].items()
            if _is_unknown(item["limits"])
        }

    def _of(self, replicate: int, parts: Sequence[Part]) -> list[tuple[Part, int, Bucket]]:
        """Buckets that a load on these parts draws from, each with the position of its unit."""
        local = any(part.kind == "disks" and part.name in self._local for part in parts)
        return [
            (part, unit, bucket)
            for part in (() if local else parts)
            for unit, bucket in enumerate(self._buckets.get((replicate, part.kind, part.name), ()))
            if bucket is not None
        ]

    def work(self, replicate: int, parts: Sequence[Part], work: _Work) -> None:
        """Draw from all buckets that a load on these parts draws from."""
        cached = any(part.kind == "disks" and part.name in self._cached for part in parts)
        for part, unit, bucket in self._of(replicate, parts):
            bucket.idle_until(work.start_s)
            # What a host cache answers is counted elsewhere, and how much that is, is not known.
            low = 0.0 if cached else part.low * work.low[unit]
            bucket.draw(work.seconds, low, part.high * work.high[unit])
            bucket.at = work.start_s + work.seconds

    def trial(self, replicate: int, parts: Sequence[Part], work: _Work) -> Credit:
        """Draw for a trial, and say what credit it had."""
        buckets = self._of(replicate, parts)
        local = any(part.kind == "disks" and part.name in self._local for part in parts)
        places = set() if local else {(replicate, part.kind, part.name) for part in parts}
        for _, _, bucket in buckets:
            bucket.idle_until(work.start_s)
        before = [bucket.shares() for _, _, bucket in buckets]
        self.work(replicate, parts, work)
        if places & self._unknown:
            return Credit(CreditState.UNKNOWN)
        bearing = [part.high * work.high[unit] >= BEARS * bucket.base for part, unit, bucket in buckets]
        states = [
            (_state(start, bucket.shares(), work.seconds / bucket.seconds), start[0])
            for start, (_, _, bucket), bears in zip(before, buckets, bearing, strict=True)
            if bears or not any(bearing)
        ]
        if not states:
            return Credit(CreditState.NONE)
        return Credit(max((state for state, _ in states), key=_WORST.index), min(left for _, left in states))


def _lasts_s(manifest: Mapping[str, Any]) -> float:
    """How long a burst lasts: Azure's 30 minutes, or the share of them that an emulated run plays."""
    question = manifest["scenario"].get("scenario", {})
    emulated = manifest.get("cloud") == "emulator"
    return BURST_S * (float(question.get("emulated_credit_scale", 1.0)) if emulated else 1.0)


def _buckets(limits: Mapping[str, Any], lasts_s: float) -> list[Bucket | None]:
    pairs = [(limits.get(unit), limits.get(f"burst_{unit}")) for unit in UNITS]
    return [
        Bucket(base, burst, lasts_s) if base and burst and burst > base else None for base, burst in pairs
    ]


def _is_unknown(limits: Mapping[str, Any]) -> bool:
    """A burst limit without its base: the bucket's size is not known."""
    return any(limits.get(f"burst_{unit}") and not limits.get(unit) for unit in UNITS)


def _state(before: tuple[float, float], after: tuple[float, float], share: float) -> CreditState:
    """State from the shares before and after a trial; unknown where the bounds disagree whether it lasted."""
    low, high = (_state_of(start, end, share) for start, end in zip(before, after, strict=True))
    return (
        low if low == high or {low, high} == {CreditState.FULL, CreditState.PARTIAL} else CreditState.UNKNOWN
    )


def _state_of(start: float, end: float, needed: float) -> CreditState:
    """State from exact shares; `needed` is what the burst rate throughout would have drawn."""
    if end > LITTLE:
        return CreditState.FULL if start >= 1 - LITTLE else CreditState.PARTIAL
    return CreditState.DRAINED if start - end > MATERIAL * needed else CreditState.EMPTY


def _trial_work(event: Event, demand: tuple[float, float, float] | None) -> _Work:
    start_s = epoch(event["started_utc"])
    if demand is not None:
        seconds, *rate = demand
        return _Work(start_s, seconds, (rate[0], rate[1]), (rate[0], rate[1]))
    return _Work(start_s, max(0.0, epoch(event["ended_utc"]) - start_s), _NOTHING, _ANY)


def _prefill(event: Event) -> _Work:
    """Written in blocks of 1 MiB (`tools.protocol.FILL_BLOCK_BYTES`), at random in the named ones."""
    seconds = max(float(event["real_s"]), 1e-3)
    rate = event["bytes"] / event.get("block_bytes", MIB) / seconds, event["bytes"] / MB / seconds
    return _ended(event, rate, rate)


def _ended(event: Event, low: tuple[float, float], high: tuple[float, float]) -> _Work:
    """Work whose event was written when it had ended."""
    seconds = float(event["real_s"])
    return _Work(epoch(event["time_utc"]) - seconds, seconds, low, high)
