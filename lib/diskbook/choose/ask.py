"""From the options of the command line to an answer, as text and as a record."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from diskbook.choose import candidates, describe, iostat, monitor, need as needs, search
from diskbook.choose.candidates import Candidate
from diskbook.choose.describe import Latency, Row
from diskbook.choose.need import SURVIVES, Need
from diskbook.choose.search import Found
from diskbook.choose.trace import Trace
from diskbook.cost import retail
from diskbook.design import scenario_file
from diskbook.facts import prices as price_table
from diskbook.facts.errors import DiskbookError, UsageError, unknown
from diskbook.facts.prices import PriceList
from diskbook.facts.units import MB, parse_gib
from diskbook.report.analysis import computed
from diskbook.report.analysis.computed import NOTHING

_MOST_BYTES = 200_000_000
_WISHES = ("survive", "region", "os", "vm", "disk", "vcpus", "memory_gib", "cache_hits", "p99_ms")


@dataclass(frozen=True, eq=False)
class Answer:
    """All that the command says: a need, what it was learned from, and what carries it.

    `explained` are candidates to walk through, `nearest` what can be had instead, `seconds` the search took.
    """

    need: Need
    trace: Trace | None
    choice: Found
    prices: PriceList
    latency: Latency
    explained: tuple[tuple[str, Candidate], ...]
    nearest: str
    seconds: float

    def rows(self) -> list[Row]:
        """The cheapest of each priced size, then the rest of the front."""
        listed = dict.fromkeys([*self.choice.cheapest, *self.choice.front])
        return [describe.row(item.candidate, self.need, self.prices, self.latency) for item in listed]

    def text(self) -> str:
        """All of it as text."""
        lines = ["need: " + describe.need_words(self.need)]
        lines += self.trace.words() if self.trace else []
        lines += [
            f"looked at {self.choice.n_sizes:,} sizes and {self.choice.n_sets:,} sets of disks in "
            f"{self.seconds:.2f} s",
            "",
        ]
        lines += describe.choice_words(self.choice, self.need, self.prices, self.latency)
        lines += [self.nearest] if self.nearest else []
        for name, candidate in self.explained:
            row = describe.row(candidate, self.need, self.prices, self.latency)
            lines += [
                "",
                f"{name}:",
                describe.row_words(row, self.need),
                *describe.why_words(candidate, self.need),
            ]
        lines += [
            "",
            f"prices: {self.prices.source}; list prices of {self.need.region}, without "
            "public address, traffic and discounts",
        ]
        if self.choice.cheapest:
            best = self.choice.cheapest[0].candidate
            whole = f" (one of its {best.disks.count} disks)" if best.disks.count > 1 else ""
            lines += [f"to measure the choice{whole}:", describe.plan_command(best, self.need)]
        return "\n".join(lines)

    def record(self) -> dict[str, Any]:
        """The same as keys and values of `cli.documents.Choose`."""
        best = self.choice.cheapest[0].candidate if self.choice.cheapest else None
        front = {item.candidate.label for item in self.choice.front}
        return {
            "need": {
                "peak_iops": self.need.peak_iops, "mean_iops": self.need.mean_iops,
                "block_bytes": self.need.block_bytes, "peak_mb_s": float(self.need.mb_s.max()),
                "read_share": self.need.read_share, "size_gib": self.need.size_gib,
                "survive": self.need.survive, "region": self.need.region, "os": self.need.os,
            },
            "trace": self.trace.words() if self.trace else [],
            "clipped": self.trace.clipped if self.trace else "",
            "candidates": [{**_record(row), "front": row.candidate.label in front} for row in self.rows()],
            "n_sizes": self.choice.n_sizes, "n_sets": self.choice.n_sets,
            "price_unknown": list(self.choice.unpriced),
            "nearest": self.nearest,
            "explained": [
                {
                    "name": name, "candidate": candidate.label,
                    "limits": list(describe.why_words(candidate, self.need)),
                }
                for name, candidate in self.explained
            ],
            "prices": self.prices.source,
            "plan": describe.plan_command(best, self.need) if best else "",
            "search_s": self.seconds,
        }  # fmt: skip


def _record(row: Row) -> dict[str, Any]:
    return {
        "candidate": row.candidate.label, "usd_per_month": row.usd,
        "priced_from": str(row.priced_from or ""), "priced_to": str(row.priced_to or ""),
        "inferred": row.inferred, "lasting_iops": row.lasting_iops, "headroom": row.headroom,
        "binds": row.binds, "burst_iops": row.burst_iops, "burst_s": row.burst_s,
        "drawn_share": row.drawn_share, "least_outstanding": row.outstanding,
        "survives": SURVIVES[row.candidate.disks.survives], "latency": row.latency,
    }  # fmt: skip


def ask(
    *, iops: str | None = None, block_size: str | None = None, mb_s: str | None = None,
    read: str | None = None, size: str | None = None, source: str | None = None, device: str | None = None,
    interval_s: float | None = None, prices: str | None = None, latency: str | None = None,
    why: str | None = None, current: str | None = None, **wishes: Any,
) -> Answer:  # fmt: skip
    """Answer the options of the command line, whose names these are.

    Raises DiskbookError with one sentence, where an option or a file is wrong, or wishes contradict each
    other.
    """
    wishes = {"cache_hits": "0%", **wishes}
    trace = None
    named = [(name, candidates.parsed(text)) for name, text in (("why", why), ("current", current)) if text]
    if size is None and not named:
        raise UsageError("say how much room the data need, for example --size 500GiB")
    room = parse_gib(size, "--size") if size is not None else _room(named[0][1])
    if source is None:
        for option, value in (("--device", device), ("--interval", interval_s)):
            if value is not None:
                raise UsageError(f"{option} is about a log; name it with --from FILE, or leave {option} out")
        need = needs.given(iops, block_size, mb_s, read or "100%", f"{room}GiB", **wishes)
    else:
        trace, learned = _learned(source, device, interval_s, room, (iops, block_size, mb_s, read))
        need = needs.wished(learned, **wishes)
    today = datetime.now(UTC).date()
    started = time.monotonic()
    choice = search.find(need, prices_of(need.region, prices), today)
    took = time.monotonic() - started
    nearest = "" if choice.fits else describe.nearest(need, lambda region: prices_of(region, prices), today)
    known = measured(latency) if latency else describe.not_measured
    return Answer(need, trace, choice, prices_of(need.region, prices), known, tuple(named), nearest, took)


def prices_of(region: str, saved: str | None = None) -> PriceList:
    """Prices of a region: of a saved answer, else of the table; none of other regions."""
    if saved is not None:
        return retail.saved(Path(saved), region)
    return PriceList(region, price_table.TABLE, price_table.table().get(region, {}))


def _room(candidate: Candidate) -> int:
    return candidate.disks.count * candidate.disks.disk.size_gib


def _learned(
    source: str, device: str | None, interval_s: float | None, room: int, given: Sequence[str | None]
) -> tuple[Trace | None, Need]:
    """Learn a need from a file, a cell of a run, or a workload of a scenario."""
    names = ("--iops", "--block-size", "--mb-s", "--read")
    path = Path(source)
    if path.is_file():
        extra = [name for name, value in zip(names, given, strict=True) if value is not None]
        if extra:
            raise UsageError(f"--from {source} says the load; leave {' and '.join(extra)} out")
        trace = read_file(path, device, interval_s)
        return trace, trace.need(room)
    parts = source.split(":")
    if len(parts) == 3:
        return None, _of_run(parts[0], parts[1], parts[2], room)
    if len(parts) == 2 and parts[0] in scenario_file.names():
        return None, _of_scenario(parts[0], parts[1], room, given[0])
    raise UsageError(
        f"--from {source}: there is no such file; write FILE, RUN:ARM:WORKLOAD or SCENARIO:WORKLOAD"
    )


def read_file(path: Path, device: str | None = None, interval_s: float | None = None) -> Trace:
    """Read a log of iostat or an export of Azure Monitor, whichever it is."""
    if path.stat().st_size > _MOST_BYTES:
        raise DiskbookError(f"{path}: it is longer than 200 MB; cut out the hours that count")
    content = path.read_bytes()
    encoding = "utf-16" if content[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig"
    text = content.decode(encoding, "replace")
    return read_text(text, path.name, device, interval_s)


def read_text(text: str, where: str, device: str | None = None, interval_s: float | None = None) -> Trace:
    """Read the text of such a file."""
    if not text.strip():
        raise DiskbookError(f"{where}: it is empty; record with iostat -xt 5")
    reader = iostat.read if iostat.is_iostat(text) else monitor.read
    return reader(text, where, device, interval_s)


def _of_run(run: str, arm: str, workload: str, room: int) -> Need:
    """The need of a cell that a run measured: the median rate of its trials."""
    rate, load = computed.measured_rate(run, arm, workload)
    return _constant(rate, load.block_size, 1 - load.write_pct / 100, room)


def _of_scenario(scenario: str, workload: str, room: int, iops: str | None) -> Need:
    """The need of a scenario's workload: its rate, or the one given for a closed loop."""
    loads = {load.name: load for load in scenario_file.load(scenario, "standard").workload}
    if workload not in loads:
        raise unknown("workload", workload, loads, scenario)
    load = loads[workload]
    if load.rate is None and iops is None:
        raise UsageError(f"{scenario}:{workload} is a closed loop, which has no rate by itself; add --iops")
    given = needs.given(iops, str(load.block_size), None, "100%", f"{room}GiB") if iops else None
    rate = given.peak_iops if given else float(load.rate or 0)
    return _constant(rate, load.block_size, 1 - load.write_pct / 100, room)


def _constant(rate: float, block_bytes: int, reads: float, room: int) -> Need:
    return Need(np.array([rate]), np.array([rate * block_bytes / MB]), np.array([1.0]), room, reads)


def measured(run: str) -> Latency:
    """What a run measured of latencies, never an emulated one; of single disks with the same options."""
    p99 = computed.measured_p99(run)
    return lambda disks, need: p99(disks.disk, disks.cache, need.block_bytes) if disks.count == 1 else NOTHING
