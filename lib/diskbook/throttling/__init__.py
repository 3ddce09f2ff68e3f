"""Which limit holds a cell: limits, credit, prediction, evidence and diagnosis. Pure."""
