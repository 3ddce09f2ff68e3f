"""Set-ups of a scenario's volumes: documented and measured limits, and what a volume's load draws on."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest

from diskbook.clusters.stats import volume_bound, volume_setups
from diskbook.clusters.stats.volume_bound import Load, Rates, Shape
from diskbook.design import scenario_file
from diskbook.design.model import Scenario
from diskbook.facts.units import KIB
from diskbook.stats import credit, diagnosis, limits
from diskbook.stats.diagnosis import Diagnosis
from support import s2d

LARGE_WRITES = Load(64 * KIB, 1.0)


@pytest.fixture(scope="module")
def scenario() -> Scenario:
    return s2d.scenario()


def test_documented_limits_of_each_arm_on_a_volume(scenario: Scenario) -> None:
    setups = volume_setups.documented(scenario)
    assert list(setups) == ["ss-4", "ss-8", "s2d-3", "s2d-3-remote"]
    assert setups["s2d-3"].shape == Shape("three-way", 4, 4, nodes=3)
    assert (setups["ss-8"].shape.disks, setups["ss-8"].shape.nodes) == (8, 1)
    assert setups["s2d-3"].disk == Rates(5000, 200) and setups["s2d-3"].vm == Rates(20_000, 500)
    assert [setup.remote for setup in setups.values()] == [False, False, False, True]
    bounds = {name: volume_bound.bound(setup, LARGE_WRITES).words for name, setup in setups.items()}
    assert bounds["s2d-3"] == "VM uncached limit of 500 MB/s"
    assert bounds["ss-4"] == "disk limit of 800 MB/s"
    chosen = volume_setups.documented(scenario, {f"n{number}": "Standard_D16s_v5" for number in (1, 2, 3)})
    assert volume_bound.bound(chosen["s2d-3"], LARGE_WRITES).words == "disk limit of 800 MB/s"
    unknown = volume_setups.documented(scenario, {"n2": "Standard_Unheard"})["s2d-3"]
    assert unknown.vm == Rates() and volume_bound.bound(unknown, LARGE_WRITES).iops > 0


def test_members_of_a_pool_have_the_names_that_they_are_made_with(scenario: Scenario) -> None:
    pool = scenario.disk_named("p30")
    names = {made.name for made, holder in scenario.made_disks() if holder == "n2"}
    assert set(volume_setups.members(pool, "n2")) == names and len(names) == 4


def test_measured_limits_are_those_of_the_manifest_and_of_nodes_that_differ_the_least(
    scenario: Scenario,
) -> None:
    replicate = s2d.manifest(scenario)["replicates"][0]
    assert volume_setups.measured(scenario, replicate) == volume_setups.documented(scenario)
    replicate["machines"]["n3"]["limits"] = {"iops": 9000, "mb_s": None}
    assert volume_setups.measured(scenario, replicate)["s2d-3"].vm == Rates(9000)


@pytest.mark.long
def test_a_cell_at_its_bound_is_throttled_whoever_made_the_volume(scenario: Scenario) -> None:
    trials = s2d.run().trials
    cells = limits.label_cells(trials).set_index(["arm", "workload"])
    for arm, words in {"s2d-3": "VM uncached limit of 500 MB/s", "ss-4": "disk limit of 800 MB/s"}.items():
        assert (cells.loc[arm, "write-64k-t18"][["label", "binds"]].tolist()) == ["capped", words]
    assert cells.loc[("s2d-3", "write-4k-t1"), "label"] == "below cap"
    why = {(item.arm, item.workload): item for item in diagnosis.findings(trials)}
    assert why["s2d-3", "write-64k-t18"].verdict == Diagnosis.THROTTLED
    assert why["s2d-3", "write-64k-t18"].remedy == "a larger VM size"
    assert why["s2d-3", "write-4k-t1"].verdict == Diagnosis.FREE


def event(arm: str, workload: str, volume: str, start: int) -> dict[str, Any]:
    minute, ended = f"2026-11-20T08:{start:02d}:00+00:00", f"2026-11-20T08:{start + 20:02d}:00+00:00"
    place = {"replicate": 1, "disk": "", "volume": volume, "machine": "n1", "arm": arm, "workload": workload}
    return {"event": "trial", "trial": f"{arm}-{start}", "started_utc": minute, "ended_utc": ended, **place}


def test_writes_draw_on_the_credit_of_every_node(scenario: Scenario) -> None:
    """800 MB/s on nodes of 600 that burst to 1,200 spend 200 of 1,080,000 MB a second: 22 % in 20 minutes."""
    sizes = {f"n{number}": "Standard_D16s_v5" for number in (1, 2, 3)}
    manifest = s2d.manifest(scenario, sizes)
    drawn = volume_setups.drawn_on(manifest)
    events = [event("s2d-3", "write-64k-t18", "mirror", 0), event("s2d-3", "write-64k-t18", "mirror", 20)]
    parts = drawn(events[0])
    assert [part.name for part in parts if part.kind == "machines"] == ["n1", "n2", "n3"]
    assert {part.low for part in parts if part.kind == "machines"} == {1.0}
    assert {(part.low, part.high) for part in parts if part.kind == "disks"} == {(0.25, 0.25)}
    demands = {item["trial"]: (1200.0, 12_207.0, 800.0) for item in events}
    credits = credit.trial_credits(manifest, events, demands, drawn)
    first, second = credits.values()
    assert (first.state, first.left_share) == ("full", 1.0)
    assert (second.state, second.left_share) == ("partial", pytest.approx(1 - 200 * 1200 / 1_080_000))


def test_which_node_answers_reads_is_not_known_so_its_credit_has_bounds(scenario: Scenario) -> None:
    drawn = volume_setups.drawn_on(s2d.manifest(scenario))
    reads = drawn(event("s2d-3", "read-64k-t18", "mirror", 0))
    assert {(part.low, part.high) for part in reads if part.kind == "machines"} == {(0.0, 1.0)}
    alone = drawn(event("ss-8", "read-4k-t12", "eight", 0))
    assert [(part.name, part.low, part.high) for part in alone if part.kind == "machines"] == [
        ("server", 1.0, 1.0)
    ]


def test_tables_without_volumes_stay_as_they_are() -> None:
    trials = pd.DataFrame({"replicate": [1]})
    manifest = {"scenario": {"disk": []}, "replicates": []}
    assert volume_setups.with_limits(trials, manifest) is trials
    assert volume_setups.drawn_on(manifest) is credit.one_disk


def test_an_arm_on_several_volumes_has_the_bound_of_all_together() -> None:
    nested = scenario_file.load("nested-resiliency", "standard")
    setups = volume_setups.documented(nested)
    assert {setup.volumes for setup in setups.values()} == {2}
    assert [name for name, setup in setups.items() if setup.remote] == [
        "two-way-moved",
        "nested-mirror-moved",
        "nested-parity-moved",
    ]
    writes, reads = (
        {name: volume_bound.bound(setup, Load(4 * KIB, share)).iops for name, setup in setups.items()}
        for share in (1.0, 0.0)
    )
    assert {reads[name] for name in reads} == {40_000}
    assert (writes["two-way"], writes["nested-mirror"], writes["nested-parity"]) == (20_000, 10_000, 5_000)
    # A data set that stays in its mirror tier is a nested mirror's.
    assert writes["nested-parity-inside"] == writes["nested-mirror"]


def test_no_rate_of_two_tiers_is_above_what_their_mirror_allows() -> None:
    nested = scenario_file.load("nested-resiliency", "quick")
    known = {"limits": {"iops": 1000, "mb_s": 100}}
    replicate = {
        "replicate": 1,
        "machines": {name: {"limits": {}} for name in ("n1", "n2")},
        "disks": {disk.name: known for disk, _ in nested.made_disks()},
    }
    trials = pd.DataFrame(
        {
            "replicate": 1, "trial": ["a", "b"], "arm": ["nested-parity", "two-way"], "direction": "write",
            "iops": [1500.0, 4000.0], "block_size_bytes": 4 * KIB,
            **{limit.column: None for limit in limits.LIMITS},
        }
    )  # fmt: skip
    manifest = {"scenario": nested.model_dump(mode="json"), "replicates": [replicate]}
    assert volume_setups.with_limits(trials, manifest)["cap_disk_iops"].tolist() == [2000, 4000]


def test_what_fills_volumes_draws_on_all_their_nodes_at_once() -> None:
    nested = scenario_file.load("nested-resiliency", "standard")
    limits = {"iops": 1000, "mb_s": 100, "burst_iops": 2000, "burst_mb_s": 200}
    machines = {name: {"limits": limits} for name in ("n1", "n2")}
    disks = {disk.name: {"limits": {}} for disk, _ in nested.made_disks()}
    manifest = {
        "scenario": nested.model_dump(mode="json"),
        "replicates": [{"replicate": 1, "machines": machines, "disks": disks}],
    }
    fill = {
        "event": "prefill", "replicate": 1, "disk": "", "volume": "two-way", "caps_lifted": False,
        "bytes": 200 * 900 * 10**6, "real_s": 900.0, "time_utc": "2026-01-01T00:15:00+00:00",
    }  # fmt: skip
    trial = {**event("nested-mirror", "write-4k-10x8", "nested-mirror", 0), "disk": ""}
    trial |= {"started_utc": "2026-01-01T00:15:00+00:00", "ended_utc": "2026-01-01T00:15:10+00:00"}
    demand = {trial["trial"]: (10.0, 100.0, 0.4)}
    before, after = (
        credit.trial_credits(manifest, events, demand, volume_setups.drawn_on(manifest))[trial["trial"]]
        for events in ([trial], [fill, trial])
    )
    assert before.left_share == 1.0 and after.left_share == pytest.approx(0.5, abs=0.02)
