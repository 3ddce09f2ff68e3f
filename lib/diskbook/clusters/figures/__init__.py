"""Figures of volumes and fleets, drawn and exported as those of `report.figures`."""

from diskbook.clusters.figures.capacity import capacity
from diskbook.clusters.figures.ratio_map import ratio_map

__all__ = ["capacity", "ratio_map"]
