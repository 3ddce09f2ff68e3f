"""`diskbook import`: results that others measured, made into a run."""
