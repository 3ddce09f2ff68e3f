"""Does a workload sit in the zone that its zone-redundant disk answers from? For operators to schedule.

Short reads at queue depth 1 where the workload runs are compared with latencies known for the disk: from
the nearest zone, and from the nearest of the others. The verdict goes by the middle between the two on a
log scale, and only where the whole interval of the reads lies on one side. Only reads are made.
"""

import json
import math
import socket
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from diskbook.facts import quantities, table_writers
from diskbook.facts.errors import DiskbookError, UsageError
from diskbook.facts.files import write_atomic
from diskbook.facts.table_writers import rounded
from diskbook.results.run import now_utc
from diskbook.stats import intervals
from diskbook.stats.zone_probe import FARTHER, NEAREST
from diskbook.zone_affinity import baseline as zone_affinity_baseline
from diskbook.zone_affinity.baseline import Baseline
from diskbook.zone_affinity.probe import Probe, measure

HOME, REMOTE, UNCLEAR = "nearest zone", "remote zone", "not clear"
EXIT = {HOME: 0, REMOTE: 10, UNCLEAR: 11}
"""Exit status by verdict; 1 and 2 are errors, as everywhere."""
_BEGINS = '{"verdict": "'  # of every state file


@dataclass(frozen=True)
class Finding:
    """One look: verdict, why it is not clear, latency with its interval, and what changed since the last.

    `place` says where the workload sits: its zone or its machine.
    """

    verdict: str
    lat_ms: float
    ci_low_ms: float | None
    ci_high_ms: float | None
    baseline: Baseline
    device: str
    emulated: bool
    place: str
    time_utc: str
    why: str = ""
    changed: str = ""

    @property
    def exit_code(self) -> int:
        """Status to end with (`EXIT`)."""
        return EXIT[self.verdict]

    @property
    def line(self) -> str:
        """The finding in one line."""
        low, high = self.ci_low_ms, self.ci_high_ms
        interval = (
            "no interval" if low is None or high is None else f"95 % CI {quantities.reach(low, high, '.2f')}"
        )
        base = self.baseline
        zone = f" ({base.zone})" if base.zone else ""
        known = (
            f"known from {base.source}: {base.near_ms:.2f} ms from the nearest zone{zone}, "
            f"{base.far_ms:.2f} ms from the next"
        )
        sentence = f"{self.verdict}: reads from {self.place} take {self.lat_ms:.2f} ms ({interval}; {known})"
        return _told("; ".join(part for part in (sentence, self.why, self.changed) if part), self.emulated)

    @property
    def as_json(self) -> str:
        """The finding as one JSON object on one line."""
        return json.dumps(rounded({**asdict(self), "exit_code": self.exit_code}))


@dataclass(frozen=True)
class Lesson:
    """What is known of a disk's zones after one more was read from."""

    zone: str
    probe: Probe
    zones: pd.DataFrame
    file: str

    exit_code = 0

    @property
    def clear(self) -> bool:
        """Whether the nearest of the zones known is clear."""
        return bool((self.zones["verdict"] == NEAREST).any())

    @property
    def line(self) -> str:
        """The lesson in one line."""
        own = self.zones.set_index("zone").loc[self.zone]
        sentence = f"learned zone {self.zone}: reads take {own['lat_ms']:.2f} ms; {self._nearest()}"
        return _told(sentence, self.probe.emulated)

    @property
    def as_json(self) -> str:
        """The lesson as one JSON object on one line."""
        columns = ["zone", "lat_ms", "ratio", "ci_low", "ci_high", "verdict"]
        rows = table_writers.as_json(table_writers.Table.of(self.zones[columns]))
        about = {"learned": self.zone, "file": self.file, "device": self.probe.device, "zones": rows}
        return json.dumps(rounded({**about, "emulated": self.probe.emulated, "clear": self.clear}))

    def _nearest(self) -> str:
        if len(self.zones) == 1:
            return "no other zone is known yet"
        if not self.clear:
            return "the nearest zone is not clear; learn the zones again with more --seconds"
        nearest = self.zones[self.zones["verdict"] == NEAREST].iloc[0]
        other = self.zones[self.zones["verdict"] == FARTHER].sort_values("ratio").iloc[0]
        return (
            f"the disk answers from zone {nearest['zone']}, as latency has it: the next of the "
            f"{len(self.zones)} zones known: "
            f"{quantities.change(other['ratio'], other['ci_low'], other['ci_high'])}"
        )


def look(probe: Probe, known: Baseline, zone: str = "", state: Path | None = None) -> Finding:
    """Measure, judge, and remember where there is a file for that; `zone` is that of the machine.

    Raises UsageError, DiskbookError when nothing can be measured, or the state file is another one or cannot
    be written.
    """
    place = f"zone {zone}" if zone else probe.via or socket.gethostname()
    if state is None:
        return judge(measure(probe), known, probe, place)
    with zone_affinity_baseline.held(state):
        last_clear(state)  # a wrong file is told before the reads
    latencies = measure(probe)
    with zone_affinity_baseline.held(state):  # two looks at once tell a move once
        finding = judge(latencies, known, probe, place, last_clear(state))
        keep(state, finding)
    return finding


def learn(probe: Probe, zone: str, file: Path) -> Lesson:
    """Measure from this zone, and keep that for later looks.

    Raises UsageError, DiskbookError when the zone has no name, nothing can be measured, or the file is
    another one.
    """
    if not zone:
        raise UsageError("--learn needs --zone: the zone that the machine is in, e.g. --zone 2")
    return Lesson(zone, probe, zone_affinity_baseline.learn(file, zone, probe, measure(probe)), str(file))


def judge(
    latencies_ms: Sequence[float],
    baseline: Baseline,
    probe: Probe,
    place: str,
    earlier: dict[str, Any] | None = None,
) -> Finding:
    """Hold latencies against the baseline. `earlier` is the last clear finding."""
    interval = intervals.t_interval(np.log(np.asarray(latencies_ms, dtype=float)))
    mean, low, high = (math.exp(float(part)) for part in interval[:3])
    verdict, why = _verdict(low, high, baseline)
    some = not math.isnan(low)
    return Finding(
        verdict=verdict,
        lat_ms=mean,
        ci_low_ms=low if some else None,
        ci_high_ms=high if some else None,
        baseline=baseline,
        device=probe.device,
        emulated=probe.emulated,
        place=place,
        time_utc=now_utc(),
        why=why,
        changed=_change(earlier or {}, verdict, place),
    )


def last_clear(state: Path) -> dict[str, Any]:
    """Last finding that was clear, from a state file; empty where there is none yet.

    A file of ours that was cut off, as the fall of a machine may leave it, counts as none.

    Raises DiskbookError when the file is not one of ours; it is not overwritten.
    """
    try:
        text = state.read_text("utf-8") if state.exists() else ""
        if text.startswith(_BEGINS) or _BEGINS.startswith(text):
            return _finding_of(text)
    except (OSError, UnicodeDecodeError):
        pass
    raise DiskbookError(f"{state} is not a state of zone-affinity; name another file with --state")


def keep(state: Path, finding: Finding) -> None:
    """Write the finding to the state file, unless it is not clear: the last clear one counts."""
    if finding.verdict != UNCLEAR:
        write_atomic(state, finding.as_json + "\n")


def _finding_of(text: str) -> dict[str, Any]:
    try:
        finding: dict[str, Any] = json.loads(text)
    except ValueError:
        return {}
    return finding


def _verdict(low: float, high: float, baseline: Baseline) -> tuple[str, str]:
    """Verdict, and why it is not clear."""
    if high < baseline.lowest_ms:
        return UNCLEAR, "faster than from any zone known: a cache, or blocks never written"
    if low > baseline.highest_ms:
        return UNCLEAR, "slower than from any zone known: the disk or the machine is busy, or throttled"
    if high < baseline.middle_ms:
        return HOME, ""
    if low > baseline.middle_ms:
        return REMOTE, ""
    return UNCLEAR, "the reads do not tell the zones apart; more --seconds may"


def _change(earlier: dict[str, Any], verdict: str, place: str) -> str:
    changes = {(REMOTE, HOME): "back", (HOME, REMOTE): "away"}
    way = changes.get((earlier.get("verdict", ""), verdict), "")
    if not way:
        return ""
    if earlier.get("place") != place:
        return f"it moved {way}"
    # The same machine: the disk answers from elsewhere, say, or what slowed it down is over.
    return f"{'near again' if way == 'back' else 'remote now'}, without having moved"


def _told(text: str, emulated: bool) -> str:
    return f"emulated: {text}" if emulated else text
