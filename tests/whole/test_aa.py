"""A/A: the same disk entered as two arms must not differ, but for the false alarms that 95 % allows."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from checks import simulate
from checks.simulate import LEVELS, Design, Level, Truth
from diskbook.design.model import Comparison
from diskbook.design.vocabulary import Scope, Verdict
from diskbook.stats import ratios
from diskbook.stats.compare import compare

pytestmark = pytest.mark.whole

N_RUNS = 160
MOST = 0.07
STRICT = 0.001
"""A margin that no run is precise enough for, so that no difference is hidden by "equivalent"."""


def same_disk(level: Level, design: Design, overhead: float = 0.0) -> list[pd.DataFrame]:
    """Tables of runs in which both arms are one disk; a workload name of its own for each."""
    rng = np.random.default_rng(20)
    runs = simulate.simulate(replace(level, disk=0.0), design, Truth(overhead), N_RUNS, rng)
    tables = [simulate.trials(runs, number, f"run-{number}") for number in range(N_RUNS)]
    return [table.assign(disk_id="disk-" + table["machine_id"]) for table in tables]


def headline(workload: str, margin: float) -> Comparison:
    return Comparison(
        arm="arm", base_arm="base", workload=workload, pairing="same-disk", family="headline", margin=margin
    )


def shares(tables: list[pd.DataFrame], margin: float) -> tuple[dict[str, float], pd.DataFrame]:
    """Share of runs that differ, by scope, and all verdicts.

    All runs go through `compare` in one call, each a workload of its own. They are not one run's families,
    so each is adjusted as the only comparison of its family.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ratios, "adjust", lambda p, family, scope: p.map(lambda one: ratios.holm([one])[0]))
        items = [headline(f"run-{number}", margin) for number in range(len(tables))]
        table = compare(pd.concat(tables, ignore_index=True), items).table
    found = table.pivot(index="workload", columns="scope", values="verdict")
    return (found == Verdict.DIFFERENCE).mean().to_dict(), found


CASES = {
    "B, one replicate": (LEVELS[1], Design(1, 4)),
    "D, three replicates": (LEVELS[3], Design(3, 3)),
    "C, one trial in ten failed": (LEVELS[2], Design(2, 5, 1, 0.1)),
}


@pytest.mark.parametrize(("level", "design"), CASES.values(), ids=CASES)
def test_the_same_disk_twice_rarely_differs(level: Level, design: Design) -> None:
    tables = same_disk(level, design)
    strict, found = shares(tables, STRICT)
    assert strict[Scope.THESE] <= MOST and strict[Scope.LIKE_THESE] <= MOST
    assert strict[Scope.THESE] > 0.003  # intervals so wide that nothing ever differs would say nothing
    for number in range(0, N_RUNS, 80):  # alone in its run, a comparison gets the same verdict
        one = compare(tables[number], [headline(f"run-{number}", STRICT)]).table.set_index("scope")["verdict"]
        assert one.to_dict() == found.loc[f"run-{number}"].to_dict()


def test_with_the_usual_margin_the_same_disk_is_equivalent() -> None:
    differ, found = shares(same_disk(LEVELS[1], Design(1, 4)), 0.05)
    assert differ[Scope.THESE] <= MOST
    assert (found[Scope.THESE] == Verdict.EQUIVALENT.worded(0.05)).mean() > 0.9


def test_a_planted_difference_is_seen() -> None:
    found, _ = shares(same_disk(LEVELS[1], Design(5, 5), overhead=0.02)[:40], STRICT)
    assert found[Scope.THESE] > 0.9 and found[Scope.LIKE_THESE] > 0.9


def test_all_of_one_arm_before_the_other_is_refused() -> None:
    """Without interleaving a drift passes for a difference; the gate says so."""
    runs = simulate.simulate(LEVELS[3], Design(1, 4), Truth(0.0), 1, np.random.default_rng(3))
    table = simulate.trials(runs, 0, "run-0").sort_values(["arm", "block", "repeat"], ignore_index=True)
    started = pd.Timestamp("2026-01-01", tz="UTC") + pd.to_timedelta(np.arange(len(table)), unit="min")
    found = compare(table.assign(started_utc=started), [headline("run-0", STRICT)]).table
    assert set(found["verdict"]) == {Verdict.INVALID}
