"""What a run costs: the bill of materials against hand-made sums, and the limit that stops it."""

from __future__ import annotations

from dataclasses import replace
from datetime import date, timedelta
from typing import Any

import pytest

from diskbook.cloud.azure.clients import Cloud
from diskbook.clusters import cost as cluster_cost
from diskbook.cost import budget, durations, estimate as cost_estimate, retail
from diskbook.cost.estimate import Estimate, Line
from diskbook.design import azure_rules, scenario_file as scenarios, scenario_tables
from diskbook.design.model import Scenario
from diskbook.facts import disk_options, prices
from diskbook.facts.arm import DELAYS_S
from diskbook.facts.errors import UsageError
from diskbook.facts.prices import Meter, Price, PriceList
from diskbook.measure.plan import sample_size

TODAY = date(2026, 11, 20)
HALF_A_DAY = timedelta(hours=12)


def scenario(**changes: Any) -> Scenario:
    """Two machines that share a disk, and one disk more; `changes` are tables of the scenario."""
    raw: dict[str, Any] = {
        "name": "example",
        "preset": "quick",
        "scenario": {"title": "t", "article": "none", "question": "q", "region": "westeurope"},
        "machine": [
            {"name": "vm1", "size": "Standard_D4as_v4", "zone": "1"},
            {"name": "vm2", "size": "Standard_D4as_v4", "zone": "2"},
        ],
        "disk": [
            {"name": "both", "sku": "Premium_ZRS", "size_gib": 1000, "max_shares": 2},
            {"name": "one", "sku": "Premium_LRS", "size_gib": 1024, "zone": "1"},
        ],
        "arm": [
            {"name": "a", "disk": "both", "machine": "vm1"},
            {"name": "b", "disk": "both", "machine": "vm2"},
            {"name": "c", "disk": "one", "machine": "vm1"},
        ],
        "workload": [{"name": "load", "block_size": "4K", "write_pct": 0, "ramp_s": 10, "runtime_s": 50}],
        "design": {"replicates": 2},
    }
    return scenario_tables.from_dict({**raw, **changes}, "example.toml")


def priced(usd: float = 1.0, **of: float) -> PriceList:
    """One price for all meters but those that are given by kind."""
    table = prices.table()["westeurope"]
    found = {meter: Price(meter, of.get(meter.kind, usd), "read", TODAY) for meter in table}
    return PriceList("westeurope", "a list", found)


def line(estimate: Estimate, what: str) -> Line:
    return next(one for one in estimate.lines if one.what.startswith(what))


def test_the_bill_of_materials_of_a_replicate() -> None:
    found = {(item.what, item.meter): (item.count, item.by) for item in cost_estimate.items(scenario())}
    assert found == {
        ("machine Standard_D4as_v4", Meter("vm-linux", "Standard_D4as_v4")): (2, "second"),
        ("OS disk E4 (StandardSSD_LRS)", Meter("disk", "E4 LRS")): (2, "hour"),
        ("public address", Meter("public-ip", "Standard")): (2, "hour"),
        ("disk P30 (Premium_ZRS)", Meter("disk", "P30 ZRS")): (1, "hour"),
        ("further mounts of P30", Meter("mount", "P30 LRS")): (1, "hour"),
        ("disk P30 (Premium_LRS)", Meter("disk", "P30 LRS")): (1, "hour"),
    }


def test_machines_by_the_second_disks_by_the_begun_hour() -> None:
    example = scenario()
    hours = cost_estimate.life_s(example) / 3600
    assert 0.05 < hours < 1  # three trials of a minute, and what is around them
    found = cost_estimate.estimate(example, priced(730.0, **{"vm-linux": 1.0}), 12)
    assert line(found, "machine").usd == pytest.approx(2 * 2 * hours)
    assert line(found, "disk P30 (Premium_LRS)").usd == pytest.approx(2 * 1.0)  # one begun hour
    assert line(found, "machine").worst_usd == pytest.approx(2 * 2 * 12)
    assert line(found, "disk P30 (Premium_LRS)").worst_usd == pytest.approx(2 * 12)
    assert found.usd == pytest.approx(sum(one.usd or 0 for one in found.lines))


def test_what_is_billed_on_after_the_expiry() -> None:
    """Disks and addresses, and from a day on the machines: Azure's shutdown knows a time of day only."""
    example = scenario(design={"replicates": 2})
    prices = priced(730.0, **{"vm-linux": 1.0, "public-ip": 0.5})
    half_a_day = cost_estimate.estimate(example, prices, 12)
    hourly = 2 * 1 + 2 * 0.5 + 3 * 1  # two OS disks, two addresses, two disks and a mount
    assert half_a_day.usd_a_day_after == pytest.approx(2 * 24 * hourly)
    late = cost_estimate.estimate(example, prices, 24)
    assert late.usd_a_day_after == pytest.approx(2 * 24 * (hourly + 2 * 1.0))


def test_a_replicate_more_costs_as_much_again() -> None:
    one = cost_estimate.estimate(scenario(design={"replicates": 1}), priced(), 12)
    two = cost_estimate.estimate(scenario(design={"replicates": 2}), priced(), 12)
    assert two.usd == pytest.approx(2 * one.usd)
    assert two.hours == pytest.approx(one.hours)  # they run at the same time
    assert cost_estimate.estimate(scenario(), priced(), 12, replicates=1).usd == pytest.approx(one.usd)


def test_the_life_of_machines_is_what_the_plan_says() -> None:
    example = scenario(design={"replicates": 1})
    assert cost_estimate.life_s(example) == pytest.approx(3 * (10 + 50 + 0.6) + sample_size.around_s(example))


def test_waiting_between_blocks_is_paid_for() -> None:
    """Three blocks two hours apart: two waits, shorter by the trials of the block before."""
    load = {"name": "load", "block_size": "4K", "write_pct": 0, "ramp_s": 10, "runtime_s": 50, "blocks": 3}
    plain, spread = (
        scenario(workload=[load], design={"replicates": 1, "hours_between_blocks": hours}) for hours in (0, 2)
    )
    waited_s = cost_estimate.life_s(spread) - cost_estimate.life_s(plain)
    assert waited_s == pytest.approx(2 * (2 * 3600 - 3 * (10 + 50 + 0.6)))
    dearer, cheap = (cost_estimate.estimate(one, priced(), 12) for one in (spread, plain))
    assert dearer.hours == pytest.approx(cheap.hours + waited_s / 3600) and dearer.usd > 2 * cheap.usd


def test_a_performance_tier_is_limited_and_billed_as_a_disk_of_that_tier() -> None:
    disk = {"name": "one", "sku": "Premium_LRS", "size_gib": 1024, "zone": "1", "tier": "P40"}
    raised = scenario(disk=[scenario().disk[0].model_dump(), disk])
    names = {item.what for item in cost_estimate.items(raised)}
    assert "disk P40 (Premium_LRS)" in names and "disk P30 (Premium_LRS)" not in names
    assert disk_options.limits(raised.disk_named("one")).iops == 7500
    assert [str(broken) for broken in azure_rules.check(raised)] == []
    lower = scenario(disk=[raised.disk[0].model_dump(), {**disk, "tier": "P20"}])
    assert "may have the tiers P30 to P50, not P20" in str(azure_rules.check(lower)[0])


def test_on_demand_bursting_is_billed_by_the_hour_and_by_use() -> None:
    """64 outstanding at 0.25 ms could make 256,000 IOPS; the machine's burst of 8,000 holds them."""
    disk = {"name": "d", "sku": "Premium_LRS", "size_gib": 1024, "zone": "1", "bursting": True}
    example = scenario(
        disk=[disk],
        arm=[{"name": "a", "disk": "d", "machine": "vm1"}],
        workload=[
            {"name": "deep", "block_size": "4K", "write_pct": 0, "queue_depth": 64, "runtime_s": 60},
            {"name": "single", "block_size": "4K", "write_pct": 0, "runtime_s": 60},
        ],
        design={"replicates": 1},
    )
    found = cost_estimate.estimate(example, priced(1.0), 12)
    assert line(found, "on-demand bursting").hours == 1
    assert line(found, "10,000 I/Os above the base").count == pytest.approx((8000 - 5000) * 60 / 1e4)
    assert (
        line(found, "10,000 I/Os above the base").worst_usd == line(found, "10,000 I/Os above the base").usd
    )


def test_a_large_io_counts_as_several() -> None:
    disk = {"name": "d", "sku": "StandardSSD_LRS", "size_gib": 64, "zone": "1"}
    counts = []
    for size in ("256K", "1M"):
        example = scenario(
            disk=[disk],
            arm=[{"name": "a", "disk": "d", "machine": "vm1"}],
            workload=[{"name": "w", "block_size": size, "write_pct": 0, "rate": 10, "runtime_s": 100}],
        )
        counts.append(
            line(cost_estimate.estimate(example, priced(), 12, 1), "10,000 I/Os of StandardSSD_LRS").count
        )
    assert counts == pytest.approx([10 * 100 / 1e4, 4 * 10 * 100 / 1e4])


def test_a_load_costs_only_where_it_is_offered() -> None:
    disk = {"name": "d", "sku": "StandardSSD_LRS", "size_gib": 64, "zone": "1"}
    arms = [{"name": name, "disk": "d", "machine": "vm1"} for name in ("a", "b")]
    load = {"name": "w", "block_size": "4K", "write_pct": 0, "rate": 10, "runtime_s": 100}
    both, one = (
        cost_estimate.estimate(scenario(disk=[disk], arm=arms, workload=[{**load, **named}]), priced(), 12, 1)
        for named in ({}, {"arms": ["a"]})
    )
    assert line(both, "10,000 I/Os").count == pytest.approx(2 * line(one, "10,000 I/Os").count)


def test_premium_v2_is_billed_for_what_is_above_the_included() -> None:
    disk = {"name": "d", "sku": "PremiumV2_LRS", "size_gib": 100, "zone": "1", "iops": 8000, "mb_s": 125}
    example = scenario(disk=[disk], arm=[{"name": "a", "disk": "d", "machine": "vm1"}])
    found = {item.what: item.count for item in cost_estimate.items(example)}
    assert found["GiB of PremiumV2_LRS"] == 100
    assert found["IOPS of PremiumV2_LRS beyond the included"] == 5000
    assert not any(what.startswith("MB/s") for what in found)


def test_windows_takes_a_larger_os_disk_and_its_own_price() -> None:
    machines = [{"name": "vm1", "size": "Standard_D4as_v4", "zone": "1", "os": "windows"}]
    example = scenario(
        machine=machines, arm=[{"name": "a", "disk": "one", "machine": "vm1"}],
    )  # fmt: skip
    meters = cost_estimate.meters(example)
    assert Meter("vm-windows", "Standard_D4as_v4") in meters
    assert Meter("disk", "E10 LRS") in meters


@pytest.mark.long
def test_every_scenario_is_priced_in_every_region() -> None:
    for name in scenarios.names():
        for preset in ("quick", "standard", "full"):
            example = scenarios.load(name, preset)
            found = budget.estimated(example, None, HALF_A_DAY, TODAY)
            assert not found.unpriced, (name, preset)
            assert 0 < found.usd <= found.worst_usd


# The limit


def estimate(usd: float = 10.0) -> Estimate:
    meter = Meter("vm-linux", "Standard_D4as_v4")
    lines = (
        Line("machine Standard_D4as_v4", meter, 4, 2.5, Price(meter, usd / 10, "read", TODAY), usd, usd),
        Line("public address", Meter("public-ip", "Standard"), 4, 3, None, 0.01, 0.02),
    )
    return Estimate(2, 2.5, 12, lines, "a list", ())


def test_the_limit_is_held_against_the_expected_cost_with_its_margin() -> None:
    assert budget.too_dear(estimate(10), None) == ""
    assert budget.too_dear(estimate(10), 15.02) == ""
    said = budget.too_dear(estimate(10), 15.0)
    assert "expected to cost 10.01 USD, 15.02 USD with a margin of 50 %, and may cost 15 USD" in said
    assert "4 x machine Standard_D4as_v4 for 2.5 h, 10.00 USD" in said
    assert said.endswith("--max-cost-usd 16")


def test_the_limit_is_for_the_whole_run() -> None:
    assert "after 10.00 USD for machines made before" in budget.too_dear(estimate(10), 20, spent=10)
    assert budget.too_dear(estimate(10), 31, spent=10) == ""


def test_a_limit_cannot_be_held_without_a_price() -> None:
    lines = (Line("disk X", Meter("disk", "X"), 1, 1, None, None, None),)
    unknown = Estimate(1, 1, 12, lines, "a list", ())
    assert "no price is known of disk X" in budget.too_dear(unknown, 1000)
    assert budget.too_dear(unknown, None) == ""


def test_which_limit_binds() -> None:
    free, limited = scenario(), scenario(design={"max_cost_usd": 7})
    assert budget.limit_of(free, "emulator", None) is None
    assert budget.limit_of(free, "azure", None) == budget.DEFAULT_LIMIT_USD == 50
    assert budget.limit_of(limited, "emulator", None) == 7
    assert budget.limit_of(limited, "azure", None) == 7
    assert budget.limit_of(limited, "azure", 3) == 3


@pytest.mark.parametrize("usd", [0, -1, float("nan"), float("inf")])
def test_a_limit_is_an_amount(usd: float) -> None:
    with pytest.raises(UsageError, match="--max-cost-usd"):
        budget.given_limit(usd)
    with pytest.raises(UsageError, match="max_cost_usd"):
        scenario(design={"max_cost_usd": usd})


def test_where_live_prices_come_from(monkeypatch: pytest.MonkeyPatch) -> None:
    """An emulated run asks no server of the internet, also where it goes through the ways of Azure."""
    monkeypatch.delenv(retail.ENDPOINT, raising=False)
    cloud = Cloud("azure", "s", None)
    assert budget.price_source(cloud) == retail.Endpoint("https://prices.azure.com/api/retail/prices")
    assert budget.price_source(replace(cloud, kind="emulator")) is None
    elsewhere = replace(cloud, endpoint="https://127.0.0.1:1")
    assert budget.price_source(elsewhere) is None
    emulated = budget.price_source(replace(elsewhere, emulated=True))
    assert emulated == retail.Endpoint("https://127.0.0.1:1/api/retail/prices")
    monkeypatch.setenv(retail.ENDPOINT, "http://127.0.0.1:2/prices")
    assert budget.price_source(replace(cloud, kind="emulator")) == retail.Endpoint(
        "http://127.0.0.1:2/prices"
    )


def test_prices_are_recorded_with_source_and_date() -> None:
    kept = budget.record(budget.estimated(scenario(), None, HALF_A_DAY, TODAY), None, "emulated")
    assert kept["of"] == "what this run would cost on Azure"
    assert kept["source"].startswith("dated table")
    assert kept["limit_usd"] is None
    disk = next(row for row in kept["rows"] if row["what"] == "disk P30 (Premium_ZRS)")
    assert (disk["usd_each"], disk["unit"], disk["quality"], disk["as_of"]) == (
        222.99, "1/Month", "read", "2026-09-23",
    )  # fmt: skip


# Volumes


def pooled(kind: str = "three-way", sku: str = "Premium_LRS", witness: str = "none", **load: Any) -> Scenario:
    """A volume on four disks of each of two or three nodes, by one load."""
    nodes = ["n1", "n2", "n3"][: 3 if kind == "three-way" else 2]
    machines = [{"name": name, "size": "Standard_L16s", "zone": "1", "os": "windows"} for name in nodes]
    size = {"mirror_gib": 100, "parity_gib": 500} if kind == "nested-parity" else {"size_gib": 256}
    volume = {"name": "v", "kind": kind, "cluster": "c", "disk": "pool", "columns": 2, **size}
    return scenario(
        machine=machines,
        disk=[{"name": "pool", "sku": sku, "size_gib": 1024, "zone": "1", "count": 4}],
        cluster=[{"name": "c", "nodes": nodes, "witness": witness}],
        volume=[volume],
        arm=[{"name": "a", "volume": "v", "machine": "n1"}],
        workload=[{"name": "load", "block_size": "4K", "write_pct": 100, "runtime_s": 100, **load}],
        design={},
    )


def test_every_disk_of_a_pool_and_every_node_is_billed() -> None:
    estimate = cost_estimate.estimate(pooled(), priced(), 12)
    assert line(estimate, "disk P30").count == 12
    assert line(estimate, "machine Standard_L16s, Windows").count == 3
    assert not [row for row in estimate.lines if "witness" in row.what]


def test_a_cloud_witness_is_billed_by_the_month() -> None:
    estimate = cost_estimate.estimate(pooled("two-way", witness="cloud"), priced(witness=0.73), 12)
    row = line(estimate, "storage account of a witness")
    assert row.count == 1 and row.usd == pytest.approx(0.001 * row.hours)


@pytest.mark.parametrize(("kind", "ios"), [("two-way", 2), ("three-way", 3), ("nested-mirror", 4)])
def test_operations_of_a_pool_are_those_of_all_copies(kind: str, ios: int) -> None:
    """500 IOPS for 100 s, each written as often as there are copies; and reads once."""
    asked = {"rate": 500, "write_pct": 100}
    estimate = cost_estimate.estimate(pooled(kind, "StandardSSD_LRS", "cloud", **asked), priced(), 12)
    assert line(estimate, "10,000 I/Os").count == pytest.approx(500 * 100 * ios / 1e4)
    read = cost_estimate.estimate(
        pooled(kind, "StandardSSD_LRS", "cloud", rate=500, write_pct=0), priced(), 12
    )
    assert line(read, "10,000 I/Os").count == pytest.approx(500 * 100 / 1e4)


def test_a_cluster_takes_time_before_its_trials() -> None:
    """12 disks are attached one after the other, a cluster and a volume made, 1 GiB filled and written
    over at 500 MB/s."""
    around = durations.around_s(pooled())
    alone = durations.around_s(
        pooled().model_copy(update={"volume": (), "cluster": (), "arm": (), "disk": ()})
    )
    filled = 1024**3 / 500e6
    steps = cluster_cost.CLUSTER_S + cluster_cost.VOLUME_S
    assert around - alone == pytest.approx(12 * 12 + steps + 2 * filled)


def test_the_set_up_of_windows_counts() -> None:
    linux = scenario()
    windows = with_windows(linux)
    assert durations.around_s(windows) - durations.around_s(linux) == DELAYS_S["vm-extension"]


def with_windows(made: Scenario) -> Scenario:
    machines = tuple(item.model_copy(update={"os": "windows"}) for item in made.machine)
    return made.model_copy(update={"machine": machines})


def test_the_volumes_scenario_costs_less_than_50_usd_a_replicate() -> None:
    scenario = scenarios.load("s2d-azure", "standard")
    estimate = budget.estimated(scenario, None, HALF_A_DAY, TODAY)
    assert estimate.unpriced == () and estimate.replicates == 1
    assert 30 < estimate.usd < 50
    assert estimate.usd * cost_estimate.MARGIN <= scenario.design.max_cost_usd
    full = budget.estimated(scenarios.load("s2d-azure", "full"), None, HALF_A_DAY, TODAY)
    assert full.usd * cost_estimate.MARGIN > scenario.design.max_cost_usd


@pytest.mark.long
def test_nested_resiliency_is_bounded_and_full_asks_for_more() -> None:
    scenario = scenarios.load("nested-resiliency", "standard")
    estimate = budget.estimated(scenario, None, HALF_A_DAY, TODAY)
    assert estimate.unpriced == () and 15 < estimate.usd < 30
    assert estimate.usd * cost_estimate.MARGIN <= scenario.design.max_cost_usd
    full = budget.estimated(scenarios.load("nested-resiliency", "full"), None, HALF_A_DAY, TODAY)
    assert full.usd * cost_estimate.MARGIN > scenario.design.max_cost_usd


def test_files_of_fleets_are_filled_before_each_block() -> None:
    """4 x 2 volumes of 28 GiB, at 800, 400, 200 and 400 MB/s of the drives, once more a block."""
    scenario = scenarios.load("nested-resiliency", "standard")
    fourth = scenario.model_copy(
        update={"workload": tuple(item.model_copy(update={"blocks": 4}) for item in scenario.workload)}
    )
    each = 2 * 28 * 1024**3 / 1e6
    more = durations.around_s(fourth) - durations.around_s(scenario)
    assert more == pytest.approx(each / 800 + each / 400 + each / 200 + each / 400)
