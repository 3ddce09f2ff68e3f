"""Articles whose figures were published: `data/reference/articles.csv`."""

from __future__ import annotations

import csv
from functools import cache

from diskbook.facts.paths import REFERENCE


@cache
def names() -> tuple[str, ...]:
    """Names of the articles, in the order of the table."""
    with (REFERENCE / "articles.csv").open(encoding="utf-8", newline="") as file:
        return tuple(row["article"] for row in csv.DictReader(file))
