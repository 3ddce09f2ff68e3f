"""What `diskbook plan` says of creating and paying: offline, and with a subscription that is asked."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from datetime import date, timedelta

import pytest

from diskbook.cli import main
from diskbook.cloud.azure import signin
from diskbook.cost import budget, estimate, plan_sections, retail
from diskbook.design import scenario_file
from diskbook.facts import catalog, prices
from diskbook.facts.prices import PriceList
from diskbook.measure.plan import cost as plan_cost
from support import SCENARIOS, identity_endpoint
from support.arm_plane import SUBSCRIPTION, TOKEN, World


def said(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, *arguments: str) -> str:
    """What `diskbook plan` prints, in lines as long as they are written."""
    monkeypatch.setenv("COLUMNS", "1000")
    monkeypatch.setattr(sys, "argv", ["diskbook", "plan", *arguments])
    with pytest.raises(SystemExit) as ended:
        main()
    assert not ended.value.code
    return capsys.readouterr().out


@pytest.fixture(autouse=True)
def no_endpoint(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(retail.ENDPOINT, raising=False)


def test_a_plan_offline(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retail, "_items", None)  # would fail if a price were asked for
    text = said(capsys, monkeypatch, "zone-disks", "--preset", "standard")
    assert "would be created in westeurope, in one resource group, for each of 3 replicates:" in text
    assert "machines: 3 x Standard_D4as_v4; each with OS disk, network interface and public address" in text
    assert "data disks: 4 x Premium_LRS 1024 GiB, 1 x Premium_ZRS 1024 GiB" in text
    assert "9 machines at a time, which shut themselves down after 12 h" in text
    assert "disk lrs, lrs-b, lrs-z2, lrs-z3, zrs  P30, 5,000 IOPS, 200 MB/s" in text
    assert "Standard_D4as_v4                      6,400 IOPS, 96 MB/s; bursts to 8,000 IOPS, 200 MB/s" in text
    assert "lrs-b-z1, lrs-z2, zrs-z2, lrs-z3, zrs-z3  4 KiB: 5,000 IOPS (disk)" in text
    assert (
        "lrs-z1, zrs-z1                            4 KiB: 5,000 IOPS (disk); 64 KiB: 1,465 IOPS (VM, 96 MB/s)"
        in text
    )
    assert "of it the random pass over the filled disks: about 0.33 USD" in text
    assert (
        "of it the trials for evidence: about 0." in text and "design.evidence_s = 0 leaves them out" in text
    )
    assert "8 of 42 cells, those that may sit on a limit, once for 150 s; last of all" in text
    assert "cost, if it ran on Azure (on the emulator it costs nothing)" in text
    assert "prices: dated table data/reference/prices.csv" in text
    assert "vCPUs, standardDASv4Family: 36" in text and "public addresses: 9" in text
    assert "no limit binds here" in text
    rows = text.partition("USD each")[2].partition("in all, USD")[0].splitlines()
    assert max(map(len, rows)) <= 80  # tests/cli/test_width.py has the sentences


def test_settling_is_said_in_hours_and_dollars(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    moved = str(SCENARIOS / "moved.toml")
    text = said(capsys, monkeypatch, moved, "--set", "design.settle_s=1200")
    assert "settling takes about 2.0 h a replicate; meanwhile each of 6 visits" in text
    assert "of it settling after attaches: about 1.97 USD" in text
    without = said(capsys, monkeypatch, moved)
    assert "no time to settle (design.settle_s = 0)" in without and "attach effect not checked" in without
    assert "settling after attaches" not in without


def test_what_a_run_costs_that_is_never_torn_down(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    worst = []
    for words in ((), ("--expires", "48")):
        text = said(capsys, monkeypatch, "zone-disks", *words)
        total = next(line for line in text.splitlines() if "in all, USD" in line).split()[-1]
        assert f"at worst: never torn down, it costs {total} USD until it expires after" in text
        worst.append((float(total), float(text.partition("and then ")[2].split()[0])))
    assert "expires after 48 h" in text
    assert worst[1][0] == pytest.approx(4 * worst[0][0], rel=0.01)
    assert worst[1][1] > worst[0][1]  # machines that are only stopped are billed on


def test_quick_has_no_trials_for_evidence_and_says_what_azure_would_give(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    text = said(capsys, monkeypatch, "zone-disks")
    short = "trials take 2 s at most, so Azure, with one value a minute, would give none"
    assert f"no evidence trials for the platform's metrics: {short}" in text
    assert "trials for evidence: about" not in text


def test_the_sum_of_the_table_is_the_sum(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = said(capsys, monkeypatch, "disk-options").splitlines()
    start = next(number for number, line in enumerate(lines) if line.endswith("at worst"))
    end = next(number for number, line in enumerate(lines) if "in all, USD" in line)
    for column in (-2, -1):
        rows = [line for line in lines[start + 1 : end] if line[2] != " "]  # the others are names that go on
        shown = [float(line.split()[column]) for line in rows]
        assert sum(shown) == pytest.approx(float(lines[end].split()[column]), abs=0.005 * len(shown))


def test_a_limit_that_is_exceeded_is_said(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    text = said(capsys, monkeypatch, "zone-disks", "--max-cost-usd", "0.5")
    assert "EXCEEDS the limit of 0.5 USD: the run would stop before anything is created" in text
    text = said(capsys, monkeypatch, "zone-disks", "--set", "design.max_cost_usd=20")
    assert "is within the limit of 20 USD" in text


def test_an_unknown_price_is_never_within_a_limit() -> None:
    example = scenario_file.load("first-run")
    nothing = PriceList(example.region, "nothing", {})
    estimated = estimate.estimate(example, nothing, 12.0)
    stops = "whether the limit of 50 USD holds: the run would stop"
    for limit, said_ in ((50.0, stops), (None, "whether a limit holds")):
        text = plan_sections.cost(estimated, limit, "azure")
        assert "without a price of machine Standard_D4as_v4" in text and said_ in text
        assert "within" not in text


def test_the_lowest_limit_depends_on_the_block_size() -> None:
    example = scenario_file.load("disk-options")
    arm = example.arm_named("k-v2-40000")
    assert plan_sections.lowest(example, arm) == (
        "4 KiB: 25,600 IOPS (VM), bursting 40,000 IOPS (VM); "
        "128 KiB: 2,930 IOPS (VM, 384 MB/s), bursting 6,104 IOPS (VM, 800 MB/s)"
    )


# With a subscription


@pytest.fixture
def signed_in(plane: World, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    """The emulated control plane as Azure Resource Manager, and a managed identity that it knows."""
    with identity_endpoint.serve(TOKEN) as endpoint:
        identity_endpoint.use(monkeypatch, endpoint)
        monkeypatch.setenv("DISKBOOK_ARM_ENDPOINT", plane.url)
        monkeypatch.setenv("DISKBOOK_ARM_CA", str(plane.ca))
        monkeypatch.setenv("AZURE_SUBSCRIPTION_ID", SUBSCRIPTION)
        yield plane
    plane.raw("PUT", "/diskbook/offer", json={})
    signin.credential.cache_clear()


@pytest.mark.long
def test_a_subscription_is_asked_what_is_free(
    signed_in: World, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    signed_in.raw("PUT", "/diskbook/offer", json={"quotas": {"standardDASv4Family": 100}})
    text = said(capsys, monkeypatch, "zone-disks", "--cloud", "azure")
    assert "standardDASv4Family: 12 of 100 free (limit 100)" in text
    assert "PublicIPAddresses: 3 of 1000 free" in text
    assert f"what stands in the way (subscription {SUBSCRIPTION}" in text or SUBSCRIPTION in text
    assert "nothing: sizes, zones, disks and quotas are to be had" in text
    assert "prices: Azure Retail Prices API, " in text  # those of the endpoint, as a run asks them
    assert "is within the limit of 50 USD" in text  # the limit on Azure where nobody named one


@pytest.mark.long
def test_what_stands_in_the_way_is_said_and_nothing_made(
    signed_in: World, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    few = {name: catalog.regions()[name] for name in prices.table()}  # to ask; the list of each is long
    monkeypatch.setattr(catalog, "regions", lambda: few)
    closed = {"sku": "Standard_D4as_v4", "location": "westeurope", "zones": ["2"]}
    offer = {"quotas": {"cores": 10}, "restrictions": [closed]}
    signed_in.raw("PUT", "/diskbook/offer", json=offer)
    text = said(capsys, monkeypatch, "zone-disks", "--cloud", "azure")
    assert "[[machine]] vm2: Standard_D4as_v4 cannot be had in zone 2 of westeurope; take zone 1 or 3" in text
    assert "quota: the run needs 12 vCPUs (cores) in westeurope at a time and 10 of 10 are free" in text
    assert signed_in.raw("GET", "/diskbook/operations").json()["value"] == []


def test_live_prices_without_an_account(
    plane: World, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(retail.ENDPOINT, f"{plane.url}/api/retail/prices")
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(plane.ca))
    text = said(capsys, monkeypatch, "zone-disks", "--live-prices")
    assert "prices: Azure Retail Prices API, " in text
    assert "inferred, not read" not in text


def test_offline_sections_need_no_sign_in(monkeypatch: pytest.MonkeyPatch) -> None:
    identity_endpoint.forget(monkeypatch)
    assert len(plan_cost.creation(scenario_file.load("zone-disks")).sections) == 4


def test_a_plan_of_volumes(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    text = said(capsys, monkeypatch, "s2d-azure", "--preset", "standard")
    assert (
        "s2d-3         volume mirror3 (three-way, 3 x 4 disks) on n1 (Standard_L16s, zone 1, DiskSpd)" in text
    )
    assert "volume mirror3 (three-way, 3 x 4 disks), owned by n2, on n1" in text
    assert "data disks: 24 x Premium_LRS 1024 GiB" in text and "cluster: s2d of n1, n2, n3\n" in text
    assert "volume: simple8, simple, 256 GiB in 8 columns on 8 Premium_LRS 1024 GiB of single" in text
    bound = "64 KiB: 11,719 IOPS (VM, 768 MB/s), bursting 12,207 IOPS (disks, 800 MB/s)"
    assert f"ss-4                 4 KiB: 20,000 IOPS (disks); {bound}" in text
    writes = "4 KiB writes: 20,000 IOPS (disks and VM); 64 KiB reads: 22,888 IOPS (VM, 1,500 MB/s)"
    assert f"s2d-3, s2d-3-remote  4 KiB reads: 60,000 IOPS (disks and VM); {writes}" in text
    assert (
        "64 KiB writes: 7,629 IOPS (VM, 500 MB/s)" in text
    )  # a third of what reads may have, since all write
    assert "24 x disk P30" in text and "is within the limit of 75 USD" in text
    rows = text.partition("USD each")[2].partition("in all, USD")[0].splitlines()
    assert max(map(len, rows)) <= 80  # tests/cli/test_width.py has the sentences


def test_a_witness_is_named_with_its_cluster() -> None:
    scenario = scenario_file.load("s2d-azure", "quick")
    two = tuple(item.model_copy(update={"witness": "cloud"}) for item in scenario.cluster)
    estimate = budget.estimated(scenario, None, timedelta(hours=12), date(2026, 11, 22))
    text = plan_sections.created(scenario.model_copy(update={"cluster": two}), estimate)
    assert "cluster: s2d of n1, n2, n3; its witness is a storage account (StorageV2, LRS)" in text
