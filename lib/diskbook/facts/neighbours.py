"""What the core asks of its neighbours: the one table of modules that it imports by name, when it asks.

The core never imports a neighbour. It asks `clusters` only where a scenario has clusters, volumes, fleets or
losses (`Scenario.has_clusters`), or a run holds their results.
"""

from __future__ import annotations

from collections.abc import Mapping

from diskbook.facts.lazily import Lazily

volume_rules = Lazily("diskbook.clusters.design.rules")
"""Rules of clusters, volumes, fleets and losses, and what these are in words."""

ANALYSES: Mapping[str, str] = {
    "nested_resiliency": "diskbook.clusters.analysis.nested_resiliency",
    "s2d_azure": "diskbook.clusters.analysis.s2d_azure",
}
"""Analyses of scenarios by the names of their modules; others are in `report.analysis`."""
