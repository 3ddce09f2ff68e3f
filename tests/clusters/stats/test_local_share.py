"""Where reads are answered: the planted share is recovered from counters, and from plateaus by themselves."""

from __future__ import annotations

import math

import pandas as pd
import pytest

from diskbook.clusters.stats import wire as wire_counts
from diskbook.stats import limits
from support import s2d

HOLDERS = wire_counts.holders(s2d.scenario())


def shares(made: s2d.MadeUp) -> tuple[pd.DataFrame, pd.DataFrame]:
    totals, cells = limits.trial_totals(made.trials), limits.label_cells(made.trials)
    wire = wire_counts.on_the_wire(totals, made.counters, HOLDERS)
    tables = wire_counts.by_counters(wire, HOLDERS), wire_counts.by_plateaus(totals, cells, HOLDERS)
    return tuple(table.set_index(wire_counts.PLACE) for table in tables)  # type: ignore[return-value]


@pytest.mark.long
@pytest.mark.parametrize("planted", [1.0, 0.6, 1 / 3])
def test_counters_tell_the_planted_share(planted: float) -> None:
    counted, _ = shares(s2d.run(truth=s2d.Truth(local_share=planted)))
    assert counted["share"].to_numpy() == pytest.approx(planted, abs=0.03) and (counted["reason"] == "").all()
    assert counted["headers"].to_numpy() == pytest.approx(1.02, abs=0.001)
    assert set(counted.index.get_level_values("arm")) == set(HOLDERS)


@pytest.mark.long
@pytest.mark.parametrize("planted", [1.0, 0.6])
def test_plateaus_tell_it_without_counters(planted: float) -> None:
    _, plateaus = shares(s2d.run(truth=s2d.Truth(local_share=planted)))
    row = plateaus.loc[("s2d-3", 65536)]
    assert row["share"] == pytest.approx(planted, abs=0.03)
    assert row["low"] <= row["share"] <= row["high"] + 1e-9 and row["n_blocks"] == 5
    assert plateaus.loc[("s2d-3-remote", 4096), "reason"] == wire_counts.NO_PLATEAU


def test_two_blocks_have_no_interval() -> None:
    counted, plateaus = shares(s2d.run(blocks=2))
    assert counted["share"].to_numpy() == pytest.approx(0.6, abs=0.03) and counted["low"].isna().all()
    assert math.isnan(plateaus.loc[("s2d-3", 65536), "high"])


def test_without_counters_nothing_is_counted() -> None:
    made = s2d.run(blocks=2)
    none = made.counters.iloc[:0]
    wire = wire_counts.on_the_wire(limits.trial_totals(made.trials), none, HOLDERS)
    assert wire.empty and wire_counts.by_counters(wire, HOLDERS).empty


def test_counts_that_hold_something_else_tell_nothing() -> None:
    made = s2d.run(blocks=2)
    noisy = made.counters.assign(after=made.counters["after"] * 3)
    wire = wire_counts.on_the_wire(limits.trial_totals(made.trials), noisy, HOLDERS)
    counted = wire_counts.by_counters(wire, HOLDERS)
    assert counted["share"].isna().all() and (counted["reason"] == wire_counts.NO_WRITES).all()
