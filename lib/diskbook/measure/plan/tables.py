"""What a run would create, its limits and its price, as tables for the first cells of `1-provision`."""

from datetime import date
from typing import Any

import pandas as pd

from diskbook.cloud import connect
from diskbook.cloud.azure import expiry
from diskbook.cost import budget, plan_sections, retail
from diskbook.design import arm_words
from diskbook.facts.catalog import OWN_DISK
from diskbook.results.run import Run


def limits(run: Run) -> pd.DataFrame:
    """Documented limit that each arm meets first, of disk and machine, by block size."""
    scenario = run.scenario
    rows = []
    for arm in scenario.arm:
        disk, machine = scenario.disk_of(arm), scenario.machine_named(arm.machine)
        volume = scenario.volume_named(arm.volume) if arm.volume else None
        several = f"{volume.count} x " if volume and volume.count > 1 else ""
        pool = volume and f"{several}{volume.kind}, {arm_words.pool(scenario, volume)}"
        rows.append(
            {
                "arm": arm.name,
                "disk": pool or (disk.sku if disk.sku == OWN_DISK else f"{disk.sku} {disk.size_gib} GiB"),
                "machine": machine.size,
                "zone": machine.zone or "",
                "lowest limit": "not known" if disk.sku == OWN_DISK else plan_sections.lowest(scenario, arm),
            }
        )
    return pd.DataFrame(rows).set_index("arm")


def cost(run: Run) -> pd.DataFrame:
    """Bill of materials with its price in USD: as recorded when the run was created, else estimated now.

    Returns one row an item of all replicates, and the sum: `count`, `hours`, `usd_each` and its `unit`,
    `expected_usd`, and `at_worst_usd` should nobody look after the run until it expires.
    """
    kept = _estimate(run)
    rows = [
        {
            "item": row["what"],
            "count": row["count"],
            "hours": row["hours"],
            "usd_each": row["usd_each"],
            "unit": row["unit"],
            "expected_usd": row["usd"],
            "at_worst_usd": row["worst_usd"],
            "price": row["quality"],
        }
        for row in kept["rows"]
    ]
    total = {"item": "in all", "expected_usd": kept["expected_usd"], "at_worst_usd": kept["worst_usd"]}
    return pd.DataFrame([*rows, {**dict.fromkeys(("unit", "price"), ""), **total}]).set_index("item")


def cost_words(run: Run) -> str:
    """Say where the prices are from, and which limit binds; for the table's caption."""
    kept = _estimate(run)
    limit = "no limit binds"
    if kept["limit_usd"] is not None:
        weighed = kept["expected_usd"] * kept["margin"]
        limit = f"{weighed:.2f} USD with a margin against a limit of {kept['limit_usd']:g} USD"
    what = f"{kept['of'][0].upper()}{kept['of'][1:]}"
    return f"{what}, replicates: {kept['replicates']}; prices: {kept['source']}; {limit}"


def _estimate(run: Run) -> dict[str, Any]:
    """The estimate that the manifest keeps, of the first creation, or one made now."""
    manifest = run.manifest
    if manifest["cloud"] == "inventory":
        return dict(budget.NOTHING)
    if manifest.get("cost"):
        return dict(manifest["cost"][0])
    scenario, cloud = run.scenario, manifest["cloud"]
    asked = retail.endpoint()
    if cloud == "azure" and run.is_signed:  # a stranger's folder does not say whom to ask
        asked = budget.price_source(connect.clients_of(run).cloud)
    estimate = budget.estimated(scenario, asked, expiry.lifetime(manifest), date.today())
    limit = budget.limit_of(scenario, cloud, manifest.get("max_cost_usd"))
    return budget.record(estimate, limit, manifest["provenance"])
