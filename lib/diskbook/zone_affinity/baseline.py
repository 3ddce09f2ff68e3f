"""Read latencies known for a zone-redundant disk: learned from its own zones, from a run, or by hand."""

import contextlib
import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from diskbook.facts import files
from diskbook.facts.errors import DiskbookError, UsageError, unknown
from diskbook.results import tables
from diskbook.results.run import now_utc, open_run
from diskbook.stats.zone_probe import FARTHER, NEAREST, compare, probe as probe_run
from diskbook.zone_affinity.probe import Probe

SCHEMA = "diskbook zones 1"


@dataclass(frozen=True)
class Baseline:
    """Read latencies at queue depth 1 known for the disk, in ms; `source` says from where.

    `near_ms` from the nearest zone (`zone`, where that is known of this very disk), `far_ms` from the
    nearest of the others, `farthest_ms` from the last of them (None: not known).
    """

    near_ms: float
    far_ms: float
    source: str
    farthest_ms: float | None = None
    zone: str = ""

    @property
    def middle_ms(self) -> float:
        """Geometric mean of near and far."""
        return math.sqrt(self.near_ms * self.far_ms)

    @property
    def lowest_ms(self) -> float:
        """Below this no zone accounts for it: as far below near as far lies above it."""
        return self.near_ms**2 / self.far_ms

    @property
    def highest_ms(self) -> float:
        """Above this no zone accounts for it: as far above the farthest."""
        return math.inf if self.farthest_ms is None else self.farthest_ms * self.far_ms / self.near_ms


def given(name: str | None, disk: str | None, near_ms: float | None, far_ms: float | None) -> Baseline:
    """Take the one baseline that a user gave: a file that `learn` wrote, a run, or two numbers.

    Raises UsageError when there is not one, or it does not tell zones apart.
    """
    if name is not None and near_ms is None and far_ms is None:
        return of_file(Path(name)) if Path(name).is_file() else of_run(name, disk)
    if name is None and near_ms is not None and far_ms is not None:
        return by_hand(near_ms, far_ms)
    raise UsageError("give --baseline with a file of --learn or a run, or both --near-ms and --far-ms")


def of_run(name: str, disk: str | None = None) -> Baseline:
    """Take the baseline from a run that read a zone-redundant disk from two zones or more.

    - `name`: name or folder of the run.
    - `disk`: name of the disk in its scenario; needed where it has several such disks.

    Raises UsageError when the run has no such disk, or its nearest zone is not clear.
    """
    run = open_run(name)
    trials = tables.rebuilt(run).trials
    pairs = trials[["disk_id", "arm"]].drop_duplicates().itertuples(index=False, name=None)
    disk_of = {arm.name: arm.disk for arm in run.scenario.arm}
    names = {str(disk_id): disk_of[arm] for disk_id, arm in pairs}
    probed = probe_run(trials)
    probed = probed.assign(disk=probed["disk_id"].map(names))
    known = sorted(set(probed["disk"].dropna()))
    if not known:
        raise UsageError(f"run {name} read no disk from two zones; measure one from all zones first")
    if disk is None and len(known) > 1:
        raise UsageError(
            f"run {name} read several disks from more than one zone: "
            f"name one with --disk ({', '.join(known)})"
        )
    chosen = disk or known[0]
    if chosen not in known:
        raise unknown("disk", chosen, known, f"run {name}")
    of_disk = probed[probed["disk"] == chosen]
    clear = of_disk.loc[of_disk["verdict"] == NEAREST, "replicate"]
    rows = of_disk[of_disk["replicate"] == clear.min()]  # each replicate has a disk of its own
    if rows.empty:
        raise UsageError(f"run {name}: the nearest zone of {chosen} is not clear; measure more blocks")
    # What near and far take holds for disks of this kind; which zone is the nearest, for the run's own only.
    source = f"run {run.name}, disk {chosen} ({run.manifest['provenance']})"
    return replace(_of_rows(rows, source), zone="")


def by_hand(near_ms: float, far_ms: float) -> Baseline:
    """Make a baseline of two numbers.

    Raises UsageError when they do not lie apart.
    """
    if not 0 < near_ms < far_ms < math.inf:
        raise UsageError(
            f"--near-ms {near_ms:g} --far-ms {far_ms:g}: the first must be above 0 and below the second"
        )
    return Baseline(near_ms, far_ms, "numbers given by hand")


def of_file(path: Path) -> Baseline:
    """Take the baseline from a file that `learn` wrote.

    Raises UsageError when it is not one, has one zone only, or the nearest zone is not clear.
    """
    zones = _read(path)
    if len(zones) < 2:
        raise UsageError(f"{path} knows one zone only; --learn it from another zone, at best from all three")
    rows = compare(_logs(zones))
    if not (rows["verdict"] == NEAREST).any():
        raise UsageError(
            f"{path}: the nearest zone is not clear; --learn the zones again with more --seconds"
        )
    oldest = min(str(zone["time_utc"])[:10] for zone in zones.values())
    emulated = ", emulated" if any(zone["emulated"] for zone in zones.values()) else ""
    return _of_rows(rows, f"{path.name} of {oldest}{emulated}")


def learn(path: Path, zone: str, probe: Probe, latencies_ms: Sequence[float]) -> pd.DataFrame:
    """Keep what reads from a zone take, in place of what was known of it; compare the zones known.

    Returns one row a zone, as `diskbook.stats.zone_probe.compare` has them.

    Raises UsageError, DiskbookError when the file is another one, or cannot be written; it is left as it is.
    """
    with held(path):
        zones = _read(path) if path.exists() else {}
        entry = {"lat_ms": list(latencies_ms), "emulated": probe.emulated, "time_utc": now_utc()}
        zones = {**zones, zone: {"device": probe.device, "via": probe.via, **entry}}
        files.write_atomic(path, json.dumps({"schema": SCHEMA, "zones": zones}, indent=1) + "\n")
    return compare(_logs(zones))


@contextlib.contextmanager
def held(path: Path) -> Iterator[None]:
    """Have a file for one process while it is read and written again; others wait.

    Raises DiskbookError when it cannot be written.
    """
    try:
        busy = DiskbookError(f"{path} is being written by another process")
        with files.locked(path.parent / f".{path.name}.lock", busy, patience_s=math.inf):
            yield
    except OSError as error:
        raise DiskbookError(f"{path} cannot be written: {error.strerror}") from None


def _read(path: Path) -> dict[str, dict[str, Any]]:
    """Zones of a file of ours; each has its latencies in ms, the time, and whether it is emulated."""
    try:
        document = json.loads(path.read_text("utf-8"))
        zones: dict[str, dict[str, Any]] = document["zones"]
        whole = document["schema"] == SCHEMA and all(
            min(zone["lat_ms"]) > 0 and {"emulated", "time_utc"} <= set(zone) for zone in zones.values()
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        whole = False
    if not whole:
        raise UsageError(f"{path} was not written by --learn, or is damaged; learn the zones into a new file")
    return zones


def _logs(zones: dict[str, dict[str, Any]]) -> pd.DataFrame:
    """Log latencies, [read, zone], of as many reads as all zones have."""
    shortest = min(len(zone["lat_ms"]) for zone in zones.values())
    return pd.DataFrame({name: np.log(zone["lat_ms"][:shortest]) for name, zone in zones.items()})


def _of_rows(rows: pd.DataFrame, source: str) -> Baseline:
    nearest = rows[rows["verdict"] == NEAREST].iloc[0]
    others = rows.loc[rows["verdict"] == FARTHER, "lat_ms"]
    near, far, farthest = float(nearest["lat_ms"]), float(others.min()), float(others.max())
    return Baseline(near, far, source, farthest, str(nearest["zone"]))
