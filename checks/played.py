"""Truths that tempt an analysis into a false verdict, played by the emulator: `make played`.

Limits that no table names lie at 30 to 95 % of the nominal ones: on both disks of a comparison, on one of
them, on one machine of two. One disk gets slower by 40 % in the run, the disks of one pair stall for a second
in twenty, and every disk has its own noise. Disks of one kind are slow after an attach. A real fio
measures each run, and each verdict on a latency is compared with the ratio that was planted.

To play another truth, add an entry to `CASES`.
"""

import argparse
import math
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import pandas as pd

from checks import planted_volumes
from diskbook.design.vocabulary import Scope, Verdict
from diskbook.report.analysis.run import Analysis

SHARES = (30, 50, 70, 85, 95)
"""Limits that are played, in % of the nominal one."""
NOMINAL_IOPS = 5000
BASE_MS, SLOWER = 2.2, 1.2
"""Planted mean latency of the base disks, and the factor on it of the slower ones."""
DEPTHS = (1, 8, 12)
SLACK = 0.03
"""How far the emulating computer's own latency may move a ratio."""
MARGIN = 0.05
LEAST_SEEN = 0.8
"""Share of due verdicts below which a run is too disturbed to show that none is false."""
SEED = 11
PROFILE, SCENARIO = (Path(__file__).with_name(f"played-{name}.toml") for name in ("profile", "scenario"))

_DISK = """
[[disk]]
name = "{name}"
sku = "Premium_{kind}"
size_gib = 1024
{zone}
[[arm]]
name = "{name}"
disk = "{name}"
machine = "vm1"
"""
_SECOND_MACHINE = """
[[machine]]
name = "vm2"
size = "Standard_D8s_v5"
zone = "1"
"""
_SECOND_ARM = """
[[arm]]
name = "{name}-vm2"
disk = "{name}"
machine = "vm2"
"""
_LOAD = """
[[workload]]
name = "read-qd{depth}"
block_size = "4K"
write_pct = 0
queue_depth = {depth}
"""
_COMPARISON = """
[[comparison]]
arm = "{arm}"
base_arm = "{base}"
workload = "read-qd{depth}"
pairing = "same-machine"
margin = {margin}
"""


@dataclass(frozen=True)
class Pair:
    """Two disks on one machine.

    - `name`: ends the names of both: `zrs-50` and `lrs-50`.
    - `ratio`: planted ratio of their latencies at every depth: 1, or `SLOWER` where the first one is a ZRS
      disk.
    - `limit`: hidden limit in % of the nominal one; NaN without.
    - `must_say`: word that a warning must have where there is a verdict.
    - `is_steady`: whether nothing moves its latencies but noise.
    """

    name: str
    ratio: float = SLOWER
    limit: float = math.nan
    must_say: str = ""
    is_steady: bool = True

    @property
    def arms(self) -> tuple[str, str]:
        """Names of arm and base arm."""
        return f"{'zrs' if self.ratio > 1 else 'same'}-{self.name}", f"lrs-{self.name}"


@dataclass(frozen=True)
class Case:
    """One run: its pairs, what is planted in their disks, and how much is measured.

    With a time to settle each disk is measured on a second machine too, so that it is attached in each block.
    """

    name: str
    pairs: tuple[Pair, ...]
    planted: str
    blocks: int = 3
    replicates: int = 1
    depths: tuple[int, ...] = DEPTHS
    runtime_s: float = 0.6
    settle_s: float = 0.0
    design: str = ""

    @property
    def profile(self) -> str:
        """The emulator's profile, as its file."""
        text = PROFILE.read_text("utf-8").format(base_ms=BASE_MS, slower_ms=round(BASE_MS * SLOWER, 4))
        return text + self.planted

    @property
    def scenario(self) -> str:
        """The scenario, as its file."""
        numbers = f"replicates = {self.replicates}\nsettle_s = {self.settle_s}\n{self.design}"
        parts = [SCENARIO.read_text("utf-8"), numbers]
        parts += [_SECOND_MACHINE] * (self.settle_s > 0)
        parts += [_LOAD.format(depth=depth) for depth in self.depths]
        for pair in self.pairs:
            for name in pair.arms:
                kind = "ZRS" if name.startswith("zrs") else "LRS"
                parts.append(_DISK.format(name=name, kind=kind, zone='zone = "1"\n' * (kind == "LRS")))
                parts += [_SECOND_ARM.format(name=name)] * (self.settle_s > 0)
            arm, base = pair.arms
            parts += [
                _COMPARISON.format(arm=arm, base=base, depth=depth, margin=MARGIN) for depth in self.depths
            ]
        preset = f"blocks = {self.blocks}\nruntime_s = {self.runtime_s}\n"
        parts.append(f"\n[preset.quick.all_workloads]\nworking_set_gib = 0.03125\nseries_s = 0.05\n{preset}")
        return "".join(parts)


def _limits(pattern: str) -> str:
    """Limits of the disks of all pairs: a table for each share, where `{share}` stands in the pattern."""
    tables = [f'[disks."{pattern.format(share=share)}"]\ncaps_factor = {share / 100}\n' for share in SHARES]
    return "\n" + "\n".join(tables)


_LIMITED = tuple(Pair(f"{share}", limit=share) for share in SHARES)
CASES = (
    Case("limits on both arms", _LIMITED, _limits("*-{share}")),
    Case("limits on the faster arm", _LIMITED, _limits("*-lrs-{share}")),
    Case("limits on one machine of two", _LIMITED, _limits("r2-*-{share}"), blocks=2, replicates=2),
    Case(
        "drift, stalls and noise of each disk's own",
        (
            Pair("drift", must_say="drift", is_steady=False),
            Pair("stalls", is_steady=False),
            Pair("noise"),
            Pair("equal", ratio=1.0),
        ),
        f"""
[disks."*-zrs-drift"]
rise_a_minute = 0.09

[disks."*-stalls"]
stall_every_s = 20
stall_factor = {round(1000 / BASE_MS)}
""",
        blocks=8,
        depths=(1, 8),
        runtime_s=1.0,
    ),
    Case(
        "an attach effect on one kind",
        (Pair("attach", must_say="attach effect", is_steady=False), Pair("equal", ratio=1.0)),
        """
[attach]
slow_s = 4
factor = 1.5
sku = "Premium_ZRS"
""",
        blocks=6,
        depths=(1, 8),
        settle_s=5.0,
    ),
)


@dataclass(frozen=True)
class Row:
    """A verdict on a latency beside what was planted.

    - `pair`, `depth`: what was compared.
    - `verdict`, `ratio`, `low`, `high`, `warnings`: what the analysis says.
    """

    pair: Pair
    depth: int
    verdict: str
    ratio: float
    low: float
    high: float
    warnings: str

    @property
    def is_decided(self) -> bool:
        """Whether the arms are called different or equal."""
        return self.verdict == Verdict.DIFFERENCE or self.verdict.startswith(Verdict.EQUIVALENT)

    @property
    def is_false(self) -> bool:
        """Whether the verdict contradicts the planted ratio, which is the least one where it rises."""
        if not self.is_decided:
            return False
        if self.verdict != Verdict.DIFFERENCE:
            return self.pair.ratio > 1 + MARGIN
        above = self.low > self.pair.ratio * (1 + SLACK) and not self.pair.must_say
        return self.pair.ratio == 1 or above or self.high < self.pair.ratio / (1 + SLACK)

    @property
    def is_unsaid(self) -> bool:
        """Whether there is a verdict, without the warning that it needs."""
        return self.is_decided and self.pair.must_say not in self.warnings

    @property
    def asks(self) -> tuple[float, float]:
        """How many times their hidden limit the two disks would do at this depth; NaN without one."""
        limit = NOMINAL_IOPS * self.pair.limit / 100
        free = [1e3 * self.depth / (BASE_MS * ratio) for ratio in (self.pair.ratio, 1.0)]
        return free[0] / limit, free[1] / limit

    @property
    def is_due(self) -> bool:
        """Whether only a busy computer can keep the verdict back: steady single I/Os far below a limit."""
        return self.depth == 1 and self.pair.is_steady and not self.asks[1] > 0.5

    @property
    def text(self) -> str:
        """One line: what was planted, and what the analysis says."""
        interval = "" if math.isnan(self.ratio) else f"{self.ratio:.3f} ({self.low:.3f} to {self.high:.3f})"
        asks = "" if math.isnan(self.pair.limit) else " and ".join(f"{times:.2f}" for times in self.asks)
        planted = f"  {self.pair.name:<8}qd{self.depth:<4}{asks:<15}{self.pair.ratio:<8.2f}"
        mark = "  FALSE" * self.is_false + f"  WITHOUT '{self.pair.must_say}'" * self.is_unsaid
        return f"{planted}{interval:<26}{self.verdict}{mark}"


HEAD = f"  {'pair':<8}{'load':<6}{'asks / limit':<15}{'planted':<8}{'ratio':<26}verdict"


def rows(case: Case, comparisons: pd.DataFrame) -> Iterator[Row]:
    """Verdicts on the latencies of a case's own disks: two replicates at most say nothing about others."""
    pairs = {pair.arms[0]: pair for pair in case.pairs}
    chosen = comparisons[(comparisons["metric"] == "lat_mean_ms") & (comparisons["scope"] == Scope.THESE)]
    columns = ["arm", "workload", "verdict", "ratio", "ci_low", "ci_high", "warnings"]
    for arm, load, *words_and_numbers in chosen[columns].itertuples(index=False, name=None):
        yield Row(pairs[arm], int(load.removeprefix("read-qd")), *words_and_numbers)


def play(case: Case, folder: Path) -> Analysis:
    """Measure a case on an emulator of its own, and analyse the run."""
    scenario = folder / "scenario.toml"
    scenario.write_text(case.scenario, "utf-8")
    return planted_volumes.measured(folder, case.profile, scenario, SEED)


def main(arguments: Sequence[str] | None = None) -> int:
    """Play all cases, and print a line a verdict; returns what `conclusion` does."""
    parser = argparse.ArgumentParser(prog="python -m checks.played", description=__doc__)
    parser.add_argument("--case", choices=range(1, len(CASES) + 1), type=int, help="play this one alone")
    chosen = parser.parse_args(arguments).case
    every: list[Row] = []
    for case in CASES[chosen - 1 : chosen] if chosen else CASES:
        began = time.monotonic()
        with TemporaryDirectory(prefix="diskbook-played-") as place:
            judged = list(rows(case, play(case, Path(place)).comparisons))
        print(
            f"{case.name} ({time.monotonic() - began:.0f} s)", HEAD, *(row.text for row in judged), sep="\n"
        )
        sys.stdout.flush()
        every += judged
    return conclusion(every)


def conclusion(every: Sequence[Row]) -> int:
    """Print how many verdicts are false; 1 where one is, lacks its warning, or too few of those due came."""
    wrong, unsaid = sum(row.is_false for row in every), sum(row.is_unsaid for row in every)
    decided = sum(row.is_decided for row in every)
    due = [row.is_decided for row in every if row.is_due]
    print(f"{wrong} of {len(every)} verdicts false, {unsaid} without their warning; {decided} decided")
    disturbed = sum(due) < LEAST_SEEN * len(due)
    if disturbed:
        print(f"only {sum(due)} of {len(due)} pairs of single I/Os got theirs: repeat it on a quiet computer")
    return int(wrong + unsaid > 0 or disturbed)


if __name__ == "__main__":
    sys.exit(main())
