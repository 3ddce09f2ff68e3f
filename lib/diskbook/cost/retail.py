"""Azure's Retail Prices API: public list prices, without account or token.

The table of `diskbook.reference.prices` stands in for what the API does not answer.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from azure.core import PipelineClient
from azure.core.exceptions import AzureError
from azure.core.pipeline.policies import RetryPolicy
from azure.core.rest import HttpRequest

from diskbook.reference.prices import (
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

    Returns
    -------
    PriceList
        Its `source` says which, with the date; a failure of the API is a note, never an error.
    """
    dated = from_table(region, meters, table())
    if asked is None:
        return dated
    try:
        live = {price.meter: price for price in _live(region, meters, asked, today)}
    except (json.JSONDecodeError, TypeError, KeyError, AttributeError):
        reason = "its answer is not as documented"
    except (AzureError, ValueError) as error:
        reason = str(error).partition("\n")[0]
    else:
        return _together(region, live, dated, today)
    return replace(dated, notes=(f"the Retail Prices API gave no prices ({reason})", *dated.notes))


def _together(region: str, live: Mapping[Meter, Price], dated: PriceList, today: date) -> PriceList:
    missing = sorted({str(meter) for meter in dated.prices if meter not in live})
    if not live:
        return replace(dated, notes=("the Retail Prices API lists none of it", *dated.notes))
    notes = (f"not listed there, from the {dated.source}: {', '.join(missing)}",) if missing else ()
    source = f"Azure Retail Prices API, {today}"
    return PriceList(region, source, {**dated.prices, **live}, notes)


def _live(region: str, meters: Sequence[Meter], asked: Endpoint, today: date) -> Iterator[Price]:
    """Ask the API and find the meters among its items; the first tier that is charged is taken."""
    items = [item for query in queries(region, meters) for item in _items(asked, query)]
    for meter in meters:
        tiers = sorted((item for item in items if _is(meter, item)), key=_tier)
        charged = [item for item in tiers if float(item["retailPrice"]) > 0]
        if charged:
            first = charged[0]
            if first["unitOfMeasure"] != UNITS[meter.kind]:
                raise ValueError(f"{meter.name} is priced by '{first['unitOfMeasure']}'")
            yield Price(meter, dollars(first["retailPrice"]), "live", today)


def _tier(item: Mapping[str, Any]) -> float:
    return float(item.get("tierMinimumUnits") or 0)


def queries(region: str, meters: Sequence[Meter]) -> list[str]:
    """The OData filters that find the meters; values are case-sensitive in this version of the API."""
    place = f"armRegionName eq '{region}' and priceType eq 'Consumption'"
    filters = []
    sizes = sorted({meter.name for meter in meters if meter.kind.startswith("vm-")})
    if sizes:
        named = " or ".join(f"armSkuName eq '{size}'" for size in sizes)
        filters.append(f"serviceName eq 'Virtual Machines' and {place} and ({named})")
    products = sorted({_disk_product(meter) for meter in meters} - {""})
    if products:
        named = " or ".join(f"productName eq '{product}'" for product in products)
        filters.append(f"serviceName eq 'Storage' and {place} and ({named})")
    if any(meter.kind == "public-ip" for meter in meters):
        filters.append(f"serviceName eq 'Virtual Network' and {place} and productName eq 'IP Addresses'")
    return filters


def _items(asked: Endpoint, query: str) -> Iterator[dict[str, Any]]:
    """All items of a query, page by page; a page of another host is not followed."""
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
            yield from page["Items"]
            following = page["NextPageLink"]
            if not following:
                return
            if urlsplit(following)[:2] != urlsplit(asked.url)[:2]:
                raise ValueError(f"its next page is at another address, {following}")
            request = HttpRequest("GET", following)
    raise ValueError(f"it has more than {MOST_PAGES} pages")


def _is(meter: Meter, item: Mapping[str, Any]) -> bool:
    """Whether an item of the API prices a meter: not a spot price, a reservation or another disk's mount."""
    if item.get("type") != "Consumption":
        return False
    if meter.kind.startswith("vm-"):
        discounted = any(word in item["skuName"] for word in ("Spot", "Low Priority"))
        windows = "Windows" in item["productName"]
        right_os = windows == (meter.kind == "vm-windows")
        return item.get("armSkuName") == meter.name and right_os and not discounted
    fields = product_and_meter(meter)
    return (item["productName"], item["meterName"]) == fields


def _disk_product(meter: Meter) -> str:
    disk = not meter.kind.startswith("vm-") and meter.kind != "public-ip"
    return product_and_meter(meter)[0] if disk else ""
