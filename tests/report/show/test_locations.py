"""Zones are written with both of their names: the scenario's number and the physical zone."""

from __future__ import annotations

import pandas as pd

from diskbook.report.show import locations


def trials(*zones: tuple[str | None, str | None]) -> pd.DataFrame:
    return pd.DataFrame(zones, columns=["logical_zone", "physical_zone"])


KNOWN = trials(("1", "westeurope-az3"), ("2", "westeurope-az1"), ("1", "westeurope-az3"), (None, None))


def test_a_zone_has_both_of_its_names() -> None:
    assert locations.zones(KNOWN) == {"westeurope-az3": "zone 1 (az3)", "westeurope-az1": "zone 2 (az1)"}


def test_a_text_names_each_zone_once_in_both_numberings() -> None:
    text = "ZRS from zone 1, nearest to westeurope-az1 (not zone 1 (az3)); zone 3 (not known), zone 12"
    text += "; zone 2 (slow)"
    assert locations.with_physical_zones(text, KNOWN) == (
        "ZRS from zone 1 (az3), nearest to zone 2 (az1) (not zone 1 (az3)); zone 3 (not known), zone 12; "
        "zone 2 (az1) (slow)"
    )
    assert locations.with_physical_zones(text, trials((None, None))) == text


def test_zones_that_two_subscriptions_number_unlike_keep_one_name() -> None:
    mixed = trials(("1", "westeurope-az3"), ("1", "westeurope-az2"), ("2", "westeurope-az1"))
    assert locations.zones(mixed) == {"westeurope-az1": "zone 2 (az1)"}
