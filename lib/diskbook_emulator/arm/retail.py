"""The Retail Prices API, emulated: the dated table in the API's own shape.

Like the real one it wants no token. It lists what else shares a size's or a disk's name as well, spot prices
and reservations, so that a client has to tell them apart. Links to a next page name the port, as the real
API's do: `https://prices.azure.com:443/api/retail/prices?$skip=100` (Microsoft's page on the API).
"""

import re
from collections.abc import Callable, Iterator
from urllib.parse import urlencode, urlsplit

from diskbook.facts import catalog
from diskbook.facts.prices import Price, product_and_meter, table
from diskbook_emulator.arm.errors import bad_request
from diskbook_emulator.arm.gateway import RETAIL as PATH
from diskbook_emulator.arm.plane import Call, ControlPlane, Reply
from diskbook_emulator.types import Json

PAGE = 100  # items; the API's own is 1,000
Test = Callable[[Json], bool]

_TOKEN = re.compile(
    r"\s*(?:(?P<sign>[()])|(?P<word>and|or)\b|(?P<field>\w+)\s+eq\s+'(?P<value>[^']*)')", re.IGNORECASE
)
# What the filter calls priceType, the answer calls type.
_RENAMED = {"priceType": "type"}


def prices(plane: ControlPlane, call: Call) -> Reply:
    """List prices that a filter of `field eq 'value'` with and, or and brackets lets through."""
    matches = _Filter(call.query.get("$filter", "")).test
    items = [item for item in _items() if matches(item)]
    start = int(call.query.get("$skip", "0"))
    following = None
    if start + PAGE < len(items):
        query = {**call.query, "$skip": str(start + PAGE)}
        following = f"{_with_port(call.base)}{PATH}?{urlencode(query)}"
    page = items[start : start + PAGE]
    body = {
        "BillingCurrency": "USD",
        "CustomerEntityId": "Default",
        "CustomerEntityType": "Retail",
        "Items": page,
        "NextPageLink": following,
        "Count": len(page),
    }
    return Reply(200, body)


def _with_port(base: str) -> str:
    """Scheme, host and port of the API; it names its port in links also where that is the default."""
    return base if urlsplit(base).port else f"{base}:443"


def _items() -> Iterator[Json]:
    for region, known in table().items():
        for price in known.values():
            yield from (_machine if price.meter.kind.startswith("vm-") else _other)(region, price)


def _item(region: str, price: Price, service: str, **fields: object) -> Json:
    return {
        "currencyCode": "USD",
        "tierMinimumUnits": 0.0,
        "retailPrice": price.usd,
        "unitPrice": price.usd,
        "armRegionName": region,
        "location": catalog.region(region).display_name,
        "serviceName": service,
        "unitOfMeasure": price.unit,
        "type": "Consumption",
        "isPrimaryMeterRegion": True,
        "armSkuName": "",
        **fields,
    }


def _machine(region: str, price: Price) -> Iterator[Json]:
    """A size's price, after its spot price, its low-priority price and a reservation."""
    short = price.meter.name.removeprefix("Standard_").replace("_", " ")
    series = re.sub(r"\d+", "", short, count=1).replace(" ", "")
    system = " Windows" if price.meter.kind == "vm-windows" else ""
    item = _item(
        region, price, "Virtual Machines", armSkuName=price.meter.name,
        productName=f"Virtual Machines {series} Series{system}", skuName=short, meterName=short,
    )  # fmt: skip
    for word in ("Spot", "Low Priority"):
        name = f"{short} {word}"
        yield {**item, "retailPrice": price.usd / 5, "skuName": name, "meterName": name}
    yield {**item, "retailPrice": price.usd * 5000, "type": "Reservation", "reservationTerm": "1 Year"}
    yield item


def _other(region: str, price: Price) -> Iterator[Json]:
    product, meter = product_and_meter(price.meter)
    service = "Virtual Network" if price.meter.kind == "public-ip" else "Storage"
    sku = "Premium LRS" if price.meter.kind.startswith("v2") else price.meter.name
    item = _item(region, price, service, productName=product, skuName=sku, meterName=meter)
    free = {"v2-iops": 3000.0, "v2-mb-s": 125.0}.get(price.meter.kind)
    if free is not None:
        yield {**item, "retailPrice": 0.0, "unitPrice": 0.0}
        item["tierMinimumUnits"] = free
    yield item


class _Filter:
    """Reads a filter by descent: or over and over brackets and comparisons."""

    def __init__(self, text: str) -> None:
        self._tokens = list(_tokens(text))
        self.test: Test = self._any() if self._tokens else lambda item: True
        if self._tokens:
            raise _wrong(text)

    def _any(self) -> Test:
        tests = [self._all()]
        while self._takes("word", "or"):
            tests.append(self._all())
        return lambda item: any(test(item) for test in tests)

    def _all(self) -> Test:
        tests = [self._one()]
        while self._takes("word", "and"):
            tests.append(self._one())
        return lambda item: all(test(item) for test in tests)

    def _one(self) -> Test:
        if self._takes("sign", "("):
            inner = self._any()
            if not self._takes("sign", ")"):
                raise _wrong("a bracket is open")
            return inner
        if not self._tokens or self._tokens[0]["field"] is None:
            raise _wrong("a comparison is missing")
        token = self._tokens.pop(0)
        field, value = _RENAMED.get(token["field"], token["field"]), token["value"]
        return lambda item: item.get(field) == value

    def _takes(self, kind: str, text: str) -> bool:
        if self._tokens and (self._tokens[0][kind] or "").lower() == text:
            self._tokens.pop(0)
            return True
        return False


def _tokens(text: str) -> Iterator[re.Match[str]]:
    position = 0
    while text[position:].strip():
        token = _TOKEN.match(text, position)
        if token is None:
            raise _wrong(text)
        yield token
        position = token.end()


def _wrong(text: str) -> Exception:
    # wording from our knowledge, not read
    return bad_request(f"Invalid OData parameters supplied: {text}", "InvalidFilter")
