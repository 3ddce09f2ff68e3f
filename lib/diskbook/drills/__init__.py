"""Zone drills: a machine fails while it writes numbered blocks, and another one takes its disk over."""
