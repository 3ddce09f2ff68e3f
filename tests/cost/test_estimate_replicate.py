"""What one replicate more costs: that of the estimate, and said where no price is known."""

from __future__ import annotations

from datetime import date, timedelta

import pytest

from diskbook.cost import budget
from diskbook.cost.estimate import another_replicate
from diskbook.design import scenario_file
from diskbook.facts import prices


def test_a_replicate_costs_what_the_plan_of_one_says() -> None:
    scenario = scenario_file.load("zone-disks", "standard")
    estimate = budget.estimated(scenario, None, timedelta(hours=12), date(2026, 11, 22), 1)
    usd, basis = another_replicate(scenario, "azure")
    assert usd == pytest.approx(estimate.usd) and basis.startswith("costs that at list price (dated table")
    assert "in Azure at list price; emulated, it is free" in another_replicate(scenario, "emulated").basis


def test_an_unknown_price_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    scenario = scenario_file.load("zone-disks", "quick")
    assert another_replicate(scenario, "imported") == (
        None,
        "has no price here: imported machines and disks are not Azure's to bill",
    )
    monkeypatch.setattr(prices, "table", dict)
    usd, basis = another_replicate(scenario, "azure")
    assert usd is None and basis.startswith("has no price here: none is known of ")
