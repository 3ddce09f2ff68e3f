"""Azure's Retail Prices API: public list prices, without account or token.

The table of `diskbook.facts.prices` stands in for what the API does not answer.
"""

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from azure.core import PipelineClient
from azure.core.exceptions import AzureError, ServiceRequestError, ServiceResponseError
from azure.core.pipeline.policies import RetryPolicy
from azure.core.rest import HttpRequest

from diskbook.facts.catalog import vm_sizes
from diskbook.facts.errors import UsageError
from diskbook.facts.prices import (
    TABLE,
    UNITS,
    Meter,
    Price,
    PriceList,
    dollars,
    from_table,
    product_and_meter,
    table,
)

API = "https://prices.azure.com/api/retail/prices"
API_VERSION = "2023-01-01-preview"
ENDPOINT = "DISKBOOK_PRICES_URL"
"""Environment variable: another address of the API, which is then asked for emulated runs as well."""
MOST_PAGES = 20
TIMEOUT_S = 5
_UNLISTED = "not listed there"
_PORTS = {"https": 443, "http": 80}


@dataclass(frozen=True)
class Endpoint:
    """Where the Retail Prices API is; `ca` for one that has a certificate of its own."""

    url: str = API
    ca: Path | None = None


def endpoint() -> Endpoint | None:
    """The endpoint that the environment names, if any."""
    url = os.environ.get(ENDPOINT)
    return Endpoint(url) if url else None


def look_up(region: str, meters: Sequence[Meter], asked: Endpoint | None, today: date) -> PriceList:
    """Price the meters: from the API when an endpoint is given and answers, else from the table.

    `source` says which, with the date. Meters that the API does not price have the table's price, and a note
    names them with the reason; a failure of the API is a note, never an error.
    """
    dated = from_table(region, meters, table())
    return dated if asked is None else _together(region, _ask(region, meters, asked, today), dated, today)


def saved(path: Path, region: str) -> PriceList:
    """Prices of a region from a saved answer of the API (JSON, or a list of pages), else from the table.

    Raises UsageError where the file is no such answer.
    """
    try:
        pages = json.loads(path.read_text("utf-8"))
        pages = pages if isinstance(pages, list) else [pages]
        items = [item for page in pages for item in page["Items"] if item["armRegionName"] == region]
        wrong = {item["currencyCode"] for item in items} - {"USD"}
        dates = {id(item): date.fromisoformat(str(item["effectiveStartDate"])[:10]) for item in items}
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        raise UsageError(
            f"{path}: it is not an answer of the Retail Prices API; save the JSON that "
            f"{API}?$filter=armRegionName eq '{region}' returns, or a list of its pages"
        ) from None
    if wrong:
        raise UsageError(f"{path}: its prices are in {', '.join(map(str, wrong))}; save an answer in USD")
    named: dict[str, list[dict[str, Any]]] = {}
    for item in items:
        for key in ("armSkuName", "meterName"):
            named.setdefault(str(item.get(key)), []).append(item)
    known = {meter for prices in table().values() for meter in prices}
    known |= {Meter(kind, size.name) for size in vm_sizes().values() for kind in ("vm-linux", "vm-windows")}
    prices = dict(table().get(region, {}))
    for meter in known:
        own = named.get(meter.name if meter.kind.startswith("vm-") else product_and_meter(meter)[1], [])
        answer = _Answer()
        _read(own, [meter], answer, date.min)
        for price in answer.live.values():
            newest = max(dates[id(item)] for item in own if _is(meter, item))
            prices[meter] = replace(price, as_of=newest, quality="saved")
    return PriceList(region, f"saved answer {path.name}, else {TABLE}", prices)


@dataclass
class _Answer:
    """What the API said: prices, and why it gave none of other meters, unless it just left them out."""

    live: dict[Meter, Price] = field(default_factory=dict)
    failed: dict[Meter, str] = field(default_factory=dict)


def _together(region: str, answer: _Answer, dated: PriceList, today: date) -> PriceList:
    """Live prices, and of the table those that the API does not give; which, and why, is a note a reason."""
    reasons: dict[str, list[str]] = {}
    for meter in dated.prices:
        if meter not in answer.live:
            reasons.setdefault(answer.failed.get(meter, _UNLISTED), []).append(str(meter))
    if not answer.live:
        failures = "; ".join(dict.fromkeys(answer.failed.values()))
        why = f"gave no prices ({failures})" if failures else "lists none of it"
        return replace(dated, notes=(f"the Retail Prices API {why}", *dated.notes))
    notes = [
        f"{reason}, from the {dated.source}: {', '.join(sorted(names))}" for reason, names in reasons.items()
    ]
    source = f"Azure Retail Prices API, {today}"
    return PriceList(region, source, {**dated.prices, **answer.live}, tuple(notes))


def _ask(region: str, meters: Sequence[Meter], asked: Endpoint, today: date) -> _Answer:
    """Ask the API for all meters, query by query; what goes wrong with one spoils no other."""
    answer = _Answer()
    for query, members in queries(region, meters):
        try:
            items = list(_items(asked, query))
        except (ServiceRequestError, ServiceResponseError) as error:  # away: no use in waiting for it again
            answer.failed |= dict.fromkeys(meters, _first_line(error))
            break
        except (json.JSONDecodeError, TypeError, KeyError, AttributeError):
            answer.failed |= dict.fromkeys(members, "its answer is not as documented")
        except (AzureError, ValueError) as error:
            answer.failed |= dict.fromkeys(members, _first_line(error))
        else:
            _read(items, members, answer, today)
    return answer


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0]


def _read(items: Sequence[Mapping[str, Any]], meters: Sequence[Meter], answer: _Answer, today: date) -> None:
    """Find meters among the items of a query, one by one; the first tier that is charged is taken."""
    for meter in meters:
        try:
            priced = (item for item in items if _is(meter, item))
            tiers = sorted(priced, key=lambda item: float(item.get("tierMinimumUnits") or 0))
            charged = [item for item in tiers if float(item["retailPrice"]) > 0]
            if charged:
                answer.live[meter] = _price(meter, charged[0], today)
        except (TypeError, KeyError):
            answer.failed[meter] = f"{meter.name} is not priced as documented"
        except ValueError as error:
            answer.failed[meter] = str(error)


def _price(meter: Meter, item: Mapping[str, Any], today: date) -> Price:
    unit = UNITS[meter.kind]
    if item["unitOfMeasure"] != unit:
        raise ValueError(f"{meter.name} is priced by '{item['unitOfMeasure']}', not by '{unit}'")
    return Price(meter, dollars(item["retailPrice"]), "live", today)


def queries(region: str, meters: Sequence[Meter]) -> list[tuple[str, list[Meter]]]:
    """The OData filters that find the meters, each with its meters.

    Values are case-sensitive in this version of the API.
    """
    place = f"armRegionName eq '{region}' and priceType eq 'Consumption'"
    filters = []
    machines = [meter for meter in meters if meter.kind.startswith("vm-")]
    if machines:
        named = " or ".join(f"armSkuName eq '{size}'" for size in sorted({meter.name for meter in machines}))
        filters.append((f"serviceName eq 'Virtual Machines' and {place} and ({named})", machines))
    disks = [meter for meter in meters if _disk_product(meter)]
    if disks:
        products = sorted({_disk_product(meter) for meter in disks})
        named = " or ".join(f"productName eq '{product}'" for product in products)
        filters.append((f"serviceName eq 'Storage' and {place} and ({named})", disks))
    addresses = [meter for meter in meters if meter.kind == "public-ip"]
    if addresses:
        network = f"serviceName eq 'Virtual Network' and {place} and productName eq 'IP Addresses'"
        filters.append((network, addresses))
    return filters


def _items(asked: Endpoint, query: str) -> Iterator[dict[str, Any]]:
    """Yield the items of a query, page by page; never follow a link to another host."""
    verify: dict[str, Any] = {"connection_verify": str(asked.ca)} if asked.ca else {}
    client: PipelineClient[Any, Any] = PipelineClient(
        asked.url, policies=[RetryPolicy(retry_total=0)], connection_timeout=TIMEOUT_S,
        read_timeout=TIMEOUT_S, **verify,
    )  # fmt: skip
    request = HttpRequest("GET", asked.url, params={"api-version": API_VERSION, "$filter": query})
    with client:
        for _ in range(MOST_PAGES):
            answer = client.send_request(request)
            answer.raise_for_status()
            page = answer.json()
            if page["BillingCurrency"] != "USD":
                raise ValueError(f"it answers in {page['BillingCurrency']}, not in USD")
            if not all(isinstance(item, dict) for item in page["Items"]):
                raise TypeError("items are objects")
            yield from page["Items"]
            following = page["NextPageLink"]
            if not following:
                return
            if _place(following) != _place(asked.url):
                raise ValueError(f"its next page is at another address, {following}")
            request = HttpRequest("GET", following)
    raise ValueError(f"it has more than {MOST_PAGES} pages")


def _place(url: str) -> tuple[str, str | None, int | None]:
    """Scheme, host and port of an address; the API names the default port in its links, as `:443`."""
    parts = urlsplit(url)
    return parts.scheme, parts.hostname, parts.port or _PORTS.get(parts.scheme)


def _is(meter: Meter, item: Mapping[str, Any]) -> bool:
    """Whether an item of the API prices a meter: not a spot price, a reservation or another disk's mount."""
    if item.get("type") != "Consumption":
        return False
    product = str(item.get("productName"))
    if meter.kind.startswith("vm-"):
        discounted = any(word in str(item.get("skuName")) for word in ("Spot", "Low Priority"))
        right_os = ("Windows" in product) == (meter.kind == "vm-windows")
        return item.get("armSkuName") == meter.name and right_os and not discounted
    return (product, item.get("meterName")) == product_and_meter(meter)


def _disk_product(meter: Meter) -> str:
    disk = not meter.kind.startswith("vm-") and meter.kind != "public-ip"
    return product_and_meter(meter)[0] if disk else ""
