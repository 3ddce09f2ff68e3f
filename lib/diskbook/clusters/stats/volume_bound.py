"""The most that a volume can do, by the limits of all that keep its copies: disks, machines, networks. Pure.

A volume's rate X is bound by every resource: X <= limit / D, where D is what an I/O of the volume asks of it
on average, and by the loop that drives it: X <= N / L with N in flight and L the latency of one that does not
wait (the asymptotic bounds of operational analysis; Denning and Buzen, "The Operational Analysis of Queueing
Network Models", 1978). With w the share of writes, k copies, n nodes of d disks and l the share of reads that
the owning node answers, D is wk/(nd) + (1-w)l/d at a disk of that node, and wk/(nd) + (1-w)(1-l)/((n-1)d) at
one of another; d times as much at its machine, and as many bytes as I/Os of the block size.

A small random write to parity, in place, reads old data and old parity and writes both, on each of two nodes:
8 I/Os ("Nested resiliency for Storage Spaces Direct": parity inside a server, mirrored between both).
Inferred: that nested copies go to the other node one by one, and that data spread evenly over all disks.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pandas as pd

from diskbook.clusters.design.volume_rules import COPIES
from diskbook.design.model import VolumeKind
from diskbook.facts.nan_equal import NanEqual
from diskbook.facts.units import KIB, MB
from diskbook.stats.credit import BURST_S
from diskbook.stats.limits import LIMITS, Limit

IOS_A_WRITE: Mapping[str, int] = {**COPIES, "nested-parity": 8}
"""I/Os of all disks together that a small write takes: its copies; of parity, reads and writes in place."""
_PARITY_SENT = 1
"""Copies of the data that a parity write sends to the other node at least."""


@dataclass(frozen=True)
class Shape:
    """A volume and its pool: `kind`, `columns` and `interleave_kib`, on `nodes` of `disks` each."""

    kind: VolumeKind
    disks: int
    columns: int
    nodes: int = 1
    interleave_kib: int = 256

    def pieces(self, block_bytes: float) -> int:
        """I/Os that a copy of one block takes: a block longer than the interleave meets several columns."""
        return max(1, min(self.columns, math.ceil(block_bytes / (self.interleave_kib * KIB))))


@dataclass(frozen=True)
class Rates:
    """Limits of one disk or machine, as a manifest has them; None where none is known."""

    iops: float | None = None
    mb_s: float | None = None
    burst_iops: float | None = None
    burst_mb_s: float | None = None


@dataclass(frozen=True)
class Setup:
    """A volume with the limits of one disk and one machine of its pool, all alike.

    - `shape`, `disk`, `vm`: the volume; limits of each disk, and uncached ones of each machine.
    - `nic_out_mb_s`, `nic_in_mb_s`: what a machine's network sends and receives, where it is known.
    - `local_share`: share of reads that the owning node answers from its own disks; None: all nodes alike,
      which gives the highest bound.
    - `remote`: whether the load runs on another node than the owner, to which its data then go first.
    - `volumes`: how many volumes share the load evenly, each owned by another node in turn: all bounds are of
      them together.
    """

    shape: Shape
    disk: Rates
    vm: Rates
    nic_out_mb_s: float | None = None
    nic_in_mb_s: float | None = None
    local_share: float | None = None
    remote: bool = False
    volumes: int = 1


@dataclass(frozen=True)
class Load:
    """What is asked of a volume: I/Os of a size, a share of which are writes, and how many are in flight."""

    block_bytes: float
    write_share: float
    outstanding: int | None = None


@dataclass(frozen=True, eq=False)
class Bound(NanEqual):
    """The lowest limit of a volume under a load: `iops`, and what sets them.

    `limit` is None where the I/Os in flight bind before any limit; `value` is the limit in its own unit, as a
    rate of the volume. `others` are limits of the same rate.
    """

    iops: float
    limit: Limit | None = None
    value: float = math.nan
    others: tuple[Limit, ...] = ()

    @property
    def binds(self) -> Literal["burst", "base", "concurrency"]:
        """Whether a burst or a base limit binds, or the I/Os in flight do."""
        if self.limit is None:
            return "concurrency"
        return "burst" if "burst" in self.limit.column else "base"

    @property
    def words(self) -> str:
        """What binds in words, e.g. "VM burst limit of 1,200 MB/s"; limits that coincide are all named."""
        if self.limit is None:
            return "the I/Os in flight"
        return " and the ".join([*(limit.name for limit in self.others), self.limit.words(self.value)])


def caps(setup: Setup, load: Load) -> dict[str, float]:
    """Rates of the volume at which each limit of disk, machine and network is reached.

    Returns by the columns of `limits.LIMITS`; NaN where a limit is not known, or not asked anything.
    """
    parts = list(_shares(setup, load))
    disk = max(ios for ios, _ in parts) / setup.shape.disks
    pieces = setup.shape.pieces(load.block_bytes)
    rates_at: dict[str, float] = {}
    for whose, rates, demand in (("disk", setup.disk, disk), ("vm", setup.vm, disk * setup.shape.disks)):
        for name in ("iops", "burst_iops"):
            rates_at[f"cap_{whose}_{name}"] = _rate(getattr(rates, name), demand * pieces)
        for name in ("mb_s", "burst_mb_s"):
            rates_at[f"cap_{whose}_{name}"] = _rate(getattr(rates, name), demand)
    out, into = (max(way) for way in zip(*(wire for _, wire in parts), strict=True))
    rates_at["cap_nic_out_mb_s"] = _rate(setup.nic_out_mb_s, out)
    rates_at["cap_nic_in_mb_s"] = _rate(setup.nic_in_mb_s, into)
    return rates_at


def bound(setup: Setup, load: Load, *, spent: bool = False, latency_ms: float = math.nan) -> Bound:
    """Find the lowest limit of a volume under a load: limit / demand, or outstanding / latency.

    - `setup`, `load`: the volume, and what is asked of it.
    - `spent`: whether burst credit is used up, so that base limits hold.
    - `latency_ms`: of one I/O that does not wait; with it the I/Os in flight may bind.
    """
    rates = [
        (value * (1.0 if limit.counts == "iops" else MB / load.block_bytes), limit, value)
        for limit, value in _in_force(caps(setup, load), spent)
    ]
    lowest = min((rate for rate, _, _ in rates), default=math.inf)
    loop = 1000.0 * load.outstanding / latency_ms if load.outstanding and latency_ms > 0 else math.inf
    if loop < lowest or not rates:
        return Bound(loop)
    binding = [(limit, value) for rate, limit, value in rates if math.isclose(rate, lowest)]
    return Bound(lowest, *binding[-1], tuple(limit for limit, _ in binding[:-1]))


def burst_lasts_s(setup: Setup, load: Load, latency_ms: float = math.nan) -> float:
    """Tell how long full credit carries the highest rate of a load; infinite where that draws none.

    A bucket holds (burst - base) x 30 minutes (`credit`), and loses what runs above the base.
    """
    rate = bound(setup, load, latency_ms=latency_ms).iops
    values = caps(setup, load)
    left = [math.inf]
    for limit in LIMITS:
        base, burst = values.get(limit.column, math.nan), values.get(limit.burst_column or "", math.nan)
        draw = rate * (1.0 if limit.counts == "iops" else load.block_bytes / MB) - base
        if burst > base and draw > 1e-9 * base:
            left.append((burst - base) * BURST_S / draw)
    return min(left)


def knee(setup: Setup, load: Load, latency_ms: float, *, spent: bool = False) -> float:
    """I/Os in flight at which a load meets its lowest limit: rate x latency (Little's law)."""
    return bound(setup, Load(load.block_bytes, load.write_share), spent=spent).iops * latency_ms / 1000.0


def on_volumes(trials: pd.DataFrame, setups: Mapping[str, Setup]) -> pd.DataFrame:
    """Give trials of volumes their limits as rates of the volume, so that all rules of limits hold for them.

    - `setups`: volume and limits of each arm that measures one.

    Returns the table, with the columns of `limits.LIMITS` of these arms put in; a volume has no cached ones.
    """
    measured = trials["arm"].isin(list(setups))
    if not measured.any():
        return trials
    rows = trials[measured]
    writes = rows["direction"].isin(["write", "commit"])
    rates = rows["iops"].astype(float).fillna(0.0)
    of_trial = rates.groupby(rows["trial"]).transform("sum")
    written = rates.where(writes, 0.0).groupby(rows["trial"]).transform("sum")
    shares = np.where(of_trial > 0, written / of_trial.where(of_trial > 0), writes)
    blocks = rows["block_size_bytes"].to_numpy(float)
    places = zip(rows["arm"], blocks, shares, strict=True)
    values = [caps(setups[arm], Load(block, float(share))) for arm, block, share in places]
    names = [limit.column for limit in LIMITS]
    limits = pd.DataFrame(values, index=rows.index).reindex(columns=names).astype(float)
    changed = trials.assign(**{name: trials.get(name, math.nan) for name in names})
    changed.loc[measured, names] = limits
    return changed


def _rate(limit: float | None, demand: float) -> float:
    return limit / demand if limit is not None and demand > 0 else math.nan


def _shares(setup: Setup, load: Load) -> Iterator[tuple[float, tuple[float, float]]]:
    """What an I/O asks of the nodes that own most and least of the volumes: I/Os, bytes sent and received."""
    owner, *others = _of_one(setup, load)
    for owned in {math.ceil(setup.volumes / setup.shape.nodes), setup.volumes // setup.shape.nodes}:
        share, other = owned / setup.volumes, others[0] if others else owner
        ios = share * owner[0] + (1.0 - share) * other[0]
        sent, received = (share * a + (1.0 - share) * b for a, b in zip(owner[1], other[1], strict=True))
        yield ios, (sent, received)


def _of_one(setup: Setup, load: Load) -> Iterator[tuple[float, tuple[float, float]]]:
    """What a volume I/O asks of its owner and of another node: I/Os, and bytes sent and received a byte."""
    nodes, w = setup.shape.nodes, load.write_share
    own = 1.0 / nodes if nodes == 1 or setup.local_share is None else setup.local_share
    writes = w * IOS_A_WRITE[setup.shape.kind] / nodes
    copies = w * _PARITY_SENT if setup.shape.kind == "nested-parity" else writes
    fetched = (1.0 - w) * (1.0 - own)
    there, back = (w, 1.0 - w) if setup.remote and nodes > 1 else (0.0, 0.0)
    yield writes + (1.0 - w) * own, ((nodes - 1) * copies + back, fetched + there)
    if nodes > 1:
        fetched /= nodes - 1
        yield writes + fetched, (fetched + there, copies + back)


def _in_force(values: Mapping[str, float], spent: bool) -> list[tuple[Limit, float]]:
    """Limits that hold: a burst limit above its base until its credit is spent, then the base."""
    by_column = {limit.column: limit for limit in LIMITS}
    bursts = {limit.burst_column for limit in LIMITS}
    kept = []
    for base in LIMITS:
        if base.column in bursts:
            continue
        burst = by_column.get(base.burst_column or "", base)
        higher = values.get(burst.column, math.nan) > values.get(base.column, math.nan)
        limit = burst if higher and not spent else base
        if not math.isnan(values.get(limit.column, math.nan)):
            kept.append((limit, values[limit.column]))
    return kept
