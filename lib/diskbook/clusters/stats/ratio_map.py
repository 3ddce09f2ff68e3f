"""The map of ratios that documented limits alone predict, before anything is measured.

Where both sit on limits, their ratio is the ratio of these; a comparison that shows no more than this map has
not measured what it compares. Pure.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from diskbook.clusters.stats import volume_bound
from diskbook.clusters.stats.volume_bound import Bound, Load, Setup
from diskbook.facts.units import MB


@dataclass(frozen=True)
class Predicted:
    """Two set-ups under one load: what binds each, and their rates as `other` / `base`.

    In a closed loop latency is outstanding / IOPS and MB/s are IOPS x block size, so that the ratios of all
    three are one finding (Little's law).
    """

    load: Load
    other: Bound
    base: Bound

    @property
    def ratio(self) -> float:
        """IOPS ratio, which is that of MB/s, and the inverse of that of latencies."""
        return self.other.iops / self.base.iops

    @property
    def limits_only(self) -> bool:
        """Whether limits hold both, so that the ratio says nothing about what lies below them."""
        return self.other.limit is not None and self.base.limit is not None

    @property
    def latencies_ms(self) -> tuple[float, float]:
        """Mean latencies of both, other first: outstanding / IOPS."""
        n = self.load.outstanding or 1
        return 1000.0 * n / self.other.iops, 1000.0 * n / self.base.iops

    @property
    def mb_s(self) -> tuple[float, float]:
        """MB/s (10^6 bytes) of both, other first."""
        size = self.load.block_bytes / MB
        return self.other.iops * size, self.base.iops * size


def ratio_map(
    other: Setup, base: Setup, loads: Iterable[Load], latency_ms: float, *, spent: bool = False
) -> list[Predicted]:
    """Predict each load's ratio from the limits of both set-ups, and from one latency that both share.

    - `other`, `base`: set-ups that are compared.
    - `loads`: cells of the map, each with its number outstanding.
    - `latency_ms`: of an I/O that does not wait: the same on both sides, since a difference of theirs is what
      is asked.
    - `spent`: whether burst credit is used up.
    """
    return [
        Predicted(
            load,
            *(volume_bound.bound(setup, load, spent=spent, latency_ms=latency_ms) for setup in (other, base)),
        )
        for load in loads
    ]
