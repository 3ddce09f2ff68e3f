"""Where a run was, as text, for pages and tables that show runs of many places together."""

from __future__ import annotations

import re

import pandas as pd

_LOGICAL = re.compile(r"\bzone ([123])\b(?! \(az)")


def words(cloud: str, region: str, profile: str | None) -> str:
    """Name a place: the region, on Azure; elsewhere there is none, and its name is only what was asked for.

    Parameters
    ----------
    cloud, region
        As the run was asked for.
    profile
        What the emulator plays.
    """
    if cloud == "emulator":
        return f"profile {profile or 'default'}, as in {region}"
    return "hosts of your own" if cloud == "inventory" else region


def zones(trials: pd.DataFrame) -> dict[str, str]:
    """Physical zones of a run with their logical numbers, e.g. "westeurope-az3" as "zone 1 (az3)".

    A subscription numbers the zones of a region in an order of its own. Scenarios, and so the names of arms,
    have its numbers; what Azure tells of a place is the physical zone.
    """
    known = trials[["physical_zone", "logical_zone"]].dropna().drop_duplicates()
    known = known[
        ~known["physical_zone"].duplicated(keep=False) & ~known["logical_zone"].duplicated(keep=False)
    ]
    return {
        str(physical): f"zone {logical} ({str(physical).rpartition('-')[2]})"
        for physical, logical in known.itertuples(index=False, name=None)
    }


def with_physical_zones(text: str, trials: pd.DataFrame) -> str:
    """Write every zone in a text with both of its names: "zone 1 (az3)"."""
    named = zones(trials)
    for physical, name in named.items():
        text = text.replace(physical, name)
    numbers = {name.split()[1]: name for name in named.values()}
    return _LOGICAL.sub(lambda zone: numbers.get(zone[1], zone[0]), text)
