"""Names in a scenario that stand for other entries of it."""

from __future__ import annotations

from diskbook.design.model import Scenario
from diskbook.facts.errors import unknown


def refer(scenario: Scenario, where: str, **references: str) -> None:
    """Make sure that names, by kind of entry, are those of entries; ValueError with the nearest if not."""
    for kind, name in references.items():
        known = [item.name for item in getattr(scenario, kind)]
        if name not in known:
            raise ValueError(str(unknown(kind, name, known, where)))
