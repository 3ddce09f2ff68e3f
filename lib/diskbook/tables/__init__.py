"""What a table of trials is: its schema, totals of a trial, series within a trial, the grid. Pure."""
