"""Whole runs played with a planted change: where planned looks stop them, and what runs pooled say.

Part of `make played`. A seed, which is printed, draws the change of every run that is pooled; its spread
between runs is held against what `db.pool` estimates. No run may find a difference where none was planted.
"""

import argparse
import math
import secrets
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

import diskbook as db
from checks import planted_volumes, played
from checks.played import BASE_MS, PROFILE, Case, Pair
from diskbook.design.vocabulary import Scope, Verdict
from diskbook.report.analysis.run import Analysis
from diskbook.results import plan as plans

LOOKS = (3, 6, 9, 12)
CHANGES = (0.0, 0.05, 0.5)
SPREADS = (0.0, 0.01, 0.03)
"""Standard deviations of the runs' true log ratios."""
RUNS = 5
_PAIR = Pair("pair")


def play(case: Case, change: float, folder: Path, seed: int) -> Analysis:
    """Measure a run in which the first disk is slower by a share."""
    folder.mkdir()
    scenario = folder / "scenario.toml"
    scenario.write_text(case.scenario.replace("margin = ", 'family = "headline"\nmargin = '), "utf-8")
    slower_ms = round(BASE_MS * (1 + change), 6)
    planted = PROFILE.read_text("utf-8").format(base_ms=BASE_MS, slower_ms=slower_ms)
    return planted_volumes.measured(folder, planted, scenario, seed)


def stopped(folder: Path, change: float, seed: int, looks: Sequence[int] = LOOKS) -> tuple[str, bool]:
    """Play a run with looks; say where it stopped and what it found, and whether that is false."""
    case = Case("looks", (_PAIR,), "", blocks=looks[-1], depths=(1,))
    case = replace(case, design=f'looks = {list(looks)}\nlook_unit = "blocks"\n')
    a = play(case, change, folder, seed)
    rows = a.comparisons.query(
        "metric == 'lat_mean_ms' and scope == @scope", local_dict={"scope": Scope.THESE}
    )
    row = rows.iloc[0]
    blocks, early = plans.progress(a.run).whole, plans.early_stop(a.run)
    shown = str(row["verdict"]) == Verdict.DIFFERENCE
    is_false = bool(shown and (change == 0 or row["ci_high"] < 1 + change - played.SLACK))
    interval = f"{row['ratio']:.3f} ({row['ci_low']:.3f} to {row['ci_high']:.3f}), {row['verdict']}"
    return (
        f"  planted {100 * change:+.0f} %: {blocks} of {looks[-1]} blocks, {interval}{'  FALSE' * is_false}; "
        f"{early.rpartition('; ')[2] or 'stopped at no look before the last'}"
    ), is_false


def pooled(folder: Path, spread: float, seed: int, runs: int = RUNS) -> str:
    """Play runs whose true change is drawn; hold their pooled change and spread against the truth."""
    changes = np.random.default_rng(seed).normal(0.1, spread, runs)
    folder.mkdir()
    case = Case("pool", (_PAIR,), "", depths=(1, 4))  # a rate above that of depth 1: it is on no limit
    names = [
        play(case, math.expm1(change), folder / f"run-{number}", seed + number).run.folder
        for number, change in enumerate(changes)
    ]
    result = db.pool(names).compare(*_PAIR.arms, workload="read-qd1")
    components = result.components.set_index("component")["sd_pct"]
    truth, drawn = math.expm1(changes.mean()), changes.std(ddof=1)
    like = result.runs_like_these
    return (
        f"  planted spread {100 * spread:.0f} % (drawn {100 * drawn:.2f} %): s.d. between runs "
        f"{components['run']:.2f} %; true mean {100 * truth:+.1f} %, runs like these {like.text}"
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Play both, a line a row; 1 where a verdict is false."""
    parser = argparse.ArgumentParser(prog="python -m checks.played_runs", description=__doc__)
    parser.add_argument("--seed", type=int, help="play the changes of this seed again")
    seed = parser.parse_args(arguments).seed
    seed = secrets.randbelow(10**6) if seed is None else seed
    print(f"seed {seed}; looks after {', '.join(map(str, LOOKS))} blocks")
    false = 0
    with TemporaryDirectory(prefix="diskbook-played-") as place:
        for number, change in enumerate(CHANGES):
            text, is_false = stopped(Path(place) / f"looks-{number}", change, seed)
            false += is_false
            print(text, flush=True)
        print(f"{RUNS} runs pooled, changes drawn around +10.5 %")
        for number, spread in enumerate(SPREADS):
            print(pooled(Path(place) / f"pool-{number}", spread, seed), flush=True)
    return int(false > 0)


if __name__ == "__main__":
    sys.exit(main())
