"""Truths planted in volumes, recovered from a played run: `make bench-volumes`.

A seed, which is printed, draws a profile: latency, its spread, the hop between nodes, the share of reads that
the owner answers, how far caps lie from nominal. A whole run is played on it, and the analysis is held
against `truth.json`: knees, caps, the cost of a write's slowest copy, the local share, and two volumes of one
kind. Needs a machine of its own: what else runs there adds to latencies and takes from rates.
"""

import argparse
import json
import math
import random
import secrets
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pandas as pd

from diskbook.cloud import kinds
from diskbook.clusters.analysis import sweep
from diskbook.measure.runs import stages
from diskbook.report.analysis.run import Analysis, analyse

SCENARIO = Path(__file__).with_name("planted-volumes.toml")
KNEE, CAP, SHARE, HOST = 0.05, 0.005, 0.03, 0.08
"""What may be missed: parts of a knee, a cap and a ratio outside their intervals, and of a share of reads.

A host adds to latencies, and so to knees; caps have the catching up of the emulator's buckets, 10 ms of 2 s.
"""
PLAYED_IOPS = 12_000.0
"""Most that two cores play undistorted; a cap above it is not looked for."""
PROFILE = Path(__file__).with_name("planted-volumes-profile.toml")


@dataclass(frozen=True)
class Row:
    """A planted value and what the analysis says of it; `low` and `high` are its interval, if it has one."""

    what: str
    planted: float
    measured: float
    low: float
    high: float
    margin: float
    is_share: bool = False

    @property
    def is_found(self) -> bool:
        """Whether the value lies in the interval, or the estimate within the margin of it."""
        off = abs(self.measured - self.planted)
        margin = self.margin if self.is_share else self.margin * self.planted
        return self.low <= self.planted <= self.high or off <= margin

    @property
    def text(self) -> str:
        verdict = "ok" if self.is_found else "MISSED"
        interval = "" if math.isnan(self.low) else f"{self.low:.4g} .. {self.high:.4g}"
        return f"{self.what:<34}{self.planted:>10.4g}{self.measured:>10.4g}  {interval:<20} {verdict}"


def profile(seed: int) -> str:
    """Draw a profile, as its file."""
    draw = random.Random(seed)
    return PROFILE.read_text("utf-8").format(
        mean_ms=round(draw.uniform(3.0, 5.0), 2),
        sigma=round(draw.uniform(0.1, 0.3), 2),
        hop_ms=round(draw.uniform(0.05, 0.5), 2),
        local_share=draw.choice([1.0, 0.6, round(1 / 3, 4)]),
        iops_factor=round(draw.uniform(0.9, 1.05), 3),
    )


def played(folder: Path, seed: int) -> Analysis:
    """Play the scenario on the profile of a seed, and analyse the run."""
    return measured(folder, profile(seed), SCENARIO, seed)


def measured(folder: Path, planted: str, scenario: Path, seed: int) -> Analysis:
    """Measure a scenario on an emulator with a planted profile (TOML), and analyse the run."""
    file = folder / "planted.toml"
    file.write_text(planted, "utf-8")
    emulator = {"profile": str(file), "seed": seed, "time_scale": 0.0}
    run = stages.begin(str(folder / "planted"), str(scenario), "emulator", "quick", None, emulator)
    try:
        kinds.of(run).start(run, owner=True)
        stages.provision(run)
        stages.benchmark(run)
    finally:
        stages.teardown(run)
    return analyse(run)


def rows(a: Analysis, truth: Mapping[str, Any]) -> Iterator[Row]:
    """Hold what an analysis says against the truth of its run."""
    volumes = {arm.name: _volume(truth, arm.volume) for arm in a.scenario.arm}
    knees = sweep.chosen_knees(a)
    for place in knees.to_dict("records"):
        volume, kind = volumes[place["arm"]], place["kind"]
        cap = _cap(volume, kind == "write")
        if cap > PLAYED_IOPS:
            continue
        name = f"{place['arm']}, 4K {kind}"
        bounds = place["cap_iops_low"], place["cap_iops_high"]
        yield Row(f"cap of {name}", cap, place["cap_iops"], *bounds, CAP)
        depth = cap * _expected(volume)[f"{kind}_mean_ms"] / 1000.0
        yield Row(f"knee of {name}", depth, place["knee"], place["low"], place["high"], KNEE)
    share = volumes["mirror"]["settings"]["local_share"]
    known = sweep.wire_shares(a)
    for row in known[known["share"].notna()].to_dict("records"):
        what = f"local share, {row['arm']}, by {row['by']}"
        yield Row(what, share, row["share"], math.nan, math.nan, SHARE, is_share=True)
    yield from _ratios(a.comparisons, volumes)


def _ratios(comparisons: pd.DataFrame, volumes: Mapping[str, Mapping[str, Any]]) -> Iterator[Row]:
    """Ratios of single I/Os, in the scope of these volumes: what else their machines drew is in the truth."""
    these = comparisons[comparisons["scope"] == "these disks"]
    for row in these.to_dict("records"):
        key = f"{row['direction']}_mean_ms"
        planted = _expected(volumes[row["arm"]])[key] / _expected(volumes[row["base_arm"]])[key]
        what = f"{row['arm']} / {row['base_arm']}, 4K {row['direction']}"
        yield Row(what, planted, row["ratio"], row["ci_low"], row["ci_high"], HOST)


def _volume(truth: Mapping[str, Any], name: str) -> dict[str, Any]:
    volume: dict[str, Any] = next(item for item in truth["volumes"] if item["name"] == name)
    return volume


def _expected(volume: Mapping[str, Any]) -> Mapping[str, float]:
    """Mean latencies at the node that runs the load, the first one."""
    means: Mapping[str, float] = next(iter(volume["expected"].values()))
    return means


def _cap(volume: Mapping[str, Any], is_write: bool) -> float:
    places = {"block_bytes": 4096, "write_share": float(is_write), "remote": False, "spent": False}
    caps = [item for item in volume["caps"] if all(item[key] == value for key, value in places.items())]
    return float(caps[0]["iops"])


def main() -> int:
    """Play, and print a row a truth; 1 where one was missed."""
    parser = argparse.ArgumentParser(description="recover what was planted in volumes from a played run")
    parser.add_argument("--seed", type=int, default=secrets.randbelow(10**6), help="of the profile")
    seed = parser.parse_args().seed
    print(f"seed {seed}{profile(seed).replace(chr(10), chr(10) + '  ').rstrip()}\n", flush=True)
    with TemporaryDirectory(prefix="diskbook-bench-") as place:
        a = played(Path(place), seed)
        truth = json.loads((a.run.folder / "truth.json").read_text("utf-8"))
        held = list(rows(a, truth))
    print(f"{'':<34}{'planted':>10}{'measured':>10}  interval")
    for row in held:
        print(row.text)
    return int(any(not row.is_found for row in held))


if __name__ == "__main__":
    sys.exit(main())
