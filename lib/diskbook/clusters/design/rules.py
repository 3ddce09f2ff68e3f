"""What the core asks about a scenario with clusters, volumes, fleets or losses (`facts.neighbours`). Pure."""

from collections.abc import Iterator

from diskbook.clusters.design import fleets, loss_rules, volume_references, volume_rules
from diskbook.clusters.design.fleets import data_sets, on_each
from diskbook.clusters.design.loss_rules import all_taken_away, rows as loss_rows
from diskbook.clusters.design.survival import WORDS as LOST
from diskbook.design.model import Scenario
from diskbook.facts.rules import Violation

__all__ = ["LOST", "all_taken_away", "check", "data_sets", "loss_rows", "on_each", "violations"]


def check(scenario: Scenario) -> None:
    """Hold clusters, volumes, fleets and losses against the rest of a scenario.

    Raises ValueError with one sentence on the first that does not fit.
    """
    volume_references.check(scenario)
    fleets.check(scenario)
    loss_rules.check(scenario)


def violations(scenario: Scenario) -> Iterator[Violation]:
    """Yield Azure's and Windows' rules that clusters and volumes break."""
    return volume_rules.check(scenario)
