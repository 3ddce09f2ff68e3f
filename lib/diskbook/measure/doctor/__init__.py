"""`diskbook doctor`: is all there that a run needs, each line ok or with its remedy; nothing is created."""
