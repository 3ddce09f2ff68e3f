"""docs/reference/azure-rules.md is what the table of Azure's rules says."""

from __future__ import annotations

from checks import azure_rules
from checks.azure_rules_table import RULES


def test_every_rule_is_a_row_that_markdown_can_draw() -> None:
    rows = [line for line in azure_rules.page().splitlines() if line.startswith("| ")]
    for rule in RULES:
        (row,) = [row for row in rows if row.startswith((f"| {rule.name} |", f"| {rule.name} on "))]
        assert row.count(" | ") == 5 and rule.breaks.words() in row and rule.code in row
