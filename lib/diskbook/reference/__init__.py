"""Azure's documented facts, read from data/reference: sizes, limits, rules, prices, metrics."""
