"""Reader of the load that a time span of a DiskSpd profile asks for. Compute only, no I/O."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar

from diskbook.tools.record import CACHED, Load, number
from diskbook.tools.xml_tree import Node

T = TypeVar("T")


@dataclass(frozen=True)
class _Target:
    """A target of the profile: what each of its threads does to it."""

    path: str
    block_size_bytes: int
    write_pct: int
    threads: int
    outstanding: int
    random: bool
    rate: float | None
    write_through: bool
    size_bytes: int | None
    cached: bool


def _target(node: Node) -> _Target:
    """What the profile asks of a target."""
    block = int(number(node.word("BlockSize"), "BlockSize", 2**40))
    throughput = node.first("Throughput")
    return _Target(
        path=node.word("Path"),
        block_size_bytes=block,
        write_pct=int(number(node.word("WriteRatio") or "0", "WriteRatio", 100)),
        threads=int(number(node.word("ThreadsPerFile") or "1", "ThreadsPerFile", 1e6)),
        outstanding=int(number(node.word("RequestCount") or "1", "RequestCount", 1e6)),
        random=node.first("Random") is not None,
        rate=_rate(throughput, block) if throughput else None,
        write_through="true" in (node.word("WriteThrough"), node.word("DisableAllCache")),
        size_bytes=int(number(node.word("FileSize"), "FileSize")) if node.word("FileSize") else None,
        cached=all(node.word(f"Disable{cache}Cache") != "true" for cache in ("OS", "All", "Local")),
    )


def _tell_ways(node: Node, flags: list[str]) -> None:
    """Say what the numbers of a target's load do not."""
    if node.word("RandomRatio"):
        flags.append(f"{node.word('RandomRatio')[:3]} % of the I/Os were random, the others in a row")
    if node.first("Distribution") is not None:
        flags.append("offsets were drawn from a distribution (-rd), not evenly")
    if node.word("ThinkTime") not in ("", "0"):
        flags.append("pauses (-j) limited the rate")


def _rate(node: Node, block_size_bytes: int) -> float | None:
    """IOPS of a thread and target; bytes a millisecond before 2.1, either since."""
    rate = number(node.text.strip() or "0", "Throughput")
    if not rate or not block_size_bytes:
        return None
    return rate if node.attributes.get("unit", "").upper() == "IOPS" else rate * 1000 / block_size_bytes


def load(profile: Node | None, flags: list[str]) -> tuple[Load, list[str]]:
    """Join the targets of a time span: outstanding I/Os and rates add up; what differs is left out and told.

    Parameters
    ----------
    profile
        The profile's TimeSpan, or None when the file has none.
    flags
        Sentences are added to it.

    Returns
    -------
    tuple
        The load, and the paths of its targets.

    Raises
    ------
    ValueError
        When a number in it is none.
    """
    nodes = list(profile.all("Targets", "Target")) if profile else []
    targets = [_target(node) for node in nodes]
    if profile is None or not targets:
        flags.append("what was asked for is not in the file")
        return Load(), []
    threads, outstanding = _concurrency(targets, profile)
    if len(targets) > 1:
        flags.append(f"{len(targets)} targets were loaded at once and are added up")
    if any(item.cached for item in targets):
        flags.append(CACHED)
    _tell_ways(nodes[0], flags)
    rates = [item.rate for item in targets]
    total_threads = int(number(profile.word("ThreadCount") or "0", "ThreadCount", 1e6))
    of_target = [total_threads or item.threads for item in targets]
    joined = Load(
        pattern=_same(["random" if item.random else "sequential" for item in targets], "pattern", flags),
        block_size_bytes=_same([item.block_size_bytes for item in targets], "block size", flags),
        write_pct=_same([item.write_pct for item in targets], "write ratio", flags),
        threads=threads if outstanding % threads == 0 else 1,
        queue_depth=outstanding // threads if outstanding % threads == 0 else outstanding,
        rate=sum(rate * n for rate, n in zip(rates, of_target, strict=True) if rate) if all(rates) else None,
        sync="dsync" if all(item.write_through and item.write_pct for item in targets) else None,
        size_bytes=sum(item.size_bytes or 0 for item in targets) or None,
        ramp_s=number(profile.word("Warmup") or "0", "Warmup", 1e9),
        runtime_s=number(profile.word("Duration") or "0", "Duration", 1e9) or None,
    )
    return joined, [item.path for item in targets]


def _concurrency(targets: list[_Target], profile: Node) -> tuple[int, int]:
    """Threads and outstanding I/Os of a time span, all targets together."""
    total = int(number(profile.word("ThreadCount") or "0", "ThreadCount", 1e6))
    a_thread = int(number(profile.word("RequestCount") or "0", "RequestCount", 1e6))
    threads = total or sum(item.threads for item in targets)
    if a_thread:
        return max(threads, 1), max(threads * a_thread, 1)
    if total:
        return total, max(total * sum(item.outstanding for item in targets), 1)
    return max(threads, 1), max(sum(item.threads * item.outstanding for item in targets), 1)


def _same(values: list[T], what: str, flags: list[str]) -> T | None:
    if len(set(values)) == 1:
        return values[0]
    flags.append(f"the targets differ in {what}")
    return None
