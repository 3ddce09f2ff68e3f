"""Figures of volumes and fleets, drawn and exported as those of `report.figures`."""

from diskbook.clusters.figures.binding import binding
from diskbook.clusters.figures.capacity import capacity
from diskbook.clusters.figures.copies import copies
from diskbook.clusters.figures.fleet import fleet
from diskbook.clusters.figures.loss_matrix import loss_matrix
from diskbook.clusters.figures.ratio_map import ratio_map

__all__ = ["binding", "capacity", "copies", "fleet", "loss_matrix", "ratio_map"]
