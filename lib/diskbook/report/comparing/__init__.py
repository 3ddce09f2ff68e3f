"""`diskbook compare`: runs beside runs, a row a comparison, with the ratio of their ratios."""
