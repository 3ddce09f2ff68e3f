"""What the runs of a batch are expected to cost and to take, before they start."""

import functools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date, timedelta

from diskbook.batch.batch_run import Item
from diskbook.batch.status import Standing, State
from diskbook.cloud import connect
from diskbook.cloud.azure import expiry
from diskbook.cost import budget, estimate as cost_estimate, retail
from diskbook.design import schedule
from diskbook.facts.errors import UsageError
from diskbook.facts.prices import Meter, PriceList
from diskbook.stats import expected

AROUND_S = 40.0
"""Roughly what a run takes besides its machines' time: four notebooks, and on the emulator its set-up."""


@dataclass(frozen=True)
class Price:
    """What is still to be paid and waited for.

    - `expected_usd`, `seconds`: of what is left of the run.
    - `limit_usd`: what is reserved for it: its expected cost with the margin of `cost.MARGIN`.
    """

    expected_usd: float
    limit_usd: float
    seconds: float
    source: str = ""


Pricing = Callable[[Item, Standing], Price]


def pricing(items: Sequence[Item], limit: float | None, *, ask: bool) -> Pricing:
    """Return the function that prices a run of a batch.

    - `limit`: of the whole batch: with one, everything must have a price.
    - `ask`: ask Azure's price list, as the runs themselves will; else the dated table, which needs no
      network.
    """
    on_azure = any(item.cloud == "azure" for item in items)
    live = budget.price_source(connect.azure_clients().cloud) if ask and on_azure else None

    @functools.cache  # of many runs most have the same machines and disks
    def prices(region: str, meters: tuple[Meter, ...], asked: retail.Endpoint | None) -> PriceList:
        return retail.look_up(region, meters, asked, date.today())

    def price(item: Item, standing: Standing) -> Price:
        if standing.state == State.FINISHED:
            return Price(0.0, 0.0, 0.0)
        if item.cloud == "inventory":
            return Price(0.0, 0.0, _seconds(item, 1), str(budget.NOTHING["of"]))
        asked = (live if item.cloud == "azure" else None) or retail.endpoint()
        replicates = standing.replicates_left
        if not replicates:
            return Price(0.0, 0.0, AROUND_S)
        listed = prices(item.scenario.region, tuple(cost_estimate.meters(item.scenario)), asked)
        life = timedelta(hours=expiry.DEFAULT_H).total_seconds() / 3600
        made = cost_estimate.estimate(item.scenario, listed, life, replicates)
        if limit is not None and made.unpriced:
            raise UsageError(f"run {item.name}: {budget.too_dear(made, limit)}")
        return Price(made.usd, _up(made.usd * cost_estimate.MARGIN), _seconds(item, replicates), made.source)

    return price


def _up(usd: float) -> float:
    """Whole cents, rounded up, so that a run's own estimate fits what is reserved for it."""
    return math.ceil(round(100 * usd, 6)) / 100


def _seconds(item: Item, replicates: int) -> float:
    """How long a run is expected to take. Emulated replicates have little around their trials."""
    if item.cloud == "azure":  # its replicates are measured side by side
        return cost_estimate.life_s(item.scenario) + AROUND_S
    share = replicates / item.scenario.design.replicates
    return AROUND_S + share * (schedule.seconds(item.scenario) + expected.seconds(item.scenario))
