"""The check before the first create: can the run be had, and does it cost more than it may?

The limit is compared with the expected cost times `cost.MARGIN`; see there why. It is `--max-cost-usd`,
else `max_cost_usd` of the scenario's design, else `DEFAULT_LIMIT_USD` on Azure. On the emulator the price
is what the run would cost on Azure, and binds only where a limit was given.
"""

import math
from collections.abc import Mapping
from datetime import date, timedelta
from typing import Any

from diskbook.cloud.azure import preflight
from diskbook.cloud.azure.clients import Clients, Cloud
from diskbook.cloud.azure.expiry import lifetime
from diskbook.cost import estimate as cost_estimate, retail
from diskbook.cost.estimate import MARGIN, Estimate, Line
from diskbook.design.model import Scenario
from diskbook.design.vocabulary import Provenance
from diskbook.facts.errors import DiskbookError, UsageError
from diskbook.results.run import Run, now_utc

DEFAULT_LIMIT_USD = 50.0
"""On Azure, where nobody named a limit. A run of some machines for some hours costs less."""

NOTHING: Mapping[str, Any] = {
    "of": "hosts of your own cost nothing here",
    "replicates": 1,
    "expected_usd": 0.0,
    "worst_usd": 0.0,
    "margin": MARGIN,
    "limit_usd": None,
    "source": "none is needed",
    "rows": (),
}
"""Record of what is not Azure's to bill, as `record` makes one."""


def check(run: Run, clients: Clients, scenario: Scenario, replicates: int) -> None:
    """Record the estimate, or stop before anything is created: it cannot be had, or costs too much.

    Raises DiskbookError with all that stands in the way of so many new replicates, one sentence a problem; or
    with what costs most, and what to change.
    """
    manifest, cloud, today = run.manifest, clients.cloud.kind, date.today()
    problems = preflight.problems_of(clients, scenario, replicates, today)
    if problems:
        count = f", {len(problems)} problems" if len(problems) > 1 else ""
        raise DiskbookError(f"nothing was created{count}: {'. '.join(problems)}")
    estimate = estimated(scenario, price_source(clients.cloud), lifetime(manifest), today, replicates)
    earlier = manifest.get("cost", [])
    limit = limit_of(scenario, cloud, manifest.get("max_cost_usd"))
    spent = math.fsum(row["expected_usd"] for row in earlier)
    refusal = too_dear(estimate, limit, spent)
    if refusal:
        raise DiskbookError(refusal)
    kept = record(estimate, limit, clients.cloud.provenance)
    run.update_manifest(cost=[*earlier, {"utc": now_utc(), **kept}])


def price_source(cloud: Cloud) -> retail.Endpoint | None:
    """Where live prices of a cloud are asked for; None where the dated table has to do.

    An emulator is not priced from the internet, and other clouds than Azure's own have other prices.
    """
    named = retail.endpoint()
    if named is not None or cloud.kind != "azure":
        return named
    if cloud.endpoint is None:
        return retail.Endpoint()
    return retail.Endpoint(f"{cloud.endpoint}/api/retail/prices", cloud.ca) if cloud.emulated else None


def estimated(
    scenario: Scenario, asked: retail.Endpoint | None, life: timedelta, today: date, replicates: int = 0
) -> Estimate:
    """Estimate the cost with live prices from `asked`, or those of the dated table where it is None."""
    prices = retail.look_up(scenario.region, cost_estimate.meters(scenario), asked, today)
    return cost_estimate.estimate(scenario, prices, life.total_seconds() / 3600, replicates)


def limit_of(scenario: Scenario, cloud: str, given: float | None) -> float | None:
    """The limit that binds, in USD; None where none does."""
    if given is not None:
        return float(given)
    if scenario.design.max_cost_usd is not None:
        return scenario.design.max_cost_usd
    return DEFAULT_LIMIT_USD if cloud == "azure" else None


def given_limit(usd: float) -> float:
    """Check a limit given on the command line; UsageError when it is no amount of money."""
    if not math.isfinite(usd) or usd <= 0:
        raise UsageError(f"--max-cost-usd {usd:g}: give an amount above 0, for example 20")
    return usd


def too_dear(estimate: Estimate, limit: float | None, spent: float = 0.0) -> str:
    """Say what costs most and what to change; "" where the limit holds. `spent`: on earlier machines."""
    if limit is None:
        return ""
    if estimate.unpriced:
        return (
            f"no price is known of {', '.join(estimate.unpriced)}, so the limit of {limit:g} USD cannot be "
            "held; price it in data/reference/prices.csv, or take another size or disk"
        )
    weighed = (spent + estimate.usd) * MARGIN
    if weighed <= limit:
        return ""
    before = f" after {spent:.2f} USD for machines made before" if spent else ""
    most = estimate.dearest
    fewer = "fewer replicates or blocks (--set design.replicates=...)"
    return (
        f"the run is expected to cost {estimate.usd:.2f} USD{before}, {weighed:.2f} USD with a margin of "
        f"{100 * (MARGIN - 1):.0f} %, and may cost {limit:g} USD; most of it is {_share(most, estimate)}; "
        f"take {fewer}, or allow more with --max-cost-usd {math.ceil(weighed)}"
    )


def _share(line: Line, estimate: Estimate) -> str:
    count = f"{line.count:,.0f} x {line.what}"
    hours = "" if line.hours is None else f" for {line.hours:.1f} h"
    return f"{count}{hours}, {line.usd or 0:.2f} USD"


def record(estimate: Estimate, limit: float | None, provenance: str) -> dict[str, Any]:
    """What the manifest keeps of an estimate."""
    return {
        "of": "cost of this run" if provenance == Provenance.AZURE else "what this run would cost on Azure",
        "replicates": estimate.replicates,
        "expected_usd": round(estimate.usd, 4),
        "worst_usd": round(estimate.worst_usd, 4),
        "margin": MARGIN,
        "limit_usd": limit,
        "hours": round(estimate.hours, 4),
        "worst_hours": round(estimate.worst_hours, 4),
        "source": estimate.source,
        "notes": list(estimate.notes),
        "rows": [dict(_row(line)) for line in estimate.lines],
    }


def _row(line: Line) -> Mapping[str, Any]:
    price = line.price
    return {
        "what": line.what,
        "count": round(line.count, 4),
        "hours": None if line.hours is None else round(line.hours, 4),
        "usd_each": price.usd if price else None,
        "unit": price.unit if price else None,
        "quality": price.quality if price else None,
        "as_of": str(price.as_of) if price and price.as_of else None,
        "usd": None if line.usd is None else round(line.usd, 4),
        "worst_usd": None if line.worst_usd is None else round(line.worst_usd, 4),
    }
