"""Prices: the dated table is strict; the API's answers are used, and its failures fall back to the table."""

from __future__ import annotations

import csv
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import date
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from diskbook.cost import retail
from diskbook.design import scenario_file
from diskbook.facts import catalog, prices
from diskbook.facts.errors import DiskbookError
from diskbook.facts.paths import REFERENCE
from diskbook.facts.prices import Meter
from support.arm_plane import World

TODAY = date(2026, 11, 20)
VM = Meter("vm-linux", "Standard_D4as_v4")
DISK = Meter("disk", "P30 ZRS")
METERS = [VM, Meter("vm-windows", "Standard_D4as_v4"), DISK, Meter("public-ip", "Standard")]


# The table


def test_west_europe_is_priced_whole() -> None:
    known = prices.table()["westeurope"]
    wanted = {Meter(kind, size.name) for kind in ("vm-linux", "vm-windows") for size in all_sizes()}
    for tier in catalog.disk_tiers():
        for sku in tier.skus:
            wanted.add(Meter("disk", f"{tier.tier} {sku.partition('_')[2]}"))
            if tier.max_shares > 1:
                wanted.add(Meter("mount", f"{tier.tier} LRS"))
            if not sku.startswith("Premium"):
                wanted.add(Meter("operations", f"{tier.tier} LRS"))
    assert wanted <= known.keys()
    assert {meter.kind for meter in known} == prices.UNITS.keys()


def all_sizes() -> list[catalog.VmSize]:
    """Sizes of scenarios and articles, and what stands in for them: others are priced by Azure's list."""
    machines = [machine for name in scenario_file.names() for machine in scenario_file.load(name).machine]
    names = {machine.size for machine in machines} | {machine.substitute for machine in machines}
    with (REFERENCE / "published-figures.csv").open(newline="") as file:
        names |= {row["vm_size"] for row in csv.DictReader(file)}
    names |= {f"Standard_{name}" for name in ALSO_PRICED}
    sizes = [size for size in catalog.vm_sizes().values() if size.name in names]
    return sizes + [catalog.vm_size(size.substitute) for size in sizes if size.substitute]


ALSO_PRICED = (
    "DS1_v2",
    "DS2_v2",
    "D4s_v3",
    "D4as_v5",
    "D2s_v5",
    "D4s_v5",
    "D8s_v5",
    "E4ads_v5",
    "E32s_v3",
    "B8ms",
)
ALSO_PRICED += ("D16s_v5", "D32s_v5", "E32s_v5", "L16s_v3", "E2as_v5", "E16as_v5")


def test_prices_are_in_proportion() -> None:
    """A misplaced figure shows: larger costs more, ZRS half as much again, Windows more than Linux."""
    for known in prices.table().values():
        for family in "PES":
            tiers = sorted(
                (int(meter.name[1:-4]), price.usd)
                for meter, price in known.items()
                if meter.kind == "disk" and meter.name[0] == family and meter.name.endswith("LRS")
            )
            assert [usd for _, usd in tiers] == sorted(usd for _, usd in tiers)
        for meter, price in known.items():
            if meter.kind == "disk" and meter.name.endswith("ZRS"):
                lrs = known[Meter("disk", meter.name.replace("ZRS", "LRS"))]
                assert 1.49 < price.usd / lrs.usd < 1.51
            if meter.kind == "vm-windows":
                assert price.usd > known[Meter("vm-linux", meter.name)].usd
            if meter.kind == "mount":
                assert price.usd < 0.2 * known[Meter("disk", meter.name)].usd


def test_each_row_tells_where_it_is_from() -> None:
    with (REFERENCE / "prices.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert all(row["source"] and row["read_on"] for row in rows)
    assert all(
        row["note"] or row["source"] == "general knowledge" for row in rows if row["quality"] == "inferred"
    )


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"usd": "0"}, "line 2: '0' is not a price"),
        ({"usd": "nan"}, "line 2: 'nan' is not a price"),
        ({"usd": "cheap"}, "line 2"),
        ({"unit": "1/Month"}, "line 2: vm-linux is priced by 1 Hour, not by 1/Month"),
        ({"kind": "gpu"}, "line 2"),
        ({"quality": "sure"}, "quality is read or inferred, not 'sure'"),
        ({"read_on": "yesterday"}, "line 2"),
        ({"source": ""}, "source may not be empty"),
    ],
)
def test_a_wrong_row_is_not_read(tmp_path: Path, change: dict[str, str], said: str) -> None:
    row = {
        "region": "westeurope", "kind": "vm-linux", "name": "Standard_D4as_v4", "unit": "1 Hour",
        "usd": "0.2", "quality": "read", "as_of": "", "source": "a page", "read_on": "2026-11-20", "note": "",
    }  # fmt: skip
    path = tmp_path / "prices.csv"
    write(path, [row])
    assert prices.read_table(path)["westeurope"][VM].usd == 0.2
    write(path, [{**row, **change}])
    with pytest.raises(DiskbookError, match=said):
        prices.read_table(path)
    write(path, [row, row])
    with pytest.raises(DiskbookError, match="line 3: Standard_D4as_v4 is priced twice"):
        prices.read_table(path)


def write(path: Path, rows: list[dict[str, str]]) -> None:
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, rows[0].keys())
        writer.writeheader()
        writer.writerows(rows)


def test_a_region_without_prices_takes_the_dearest_and_says_so() -> None:
    found = retail.look_up("westus2", [VM], None, TODAY)
    everywhere = [known[VM].usd for known in prices.table().values()]
    assert found.prices[VM].usd == max(everywhere)
    assert found.prices[VM].quality == "inferred"
    assert found.notes == (
        "no price of westus2 for Standard_D4as_v4: the dearest of the other regions is taken",
    )


def test_the_table_says_how_old_it_is() -> None:
    found = retail.look_up("westeurope", METERS, None, TODAY)
    assert found.source == "dated table data/reference/prices.csv, prices of 2023-12-18 to 2026-09-23"


# The API, on the emulator


def test_the_api_is_asked_page_by_page(plane: World) -> None:
    """The emulated API lists spot prices, reservations and mounts too; none of them is taken."""
    asked = retail.Endpoint(f"{plane.url}/api/retail/prices", plane.ca)
    tiers = [Meter("disk", f"P{number} LRS") for number in (1, 30, 80)]
    others = [
        Meter("mount", "P30 LRS"),
        Meter("burst-enablement", "LRS"),
        Meter("v2-iops", "PremiumV2_LRS"),
        Meter("v2-capacity", "PremiumV2_LRS"),
    ]
    found = retail.look_up("westeurope", [*METERS, *tiers, *others], asked, TODAY)
    assert found.source == "Azure Retail Prices API, 2026-11-20"
    assert not found.notes
    known = prices.table()["westeurope"]
    assert {meter: price.usd for meter, price in found.prices.items()} == {
        meter: known[meter].usd for meter in [*METERS, *tiers, *others]
    }
    assert {price.quality for price in found.prices.values()} == {"live"}


def test_what_the_api_does_not_list_comes_from_the_table(plane: World) -> None:
    asked = retail.Endpoint(f"{plane.url}/api/retail/prices", plane.ca)
    found = retail.look_up("westus2", [VM], asked, TODAY)
    assert found.notes[0] == "the Retail Prices API lists none of it"
    assert found.source.startswith("dated table")


def test_a_filter_that_is_not_understood_is_refused(plane: World) -> None:
    for text in ("armRegionName = 'westeurope'", "(armRegionName eq 'x'", "armRegionName eq 'x' or"):
        answer = plane.raw("GET", "/api/retail/prices", params={"$filter": text}, headers={})
        assert answer.status_code == 400, text


# The API, where it fails


@contextmanager
def served(answer: Callable[[str, dict[str, list[str]]], tuple[int, Any]]) -> Iterator[str]:
    """Serve JSON (or raw text) on the loopback interface; `answer` gets the server's URL and the query."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            status, body = answer(url, parse_qs(urlsplit(self.path).query))
            data = (body if isinstance(body, str) else json.dumps(body)).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *words: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        url = f"http://127.0.0.1:{server.server_address[1]}/prices"
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield url
        finally:
            server.shutdown()
            thread.join()


def item(usd: Any = 200.0, **changes: Any) -> dict[str, Any]:
    return {
        "type": "Consumption", "productName": "Premium SSD Managed Disks", "skuName": "P30 ZRS",
        "meterName": "P30 ZRS Disk", "unitOfMeasure": "1/Month", "retailPrice": usd, **changes,
    }  # fmt: skip


def page(*items: Any, following: str | None = None, currency: str = "USD") -> dict[str, Any]:
    return {"BillingCurrency": currency, "Items": list(items), "NextPageLink": following}


def test_a_live_price_wins_over_the_table() -> None:
    with served(lambda url, query: (200, page(item(200.0)))) as url:
        found = retail.look_up("westeurope", [DISK, VM], retail.Endpoint(url), TODAY)
    assert (found.prices[DISK].usd, found.prices[DISK].quality) == (200.0, "live")
    assert found.prices[VM].quality == "inferred"
    assert found.source == "Azure Retail Prices API, 2026-11-20"
    assert found.notes[0].startswith("not listed there, from the dated table")
    assert found.notes[0].endswith(": Standard_D4as_v4")


FAILURES: dict[str, tuple[Callable[[str, dict[str, list[str]]], tuple[int, Any]], str]] = {
    "500": (lambda url, query: (500, "no"), "Internal Server Error"),
    "429": (lambda url, query: (429, "slowly"), "Too Many Requests"),
    "not JSON": (lambda url, query: (200, "<html>"), "not as documented"),
    "no items": (lambda url, query: (200, {"BillingCurrency": "USD"}), "not as documented"),
    "a list": (lambda url, query: (200, [1]), "not as documented"),
    "items of text": (lambda url, query: (200, page("P30")), "not as documented"),
    "another unit": (
        lambda url, query: (200, page(item(unitOfMeasure="1 Hour"))),
        "P30 ZRS is priced by '1 Hour'",
    ),
    "a price of text": (lambda url, query: (200, page(item("cheap"))), "could not convert"),
    "another currency": (lambda url, query: (200, page(item(), currency="EUR")), "in EUR, not in USD"),
    "another host": (
        lambda url, query: (200, page(item(), following="http://127.0.0.2/prices")),
        "its next page is at another address",
    ),
    "no end": (lambda url, query: (200, page(item(), following=url)), "more than 20 pages"),
}


@pytest.mark.parametrize("name", FAILURES)
def test_a_failing_api_leaves_the_table(name: str) -> None:
    answer, said = FAILURES[name]
    with served(answer) as url:
        found = retail.look_up("westeurope", [DISK], retail.Endpoint(url), TODAY)
    assert found.prices[DISK] == prices.table()["westeurope"][DISK]
    assert found.source.startswith("dated table")
    assert said in found.notes[0]


def test_what_is_wrong_with_a_meter_spoils_no_other() -> None:
    """Of four meters one has a strange unit, one a strange price, one is not listed: one is live."""
    others = [Meter("disk", f"P{number} ZRS") for number in (10, 20, 40)]
    named = {meter: {"skuName": meter.name, "meterName": f"{meter.name} Disk"} for meter in others}
    items = [
        item(200.0),
        item(1.0, unitOfMeasure="1 Hour", **named[others[0]]),
        item("cheap", **named[others[1]]),
        {"type": "Consumption"},
    ]
    with served(lambda url, query: (200, page(*items))) as url:
        listed = retail.look_up("westeurope", [DISK, *others], retail.Endpoint(url), TODAY)
    table = prices.table()["westeurope"]
    assert (listed.prices[DISK].usd, listed.prices[DISK].quality) == (200.0, "live")
    assert all(listed.prices[meter] == table[meter] for meter in others)
    assert listed.source == "Azure Retail Prices API, 2026-11-20"
    reasons = {note.partition(", from the dated table")[0]: note.rpartition(": ")[2] for note in listed.notes}
    assert reasons == {
        "P10 ZRS is priced by '1 Hour', not by '1/Month'": "disk P10 ZRS",
        "could not convert string to float: 'cheap'": "disk P20 ZRS",
        "not listed there": "disk P40 ZRS",
    }


def test_a_query_that_fails_leaves_the_others() -> None:
    """Machines are refused, disks are not: a note says which prices are the table's, and why."""

    def answer(url: str, query: dict[str, list[str]]) -> tuple[int, Any]:
        return (500, "no") if "Virtual Machines" in query["$filter"][0] else (200, page(item(200.0)))

    with served(answer) as url:
        listed = retail.look_up("westeurope", [VM, DISK], retail.Endpoint(url), TODAY)
    assert listed.prices[DISK].quality == "live" and listed.prices[VM].quality == "inferred"
    assert [note for note in listed.notes if "Internal Server Error" in note and note.endswith(VM.name)]


class _Pages:
    """The API at the transport: two pages, the link between them as the real one writes it."""

    def __init__(self, **options: Any) -> None:
        self.asked: list[str] = []

    def __enter__(self) -> _Pages:
        return self

    def __exit__(self, *error: object) -> None:
        pass

    def send_request(self, request: Any) -> Any:
        self.asked.append(request.url)
        last = "$skip=" in request.url
        body = page(item(200.0)) if last else page(following=f"{NEXT}&$skip=100")
        return SimpleNamespace(raise_for_status=lambda: None, json=lambda: body)


NEXT = "https://prices.azure.com:443/api/retail/prices?$filter=x"


def test_a_link_that_names_the_default_port_is_followed(monkeypatch: pytest.MonkeyPatch) -> None:
    api = _Pages()
    monkeypatch.setattr(retail, "PipelineClient", lambda url, **options: api)
    listed = retail.look_up("westeurope", [DISK], retail.Endpoint(), TODAY)
    assert [urlsplit(url).netloc for url in api.asked] == ["prices.azure.com", "prices.azure.com:443"]
    assert listed.prices[DISK].usd == 200.0 and not listed.notes


@pytest.mark.parametrize(
    ("link", "same"),
    [
        ("https://prices.azure.com:443/x", True),
        ("https://PRICES.azure.com/x", True),
        ("https://prices.azure.com:444/x", False),
        ("http://prices.azure.com:443/x", False),
        ("https://prices.azure.com.example:443/x", False),
        ("https://prices.azure.com@127.0.0.9/x", False),
    ],
)
def test_a_place_is_scheme_host_and_port(link: str, same: bool) -> None:
    assert (retail._place(link) == retail._place(retail.API)) is same


def test_the_emulated_api_names_its_port_in_links(plane: World) -> None:
    query = {"$filter": "armRegionName eq 'westeurope'"}
    for host, port in ((urlsplit(plane.url).netloc, urlsplit(plane.url).port), ("prices.test", 443)):
        answer = plane.raw("GET", "/api/retail/prices", params=query, headers={"Host": host})
        assert urlsplit(answer.json()["NextPageLink"]).port == port


def test_an_api_that_is_away_leaves_the_table() -> None:
    with served(lambda url, query: (200, page())) as url:
        pass  # its port is closed now
    found = retail.look_up("westeurope", [DISK], retail.Endpoint(url), TODAY)
    assert "the Retail Prices API gave no prices" in found.notes[0]
    assert found.prices[DISK].usd == prices.table()["westeurope"][DISK].usd


def test_the_first_tier_that_costs_is_taken() -> None:
    tiers = [
        item(0.5, tierMinimumUnits=100.0),
        item(0.0, tierMinimumUnits=0.0),
        item(0.7, tierMinimumUnits=10.0),
    ]
    with served(lambda url, query: (200, page(*tiers))) as url:
        found = retail.look_up("westeurope", [DISK], retail.Endpoint(url), TODAY)
    assert found.prices[DISK].usd == 0.7


def test_the_endpoint_comes_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(retail.ENDPOINT, raising=False)
    assert retail.endpoint() is None
    monkeypatch.setenv(retail.ENDPOINT, "http://127.0.0.1:1/prices")
    assert retail.endpoint() == retail.Endpoint("http://127.0.0.1:1/prices")
