"""What stands in the way of a scenario, said before anything is created: against the emulated lists."""

from __future__ import annotations

import functools
import itertools
import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from diskbook.cloud.azure import clients, offers, preflight
from diskbook.cloud.azure.offers import Offer, Region
from diskbook.cost import plan_sections
from diskbook.design import azure_rules, scenario_file
from diskbook.design.model import Scenario
from diskbook.facts import catalog, paths
from diskbook.facts.errors import DiskbookError
from diskbook.measure.runs import stages
from diskbook_emulator import lifecycle
from support import emulated
from support.arm_plane import SUBSCRIPTION, TOKEN, World, world

TODAY = date(2026, 11, 20)


@pytest.fixture(scope="module")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with world(tmp_path_factory.mktemp("preflight")) as made:
        yield made


@pytest.fixture(autouse=True)
def few_regions(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where another region has to be found few are asked: their lists are long."""
    few = dict(itertools.islice(catalog.regions().items(), 5))
    monkeypatch.setattr(catalog, "regions", lambda: few)


def asked(plane: World, scenario: Scenario, replicates: int = 1, **offer: Any) -> list[str]:
    """Set what the subscription may have, and ask for the problems."""
    answer = plane.raw("PUT", "/diskbook/offer", json=offer)
    assert answer.status_code == 200, answer.text
    return preflight.problems_of(clients_at(plane), scenario, replicates, TODAY)


def clients_at(plane: World) -> clients.Clients:
    cloud = clients.Cloud(
        "emulator", SUBSCRIPTION, clients.StaticToken(TOKEN), endpoint=plane.url, ca=plane.ca, time_scale=0.0
    )
    return clients.Clients(cloud)


def zone_disks(asks_azure: bool = False, **overrides: Any) -> Scenario:
    return scenario_file.load("zone-disks", "quick", overrides, asks_azure=asks_azure)


@pytest.mark.long
def test_nothing_stands_in_the_way_of_the_scenarios(plane: World, monkeypatch: pytest.MonkeyPatch) -> None:
    once = functools.cache(functools.partial(offers.ask, clients_at(plane)))
    monkeypatch.setattr(offers, "ask", lambda clients, region: once(region))
    for name in scenario_file.names():
        assert asked(plane, scenario_file.load(name, "quick")) == [], name


@pytest.mark.long
def test_a_quota_that_all_replicates_exceed_says_how_many_fit(plane: World) -> None:
    """Three machines of 4 vCPUs a replicate: 12, and 5 replicates are 60."""
    assert asked(plane, zone_disks(), 2, quotas={"standardDASv4Family": 25}) == []
    assert asked(plane, zone_disks(), 5, quotas={"standardDASv4Family": 25}) == [
        "quota: the run needs 60 vCPUs (standardDASv4Family) in westeurope at a time and 25 of 25 are free; "
        "set design.replicates to 2, take smaller sizes, another family or another region, or ask for 60 "
        "(portal, Quotas)"
    ]


def test_quotas_of_the_region_and_of_addresses_are_told_as_well(plane: World) -> None:
    found = asked(plane, zone_disks(), 1, quotas={"cores": 10, "PublicIPAddresses": 2})
    assert [text.partition(" in ")[0] for text in found] == [
        "quota: the run needs 12 vCPUs (cores)",
        "quota: the run needs 3 public addresses",
    ]
    assert not any("set design.replicates" in text for text in found)  # not even one fits


def test_what_is_used_already_counts(plane: World) -> None:
    plane.vm(plane.group("used"), "vm")
    found = asked(plane, zone_disks(), 1, quotas={"standardDASv4Family": 12})
    assert "8 of 12 are free" in found[0]
    plane.resource.resource_groups.begin_delete("used").result()


@pytest.mark.long
def test_a_closed_zone_names_the_open_ones(plane: World) -> None:
    closed = {"sku": "Standard_D4as_v4", "location": "westeurope", "zones": ["2"]}
    found = asked(plane, zone_disks(), restrictions=[closed])
    assert len(found) == 1
    assert found[0].startswith(
        "[[machine]] vm2: Standard_D4as_v4 cannot be had in zone 2 of westeurope; take zone 1 or 3, or take "
        "Standard_D4as_v5 or "
    )
    assert found[0].endswith("or region northeurope or norwayeast or eastus")


@pytest.mark.long
def test_a_closed_region_names_similar_sizes_and_regions(plane: World) -> None:
    closed = [{"sku": "Standard_D4as_v4", "location": place} for place in ("westeurope", "northeurope")]
    found = asked(plane, zone_disks(), restrictions=closed)
    assert len(found) == 3  # one a machine
    assert found[0] == (
        "[[machine]] vm1: region westeurope does not offer this subscription Standard_D4as_v4; take "
        "Standard_D4as_v5 or Standard_D4ads_v5 or Standard_D4ds_v4 instead, or region norwayeast or eastus "
        "or westus2"
    )


@pytest.mark.long
def test_all_problems_are_told_at_once(plane: World) -> None:
    closed = [
        {"sku": "Standard_D4as_v4", "location": "westeurope", "zones": ["1"]},
        {"sku": "Premium_ZRS", "location": "westeurope"},
    ]
    found = asked(plane, zone_disks(), restrictions=closed, quotas={"cores": 4})
    assert [text.partition(":")[0] for text in found] == ["[[machine]] vm1", "[[disk]] zrs", "quota"]


def test_a_machine_is_refused_where_the_list_says_so(plane: World) -> None:
    """The emulated control plane holds requests against the same restrictions."""
    plane.raw(
        "PUT", "/diskbook/offer",
        json={"restrictions": [{"sku": "Standard_D4as_v4", "location": "westeurope", "zones": ["2"]}]},
    )  # fmt: skip
    group = plane.group("restricted")
    plane.vm(group, "one", zone="1")
    with pytest.raises(Exception, match="SkuNotAvailable"):
        plane.vm(group, "two", zone="2")
    plane.resource.resource_groups.begin_delete(group).result()
    assert plane.raw("PUT", "/diskbook/offer", json={"quotas": [1]}).status_code == 400


# Pure, on a region made by hand


def region(scenario: Scenario, **changes: Any) -> Region:
    """A region that offers all that the scenario takes, with changes to its one size."""
    capabilities = {
        "vCPUs": "4", "UncachedDiskIOPS": "6400", "MaxDataDiskCount": "8", "PremiumIO": "True",
        **changes,
    }  # fmt: skip
    zones = frozenset("123")
    size = Offer("Standard_D4as_v4", "", "family", zones, True, capabilities)
    roomy = {**capabilities, "vCPUs": "8", "PremiumIO": "True", "MaxDataDiskCount": "16"}
    larger = replace(size, name="Standard_D8as_v4", capabilities={**roomy, "RetirementDateUtc": ""})
    other = replace(larger, name="Standard_E8as_v4")
    disks = {
        (disk.sku, "P30"): Offer(disk.sku, "P30", "", zones, True, {"MaxValueOfMaxShares": "5"})
        for disk in scenario.disk
    }
    sizes = {one.name.lower(): one for one in (size, larger, other)}
    return Region("westeurope", sizes, disks)


def said(scenario: Scenario, here: Region) -> list[str]:
    return preflight.problems(scenario, here, list, 1, TODAY)


def test_a_region_that_offers_all_has_no_problem() -> None:
    assert said(zone_disks(), region(zone_disks())) == []


def test_too_few_data_disks() -> None:
    found = said(zone_disks(), region(zone_disks(), MaxDataDiskCount="2"))
    assert found == [
        "[[machine]] vm1: Standard_D4as_v4 takes 2 data disks and the arms need 3; "
        "take Standard_D8as_v4 instead"
    ]


def test_no_premium_disks() -> None:
    found = said(zone_disks(), region(zone_disks(), PremiumIO="False"))
    assert len(found) == 3
    assert found[0].endswith("takes no premium disks; take Standard_D8as_v4 instead")


def test_a_retired_size_names_its_substitute() -> None:
    here = region(zone_disks(), RetirementDateUtc="2026-05-01T00:00:00Z")
    found = said(zone_disks(), here)
    assert (
        found[0]
        == "[[machine]] vm1: Standard_D4as_v4 was retired on 2026-05-01; take Standard_D8as_v4 instead"
    )
    named = zone_disks(**{"machine.vm1.substitute": "Standard_E8as_v4"})
    assert said(named, here)[0].endswith("take Standard_E8as_v4 or Standard_D8as_v4 instead")
    assert said(zone_disks(), region(zone_disks(), RetirementDateUtc="2027-05-01T00:00:00Z")) == []
    assert said(zone_disks(), region(zone_disks(), RetirementDateUtc="soon")) == []


@pytest.mark.parametrize(
    ("text", "day"),
    [("09/03/2024", date(2024, 9, 3)), ("2024-09-03T00:00:00Z", date(2024, 9, 3)), ("soon", None), ("", None),
     ("09/03/2024 00:00:00", date(2024, 9, 3)), ("13/03/2024", None)],
)  # fmt: skip
def test_a_day_is_read_as_the_api_writes_it_and_as_iso(text: str, day: date | None) -> None:
    """RetirementDateUtc has the month first."""
    assert offers.day_of(text) == day


def test_a_date_that_cannot_be_read_is_the_tables() -> None:
    unread = Offer("Standard_D4s_v3", "", "", frozenset(), True, {"RetirementDateUtc": "soon"})
    assert offers.retired_on("Standard_D4s_v3", unread) == date(2029, 11, 15)
    listed = replace(unread, capabilities={"RetirementDateUtc": "09/03/2024"})
    assert offers.retired_on("Standard_D4s_v3", listed) == date(2024, 9, 3)
    assert said(zone_disks(), region(zone_disks(), RetirementDateUtc="09/03/2026"))[0].startswith(
        "[[machine]] vm1: Standard_D4as_v4 was retired on 2026-09-03; take "
    )


def test_the_emulated_list_writes_dates_and_controllers_as_azure_does(plane: World) -> None:
    here = offers.sizes(clients_at(plane), "westeurope")
    assert here["standard_d4s_v3"].capabilities["RetirementDateUtc"] == "11/15/2029"
    assert "RetirementDateUtc" not in here["standard_d4as_v4"].capabilities
    assert here["standard_e2bs_v5"].capabilities["DiskControllerTypes"] == "SCSI, NVMe"
    assert here["standard_d2s_v6"].capabilities["DiskControllerTypes"] == "NVMe"
    assert here["standard_d2s_v6"].capabilities["HyperVGenerations"] == "V2"
    assert not any("Burst" in name for size in here.values() for name in size.capabilities)
    assert not any(offers.differences(size) for size in here.values())


# What may stand in for a size


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        ("Standard_D8ps_v5", {}),  # Arm64 processors
        ("Standard_D8s_v6", {}),  # an NVMe controller alone
        ("Standard_D8xyz_v9", {}),  # of no table
        ("Standard_D8as_v4", {"CpuArchitectureType": "Arm64"}),
        ("Standard_D8as_v4", {"DiskControllerTypes": "NVMe"}),
        ("Standard_D8as_v4", {"HyperVGenerations": "V1"}),
    ],
)
def test_advice_names_no_size_that_would_be_refused_next(name: str, changes: dict[str, str]) -> None:
    scenario = zone_disks()
    here = region(scenario, MaxDataDiskCount="2")
    larger = here.sizes["standard_d8as_v4"]
    other = replace(larger, name=name, capabilities={**larger.capabilities, **changes})
    offered = {"standard_d4as_v4": here.sizes["standard_d4as_v4"], name.lower(): other}
    here = replace(here, sizes=offered)
    assert said(scenario, here)[0].endswith("takes 2 data disks and the arms need 3; take another size")
    documented = zone_disks(**{"machine.vm1.substitute": "Standard_D8as_v4"})
    assert said(documented, here)[0].endswith("take another size")


def test_a_size_with_nvme_alone_gets_advice_of_its_kind(plane: World) -> None:
    plane.raw("PUT", "/diskbook/offer", json={})
    machines = {f"machine.vm{number}.size": "Standard_D4s_v6" for number in (1, 2, 3)}
    scenario = zone_disks(**machines)
    here = offers.ask(clients_at(plane), "westeurope")
    names = preflight.similar(scenario, scenario.machine[0], here, TODAY)
    assert names and all(offers.traits(name, None).controller == "NVMe" for name in names)


def test_a_size_of_no_table_is_what_azure_says_of_it() -> None:
    scenario = zone_disks(**{"machine.vm1.size": "Standard_D8xyz_v9"}, asks_azure=True)
    here = region(scenario)
    offered = {"UncachedDiskIOPS": "12800", "UncachedDiskBytesPerSecond": "290000000"}
    capabilities = {**here.sizes["standard_d8as_v4"].capabilities, **offered}
    new = replace(here.sizes["standard_d8as_v4"], name="Standard_D8xyz_v9", capabilities=capabilities)
    known = replace(here, sizes={**here.sizes, "standard_d8xyz_v9": new})
    assert said(scenario, known) == []
    assert "region westeurope offers no Standard_D8xyz_v9" in said(scenario, here)[0]
    assert offers.differences(new) == (
        "Standard_D8xyz_v9 is in no table: Azure says 12,800 uncached IOPS and 290 MB/s; what it bursts to "
        "is not known"
    )
    assert offers.of_scenario(scenario, known) == [offers.differences(new)]
    shown = plan_sections.limits(scenario)
    assert "Standard_D8xyz_v9" in shown and "in no table" in shown
    silent = replace(new, capabilities={})
    assert set(offers.limits(silent).values()) == {None}
    assert "its cells are labelled 'limit not known'" in offers.differences(silent)


def test_where_azure_and_the_table_differ_is_one_line() -> None:
    rows = {"UncachedDiskIOPS": "6050", "UncachedDiskBytesPerSecond": "171000000", "MaxDataDiskCount": "8"}
    offer = Offer(
        "Standard_E2bs_v5", "", "", frozenset(), True, {**rows, "DiskControllerTypes": "NVMe, SCSI"}
    )
    assert offers.differences(offer) == (
        "Standard_E2bs_v5: Azure says 8 data disks, the table 4; Azure's figures are used"
    )


def test_windows_is_refused_where_its_disks_cannot_be_told() -> None:
    scenario = volumes(**{"machine.single.size": "Standard_E32s_v5"})
    offer = Offer("Standard_E32s_v5", "", "", frozenset(), True, {"DiskControllerTypes": "NVMe"})
    traits = {"Standard_E32s_v5": offers.traits("Standard_E32s_v5", offer)}
    ((machine, why),) = azure_rules.size_problems(scenario, traits)
    assert machine == "single" and "documented in two ways" in why
    with pytest.raises(DiskbookError, match="Standard_E32s_v6 has an NVMe disk controller alone"):
        volumes(**{"machine.single.size": "Standard_E32s_v6"})


def test_ultra_disks_go_where_the_size_takes_them(plane: World) -> None:
    ultra = zone_disks(**{"disk.lrs.sku": "UltraSSD_LRS", "disk.lrs.size_gib": 1024})
    assert asked(plane, ultra) == []
    here = region(ultra)
    sizes = {name: replace(size, ultra_zones=frozenset("2")) for name, size in here.sizes.items()}
    disks = {(sku, "" if sku == "UltraSSD_LRS" else tier): offer for (sku, tier), offer in here.disks.items()}
    assert said(ultra, replace(here, sizes=sizes, disks=disks)) == [
        "[[machine]] vm1: Standard_D4as_v4 takes Ultra disks in zones 2 of westeurope; take one of these"
    ]
    nowhere = {name: replace(size, ultra_zones=frozenset()) for name, size in here.sizes.items()}
    (text,) = said(ultra, replace(here, sizes=nowhere, disks=disks))
    what = "[[machine]] vm1: Standard_D4as_v4 takes Ultra disks nowhere in westeurope; take"
    assert text == f"{what} another size"
    able = {**nowhere, "standard_d8as_v4": sizes["standard_d8as_v4"]}
    able["standard_d8as_v4"] = replace(able["standard_d8as_v4"], ultra_zones=frozenset("1"))
    assert said(ultra, replace(here, sizes=able, disks=disks)) == [f"{what} Standard_D8as_v4 instead"]


def test_more_sharers_than_the_disk_takes() -> None:
    shared = zone_disks(**{"disk.zrs.max_shares": 3})
    here = region(shared)
    few = {
        key: replace(offer, capabilities={"MaxValueOfMaxShares": "2"}) for key, offer in here.disks.items()
    }
    found = said(shared, replace(here, disks=few))
    assert found == [
        "[[disk]] zrs: Premium_ZRS disks of the size P30 may be shared by 2 machines, not 3; lower max_shares"
    ]


def test_a_similar_size_is_of_the_same_letter_and_not_smaller(plane: World) -> None:
    plane.raw("PUT", "/diskbook/offer", json={})
    cloud = clients.Cloud(
        "emulator", SUBSCRIPTION, clients.StaticToken(TOKEN), endpoint=plane.url, ca=plane.ca, time_scale=0.0
    )
    here = offers.ask(clients.Clients(cloud), "westeurope")
    example = zone_disks()
    names = preflight.similar(example, example.machine[0], here, TODAY)
    assert names[0] == "Standard_D4as_v5"
    assert "Standard_E16as_v5" not in names  # another letter
    assert "Standard_D2s_v5" not in names  # too small


# The whole way: a run on a running emulator stops before the first create


@pytest.fixture(scope="module")
def emulator(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with emulated.own_place():
        lifecycle.start("preflight", time_scale=0.0)
        try:
            yield emulated.Azure(lifecycle.connect("preflight"), tmp_path_factory.mktemp("azure"))
        finally:
            lifecycle.stop("preflight")


@pytest.fixture
def running(emulator: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(paths, "RUNS", tmp_path / "runs")
    put(emulator, "/diskbook/offer", {})
    return emulator


def put(azure: Any, path: str, body: Any) -> None:
    from azure.core.rest import HttpRequest

    url = f"{azure.emulator.endpoint}{path}"
    answer = azure.clients.resource.send_request(HttpRequest("PUT", url, json=body))
    answer.raise_for_status()


def operations(azure: Any) -> list[str]:
    from azure.core.rest import HttpRequest

    url = f"{azure.emulator.endpoint}/diskbook/operations"
    return [
        row["kind"] for row in azure.clients.resource.send_request(HttpRequest("GET", url)).json()["value"]
    ]


@pytest.mark.emulator
@pytest.mark.parametrize("why", ["quota", "zone", "cost"])
def test_a_run_stops_before_the_first_create(running: Any, why: str) -> None:
    offer: dict[str, Any] = {
        "quota": {"quotas": {"standardDASv4Family": 8}},
        "zone": {"restrictions": [{"sku": "Standard_D4as_v4", "location": "westeurope", "zones": ["3"]}]},
        "cost": {},
    }[why]
    put(running, "/diskbook/offer", offer)
    overrides = {"design.max_cost_usd": 0.5} if why == "cost" else {}
    folder = stages.begin(f"{why}-run", "zone-disks", "emulator", "quick", overrides, {"name": "preflight"})
    words = {"quota": "nothing was created: quota: the run needs 12 vCPUs", "zone": "take zone 1 or 2",
             "cost": "may cost 0.5 USD; most of it is 4 x disk P30 (Premium_LRS)"}[why]  # fmt: skip
    with pytest.raises(DiskbookError) as caught:
        stages.provision(folder)
    assert words in str(caught.value)
    assert operations(running) == []
    assert folder.manifest["resource_groups"] == []
    groups = [group.name for group in running.clients.resource.resource_groups.list()]
    assert groups == [emulated.GROUP]


@pytest.mark.emulator
def test_a_run_that_may_keeps_its_estimate(running: Any) -> None:
    overrides = {"design.max_cost_usd": 100}
    folder = stages.begin("kept-run", "zone-disks", "emulator", "quick", overrides, {"name": "preflight"})
    stages.provision(folder)
    kept = json.loads((folder.folder / "manifest.json").read_text())["cost"]
    assert len(kept) == 1
    assert kept[0]["limit_usd"] == 100
    assert kept[0]["of"] == "what this run would cost on Azure"
    assert 0 < kept[0]["expected_usd"] < kept[0]["worst_usd"]
    stages.teardown(folder)


def volumes(**overrides: Any) -> Scenario:
    return scenario_file.load("s2d-azure", "quick", overrides)


def test_disks_of_pools_count_one_by_one(plane: World) -> None:
    """Twelve on the single server; quotas of all nodes together."""
    scenario = volumes()
    single, node = scenario.machine_named("single"), scenario.machine_named("n2")
    assert len(preflight.disks_of(scenario, single)) == 12
    assert [disk.name for disk in preflight.disks_of(scenario, node)] == ["p30"] * 4
    assert asked(plane, scenario, 2, quotas={"standardLSFamily": 96}) == []
    (problem,) = asked(plane, scenario, 2, quotas={"standardLSFamily": 95})
    assert problem.startswith("quota: the run needs 96 vCPUs (standardLSFamily)")


def test_a_retired_node_names_the_scenarios_substitute_first(plane: World) -> None:
    plane.raw("PUT", "/diskbook/offer", json={})
    late = date(2028, 6, 1)
    here = offers.ask(clients_at(plane), "westeurope")
    problems = preflight.problems(volumes(), here, list, 1, late)
    nodes = [text for text in problems if "Standard_L16s" in text]
    assert len(nodes) == 3 and all("take Standard_D16s_v5 or Standard_L16s_v3" in text for text in nodes)


@pytest.mark.long
def test_a_pools_zones_are_those_of_its_machines(plane: World) -> None:
    scenario = scenario_file.load("s2d-azure", "full")
    assert asked(plane, scenario) == []
    closed = {"sku": "Standard_L16s", "location": "westeurope", "zones": ["3"]}
    (problem,) = asked(plane, scenario, restrictions=[closed])
    assert problem.startswith("[[machine]] z3: Standard_L16s cannot be had in zone 3 of westeurope")
