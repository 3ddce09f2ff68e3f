"""Parts of the analysis of `nested-resiliency`: arms, saturated cells, tiers, capacity, fleet, verdicts."""
