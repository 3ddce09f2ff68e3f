"""Bytes on the wire of a cluster's nodes: who answers reads by them, and what that says of limits."""

from __future__ import annotations

import pandas as pd
import pytest

from diskbook.clusters.stats import volume_setups, wire
from diskbook.clusters.stats.volume_bound import Shape
from diskbook.clusters.stats.wire import Holder
from diskbook.design import scenario_file
from diskbook.stats import limits
from support import s2d

ARMS = wire.holders(s2d.scenario())


def shares(made: s2d.MadeUp, factor: float = 1.0) -> dict[str, float]:
    counters = made.counters.assign(after=made.counters["after"] * factor)
    return wire.own_shares(wire.on_the_wire(limits.trial_totals(made.trials), counters, ARMS), ARMS)


def test_holders_are_the_arms_on_clustered_volumes() -> None:
    mirror = Shape("three-way", 4, 4, nodes=3)
    assert {"s2d-3": Holder("n1", "n1", mirror), "s2d-3-remote": Holder("n2", "n1", mirror)} == ARMS


@pytest.mark.parametrize("planted", [1.0, 0.6, 1 / 3])
def test_the_planted_share_is_found(planted: float) -> None:
    found = shares(s2d.run(blocks=2, truth=s2d.Truth(local_share=planted)))
    assert found == {arm: pytest.approx(planted, abs=0.03) for arm in ARMS}


def test_counts_that_hold_something_else_tell_nothing() -> None:
    assert shares(s2d.run(blocks=2), factor=3.0) == {}


def test_without_counters_no_share_is_known() -> None:
    made = s2d.run(blocks=2)
    counted = wire.on_the_wire(limits.trial_totals(made.trials), made.counters.iloc[:0], ARMS)
    assert counted.empty and wire.own_shares(counted, ARMS) == {}


def labels(trials: pd.DataFrame) -> tuple[str, str]:
    cell = limits.label_cells(trials).set_index(["arm", "workload"]).loc[("s2d-3", "read-4k-t18")]
    return cell["label"], cell["binds"]


@pytest.mark.long
def test_reads_that_the_owner_answers_alone_meet_its_limits() -> None:
    """Spread over three nodes they could be 60,000 IOPS, at one 20,000: by counters that is known."""
    made = s2d.run(truth=s2d.Truth(local_share=1.0))
    manifest = s2d.manifest(s2d.scenario())
    unknown = volume_setups.with_limits(made.trials, manifest)
    known = volume_setups.with_limits(made.trials, manifest, shares(made))
    assert "limit of 20,000" not in labels(unknown)[1]
    both = "disk limit of 20,000 IOPS and the VM uncached limit of 20,000 IOPS"
    assert labels(known) == ("capped", both)


def test_several_volumes_have_no_owner_whose_counts_would_tell() -> None:
    assert wire.holders(scenario_file.load("nested-resiliency", "quick")) == {}
