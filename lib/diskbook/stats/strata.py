"""Strata: replicates that answer alike. Physical zones, and the zone that a disk answers nearest from.

A zone-redundant disk has a hidden state: reads of 4.3, 2.2 and 3.2 ms from three zones in one article are a
mixture, not noise, and few replicates cannot average it. So where one disk was measured from several zones
in a replicate, the zone of lowest read latency is called nearest. That is inferred from latency; it is never
a property that Azure tells.
"""

import math
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd

from diskbook.stats import ratios

CLEAR = 1.05
"""Factor by which the second-lowest latency must lie above the lowest for a zone to be called nearest."""
INFERRED = "inferred from latency, not told by Azure"
UNCLEAR = "not clear"
ZONES = 3
"""Zones that a zone-redundant disk spans, and may answer from (Microsoft's documentation of ZRS disks)."""

Nearest = dict[tuple[int, str], str]
"""By replicate and disk: the nearest zone, or "not clear"."""


@dataclass(frozen=True)
class Strata:
    """The strata of one comparison.

    - `of_replicate`: stratum in words, by replicate.
    - `inferred`: whether a nearest zone is part of the words.
    - `unprobed`: arms on zone-redundant disks whose nearest zone is not known in every replicate, since the
      disks were not read from all zones: replicates may be a mixture, and nothing in the data shows it.
    - `nearest`: nearest zones of the arms' disks, joined by "+", where all replicates share them; ""
      otherwise. What an interval says then holds for such disks only: of disks of the kind, which answer from
      any zone, it held the ratio in 32 % of runs of two replicates.
    """

    of_replicate: Mapping[int, str]
    inferred: bool
    unprobed: tuple[str, ...] = ()
    nearest: str = ""

    @property
    def mixed(self) -> bool:
        """Whether replicates fall into more than one stratum."""
        return len(set(self.of_replicate.values())) > 1


def nearest_zones(rows: pd.DataFrame) -> Nearest:
    """Infer the nearest zone of every disk that was read from two or more zones in a replicate.

    - `rows`: measured rows of a run; reads with one outstanding count, by their geometric mean latency.
    """
    reads = _single_reads(rows)
    latency = reads["lat_mean_ms"].to_numpy(float, na_value=np.nan)
    usable = np.isfinite(latency) & (latency > 0)
    if not usable.any():
        return {}
    reads = reads[usable].assign(log=np.log(latency[usable]))
    # A load is compared with itself only: what another load adds must not pass for distance.
    keys = ["replicate", "disk_id", "physical_zone", "workload"]
    means = reads.groupby(keys, sort=True)["log"].mean().reset_index()
    by_disk: dict[tuple[int, str], dict[str, dict[str, float]]] = {}
    for replicate, disk, zone, load, log in means.itertuples(index=False, name=None):
        by_disk.setdefault((replicate, disk), {}).setdefault(zone, {})[load] = log
    nearest = {place: _nearest(zones) for place, zones in by_disk.items() if len(zones) > 1}
    return {place: zone for place, zone in nearest.items() if zone}


def probed(rows: pd.DataFrame) -> set[tuple[int, str]]:
    """Replicate and disk of every disk that was read from all zones, with one outstanding."""
    places = _single_reads(rows)[["replicate", "disk_id", "physical_zone"]].drop_duplicates()
    counts = Counter(places[["replicate", "disk_id"]].itertuples(index=False, name=None))
    return {place for place, zones in counts.items() if zones >= ZONES}


def _single_reads(rows: pd.DataFrame) -> pd.DataFrame:
    reads = rows[["replicate", "disk_id", "physical_zone", "workload", "lat_mean_ms"]]
    single = (rows["direction"] == "read") & (rows["outstanding"] == 1)
    return reads[single & rows["physical_zone"].notna()]


def _nearest(zones: Mapping[str, Mapping[str, float]]) -> str:
    """Zone of lowest mean log latency over the loads that all zones share; "" where they share none."""
    shared = set.intersection(*(set(loads) for loads in zones.values()))
    if not shared:
        return ""
    ordered = sorted(
        (sum(loads[load] for load in shared) / len(shared), zone) for zone, loads in zones.items()
    )
    return ordered[0][1] if ordered[1][0] - ordered[0][0] > math.log(CLEAR) else UNCLEAR


def places_of(rows: pd.DataFrame) -> dict[tuple[str, int], tuple[str, str]]:
    """Physical zones (joined by "+") and disk of every arm and replicate."""
    places: dict[tuple[str, int], tuple[set[str], str]] = {}
    names = ["arm", "replicate", "physical_zone", "disk_id"]
    for arm, replicate, zone, disk in rows[names].drop_duplicates().itertuples(index=False, name=None):
        zones, _ = places.setdefault((str(arm), replicate), (set(), str(disk)))
        zones |= {str(zone)} if pd.notna(zone) else set()
    return {key: ("+".join(sorted(zones)), disk) for key, (zones, disk) in places.items()}


def by_arm(places: Mapping[tuple[str, int], tuple[str, str]], nearest: Nearest) -> dict[str, str]:
    """Nearest zones of each arm's disks over the replicates, joined by "+"; arms without any are left out."""
    zones_of_arm: dict[str, set[str]] = {}
    for (arm, replicate), (_, disk) in places.items():
        if (replicate, disk) in nearest:
            zones_of_arm.setdefault(arm, set()).add(nearest[(replicate, disk)])
    return {arm: "+".join(sorted(zones)) for arm, zones in zones_of_arm.items()}


def strata_of(
    arm: str,
    base_arm: str,
    places: Mapping[tuple[str, int], tuple[str, str]],
    nearest: Nearest,
    unprobed: Collection[tuple[str, int]] = (),
) -> Strata:
    """Say for each replicate of a comparison which stratum it belongs to.

    - `places`, `nearest`: from `places_of` and `nearest_zones`.
    - `unprobed`: arm and replicate of zone-redundant disks that were not read from all zones.
    """
    replicates = [number for name, number in places if name == arm and (base_arm, number) in places]
    words, inferred = {}, False
    for replicate in replicates:
        parts = [_words(name, *places[(name, replicate)], replicate, nearest) for name in (arm, base_arm)]
        inferred |= any("nearest" in part for part in parts)
        words[replicate] = "; ".join(dict.fromkeys(filter(None, parts)))
    hidden = [name for name in (arm, base_arm) if any((name, number) in unprobed for number in replicates)]
    return Strata(words, inferred, tuple(hidden), _shared(arm, base_arm, places, nearest, replicates))


def _shared(
    arm: str,
    base_arm: str,
    places: Mapping[tuple[str, int], tuple[str, str]],
    nearest: Nearest,
    replicates: Collection[int],
) -> str:
    """Nearest zones of the disks, where they are those of every replicate."""
    zones = {
        tuple(nearest.get((replicate, places[(name, replicate)][1]), "") for name in (arm, base_arm))
        for replicate in replicates
    }
    return "+".join(dict.fromkeys(filter(None, zones.pop()))) if len(zones) == 1 else ""


def by_stratum(
    strata: Strata, replicates: np.ndarray, log_ratios: np.ndarray, level: float
) -> dict[str, ratios.Estimate]:
    """Estimate a comparison for each stratum apart, "disks like these"; refused with one replicate.

    - `replicates`, `log_ratios`: numbers of the replicates, and log ratios [replicate, block].
    """
    estimates = {}
    for stratum in dict.fromkeys(strata.of_replicate.values()):
        members = [strata.of_replicate.get(int(number)) == stratum for number in replicates]
        estimates[stratum] = ratios.estimates(log_ratios[members], level)[0]
    return estimates


def _words(arm: str, zone: str, disk: str, replicate: int, nearest: Nearest) -> str:
    known = nearest.get((replicate, disk), "")
    answer = f", its disk nearest to {known}" if known and known != UNCLEAR else ""
    answer = ", nearest zone of its disk not clear" if known == UNCLEAR else answer
    return f"{arm} in {zone or 'no known zone'}{answer}"
