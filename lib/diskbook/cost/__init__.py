"""What a run costs and how long it takes: prices, estimate, budget."""
