"""`diskbook compare`: runs next to runs, one row per comparison, with the ratio of their ratios."""
