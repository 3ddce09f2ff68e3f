"""What a loss that was played comes to: online or not, blocks verified, times, and rates of the load."""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from diskbook.design.model import Loss
from diskbook.measure.bench.rig import Rig

LARGEST_SKEW_S = 2.0
"""Clocks of client and node that differ by less are taken for equal: the answer's own way takes so long."""
Row = Mapping[str, Any]


@dataclass(frozen=True)
class Outcome:
    """A loss as it went, by volume.

    `marks` are when members were taken (`lost`), that was `noticed`, the load was ended (`ended`), members
    were `back`, and all volumes `whole`; `written` and `beside` what the load did before, and during the
    repair; `copied` bytes copied back, where they are told.
    """

    marks: Mapping[str, float]
    health: Mapping[str, Row]
    written: Mapping[str, Row]
    beside: Mapping[str, Row]
    copied: Mapping[str, float]

    def document(self) -> dict[str, Any]:
        """All of it, as it is kept raw."""
        return asdict(self)

    def row(self, volume: str) -> dict[str, Any]:
        """Return the columns of `schema.LOSSES` that come from playing it."""
        marks, load, beside = self.marks, self.written[volume], self.beside[volume]
        return {
            "online": "yes" if is_online(self.health[volume]) else "no",
            "blocks_written": int(load["written"]),
            "blocks_verified": int(load["verified"] or 0),
            "noticed_s": round(marks["noticed"] - marks["lost"], 3),
            "resync_s": round(marks["whole"] - marks["back"], 3),
            "resync_bytes": self.copied.get(volume),
            "iops_before": rate(load, first_s(load), marks["lost"]),
            "iops_during": rate(load, marks["noticed"], marks["ended"]),
            "iops_resync": rate(beside, marks["back"], marks["whole"]),
        }


def entry_of(rig: Rig, loss: Loss) -> dict[str, Any]:
    """Return the manifest's entry of the volume that a loss is about, the first of several."""
    volume = rig.scenario.volume_named(loss.volume)
    entry: dict[str, Any] = rig.replicate["volumes"][rig.scenario.members_of(volume)[0]]
    return entry


def is_online(health: Row) -> bool:
    """Tell whether a volume can be used, by what Storage Spaces says of it."""
    return health["health"] != "absent" and "Detached" not in health["status"]


def skew_s(node_s: float, here_s: float) -> float:
    """Return what a node's clock is ahead of this one; 0 where it is less than can be determined."""
    ahead_s = node_s - here_s
    return ahead_s if abs(ahead_s) > LARGEST_SKEW_S else 0.0


def first_s(load: Row) -> float:
    """When the load's first block was acknowledged, to the bin."""
    place = next((place for place, count in enumerate(load["counts"]) if count), 0)
    return float(load["began_s"]) + place * float(load["bin_s"])


def rate(load: Row, from_s: float, to_s: float) -> float | None:
    """Return the acknowledged blocks a second in a stretch of time; None where it is shorter than a bin.

    Of a bin that reaches beyond it the part that lies within is counted.
    """
    began_s, bin_s = float(load["began_s"]), float(load["bin_s"])
    if to_s - from_s < bin_s:
        return None
    blocks = 0.0
    for place, count in enumerate(load["counts"]):
        start = began_s + place * bin_s
        blocks += count * max(0.0, min(to_s, start + bin_s) - max(from_s, start)) / bin_s
    return round(blocks / (to_s - from_s), 2)


def bytes_of(jobs: Iterable[Row], column: str, volumes: Iterable[str]) -> dict[str, float]:
    """Sum the bytes of jobs by the volume that they repair, which their names begin with."""
    sums: dict[str, float] = {}
    names = sorted(volumes, key=len, reverse=True)
    for job in jobs:
        volume = next((name for name in names if str(job["name"]).lower().startswith(name.lower())), None)
        if volume is not None:
            sums[volume] = sums.get(volume, 0.0) + float(job[column] or 0)
    return sums
