"""Plant limits that no table names, and ask the analysis: `python -m checks.hidden_limits`.

Cells that have 2.5 times as many I/Os in flight as their rate needs, or more, must all be refused a latency:
behind a hidden limit of rate or bytes at 30 to 95 % of nominal, of one arm or of both, or behind a disk that
works on few I/Os at once. Of cells with 1.5 times as many or fewer (latency that grows with depth, noise, a
host cache, held rates) at most one in fifty may be. Two kinds of pairs get no verdict on their rates: those
near a limit, and equal disks that draw burst credit of which nobody knows how much is left. Exit status 1
otherwise. `coverage_limits` plants those between 1 and 4 times.
"""

import argparse
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple
from unittest import mock

import numpy as np
import pandas as pd

from diskbook.design.model import Comparison
from diskbook.design.vocabulary import Label, Provenance, Scope, Verdict
from diskbook.facts.units import MB
from diskbook.stats import ratios
from diskbook.stats.compare import compare

PAIRS = {"saturated": 130, "unqueued": 100, "near": 150, "credit": 150}
"""Pairs of arms that give 200 cells or more of each kind."""
METRIC = {"near": "iops", "credit": "iops"}
"""What is compared where that is not the mean latency."""
MOST_REFUSED = 0.02
"""Share of cells without a queue that may be refused."""
BLOCKS = (2, 6)
"""Fewest and most blocks of a planted pair."""
NOMINAL_IOPS, NOMINAL_MB_S = 5000.0, 200.0
HIGH_IOPS, HIGH_MB_S = 1e6, 1e4
"""Limits far above what is played without a queue."""
AT_LIMIT = 0.0013
"""Standard deviation of the log rate on a real cap (Azure VM Noise 2024: 0.0002 to 0.0013)."""
ARMS = ("base", "arm")
SECONDS = 30.0
AT_ONCE = 50
"""Pairs that are put through the analysis in one run; they share no arm, load, machine or disk."""


class Load(NamedTuple):
    """What is planted in one arm: a load, the latency of its single I/Os, and what a deep one meets.

    - `grows`: latency at depth, without any queue, as a multiple of that of a single I/O.
    - `limit`: IOPS that are let through; infinite without a hidden limit.
    - `sd`: standard deviation of log latencies from trial to trial; blocks vary by half as much.
    - `limit_sd`: the same of the rate on the limit.
    - `rate`: offered, in place of a closed loop; NaN for that.
    - `named`: IOPS and MB/s that the table of limits has for the disk.
    - `burst`: the same of its burst, which is drawn from a credit of unknown state; NaN without.
    """

    single_ms: float
    depth: int
    block_size: int
    grows: float = 1.0
    limit: float = np.inf
    sd: float = 0.012
    limit_sd: float = AT_LIMIT
    rate: float = np.nan
    named: tuple[float, float] = (NOMINAL_IOPS, NOMINAL_MB_S)
    burst: tuple[float, float] = (np.nan, np.nan)

    @property
    def asks(self) -> float:
        """I/Os in flight as a multiple of those that the rate needs."""
        if not np.isnan(self.rate):
            return self.grows
        free = self.depth / (self.grows * self.single_ms)
        needed = min(free, self.limit / 1e3) * self.single_ms
        return round(self.depth / needed, 9)


Pair = tuple[Load, Load]


def saturated(rng: np.random.Generator) -> Pair:
    """Draw two arms that run one deep load, and wait 2.5 times the latency of a single I/O or longer."""
    kind = rng.choice(["iops", "mb_s", "parallelism", "held"])
    both = bool(rng.random() < 0.7)
    block_size = int(rng.choice([65536, 131072] if kind == "mb_s" else [4096, 8192]))
    latencies = rng.uniform(0.3, 5.0, 2)
    share = rng.uniform(0.30, 0.945)
    limit = share * (NOMINAL_MB_S * MB / block_size if kind == "mb_s" else NOMINAL_IOPS)
    cells = []
    deep = _deep(latencies, limit, rng)
    for position, single_ms in enumerate(latencies.tolist()):
        cell = Load(single_ms, deep, block_size, limit=limit)
        if kind == "parallelism":
            servers = int(rng.integers(1, max(2, deep // 3)))
            cell = cell._replace(limit=min(1000 * servers / single_ms, 0.9 * NOMINAL_IOPS), limit_sd=0.012)
        if kind == "held":
            cell = cell._replace(depth=64, rate=limit, grows=float(rng.uniform(2.5, 6.0)), limit=np.inf)
            cell = cell._replace(rate=min(limit, 40_000 / (cell.grows * single_ms)))
        if position == 0 and not both:
            cell = cell._replace(grows=1.0, limit=np.inf, rate=np.nan if kind != "held" else cell.rate)
        cells.append(cell)
    return cells[0], cells[1]


def _deep(latencies: np.ndarray, limit: float, rng: np.random.Generator) -> int:
    """Depth of which both arms need 0.4 or less at the limit."""
    needed = limit * float(latencies.max()) / 1000.0
    return int(np.ceil(2.5 * max(needed, 1.0) * rng.uniform(1.0, 8.0)))


def unqueued(rng: np.random.Generator) -> Pair:
    """Draw two arms whose latency at depth is the disk's own: at most 1.5 times that of a single I/O."""
    kind = rng.choice(["grows", "noise", "cache", "held"])
    depth = int(rng.choice([2, 4, 8, 16, 32]))
    cells = []
    for single_ms in rng.uniform(0.5, 5.0, 2).tolist():
        cell = Load(single_ms, depth, 4096, float(rng.uniform(1.0, 1.5)), named=(HIGH_IOPS, HIGH_MB_S))
        if kind == "noise":
            cell = cell._replace(sd=float(rng.uniform(0.03, 0.1)))
        if kind == "cache":
            hits, deep_hits = rng.uniform(0.5, 0.95), rng.uniform(0.5, 0.95)
            single, deep = (0.08 * share + single_ms * (1 - share) for share in (hits, deep_hits))
            cell = cell._replace(single_ms=single, grows=min(deep / single, 1.5), sd=0.03)
        if kind == "held":
            rate = float(rng.uniform(0.3, 0.8)) * NOMINAL_IOPS
            cell = cell._replace(depth=64, rate=min(rate, 40_000 / (cell.grows * single_ms)))
        cells.append(cell)
    return cells[0], cells[1]


def near(rng: np.random.Generator) -> Pair:
    """Draw two arms whose own rate lies just under a limit: how much of it the limit cut is hidden."""
    base, arm = (Load(float(single_ms), 8, 4096, 1.2, sd=0.01) for single_ms in rng.uniform(1.0, 2.0, 2))
    base, arm = (
        cell._replace(named=(8000 / (1.2 * cell.single_ms * rng.uniform(0.955, 0.99)), HIGH_MB_S))
        for cell in (base, arm)
    )
    return base, arm


def credit(rng: np.random.Generator) -> Pair:
    """Draw two equal disks (P20: 2,300 IOPS, 3,500 by credit), one of which has spent its credit.

    The other one runs on its burst limit, or at 2,600 to 3,300 IOPS that are its own.
    """
    single_ms, own = float(rng.uniform(1.0, 2.0)), rng.uniform(2600, 3300)
    disk = Load(single_ms, 64, 4096, named=(2300, 150), burst=(3500, 170))
    if rng.random() < 0.5:
        disk = disk._replace(depth=8, grows=8000 / (single_ms * own))
    bursting, spent = disk._replace(limit=1.02 * 3500), disk._replace(limit=1.02 * 2300)
    return (bursting, spent) if rng.random() < 0.5 else (spent, bursting)


def trials(pair: Pair, rng: np.random.Generator, number: int = 0) -> list[dict[str, object]]:
    """Measure both arms of a pair with their loads, in some blocks, as rows of trials."""
    blocks = int(rng.integers(*BLOCKS, endpoint=True))
    return replicate_trials(pair, rng, (number, 1), blocks)


def replicate_trials(
    pair: Pair,
    rng: np.random.Generator,
    place: tuple[int, int],
    blocks: int,
    kinds: Sequence[str] = ("qd1", "deep"),
) -> list[dict[str, object]]:
    """Measure both arms of a replicate in blocks, as rows of trials.

    - `pair`, `rng`: what is planted, and where its noise comes from.
    - `place`: numbers of pair and replicate.
    - `blocks`: how many are measured.
    - `kinds`: of loads: a single I/O (`qd1`), that of the pair (`deep`), two I/Os in the first block alone
      (`qd2`).
    """
    rows = []
    for block in range(1, blocks + 1):
        common = rng.normal(0, pair[0].sd / 2)
        for position, arm in enumerate(rng.permutation(2).tolist(), 1):
            deep = pair[arm]
            loads = {"qd1": deep._replace(depth=1, grows=1.0, rate=np.nan), "deep": deep}
            if block == 1:
                loads["qd2"] = deep._replace(depth=2)
            for kind in filter(loads.get, kinds):
                noise = float(np.exp(common + rng.normal(0, deep.sd)))
                row = _row(loads[kind], 10 * block + position, _at_depth(loads[kind], noise, rng))
                rows.append(_names(place, arm, kind, block) | row)
    return rows


def _names(place: tuple[int, int], of_pair: int, kind: str, block: int) -> dict[str, object]:
    number, replicate = place
    arm, load = f"{ARMS[of_pair]}-{number}", f"{kind}-{number}"
    names = {"arm": arm, "workload": load, "trial": f"{load}-{replicate}-{block}-{arm}"}
    of_replicate = {"machine_id": f"machine-{number}-{replicate}", "disk_id": f"{arm}-{replicate}"}
    return {**names, "replicate": replicate, "block": block, **of_replicate}


def _at_depth(cell: Load, noise: float, rng: np.random.Generator) -> tuple[int, float, float]:
    """I/Os in flight, rate and mean latency of one trial."""
    free_ms = cell.grows * cell.single_ms * noise
    if not np.isnan(cell.rate):
        return cell.depth, cell.rate, free_ms
    limit = cell.limit * float(np.exp(rng.normal(0, cell.limit_sd)))
    rate = min(1000 * cell.depth / free_ms, limit)
    return cell.depth, rate, 1000 * cell.depth / rate


def _row(cell: Load, minute: int, measured: tuple[int, float, float]) -> dict[str, object]:
    depth, iops, lat_mean_ms = measured
    return {
        "repeat": 1,
        "position": minute % 10,
        "direction": "read",
        "provenance": Provenance.EMULATED,
        "attempt": 1,
        "status": "ok",
        "physical_zone": "az1",
        "credit_state": "none" if np.isnan(cell.burst[0]) else "unknown",
        "started_utc": pd.Timestamp("2026-01-01", tz="UTC") + pd.Timedelta(minutes=minute),
        "runtime_s": SECONDS,
        "outstanding": depth,
        "block_size_bytes": cell.block_size,
        "rate_offered": cell.rate if depth > 1 else np.nan,
        "lat_mean_ms": lat_mean_ms,
        "iops": iops,
        "throughput_mb_s": iops * cell.block_size / MB,
        "cap_disk_iops": cell.named[0],
        "cap_disk_mb_s": cell.named[1],
        "cap_disk_burst_iops": cell.burst[0],
        "cap_disk_burst_mb_s": cell.burst[1],
        # A machine's limits are known, and never near: what binds is hidden.
        "cap_vm_iops": 2 * HIGH_IOPS,
        "cap_vm_mb_s": 2 * HIGH_MB_S,
    }


class Outcome(NamedTuple):
    """What the analysis says of a planted pair: labels of the deep cells, verdict, ratio and its low end."""

    pair: Pair
    labels: tuple[str, str]
    verdict: str
    ratio: float
    low: float
    diff_ms: float


def judged(pairs: Sequence[Pair], rng: np.random.Generator, metric: str = "lat_mean_ms") -> list[Outcome]:
    """Put planted pairs through the analysis, as comparisons of one run."""
    rows = [row for number, pair in enumerate(pairs) for row in trials(pair, rng, number)]
    return compared(pairs, rows, "deep", metric)


def compared(
    pairs: Sequence[Pair], rows: Sequence[dict[str, object]], kind: str, metric: str = "lat_mean_ms"
) -> list[Outcome]:
    """Compare one load (`kind`) of all pairs, by rows of their trials."""
    items = [_comparison(number, kind, metric) for number in range(len(pairs))]
    # Each pair stands for a run: with the others it is not a family whose p-values are adjusted together.
    with mock.patch.object(ratios, "adjust", lambda p, family, scope: p):
        tables = compare(pd.DataFrame(rows), items, None, {})
    label = tables.cells.set_index(["arm", "workload"])["label"]
    table = tables.table[tables.table["scope"] == Scope.THESE].set_index("workload")
    names = ("verdict", "ratio", "ci_low", "diff_ms")
    outcomes = []
    for pair, item in zip(pairs, items, strict=True):
        base, arm = (str(label[name, item.workload]) for name in (item.base_arm, item.arm))
        outcomes.append(Outcome(pair, (base, arm), *table.loc[item.workload, list(names)]))
    return outcomes


def _comparison(number: int, kind: str, metric: str) -> Comparison:
    base, arm = (f"{name}-{number}" for name in ARMS)
    names = {"arm": arm, "base_arm": base, "workload": f"{kind}-{number}", "metric": metric}
    return Comparison.model_validate({**names, "pairing": "same-machine", "family": "headline"})


def planted(name: str, n_pairs: int, seed: int) -> Iterator[Outcome]:
    """Judge as many planted pairs of a kind (a name in `PAIRS`) as asked."""
    rng = np.random.default_rng([seed, *name.encode()])
    draw = {"saturated": saturated, "unqueued": unqueued, "near": near, "credit": credit}[name]
    metric = METRIC.get(name, "lat_mean_ms")
    for first in range(0, n_pairs, AT_ONCE):
        yield from judged([draw(rng) for _ in range(first, min(first + AT_ONCE, n_pairs))], rng, metric)


def labels_of(outcomes: Sequence[Outcome], low: float, high: float) -> list[tuple[str, bool]]:
    """Labels of the cells that ask for that many times what they need, and whether a ratio was printed."""
    return [
        (label, not np.isnan(outcome.ratio))
        for outcome in outcomes
        for cell, label in zip(outcome.pair, outcome.labels, strict=True)
        if low <= cell.asks <= high
    ]


def is_decided(outcome: Outcome) -> bool:
    """Whether two arms are called different or equal, or an interval says how far apart they are."""
    verdict = outcome.verdict
    return (
        verdict == Verdict.DIFFERENCE or verdict.startswith(Verdict.EQUIVALENT) or not np.isnan(outcome.low)
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the check and print it; 1 where a queue passes for a latency, or too many latencies for queues."""
    parser = argparse.ArgumentParser(prog="python -m checks.hidden_limits", description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args(arguments)
    kinds = {name: list(planted(name, number, options.seed)) for name, number in PAIRS.items()}
    queues, free = kinds["saturated"], kinds["unqueued"]
    behind, plain = labels_of(queues, 2.5, np.inf), labels_of(free, 0.0, 1.5)
    passed_for_latency = sum(label == Label.BELOW_CAP or printed for label, printed in behind)
    refused = sum(label != Label.BELOW_CAP for label, _ in plain)
    equal = sum(outcome.verdict.startswith(Verdict.EQUIVALENT) for outcome in queues)
    print(f"2.5 times the I/Os that the rate needs, or more: {_counts(behind)}")
    print(f"  {passed_for_latency} of {len(behind)} taken for a latency, {equal} pairs for equal disks")
    print(f"1.5 times or fewer, and no limit: {_counts(plain)}")
    print(f"  {refused} of {len(plain)} refused")
    decided = {name: sum(map(is_decided, kinds[name])) for name in METRIC}
    print(f"rates near a limit: {decided['near']} of {len(kinds['near'])} with a verdict or an interval")
    print(f"equal disks on unknown credit: {decided['credit']} of {len(kinds['credit'])}")
    failed = passed_for_latency > 0 or refused > MOST_REFUSED * len(plain) or any(decided.values())
    print("FAILED" if failed else "passed")
    return int(failed)


def _counts(labels: Sequence[tuple[str, bool]]) -> str:
    counts = Counter(label for label, _ in labels)
    return ", ".join(f"{number} {label}" for label, number in counts.most_common())


if __name__ == "__main__":
    sys.exit(main())
