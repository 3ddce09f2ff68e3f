"""What the core asks of its neighbours: the one table of modules that it imports by name, when it asks.

The core never imports a neighbour. It asks `clusters` only where a scenario has clusters, volumes, fleets or
losses (`Scenario.has_clusters`), or a run holds their results.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from diskbook.facts.lazily import Lazily

volume_rules = Lazily("diskbook.clusters.design.rules")
"""Rules of clusters, volumes, fleets and losses, and what these are in words."""
volume_limits = Lazily("diskbook.clusters.stats.volume_setups")
"""Limits of volumes, documented and measured."""
volume_tables = Lazily("diskbook.clusters.tables")
"""What the tables of a run on volumes have besides."""
volume_cost = Lazily("diskbook.clusters.cost")
"""What clusters, volumes and losses take and cost."""
volume_steps: Any = Lazily("diskbook.clusters.measure.steps:STEPS")
"""Steps around trials on volumes (`measure.bench.steps.Steps`)."""
vmfleet: Any = Lazily("diskbook.clusters.vmfleet:TOOL")
"""The tool that runs one load on many machines at once (`tools.protocol.Tool`)."""
vmfleet_results = Lazily("diskbook.clusters.vmfleet.results")
"""Formats of its results, and names of its files."""

ANALYSES: Mapping[str, str] = {
    "nested_resiliency": "diskbook.clusters.analysis.nested_resiliency",
    "s2d_azure": "diskbook.clusters.analysis.s2d_azure",
}
"""Analyses of scenarios by the names of their modules; others are in `report.analysis`."""
CLAIMS = ("diskbook.clusters.analysis.claims_s2d", "diskbook.clusters.analysis.claims_nested")
"""Modules whose `JUDGES` judge claims of articles; others are in `report.analysis.published.claims`."""
