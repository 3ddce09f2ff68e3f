"""What a workload needs of a disk: a rate over time, a size, and what the data must survive.

A need that is given has one rate, which lasts. One that is learned from a trace has a rate per interval, and
is taken to repeat for ever.
"""

import re
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from diskbook.design.model import block_bytes
from diskbook.facts import catalog
from diskbook.facts.errors import UsageError
from diskbook.facts.prices import HOURS_A_MONTH
from diskbook.facts.units import GIB, MB, parse_gib, parse_percent, parse_rate

SURVIVES = ("none", "machine", "zone")
"""What data outlive, from least to most: a stopped machine (LRS), a zone (ZRS)."""
_MOST_RATE = 1e8
_TOLERATED = 0.05
"""How far IOPS, block size and MB/s that are all given may disagree."""


@dataclass(frozen=True, eq=False)
class Need:
    """What is needed: `iops` and `mb_s` per interval of `seconds`, a single one for a constant rate.

    `survive` is one of `SURVIVES`; names of sizes and SKUs must match the patterns `vm` and `disk` ("": any);
    the machine has `vcpus` and `memory_gib` at least. A host cache answers a share `cache_hits` of all reads;
    the wished `p99_ms` filters and ranks nothing.
    """

    iops: np.ndarray
    mb_s: np.ndarray
    seconds: np.ndarray
    size_gib: int
    read_share: float = 1.0
    survive: str = "machine"
    region: str = "westeurope"
    os: str = "linux"
    vm: str = ""
    disk: str = ""
    vcpus: int = 1
    memory_gib: float = 0.0
    cache_hits: float = 0.0
    p99_ms: float | None = None

    @cached_property
    def block_bytes(self) -> float:
        """Mean size of an I/O."""
        return MB * float((self.mb_s * self.seconds).sum()) / float((self.iops * self.seconds).sum())

    @cached_property
    def seconds_a_month(self) -> np.ndarray:
        """Seconds of each interval in a month of repeats."""
        month: np.ndarray = self.seconds / self.seconds.sum() * (HOURS_A_MONTH * 3600)
        return month

    @property
    def peak_iops(self) -> float:
        """Highest rate."""
        return float(self.iops.max())

    @property
    def mean_iops(self) -> float:
        """Mean rate."""
        return float((self.iops * self.seconds).sum()) / float(self.seconds.sum())

    @property
    def peak_block_bytes(self) -> float:
        """Highest throughput per highest rate, by which a load that grows meets limits."""
        return MB * float(self.mb_s.max()) / self.peak_iops

    @property
    def beyond_cache(self) -> float:
        """Share of I/Os that a host cache would leave to the disk."""
        return 1.0 - self.cache_hits * self.read_share


def given(
    iops: str | None, block_size: str | None, mb_s: str | None, read: str, size: str, **wishes: Any
) -> Need:
    """Read a need from the options of the command line.

    Two of rate, block size and throughput say the third.

    Raises UsageError where a unit is wrong, something is missing, or wishes contradict each other.
    """
    rate, throughput = parse_rate(iops, "--iops", "IOPS"), parse_rate(mb_s, "--mb-s", "MB/s")
    block = block_of(block_size)
    if rate is None and (throughput is None or block is None):
        raise UsageError("say the rate: --iops with --block-size, --mb-s with --block-size, or --from FILE")
    if rate is not None and throughput is None and block is None:
        raise UsageError("--iops alone says no MB/s: add --block-size, for example --block-size 8K")
    if rate is None and throughput is not None and block is not None:
        rate = throughput * MB / block
    if throughput is None and rate is not None and block is not None:
        throughput = rate * block / MB
    if rate is None or throughput is None:
        raise UsageError("give two of --iops, --block-size and --mb-s")
    if block is not None and abs(rate * block / MB / throughput - 1) > _TOLERATED:
        raise UsageError(
            f"--iops {rate:g} of --block-size {block_size} are {rate * block / MB:g} MB/s, not the "
            f"{throughput:g} of --mb-s; leave one of the three out"
        )
    if throughput * MB / rate < 512 * (1 - 1e-9):
        raise UsageError(f"{throughput * MB / rate:g} bytes per I/O cannot be; a disk reads 512 and more")
    need = Need(np.array([rate]), np.array([throughput]), np.array([1.0]), parse_gib(size, "--size"))
    return wished(replace(need, read_share=share_of(read, "--read")), **wishes)


def wished(need: Need, **wishes: Any) -> Need:
    """Add what is wished besides the rate; UsageError where it contradicts itself."""
    if "cache_hits" in wishes:
        wishes["cache_hits"] = share_of(wishes["cache_hits"], "--cache-hits")
    made = replace(need, **wishes)
    catalog.region(made.region)
    if made.cache_hits and not made.read_share:
        raise UsageError("--cache-hits says what a host cache answers, but --read 0% reads nothing; drop one")
    if made.survive == "zone" and made.disk and not made.disk.upper().endswith(("_ZRS", "*")):
        raise UsageError(
            f"--disk {made.disk} does not survive the loss of a zone; take a disk whose name ends in _ZRS, "
            "or --survive machine"
        )
    if not 0 < made.peak_iops <= _MOST_RATE:
        raise UsageError(f"a rate of {made.peak_iops:g} IOPS is not a load; give more than 0 and at most 1e8")
    if not 1 <= made.block_bytes <= GIB:
        raise UsageError(f"{made.block_bytes:g} bytes per I/O cannot be; check --iops, --mb-s, --block-size")
    return made


def share_of(text: str, option: str) -> float:
    """Read a percentage from 0 to 100 % as a share."""
    return parse_percent(text, option, zero=True)


def block_of(text: str | None) -> int | None:
    """Read a block size such as 8K or 8KiB."""
    if text is None:
        return None
    try:
        return int(block_bytes(re.sub(r"(?i)(?<=[kmg])i?b$", "", text.strip())))
    except ValueError as error:
        raise UsageError(f"--block-size: {error}") from None
