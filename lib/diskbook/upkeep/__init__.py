"""For those who work on diskbook itself: benchmarks, fuzzing and coverage, as the Makefile calls them."""
