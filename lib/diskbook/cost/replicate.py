"""What one replicate more would cost: for the report, from the dated table of prices alone."""

from __future__ import annotations

from typing import NamedTuple

from diskbook.cost import estimate as cost_estimate
from diskbook.design.model import Scenario
from diskbook.design.vocabulary import Provenance
from diskbook.facts import prices
from diskbook.facts.errors import DiskbookError

PRICED = (Provenance.AZURE, Provenance.EMULATED)
"""Provenances whose machines and disks have a price of Azure."""


class Priced(NamedTuple):
    """USD of one replicate, None where a price is not known; and what that rests on, in words."""

    usd: float | None
    basis: str


def another(scenario: Scenario, provenance: str) -> Priced:
    """Price one more replicate of a scenario, at list price.

    Parameters
    ----------
    provenance
        Of the run; what was not measured on Azure, nor emulated, has no price.
    """
    if provenance not in PRICED:
        return Priced(None, f"has no price here: {provenance} machines and disks are not Azure's to bill")
    try:
        known = prices.from_table(scenario.region, cost_estimate.meters(scenario), prices.table())
        estimate = cost_estimate.estimate(scenario, known, 0.0, replicates=1)
    except DiskbookError as error:
        return Priced(None, f"has no price here: {error}")
    if estimate.unpriced:
        return Priced(None, f"has no price here: none is known of {', '.join(estimate.unpriced)}")
    what = "costs that at list price"
    if provenance == Provenance.EMULATED:
        what = "would cost that in Azure at list price; emulated, it is free"
    return Priced(estimate.usd, f"{what} ({known.source})")
