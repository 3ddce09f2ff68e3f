"""`diskbook plan`: what a run would create, how long it takes, what it costs and what it can show."""
